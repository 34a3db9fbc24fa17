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

from rankhinge.inference.buckets import bucket_of, lower_edge, make_grid
from rankhinge.inference.jit import inner, kernel
from rankhinge.inference.partition import insertion_sort, median_of_three, partition
from rankhinge.inference.query import add, best_rank

START, STOP, J0, LOW, HIGH = 0, 1, 2, 3, 4
_SORTED = 24
BUCKETED = 192
_MOST_BUCKETS = 1 << 16


@inner
def n_buckets(size, n_open):
    """How many buckets for `size` negatives with `n_open` ranks to tell apart.

    Each of the n_open thresholds leaves its bucket unsettled: sixteen times as many buckets leave a sixteenth.
    """
    wanted = 16 * n_open + 64
    wanted = wanted if wanted < size else size
    return wanted if wanted < _MOST_BUCKETS else _MOST_BUCKETS


@kernel
def one_group(size, n_positives):
    """A stack that holds all negatives of a list as one group."""
    groups = np.empty((1, 5), np.int64)
    groups[0, START], groups[0, STOP], groups[0, J0], groups[0, LOW], groups[0, HIGH] = 0, size, 0, 1, n_positives + 1
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


@inner
def edge_ranks(query, grid, at_least, j0, low, high, ranks):
    """Bounds on the ranks in each bucket: those of bucket b lie in ``ranks[b + 1] … ranks[b]``.

    ``at_least[b]`` counts the group's negatives in buckets b and above. ``ranks[b]`` is the best rank of the
    first negative below the edge, had it the edge's score. Divide and conquer over the edges; empty stretches and
    those between equal ranks are never looked at. Returns the number of steps evaluated.
    """
    n_steps = 0
    ranks[0], ranks[grid.size] = high, low
    parts = np.empty((64, 2), np.int64)
    parts[0, 0], parts[0, 1] = 0, grid.size
    n_parts = 1
    while n_parts > 0:
        n_parts -= 1
        a, b = parts[n_parts, 0], parts[n_parts, 1]
        while b - a > 1:
            if ranks[a] == ranks[b] or at_least[a] == at_least[b]:
                for edge in range(a + 1, b):
                    ranks[edge] = ranks[b]
                break
            middle = (a + b) >> 1
            ranks[middle] = best_rank(query, j0 + 1 + at_least[middle], lower_edge(grid, middle), ranks[b], ranks[a])
            n_steps += ranks[a] - ranks[b]
            parts[n_parts, 0], parts[n_parts, 1] = a, middle
            n_parts += 1
            a = middle
    return n_steps


@kernel
def settle_buckets(query, grid, counts, j0, low, high, rank_counts, table):
    """From the counts of a grid: each settled bucket's u, and a group for each unsettled one.

    ``table[b]`` becomes the coefficient of the bucket, or ``-1 - g`` where g numbers the unsettled groups. These are
    returned as rows (start, stop, j0, low, high) with consecutive places from 0, with the steps evaluated.
    """
    at_least = np.empty(grid.size + 1, np.int64)
    at_least[grid.size] = 0
    for b in range(grid.size - 1, -1, -1):
        at_least[b] = at_least[b + 1] + counts[b]
    ranks = np.empty(grid.size + 1, np.int64)
    n_steps = edge_ranks(query, grid, at_least, j0, low, high, ranks)
    # Each unsettled bucket takes at least one of the high - low changes of rank.
    groups = np.empty((grid.size if grid.size < high - low else high - low, 5), np.int64)
    n_positives = query.positives.size
    unit = 2.0 / n_positives / query.n_negatives
    place = g = 0
    for b in range(grid.size):
        if ranks[b] == ranks[b + 1]:
            table[b] = unit * (n_positives + 1 - ranks[b])
            rank_counts[ranks[b]] += counts[b]
        elif counts[b] > 0:
            table[b] = -1.0 - g
            groups[g, START], groups[g, STOP], groups[g, J0] = place, place + counts[b], j0 + at_least[b + 1]
            groups[g, LOW], groups[g, HIGH] = ranks[b + 1], ranks[b]
            place += counts[b]
            g += 1
    return groups[:g], n_steps


