r"""The most violating ranking for a loss that looks at the first k places.

Let the top hold the m best positives and the ``q = k - m`` best negatives (by rearrangement it does). Pairs below the
cut are free of loss and stand by score, pairs across the cut are forced. Compared with the ranking by the scores, whose
score is H, a ranking loses ``c (p_i - n_j)₊`` for each pair that it turns against the scores, ``c = 2 / (P N)``:

.. math:: J(s) - H(s) = \max_m \Big\{ \mathrm{base}(m) + \sum_{j \le q} E_j(m)
          - c \sum_{j \le q, \, i > m} (p_i - n_j)_+ \Big\}

with the loss of "all m first" and what each negative of the block gains for itself,

.. math:: E_j(m) = \max\{0, \; E_j(m - 1) - t(j, m) - c \, (p_m - n_j)_+\}, \qquad E_j(0) = 0.

More positives on top than the scores put there, m₀, never help. As m falls from m₀ the last sum only grows, and where
it exceeds 1, the largest loss, the search ends. It grows by sums of what is not negative: nothing cancels.
"""

from __future__ import annotations

import numpy as np

from rankhinge._jit import ONE, ZERO, inner, kernel, once
from rankhinge.inference.by_scores import add_negatives, tabulate
from rankhinge.inference.cut_callbacks import (
    ADVANCE,
    BEST_RANK,
    GAINS,
    NORM,
    PARTS,
    call_advance,
    call_gains,
    call_norm,
    call_parts,
)
from rankhinge.inference.finish import counts_above, write_positives
from rankhinge.inference.partition import select, sort_descending
from rankhinge.inference.passes import CHUNK, first_bad
from rankhinge.inference.query import Query, add, centre_of
from rankhinge.inference.settle import sorted_ranks
from rankhinge.inference.whole import BAD_SCORE, NO_NEGATIVE, NO_POSITIVE, SETTLED, find

_BLOCK = 64
# Not literals, each of which would be a type of its own (see `_jit`).


@kernel
def best_negatives(scores, relevant, offset, wanted):
    """Scores and places (from `offset` on) of the `wanted` best negatives, or of all if there are fewer; unsorted.

    A buffer holds the candidates; when it is full, the best of them are kept and the rest is below the bar.
    """
    room = 2 * wanted + _BLOCK
    room = room if room < scores.size + _BLOCK else scores.size + _BLOCK
    values, index = np.empty(room), np.empty(room, np.int64)
    size, bar = 0, -np.inf
    for start in range(0, scores.size, _BLOCK):
        part, part_relevant = scores[start : start + _BLOCK], relevant[start : start + _BLOCK]
        reaches = False
        for k in range(part.size):
            reaches |= part[k] > bar
        if not reaches:
            continue
        if size + _BLOCK > room:
            select(values, index, ZERO, size, wanted - 1)
            size, bar = wanted, values[wanted - 1]
        for k in range(part.size):
            if part[k] > bar and not part_relevant[k]:
                values[size], index[size] = part[k], offset + start + k
                size += 1
    if size > wanted:
        select(values, index, ZERO, size, wanted - 1)
        size = wanted
    return values[:size], index[:size]


@inner
def _n_on_top(positives, negatives, depth):
    """How many positives the scores put on the first places; of equal scores the positives come first."""
    i = j = 0
    while i + j < depth:
        if i < positives.size and (j >= negatives.size or positives[i] >= negatives[j]):
            i += 1
        else:
            j += 1
    return i


@once
def _forced(positives, negatives, depth, m0, unit):
    """``c Σ_{j ≤ k - m, i > m} (p_i - n_j)₊`` for m = m₀, m₀ - 1, … as long as it is not above 1 and q ≤ N.

    ``forced[d]`` belongs to m₀ - d.
    """
    n_positives = positives.size
    most = m0 if m0 < negatives.size - (depth - m0) else negatives.size - (depth - m0)
    forced = np.empty(most + 1)
    forced[0] = 0.0
    # Column: Σ (p_i - n_j)₊ over the `inside` positives i ≥ m that score more than n_j, for j = q + 1.
    # Row: Σ_{j ≤ q} (p_m - n_j)₊ over the negatives from `first` on that score less than p_m.
    column, row, end, first = 0.0, 0.0, m0, depth - m0
    total = 0.0
    for d in range(most):
        m, q = m0 - d, depth - m0 + d
        score, new = positives[m - 1], negatives[q]
        # The column of n_{q+1}: those of the last one are farther away, others are new, and positive m is.
        if d > 0:
            column += (end - m) * (negatives[q - 1] - new)
        while end < n_positives and positives[end] > new:
            column += positives[end] - new
            end += 1
        column += max(0.0, score - new)
        # The row of p_m, against the negatives 1 … q.
        if d > 0:
            row += (q - 1 - first) * (score - positives[m])
            row += max(0.0, score - negatives[q - 1])
        while first > 0 and negatives[first - 1] < score:
            first -= 1
            row += score - negatives[first]
        total += unit * (column + row)
        if not total <= 1.0:
            return forced[: d + 1]
        forced[d + 1] = total
    return forced


