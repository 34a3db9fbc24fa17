"""Metrics as scorers for the tools of scikit-learn."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankhinge._validation import QueryIds, without_objects
from rankhinge.metrics._per_query import metric_named


def make_query_scorer(
    metric: str | Callable[..., float] = "ndcg", *, qid: QueryIds | None = None, **options: Any
) -> QueryScorer:
    """Make a scorer for scikit-learn's tools: the mean of a metric over the queries of the test rows.

    Call the scorer as ``scorer(estimator, X, y, qid=qid)``. It requests `qid` by itself. With metadata routing enabled,
    pass `qid` to `GridSearchCV.fit` or in the `params` of `cross_validate`. ``set_score_request(qid="groups")``
    requests it under another name. Without `qid` the scorer raises an error: it never pools all queries into one list.

    The scores are the estimator's `decision_function` or, if it has none, `predict`. For a classifier with two classes,
    the second class is the relevant one. If it has no `decision_function`, the probability of that class is the score.
    If the classes are 0 and 1, or False and True, `y` may be graded.

    Parameters
    ----------
    metric : str or callable
        The name of a metric of this module, ``"ndcg@10"`` and ``"rr"`` included, or
        ``metric(relevance, scores, *, qid, **options)``.
    qid : array of shape (n,), optional
        The query of each row, for tools that keep all rows in place. `permutation_importance` may then shuffle a
        `qid_column` and finds an importance of exactly 0. Such a scorer accepts X with n rows only.
    **options
        Further arguments of the metric, such as ``k``, ``ties`` or ``gains``. Queries without a relevant row are left
        out unless `no_positives` says otherwise, because a score of nan would end a search.

    Returns
    -------
    QueryScorer
        Higher is better. The scorer can be pickled if the metric and the options can.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> X, y, qid = [[3.0], [2.0], [1.0], [5.0]], [1, 0, 2, 3], ["a", "a", "b", "b"]
    >>> make_query_scorer("ndcg", k=1)(Ridge().fit(X, y), X, y, qid=qid)
    1.0
    """
    function, options = metric_named(metric, options) if isinstance(metric, str) else (metric, options)
    # In a grid search, a misspelt option would only show up as a score of nan.
    try:
        inspect.signature(function).bind([], [], qid=[], **options)
    except TypeError as error:
        depth = "; a depth is given as k=10 or in the name, as in 'ndcg@10'" if "'k'" in str(error) else ""
        raise TypeError(f"metric {metric!r} with the options {options}: {error}{depth}") from None
    scorer = QueryScorer(function, options, qid)
    if isinstance(metric, str):
        # The same goes for a wrong value.
        scorer.measure([1, 0], [1.0, 0.0], qid=[0, 0])
    return scorer


def _leaves_out_empty(function: Callable[..., float]) -> dict[str, Any]:
    """The option that makes a metric leave out queries without a relevant row, if it has one."""
    return {"no_positives": "skip"} if "no_positives" in inspect.signature(function).parameters else {}


def _relevance(y: ArrayLike, classes: NDArray[Any]) -> NDArray[Any]:
    """Relevance from the labels of a binary classifier. If its classes are 0 and 1, labels may be graded."""
    labels = without_objects(np.asarray(y))
    known = np.isin(labels, classes)
    if known.all():
        return np.asarray(labels == classes[1])
    if labels.dtype.kind not in "biuf" or np.asarray(classes).dtype.kind not in "biuf" or tuple(classes) != (0, 1):
        strange, (first, second) = labels[~known].ravel().tolist()[0], np.asarray(classes).tolist()
        raise ValueError(f"y has the label {strange!r}, but the estimator was fitted to {first!r} and {second!r} only")
    return labels


class QueryScorer:
    """The scorer that `make_query_scorer` returns. ``scorer(estimator, X, y, qid=qid)`` is a float."""

    def __init__(self, metric: Callable[..., float], options: dict[str, Any], qid: QueryIds | None = None) -> None:
        self._metric = metric
        self._options = options
        self._qid = qid
        # A scorer that knows its queries requests none.
        self._qid_request: bool | str | None = qid is None

    def __repr__(self) -> str:
        """Show the call that makes this scorer."""
        name = getattr(self._metric, "__name__", repr(self._metric))
        queries = "" if self._qid is None else ", qid=..."
        options = "".join(f", {key}={value!r}" for key, value in self._options.items())
        return f"make_query_scorer({name!r}{queries}{options})"

    def __call__(self, estimator: Any, X: Any, y: ArrayLike, *, qid: QueryIds | None = None) -> float:
        """Return the mean of the metric over the queries, for the estimator's scores of X."""
        if self._qid is not None:
            qid = self._known_queries(np.shape(X)[0], qid)
        elif qid is None and hasattr(estimator, "_queries_of"):
            # A ranker with a `qid_column`.
            qid = estimator._queries_of(X)
        if qid is None:
            raise ValueError(
                f"{self!r} got no qid. In cross-validation or a search, use SVMRanker(qid_column=...), or enable "
                "metadata routing (sklearn.set_config(enable_metadata_routing=True)) and pass qid; if all rows are "
                "one list, give them all the same qid"
            )
        classes: Any = getattr(estimator, "classes_", ())
        is_binary = len(classes) == 2
        if hasattr(estimator, "decision_function"):
            scores = estimator.decision_function(X)
        elif is_binary and hasattr(estimator, "predict_proba"):
            scores = estimator.predict_proba(X)[:, 1]
        else:
            scores = estimator.predict(X)
        return self.measure(_relevance(y, classes) if is_binary else y, scores, qid=qid)

    def _known_queries(self, n_rows: int, passed: QueryIds | None) -> QueryIds | None:
        """The queries that the scorer was made with, if their number fits X."""
        if passed is not None:
            raise ValueError(f"{self!r} has a qid already: do not pass another one")
        if len(self._qid) != n_rows:  # type: ignore[arg-type]
            raise ValueError(
                f"{self!r} has the queries of {len(self._qid)} rows, but X has {n_rows}: "  # type: ignore[arg-type]
                "for tools that select rows of X, use SVMRanker(qid_column=...)"
            )
        return self._qid

    def measure(self, relevance: ArrayLike, scores: ArrayLike, *, qid: QueryIds) -> float:
        """Return the mean of the metric over the queries for given scores, without an estimator."""
        options = _leaves_out_empty(self._metric) | self._options
        return float(self._metric(relevance, scores, qid=qid, **options))

    def set_score_request(self, *, qid: bool | str | None = True) -> QueryScorer:
        """Tell scikit-learn whether to pass `qid`, or under which other name to find it."""
        previous, self._qid_request = self._qid_request, qid
        try:
            self.get_metadata_routing()
        except ValueError:
            self._qid_request = previous
            raise
        return self

    def get_metadata_routing(self) -> Any:
        """Return the request for `qid` in the form of scikit-learn's metadata routing."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        request.score.add_request(param="qid", alias=self._qid_request)
        return request
