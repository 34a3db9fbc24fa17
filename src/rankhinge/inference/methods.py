"""The papers' methods, each: split the list, rank the negatives, write u. One is one row of their tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge.inference.callbacks import CompiledLoss
from rankhinge.inference.finish import finish
from rankhinge.inference.long_list import Outcome
from rankhinge.inference.partition import sort_descending
from rankhinge.inference.query import centre_of, make_query
from rankhinge.inference.quicksort import quicksort_ranks
from rankhinge.inference.settle import write_sorted
from rankhinge.inference.sorting import first_settled_last, greedy_ranks, search_ranks
from rankhinge.inference.whole import find

_NO_TRACE = np.zeros(0, np.bool_)


class _Negatives(NamedTuple):
    """Scores and places of the negatives, in an order along which the ranks ascend, and the steps it took."""

    values: NDArray[np.float64]
    places: NDArray[np.int64]
    ranks: NDArray[np.int64]
    n_steps: int


def _best_first(values: NDArray[np.float64], index: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
    order = np.argsort(-values)
    return values[order], index[order]


def _greedy(query: Any, values: NDArray[np.float64], index: NDArray[np.int64]) -> _Negatives:
    values, index = _best_first(values, index)
    ranks = np.empty(values.size, np.int64)
    return _Negatives(values, index, ranks, greedy_ranks(query, values, ranks))


def _search(query: Any, values: NDArray[np.float64], index: NDArray[np.int64]) -> _Negatives:
    values, index = _best_first(values, index)
    ranks = np.empty(values.size, np.int64)
    return _Negatives(values, index, ranks, search_ranks(query, values, ranks))


def _select(query: Any, values: NDArray[np.float64], index: NDArray[np.int64]) -> _Negatives:
    size, n_steps = first_settled_last(query, values, index)
    values[:size], index[:size] = _best_first(values[:size], index[:size])
    ranks = np.full(values.size, query.positives.size + 1)
    n_steps += search_ranks(query, values[:size], ranks[:size])
    return _Negatives(values, index, ranks, n_steps)


def _quicksort(query: Any, values: NDArray[np.float64], index: NDArray[np.int64]) -> _Negatives:
    ranks = np.empty(values.size, np.int64)
    return _Negatives(values, index, ranks, quicksort_ranks(query, values, index, ranks, _NO_TRACE))


METHODS: dict[str, Callable[..., _Negatives]] = {
    "greedy": _greedy,
    "search": _search,
    "select": _select,
    "quicksort": _quicksort,
}
AP_ONLY = ("search", "select")


def infer_by(
    method: str, scores: NDArray[Any], relevant: NDArray[np.bool_], compiled: CompiledLoss
) -> tuple[NDArray[Any], Outcome, NDArray[np.int64]]:
    """u, (J, Δ, steps) and the number of negatives at each rank, by one of `METHODS`; scores must be usable."""
    positives, positive_index = find(scores, relevant, True)
    sort_descending(positives, positive_index)
    query = make_query(compiled.addresses, compiled.table, positives, scores.size - positives.size)
    values, index = find(scores, relevant, False)
    centre = float(centre_of(positives, values.max()))
    negatives = METHODS[method](query, values, index)
    coefficients = np.empty_like(scores)
    rank_counts = np.zeros(positives.size + 2, np.int64)
    size = negatives.values.size
    total = write_sorted(query, *negatives[:3], 0, size, centre, coefficients, rank_counts)
    loss, positive_total = finish(query, positive_index, rank_counts, centre, coefficients)
    return coefficients, Outcome(loss + (total + positive_total), loss, negatives.n_steps), rank_counts
