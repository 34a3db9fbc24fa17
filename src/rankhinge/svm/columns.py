"""Columns of a sparse X that have no entries take no part in a fit.

Hashed features (scikit-learn's `HashingVectorizer` makes 2²⁰ of them) are empty for the most part. No slope has
anything to say about an empty one, so its weight is 0 at every point that a solver visits; but planes, bases and
weights are dense vectors, and would pay for it all the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

__all__ = ["Columns", "occupied"]

# Left out are empty columns that are at least this part of all: new indices of the entries are to be worth it.
_WORTH_IT = 1 / 2


class Columns(NamedTuple):
    """Of `n_features` columns those that take part in a fit: `used`, ascending; None: all."""

    n_features: int
    used: NDArray[np.int64] | None = None

    def inside(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of coefficients (..., d) those of the columns that take part."""
        return coef if self.used is None else coef[..., self.used]

    def everywhere(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coefficients of all columns, (..., d): 0 for those that take no part."""
        if self.used is None:
            return coef
        whole = np.zeros((*coef.shape[:-1], self.n_features))
        whole[..., self.used] = coef
        return whole


def occupied(X: Any) -> tuple[Any, Columns]:
    """X, if sparse, without its empty columns, where these are many; its entries are not copied."""
    n, d = X.shape
    if not sparse.issparse(X):
        return X, Columns(d)
    counts = np.diff(X.indptr) if X.format == "csc" else np.bincount(X.indices, minlength=d)
    used = np.flatnonzero(counts)
    if used.size == 0 or used.size > (1 - _WORTH_IT) * d:
        return X, Columns(d)
    if X.format == "csc":
        indices, indptr = X.indices, X.indptr[np.append(used, d)]
    else:
        places = np.zeros(d, X.indices.dtype)
        places[used] = np.arange(used.size)
        indices, indptr = places[X.indices], X.indptr
    return type(X)((X.data, indices, indptr), shape=(n, used.size)), Columns(d, used)
