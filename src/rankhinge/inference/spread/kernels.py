"""The kernels of a spread inference: those of the coordinator, which sees buckets, and those of a part."""

from __future__ import annotations

import numpy as np

from rankhinge._jit import inner, kernel
from rankhinge.inference.passes import CHUNK, extent
from rankhinge.inference.query import add, best_rank


@inner
def _tied_ranks(query, score, j0, size, low, high, rank_counts, parts):
    """Ranks of negatives ``j0 + 1 … j0 + size`` that all have this score, by bisection on j.

    Adds to ``rank_counts`` and returns the sum of the positives below each, ``Σ (P + 1 - r)``.
    """
    n_ranks = query.positives.size + 1
    n_parts = 1
    parts[0, 0], parts[0, 1], parts[0, 2], parts[0, 3] = 0, size, low, high
    n_below = 0
    while n_parts > 0:
        n_parts -= 1
        a, b, lowest, highest = parts[n_parts, 0], parts[n_parts, 1], parts[n_parts, 2], parts[n_parts, 3]
        while a < b:
            if lowest == highest:
                rank_counts[lowest] += b - a
                n_below += (b - a) * (n_ranks - lowest)
                break
            middle = (a + b) >> 1
            rank = best_rank(query, j0 + 1 + middle, score, lowest, highest)
            rank_counts[rank] += 1
            n_below += n_ranks - rank
            if b > middle + 1:
                parts[n_parts, 0], parts[n_parts, 1], parts[n_parts, 2], parts[n_parts, 3] = (
                    middle + 1,
                    b,
                    rank,
                    highest,
                )
                n_parts += 1
            b, highest = middle, rank
    return n_below


@kernel
def settle_tied(query, groups, scores, chosen, places, rank_counts, coefficients):
    """Settle the chosen ones of open groups, as if all negatives of group g had the score ``scores[g]``.

    ``groups[g]`` is (size, j0, low, high); its mean coefficient is written to ``coefficients[places[g]]``. Adds to
    ``rank_counts``.
    """
    unit = 2.0 / query.positives.size / query.n_negatives
    parts = np.empty((64, 4), np.int64)
    for g in range(chosen.size):
        if chosen[g]:
            size, j0, low, high = groups[g, 0], groups[g, 1], groups[g, 2], groups[g, 3]
            n_below = _tied_ranks(query, scores[g], j0, size, low, high, rank_counts, parts)
            coefficients[places[g]] = unit * (n_below / size)


@inner
def _ranks_between(query, js, scores, start, stop, low, high, ranks, parts):
    """Ranks of points with ascending j and descending scores, by divide and conquer; writes ``ranks[start:stop]``."""
    n_parts = 1
    parts[0, 0], parts[0, 1], parts[0, 2], parts[0, 3] = start, stop, low, high
    while n_parts > 0:
        n_parts -= 1
        a, b, lowest, highest = parts[n_parts, 0], parts[n_parts, 1], parts[n_parts, 2], parts[n_parts, 3]
        while a < b:
            if lowest == highest:
                for k in range(a, b):
                    ranks[k] = lowest
                break
            middle = (a + b) >> 1
            rank = best_rank(query, js[middle], scores[middle], lowest, highest)
            ranks[middle] = rank
            if b > middle + 1:
                parts[n_parts, 0], parts[n_parts, 1], parts[n_parts, 2], parts[n_parts, 3] = (
                    middle + 1,
                    b,
                    rank,
                    highest,
                )
                n_parts += 1
            b, highest = middle, rank


@kernel
def settle_finer(query, groups, sizes, counts, lows, highs, rank_counts, coefficients, finer):
    """Settle the finer buckets of open groups whose first and last negative have one rank.

    ``groups[g]`` is (size, j0, low, high). Writes the coefficient of each bucket, nan if it is open, and the open ones
    as rows of `finer`, in ascending order of the buckets; returns how many these are.
    """
    n_ranks = query.positives.size + 1
    unit = 2.0 / query.positives.size / query.n_negatives
    largest = 0
    for g in range(sizes.size):
        largest = max(largest, sizes[g])
    js, scores, ranks = np.empty(2 * largest, np.int64), np.empty(2 * largest), np.empty(2 * largest, np.int64)
    held = np.empty(largest, np.int64)
    parts = np.empty((64, 4), np.int64)
    begin, n_finer = 0, 0
    for g in range(sizes.size):
        # The best scores first, as the negatives are counted.
        n_held, j = 0, groups[g, 1]
        for b in range(begin + sizes[g] - 1, begin - 1, -1):
            coefficients[b] = 0.0
            if counts[b] > 0:
                held[n_held] = b
                js[2 * n_held], scores[2 * n_held] = j + 1, highs[b]
                js[2 * n_held + 1], scores[2 * n_held + 1] = j + counts[b], lows[b]
                j += counts[b]
                n_held += 1
        _ranks_between(query, js, scores, np.int64(0), 2 * n_held, groups[g, 2], groups[g, 3], ranks, parts)
        for place in range(n_held - 1, -1, -1):
            b, low, high = held[place], ranks[2 * place], ranks[2 * place + 1]
            if low == high:
                coefficients[b] = unit * (n_ranks - low)
                rank_counts[low] += counts[b]
            else:
                coefficients[b] = np.nan
                finer[n_finer, 0], finer[n_finer, 1] = counts[b], js[2 * place] - 1
                finer[n_finer, 2], finer[n_finer, 3] = low, high
                n_finer += 1
        begin += sizes[g]
    return n_finer