@kernel
def bucket_step(query, values, index, group, centre, coefficients, rank_counts):
    """Settle what counting settles; the rest is moved to the front of the group and returned as groups.

    Returns these, the settled negatives' part of ``Σ u (s - centre)`` and the number of steps evaluated.
    """
    start, stop = group[START], group[STOP]
    grid = _grid_for(values, group)
    counts = np.zeros(grid.size, np.int64)
    for k in range(start, stop):
        counts[bucket_of(grid, values[k])] += 1
    table = np.empty(grid.size)
    found, n_steps = settle_buckets(query, grid, counts, group[J0], group[LOW], group[HIGH], rank_counts, table)
    n_left = found[found.shape[0] - 1, STOP] if found.shape[0] > 0 else 0
    left_values, left_index = np.empty(n_left), np.empty(n_left, index.dtype)
    following = np.empty(found.shape[0], np.int64)
    for g in range(found.shape[0]):
        following[g] = found[g, START]
        found[g, START] += start
        found[g, STOP] += start
    total, error = 0.0, 0.0
    for k in range(start, stop):
        value = values[k]
        u = table[bucket_of(grid, value)]
        if u >= 0.0:
            coefficients[index[k]] = u
            total, error = add(total, error, u * (value - centre))
        else:
            g = int(-1.0 - u)
            left_values[following[g]], left_index[following[g]] = value, index[k]
            following[g] += 1
    for k in range(n_left):
        values[start + k], index[start + k] = left_values[k], left_index[k]
    return found, total + error, n_steps


@inner
def _settle_equal(query, values, index, group, centre, coefficients, rank_counts):
    """All of a group at one known rank."""
    u = 2.0 / query.positives.size / query.n_negatives * (query.positives.size + 1 - group[LOW])
    rank_counts[group[LOW]] += group[STOP] - group[START]
    total, error = 0.0, 0.0
    for k in range(group[START], group[STOP]):
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


@inner
def _settle_handful(query, values, index, start, stop, j0, low, high, unit, centre, coefficients, rank_counts):
    """A few negatives with few ranks open, sorted and ranked one after the other: most groups end here."""
    n_ranks = query.positives.size + 1
    if stop - start == 1:
        rank = best_rank(query, j0 + 1, values[start], low, high)
        rank_counts[rank] += 1
        u = unit * (n_ranks - rank)
        coefficients[index[start]] = u
        return u * (values[start] - centre), high - low
    insertion_sort(values, index, start, stop)
    total, n_steps, rank = 0.0, 0, low
    k = start
    while k < stop:
        value, end, below = values[k], k, 0
        while end < stop and values[end] == value:
            if rank < high:
                n_steps += high - rank
                rank = best_rank(query, j0 + 1 + end - start, value, rank, high)
            rank_counts[rank] += 1
            below += n_ranks - rank
            end += 1
        u = unit * below if end == k + 1 else unit * (below / (end - k))
        total += u * (value - centre) * (end - k)
        for place in range(k, end):
            coefficients[index[place]] = u
        k = end
    return total, n_steps


@kernel
def settle(query, values, index, groups, centre, coefficients, rank_counts):
    """Find the ranks of all negatives in `groups`, one row (start, stop, j0, low, high) each.

    `values` and `index` are the groups' scores and places in the list; both are rearranged. Writes
    ``coefficients[index]`` and adds to ``rank_counts[r]`` the number of negatives with rank r. Returns
    ``Σ u (s - centre)`` over the groups and the number of steps evaluated.
    """
    total, error, n_steps, seed = 0.0, 0.0, 0, 12345
    unit = 2.0 / query.positives.size / query.n_negatives
    ranks = np.empty(values.size, np.int64)
    parts = np.empty((64, 4), np.int64)
    # Groups are not empty and do not overlap: there are never more than samples.
    stack = np.empty((values.size + 1, 5), np.int64)
    n_groups = groups.shape[0]
    for g in range(n_groups):
        for column in range(5):
            stack[g, column] = groups[g, column]
    while n_groups > 0:
        n_groups -= 1
        start, stop, j0 = stack[n_groups, START], stack[n_groups, STOP], stack[n_groups, J0]
        low, high = stack[n_groups, LOW], stack[n_groups, HIGH]
        if low == high:
            part = _settle_equal(query, values, index, stack[n_groups], centre, coefficients, rank_counts)
            total, error = add(total, error, part)
            continue
        if stop - start <= 2 or (stop - start <= _SORTED and high - low <= 8):
            part, steps = _settle_handful(
                query, values, index, start, stop, j0, low, high, unit, centre, coefficients, rank_counts
            )
            total, error = add(total, error, part)
            n_steps += steps
            continue
        if stop - start <= _SORTED:
            insertion_sort(values, index, start, stop)
            block, after = start, stop
        else:
            pivot, seed = median_of_three(values, start, stop, seed)
            block, after = partition(values, index, start, stop, pivot)
        n_steps += sorted_ranks(query, values, block, after, j0 + block - start, low, high, ranks, parts)
        part = write_sorted(query, values, index, ranks, block, after, centre, coefficients, rank_counts)
        total, error = add(total, error, part)
        for a, b, lowest, highest in ((start, block, low, ranks[block]), (after, stop, ranks[after - 1], high)):
            if a < b:
                stack[n_groups, START], stack[n_groups, STOP], stack[n_groups, J0] = a, b, j0 + a - start
                stack[n_groups, LOW], stack[n_groups, HIGH] = lowest, highest
                n_groups += 1
    return total + error, n_steps
