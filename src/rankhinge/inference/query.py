"""One list as the kernels see it, and the rank of one negative in it."""

from __future__ import annotations

from collections import namedtuple

from rankhinge._jit import inner, kernel
from rankhinge.inference.callbacks import call_best_rank, call_divisor

Query = namedtuple(
    "Query",
    "positives n_negatives half_scale divisor addresses table positives_at table_at best_rank_at is_ap",
)
Query.__doc__ = """A list: its positives' scores (descending), its number of negatives, its loss's callbacks and table.

The addresses are kept as plain numbers: asking an array for its address counts a reference, which costs more
than the call that wants it.
"""


@kernel
def make_query(addresses, table, positives, n_negatives):
    """Gather what `best_rank` needs; `positives` must be sorted by descending score."""
    divisor = call_divisor(addresses[0], positives.size, n_negatives, table.ctypes.data)
    return Query(
        positives,
        n_negatives,
        0.5 * positives.size * n_negatives / divisor,
        divisor,
        addresses,
        table,
        positives.ctypes.data,
        table.ctypes.data,
        addresses[1],
        addresses[3] != 0,
    )


@kernel
def centre_of(positives, highest):
    """A score amid those that matter: positives far above every negative do not."""
    return min(positives[positives.size // 2], highest)


@inner
def add(total, error, term):
    """One step of Neumaier's sum: the new total and the new sum of what was rounded off."""
    larger = total + term
    if abs(total) >= abs(term):
        return larger, error + ((total - larger) + term)
    return larger, error + ((term - larger) + total)


@inner
def best_rank(query, j, score, low, high):
    """The largest maximiser of f_j over the ranks ``low … high`` for a j-th best negative with this score."""
    return call_best_rank(
        query.best_rank_at,
        j,
        score,
        low,
        high,
        query.positives_at,
        query.positives.size,
        query.n_negatives,
        query.half_scale,
        query.table_at,
    )
