"""The methods that sort the negatives first: "greedy" and "search", and "select", which sorts only some of them."""

from __future__ import annotations

from rankhinge._jit import inner, kernel
from rankhinge.inference.partition import select as select_block
from rankhinge.inference.query import best_rank


@kernel
def greedy_ranks(query, values, ranks):
    """Try every rank for every negative (Yue et al. 2007; Chakrabarti et al. 2008): O(P N) steps.

    `values` must be sorted descending. Returns the number of steps evaluated.
    """
    n_ranks = query.positives.size + 1
    for k in range(values.size):
        ranks[k] = best_rank(query, k + 1, values[k], 1, n_ranks)
    return values.size * (n_ranks - 1)


@inner
def search_rank(query, j, score, lowest, highest):
    """The best of the ranks ``lowest … highest`` of one negative for the AP loss (003, Algorithm 2).

    Up to rank j + 1 f_j is concave: the sign of its difference is bisected for the last rank worth moving to. Beyond,
    all ranks are tried. Returns the rank and the number of steps evaluated.
    """
    concave_end = max(lowest, min(highest, j + 1))
    low, high = lowest, concave_end
    n_steps = 0
    while low < high:
        i = (low + high) // 2
        n_steps += 1
        # The largest maximiser over two ranks tells the sign of the difference between them.
        if best_rank(query, j, score, i, i + 1) > i:
            low = i + 1
        else:
            high = i
    rank = low
    if concave_end < highest:
        # From the summit of the concave part on, one running sum decides against all that follows.
        rank = best_rank(query, j, score, low, highest)
        n_steps += highest - low
    return rank, n_steps


@kernel
def search_ranks(query, values, ranks):
    """`search_rank` for each negative, `values` sorted descending: O(N log P + P²). AP only."""
    total = 0
    n_ranks = query.positives.size + 1
    for k in range(values.size):
        ranks[k], n_steps = search_rank(query, k + 1, values[k], 1, n_ranks)
        total += n_steps
    return total


@kernel
def first_settled_last(query, values, index):
    """Selective ranking (003, Algorithm 3): how many negatives must be ranked one by one.

    Bisects, by quickselect, for the first negative whose best rank is P + 1; all after it have that rank too. The
    negatives with a score at least as high are brought to the front and counted. Returns (count, steps).
    """
    n_ranks = query.positives.size + 1
    low, high = 0, values.size
    n_steps = 0
    while low < high:
        block, after = select_block(values, index, low, high, (low + high) // 2)
        rank, steps = search_rank(query, after, values[block], 1, n_ranks)
        n_steps += steps
        if rank < n_ranks:
            low = after
            continue
        rank, steps = search_rank(query, block + 1, values[block], 1, n_ranks)
        n_steps += steps
        if rank < n_ranks:
            # The boundary runs through a block of ties, which is ranked as a whole.
            return after, n_steps
        high = block
    return low, n_steps
