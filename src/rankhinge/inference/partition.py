"""Sorting and selecting pairs (score, index) by descending score, in place.

Everything here is deterministic and none of it goes quadratic: pivots are medians of three taken at positions from
a fixed linear congruential sequence, equal scores are gathered in one block (a constant array is one round), and
a part that resists is finished by Shell's sort.
"""

from __future__ import annotations

import numpy as np

from rankhinge._jit import inner, kernel
from rankhinge.inference.buckets import bucket_of, make_grid

_INSERTION = 20


@inner
def _swap(values, index, a, b):
    values[a], values[b] = values[b], values[a]
    index[a], index[b] = index[b], index[a]


@inner
def insertion_sort(values, index, start, stop):
    """Sort ``values[start:stop]`` descending, `index` along with it; O(m) if sorted already."""
    for k in range(start + 1, stop):
        value, item = values[k], index[k]
        place = k
        while place > start and values[place - 1] < value:
            values[place], index[place] = values[place - 1], index[place - 1]
            place -= 1
        values[place], index[place] = value, item


@inner
def shell_sort(values, index, start, stop):
    """Sort ``values[start:stop]`` descending, `index` along with it, in O(m^(4/3)) whatever the input.

    Insertion sort over ever smaller gaps, those of Sedgewick (1986): the last resort for parts that resist.
    """
    power = 0
    while (4 << 2 * power) + (3 << power) + 1 < stop - start:
        power += 1
    while power >= 0:
        gap = 1 if power == 0 else (1 << 2 * power) + (3 << power - 1) + 1
        for k in range(start + gap, stop):
            value, item = values[k], index[k]
            place = k
            while place >= start + gap and values[place - gap] < value:
                values[place], index[place] = values[place - gap], index[place - gap]
                place -= gap
            values[place], index[place] = value, item
        power -= 1


@inner
def median_of_three(values, start, stop, seed):
    """A pivot value for ``values[start:stop]`` and the next state of the sequence of positions."""
    size = stop - start
    seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
    a = values[start + seed % size]
    b = values[start + size // 2]
    seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
    c = values[start + seed % size]
    if a > b:
        a, b = b, a
    return (a if c < a else (b if c > b else c)), seed


@inner
def partition(values, index, start, stop, pivot):
    """Rearrange to ``> pivot | = pivot | < pivot``; return where the block of equals begins and ends."""
    above, k, below = start, start, stop
    while k < below:
        value = values[k]
        if value > pivot:
            _swap(values, index, above, k)
            above += 1
            k += 1
        elif value < pivot:
            below -= 1
            _swap(values, index, k, below)
        else:
            k += 1
    return above, below


@kernel
def select(values, index, start, stop, target):
    """Quickselect: bring the score that belongs at position `target` there; return its block of equals."""
    seed = np.int64(12345)
    rounds = 0
    size = stop - start
    limit = 32
    while size > 0:
        limit += 4
        size >>= 1
    while True:
        if stop - start <= _INSERTION or rounds > limit:
            if rounds > limit:
                shell_sort(values, index, start, stop)
            else:
                insertion_sort(values, index, start, stop)
            block, after = target, target + 1
            while block > start and values[block - 1] == values[target]:
                block -= 1
            while after < stop and values[after] == values[target]:
                after += 1
            return block, after
        pivot, seed = median_of_three(values, start, stop, seed)
        block, after = partition(values, index, start, stop, pivot)
        if target < block:
            stop = block
        elif target >= after:
            start = after
        else:
            return block, after
        rounds += 1


@kernel
def sort_descending(values, index):
    """Sort all of `values`, `index` along with it: into buckets first, which spares most comparisons."""
    size = values.size
    if size <= _INSERTION:
        insertion_sort(values, index, np.int64(0), size)
        return
    lowest = highest = values[0]
    for k in range(1, size):
        lowest = values[k] if values[k] < lowest else lowest
        highest = values[k] if values[k] > highest else highest
    grid = make_grid(lowest, highest, size)
    ends = np.zeros(grid.size + 1, np.int64)
    for k in range(size):
        ends[bucket_of(grid, values[k])] += 1
    for b in range(grid.size - 1, -1, -1):
        ends[b] += ends[b + 1]
    old_values, old_index = values.copy(), index.copy()
    for k in range(size - 1, -1, -1):
        bucket = bucket_of(grid, old_values[k])
        ends[bucket] -= 1
        values[ends[bucket]], index[ends[bucket]] = old_values[k], old_index[k]
    # ends[b] is now where bucket b begins; bucket b - 1 follows it.
    for b in range(grid.size - 1, -1, -1):
        stop = ends[b - 1] if b > 0 else size
        if stop - ends[b] <= _INSERTION:
            insertion_sort(values, index, ends[b], stop)
        else:
            shell_sort(values, index, ends[b], stop)
