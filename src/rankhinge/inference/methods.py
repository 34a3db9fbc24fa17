"""Where the methods of inference other than the default one live; they are loaded when they are asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge.inference.by_step import check_outcome, check_usable
from rankhinge.inference.callbacks import compile_loss
from rankhinge.inference.finish import finish
from rankhinge.inference.partition import sort_descending
from rankhinge.inference.query import centre_of, make_query
from rankhinge.inference.ranking import MostViolatingRanking
from rankhinge.inference.settle import write_sorted
from rankhinge.inference.whole import find
from rankhinge.losses import RankingLoss
from rankhinge.losses.base import BY_STEP

__all__ = ["METHODS", "infer_by"]

# The module whose METHODS have a function of this name.
METHODS = dict.fromkeys(("greedy", "search", "select", "quicksort", "quicksort-search"), "rankhinge.papers.inference")
# Methods that search for the maximum of a concave function.
_CONCAVE = ("search", "select", "quicksort-search")


def infer_by(method: str, scores: NDArray[Any], relevant: NDArray[np.bool_], loss: RankingLoss) -> MostViolatingRanking:
    """The most violating ranking by one of `METHODS`: split the list, rank the negatives, write u."""
    if loss.way != BY_STEP:
        what = "looks at the first places only" if loss.is_ranking else "is a single pass"
        raise ValueError(f"the loss {loss.name!r} {what} and has no step: method must be 'auto', not {method!r}")
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}: choose one of {['auto', 'histogram', *METHODS]}")
    if method in _CONCAVE and not loss.is_concave:
        raise ValueError(f"method {method!r} serves the loss 'ap' only, not {loss!r}")
    check_usable(scores, relevant)
    compiled = compile_loss(loss, scores.size)
    positives, positive_index = find(scores, relevant, True)
    sort_descending(positives, positive_index)
    query = make_query(compiled.addresses, compiled.table, positives, scores.size - positives.size)
    values, index = find(scores, relevant, False)
    centre = float(centre_of(positives, values.max()))
    negatives = import_module(METHODS[method]).METHODS[method](query, values, index)
    coefficients = np.empty_like(scores)
    rank_counts = np.zeros(positives.size + 2, np.int64)
    total = write_sorted(query, *negatives[:3], 0, negatives.values.size, centre, coefficients, rank_counts)
    delta, positive_total = finish(query, positive_index, rank_counts, centre, coefficients)
    value = delta + (total + positive_total)
    if not loss.is_checked:
        check_outcome(loss, value, delta)
    return MostViolatingRanking(value, delta, coefficients, negatives.n_steps, scores, relevant, rank_counts)
