"""The ranks at the edges of buckets, which settle most buckets without a look at what is inside.

Edge b lies between buckets b - 1 and b. Its rank is the best rank that the first negative below it would have with the
score of the edge. The ranks in buckets a … b - 1 lie between those of edges b and a. The edges' ranks are found in one
of two ways:

*Bisect.* Divide and conquer over the edges; stretches that are empty or lie between equal ranks are never looked
into. Any loss, and few edges are looked at where ranks are few.

*Walk.* For AP ``f_j(i + 1) - f_j(i)`` decreases with i up to i = j (003, Algorithm 2): f_j is concave on the ranks
1 … j + 1 (`RankingLoss.is_concave`). The step of AP is compiled into the walk: a call by address for each edge took
a quarter of the time of an inference. So from edge to edge upwards the rank falls for as long as the step below
descends, and one step is evaluated per edge, in order. With many ranks this is several times as fast, since bisection
mispredicts a branch at every turn. The best negatives, whose ranks may exceed j + 1, are left to bisection.
"""

from __future__ import annotations

import numpy as np

from rankhinge._jit import inner, kernel
from rankhinge.inference.buckets import lower_edge
from rankhinge.inference.query import best_rank
from rankhinge.losses import AveragePrecision

START, STOP, J0, LOW, HIGH = range(5)
MOST_BUCKETS = 1 << 17
# Edges for each open rank up to which to look at all of them is faster than to bisect.
_WALKED = 32
_step_of_ap = inner(AveragePrecision.step_formula)


@inner
def n_buckets(size, n_open):
    """How many buckets for `size` negatives with `n_open` ranks to tell apart.

    Each of the n_open thresholds leaves its bucket unsettled: 64 times as many buckets leave a 64th. More than
    there are negatives would not help.
    """
    wanted = 64 * n_open + 64
    wanted = wanted if wanted < size else size
    return wanted if wanted < MOST_BUCKETS else MOST_BUCKETS


@kernel
def settle_buckets(query, grid, counts, j0, low, high, rank_counts):
    """Find the rank of each bucket that has one, and a group for each that has not; `counts` becomes the result.

    ``counts[b]`` becomes the rank of all in the bucket, or ``-1 - g`` where g numbers the unsettled groups. These are
    returned as rows (start, stop, j0, low, high) with consecutive places from 0, with the steps evaluated.
    ``counts[grid.size]`` becomes the last rank, whose coefficient is 0.
    """
    # All in one array: fresh memory costs more than what is done with it here.
    at_least = counts
    n_above = 0
    for b in range(grid.size - 1, -1, -1):
        n_above += counts[b]
        at_least[b] = n_above
    at_least[grid.size] = 0
    # Each unsettled bucket takes at least one of the high - low changes of rank.
    groups = np.empty((grid.size if grid.size < high - low else high - low, 5), np.int64)
    a, last, n_groups, n_steps = 0, high, 0, 0
    if query.is_ap and grid.size <= _WALKED * (high - low):
        a, last, n_groups, n_steps = _walk(query, grid, counts, j0, low, high, rank_counts, groups)
    n_parts, parts = 0, np.empty((64, 2), np.int64)
    # The stretch at hand is a … b - 1, with ranks first … last; those above it wait.
    b, first = grid.size, low
    while True:
        n_inside = at_least[a] - at_least[b]
        if n_inside > 0 and first < last and b - a > 1:
            middle = (a + b) >> 1
            rank = best_rank(query, j0 + 1 + at_least[middle], lower_edge(grid, middle), first, last)
            n_steps += last - first
            parts[n_parts, 0], parts[n_parts, 1] = b, first
            n_parts += 1
            b, first = middle, rank
            continue
        if n_inside > 0 and first < last:
            n_groups = _add_group(groups, n_groups, n_inside, j0 + at_least[b], first, last)
            counts[a] = -n_groups
        else:
            rank_counts[first] += n_inside
            for settled in range(a, b):
                counts[settled] = first
        if n_parts == 0:
            break
        n_parts -= 1
        a, b, first, last = b, parts[n_parts, 0], parts[n_parts, 1], first
    counts[grid.size] = query.positives.size + 1
    return groups[:n_groups], n_steps


@inner
def _add_group(groups, n_groups, size, j0, low, high):
    """Note a bucket that is not settled; returns the number of groups."""
    place = groups[n_groups - 1, STOP] if n_groups > 0 else 0
    groups[n_groups, START], groups[n_groups, STOP], groups[n_groups, J0] = place, place + size, j0
    groups[n_groups, LOW], groups[n_groups, HIGH] = low, high
    return n_groups + 1


@inner
def _is_descent(query, j, score, i):
    """Whether ``f_j(i + 1) < f_j(i)`` for AP: then of two ranks `best_rank` finds the first."""
    step = _step_of_ap(query.half_scale, j, i, query.positives.size, query.n_negatives, query.table)
    return (query.positives[i - 1] - score) + step < 0.0


@inner
def _walk(query, grid, counts, j0, low, high, rank_counts, groups):
    """Settle buckets from the lowest on for as long as f_j is concave.

    Returns the bucket that it has reached, the rank at its lower edge, and the numbers of groups and of steps.
    """
    at_least = counts
    bucket, rank, n_groups, n_steps, last = 0, high, np.int64(0), 0, grid.size - 1
    n_here = at_least[0]
    while rank > low:
        # Up to where the step from rank - 1 to rank is none to be taken any more, all buckets have this rank.
        step = rank - 1
        first, n_first, n_above, is_concave = bucket, n_here, n_here, True
        while bucket < last:
            n_above = at_least[np.uint32(bucket + 1)]
            is_concave = step <= j0 + 1 + n_above
            if not is_concave or _is_descent(query, j0 + 1 + n_above, lower_edge(grid, bucket + 1), step):
                break
            counts[np.uint32(bucket)] = rank
            n_here = n_above
            bucket += 1
        rank_counts[rank] += n_first - n_here
        n_steps += bucket - first + 1
        if bucket == last or not is_concave:
            break
        lower, edge, j = step, lower_edge(grid, bucket + 1), j0 + 1 + n_above
        while lower > low:
            step = lower - 1
            if not _is_descent(query, j, edge, step):
                break
            lower = step
        n_steps += rank - lower
        if n_here > n_above:
            n_groups = _add_group(groups, n_groups, n_here - n_above, j0 + n_above, lower, rank)
            counts[bucket] = -n_groups
        bucket, rank, n_here = bucket + 1, lower, n_above
    return bucket, rank, n_groups, n_steps
