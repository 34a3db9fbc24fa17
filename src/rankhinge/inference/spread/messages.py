"""What the coordinator of a spread inference and the parts of its list tell each other: counts, never all scores.

Every message is a tuple of numbers and arrays, so that it can travel. Requests go to all parts alike, except for what
is said to belong to a part. Replies of counts and extents can be added up anywhere, in any order, because that rounds
nothing; replies of sums are kept apart, part by part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Count", "Counts", "Finish", "Floats", "Refine", "Request", "Runs", "Ship", "Shipped"]

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[Any]
_LARGEST_COUNT = np.iinfo(np.uint32).max


class Runs(NamedTuple):
    """A coefficient for each bucket, nan where it is open, as runs of equal ones: `lengths` and `values`.

    Open buckets are numbered in ascending order: these are the groups of what follows.
    """

    lengths: NDArray[np.int32]
    values: Floats

    @classmethod
    def of(cls, coefficients: Floats) -> Runs:
        """Of one coefficient a bucket."""
        if coefficients.size == 0:
            return cls(np.zeros(0, np.int32), coefficients)
        # No nan equals another: each open bucket is a run of its own, which is what keeps groups apart.
        begins = np.flatnonzero(np.concatenate([[True], coefficients[1:] != coefficients[:-1]]))
        return cls(np.diff(begins, append=coefficients.size).astype(np.int32), coefficients[begins])


class Count(NamedTuple):
    """Count the negatives in the buckets of a grid; with `positives` (descending), also by the positives above each."""

    grid: tuple[int, float, float, int, float, float]
    positives: Floats | None
    n_negatives: int


class Refine(NamedTuple):
    """Write the settled coefficients, and count what is left in finer buckets: group g has `sizes[g]` of them.

    They lie between `lows[g]` and `highs[g]`; evenly (kind 0), or by the powers of two of the distance from the lower
    end (1) or from the upper end (-1), in units of `widths[g]`: tails are long.
    """

    settled: Runs
    lows: Floats
    highs: Floats
    sizes: NDArray[np.int32]
    kinds: NDArray[np.int8]
    width: float


class Ship(NamedTuple):
    """Write the settled coefficients, and send the scores that are left, with their groups."""

    settled: Runs


class Finish(NamedTuple):
    """Write all coefficients and add up.

    `shipped` and `positives` are the coefficients of what a part has sent, in its own order: they belong to the part.
    `ranked` are those of the ranking by the scores, of the part's positives, which are subtracted with those that the
    count has left; None if they are not asked for. `top` are edges, descending, and the coefficients of the negatives
    above each and not above the one before; all others keep those of the ranking by the scores. None: no cut.
    """

    settled: Runs
    centre: float
    shipped: Sequence[Floats] | None
    positives: Sequence[Floats]
    ranked: Sequence[Floats] | None
    top: tuple[Floats, Floats] | None = None


class Top(NamedTuple):
    """Send the best negatives, up to `wanted` that reach the bar, and rank all by the scores (`positives` descend)."""

    positives: Floats
    n_negatives: int
    wanted: int
    bar: float


class Counts(NamedTuple):
    """Negatives in each bucket, and the least and the greatest score: of all of them, or of each bucket.

    `ranked[a]` are the negatives with a positives above them, if that was asked for. `bad` is whether a score is not
    usable.
    """

    counts: Integers
    lows: Floats
    highs: Floats
    ranked: Integers | None = None
    bad: bool = False

    @classmethod
    def merged(cls, replies: Sequence[Counts]) -> Counts:
        """Those of several parts together."""
        first, *others = replies
        counts, lows, highs = first.counts.astype(np.int64), first.lows.copy(), first.highs.copy()
        ranked = None if first.ranked is None else first.ranked.astype(np.int64)
        for reply in others:
            counts += reply.counts
            np.minimum(lows, reply.lows, out=lows)
            np.maximum(highs, reply.highs, out=highs)
            if ranked is not None and reply.ranked is not None:
                ranked += reply.ranked
        return cls(counts, lows, highs, ranked, any(reply.bad for reply in replies))

    def compact(self) -> Counts:
        """The same with counts of as few bits as are enough: for the journey."""
        ranked = None if self.ranked is None else _compact(self.ranked)
        return self._replace(counts=_compact(self.counts), ranked=ranked)


class TopCounts(NamedTuple):
    """The best scores of negatives, descending, how many have each, and the best one below them (-inf: none).

    ``ranked`` and ``bad`` are as in `Counts`.
    """

    values: Floats
    counts: Integers
    below: float
    ranked: Integers
    bad: bool = False

    @classmethod
    def merged(cls, replies: Sequence[TopCounts]) -> TopCounts:
        """Those of several parts together."""
        away, place = np.unique(-np.concatenate([reply.values for reply in replies]), return_inverse=True)
        counts = np.zeros(away.size, np.int64)
        np.add.at(counts, place, np.concatenate([reply.counts for reply in replies]).astype(np.int64))
        ranked: Integers = np.stack([reply.ranked for reply in replies]).sum(axis=0, dtype=np.int64)
        below = max(reply.below for reply in replies)
        return cls(-away, counts, below, ranked, any(reply.bad for reply in replies))

    def compact(self) -> TopCounts:
        """The same with counts of as few bits as are enough: for the journey."""
        return self._replace(counts=_compact(self.counts), ranked=_compact(self.ranked))


def _compact(counts: Integers) -> Integers:
    largest = int(counts.max(initial=0))
    return counts if largest > _LARGEST_COUNT else counts.astype(np.min_scalar_type(largest))


class Shipped(NamedTuple):
    """Scores of a part that are left, with the numbers of their groups."""

    values: Floats
    groups: NDArray[np.int32]


Request: TypeAlias = Count | Refine | Ship | Finish | Top
