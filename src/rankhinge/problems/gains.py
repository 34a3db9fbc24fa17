"""Graded labels and their gains."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankhinge._validation import as_numbers

__all__ = ["Grades", "check_relevance", "gains_of", "grades_of"]


class Grades(NamedTuple):
    """The different gains, ascending from 0, and the least label that has each."""

    labels: NDArray[np.float64]
    gains: NDArray[np.float64]


def check_relevance(labels: NDArray[np.float64]) -> None:
    """Raise unless all labels are finite and not negative."""
    wrong = np.flatnonzero(~(np.isfinite(labels) & (labels >= 0)))
    if wrong.size:
        raise ValueError(f"y[{wrong[0]}] is {labels[wrong[0]]:g}: relevance must be finite and not negative")


def gains_of(labels: NDArray[np.float64], gains: str | ArrayLike) -> NDArray[np.float64]:
    """γ of each sample's label: ``2^y - 1``, ``y``, or ``gains[y]``."""
    if isinstance(gains, str):
        if gains not in ("exponential", "linear"):
            raise ValueError(f"gains must be 'exponential', 'linear' or an array, got {gains!r}")
        return np.exp2(labels) - 1.0 if gains == "exponential" else labels
    table = as_numbers(gains, "gains")
    ascends = table.ndim == 1 and table.size > 1 and table[0] == 0 and np.all(np.diff(table) > 0)
    if not (ascends and np.isfinite(table[-1])):
        raise ValueError(f"gains must ascend from 0, one for each label, got {gains!r}")
    wrong = np.flatnonzero((labels != np.floor(labels)) | (labels >= table.size))
    if wrong.size:
        raise ValueError(
            f"y[{wrong[0]}] is {labels[wrong[0]]:g}: gains has entries for the labels 0 to {table.size - 1}"
        )
    return table[labels.astype(np.intp)]


def grades_of(labels: NDArray[np.float64], gains: str | ArrayLike) -> Grades:
    """The grades that there are, and 0."""
    different = np.unique(np.append(labels, 0.0))
    values, first = np.unique(gains_of(different, gains), return_index=True)
    return Grades(different[first], values)
