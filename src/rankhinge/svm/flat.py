"""What may be wrong with a model (coefficients that are all 0, a gap that is too large) and what to do about it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rankhinge.solvers import SolverResult
from rankhinge.svm._fitting import warn_of_zeros, warn_user
from rankhinge.svm.protocol import FitObjective

__all__ = ["CONSTANT", "are_constant", "warn_of_flaws", "ways_out"]

CONSTANT = "The features are the same for all samples of a list: there is nothing to rank them by"
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
    # How large scores become on the way down: beside the margins that losses ask for, little and much.
    points = (objective.along(here, ahead, np.array([size / farthest])) for size in (1e-3, 1.0, 1e3))
    values = [float(objective.evaluate(point, coefficients=False).value[0]) for point in points]
    return min(values) < (1 - _ROUNDING) * float(bottom.value[0])


def warn_of_flaws(machine: Any, result: SolverResult, objective: FitObjective) -> None:
    """Warn if the model ranks nothing, or if it may be far from the optimum."""
    flat = np.flatnonzero(~result.coef.any(axis=0) & (result.gap <= machine.tol))
    if flat.size and machine._bound == "convex":
        tight = "bound='tight'" if "bound" in machine.get_params() else ""
        warn_of_zeros(flat.size, result.gap.size, ways_out(objective, int(flat[0]), tight))
    worst = float(np.max(result.gap))
    n_waiting = int(np.count_nonzero(np.isinf(result.objective) & np.isin(result.status, ["stopped", "time"])))
    if worst > machine.tol:
        states = set(result.status[result.gap > machine.tol].tolist())
        if "interrupted" in states:
            return
        meaning = "the objective may be that much above its minimum"
        if n_waiting:
            meaning = f"{n_waiting} of {result.gap.size} problems had not begun"
        elif "precision" in states:
            meaning = "that much may be rounding"
        elif machine._bound == "tight":
            meaning = "that of its last convex problem" if np.isfinite(worst) else "it was still descending"
        # More iterations do not help where rounding forbids a smaller gap, and a user who interrupted needs no advice.
        strength = "reach" if machine._bound == "tight" else "C"
        stuck = states <= {"stalled", "precision"}
        limit = f"Lower {strength}" if stuck else f"Increase max_iter, lower {strength}"
        if "time" in states:
            meaning = f"max_time = {machine.max_time:g} s was over, and {meaning}"
            limit = f"Increase max_time or tol, lower {strength}"
        advice = "" if states == {"stopped"} else f". {limit}, or scale the features"
        warn_user(
            f"{type(machine).__name__} stopped after {int(np.max(result.n_iter))} iterations with a relative gap of "
            f"{worst:.3g} > tol = {machine.tol:g}: {meaning}{advice}",
            ConvergenceWarning,
        )
