"""The ranks of a group of negatives, found by settling whole parts of it at once.

The group holds negatives ``j0 + 1 … j0 + m`` of the list in unknown order, with ranks known to lie in
``low … high``. Since the best rank rises with j and falls with the score, a part whose first and last negative have
the same rank is settled without being sorted. Large groups are cut into buckets and counted (`bucket_step`); small ones
are sorted; in between, one partition step halves them. What is settled at once gets its coefficient

    u = 2 (P + 1 - r) / (P N),

a block of tied scores the mean over its ranks, so that the result does not depend on the order of the input.

Groups wait on a stack, one row (start, stop, j0, low, high) each: an array, because lists of tuples cost more than
the groups themselves.
"""

from __future__ import annotations

import numpy as np

from rankhinge._jit import inner, kernel, once
from rankhinge.inference.buckets import bucket_of, make_grid
from rankhinge.inference.edges import HIGH, J0, LOW, START, STOP, n_buckets, settle_buckets
from rankhinge.inference.partition import insertion_sort, median_of_three, partition
from rankhinge.inference.query import add, best_rank

_SORTED = 24
BUCKETED = 192


@kernel
def one_group(size, n_positives):
    """A stack that holds the `size` best negatives of a list as one group; if there are none, no rank is open."""
    groups = np.empty((1, 5), np.int64)
    groups[0, START], groups[0, STOP], groups[0, J0], groups[0, LOW] = 0, size, 0, 1
    groups[0, HIGH] = n_positives + 1 if size > 0 else 1
    return groups


@inner
def sorted_ranks(query, values, start, stop, j0, low, high, ranks, parts):
    """Ranks of negatives in descending order, by divide and conquer: O(P log m) steps; returns their number.

    ``values[start]`` is negative ``j0 + 1``. Writes ``ranks[start:stop]``. `parts`, (64, 4), is room to work in.
    """
    n_steps = 0
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
            rank = best_rank(query, j0 + 1 + middle - start, values[middle], lowest, highest)
            n_steps += highest - lowest
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
    return n_steps


@kernel
def write_sorted(query, values, index, ranks, start, stop, centre, coefficients, rank_counts):
    """Write u for negatives whose tied scores stand together; returns their part of ``Σ u (s - centre)``."""
    n_positives = query.positives.size
    unit = 2.0 / n_positives / query.n_negatives
    total, error = 0.0, 0.0
    k = start
    while k < stop:
        below = n_positives + 1 - ranks[k]
        rank_counts[ranks[k]] += 1
        end = k + 1
        if end < stop and values[end] == values[k]:
            while end < stop and values[end] == values[k]:
                below += n_positives + 1 - ranks[end]
                rank_counts[ranks[end]] += 1
                end += 1
            u = unit * (below / (end - k))
        else:
            u = unit * below
        total, error = add(total, error, u * (values[k] - centre) * (end - k))
        for place in range(k, end):
            coefficients[index[place]] = u
        k = end
    return total + error


@kernel
def bucket_step(query, values, index, group, centre, coefficients, rank_counts):
    """Settle what counting settles; the rest is moved to the front of the group and returned as groups.

    Returns these, the settled negatives' part of ``Σ u (s - centre)`` and the number of steps evaluated.
    """
    start, stop = group[START], group[STOP]
    grid = _grid_for(values, group)
    codes = np.zeros(grid.size + 1, np.int64)
    for k in range(start, stop):
        codes[bucket_of(grid, values[k])] += 1
    found, n_steps = settle_buckets(query, grid, codes, group[J0], group[LOW], group[HIGH], rank_counts)
    n_left = found[found.shape[0] - 1, STOP] if found.shape[0] > 0 else 0
    left_values, left_index = np.empty(n_left), np.empty(n_left, index.dtype)
    following = np.empty(found.shape[0], np.int64)
    for g in range(found.shape[0]):
        following[g] = found[g, START]
        found[g, START] += start
        found[g, STOP] += start
    unit = 2.0 / query.positives.size / query.n_negatives
    total, error = 0.0, 0.0
    for k in range(start, stop):
        value = values[k]
        code = codes[bucket_of(grid, value)]
        if code >= 0:
            u = unit * (query.positives.size + 1 - code)
            coefficients[index[k]] = u
            total, error = add(total, error, u * (value - centre))
        else:
            g = -1 - code
            left_values[following[g]], left_index[following[g]] = value, index[k]
            following[g] += 1
    for k in range(n_left):
        values[start + k], index[start + k] = left_values[k], left_index[k]
    return found, total + error, n_steps


