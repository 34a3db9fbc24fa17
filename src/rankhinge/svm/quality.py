"""The metric that belongs to a loss, which `score` returns, or another that a search is to judge by."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import column_or_1d

from rankhinge import metrics
from rankhinge._validation import check_mask, encode_queries, refuse_missing, warn_user, without_unlabelled
from rankhinge.inference import ranking_loss
from rankhinge.losses import RankingLoss
from rankhinge.metrics import QueryScorer
from rankhinge.metrics._per_query import metric_named
from rankhinge.problems.gains import gains_of
from rankhinge.problems.targets import check_label_names, check_mask_names, label_names

__all__ = ["by_list_of", "labels_quality", "list_metric", "list_quality", "lists_metric", "lists_quality"]


def list_quality(loss: RankingLoss, relevant: NDArray[np.bool_], scores: NDArray[np.float64]) -> float:
    """The loss's metric of one list: AP for ``"ap"`` and so on, ``1 - Δ`` for others; nan without both classes.

    Averaged over the orders of equal scores; for losses of one's own, given by a step, of the worst order.
    """
    if relevant.all() or not relevant.any():
        return float("nan")
    if not loss.is_ranking:
        return float(np.mean((scores >= 0) == relevant))
    if loss.metric is not None:
        return float(_by_name(loss.metric, relevant.astype(np.int64), scores, None)[0])
    if loss.is_graded:
        return float(_graded(loss, relevant.astype(np.float64), scores, np.zeros(scores.size, np.intp))[0])
    return 1.0 - ranking_loss(scores, relevant, loss)


def labels_quality(
    loss: RankingLoss,
    kind: str,
    classes: NDArray[Any],
    y: Any,
    scores: NDArray[np.float64],
    sample_weight: Any = None,
    mask: ArrayLike | None = None,
    average: str | None = "macro",
) -> Any:
    """Mean over the labels of the loss's metric, for scores (n,) or (n, K); those without both classes do not count.

    With ``average=None`` the figure of each label (K,), nan for those.
    """
    if average not in ("macro", None):
        raise ValueError(f"average must be 'macro' or None, got {average!r}")
    if sample_weight is not None:
        raise ValueError("sample_weight is not supported: ranking metrics have no sample weights")
    if kind == "multilabel":
        check_label_names(y, classes)
        check_mask_names(mask, label_names(y))
    rows = np.atleast_2d(scores.T)
    columns = _relevant_columns(kind, classes, without_unlabelled(y, mask), rows.shape)
    known = [slice(None)] * len(rows) if mask is None else list(check_mask(mask, rows.shape[::-1]).T)
    values = [list_quality(loss, column[on], row[on]) for column, row, on in zip(columns, rows, known, strict=True)]
    if np.isnan(values).all():
        warn_user("y has no label with both a positive and a negative sample: the score is nan")
    return np.array(values) if average is None else _mean(values)


def _relevant_columns(kind: str, classes: NDArray[Any], y: Any, shape: tuple[int, int]) -> list[NDArray[np.bool_]]:
    """For each of K problems, which of n samples are relevant."""
    y = y.toarray() if sparse.issparse(y) else np.asarray(y)
    y = y if kind == "multilabel" else column_or_1d(y)
    expected = shape[::-1] if kind == "multilabel" else shape[1:]
    if y.shape != expected:
        raise ValueError(f"y has shape {y.shape}, but {expected} fits X and the labels of training")
    refuse_missing(y, "y")
    if kind == "multilabel":
        for place in np.argwhere(~np.isin(y, (-1, 0, 1)))[:1]:
            raise ValueError(f"y[{place[0]}, {place[1]}] is {y[tuple(place)]}: labels must be 0/1 or -1/1")
        return list(y.T == 1)
    if y.size and not np.isin(y, classes).any():
        raise ValueError(f"y has none of the labels of training, {classes[:5].tolist()}; it has {y[:1].tolist()[0]!r}")
    return [y == label for label in (classes[1:] if kind == "binary" else classes)]


def lists_quality(loss: RankingLoss, labels: NDArray[Any], gains: Any, scores: NDArray[np.float64], qid: Any) -> float:
    """Mean of the loss's metric over the lists that have a relevant sample; graded gains count for the DCG family.

    Losses without a metric of their own, given by a step: over the lists that have both classes.
    """
    values = _by_list(loss, gains, labels, scores, qid)
    if np.isnan(values).all():
        warn_user(f"none of the {values.size} queries of y has a relevant sample: the score is nan")
    return _mean(values)


def _codes(qid: Any, n_samples: int) -> NDArray[np.intp]:
    """The number of each sample's list; without queries there is one."""
    return np.zeros(n_samples, np.intp) if qid is None else encode_queries(qid, n_samples)[1]


