"""Inference on one list that fits the cache, in one compiled call.

As training continues, more and more negatives have the last rank, P + 1, and u = 0. If a score is found that few reach
and below which all have it, only those few are looked at (`_last_rank_cut`); else all are counted (`_count_out`).
"""

from __future__ import annotations

import math

import numpy as np

from rankhinge._jit import ONE, ZERO, kernel, once
from rankhinge.inference.buckets import make_grid
from rankhinge.inference.edges import START, STOP, n_buckets, settle_buckets
from rankhinge.inference.finish import finish
from rankhinge.inference.partition import sort_descending
from rankhinge.inference.passes import CHUNK, count, extent, first_bad, write
from rankhinge.inference.query import best_rank, centre_of, make_query
from rankhinge.inference.settle import BUCKETED, one_group, settle

SETTLED, BAD_SCORE, NO_POSITIVE, NO_NEGATIVE = range(4)
_MOST_CUTS = 5
# Not literals, each of which would be a type of its own (see `_jit`).


@kernel
def find(scores, relevant, wanted):
    """Scores and places of the samples whose relevance is `wanted`, in the order of the list."""
    size = 0
    for k in range(relevant.size):
        size += relevant[k] == wanted
    # A spare entry lets the store be unconditional: no branch to mispredict on mixed lists.
    index = np.empty(size + 1, np.int64)
    found = 0
    for k in range(relevant.size):
        index[found] = k
        found += relevant[k] == wanted
    values = np.empty(size)
    for k in range(size):
        values[k] = scores[index[k]]
    return values, index[:size]


@once
def _find_above(scores, relevant, cut, size):
    """Scores and places of the `size` negatives that score at least `cut`."""
    values, index = np.empty(size + 1), np.empty(size + 1, np.int64)
    found = 0
    for k in range(scores.size):
        if scores[k] >= cut:
            values[found], index[found] = scores[k], k
            found += not relevant[k]
    return values[:size], index[:size]


@once
def _high_score(scores, relevant):
    """A score that about one negative in twenty reaches: the third best of some 64 spread over the list."""
    first = second = third = -np.inf
    for k in range(0, scores.size, scores.size // 64 + 1):
        score = -np.inf if relevant[k] else np.float64(scores[k])
        third = max(third, min(second, score))
        second = max(second, min(first, score))
        first = max(first, score)
    return third


@once
def _last_rank_cut(query, scores, relevant, highest):
    """A score that few negatives reach and below which all have the last rank: a NaN if there is none.

    Returns it, how many negatives reach it, and the steps evaluated. The first score tried decides whether there are
    few: where there are not, as on overlapping scores, nothing more is spent.
    """
    n_ranks = query.positives.size + 1
    n_steps = n_ranks - 1
    if best_rank(query, ONE, highest, ONE, n_ranks) == n_ranks:
        return np.inf, 0, n_steps
    cut, n_reach = np.nan, 0
    tried, high = _high_score(scores, relevant), highest
    for _ in range(_MOST_CUTS):
        n_above = 0
        for k in range(scores.size):
            n_above += (scores[k] >= tried) & (not relevant[k])
        if n_above > query.n_negatives // 8:
            break
        n_steps += n_ranks - 1
        if best_rank(query, n_above + 1, tried, ONE, n_ranks) == n_ranks:
            cut, n_reach = tried, n_above
            if n_above <= 64 + query.n_negatives // 128:
                break
        elif math.isnan(cut):
            break
        else:
            high = tried
        tried = 0.5 * cut + 0.5 * high
    return cut, n_reach, n_steps


@once
def _count_out(query, scores, relevant, lowest, highest, centre, coefficients, rank_counts):
    """Settle by counting what can be; return the other negatives, their groups, ``Σ u (s - centre)`` and the steps."""
    n_positives = query.positives.size
    grid = make_grid(lowest, highest, n_buckets(query.n_negatives, n_positives))
    buckets = np.empty(scores.size, np.uint32)
    codes = np.zeros(grid.size + 1, np.int32)
    count(scores, relevant, grid, buckets, codes)
    groups, n_steps = settle_buckets(query, grid, codes, ZERO, ONE, n_positives + 1, rank_counts)
    n_groups = groups.shape[0]
    n_left = groups[n_groups - 1, STOP] if n_groups > 0 else 0
    following = np.empty(n_groups, np.int64)
    for g in range(n_groups):
        following[g] = groups[g, START]
    values, index = np.empty(n_left), np.empty(n_left, np.int64)
    sums = np.empty((scores.size + CHUNK - 1) // CHUNK)
    write(query, scores, buckets, 0, codes, following, values, index, centre, coefficients, sums)
    total = 0.0
    for chunk in range(sums.size):
        total += sums[chunk]
    return values, index, groups, total, n_steps


@kernel
def infer(scores, relevant, addresses, table, coefficients):
    """The most violating ranking of one list.

    Writes u into `coefficients`; returns (status, place of a bad score, J, Δ, steps evaluated,
    number of negatives at each rank).
    """
    bad = first_bad(scores)
    if bad >= 0:
        return BAD_SCORE, bad, 0.0, 0.0, 0, np.zeros(0, np.int64)
    positives, positive_index = find(scores, relevant, True)
    n_negatives = scores.size - positives.size
    if positives.size == 0:
        return NO_POSITIVE, -1, 0.0, 0.0, 0, np.zeros(0, np.int64)
    if n_negatives == 0:
        return NO_NEGATIVE, -1, 0.0, 0.0, 0, np.zeros(0, np.int64)
    sort_descending(positives, positive_index)
    query = make_query(addresses, table, positives, n_negatives)
    rank_counts = np.zeros(positives.size + 2, np.int64)
    lowest, highest = extent(scores, relevant)
    # Σu = 0 allows any centre; one amid the scores keeps u·s accurate whatever their offset.
    centre = centre_of(positives, highest)
    cut, n_above, n_steps = -np.inf, n_negatives, 0
    if n_negatives > BUCKETED:
        cut, n_above, n_steps = _last_rank_cut(query, scores, relevant, highest)
    if not math.isnan(cut):
        # All below the cut have the last rank.
        values, index = _find_above(scores, relevant, cut, n_above)
        groups, total = one_group(n_above, positives.size), 0.0
        rank_counts[positives.size + 1] = n_negatives - n_above
        for k in range(coefficients.size):
            coefficients[k] = 0.0
    else:
        values, index, groups, total, steps = _count_out(
            query, scores, relevant, lowest, highest, centre, coefficients, rank_counts
        )
        n_steps += steps
    rest, steps = settle(query, values, index, groups, centre, coefficients, rank_counts)
    loss, positive_total = finish(query, positive_index, rank_counts, centre, coefficients)
    return SETTLED, -1, loss + (total + rest + positive_total), loss, n_steps + steps, rank_counts


@kernel
def infer_lists(
    scores, relevant, offsets, longest, addresses, table, values, losses, coefficients, usable, first, last
):
    """`infer` for the lists ``first … last - 1`` that are shorter than `longest`.

    Writes `values`, `losses`, `usable` of those lists and `coefficients` of their samples; returns the first place with
    a bad score, or -1.
    """
    for q in range(first, last):
        start, stop = offsets[q], offsets[q + 1]
        if stop - start >= longest:
            continue
        status, place, value, loss, _, _ = infer(
            scores[start:stop], relevant[start:stop], addresses, table, coefficients[start:stop]
        )
        if status == BAD_SCORE:
            return start + place
        if status != SETTLED:
            coefficients[start:stop] = 0.0
        values[q], losses[q], usable[q] = value, loss, status == SETTLED
    return -1
