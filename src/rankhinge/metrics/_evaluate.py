"""The frame of all metrics: validation before the formula, the policy for undefined values after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankhinge._validation import QueryIds, warn_user
from rankhinge.metrics._cut_values import average_precisions
from rankhinge.metrics._lists import validated
from rankhinge.metrics._policies import Floats, check_choice


def evaluate(
    core: Callable[..., Floats],
    relevance: ArrayLike,
    scores: ArrayLike,
    *,
    qid: QueryIds | None,
    ties: str,
    no_positives: str | None,
    gains: Any = "binary",
    **options: Any,
) -> tuple[NDArray[Any], Floats]:
    """Validate, compute the value of each list and apply the policy to the undefined ones."""
    threshold = ("threshold",) if core is average_precisions and options.get("k") is None else ()
    check_choice("ties", ties, ("average", "worst", "best", "index", *threshold))
    no_positives = "nan" if no_positives is None else no_positives
    check_choice("no_positives", no_positives, ("nan", "zero", "one", "raise", "skip"))
    lists = validated(relevance, scores, qid, gains)
    values = core(lists, ties, **options)

    n_positives = lists.count(lists.gains > 0)
    undefined = (n_positives == 0) | np.isnan(values)
    if no_positives == "skip":
        return lists.queries[~undefined], values[~undefined]
    if no_positives == "raise" and undefined.any():
        where = int(np.flatnonzero(undefined)[0])
        query = lists.queries[where : where + 1].tolist()[0]
        lacking = "irrelevant" if n_positives[where] else "relevant"
        name = "the list" if qid is None else f"query {query!r}"
        raise ValueError(f"{name} has no {lacking} sample")
    values[undefined] = {"zero": 0.0, "one": 1.0}.get(no_positives, np.nan)
    return lists.queries, values


def mean(found: tuple[NDArray[Any], Floats], no_positives: str | None = "nan") -> float:
    """The mean over the lists. If it is nan and nobody asked for nan, a warning explains why."""
    _, values = found
    n_undefined = int(np.isnan(values).sum()) if no_positives is None else 0
    if n_undefined:
        which = "the list has" if len(values) == 1 else f"{n_undefined} of {len(values)} queries have"
        warn_user(
            f"{which} no relevant sample (or, for auc, no irrelevant one), so the metric is nan. Choose a policy: "
            "no_positives='skip' leaves them out, 'zero' and 'one' count them as 0 and 1, 'nan' silences this warning"
        )
    return float(values.mean()) if len(values) else float("nan")