@once
def _settle_equal(query, values, index, start, stop, rank, unit, centre, coefficients, rank_counts):
    """All of a group at one known rank."""
    u = unit * (query.positives.size + 1 - rank)
    rank_counts[rank] += stop - start
    total, error = 0.0, 0.0
    for k in range(start, stop):
        coefficients[index[k]] = u
        total, error = add(total, error, u * (values[k] - centre))
    return total + error


@inner
def _grid_for(values, group):
    """Buckets for a large group; a grid of one bucket means that they would not help."""
    start, stop = group[START], group[STOP]
    lowest = highest = values[start]
    for k in range(start, stop):
        lowest = values[k] if values[k] < lowest else lowest
        highest = values[k] if values[k] > highest else highest
    return make_grid(lowest, highest, n_buckets(stop - start, group[HIGH] - group[LOW]))


@once
def _first_of_high(query, values, start, stop, j0, low):
    """Bisect sorted negatives of ranks low or low + 1 for the first of the latter; returns its place and the steps."""
    first, end, n_steps = start, stop, 0
    while first < end:
        middle = (first + end) >> 1
        n_steps += 1
        if best_rank(query, j0 + 1 + middle - start, values[middle], low, low + 1) == low:
            first = middle + 1
        else:
            end = middle
    return first, n_steps


@once
def _write_two(query, values, index, start, first, stop, low, unit, centre, coefficients, rank_counts):
    """Write u for negatives of rank low up to place `first`, of rank low + 1 from there on; ``Σ u (s - centre)``."""
    rank_counts[low] += first - start
    rank_counts[low + 1] += stop - first
    n_below = query.positives.size - low
    total = 0.0
    for k in range(start, stop):
        u = unit * (n_below + (k < first))
        coefficients[index[k]] = u
        total += u * (values[k] - centre)
    return total


@kernel
def settle(query, values, index, groups, centre, coefficients, rank_counts):
    """Find the ranks of all negatives in `groups`, one row (start, stop, j0, low, high) each.

    `values` and `index` are the groups' scores and places in the list; both are rearranged. Writes
    ``coefficients[index]`` and adds to ``rank_counts[r]`` the number of negatives with rank r. Returns
    ``Σ u (s - centre)`` over the groups and the number of steps evaluated.
    """
    total, error, n_steps, seed = 0.0, 0.0, 0, np.int64(12345)
    unit = 2.0 / query.positives.size / query.n_negatives
    ranks = np.empty(values.size, np.int64)
    parts = np.empty((64, 4), np.int64)
    # The smaller of two parts is settled first, so that at most log2(n) groups wait in addition to those given.
    stack = np.empty((groups.shape[0] + 64, 5), np.int64)
    n_groups = groups.shape[0]
    for g in range(n_groups):
        for column in range(5):
            stack[g, column] = groups[g, column]
    while n_groups > 0:
        n_groups -= 1
        start, stop, j0 = stack[n_groups, START], stack[n_groups, STOP], stack[n_groups, J0]
        low, high = stack[n_groups, LOW], stack[n_groups, HIGH]
        if low == high:
            part = _settle_equal(query, values, index, start, stop, low, unit, centre, coefficients, rank_counts)
            total, error = add(total, error, part)
            continue
        if stop - start <= _SORTED:
            insertion_sort(values, index, start, stop)
            if high - low == 1:
                first, steps = _first_of_high(query, values, start, stop, j0, low)
                n_steps += steps
                # Most groups end here; ties on both sides of `first` must share their mean.
                if not (start < first < stop and values[first - 1] == values[first]):
                    part = _write_two(
                        query, values, index, start, first, stop, low, unit, centre, coefficients, rank_counts
                    )
                    total, error = add(total, error, part)
                    continue
            block, after = start, stop
        else:
            pivot, seed = median_of_three(values, start, stop, seed)
            block, after = partition(values, index, start, stop, pivot)
        n_steps += sorted_ranks(query, values, block, after, j0 + block - start, low, high, ranks, parts)
        part = write_sorted(query, values, index, ranks, block, after, centre, coefficients, rank_counts)
        total, error = add(total, error, part)
        is_above = block - start > stop - after
        for _ in range(2):
            a, b = (start, block) if is_above else (after, stop)
            if a < b:
                stack[n_groups, START], stack[n_groups, STOP], stack[n_groups, J0] = a, b, j0 + a - start
                stack[n_groups, LOW] = low if is_above else ranks[after - 1]
                stack[n_groups, HIGH] = ranks[block] if is_above else high
                n_groups += 1
            is_above = not is_above
    return total + error, n_steps