def _by_list(
    loss: RankingLoss, gains: Any, labels: NDArray[Any], scores: NDArray[np.float64], qid: Any
) -> NDArray[np.float64]:
    """The loss's metric of each list; nan for those without a relevant sample."""
    if loss.metric is not None:
        return _by_name(loss.metric, labels, scores, qid, **({"gains": gains} if loss.is_graded else {}))
    codes = _codes(qid, scores.size)
    if loss.is_graded:
        return _graded(loss, gains_of(labels, gains), scores, codes)
    return np.array([list_quality(loss, labels[rows] > 0, scores[rows]) for rows in _rows_of_lists(codes)])


def _by_name(
    name: str, labels: NDArray[Any], scores: NDArray[np.float64], qid: Any, **options: Any
) -> NDArray[np.float64]:
    """A metric of each list, by its name; nan for those without a relevant sample."""
    return metrics.per_query(name, labels, scores, _codes(qid, scores.size), no_positives="nan", **options)[1]


def _one_by_one(
    metric: Callable[..., float], labels: NDArray[Any], scores: NDArray[np.float64], qid: Any
) -> NDArray[np.float64]:
    """A metric of each list, by a function that would return its mean."""
    lists = _rows_of_lists(_codes(qid, scores.size))
    return np.array([metric(labels[rows], scores[rows], qid=_safe_indexing(qid, rows)) for rows in lists])


