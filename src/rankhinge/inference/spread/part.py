"""A part of a list, where its scores are: it counts, refines, ships what is left, and finishes.

It knows nothing of the loss. What it keeps between two requests belongs to one inference; a new one begins with
`Count`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge.inference.buckets import Grid
from rankhinge.inference.by_scores import add_negatives, tabulate
from rankhinge.inference.cut_kernels import best_negatives
from rankhinge.inference.passes import CHUNK, count, first_bad
from rankhinge.inference.spread.kernels import (
    count_finer,
    expand,
    extent_of_negatives,
    keep_open,
    keep_open_again,
    n_open,
    weighed,
)
from rankhinge.inference.spread.messages import (
    Count,
    Counts,
    Finish,
    Floats,
    Refine,
    Runs,
    Ship,
    Shipped,
    Top,
    TopCounts,
)

__all__ = ["ListPart"]


class ListPart:
    """Scores and relevance of some samples of a list.

    Parameters
    ----------
    scores : ndarray of shape (n,), float64
    relevant : ndarray of shape (n,), bool
    coefficients : ndarray of shape (n,), float64
        Where u is written.
    """

    def __init__(self, scores: Floats, relevant: NDArray[np.bool_], coefficients: Floats) -> None:
        self.scores, self.relevant, self.coefficients = scores, relevant, coefficients
        self._buckets: NDArray[np.uint32] | None = None
        self._ranked: Floats | None = None
        self._left: tuple[Floats, NDArray[np.int64], NDArray[np.int32]] | None = None
        self._finer: NDArray[np.int64] | None = None

    def count(self, request: Count) -> Counts:
        """Negatives in the buckets of a grid, and their extent."""
        grid, scores = Grid(*request.grid), self.scores
        self._buckets, self._left, self._finer = np.empty(scores.size, np.uint32), None, None
        counts = np.zeros(grid.size + 1, np.int32)
        bad = bool(count(scores, self.relevant, grid, self._buckets, counts) >= 0)
        n_negatives = int(counts[: grid.size].sum())
        lows, highs = extent_of_negatives(scores, self.relevant) if n_negatives and not bad else (np.inf, -np.inf)
        ranked = None
        if request.positives is not None:
            self._ranked, ranked = self._rank(request.positives, request.n_negatives, bad)
        return Counts(counts[: grid.size], np.array([lows]), np.array([highs]), ranked, bad)

    def _rank(self, positives: Floats, n_negatives: int, bad: bool) -> tuple[Floats, NDArray[np.int64]]:
        """Coefficients of the negatives in the ranking by the scores, and their numbers by the positives above them."""
        u, ranked = np.zeros(self.scores.size), np.zeros(positives.size + 1, np.int64)
        if not bad:
            arrays: Any = (self.scores, self.relevant, u, ranked, np.empty(-(-self.scores.size // CHUNK)))
            add_negatives(1.0, positives, n_negatives, 0.0, *tabulate(positives), *arrays)
            ranked[-1] -= int(np.count_nonzero(self.relevant))
        return u, ranked

    def top(self, request: Top) -> TopCounts:
        """The best negatives."""
        bad = bool(first_bad(self.scores) >= 0)
        self._buckets = self._left = self._finer = None
        self._ranked, ranked = self._rank(request.positives, request.n_negatives, bad)
        values, below = np.zeros(0), -np.inf
        if not bad:
            values, _ = best_negatives(self.scores, self.relevant, 0, request.wanted)
        away, counts = np.unique(-values[values >= request.bar], return_counts=True)
        if not bad:
            last = -away[-1] if away.size else request.bar
            below = float(np.max(self.scores, where=(self.scores < last) & ~self.relevant, initial=-np.inf))
        if away.size:
            # Of those that are as good as the last one there may be more than were wanted.
            counts[-1] = np.count_nonzero((self.scores == last) & ~self.relevant)
        return TopCounts(-away, counts, below, ranked, bad)

    def refine(self, request: Refine) -> Counts:
        """What is left in finer buckets, each with its extent."""
        values, _, groups = self._settle(request.settled)
        total = int(request.sizes.sum())
        counts, lows, highs = np.zeros(total, np.int32), np.full(total, np.inf), np.full(total, -np.inf)
        self._finer = np.empty(values.size, np.int64)
        spans = request.lows, request.highs, request.sizes, request.kinds, request.width
        count_finer(values, groups, *spans, self._finer, counts, lows, highs)
        return Counts(counts, lows, highs)

    def ship(self, request: Ship) -> Shipped:
        """What is left."""
        values, _, groups = self._settle(request.settled)
        return Shipped(values, groups)

    def finish(self, request: Finish, part: int, less: Floats | None = None) -> float:
        """Write u, less what is to be subtracted; ``Σ u (s - centre)``. `part` is the number of this one."""
        if request.top is not None:
            self._write_top(*request.top)
        elif request.shipped is None:
            self._settle(request.settled)
        elif self._left is not None:
            self.coefficients[self._left[1]] = request.shipped[part]
        place = np.flatnonzero(self.relevant)
        self.coefficients[place] = request.positives[part]
        if request.ranked is not None and self._ranked is not None:
            self._ranked[place] = request.ranked[part]
            np.subtract(self.coefficients, self._ranked, out=self.coefficients)
        if less is not None:
            np.subtract(self.coefficients, less, out=self.coefficients)
        self._buckets = self._left = self._finer = self._ranked = None
        return float(weighed(self.coefficients, self.scores, request.centre))

    def _write_top(self, edges: Floats, u: Floats) -> None:
        """Write u of the ranking by the scores, but of the negatives between these edges another."""
        assert self._ranked is not None
        np.copyto(self.coefficients, self._ranked)
        if edges.size:
            place = np.flatnonzero((self.scores > edges[-1]) & ~self.relevant)
            self.coefficients[place] = u[np.searchsorted(-edges, -self.scores[place], side="right")]

    def _settle(self, settled: Runs) -> tuple[Floats, NDArray[np.int64], NDArray[np.int32]]:
        """Write what the last count has settled; scores, places and groups of what is left."""
        n_buckets = int(settled.lengths.sum(dtype=np.int64))
        # Positives are in the bucket beyond the last; their coefficients come at the end.
        table, numbers = np.empty(n_buckets + 1), np.empty(n_buckets, np.int32)
        expand(settled.lengths, settled.values, table, numbers)
        if self._left is None:
            assert self._buckets is not None
            size = int(n_open(self._buckets, table))
            left = np.empty(size), np.empty(size, np.int64), np.empty(size, np.int32)
            keep_open(self.scores, self._buckets, table, numbers, self.coefficients, *left)
            self._buckets = None
        else:
            values, index, groups = self._left
            size = int(keep_open_again(table, numbers, self._finer, values, index, groups, self.coefficients))
            left = values[:size], index[:size], groups[:size]
        self._left = left
        return left
