"""Coefficients that are all 0: why, and what there is to be done about them."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankhinge.svm.protocol import FitObjective

__all__ = ["CONSTANT", "are_constant", "ways_out"]

CONSTANT = "The features are the same for all samples of a list: there is nothing to rank them by"
# How large scores become on the way down from 0: beside the margins that losses ask for, little and much.
_SIZES = (1e-3, 1.0, 1e3)
# A fall that is less than this part is rounding.
_ROUNDING = 1e-9


def are_constant(objective: FitObjective, k: int) -> bool:
    """Whether the features of problem k are equal for all samples of each list."""
    return not objective.variances(k).any()


def ways_out(objective: FitObjective, k: int, instead: str = "") -> str:
    """What there is to be done about coefficients of problem k that are all 0, by the convex bound.

    `instead` names what else the machine offers.
    """
    if are_constant(objective, k):
        return CONSTANT
    if _falls(objective, k):
        return f"Scale the features, {instead and 'choose ' + instead + ', '}or choose a larger C"
    return f"The bound of this loss has its minimum there whatever C is. Choose {instead or 'another loss'}"


def _falls(objective: FitObjective, k: int) -> bool:
    """Whether J falls from 0 along its slope, however small the features are; two passes over X."""
    here = objective.zeros(np.array([k]))
    bottom = objective.evaluate(here)
    u: Any = bottom.coefficients
    slope = objective.adjoint(u)
    largest = np.max(np.abs(slope))
    if largest == 0.0:
        return False
    ahead = objective.score(-slope / largest, np.array([k]))
    farthest = float(objective.largest(ahead)[0])
    if farthest == 0.0:
        return False
    points = (objective.along(here, ahead, np.array([size / farthest])) for size in _SIZES)
    values = [float(objective.evaluate(point, coefficients=False).value[0]) for point in points]
    return min(values) < (1 - _ROUNDING) * float(bottom.value[0])