@once
def _best_number(positives, negatives, n_negatives, depth, m0, forced, gains, norm, unit, addresses, table):
    """The m that maximises J, and the steps evaluated."""
    lowest = m0 - (forced.size - 1)
    extra_sums = np.zeros(m0 + 1)
    n_steps = 0
    if addresses[ADVANCE] != 0:
        extra = np.zeros(depth - lowest)
        for m in range(1, m0 + 1):
            size = depth - (m if m > lowest else lowest)
            extra_sums[m] = call_advance(
                addresses[ADVANCE],
                m,
                positives[m - 1],
                size,
                negatives.ctypes.data,
                unit,
                1.0 / norm,
                positives.size,
                n_negatives,
                table.ctypes.data,
                extra.ctypes.data,
            )
            n_steps += size
    base = 0.0
    for i in range(m0, gains.size):
        base += gains[i]
    best, best_value = m0, -1.0
    for d in range(forced.size):
        m = m0 - d
        value = base / norm + extra_sums[m] - forced[d]
        if value > best_value:
            best, best_value = m, value
        if m > 0:
            base += gains[m - 1]
    return best, n_steps


@once
def _block_ranks(positives, negatives, n_negatives, m, q, norm, addresses, table):
    """The ranks of the q best negatives among the m best positives, ascending."""
    ranks = np.empty(q, np.int64)
    if addresses[ADVANCE] == 0:
        # By score, as all else; of equal scores the positives come first.
        i = 0
        for j in range(q):
            while i < m and positives[i] >= negatives[j]:
                i += 1
            ranks[j] = i + 1
        return ranks, 0
    block = positives[:m]
    query = Query(
        block,
        n_negatives,
        0.5 * positives.size * n_negatives / norm,
        norm,
        addresses,
        table,
        block.ctypes.data,
        table.ctypes.data,
        addresses[BEST_RANK],
        False,
    )
    n_steps = sorted_ranks(query, negatives, ZERO, q, ZERO, ONE, m + 1, ranks, np.empty((64, 4), np.int64))
    return ranks, n_steps


@kernel
def _count_equal(scores, relevant, value):
    size = 0
    for k in range(scores.size):
        size += (scores[k] == value) & (not relevant[k])
    return size


@once
def _write_top(scores, relevant, positives, n_negatives, values, index, ranks, centre, coefficients, rank_counts):
    """Write u of the negatives on top, tied ones their mean, and correct what the ranking by scores has counted.

    Returns the change of ``Σ u (s - centre)``.
    """
    n_positives, q = positives.size, ranks.size
    unit = 2.0 / n_positives / n_negatives
    total, error = 0.0, 0.0
    start, higher = 0, 0
    while start < q:
        value = values[start]
        while higher < n_positives and positives[higher] >= value:
            higher += 1
        end, below = start, 0
        while end < q and values[end] == value:
            below += n_positives + 1 - ranks[end]
            rank_counts[higher + 1] -= 1
            rank_counts[ranks[end]] += 1
            end += 1
        moved = below - (end - start) * (n_positives - higher)
        total, error = add(total, error, unit * moved * (value - centre))
        size = end - start
        if end == q and q < values.size and values[q] == value:
            # The cut runs through a block of ties: all of them share.
            size = _count_equal(scores, relevant, value)
            u = unit * ((below + (size - (end - start)) * (n_positives - higher)) / size)
            for k in range(scores.size):
                if scores[k] == value and not relevant[k]:
                    coefficients[k] = u
        else:
            for j in range(start, end):
                coefficients[index[j]] = unit * (below / size)
        start = end
    return total + error


@kernel
def settle_top(positives, values, n_negatives, depth, addresses, table):
    """The number m of positives on top, and the ranks of the negatives there, the ``depth - m`` best, ascending.

    `positives` and `values`, the best ``depth + 1`` negatives or all of them, are sorted. Returns also the gains, Z and
    the steps evaluated.
    """
    n_positives = positives.size
    unit = 2.0 / n_positives / n_negatives
    gains = np.empty(depth if depth < n_positives else n_positives)
    call_gains(addresses[GAINS], gains.size, table.ctypes.data, gains.ctypes.data)
    ideal = 0.0
    for i in range(gains.size):
        ideal += gains[i]
    norm = call_norm(addresses[NORM], n_positives, depth, ideal)
    m0 = _n_on_top(positives, values, depth)
    forced = _forced(positives, values, depth, m0, unit)
    m, n_steps = _best_number(positives, values, n_negatives, depth, m0, forced, gains, norm, unit, addresses, table)
    ranks, steps = _block_ranks(positives, values, n_negatives, m, depth - m, norm, addresses, table)
    return m, ranks, gains, norm, n_steps + steps


