"""The metric that belongs to a loss, which `score` returns, or another that a search is to judge by."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankhinge import metrics
from rankhinge._validation import encode_queries
from rankhinge.inference import ranking_loss
from rankhinge.losses import RankingLoss

__all__ = ["labels_quality", "list_metric", "list_quality", "lists_metric", "lists_quality"]

_METRICS: dict[str, Any] = {
    "ap": metrics.average_precision,
    "ndcg": metrics.ndcg,
    "rr": metrics.reciprocal_rank,
    "auc": metrics.auc,
}
_METRICS_AT: dict[str, Any] = {"ndcg": metrics.ndcg, "precision": metrics.precision_at_k}


def list_quality(loss: RankingLoss, relevant: NDArray[np.bool_], scores: NDArray[np.float64]) -> float:
    """The loss's metric of one list: AP for ``"ap"`` and so on, ``1 - Δ`` for others; nan without both classes.

    Ties: averaged over their orders where `rankhinge.metrics` defines that, else the worst order.
    """
    if relevant.all() or not relevant.any():
        return float("nan")
    if loss.family == "zero-one":
        return float(np.mean((scores >= 0) == relevant))
    if loss.name in _METRICS:
        return float(_METRICS[loss.name](relevant.astype(np.int64), scores))
    return 1.0 - ranking_loss(scores, relevant, loss)


def labels_quality(
    loss: RankingLoss, kind: str, classes: NDArray[Any], y: Any, scores: NDArray[np.float64], sample_weight: Any = None
) -> float:
    """Mean over the labels of the loss's metric, for scores (n,) or (n, K); those without both classes do not count."""
    if sample_weight is not None:
        raise ValueError("sample_weight is not supported: ranking metrics have no sample weights")
    y = y.toarray() if sparse.issparse(y) else np.asarray(y)
    if kind == "multilabel":
        columns = list(y.T == 1)
    else:
        columns = [y == label for label in (classes[1:] if kind == "binary" else classes)]
    rows = np.atleast_2d(scores.T)
    values = [list_quality(loss, column, row) for column, row in zip(columns, rows, strict=True)]
    return float(np.nanmean(values)) if not np.isnan(values).all() else float("nan")


def lists_quality(loss: RankingLoss, labels: NDArray[Any], gains: Any, scores: NDArray[np.float64], qid: Any) -> float:
    """Mean of the loss's metric over the lists that have a relevant sample; graded gains count for NDCG."""
    if loss.name in _METRICS:
        options = {"gains": gains} if loss.name == "ndcg" else {}
        return float(_METRICS[loss.name](labels, scores, qid=qid, no_positives="skip", **options))
    codes = np.zeros(scores.size, np.intp) if qid is None else encode_queries(qid, scores.size)[1]
    values = [list_quality(loss, labels[codes == code] > 0, scores[codes == code]) for code in range(codes.max() + 1)]
    return float(np.nanmean(values)) if not np.isnan(values).all() else float("nan")


def list_metric(loss: RankingLoss, scoring: str | Callable[..., float] | None) -> Callable[..., float]:
    """A function of relevance (bool) and scores of one list; nan without both classes."""
    if scoring is None:
        return partial(list_quality, loss)
    metric = scoring if callable(scoring) else _named(scoring)

    def judge(relevant: NDArray[np.bool_], scores: NDArray[np.float64]) -> float:
        return float("nan") if relevant.all() or not relevant.any() else float(metric(relevant, scores))

    return judge


def lists_metric(loss: RankingLoss, gains: Any, scoring: str | Callable[..., float] | None) -> Callable[..., float]:
    """A function of labels, scores and, as a keyword, qid: the mean over the lists that have a relevant sample."""
    if scoring is None:
        return lambda labels, scores, qid: lists_quality(loss, labels, gains, scores, qid)
    if callable(scoring):
        return scoring
    options = {"gains": gains} if scoring.startswith("ndcg") else {}
    return partial(_named(scoring), no_positives="skip", **options)


def _named(scoring: str) -> Callable[..., float]:
    """A metric by its name, with its depth after an @."""
    name, at, depth = scoring.partition("@")
    if not at and name in _METRICS:
        return _METRICS[name]
    if depth.isdecimal() and int(depth) > 0 and name in _METRICS_AT:
        return partial(_METRICS_AT[name], k=int(depth))
    known = [*_METRICS, *(f"{name}@k" for name in _METRICS_AT)]
    raise ValueError(f"scoring={scoring!r} is not known: choose one of {known}, or pass a function")