@kernel
def extent_of_negatives(scores, relevant):
    """Least and greatest score of the negatives; there must be one."""
    return extent(scores, relevant)


@kernel
def expand(lengths, values, table, numbers):
    """Write each bucket's coefficient to `table`, and the number of its group to `numbers`, where it is open.

    ``table`` has a 0 beyond the last bucket, for positives.
    """
    n_buckets, n_groups = 0, 0
    for run in range(values.size):
        value = values[run]
        if value != value:
            # Each open bucket is a run of its own.
            numbers[n_buckets] = n_groups
            n_groups += 1
        stop = n_buckets + lengths[run]
        for bucket in range(n_buckets, stop):
            table[bucket] = value
        n_buckets = stop
    table[n_buckets] = 0.0


@kernel
def keep_open(scores, buckets, table, numbers, coefficients, values, index, groups):
    """Write the coefficients of settled buckets, and keep score, place and group of what is left; returns its size."""
    n_left = 0
    for k in range(scores.size):
        u = table[buckets[k]]
        if u == u:
            coefficients[k] = u
        else:
            values[n_left], index[n_left], groups[n_left] = scores[k], k, numbers[buckets[k]]
            n_left += 1
    return n_left


@kernel
def n_open(buckets, table):
    """How many samples lie in open buckets."""
    total = 0
    for k in range(buckets.size):
        total += np.isnan(table[buckets[k]])
    return total


@kernel
def keep_open_again(table, numbers, buckets, values, index, groups, coefficients):
    """The same for what was left before, in place."""
    n_left = 0
    for k in range(values.size):
        u = table[buckets[k]]
        if u == u:
            coefficients[index[k]] = u
        else:
            values[n_left], index[n_left], groups[n_left] = values[k], index[k], numbers[buckets[k]]
            n_left += 1
    return n_left


@inner
def _key(distance):
    """A number that rises with a distance by one at each float: evenly between powers of two."""
    return np.float64(distance).view(np.int64)


@kernel
def count_finer(values, groups, lows, highs, sizes, kinds, width, buckets, counts, least, most):
    """Count the samples that are left in the finer buckets of their groups, with the extent of each bucket."""
    n_groups = sizes.size
    first, factor, origin = np.empty(n_groups, np.int64), np.empty(n_groups), np.empty(n_groups, np.int64)
    begin = 0
    for g in range(n_groups):
        first[g] = begin
        begin += sizes[g]
        span = highs[g] - lows[g]
        origin[g] = _key(width)
        if kinds[g] != 0:
            reach = np.float64(_key(span) - origin[g])
        else:
            reach = span
        factor[g] = sizes[g] / reach if reach > 0 else 0.0
    for k in range(values.size):
        g = groups[k]
        if kinds[g] == 0:
            place = (values[k] - lows[g]) * factor[g]
        else:
            distance = values[k] - lows[g] if kinds[g] > 0 else highs[g] - values[k]
            place = np.float64(_key(distance if distance > width else width) - origin[g]) * factor[g]
        last = sizes[g] - 1
        b = last if place >= last else (np.int64(place) if place > 0 else 0)
        b = first[g] + (last - b if kinds[g] < 0 else b)
        buckets[k] = b
        counts[b] += 1
        least[b] = values[k] if values[k] < least[b] else least[b]
        most[b] = values[k] if values[k] > most[b] else most[b]


@kernel
def weighed(coefficients, scores, centre):
    """``Σ u (s - centre)`` by chunks, whose sums are added without loss."""
    total, error = 0.0, 0.0
    for start in range(0, scores.size, CHUNK):
        u, s = coefficients[start : start + CHUNK], scores[start : start + CHUNK]
        part = 0.0
        for k in range(s.size):
            part += u[k] * (s[k] - centre)
        total, error = add(total, error, part)
    return total + error