@kernel
def settle_cut(
    scores, relevant, positives, positive_index, values, index, depth, by_scores, centre, addresses, table, coefficients
):
    """From the ranking by scores, which `coefficients` and `by_scores` describe, to the most violating one.

    `positives` and `values`, the best ``depth + 1`` negatives or all of them, are sorted. ``by_scores[a]`` negatives
    have a positives above them. Returns Δ, the change of the negatives' part of ``Σ u (s - centre)``, the positives'
    part, the steps evaluated and the number of negatives at each rank.
    """
    n_positives, n_negatives = positives.size, scores.size - positives.size
    m, ranks, gains, norm, n_steps = settle_top(positives, values, n_negatives, depth, addresses, table)
    rank_counts = np.zeros(n_positives + 2, np.int64)
    for a in range(n_positives + 1):
        rank_counts[a + 1] = by_scores[a]
    # Positives have been counted as if they had all above them.
    rank_counts[n_positives + 1] -= n_positives
    change = _write_top(
        scores, relevant, positives, n_negatives, values, index, ranks, centre, coefficients, rank_counts
    )
    above = counts_above(rank_counts)
    total = write_positives(positives, positive_index, above, n_negatives, centre, coefficients)
    loss = _lost(above, m, gains, n_negatives, norm, addresses, table)
    return loss, change, total, n_steps, rank_counts


@inner
def _lost(above, m, gains, n_negatives, norm, addresses, table):
    """Δ of a ranking with m positives on top, ``above[i]`` negatives above positive i + 1."""
    lost = 0.0
    for i in range(gains.size - 1, m - 1, -1):
        lost += gains[i]
    if addresses[PARTS] != 0:
        lost += call_parts(addresses[PARTS], above.ctypes.data, m, above.size, n_negatives, table.ctypes.data)
    return lost / norm


@kernel
def cut_loss_of_counts(addresses, table, above, n_negatives, depth):
    """Δ of the ranking with ``above[i]`` negatives above positive i + 1."""
    gains = np.empty(depth if depth < above.size else above.size)
    call_gains(addresses[GAINS], gains.size, table.ctypes.data, gains.ctypes.data)
    ideal = 0.0
    for i in range(gains.size):
        ideal += gains[i]
    m = 0
    while m < above.size and m + 1 + above[m] <= depth:
        m += 1
    norm = call_norm(addresses[NORM], above.size, depth, ideal)
    return _lost(above, m, gains, n_negatives, norm, addresses, table)


@kernel
def infer_cut(scores, relevant, depth, addresses, table, coefficients):
    """The most violating ranking of one list; a depth of 0 means as many places as there are positives.

    Writes u; returns (status, place of a bad score, J, Δ, steps evaluated, number of negatives at each rank).
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
    depth = depth if depth > 0 else positives.size
    sort_descending(positives, positive_index)
    values, index = best_negatives(scores, relevant, ZERO, depth + 1)
    sort_descending(values, index)
    grid, above = tabulate(positives)
    by_scores = np.zeros(positives.size + 1, np.int64)
    sums = np.empty((scores.size + CHUNK - 1) // CHUNK)
    centre = centre_of(positives, values[0])
    for k in range(coefficients.size):
        coefficients[k] = 0.0
    arrays = (scores, relevant, coefficients, by_scores, sums)
    add_negatives(1.0, positives, n_negatives, centre, grid, above, *arrays)
    total = 0.0
    for chunk in range(sums.size):
        total += sums[chunk]
    loss, change, positive_total, n_steps, rank_counts = settle_cut(
        scores,
        relevant,
        positives,
        positive_index,
        values,
        index,
        depth,
        by_scores,
        centre,
        addresses,
        table,
        coefficients,
    )
    return SETTLED, -1, loss + (total + change + positive_total), loss, n_steps, rank_counts


@kernel
def infer_cut_lists(
    scores, relevant, offsets, depths, longest, addresses, table, values, losses, coefficients, usable, first, last
):
    """`infer_cut` for the lists ``first … last - 1`` that are shorter than `longest`; as `whole.infer_lists`."""
    for q in range(first, last):
        start, stop = offsets[q], offsets[q + 1]
        if stop - start >= longest:
            continue
        status, place, value, loss, _, _ = infer_cut(
            scores[start:stop], relevant[start:stop], depths[q], addresses, table, coefficients[start:stop]
        )
        if status == BAD_SCORE:
            return start + place
        if status != SETTLED:
            coefficients[start:stop] = 0.0
        values[q], losses[q], usable[q] = value, loss, status == SETTLED
    return -1
