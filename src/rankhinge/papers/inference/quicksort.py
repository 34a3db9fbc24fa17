"""The papers' divide and conquer (004, Algorithm 1; 000, Algorithms 1 and 2).

The median of the negatives is found by quickselect, its best rank by trying all ranks still open, and both halves
continue with the narrowed range; a range of one rank settles its part. Any suitable loss;
O(N log P + P log P + P log N). For AP the median's rank can be searched for instead (003, Algorithm 2).

Two things differ from the text, neither where scores are distinct: negatives tied with the median form a block of
their own (so that constant scores cost one round), and the search tries all ranks up to P + 1, not P.
"""

from __future__ import annotations

import numpy as np

from rankhinge._jit import kernel
from rankhinge.inference.partition import select
from rankhinge.inference.settle import sorted_ranks
from rankhinge.papers.inference.sorting import search_rank


@kernel
def quicksort_ranks(query, values, index, ranks, explicit, searches):
    """Ranks of all negatives; `values`, `index` are rearranged so that ``ranks`` ascends along them.

    If `explicit` is not empty, ``explicit[j - 1]`` is set for each negative j whose rank is computed rather than
    inferred. With `searches` (AP only) the median's rank is found by bisection where f is concave. Returns the
    number of steps evaluated.
    """
    n_steps = 0
    parts = np.empty((64, 4), np.int64)
    room = np.empty((64, 4), np.int64)
    parts[0, 0], parts[0, 1], parts[0, 2], parts[0, 3] = 0, values.size, 1, query.positives.size + 1
    n_parts = 1
    while n_parts > 0:
        n_parts -= 1
        start, stop, low, high = parts[n_parts, 0], parts[n_parts, 1], parts[n_parts, 2], parts[n_parts, 3]
        while start < stop:
            if low == high:
                ranks[start:stop] = low
                break
            block, after = select(values, index, start, stop, (start + stop - 1) // 2)
            if searches and after == block + 1:
                ranks[block], steps = search_rank(query, after, values[block], low, high)
                n_steps += steps
            else:
                n_steps += sorted_ranks(query, values, block, after, block, low, high, ranks, room)
            if explicit.size > 0:
                explicit[block:after] = True
            parts[n_parts, 0], parts[n_parts, 1], parts[n_parts, 2], parts[n_parts, 3] = (
                after,
                stop,
                ranks[after - 1],
                high,
            )
            n_parts += 1
            stop, high = block, ranks[block]
    return n_steps
