"""From the ranks of the negatives to the positives' coefficients, the loss and J."""

from __future__ import annotations

import numpy as np

from rankhinge._jit import kernel, once
from rankhinge.inference.callbacks import call_divisor, call_loss
from rankhinge.inference.query import add


@once
def counts_above(rank_counts):
    """``a_i``, the negatives above positive i, from the number of negatives at each rank (``rank_counts[r]``)."""
    n_positives = rank_counts.size - 2
    above = np.empty(n_positives, np.int64)
    total = 0
    for i in range(n_positives):
        total += rank_counts[i + 1]
        above[i] = total
    return above


@kernel
def finish(query, positive_index, rank_counts, centre, coefficients):
    """Write ``u = -2 a_i / (P N)`` for the positives, tied ones their mean.

    Returns Δ and the positives' part of ``Σ u (s - centre)``.
    """
    above = counts_above(rank_counts)
    loss = call_loss(
        query.addresses[2], above.ctypes.data, above.size, query.n_negatives, query.divisor, query.table_at
    )
    return loss, write_positives(query.positives, positive_index, above, query.n_negatives, centre, coefficients)


@kernel
def write_positives(positives, positive_index, above, n_negatives, centre, coefficients):
    """Write u of the positives, ``above[i]`` negatives above each; returns their part of ``Σ u (s - centre)``."""
    n_positives = positives.size
    unit = 2.0 / n_positives / n_negatives
    total, error = 0.0, 0.0
    k = 0
    while k < n_positives:
        end, count = k, 0
        while end < n_positives and positives[end] == positives[k]:
            count += above[end]
            end += 1
        u = -unit * (count / (end - k))
        total, error = add(total, error, u * (positives[k] - centre) * (end - k))
        for place in range(k, end):
            coefficients[positive_index[place]] = u
        k = end
    return total + error


@kernel
def loss_of_counts(addresses, table, above, n_negatives):
    """Δ of the ranking with ``above[i]`` negatives above positive i + 1."""
    divisor = call_divisor(addresses[0], above.size, n_negatives, table.ctypes.data)
    return call_loss(addresses[2], above.ctypes.data, above.size, n_negatives, divisor, table.ctypes.data)
