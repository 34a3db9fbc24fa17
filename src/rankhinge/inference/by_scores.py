"""The ranking by the scores themselves, which the tight bound compares with.

Its score is ``H(s) = max_R F(R; s) = Σ u s``, and u is a subgradient of H. Of coefficients c, ``c - u`` and
``Σ (c - u) s`` are found at once: where both rank alike they cancel exactly, however large the scores.

No search is needed: what counts is how many positives score at least as much as a negative. A grid over the range of
the positives, with some buckets for each of them, tells that for most negatives at once; those that share a bucket with
positives are compared with them. So it takes one pass, O(N + P log P) if the positives are spread evenly and
O((N + P) log P) at worst.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge import _threads
from rankhinge._jit import inner, kernel
from rankhinge.inference.buckets import bucket_of, make_grid
from rankhinge.inference.edges import MOST_BUCKETS
from rankhinge.inference.long_list import LONG, equal_shares, on_stretches, stretches
from rankhinge.inference.partition import sort_descending
from rankhinge.inference.passes import CHUNK
from rankhinge.inference.query import centre_of
from rankhinge.inference.whole import find

__all__ = ["subtract_ranking", "subtract_rankings"]

_BUCKETS_PER_POSITIVE = 16


@kernel
def tabulate(positives):
    """For positives in descending order: a grid, and how many of them lie in each bucket or above it."""
    wanted = min(_BUCKETS_PER_POSITIVE * positives.size, MOST_BUCKETS)
    lowest, highest = positives[positives.size - 1], positives[0]
    # Scores beyond all positives fall into buckets without any.
    margin = 4.0 * (highest - lowest) / wanted
    grid = make_grid(lowest - margin, highest + margin, wanted)
    above = np.zeros(grid.size + 1, np.int32)
    for i in range(positives.size):
        above[bucket_of(grid, positives[i])] += 1
    for b in range(grid.size - 1, -1, -1):
        above[b] += above[b + 1]
    return grid, above


@inner
def _n_above(positives, score, first, last):
    """How many positives score at least `score`, if the first ones do and none from `last` on does."""
    while first < last:
        middle = (first + last) // 2
        if positives[middle] >= score:
            first = middle + 1
        else:
            last = middle
    return first


@kernel
def highest_negative(scores, relevant):
    """The greatest score of a negative; -inf if there is none."""
    highest = -np.inf
    for k in range(scores.size):
        highest = max(highest, -np.inf if relevant[k] else np.float64(scores[k]))
    return highest


@kernel
def add_negatives(
    weight, positives, n_negatives, centre, grid, above, scores, relevant, coefficients, rank_counts, sums
):
    """Add ``weight · u``, ``u = 2 b / (P N)`` of the negatives, b positives below each, to the coefficients.

    Counts them in ``rank_counts[a]``, with a positives above; ``sums[c]`` becomes the sum over chunk c of
    ``s - centre`` times what is left of the coefficient.
    """
    n_positives = positives.size
    unit = weight * (2.0 / n_positives / n_negatives)
    buckets = np.empty(min(scores.size, CHUNK), np.uint32)
    for start in range(0, scores.size, CHUNK):
        part, part_relevant = scores[start : start + CHUNK], relevant[start : start + CHUNK]
        part_coefficients = coefficients[start : start + CHUNK]
        # A loop of its own: it is vectorised.
        for k in range(part.size):
            buckets[k] = bucket_of(grid, np.float64(part[k]))
        total = 0.0
        for k in range(part.size):
            score, bucket = np.float64(part[k]), buckets[k]
            # Rarely taken, and the only branch. A positive counts as if all positives were above it, and adds nothing.
            n_above, last = above[bucket + np.uint32(1)], above[bucket]
            if n_above != last:
                n_above = _n_above(positives, score, n_above, last)
            n_above = n_positives if part_relevant[k] else n_above
            part_coefficients[k] += unit * (n_positives - n_above)
            total += (0.0 if part_relevant[k] else part_coefficients[k]) * (score - centre)
            rank_counts[n_above] += 1
        sums[start // CHUNK] = total


@kernel
def _subtract_positives(positives, index, n_negatives, centre, rank_counts, coefficients):
    """Subtract ``u = -2 a / (P N)`` of the positives, a negatives above each; the sum as for the negatives."""
    n_positives = positives.size
    unit = 2.0 / n_positives / n_negatives
    total, n_above = 0.0, 0
    for i in range(n_positives):
        n_above += rank_counts[i]
        coefficients[index[i]] += unit * n_above
        total += coefficients[index[i]] * (positives[i] - centre)
    return total


@kernel
def _subtract(scores, relevant, coefficients):
    """`subtract_ranking` of one list that has both classes, or 0."""
    positives, index = find(scores, relevant, True)
    n_negatives = scores.size - positives.size
    if positives.size == 0 or n_negatives == 0:
        return 0.0
    sort_descending(positives, index)
    grid, above = tabulate(positives)
    rank_counts = np.zeros(positives.size + 1, np.int64)
    sums = np.empty((scores.size + CHUNK - 1) // CHUNK)
    # As the coefficients add up to 0, any centre will do; one amid the scores that matter is the most exact.
    centre = centre_of(positives, highest_negative(scores, relevant))
    arrays = (scores, relevant, coefficients, rank_counts, sums)
    add_negatives(-1.0, positives, n_negatives, centre, grid, above, *arrays)
    total = 0.0
    for chunk in range(sums.size):
        total += sums[chunk]
    return total + _subtract_positives(positives, index, n_negatives, centre, rank_counts, coefficients)


@kernel
def _subtract_lists(scores, relevant, offsets, longest, coefficients, values, first, last):
    for q in range(first, last):
        part = slice(offsets[q], offsets[q + 1])
        if part.stop - part.start < longest:
            values[q] = _subtract(scores[part], relevant[part], coefficients[part])


def subtract_ranking(scores: NDArray[Any], relevant: NDArray[np.bool_], coefficients: NDArray[Any]) -> float:
    """Subtract u of the ranking by the scores from coefficients that add up to 0; ``Σ (c - u) s`` of one list.

    Scores must be finite. Among equal ones the positives come first. A list of one class has no ranking: 0.

    Parameters
    ----------
    scores, relevant, coefficients : ndarray of shape (n,)
        The last is changed.
    """
    if scores.size < LONG:
        return float(_subtract(scores, relevant, coefficients))
    index = np.flatnonzero(relevant)
    n_negatives = scores.size - index.size
    if index.size == 0 or n_negatives == 0:
        return 0.0
    positives = scores[index].astype(np.float64)
    sort_descending(positives, index)
    grid, above = tabulate(positives)
    parts = stretches(scores.size)
    highest = max(on_stretches(lambda _, part: highest_negative(scores[part], relevant[part]), parts))
    centre = centre_of(positives, highest)
    rank_counts = np.zeros((len(parts), positives.size + 1), np.int64)
    sums = np.empty(-(-scores.size // CHUNK))

    def work(n: int, part: slice) -> None:
        arrays = scores[part], relevant[part], coefficients[part], rank_counts[n], sums[part.start // CHUNK :]
        add_negatives(-1.0, positives, n_negatives, centre, grid, above, *arrays)

    on_stretches(work, parts)
    total = _subtract_positives(positives, index, n_negatives, centre, rank_counts.sum(axis=0), coefficients)
    return float(sums.sum()) + float(total)


def subtract_rankings(
    scores: NDArray[Any], relevant: NDArray[np.bool_], offsets: NDArray[np.int64], coefficients: NDArray[Any]
) -> NDArray[np.float64]:
    """`subtract_ranking` of many lists, on all threads: the sum of each.

    Parameters
    ----------
    scores, relevant, coefficients : ndarray of shape (n,)
    offsets : ndarray of shape (n_lists + 1,)
    """
    if offsets.size == 2:
        return np.array([subtract_ranking(scores, relevant, coefficients)])
    values = np.zeros(offsets.size - 1)
    for q in np.flatnonzero(np.diff(offsets) >= LONG):
        part = slice(int(offsets[q]), int(offsets[q + 1]))
        values[q] = subtract_ranking(scores[part], relevant[part], coefficients[part])
    work = partial(_subtract_lists, scores, relevant, offsets, LONG, coefficients, values)
    shares = (0, 1) if values.size == 1 else equal_shares(offsets)
    _threads.run([partial(work, a, b) for a, b in pairwise(shares)])
    return values
