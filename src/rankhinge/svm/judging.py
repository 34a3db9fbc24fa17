"""`score` for data that enter by the door for containers: metrics whose scores stay where they are."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge._validation import warn_user
from rankhinge.losses import RankingLoss, get_loss
from rankhinge.metrics._by_counts import BY_COUNTS, discounted
from rankhinge.metrics._per_query import metric_named
from rankhinge.problems.door import Container
from rankhinge.problems.gains import gains_of
from rankhinge.problems.standing import Standing
from rankhinge.svm.quality import by_list

__all__ = ["labels_quality_elsewhere", "lists_quality_elsewhere"]


def _by_counts(loss: RankingLoss, scoring: str | None, one: Standing, gains: Any = "linear") -> float:
    """The metric of a list, if it can be computed from counts; nan without a relevant sample."""
    name = loss.metric if scoring is None else scoring
    if name is None and loss.is_graded:

        def discount(rank: NDArray[np.float64]) -> NDArray[np.float64]:
            ranks = rank.astype(np.int64)
            return loss.discounts(ranks, np.full(ranks.size, one.scores.size + one.n_others))

        value, is_graded = discounted(discount), True
    else:
        function, options = metric_named(name) if name is not None else (None, {})
        known = "" if function is None or options else function.__name__
        if known not in BY_COUNTS:
            what = f"scoring={scoring!r}" if scoring is not None else f"the metric of loss={loss.name!r}"
            raise ValueError(
                f"{what} is not one of {', '.join(BY_COUNTS)}, which can be computed on the workers: judge scores in "
                "memory, decision_function(X).compute() or predict(X).compute(), with rankhinge.metrics"
            )
        value, is_graded = BY_COUNTS[known], known == "ndcg"
    if one.scores.size == 0:
        return float("nan")
    own = gains_of(one.labels, gains) if is_graded else np.ones(one.labels.size)
    return float(value(one.scores, own, one.n_above, one.n_equal, one.n_others))


def labels_quality_elsewhere(
    container: Container,
    X: Any,
    y: Any,
    machine: Any,
    average: str | None,
    scoring: str | None = None,
) -> Any:
    """Mean over the labels of the loss's metric, as `rankhinge.svm.quality.labels_quality` has it."""
    if average not in ("macro", None):
        raise ValueError(f"average must be 'macro' or None, got {average!r}")
    loss, nothing = get_loss(machine.loss), np.zeros(0)
    # Metrics that counts do not determine are refused before anything is computed.
    _by_counts(loss, scoring, Standing(nothing, nothing, nothing.astype(int), nothing.astype(int), 0))
    found = container.standings(X, y, machine.decision_function, kind=machine._kind, classes=machine.classes_)
    values = np.array([_by_counts(loss, scoring, one) if one.n_others else np.nan for one in found])
    if np.isnan(values).all():
        warn_user("y has no label with both a positive and a negative sample: the score is nan")
    return values if average is None else _mean(values)


def lists_quality_elsewhere(
    container: Container, X: Any, y: Any, qid: Any, machine: Any, scoring: str | None = None
) -> float:
    """Mean of the loss's metric over the lists, as `rankhinge.svm.quality.lists_quality` has it."""
    loss, gains = get_loss(machine.loss), machine.gains

    def of_standing(one: Standing) -> float:
        return _by_counts(loss, scoring, one, gains)

    judge = partial(_judge, loss, gains, scoring)
    values = container.judged(
        X, y, machine.predict, qid=qid, qid_column=machine.qid_column, by_list=judge, of_standing=of_standing
    )
    if np.isnan(values).all():
        warn_user(f"none of the {values.size} queries of y has a relevant sample: the score is nan")
    return _mean(values)


def _judge(
    loss: RankingLoss, gains: Any, scoring: str | None, labels: NDArray[Any], scores: NDArray[Any], qid: Any
) -> NDArray[np.float64]:
    """On the workers."""
    return by_list(loss, gains, scoring, labels, qid)(scores)


def _mean(values: NDArray[np.float64]) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")
