"""The metric that belongs to a loss, which `score` returns, or another that a search is to judge by.

A search judges many scores of the same samples. So each metric here is a function of scores alone: labels, queries and
the metric's own options are looked at once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import column_or_1d

from rankhinge._validation import check_mask, encode_queries, refuse_missing, warn_user, without_unlabelled
from rankhinge.inference.core import loss_by_scores
from rankhinge.losses import RankingLoss
from rankhinge.metrics import QueryScorer
from rankhinge.metrics._per_query import metric_named, prepared
from rankhinge.problems.gains import gains_of
from rankhinge.problems.targets import check_label_names, check_mask_names, label_names

__all__ = ["by_list", "labels_quality", "list_metric", "lists_metric", "lists_quality"]

ByList: TypeAlias = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Of scores (n,) a value of each list."""


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
    judges = [list_metric(loss, None, column[on]) for column, on in zip(columns, known, strict=True)]
    values = [judge(row[on]) for judge, row, on in zip(judges, rows, known, strict=True)]
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
    values = by_list(loss, gains, None, labels, qid)(scores)
    if np.isnan(values).all():
        warn_user(f"none of the {values.size} queries of y has a relevant sample: the score is nan")
    return _mean(values)


def _accuracy(relevant: NDArray[np.bool_], scores: NDArray[np.float64]) -> float:
    """How many signs are right."""
    return float(np.mean((scores >= 0) == relevant))


def _codes(qid: Any, n_samples: int) -> NDArray[np.intp]:
    """The number of each sample's list; without queries there is one."""
    return np.zeros(n_samples, np.intp) if qid is None else encode_queries(qid, n_samples)[1]


def by_list(loss: RankingLoss, gains: Any, scoring: str | None, labels: NDArray[Any], qid: Any) -> ByList:
    """The loss's metric of each list, or the one named, as a function of scores; nan without a relevant sample."""
    name, codes = loss.metric if scoring is None else _checked(scoring), _codes(qid, labels.size)
    if name is not None:
        is_graded = loss.is_graded if scoring is None else name.lower().startswith("ndcg")
        return prepared(name, labels, codes, **({"gains": gains} if is_graded else {}))
    if loss.is_graded:
        return partial(_graded, loss, gains_of(labels, gains), codes)
    rows = _rows_of_lists(codes)
    judges = [list_metric(loss, None, labels[mine] > 0) for mine in rows]
    return lambda scores: np.array([judge(scores[mine]) for judge, mine in zip(judges, rows, strict=True)])


def _one_by_one(metric: Callable[..., float], labels: NDArray[Any], qid: Any) -> ByList:
    """A metric of each list, by a function that would return its mean."""
    parts = [(rows, labels[rows], _safe_indexing(qid, rows)) for rows in _rows_of_lists(_codes(qid, labels.size))]
    return lambda scores: np.array([metric(own, scores[rows], qid=queries) for rows, own, queries in parts])


def _rows_of_lists(codes: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Which samples are in each list."""
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(codes.max(initial=-1) + 2))
    return [order[start:stop] for start, stop in pairwise(bounds)]


def _graded(
    loss: RankingLoss, gains: NDArray[np.float64], codes: NDArray[np.intp], scores: NDArray[np.float64]
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


def list_metric(
    loss: RankingLoss, scoring: str | Callable[..., float] | None, relevant: NDArray[np.bool_]
) -> Callable[[NDArray[np.float64]], float]:
    """The loss's metric of one list, or another, as a function of its scores; nan without both classes.

    AP for ``"ap"`` and so on, ``1 - Δ`` for losses without a metric. Averaged over the orders of equal scores; for
    losses of one's own, given by a step, of the worst order.
    """
    if isinstance(scoring, QueryScorer):
        metric: Callable[..., float] = partial(_of_lists, scoring, relevant, qid=None)
    elif callable(scoring):
        metric = partial(_function(scoring), relevant)
    else:
        name = loss.metric if scoring is None else _checked(scoring)
        codes = np.zeros(relevant.size, np.intp)
        if scoring is None and not loss.is_ranking:
            metric = partial(_accuracy, relevant)
        elif name is not None:
            of_lists = prepared(name, relevant, codes)
            metric = lambda scores: of_lists(scores)[0]  # noqa: E731
        elif loss.is_graded:
            gains = relevant.astype(np.float64)
            metric = lambda scores: _graded(loss, gains, codes, scores)[0]  # noqa: E731
        else:
            metric = lambda scores: 1.0 - loss_by_scores(scores, relevant, loss)  # noqa: E731
    if relevant.all() or not relevant.any():
        return lambda scores: float("nan")
    return lambda scores: float(metric(scores))


def lists_metric(
    loss: RankingLoss,
    gains: Any,
    scoring: str | Callable[..., float] | None,
    labels: NDArray[Any],
    qid: Any,
    weights: NDArray[np.float64] | None = None,
) -> Callable[[NDArray[np.float64]], float]:
    """The mean over the lists that have a relevant sample, as a function of scores.

    With weights (n,), those of each row's list, it is weighted by them.
    """
    if scoring is None or isinstance(scoring, str):
        values_of = by_list(loss, gains, scoring, labels, qid)
    else:
        metric: Callable[..., float] = (
            partial(_of_lists, scoring)
            if isinstance(scoring, QueryScorer)
            else partial(_of_relevant_lists, _function(scoring, qid=None))
        )
        if weights is None:
            return partial(metric, labels, qid=qid)
        values_of = _one_by_one(metric, labels, qid)
    own = None
    if weights is not None:
        codes = _codes(qid, labels.size)
        own = np.empty(codes.max(initial=-1) + 1)
        own[codes] = weights
    return lambda scores: _mean(values_of(scores), own)


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


def _checked(scoring: str) -> str:
    """The name of a metric, with its depth after an @."""
    try:
        function, options = metric_named(scoring)
    except ValueError as error:
        raise ValueError(f"scoring={scoring!r} is not known: {error}; or pass a function") from None
    depth = inspect.signature(function).parameters.get("k")
    if depth is not None and depth.default is depth.empty and "k" not in options:
        raise ValueError(f"scoring={scoring!r} needs a depth: 'precision@5' for instance")
    return scoring
