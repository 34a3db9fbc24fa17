"""From the caller's arrays to validated rows: gains, scores and the list of each row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankhinge._validation import QueryIds, as_numbers, encode_queries
from rankhinge.metrics._policies import Floats, check_choice


@dataclass(frozen=True)
class Lists:
    """Validated rows, in the order of the input."""

    gains: Floats  # (n_samples,), at least 0; 0 or 1 for binary metrics
    scores: Floats  # (n_samples,)
    list_index: NDArray[np.intp]  # (n_samples,), the list of each row
    queries: NDArray[Any]  # (n_lists,)

    @property
    def sizes(self) -> Floats:
        """How many rows each list has."""
        return np.bincount(self.list_index, minlength=len(self.queries)).astype(np.float64)

    def count(self, rows: NDArray[np.bool_]) -> Floats:
        """Count the marked rows of each list."""
        counts = np.bincount(self.list_index[rows], minlength=len(self.queries))
        return counts.astype(np.float64)


def validated(relevance: ArrayLike, scores: ArrayLike, qid: QueryIds | None, gains: Any) -> Lists:
    labels, values = finite("relevance", relevance), finite("scores", scores)
    if len(labels) != len(values):
        raise ValueError(f"relevance has {len(labels)} entries, scores {len(values)}")
    if len(values) == 0:
        raise ValueError("relevance and scores are empty")
    for row in np.flatnonzero(labels < 0)[:1]:
        raise ValueError(f"relevance[{row}] is {labels[row]:g}, it must be at least 0")
    if qid is None:
        queries, list_index = np.empty(1, dtype=object), np.zeros(len(values), dtype=np.intp)
    else:
        queries, list_index = encode_queries(qid, len(values))
    return Lists(gains_of(labels, gains), values, list_index, queries)


def finite(name: str, values: ArrayLike) -> Floats:
    if np.iscomplexobj(values):
        raise ValueError(f"{name} must be real")
    array = as_numbers(values, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, its shape is {array.shape}")
    refuse_infinite(name, array)
    return array


def refuse_infinite(name: str, values: Floats) -> None:
    for row in np.flatnonzero(~np.isfinite(values))[:1]:
        raise ValueError(f"{name}[{row}] is {values[row]}")


def gains_of(relevance: Floats, gains: Any) -> Floats:
    if isinstance(gains, str):
        if gains == "binary":
            return (relevance > 0).astype(np.float64)
        check_choice("gains", gains, ("linear", "exponential"))
        with np.errstate(over="ignore"):
            values = relevance if gains == "linear" else np.exp2(relevance) - 1
    elif callable(gains):
        values = np.asarray(gains(relevance), dtype=np.float64)
        if values.shape != relevance.shape:
            raise ValueError(f"gains gave shape {values.shape} for relevance {relevance.shape}")
    else:
        values = _looked_up(relevance, finite("gains", gains))
    for row in np.flatnonzero(~(np.isfinite(values) & (values >= 0)))[:1]:
        raise ValueError(
            f"the gain of relevance[{row}] = {relevance[row]:g} is {values[row]:g}, it must be finite and at least 0"
        )
    return values


def _looked_up(relevance: Floats, table: Floats) -> Floats:
    for row in np.flatnonzero((relevance % 1 != 0) | (relevance >= len(table)))[:1]:
        raise ValueError(
            f"relevance[{row}] is {relevance[row]:g}, "
            f"gains as an array of {len(table)} need integers from 0 to {len(table) - 1}"
        )
    return table[relevance.astype(np.intp)]
