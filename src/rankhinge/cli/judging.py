"""The labels and metrics by which scores are judged."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge.cli.outcome import USAGE, CommandError
from rankhinge.datasets import DataError, LetorData
from rankhinge.metrics import Estimate, interval, per_query

__all__ = ["Judged", "intervals", "judged", "metrics_of", "options_of"]

_OF_QUERIES = ("ndcg@10", "ndcg", "ap", "rr")
_OF_ONE_LIST = ("ap", "auc")


class Judged(NamedTuple):
    """One problem: the relevant rows and the scores. `name` is the class that is ranked first, if there is one."""

    name: str | None
    relevance: NDArray[Any]
    scores: NDArray[np.float64]


def judged(data: LetorData, scores: NDArray[np.float64], model: Any, positive: float | None) -> list[Judged]:
    """The problems that belong to scores of shape (n,) or (n, K)."""
    classes = getattr(model, "classes_", None)
    if data.qid is not None and positive is not None:
        what = f"--class {positive:g} is for data without queries, but {data.path} has qid"
        raise CommandError(f"{what}: leave it out, or use --no-qid", USAGE)
    if data.qid is not None or (classes is None and positive is None):
        if scores.ndim > 1:
            raise CommandError("a model with several classes ranks rows, not documents of queries: use --no-qid")
        return [Judged(None, _graded(data), scores)]
    classes = np.unique(data.y) if classes is None else np.asarray(classes)
    _warn_of_other_labels(data, classes)
    if positive is not None and positive not in classes:
        known = ", ".join(f"{label:g}" for label in classes[:10])
        raise CommandError(f"--class {positive:g}: the classes are {known}", USAGE)
    if scores.ndim == 1:
        first = classes[-1] if positive is None else positive
        if positive is not None and positive != classes[-1]:
            scores = -scores
        return [_against_the_rest(data, first, scores)]
    chosen = classes if positive is None else [positive]
    return [_against_the_rest(data, label, scores[:, list(classes).index(label)]) for label in chosen]


def _warn_of_other_labels(data: LetorData, classes: NDArray[Any]) -> None:
    """Warn of labels that the model has not seen."""
    labels = np.unique(data.y)
    others = [f"{label:g}" for label in labels[~np.isin(labels, classes)][:5]]
    if others:
        known = ", ".join(f"{label:g}" for label in classes[:10])
        warnings.warn(
            f"{data.path} has the labels {', '.join(others)}, but the model's classes are {known}: such rows belong to "
            "none of them. --relevant-from GRADE makes grades binary",
            stacklevel=2,
        )


def _graded(data: LetorData) -> NDArray[Any]:
    """Labels as relevance; -1 and 1 are no and yes."""
    labels = np.unique(data.y)
    if np.isin(labels, (-1.0, 1.0)).all():
        return np.asarray(data.y > 0)
    if labels[0] < 0:
        row = int(np.argmin(data.y))
        raise DataError(data.path, f"the label of row {row} is {data.y[row]:g}: relevance must be 0 or above")
    return data.y


def _against_the_rest(data: LetorData, label: float, scores: NDArray[np.float64]) -> Judged:
    relevance = data.y == label
    if relevance.all() or not relevance.any():
        which = "all" if relevance.all() else "none"
        raise DataError(data.path, f"{which} of the {relevance.size} rows are of class {label:g}: nothing to rank")
    return Judged(f"{label:g}", relevance, scores)


def metrics_of(arguments: Any, data: LetorData) -> list[str]:
    """The requested metrics. Each name is checked before anything is computed."""
    names = arguments.metric or list(_OF_ONE_LIST if data.qid is None else _OF_QUERIES)
    for name in names:
        try:
            per_query(name, [1, 0], [1.0, 0.0], [0, 0])
        except (ValueError, TypeError) as error:
            raise CommandError(f"--metric: {error}", USAGE) from None
    return list(dict.fromkeys(names))


def options_of(arguments: Any, metric: str, model: Any) -> dict[str, Any]:
    """Further arguments of a metric."""
    if not metric.lower().startswith("ndcg"):
        return {}
    return {"gains": arguments.gains or getattr(model, "gains", "exponential")}


def intervals(arguments: Any, data: LetorData, problem: Judged, model: Any) -> dict[str, Estimate]:
    """Each metric with its interval."""
    return {
        metric: interval(
            metric,
            problem.relevance,
            problem.scores,
            qid=data.qid,
            confidence=arguments.confidence,
            random_state=arguments.seed,
            **options_of(arguments, metric, model),
        )
        for metric in metrics_of(arguments, data)
    }
