"""The lists of a learning-to-rank problem, from labels, query ids and weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankhinge._validation import QueryIds, as_numbers, encode_queries, refuse_dask, warn_user
from rankhinge.losses import RankingLoss
from rankhinge.problems import Lists, graded_lists
from rankhinge.problems.gains import Grades, check_relevance, gains_of, grades_of

__all__ = ["NoUsableList", "finite_gains", "ranking_lists", "weights_of_levels", "weights_of_rows", "without_words"]


class NoUsableList(ValueError):
    """No list has samples of different relevance."""


def without_words(y: Any) -> Any:
    """Relevance as it is, or as numbers if it is not made of these by itself."""
    refuse_dask(y, "y")
    labels = np.asarray(y)
    # scikit-learn would name neither y nor the entry that is no number.
    return as_numbers(y, "y") if labels.ndim > 0 and labels.dtype.kind in "USO" else y


def ranking_lists(
    y: NDArray[Any],
    qid: QueryIds | None,
    loss: RankingLoss,
    gains: str | ArrayLike,
    level_weights: str | ArrayLike | None,
    query_weight: NDArray[np.float64] | None,
    grades: Grades | None = None,
) -> Lists:
    """The lists of one learning-to-rank problem, from labels and query ids.

    `query_weight` has one entry a row (`weights_of_rows`); `grades` are those that there are if `y` is a part of the
    data and may lack some.
    """
    labels = np.asarray(y, dtype=np.float64)
    check_relevance(labels)
    if qid is None:
        queries, codes = np.zeros(1, np.int64), np.zeros(labels.size, np.int64)
    else:
        queries, codes = encode_queries(qid, labels.size, counted="y")
    graded = finite_gains(labels, gains)
    grades = grades_of(labels, gains) if grades is None else grades
    lists = graded_lists(
        np.searchsorted(grades.gains, graded),
        codes.astype(np.int64),
        loss,
        grades.gains,
        weights_of_levels(loss, grades.labels, level_weights),
        _weights_of_lists(query_weight, queries, codes),
    )
    if lists.n_lists == 0:
        weight = "" if query_weight is None else " and a positive weight"
        raise NoUsableList(f"none of the {queries.size} queries has both a relevant and a less relevant sample{weight}")
    return lists


def finite_gains(labels: NDArray[np.float64], gains: str | ArrayLike) -> NDArray[np.float64]:
    """γ of each sample's label, if all are finite."""
    with np.errstate(over="ignore"):
        graded = gains_of(labels, gains)
    for row in np.flatnonzero(~np.isfinite(graded))[:1]:
        raise ValueError(f"y[{row}] is {labels[row]:g}: its gain is not finite")
    return graded


def weights_of_levels(
    loss: RankingLoss, labels: NDArray[np.float64], level_weights: str | ArrayLike | None
) -> NDArray[np.float64] | None:
    """The weight of each label but 0, of all labels that there are, ascending from 0; None: they follow from gains."""
    if level_weights is None:
        if labels.size > 2 and not loss.is_graded:
            raise ValueError(
                f"y has {labels.size} grades, but the loss {loss.name!r} knows relevant and not relevant only: "
                "binarise y, or choose level_weights='uniform' or an array"
            )
        return None
    if isinstance(level_weights, str):
        if level_weights != "uniform":
            raise ValueError(f"level_weights must be 'uniform' or an array, got {level_weights!r}")
        return np.ones(labels.size - 1)
    weights = as_numbers(level_weights, "level_weights")
    if weights.ndim != 1 or not (np.isfinite(weights).all() and np.all(weights >= 0) and weights.any()):
        raise ValueError(f"level_weights must be finite numbers ≥ 0, not all 0, got {level_weights!r}")
    # In any scale; by the largest, since the sum of large ones may overflow.
    weights = weights / weights.max()
    if np.all(labels == np.floor(labels)) and weights.size >= labels[-1]:
        # By label, 1, 2, …: thresholds at labels that are missing have the samples of the next one above them.
        return np.diff(np.concatenate([[0.0], np.cumsum(weights)])[labels.astype(np.intp)])
    if weights.size != labels.size - 1:
        raise ValueError(
            f"level_weights has {weights.size} entries, but y has the grades {_shown(labels[1:])}: give a weight for "
            f"each of these {labels.size - 1}, or for labels that are integers one for each from 1 to {labels[-1]:g}"
        )
    return weights


def _shown(labels: NDArray[np.float64]) -> str:
    """Some labels, for a message."""
    return ", ".join(f"{label:g}" for label in labels[:6]) + (", …" if labels.size > 6 else "")


def weights_of_rows(query_weight: Any, qid: QueryIds | None, n_samples: int) -> NDArray[np.float64] | None:
    """The weight of each row's query, from an array with one entry a row or from a mapping by query id."""
    if query_weight is None:
        return None
    if not isinstance(query_weight, Mapping):
        rows = as_numbers(query_weight, "query_weight")
        if rows.shape != (n_samples,):
            raise ValueError(
                f"query_weight has shape {rows.shape}, but there are {n_samples} rows: give the weight of each row's "
                "query, or a mapping from queries to weights (of a Series: to_dict())"
            )
    else:
        if qid is None:
            raise ValueError("query_weight is a mapping by query, but there is no qid")
        queries, codes = encode_queries(qid, n_samples, counted="y")
        weights = [_weight_of(query, query_weight) for query in queries]
        if len(query_weight) and all(weight is None for weight in weights):
            strange, known = next(iter(query_weight)), queries.tolist()[0]
            # Either the mapping's queries are in another fold, or they are text where the ids are numbers.
            warn_user(f"query_weight knows none of the queries, but {strange!r}; a query is {known!r}: all weigh 1")
        rows = np.array([1.0 if weight is None else weight for weight in weights])[codes]
    return rows


def _weight_of(query: Any, mapping: Mapping[Any, Any]) -> float | None:
    """The weight that a mapping gives to a query; None if it does not know it.

    A query from an array of dates may be known as what it is there, or as the date that Python makes of it.
    """
    names = [query]
    if isinstance(query, np.datetime64):
        names += [query.item(), query.astype("datetime64[us]").item()]
    known = [name for name in names if name in mapping]
    if not known and not hasattr(type(mapping), "__missing__"):
        return None
    # A mapping without the query may still have an answer, such as a `defaultdict`.
    weight = mapping[known[0] if known else query]
    try:
        return float(weight)
    except (TypeError, ValueError):
        raise ValueError(f"query_weight of query {query} is {weight!r}: it must be a number") from None


def _weights_of_lists(
    rows: NDArray[np.float64] | None, queries: NDArray[Any], codes: NDArray[Any]
) -> NDArray[np.float64] | None:
    """One weight a list, from one for each row."""
    if rows is None:
        return None
    wrong = np.flatnonzero(~(np.isfinite(rows) & (rows >= 0)))
    if wrong.size:
        query = queries[codes[wrong[0]]]
        raise ValueError(f"the weight of query {query} is {rows[wrong[0]]}: it must be finite and ≥ 0")
    weights = np.empty(queries.size)
    weights[codes] = rows
    wrong = np.flatnonzero(weights[codes] != rows)
    if wrong.size:
        query = queries[codes[wrong[0]]]
        raise ValueError(f"query_weight[{wrong[0]}] differs from that of other rows of query {query}")
    return weights
