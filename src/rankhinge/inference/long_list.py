"""Inference on one long list: few passes, shared by the threads, and as few negatives as possible looked at twice.

A sample of the negatives, ranked as if it were all of them, tells roughly where the ranks change. Then one of two ways:

*Collect.* If few negatives lie above the score where the last rank begins, one pass copies those out. That
all others have rank P + 1, and u = 0, is not taken from the sample: the rank of the first of them is computed.

*Count.* Else one pass counts the negatives in buckets, the ranks at the edges settle most of these, and a second
pass writes u and copies out the rest.

What was copied out is settled as a group like any other. Both ways are exact whatever the sample looked like.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge import _threads
from rankhinge._jit import kernel
from rankhinge.inference.buckets import make_grid
from rankhinge.inference.callbacks import CompiledLoss
from rankhinge.inference.edges import START, STOP, settle_buckets
from rankhinge.inference.finish import finish
from rankhinge.inference.partition import sort_descending
from rankhinge.inference.passes import CHUNK, collect, count, first_bad, write
from rankhinge.inference.query import best_rank, centre_of, make_query
from rankhinge.inference.settle import bucket_step, one_group, settle

# With two threads: below, to share the work out costs more than it saves.
LONG = 1 << 18
SAMPLE = 1 << 12
FEW = 1 / 24
LEAST_BUCKETS, _MOST_BUCKETS = 1 << 12, 1 << 20
# A call of the kernel costs some ten microseconds beside its work: 16 shares took 0.4 ms more than 4.
_SHARES = 4
_LARGE = 4096


class BadScore(ValueError):
    """A score that is not usable; `place` is its index."""

    def __init__(self, place: int) -> None:
        super().__init__(place)
        self.place = place


class Outcome(NamedTuple):
    """What inference returns beside the coefficients."""

    value: float
    loss: float
    n_steps: int


def stretches(size: int) -> list[slice]:
    """Cut a list into one stretch a thread, each beginning with a chunk."""
    n_chunks = -(-size // CHUNK)
    n_parts = max(1, min(_threads.n_threads(), n_chunks))
    bounds = [CHUNK * (n_chunks * part // n_parts) for part in range(n_parts)] + [size]
    return [slice(a, b) for a, b in pairwise(bounds)]


def equal_shares(bounds: NDArray[np.int64]) -> list[int]:
    """Cut the lists into runs of about equal numbers of samples, a few for each thread."""
    n_samples = int(bounds[-1])
    n_shares = 1 if n_samples < CHUNK else 4 * _threads.n_threads()
    cuts = np.searchsorted(bounds, [n_samples * share // n_shares for share in range(1, n_shares)])
    return sorted({0, *(int(cut) for cut in cuts), bounds.size - 1})


def on_stretches(work: Callable[[int, slice], Any], parts: list[slice]) -> list[Any]:
    """``work(number, stretch)`` for each, on the threads, results in order."""
    return _threads.run([partial(work, n, part) for n, part in enumerate(parts)])


def raise_if_bad(places: Sequence[int], parts: list[slice]) -> None:
    """Raise `BadScore` for the first stretch that reports one."""
    for place, part in zip(places, parts, strict=True):
        if place >= 0:
            raise BadScore(part.start + place)


@kernel
def sample_bounds(query, sample):
    """Where the ranks of a descending sample of the negatives begin to exceed 1 and to be P + 1.

    The k-th of m sampled negatives stands in for negative ``k N / m`` of the list.
    """
    size, n_ranks = sample.size, query.positives.size + 1
    bounds = np.empty(2, np.int64)
    for which in range(2):
        low, high = 0, size
        while low < high:
            middle = (low + high) // 2
            j = 1 + int((middle + 0.5) * query.n_negatives / size)
            rank = best_rank(query, j, sample[middle], 1, n_ranks)
            if rank == n_ranks if which == 1 else rank > 1:
                high = middle
            else:
                low = middle + 1
        bounds[which] = low
    return bounds[0], bounds[1]


def bucket_range(sample: NDArray[np.float64], bounds: tuple[int, int]) -> tuple[float, float]:
    """Scores between which the buckets lie, by a descending sample and where its ranks change (`sample_bounds`).

    What falls outside is settled later, so this may be rough.
    """
    if sample.size == 0:
        return 0.0, 0.0
    first, last = bounds
    top = max(0, first - int(3 * np.sqrt(first)) - 3)
    bottom = min(sample.size - 1, last + int(3 * np.sqrt(sample.size - last)) + 3)
    lowest, highest = float(sample[bottom]), float(sample[top])
    margin = (bottom - top) // 100
    inner_low, inner_high = float(sample[bottom - margin]), float(sample[top + margin])
    # Heavy tails would leave the bulk in a few buckets: then the buckets are for the bulk alone.
    if highest - lowest > 8 * (inner_high - inner_low) > 0:
        return inner_low, inner_high
    return lowest, highest


def draw_sample(scores: NDArray[Any], relevant: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Some finite scores of negatives, spread over the list, in descending order; none if there is none."""
    stride = max(1, scores.size // SAMPLE)
    sample = scores[::stride][~relevant[::stride]].astype(np.float64)
    if sample.size == 0:
        # Nearly all are positive: then the negatives themselves are a small enough sample.
        sample = scores[~relevant].astype(np.float64)
    sample = sample[np.abs(sample) <= np.finfo(np.float64).max]
    sample.sort()
    return sample[::-1].copy()


class _LongList:
    """One list's scores, its sorted positives, and what has been found out so far."""

    def __init__(self, scores: NDArray[Any], relevant: NDArray[np.bool_], compiled: CompiledLoss) -> None:
        self.scores, self.relevant = scores, relevant
        self.parts = stretches(scores.size)
        self.positive_index = np.flatnonzero(relevant)
        positives = scores[self.positive_index].astype(np.float64)
        bad = first_bad(positives)
        if bad >= 0:
            raise BadScore(int(self.positive_index[bad]))
        sort_descending(positives, self.positive_index)
        self.query = make_query(compiled.addresses, compiled.table, positives, scores.size - positives.size)
        self.rank_counts = np.zeros(positives.size + 2, np.int64)
        self.sample = draw_sample(scores, relevant)
        self.n_steps = 0
        self.bounds = sample_bounds(self.query, self.sample)
        highest = self.sample[0] if self.sample.size else positives[0]
        self.centre = float(centre_of(positives, highest))

    def above_cut(self) -> float | None:
        """A score that few negatives reach and below which, by the sample, all have the last rank; or None."""
        if self.sample.size == 0:
            return None
        _, last = self.bounds
        place = last + int(3 * np.sqrt(last)) + 3
        return float(self.sample[place]) if place < FEW * self.sample.size else None

    def collect(self, cut: float, coefficients: NDArray[Any]) -> float | None:
        """The first way; None if the sample was misleading, and nothing has been settled."""
        # Whether there is room must not depend on the number of threads. Memory that is not touched costs nothing.
        most = int(2 * FEW * self.scores.size)
        rooms = [min(part.stop - part.start, most) + CHUNK for part in self.parts]
        values = [np.empty(room) for room in rooms]
        index = [np.empty(room, np.int64) for room in rooms]

        def work(n: int, part: slice) -> tuple[int, int]:
            return collect(self.scores[part], self.relevant[part], part.start, cut, values[n], index[n])

        sizes, bad = zip(*on_stretches(work, self.parts), strict=True)
        raise_if_bad(bad, self.parts)
        query = self.query
        n_above, n_ranks = sum(sizes), query.positives.size + 1
        if min(sizes) < 0 or n_above > most:
            return None
        if n_above < query.n_negatives:
            self.n_steps += n_ranks - 1
            if _rank_of(query, n_above + 1, cut) < n_ranks:
                return None
        self.rank_counts[n_ranks] += query.n_negatives - n_above
        above = np.concatenate([part[:size] for part, size in zip(values, sizes, strict=True)])
        places = np.concatenate([part[:size] for part, size in zip(index, sizes, strict=True)])
        groups = one_group(n_above, query.positives.size)[: min(n_above, 1)]
        return self._settle(above, places, groups, coefficients)

    def count(self, coefficients: NDArray[Any]) -> float:
        """The second way."""
        scores, query, parts = self.scores, self.query, self.parts
        grid = make_grid(*bucket_range(self.sample, self.bounds), self._n_buckets())
        buckets = np.empty(scores.size, np.uint32)
        counts = np.zeros((len(parts), grid.size + 1), np.int32)

        def count_part(n: int, part: slice) -> int:
            return count(scores[part], self.relevant[part], grid, buckets[part], counts[n])

        raise_if_bad(on_stretches(count_part, parts), parts)
        codes = counts.sum(axis=0, dtype=np.int64)
        groups, steps = settle_buckets(query, grid, codes, 0, 1, query.positives.size + 1, self.rank_counts)
        self.n_steps += steps
        unsettled = counts[:, np.flatnonzero(codes < 0)]
        # Each thread's share of a group begins where the shares of those before it end: the order of the list.
        following = groups[:, START] + np.cumsum(unsettled, axis=0) - unsettled
        n_left = int(groups[-1, STOP]) if len(groups) else 0
        values, index = np.empty(n_left), np.empty(n_left, np.int64)
        sums = np.empty(-(-scores.size // CHUNK))

        def write_part(n: int, part: slice) -> None:
            write(
                query,
                scores[part],
                buckets[part],
                part.start,
                codes,
                following[n],
                values,
                index,
                self.centre,
                coefficients[part],
                sums[part.start // CHUNK :],
            )

        on_stretches(write_part, parts)
        return float(sums.sum()) + self._settle(values, index, groups, coefficients)

    def _n_buckets(self) -> int:
        # More buckets than half the negatives would mostly be empty, or hold one.
        wanted = min(64 * self.query.positives.size, self.query.n_negatives // 2)
        return min(max(LEAST_BUCKETS, wanted), _MOST_BUCKETS)

    def _settle(
        self,
        values: NDArray[np.float64],
        index: NDArray[np.int64],
        groups: NDArray[np.int64],
        coefficients: NDArray[Any],
    ) -> float:
        """Settle all groups: in shares that do not depend on the number of threads, added up in order."""
        groups, settled = self._break_up(values, index, groups, coefficients)
        n_groups = len(groups)
        bounds = [n_groups * share // _SHARES for share in range(_SHARES + 1)] if n_groups > _SHARES else [0, n_groups]
        rank_counts = np.zeros((len(bounds) - 1, self.rank_counts.size), np.int64)

        def work(share: int) -> tuple[float, int]:
            mine = groups[bounds[share] : bounds[share + 1]]
            a, b = mine[0, START], mine[-1, STOP]
            mine[:, [START, STOP]] -= a
            return settle(self.query, values[a:b], index[a:b], mine, self.centre, coefficients, rank_counts[share])

        if n_groups == 0:
            return settled
        totals, steps = zip(*_threads.run([partial(work, n) for n in range(len(bounds) - 1)]), strict=True)
        self.rank_counts += rank_counts.sum(axis=0)
        self.n_steps += sum(steps)
        return settled + float(sum(totals))

    def _break_up(
        self,
        values: NDArray[np.float64],
        index: NDArray[np.int64],
        groups: NDArray[np.int64],
        coefficients: NDArray[Any],
    ) -> tuple[NDArray[np.int64], float]:
        """Count the large groups in buckets of their own, until they are small or resist; the rest, and Σ u (s - c)."""
        sizes = groups[:, STOP] - groups[:, START]
        waiting, small, total = list(groups[sizes > _LARGE]), [groups[sizes <= _LARGE]], 0.0
        while waiting:
            group = waiting.pop()
            found, part, steps = bucket_step(
                self.query, values, index, group, self.centre, coefficients, self.rank_counts
            )
            total += part
            self.n_steps += steps
            sizes = found[:, STOP] - found[:, START]
            # A cluster that linear buckets cannot spread is left to the pivots.
            again = (sizes > _LARGE) & (2 * sizes <= group[STOP] - group[START])
            waiting.extend(found[again])
            small.append(found[~again])
        rest = np.concatenate(small)
        return rest[np.argsort(rest[:, START], kind="stable")], total


@kernel
def _rank_of(query, j, score):
    return best_rank(query, j, score, 1, query.positives.size + 1)


def infer_long(
    scores: NDArray[Any], relevant: NDArray[np.bool_], compiled: CompiledLoss
) -> tuple[NDArray[Any], Outcome, NDArray[np.int64]]:
    """The most violating ranking of one long list with positives and negatives: u, (J, Δ, steps), rank counts.

    Raises `BadScore`.
    """
    task = _LongList(scores, relevant, compiled)
    cut = task.above_cut()
    total = None
    if cut is not None:
        # Fresh zeros cost nothing until they are touched, and few of them will be.
        coefficients = np.zeros_like(scores)
        total = task.collect(cut, coefficients)
    if total is None:
        coefficients = np.empty_like(scores)
        total = task.count(coefficients)
    loss, positive_total = finish(task.query, task.positive_index, task.rank_counts, task.centre, coefficients)
    return coefficients, Outcome(loss + (total + positive_total), loss, task.n_steps), task.rank_counts
