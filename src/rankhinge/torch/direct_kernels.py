"""Kernels of direct loss minimisation: the ranking by score, and the one that maximises score *minus* loss."""

from __future__ import annotations

import numpy as np

from rankhinge._jit import inner, kernel
from rankhinge.inference.callbacks import call_divisor, call_loss, call_parts
from rankhinge.inference.partition import sort_descending
from rankhinge.inference.whole import find


@inner
def _split(scores, relevant):
    """Positives and negatives of a list, each best first, and where they stand in it."""
    positives, positive_index = find(scores, relevant, True)
    negatives, negative_index = find(scores, relevant, False)
    sort_descending(positives, positive_index)
    sort_descending(negatives, negative_index)
    return positives, negatives, positive_index, negative_index


@kernel
def rank_by_scores(scores, relevant, offsets, addresses, table, losses, coefficients, usable, first, last):
    """For each of the lists ``first … last - 1``: Δ of the ranking by score, and u of that ranking.

    Where positives and negatives have equal scores, Δ is that of the worst order, u the mean over all orders.
    """
    for q in range(first, last):
        part = slice(offsets[q], offsets[q + 1])
        positives, negatives, positive_index, negative_index = _split(scores[part], relevant[part])
        n_positives, n_negatives = positives.size, negatives.size
        usable[q] = n_positives > 0 and n_negatives > 0
        if not usable[q]:
            continue
        u = coefficients[part]
        unit = 1.0 / n_positives / n_negatives
        above = np.empty(n_positives, np.int64)
        higher = tied = 0
        for i in range(n_positives):
            while higher < n_negatives and negatives[higher] > positives[i]:
                higher += 1
            while tied < n_negatives and negatives[tied] >= positives[i]:
                tied += 1
            above[i] = tied
            u[positive_index[i]] = -unit * (higher + tied)
        higher = tied = 0
        for j in range(n_negatives):
            while higher < n_positives and positives[higher] > negatives[j]:
                higher += 1
            while tied < n_positives and positives[tied] >= negatives[j]:
                tied += 1
            u[negative_index[j]] = unit * (2 * n_positives - higher - tied)
        divisor = call_divisor(addresses[0], n_positives, n_negatives, table.ctypes.data)
        losses[q] = call_loss(addresses[2], above.ctypes.data, n_positives, n_negatives, divisor, table.ctypes.data)


@inner
def advance(best, sums, positive, unit, epsilon, parts, is_taken):
    """One row of the programme: ``h(i, j) = max{h(i, j - 1), h(i - 1, j) + F - εΔ of positive i below j negatives}``.

    ``best`` goes from h(i - 1, ·) to h(i, ·); bit j of `is_taken` says whether positive i stands directly below
    negative j. ``sums[j]`` is the sum of the j best negatives' scores.
    """
    for j in range(best.size):
        value = best[j] + unit * (sums[j] - j * positive) - epsilon * parts[j]
        if j > 0 and best[j - 1] >= value:
            best[j] = best[j - 1]
        else:
            best[j] = value
            is_taken[j >> 3] |= np.uint8(1 << (j & 7))


@inner
def read_back(is_taken, n_negatives):
    """``a_i`` of the best ranking, from the bits of all rows."""
    above = np.empty(is_taken.shape[0], np.int64)
    j = n_negatives
    for i in range(above.size - 1, -1, -1):
        while not (is_taken[i, j >> 3] >> (j & 7)) & 1:
            j -= 1
        above[i] = j
    return above


@inner
def centred(scores, relevant):
    """The programme's view of a list: both classes best first, around 0, and where they stand in the list."""
    positives, negatives, positive_index, negative_index = _split(scores, relevant)
    centre = negatives[0]
    positives -= centre
    negatives -= centre
    sums = np.zeros(negatives.size + 1)
    sums[1:] = np.cumsum(negatives)
    return positives, negatives, sums, positive_index, negative_index


@inner
def write_coefficients(above, positives, negatives, positive_index, negative_index, u):
    """Write u of the ranking with these counts; samples of equal class and score share their mean."""
    n_positives, n_negatives = positives.size, negatives.size
    unit = 2.0 / n_positives / n_negatives
    below = np.empty(n_negatives, np.int64)
    i = 0
    for j in range(n_negatives):
        while i < n_positives and above[i] <= j:
            i += 1
        below[j] = n_positives - i
    _write_means(positives, -above, positive_index, unit, u)
    _write_means(negatives, below, negative_index, unit, u)


@inner
def _write_means(scores, counts, index, unit, u):
    k = 0
    while k < scores.size:
        end, total = k, 0
        while end < scores.size and scores[end] == scores[k]:
            total += counts[end]
            end += 1
        for place in range(k, end):
            u[index[place]] = unit * (total / (end - k))
        k = end


@kernel
def better_ranking(scores, relevant, epsilon, addresses, parts_at, table, u):
    """Write u of the ranking that maximises ``F - εΔ`` for one list with both classes: O(P N) time, a bit a pair."""
    positives, negatives, sums, positive_index, negative_index = centred(scores, relevant)
    n_positives, n_negatives = positives.size, negatives.size
    best, parts = np.zeros(n_negatives + 1), np.empty(n_negatives + 1)
    is_taken = np.zeros((n_positives, n_negatives // 8 + 1), np.uint8)
    unit = 2.0 / n_positives / n_negatives
    divisor = call_divisor(addresses[0], n_positives, n_negatives, table.ctypes.data)
    for i in range(n_positives):
        call_parts(parts_at, i + 1, n_positives, n_negatives, divisor, table.ctypes.data, parts.ctypes.data)
        advance(best, sums, positives[i], unit, epsilon, parts, is_taken[i])
    above = read_back(is_taken, n_negatives)
    write_coefficients(above, positives, negatives, positive_index, negative_index, u)
