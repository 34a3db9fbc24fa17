"""Metrics by name, query by query."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike, NDArray

from rankhinge._validation import QueryIds
from rankhinge.metrics._evaluate import evaluate
from rankhinge.metrics._functions import auc, average_precision, ndcg, precision_at_k, rbp, reciprocal_rank
from rankhinge.metrics._policies import Floats
from rankhinge.metrics._values import aucs, average_precisions, ndcgs, precisions_at_k, rbps, reciprocal_ranks

_VALUES: dict[Any, Callable[..., Floats]] = {
    average_precision: average_precisions,
    ndcg: ndcgs,
    reciprocal_rank: reciprocal_ranks,
    auc: aucs,
    rbp: rbps,
    precision_at_k: precisions_at_k,
}


_SHORT = {"ap": average_precision, "rr": reciprocal_rank, "precision": precision_at_k}


def metric_named(name: str, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
    """A metric by its name, and its options with those that the name implies: ``"ndcg@10"`` is NDCG with ``k=10``."""
    functions = {function.__name__: function for function in _VALUES} | _SHORT
    plain, at, depth = name.partition("@") if isinstance(name, str) else (None, "", "")
    function = functions.get(plain)
    takes_depth = function is not None and "k" in inspect.signature(function).parameters
    if function is None or (at and not takes_depth):
        raise ValueError(f"metric is {name!r}, choose one of {', '.join(functions)}, ndcg@k, precision@k")
    if at and not (depth.isdecimal() and int(depth) > 0):
        raise ValueError(f"metric is {name!r}: after the @ there must be an integer of at least 1")
    options = options or {}
    if at and "k" in options:
        raise ValueError(f"metric is {name!r}, with its depth in its name: k={options['k']} is a second one")
    return function, {"k": int(depth)} | options if at else options


def per_query(
    metric: str, relevance: ArrayLike, scores: ArrayLike, qid: QueryIds, **options: Any
) -> tuple[NDArray[Any], Floats]:
    """Values of a metric query by query, in the order in which the queries first appear.

    Parameters
    ----------
    metric : str
        The name of a metric of this module, such as ``"ndcg"`` or ``"ndcg@10"``; ``"ap"`` is average precision,
        ``"rr"`` the reciprocal rank.
    relevance, scores, qid : array-like of shape (n_samples,)
        As for the metric itself.
    **options
        Further arguments of the metric, such as ``k``, ``ties`` or ``no_positives``.

    Returns
    -------
    queries : ndarray of shape (n_queries,)
        The distinct queries, less those left out by ``no_positives="skip"``. Of `qid`'s dtype if
        that was an array, else of dtype object.
    values : ndarray of shape (n_queries,)
        Their values, whose mean is what the metric itself returns.

    Examples
    --------
    >>> import numpy as np
    >>> queries, values = per_query("ap", [1, 0, 0, 1], [3, 2, 1, 0], np.array([7, 2, 7, 2]))
    >>> queries.tolist(), values.tolist()
    ([7, 2], [1.0, 0.5])
    """
    function, options = metric_named(metric, options)
    if qid is None:
        raise ValueError("qid is missing: one query per row is needed")
    call = inspect.signature(function).bind(relevance, scores, qid=qid, **options)
    call.apply_defaults()
    return evaluate(_VALUES[function], *call.args, **call.kwargs)
