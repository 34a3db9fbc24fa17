"""One list as the kernels see it, and the rank of one negative in it."""

from __future__ import annotations

from collections import namedtuple

from numba import njit

from rankhinge.inference.callbacks import call_best_rank, call_half_scale

Query = namedtuple("Query", "addresses table positives n_negatives half_scale")
Query.__doc__ = """A list: its loss's callbacks and table, its positives' scores (descending), its number of negatives."""


@njit(cache=True, nogil=True)
def make_query(addresses, table, positives, n_negatives):
    """Gather what `best_rank` needs; `positives` must be sorted by descending score."""
    half_scale = call_half_scale(addresses[0], positives.size, n_negatives, table.ctypes.data)
    return Query(addresses, table, positives, n_negatives, half_scale)


@njit(cache=True, nogil=True, inline="always")
def best_rank(query, j, score, low, high):
    """The largest maximiser of f_j over the ranks ``low … high`` for a j-th best negative with this score."""
    return call_best_rank(
        query.addresses[1],
        j,
        score,
        low,
        high,
        query.positives.ctypes.data,
        query.positives.size,
        query.n_negatives,
        query.half_scale,
        query.table.ctypes.data,
    )
