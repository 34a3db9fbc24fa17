"""The papers' methods, each from the negatives of a list to their ranks. One is one row of their tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge.papers.inference.quicksort import quicksort_ranks
from rankhinge.papers.inference.sorting import first_settled_last, greedy_ranks, search_ranks

__all__ = ["METHODS"]

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
    return _Negatives(values, index, ranks, quicksort_ranks(query, values, index, ranks, _NO_TRACE, False))


def _quicksort_search(query: Any, values: NDArray[np.float64], index: NDArray[np.int64]) -> _Negatives:
    ranks = np.empty(values.size, np.int64)
    return _Negatives(values, index, ranks, quicksort_ranks(query, values, index, ranks, _NO_TRACE, True))


METHODS: dict[str, Callable[..., _Negatives]] = {
    "greedy": _greedy,
    "search": _search,
    "select": _select,
    "quicksort": _quicksort,
    "quicksort-search": _quicksort_search,
}
