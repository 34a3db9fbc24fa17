"""Losses with a cut on one long list: one pass, shared by the threads.

A sample of the negatives tells a score, the bar, that a few more than the ``k + 1`` best of them reach. Then one of
two ways, as in `long_list`:

*Collect.* If few negatives reach both the bar and the lowest positive, one pass copies those out. All others have every
positive above them in the ranking by scores, and u = 0: their memory is not even touched.

*Rank.* Else the pass writes u of the ranking by scores, and copies out those that reach the bar.

If too few reach the bar, or too many, the sample was misleading: the best negatives are then found by a pass of their
own. What is found does not depend on the sample.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge._jit import kernel
from rankhinge.inference.by_scores import add_negatives, tabulate
from rankhinge.inference.cut_kernels import best_negatives, settle_cut
from rankhinge.inference.long_list import FEW, BadScore, draw_sample, on_stretches, raise_if_bad, stretches
from rankhinge.inference.partition import select, sort_descending
from rankhinge.inference.passes import CHUNK, collect, first_bad
from rankhinge.inference.query import centre_of

__all__ = ["infer_long_cut"]

Pairs = tuple[NDArray[np.float64], NDArray[np.int64]]


@kernel
def rank_and_collect(
    scores, relevant, offset, bar, positives, n_negatives, centre, tables, coefficients, by_scores, sums, values, index
):
    """Write u of the ranking by scores as `add_negatives` does, and copy the negatives that score at least `bar`.

    Returns as `collect`; if there is no room for all of them, the ranking is written nevertheless.
    """
    size, bad = np.int64(0), np.int64(-1)
    grid, above = tables
    # In float64 and in the cache, whatever the type of the result.
    room = np.empty(min(scores.size, CHUNK))
    for start in range(0, scores.size, CHUNK):
        part, part_relevant = scores[start : start + CHUNK], relevant[start : start + CHUNK]
        if size >= 0 and size + part.size <= values.size:
            found, bad = collect(part, part_relevant, offset + start, bar, values[size:], index[size:])
            size += found
        else:
            size, bad = np.int64(-1), first_bad(part)
        if bad >= 0:
            return size, start + bad
        part_room, part_coefficients = room[: part.size], coefficients[start : start + CHUNK]
        for k in range(part.size):
            part_room[k] = 0.0
        place = start // CHUNK
        add_negatives(
            1.0,
            positives,
            n_negatives,
            centre,
            grid,
            above,
            part,
            part_relevant,
            part_room,
            by_scores,
            sums[place : place + 1],
        )
        for k in range(part.size):
            part_coefficients[k] = part_room[k]
    return size, np.int64(-1)


class _Best(NamedTuple):
    """What a pass has found.

    u of the ranking by scores; how many negatives have how many positives above them (positives count as if they had
    all); the negatives' part of ``Σ u (s - centre)``; the best negatives, or None.
    """

    coefficients: NDArray[Any]
    by_scores: NDArray[np.int64]
    total: float
    best: Pairs | None


class _LongCut:
    """One list's scores, its sorted positives, and a sample of its negatives."""

    def __init__(self, scores: NDArray[Any], relevant: NDArray[np.bool_], depth: int) -> None:
        self.scores, self.relevant = scores, relevant
        self.parts = stretches(scores.size)
        self.positive_index = np.flatnonzero(relevant)
        self.positives = scores[self.positive_index].astype(np.float64)
        bad = first_bad(self.positives)
        if bad >= 0:
            raise BadScore(int(self.positive_index[bad]))
        sort_descending(self.positives, self.positive_index)
        self.n_negatives = scores.size - self.positives.size
        self.depth = depth or self.positives.size
        self.wanted = min(self.depth + 1, self.n_negatives)
        self.sample = draw_sample(scores, relevant)
        self.centre = float(centre_of(self.positives, self.sample[0] if self.sample.size else self.positives[0]))
        # Whether there is room must not depend on the number of threads. Memory that is not touched costs nothing.
        self.most = int(2 * FEW * scores.size)

    def bar(self) -> float:
        """A score that some more than the wanted negatives reach, by the sample; infinite if these are not few."""
        expected = self.wanted * self.sample.size / self.n_negatives
        place = int(expected + 3 * np.sqrt(expected)) + 3
        return float(self.sample[place]) if place < FEW * self.sample.size else np.inf

    def rooms(self) -> list[Pairs]:
        sizes = [min(part.stop - part.start, self.most) + CHUNK for part in self.parts]
        return [(np.empty(size), np.empty(size, np.int64)) for size in sizes]

    def joined(self, rooms: list[Pairs], found: list[tuple[int, int]]) -> Pairs | None:
        """What the threads have collected, in the order of the list; None if it was too much."""
        sizes, bad = zip(*found, strict=True)
        raise_if_bad(bad, self.parts)
        if min(sizes) < 0 or sum(sizes) > self.most:
            return None
        values, index = (
            np.concatenate([one[:size] for one, size in zip(column, sizes, strict=True)])
            for column in zip(*rooms, strict=True)
        )
        return values, index

    def collected(self, bar: float) -> _Best | None:
        """The first way; None if it does not apply."""
        cut = min(bar, float(self.positives[-1]))
        reach = np.count_nonzero(self.sample >= cut)
        if not reach < FEW * self.sample.size:
            return None
        rooms = self.rooms()

        def work(n: int, part: slice) -> tuple[int, int]:
            return collect(self.scores[part], self.relevant[part], part.start, cut, *rooms[n])

        found = self.joined(rooms, on_stretches(work, self.parts))
        if found is None or found[0].size < self.wanted:
            return None
        values, index = found
        by_scores = np.zeros(self.positives.size + 1, np.int64)
        by_scores[-1] = self.scores.size - values.size
        u, sums = np.zeros(values.size), np.zeros(-(-values.size // CHUNK))
        nowhere = np.zeros(values.size, np.bool_)
        # Fresh zeros cost nothing until they are touched, and few of them will be.
        coefficients = np.zeros_like(self.scores)
        add_negatives(
            1.0,
            self.positives,
            self.n_negatives,
            self.centre,
            *tabulate(self.positives),
            values,
            nowhere,
            u,
            by_scores,
            sums,
        )
        coefficients[index] = u
        return _Best(coefficients, by_scores, float(sums.sum()), found)

    def ranked(self, bar: float) -> _Best:
        """The second way."""
        rooms = self.rooms()
        coefficients = np.empty_like(self.scores)
        by_scores = np.zeros((len(self.parts), self.positives.size + 1), np.int64)
        sums = np.empty(-(-self.scores.size // CHUNK))
        tables = tabulate(self.positives)

        def work(n: int, part: slice) -> tuple[int, int]:
            lists = self.scores[part], self.relevant[part], part.start, bar
            positives = self.positives, self.n_negatives, self.centre, tables
            out = coefficients[part], by_scores[n], sums[part.start // CHUNK :]
            return rank_and_collect(*lists, *positives, *out, *rooms[n])

        found = self.joined(rooms, on_stretches(work, self.parts))
        if found is not None and found[0].size < self.wanted:
            found = None
        return _Best(coefficients, by_scores.sum(axis=0), float(sums.sum()), found)

    def best_negatives(self) -> Pairs:
        """The wanted ones by a pass that keeps the best so far."""

        def work(n: int, part: slice) -> Pairs:
            return best_negatives(self.scores[part], self.relevant[part], part.start, self.wanted)

        values, index = (np.concatenate(one) for one in zip(*on_stretches(work, self.parts), strict=True))
        return values, index


def infer_long_cut(
    scores: NDArray[Any],
    relevant: NDArray[np.bool_],
    depth: int,
    addresses: NDArray[np.int64],
    table: NDArray[np.float64],
) -> tuple[NDArray[Any], tuple[float, float, int], NDArray[np.int64]]:
    """The most violating ranking of one long list with positives and negatives: u, (J, Δ, steps), rank counts.

    A depth of 0 means as many places as there are positives. Raises `BadScore`.
    """
    task = _LongCut(scores, relevant, depth)
    bar = task.bar()
    found = (task.collected(bar) if bar < np.inf else None) or task.ranked(bar)
    values, index = found.best or task.best_negatives()
    if values.size > task.wanted:
        select(values, index, 0, values.size, task.wanted - 1)
        values, index = values[: task.wanted].copy(), index[: task.wanted].copy()
    sort_descending(values, index)
    loss, change, positive_total, n_steps, rank_counts = settle_cut(
        scores,
        relevant,
        task.positives,
        task.positive_index,
        values,
        index,
        task.depth,
        found.by_scores,
        task.centre,
        addresses,
        table,
        found.coefficients,
    )
    return found.coefficients, (loss + (found.total + change + positive_total), loss, n_steps), rank_counts
