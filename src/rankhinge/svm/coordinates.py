r"""Fewer coordinates for the same problem: what no sample has a part in need not be carried along.

Every slope is :math:`X^\top u`, so w never leaves the space that the rows of X span. Planes, bases and weights are
dense vectors, dozens for each problem, and where that space has few dimensions they may be short ones:

- *Empty columns* of a sparse X are left out. Hashed features (scikit-learn's `HashingVectorizer` makes 2²⁰ of them) are
  empty for the most part.
- *Few samples with many features* (gene expression, spectra) have coordinates in their row space instead. With an
  orthonormal basis Q = Xᵀ A of it, :math:`X Q` stands for X and :math:`w = Q w'`: the same scores, the same lengths.

The latter is found from the products of the samples alone: :math:`X X^\top = V \Lambda V^\top` gives the basis
:math:`X^\top V \Lambda^{-1/2}`, which is orthonormal but for rounding by the condition of X squared, and a second turn
takes that away (CholeskyQR2: Yamamoto, Nakatsukasa, Yanagisawa and Fukaya 2015). X is read twice, block by block; a
third time where it has directions that are tiny beside others, such as what rounding leaves of a mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import solve_triangular

from rankhinge.features import BLOCK_ENTRIES, feature_map

__all__ = ["AsGiven", "Coordinates", "fewer"]

# Left out are empty columns that are at least this part of all: new indices of the entries are to be worth it.
_WORTH_IT = 1 / 2
# The row space takes products of all pairs of samples. They are worth it for a single fit to so many samples, and for
# the square root of k as many if k problems share them; and for so many features a sample.
_SAMPLES, _FEATURES, _FEATURES_PER_SAMPLE = 400, 1024, 8
# Squares of lengths in the row space, in parts of the largest: what is kept, and what is nothing but rounding.
_KEPT, _NOTHING = 1e-10, 1e-22


class Coordinates(Protocol):
    """How the coefficients of a fit belong to those of the features."""

    n_features: int
    # Passes over X that it takes to find them, and to go back to the features.
    there: int
    back: int
    # Whether each belongs to one feature.
    of_features: bool

    def inside(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of coefficients (..., d) those of the fit, (..., r)."""

    def everywhere(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coefficients of all features, (..., d)."""


class AsGiven:
    """The features themselves."""

    there, back, of_features = 0, 0, True

    def __init__(self, n_features: int) -> None:
        self.n_features = n_features

    def inside(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        return coef

    def everywhere(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        return coef


class _Columns:
    """Some of the columns; the others have the weight 0."""

    there, back, of_features = 0, 0, True

    def __init__(self, n_features: int, used: NDArray[np.int64]) -> None:
        self.n_features, self.used = n_features, used

    def inside(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        return coef[..., self.used]

    def everywhere(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        whole = np.zeros((*coef.shape[:-1], self.n_features))
        whole[..., self.used] = coef
        return whole


class _RowSpace:
    """The basis ``Xᵀ A`` of the space of the rows."""

    there, back, of_features = 3, 1, False

    def __init__(self, X: NDArray[Any], A: NDArray[np.float64]) -> None:
        self._features, self._A = feature_map(X), A
        self.n_features = X.shape[1]

    def inside(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        scores = self._features.scores(np.atleast_2d(coef).T)
        return (scores @ self._A).reshape(*coef.shape[:-1], -1)

    def everywhere(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        whole = self._features.adjoint(np.atleast_2d(coef) @ self._A.T).T
        return np.ascontiguousarray(whole).reshape(*coef.shape[:-1], -1)


def fewer(X: Any, n_problems: int = 1) -> tuple[Any, Coordinates]:
    """What stands for X in fits of so many problems, and how coefficients belong to its columns.

    X itself where nothing is gained.
    """
    if sparse.issparse(X):
        return _occupied(X)
    n, d = X.shape
    if d >= max(_FEATURES, _FEATURES_PER_SAMPLE * n) and n <= _SAMPLES * n_problems**0.5:
        try:
            found = _row_space(X)
        except np.linalg.LinAlgError:
            # Short cuts may fail where the fit itself does not.
            found = None
        if found is not None:
            return found[0], _RowSpace(X, found[1])
    return X, AsGiven(d)


def _occupied(X: Any) -> tuple[Any, Coordinates]:
    """A sparse X without its empty columns, where these are many; its entries are not copied."""
    n, d = X.shape
    by_columns = X.format == "csc"
    used = np.flatnonzero(np.diff(X.indptr) if by_columns else _marked(X.indices, d))
    if used.size == 0 or used.size > (1 - _WORTH_IT) * d:
        return X, AsGiven(d)
    if by_columns:
        indices, indptr = X.indices, X.indptr[np.append(used, d)]
    else:
        places = np.zeros(d, X.indices.dtype)
        places[used] = np.arange(used.size)
        indices, indptr = np.empty_like(X.indices), X.indptr
        for part in _parts(indices.size):
            indices[part] = places[X.indices[part]]
    return type(X)((X.data, indices, indptr), shape=(n, used.size)), _Columns(d, used)


def _marked(indices: NDArray[Any], d: int) -> NDArray[np.bool_]:
    """Which of the numbers below d occur."""
    marked = np.zeros(d, np.bool_)
    for part in _parts(indices.size):
        marked[indices[part]] = True
    return marked


def _parts(size: int) -> Iterator[slice]:
    """Parts of the entries: NumPy makes indices of 64 bits of all that it is given at once."""
    for start in range(0, size, BLOCK_ENTRIES):
        yield slice(start, start + BLOCK_ENTRIES)


def _row_space(X: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """``X Q`` (n, r) and A (n, r) with ``Q = Xᵀ A`` orthonormal; None where rounding would show."""
    with np.errstate(over="ignore", invalid="ignore"):
        gram = sum(block @ block.T for block in _column_blocks(X))
    if not np.isfinite(gram).all():
        return None
    squares, vectors = np.linalg.eigh(gram)
    largest = squares[-1]
    if not largest > np.finfo(np.float64).tiny / _NOTHING:
        return None
    r = int(np.count_nonzero(squares > _KEPT * largest))
    # Longest first; what is short beside the longest may be rounding, and is looked at in its own size.
    A = vectors[:, ::-1] / np.sqrt(np.where(squares > _KEPT * largest, squares, 1.0)[::-1])
    scores, products = _products(X, A)
    if np.any(np.diag(products)[r:] > _NOTHING * largest):
        short = _orthogonal(products, r, _NOTHING * largest)
        if short is None:
            return None
        A = np.column_stack([A[:, :r], A @ short])
        scores, products = _products(X, A)
    else:
        A, scores, products = A[:, :r], scores[:, :r], products[:r, :r]
    factor = np.linalg.cholesky(products)
    # Q L⁻ᵀ is orthonormal, for QᵀQ = L Lᵀ.
    A, scores = (solve_triangular(factor, matrix.T, lower=True).T for matrix in (A, scores))
    return np.ascontiguousarray(scores), np.ascontiguousarray(A)


def _products(X: NDArray[Any], A: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """``X Q`` and ``QᵀQ`` for ``Q = Xᵀ A``: one pass."""
    scores, products = np.zeros_like(A), np.zeros((A.shape[1], A.shape[1]))
    for block in _column_blocks(X):
        basis = block.T @ A
        scores += block @ basis
        products += basis.T @ basis
    return scores, products


def _orthogonal(products: NDArray[np.float64], r: int, nothing: float) -> NDArray[np.float64] | None:
    """What the vectors after the first r add to these, by the products of all: combinations that are orthonormal.

    Squares of lengths up to `nothing` are left out. None where some are longer and yet short beside the others.
    """
    along = np.linalg.solve(products[:r, :r], products[:r, r:])
    squares, vectors = np.linalg.eigh(products[r:, r:] - products[:r, r:].T @ along)
    kept = squares > max(_KEPT * squares[-1], nothing)
    if np.any(squares[~kept] > nothing):
        return None
    unit = vectors[:, kept] / np.sqrt(squares[kept])
    return np.concatenate([-along @ unit, unit])


def _column_blocks(X: NDArray[Any]) -> Iterator[NDArray[np.float64]]:
    """The columns in float64, some at a time."""
    step = max(1, 4 * BLOCK_ENTRIES // X.shape[0])
    for start in range(0, X.shape[1], step):
        yield np.asarray(X[:, start : start + step], dtype=np.float64)
