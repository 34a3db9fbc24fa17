"""Scores with what is needed to bound their rounding: how large the terms of their sums are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rankhinge.features.dense import BLOCK_ENTRIES
from rankhinge.features.maps import FeatureMap

__all__ = ["Audit", "HasPieces", "audit", "pieces_of", "row_lengths"]


class Audit(NamedTuple):
    """``X W``, the sums of the terms' sizes ``|X| |W|``, each (m, n), and the lengths of the rows of X, (n,)."""

    scores: NDArray[np.float64]
    sizes: NDArray[np.float64]
    lengths: NDArray[np.float64]


def audit(features: FeatureMap, weights: NDArray[np.float64]) -> Audit:
    """Scores of the columns of `weights` (d, m), with the sizes of their terms; one pass over X.

    Examples
    --------
    >>> import numpy as np
    >>> from rankhinge.features import audit, feature_map
    >>> audit(feature_map(np.array([[3.0, -4.0]])), np.array([[1.0], [1.0]]))
    Audit(scores=array([[-1.]]), sizes=array([[7.]]), lengths=array([5.]))
    """
    m, n = weights.shape[1], features.n_samples
    found = Audit(np.zeros((m, n)), np.zeros((m, n)), np.zeros(n))
    for rows, columns, piece in pieces_of(features):
        part = weights[columns]
        found.scores[:, rows] += (piece @ part).T
        sizes = abs(piece)
        found.sizes[:, rows] += (sizes @ np.abs(part)).T
        _lengthen(found.lengths, rows, sizes)
    return found


def row_lengths(features: FeatureMap) -> NDArray[np.float64]:
    """Lengths of the rows of X, (n,); one pass over X."""
    lengths = np.zeros(features.n_samples)
    for rows, _, piece in pieces_of(features):
        _lengthen(lengths, rows, abs(piece))
    return lengths


def _lengthen(lengths: NDArray[np.float64], rows: slice, sizes: Any) -> None:
    """Add a piece, by the sizes of its entries, which are used up, to the lengths of its rows."""
    # By the largest entry: squares of tiny and of huge ones are beyond the numbers.
    largest = float(sizes.max()) or 1.0
    sizes /= largest
    squares = sizes.power(2).sum(axis=1) if hasattr(sizes, "power") else np.einsum("ij,ij->i", sizes, sizes)
    lengths[rows] = np.hypot(lengths[rows], largest * np.sqrt(np.asarray(squares).ravel()))


@runtime_checkable
class HasPieces(Protocol):
    """A map that hands out X itself, piece by piece."""

    def pieces(self) -> Iterator[tuple[slice, slice, Any]]:
        """Rows, columns and entries of each, in float64."""


def pieces_of(features: FeatureMap) -> Iterator[tuple[slice, slice, Any]]:
    """Pieces of X in float64, with the rows and the columns that each has; maps of other rooms need not have any."""
    if isinstance(features, HasPieces):
        yield from features.pieces()
        return
    step = max(1, BLOCK_ENTRIES // max(1, features.n_features))
    for start in range(0, features.n_samples, step):
        stop = min(start + step, features.n_samples)
        yield slice(start, stop), slice(None), features.rows(np.arange(start, stop))
