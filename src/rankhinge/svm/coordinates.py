r"""Fewer coordinates for the same problem: directions that no sample has need not be carried along.

Every slope is :math:`X^\top u`, so w never leaves the space that the rows of X span. Planes, bases and weights are
dense vectors, dozens for each problem, and where that space has few dimensions they may be short ones:

- *Empty columns* of a sparse X are left out. Hashed features (scikit-learn's `HashingVectorizer` makes 2²⁰ of them) are
  empty for the most part.
- *Few samples with many features* (gene expression, spectra) have coordinates in their row space instead. With
  Xᵀ = Q R, Q orthonormal, the triangular :math:`R^\top` stands for X and :math:`w = Q w'`: the same scores, the same
  lengths.

R alone is kept, and found block by block (Householder; Demmel, Grigori, Hoemmen and Langou 2012). Each row of Rᵀ has
the products of a row of X that is off by rounding in its own size, however long the others are: what is proved for Rᵀ
holds for X. The way back, :math:`w = X^\top R^{-1} w'`, is corrected once by the scores that it gives (Björck 1987).

Where a constant added to all scores of a list changes nothing, so does one added to a column: columns are seen from
their means then. Ids and timestamps would otherwise round away what the other columns say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankhinge.features import BLOCK_ENTRIES, WeightedColumns

__all__ = ["AsGiven", "Coordinates", "fewer", "weighted"]


class FewerPolicy(NamedTuple):
    """Where fewer coordinates are worth it.

    Attributes
    ----------
    empty : float
        Empty columns are left out if they are at least this part of all: entries need new indices.
    samples, features, features_a_sample : int
        Coordinates in the space of the rows are worth the products of all pairs of samples for a single fit to at most
        `samples`, and to √k times as many if k problems share them; with at least `features` features in all, and
        `features_a_sample` for each sample.
    nothing, uncertain : float
        Of singular values, in parts of the largest, for rows of length 1: below the first there is nothing but
        rounding, and below the second a score says less about a coordinate than rounding hides.
    """

    empty: float = 1 / 2
    samples: int = 400
    features: int = 1024
    features_a_sample: int = 8
    nothing: float = float(np.finfo(np.float64).eps)
    uncertain: float = float(np.finfo(np.float64).eps ** 0.5)


FEWER = FewerPolicy()


class Coordinates(Protocol):
    """How the coefficients of a fit belong to those of the features."""

    n_features: int
    # Passes over X that it takes to find them, and to go back to the features.
    there: int
    back: int
    # X itself, and the lengths of the rows that stand for its own, where these are others.
    whole: Any
    lengths: NDArray[np.float64] | None

    def inside(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of coefficients (..., d) those of the fit, (..., r)."""

    def everywhere(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coefficients of all features, (..., d)."""


@dataclass
class AsGiven:
    """The features themselves, or divided by a scale (d,): σ∘w inside, w outside."""

    n_features: int
    scale: NDArray[np.float64] | None = None
    there: int = 0
    back: int = 0
    whole: Any = None
    lengths: NDArray[np.float64] | None = None

    def inside(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        return coef if self.scale is None else coef * self.scale

    def everywhere(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        return coef if self.scale is None else coef / self.scale


class _Columns:
    """Some of the columns; the others have the weight 0."""

    there, back, whole = 0, 0, None
    lengths: NDArray[np.float64] | None = None

    def __init__(self, n_features: int, used: NDArray[np.int64]) -> None:
        self.n_features, self.used = n_features, used

    def inside(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        return coef[..., self.used]

    def everywhere(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        whole = np.zeros((*coef.shape[:-1], self.n_features))
        whole[..., self.used] = coef
        return whole


class _RowSpace:
    """Coordinates in the space of the rows: ``Qᵀ w`` for ``Xᵀ = Q R``."""

    there, back = 1, 3

    def __init__(self, X: Any, R: NDArray[np.float64], centred: bool) -> None:
        self.whole, self._centred, self.n_features = X, centred, X.shape[1]
        self.lengths: NDArray[np.float64] | None = np.linalg.norm(R, axis=0)
        # Rows of length 1: short ones must not drown beside long ones.
        self._unit = np.where(R.any(axis=0), self.lengths, 1.0)
        left, values, right = np.linalg.svd(R / self._unit)
        # Factors, never their product: entries of the inverse as large as 1 / ε would hide all that is certain.
        self._left, self._values, self._right = (
            part[: np.count_nonzero(values > len(R) * FEWER.nothing * values[0])] for part in (left.T, values, right)
        )
        self._n_certain = np.count_nonzero(values > FEWER.uncertain * values[0])

    def inside(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        certain = self._from_scores(np.atleast_2d(coef)) @ self._left[: self._n_certain]
        return certain.reshape(*coef.shape[:-1], -1)

    def everywhere(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        wanted = np.atleast_2d(coef) @ self._left.T
        whole = self._of_features(wanted)
        whole += self._of_features(wanted[:, : self._n_certain] - self._from_scores(whole))
        return whole.reshape(*coef.shape[:-1], -1)

    def _from_scores(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """``Qᵀ w`` along the left vectors of which scores tell something."""
        scores = np.zeros((len(coef), self.whole.shape[0]))
        for part, block in _column_blocks(self.whole, self._centred):
            scores += coef[:, part] @ block.T
        certain = slice(self._n_certain)
        along: NDArray[np.float64] = (scores / self._unit) @ self._right[certain].T / self._values[certain]
        return along

    def _of_features(self, along: NDArray[np.float64]) -> NDArray[np.float64]:
        """``Xᵀ R⁻¹ w'`` for w' that is known along the first left vectors."""
        part = slice(along.shape[1])
        return self._adjoint((along / self._values[part]) @ self._right[part] / self._unit)

    def _adjoint(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """``Xᵀ u``, row by row."""
        slopes = np.empty((len(coefficients), self.n_features))
        for part, block in _column_blocks(self.whole, self._centred):
            slopes[:, part] = coefficients @ block
        return slopes


class _Weighted:
    """Coefficients of features that are divided by a scale: σ∘w inside, w outside."""

    def __init__(self, inner: Coordinates, scale: NDArray[np.float64]) -> None:
        self._inner, self._scale = inner, scale
        self.n_features, self.there, self.back = inner.n_features, inner.there, inner.back
        self.whole, self.lengths = inner.whole, inner.lengths

    def inside(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._inner.inside(coef * self._scale)

    def everywhere(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        outside: NDArray[np.float64] = self._inner.everywhere(coef) / self._scale
        return outside


def weighted(
    X: Any, scale: NDArray[np.float64] | None, n_problems: int | None, *, centred: bool = False
) -> tuple[Any, Coordinates]:
    """As `fewer`, for columns that are divided by a scale (d,); without a number of problems all columns stay."""
    if scale is None:
        return (X, AsGiven(X.shape[1])) if n_problems is None else fewer(X, n_problems, centred=centred)
    factors = 1.0 / scale
    if n_problems is None:
        return WeightedColumns(X, factors), AsGiven(X.shape[1], scale)
    if sparse.issparse(X):
        X, inner = _occupied(X)
        return WeightedColumns(X, inner.inside(factors)), _Weighted(inner, scale)
    reduced, inner = fewer(WeightedColumns(X, factors), n_problems, centred=centred)
    return reduced, AsGiven(X.shape[1], scale) if isinstance(inner, AsGiven) else _Weighted(inner, scale)


def fewer(X: Any, n_problems: int = 1, *, centred: bool = False) -> tuple[Any, Coordinates]:
    """What stands for X in a fit of `n_problems`, and how coefficients belong to its columns.

    X itself where nothing is gained. `centred`: a constant added to all scores changes nothing.
    """
    if sparse.issparse(X):
        return _occupied(X)
    n, d = X.shape
    least = max(FEWER.features, FEWER.features_a_sample * n)
    if d >= least and n <= FEWER.samples * n_problems**0.5:
        R = _triangle(X, centred)
        if np.isfinite(R).all() and R.any():
            try:
                return np.ascontiguousarray(R.T), _RowSpace(X, R, centred)
            except np.linalg.LinAlgError:
                # The shortcut may fail where the fit itself does not.
                pass
    return X, AsGiven(d)


def _occupied(X: Any) -> tuple[Any, Coordinates]:
    """A sparse X without its empty columns, where these are many; its entries are not copied."""
    n, d = X.shape
    by_columns = X.format == "csc"
    used = np.flatnonzero(np.diff(X.indptr) if by_columns else _marked(X.indices, d))
    if used.size == 0 or used.size > (1 - FEWER.empty) * d:
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


def _triangle(X: Any, centred: bool) -> NDArray[np.float64]:
    """R (n, n) of ``Xᵀ = Q R``; one pass."""
    R = np.zeros((0, X.shape[0]))
    for _, block in _column_blocks(X, centred):
        R = np.asarray(np.linalg.qr(np.concatenate([R, block.T]), mode="r"))
    return R


def _column_blocks(X: Any, centred: bool) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """The columns in float64, some at a time, with their weights, less their means if they are to be `centred`."""
    columns, factors = (X.X, X.factors) if isinstance(X, WeightedColumns) else (X, None)
    n, d = X.shape
    step = max(2 * n, 4 * BLOCK_ENTRIES // n)
    for start in range(0, d, step):
        part = slice(start, start + step)
        block = np.asarray(columns[:, part], dtype=np.float64)
        block = block if factors is None else block * factors[part]
        yield part, block - _means(block) if centred else block


def _means(block: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means of the columns, of constant ones to the last bit: seen from the first row, differences are exact there."""
    means: NDArray[np.float64] = block[0] + (block - block[0]).mean(axis=0)
    return means