def _rows_of_lists(codes: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Which samples are in each list."""
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(codes.max(initial=-1) + 2))
    return [order[start:stop] for start, stop in pairwise(bounds)]


def _graded(
    loss: RankingLoss, gains: NDArray[np.float64], scores: NDArray[np.float64], codes: NDArray[np.intp]
) -> NDArray[np.float64]:
    """DCG over the best possible one, with the discount of the loss, of each list; nan for those without a gain.

    Averaged over the orders of equal scores: each of their ranks has the mean of their gains.
    """
    sizes = np.bincount(codes)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    ranks = np.arange(codes.size) - np.repeat(starts, sizes) + 1
    discount = loss.discounts(ranks, np.repeat(sizes, sizes))
    order = np.lexsort((-scores, codes))
    is_new = np.ones(order.size, np.bool_)
    is_new[1:] = (np.diff(scores[order]) != 0) | (np.diff(codes[order]) != 0)
    tied = np.flatnonzero(is_new)
    n_tied = np.diff(np.append(tied, order.size))
    means = np.add.reduceat(gains[order], tied) / n_tied
    reached = np.add.reduceat(np.repeat(means, n_tied) * discount, starts)
    best = np.add.reduceat(gains[np.lexsort((-gains, codes))] * discount, starts)
    return np.divide(reached, best, out=np.full(sizes.size, np.nan), where=best > 0)


def _mean(values: Any, weights: NDArray[np.float64] | None = None) -> float:
    """The mean of what is known; nan if nothing is."""
    known = ~np.isnan(values) if weights is None else ~np.isnan(values) & (weights > 0)
    if not known.any():
        return float("nan")
    # By the largest: sums of large weights overflow, products with tiny ones vanish.
    share = None if weights is None else weights[known] / weights[known].max()
    return float(np.average(np.asarray(values)[known], weights=share))


def list_metric(loss: RankingLoss, scoring: str | Callable[..., float] | None) -> Callable[..., float]:
    """A function of relevance (bool) and scores of one list; nan without both classes."""
    if scoring is None:
        return partial(list_quality, loss)
    metric: Callable[..., float]
    if isinstance(scoring, QueryScorer):
        metric = partial(_of_lists, scoring, qid=None)
    else:
        metric = _function(scoring) if callable(scoring) else _named(scoring)

    def judge(relevant: NDArray[np.bool_], scores: NDArray[np.float64]) -> float:
        return float("nan") if relevant.all() or not relevant.any() else float(metric(relevant, scores))

    return judge


def by_list_of(loss: RankingLoss, gains: Any, scoring: str | None) -> Callable[..., NDArray[np.float64]]:
    """A function of labels, scores and qid: the loss's metric of each list, or the one named; nan where it has none."""
    if scoring is None:
        return partial(_by_list, loss, gains)
    # What is wrong with the name is said at once.
    _named(scoring)
    return partial(_by_name, scoring, **({"gains": gains} if scoring.lower().startswith("ndcg") else {}))


def lists_metric(
    loss: RankingLoss,
    gains: Any,
    scoring: str | Callable[..., float] | None,
    weights: NDArray[np.float64] | None = None,
) -> Callable[..., float]:
    """A function of labels, scores and, as a keyword, qid: the mean over the lists that have a relevant sample.

    With weights (n,), those of each row's list, it is weighted by them.
    """
    if scoring is None or isinstance(scoring, str):
        by_list = by_list_of(loss, gains, scoring)
    else:
        metric: Callable[..., float] = (
            partial(_of_lists, scoring)
            if isinstance(scoring, QueryScorer)
            else partial(_of_relevant_lists, _function(scoring, qid=None))
        )
        if weights is None:
            return metric
        by_list = partial(_one_by_one, metric)

    def judge(labels: NDArray[Any], scores: NDArray[np.float64], qid: Any) -> float:
        values = by_list(labels, scores, qid)
        own = None
        if weights is not None:
            own = np.empty(values.size)
            own[_codes(qid, scores.size)] = weights
        return _mean(values, own)

    return judge


def _of_relevant_lists(metric: Callable[..., float], labels: NDArray[Any], scores: NDArray[Any], *, qid: Any) -> float:
    """A metric of the user's, of the lists that have a relevant sample; nan if there is none."""
    codes = np.zeros(scores.size, np.intp) if qid is None else encode_queries(qid, scores.size)[1]
    rows = np.flatnonzero(np.bincount(codes, labels > 0)[codes] > 0)
    if rows.size == 0:
        return float("nan")
    return float(metric(labels[rows], scores[rows], qid=None if qid is None else _safe_indexing(qid, rows)))


def _of_lists(scorer: QueryScorer, labels: NDArray[Any], scores: NDArray[Any], *, qid: Any) -> float:
    """What a scorer for queries makes of labels and scores; without queries there is one list."""
    return scorer.measure(labels, scores, qid=np.zeros(scores.size, np.intp) if qid is None else qid)


def _function(scoring: Callable[..., float], **keywords: Any) -> Callable[..., float]:
    """A function of the user's, if it is one of labels and scores, and of these keywords."""
    if hasattr(scoring, "_score_func"):
        raise ValueError(
            f"scoring={scoring!r} is a scorer, which asks an estimator: pass the function of labels and scores that it "
            "is made of, or the name of a metric"
        )
    try:
        inspect.signature(scoring).bind([], [], **keywords)
    except TypeError as error:
        wanted = ", ".join(["labels", "scores", *keywords])
        raise ValueError(
            f"scoring={scoring!r} cannot be called with ({wanted}): {error}. Pass a function that can, or the name "
            "of a metric"
        ) from None
    except ValueError:
        # Some builtins do not tell what they take.
        pass
    return scoring


def _named(scoring: str) -> Callable[..., float]:
    """A metric by its name, with its depth after an @."""
    try:
        function, options = metric_named(scoring)
    except ValueError as error:
        raise ValueError(f"scoring={scoring!r} is not known: {error}; or pass a function") from None
    # A depth may be needed, and is not to be missed only once the first path is scored.
    depth = inspect.signature(function).parameters.get("k")
    if depth is not None and depth.default is depth.empty and "k" not in options:
        raise ValueError(f"scoring={scoring!r} needs a depth: 'precision@5' for instance")
    return partial(function, **options)
