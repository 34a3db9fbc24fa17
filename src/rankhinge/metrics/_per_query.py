"""Metrics by name, query by query."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankhinge._validation import QueryIds
from rankhinge.metrics import _cut_values, _cuts
from rankhinge.metrics._evaluate import evaluate
from rankhinge.metrics._functions import auc, average_precision, ndcg, rbp, reciprocal_rank
from rankhinge.metrics._lists import Lists, finite, gains_of, refuse_infinite
from rankhinge.metrics._policies import Floats, check_k
from rankhinge.metrics._values import aucs, ndcgs, rbps, reciprocal_ranks

_VALUES: dict[Any, Callable[..., Floats]] = {
    average_precision: _cut_values.average_precisions,
    ndcg: ndcgs,
    reciprocal_rank: reciprocal_ranks,
    auc: aucs,
    rbp: rbps,
    _cuts.precision_at_k: _cut_values.precisions_at_k,
    _cuts.recall_at_k: _cut_values.recalls_at_k,
    _cuts.f1_at_k: _cut_values.f1s_at_k,
    _cuts.hit_at_k: _cut_values.hits_at_k,
    _cuts.r_precision: _cut_values.r_precisions,
    _cuts.partial_auc: _cut_values.partial_aucs,
    _cuts.top_push: _cut_values.top_pushes,
    _cuts.p_norm_push: _cut_values.p_norm_pushes,
    _cuts.bedroc: _cut_values.bedrocs,
}
_SHORT = {
    "ap": average_precision,
    "map": average_precision,
    "rr": reciprocal_rank,
    "mrr": reciprocal_rank,
    "roc_auc": auc,
    "precision": _cuts.precision_at_k,
    "p": _cuts.precision_at_k,
    "recall": _cuts.recall_at_k,
    "f1": _cuts.f1_at_k,
    "hit": _cuts.hit_at_k,
    "success": _cuts.hit_at_k,
}
# The option that a number after the @ sets.
_NUMBERS: dict[Any, str] = {_cuts.partial_auc: "max_fpr", _cuts.p_norm_push: "p", _cuts.bedroc: "alpha"}


def metric_named(name: str, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
    """The metric of this name and its options, with those that the name implies: ``"ndcg@10"`` means ``k=10``."""
    functions = {function.__name__: function for function in _VALUES} | _SHORT
    plain, at, number = name.partition("@") if isinstance(name, str) else ("", "", "")
    function = functions.get(plain.lower().replace("-", "_"))
    option = _NUMBERS.get(function, "k")
    if function is None or (at and option not in inspect.signature(function).parameters):
        near = [word + at + number for word in get_close_matches(plain.lower(), functions, n=1) if word != plain]
        meant = f" (did you mean {near[0]!r}?)" if near else ""
        raise ValueError(f"metric is {name!r}, choose one of {', '.join(functions)}, ndcg@k, precision@k, …{meant}")
    options = options or {}
    if not at:
        return function, options
    if option in options:
        raise ValueError(f"metric is {name!r}, which names a depth already: leave out {option}={options[option]}")
    return function, {option: _number(name, number, option)} | options


def _number(name: str, text: str, option: str) -> int | float:
    try:
        if option == "k":
            return check_k(int(text) if text.isdecimal() else text if text.endswith("%") else float(text))
        return float(text)
    except ValueError:
        wanted = "an integer of at least 1, or a share such as 1%" if option == "k" else "a number"
        raise ValueError(f"metric is {name!r}: after the @ there must be {wanted}") from None


def per_query(
    metric: str, relevance: ArrayLike, scores: ArrayLike, qid: QueryIds, **options: Any
) -> tuple[NDArray[Any], Floats]:
    """The value of a metric for each query, in the order in which the queries first appear.

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
        The distinct queries, without those that ``no_positives="skip"`` leaves out. The dtype is that of `qid` if `qid`
        is an array, else object.
    values : ndarray of shape (n_queries,)
        The value of each query. Their mean is what the metric itself returns.

    Examples
    --------
    >>> import numpy as np
    >>> queries, values = per_query("ap", [1, 0, 0, 1], [3, 2, 1, 0], np.array([7, 2, 7, 2]))
    >>> queries.tolist(), values.tolist()
    ([7, 2], [1.0, 0.5])
    """
    function, options = metric_named(metric, options)
    if qid is None:
        raise ValueError("qid is missing: give the query of each row")
    call = inspect.signature(function).bind(relevance, scores, qid=qid, **options)
    call.apply_defaults()
    return evaluate(_VALUES[function], *call.args, **call.kwargs)


def prepared(
    metric: str, relevance: ArrayLike, list_index: NDArray[np.intp], **options: Any
) -> Callable[[Floats], Floats]:
    """A metric as a function of scores alone: that of each list, nan where it is not defined.

    For those who judge many scores of the same samples: all but the scores is validated here, once.

    Parameters
    ----------
    metric, relevance, **options
        As for `per_query`.
    list_index : ndarray of shape (n_samples,)
        The number of each sample's list, from 0.
    """
    function, options = metric_named(metric, options)
    call = inspect.signature(function).bind(relevance, None, **options)
    call.apply_defaults()
    known = {name: value for name, value in call.kwargs.items() if name not in ("qid", "no_positives")}
    values_of, ties = _VALUES[function], known.pop("ties")
    gains = gains_of(finite("relevance", relevance), known.pop("gains", "binary"))
    lists = Lists(gains, gains, list_index, np.arange(list_index.max(initial=-1) + 1))
    without = lists.count(gains > 0) == 0

    def judge(scores: Floats) -> Floats:
        refuse_infinite("scores", scores)
        values = values_of(replace(lists, scores=scores), ties, **known)
        values[without] = np.nan
        return values

    return judge
