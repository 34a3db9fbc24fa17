"""Feature maps over the candidates of bags, or over some of them, that count what they compute."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankhinge.features import BLOCK_ENTRIES, HasPieces, feature_map
from rankhinge.latent.segments import segment_best

__all__ = ["CandidateFeatures", "Counter", "Sweep"]

# Scores that a sweep over all candidates holds at a time.
_SWEEP_SCORES = 1 << 21


@dataclass
class Counter:
    """What training has cost: rows of X read, and inner products formed (rows times columns)."""

    n_rows: int = 0
    n_products: int = 0

    def add(self, n_rows: int, n_columns: int) -> None:
        """Note a product of some rows with some columns."""
        self.n_rows += n_rows
        self.n_products += n_rows * n_columns


class Sweep(NamedTuple):
    """Each bag's best candidates at m points, best first.

    ``places[c, b, r]`` is a place among all candidates, -1 where the bag has fewer; ``values`` has the scores, -inf
    there. ``at[c, b]`` is the score of the place that was asked for.
    """

    places: NDArray[np.int64]
    values: NDArray[np.float64]
    at: NDArray[np.float64]


class CandidateFeatures:
    """``X W`` and ``Xᵀ U`` over candidates; X is not copied, unless it is sparse and these are some of its rows.

    Parameters
    ----------
    X : array or CSR matrix
    rows : ndarray or None
        The row of each candidate; None: all rows, in order.
    constant : float
        If not 0, a last feature of this value for every candidate: an intercept.
    skip_zeros : bool
        Whether ``Xᵀ U`` reads only rows with a coefficient. With bags, at most one candidate of each bag has one.
    counter : Counter, optional
    """

    def __init__(
        self,
        X: Any,
        rows: NDArray[np.int64] | None,
        *,
        constant: float = 0.0,
        skip_zeros: bool = True,
        counter: Counter | None = None,
    ) -> None:
        self.counter = Counter() if counter is None else counter
        self.n_samples = int(X.shape[0] if rows is None else rows.size)
        self._n_own = int(X.shape[1])
        self.n_features = self._n_own + (constant != 0.0)
        share = self.n_samples / max(1, X.shape[0])
        self.n_entries = round(X.nnz * share) if sparse.issparse(X) else self.n_samples * self.n_features
        self._X, self._rows = X, rows
        self._constant, self._skip_zeros = constant, skip_zeros
        self._whole = feature_map(X) if rows is None else feature_map(X[rows]) if sparse.issparse(X) else None
        self._step = max(1, BLOCK_ENTRIES // max(1, self._n_own))

    def some(self, places: NDArray[np.int64] | None) -> CandidateFeatures:
        """The candidates at these places; None: all."""
        if places is None:
            return self
        rows = places if self._rows is None else self._rows[places]
        return CandidateFeatures(
            self._X, rows, constant=self._constant, skip_zeros=self._skip_zeros, counter=self.counter
        )

    def scores(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """``(X W)ᵀ``, of shape (m, n_samples)."""
        weights = np.asarray(weights, dtype=np.float64)
        own = weights[: self._n_own]
        self.counter.add(self.n_samples, weights.shape[1])
        if self._whole is not None:
            result = self._whole.scores(own)
        else:
            result = np.empty((weights.shape[1], self.n_samples))
            for part, block in self._blocks(np.arange(self.n_samples)):
                result[:, part] = own.T @ block.T
        if self._constant:
            result += self._constant * weights[self._n_own][:, None]
        return result

    def adjoint(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """``Xᵀ Uᵀ``, of shape (n_features, m)."""
        coefficients = np.asarray(coefficients, dtype=np.float64)
        used = np.arange(self.n_samples)
        if self._skip_zeros:
            used = np.flatnonzero(coefficients.any(axis=0))
        self.counter.add(used.size, coefficients.shape[0])
        if self._whole is not None and (sparse.issparse(self._X) or 2 * used.size > self.n_samples):
            result = self._whole.adjoint(coefficients)
        else:
            total = np.zeros((coefficients.shape[0], self._n_own))
            for part, block in self._blocks(used):
                total += coefficients[:, used[part]] @ block
            result = total.T
        if self._constant:
            result = np.vstack([result, self._constant * coefficients.sum(axis=1)])
        return result

    def pieces(self) -> Iterator[tuple[slice, slice, Any]]:
        """The candidates in float64, some at a time: which rows, which columns, and their entries."""
        own = slice(0, self._n_own)
        if isinstance(self._whole, HasPieces):
            for rows, columns, piece in self._whole.pieces():
                yield rows, own if columns == slice(None) else columns, piece
        else:
            for part, block in self._blocks(np.arange(self.n_samples)):
                yield part, own, block
        if self._constant:
            yield slice(None), slice(self._n_own, None), np.full((self.n_samples, 1), self._constant)

    def rows(self, index: NDArray[np.int64]) -> NDArray[np.float64]:
        """A few candidates' features, dense."""
        rows = self._X[index if self._rows is None else self._rows[index]]
        dense = np.asarray(rows.toarray() if sparse.issparse(rows) else rows, dtype=np.float64)
        if self._constant:
            dense = np.column_stack([dense, np.full(len(dense), self._constant)])
        return dense

    def sweep(
        self,
        weights: NDArray[np.float64],
        offsets: NDArray[np.int64],
        n_best: int,
        at: NDArray[np.int64] | None = None,
        allowed: NDArray[np.bool_] | None = None,
    ) -> Sweep:
        """Each bag's best candidates, in one pass that holds the scores of a few bags at a time.

        Parameters
        ----------
        weights : ndarray of shape (n_features, m)
        offsets : ndarray of shape (n_bags + 1,)
            Where the bags begin.
        n_best : int
        at : ndarray of shape (m, n_bags), optional
            Places whose scores are wanted too.
        allowed : ndarray of bool of shape (n_samples,), optional
            Candidates that may be the best; at least one a bag.
        """
        m, n_bags = weights.shape[1], offsets.size - 1
        found = Sweep(np.empty((m, n_bags, n_best), np.int64), np.empty((m, n_bags, n_best)), np.zeros((m, n_bags)))
        for first, last in _groups(offsets, max(1, _SWEEP_SCORES // m)):
            begin, end = int(offsets[first]), int(offsets[last])
            scores = self._part(begin, end).scores(weights)
            bounds = offsets[first : last + 1] - begin
            for c in range(m):
                row = scores[c]
                if at is not None:
                    found.at[c, first:last] = row[at[c, first:last] - begin]
                if allowed is not None:
                    row = np.where(allowed[begin:end], row, -np.inf)
                places, values = found.places[c, first:last], found.values[c, first:last]
                segment_best(row, bounds[:-1], bounds[1:], places, values)
                places[places >= 0] += begin
        return found

    def _part(self, begin: int, end: int) -> CandidateFeatures:
        """Consecutive candidates."""
        if begin == 0 and end == self.n_samples:
            return self
        rows = None if self._rows is None else self._rows[begin:end]
        X = self._X[begin:end] if self._rows is None else self._X
        return CandidateFeatures(X, rows, constant=self._constant, counter=self.counter)

    def _blocks(self, places: NDArray[np.int64]) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """The rows at these places, some at a time, in float64."""
        rows = places if self._rows is None else self._rows[places]
        for first in range(0, rows.size, self._step):
            part = slice(first, first + self._step)
            yield part, np.asarray(self._X[rows[part]], dtype=np.float64)


def _groups(offsets: NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """Consecutive bags with about `most` candidates together, one bag at least."""
    first, n_bags = 0, offsets.size - 1
    while first < n_bags:
        last = int(np.searchsorted(offsets, offsets[first] + most, side="right")) - 1
        last = min(max(last, first + 1), n_bags)
        yield first, last
        first = last
