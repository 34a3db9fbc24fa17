"""Inference on one list that fits the cache, in one compiled call."""

from __future__ import annotations

import numpy as np

from rankhinge.inference.buckets import make_grid
from rankhinge.inference.finish import finish
from rankhinge.inference.jit import inner, kernel
from rankhinge.inference.partition import sort_descending
from rankhinge.inference.passes import CHUNK, count, extent, first_bad, write
from rankhinge.inference.query import centre_of, make_query
from rankhinge.inference.settle import BUCKETED, START, STOP, n_buckets, one_group, settle, settle_buckets

SETTLED, BAD_SCORE, NO_POSITIVE, NO_NEGATIVE = 0, 1, 2, 3


@kernel
def find(scores, relevant, wanted):
    """Scores and places of the samples whose relevance is `wanted`, in the order of the list."""
    size = 0
    for k in range(relevant.size):
        size += relevant[k] == wanted
    # A spare entry lets the store be unconditional: no branch to mispredict on mixed lists.
    values, index = np.empty(size + 1), np.empty(size + 1, np.int64)
    found = 0
    for k in range(relevant.size):
        values[found], index[found] = scores[k], k
        found += relevant[k] == wanted
    return values[:size], index[:size]


@inner
def _count_out(query, scores, relevant, centre, coefficients, rank_counts):
    """Settle by counting what can be; return the other negatives, their groups, ``Σ u (s - centre)`` and the steps."""
    lowest, highest = extent(scores, relevant)
    n_positives = query.positives.size
    grid = make_grid(lowest, highest, n_buckets(query.n_negatives, n_positives))
    buckets = np.empty(scores.size, np.uint32)
    counts = np.zeros(grid.size + 1, np.int64)
    count(scores, relevant, grid, buckets, counts)
    table = np.zeros(grid.size + 1)
    groups, n_steps = settle_buckets(query, grid, counts, 0, 1, n_positives + 1, rank_counts, table)
    n_groups = groups.shape[0]
    n_left = groups[n_groups - 1, STOP] if n_groups > 0 else 0
    following = np.empty(n_groups, np.int64)
    for g in range(n_groups):
        following[g] = groups[g, START]
    values, index = np.empty(n_left), np.empty(n_left, np.int64)
    sums = np.empty((scores.size + CHUNK - 1) // CHUNK)
    write(scores, buckets, 0, table, following, values, index, centre, coefficients, sums)
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
    # Σu = 0 allows any centre; one amid the scores keeps u·s accurate whatever their offset.
    centre = centre_of(positives, extent(scores, relevant)[1])
    if n_negatives > BUCKETED:
        values, index, groups, total, n_steps = _count_out(query, scores, relevant, centre, coefficients, rank_counts)
    else:
        values, index = find(scores, relevant, False)
        groups, total, n_steps = one_group(n_negatives, positives.size), 0.0, 0
    rest, steps = settle(query, values, index, groups, centre, coefficients, rank_counts)
    loss, positive_total = finish(query, positive_index, rank_counts, centre, coefficients)
    return SETTLED, -1, loss + (total + rest + positive_total), loss, n_steps + steps, rank_counts


@kernel
def infer_lists(
    scores, relevant, offsets, longest, addresses, table, values, losses, coefficients, usable, first, last
):
    """`infer` for the lists ``first … last - 1`` that are shorter than `longest`.

    Writes `values`, `losses`, `usable` of those lists and `coefficients` of their samples (which must be 0 before);
    returns the first place with a bad score, or -1.
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
        values[q], losses[q], usable[q] = value, loss, status == SETTLED
    return -1
