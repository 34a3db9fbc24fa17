"""Whether a table of steps is that of a suitable loss, and if not, a list that shows it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["SuitabilityReport", "judge_steps"]


@dataclass(frozen=True)
class SuitabilityReport:
    """Outcome of `check_suitable`; truthy when the loss is suitable.

    Attributes
    ----------
    suitable : bool
    reason : str
        Empty, or which condition fails and where.
    witness : dict
        Empty, or the numbers of the failure; for a step that falls in j also ``scores`` and ``relevant`` of a
        small list on which the best ranks of two negatives, ``ranks``, are out of order.
    """

    suitable: bool
    reason: str = ""
    witness: dict[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.suitable


def judge_steps(steps: NDArray[np.float64]) -> SuitabilityReport:
    """Check ``steps[j - 1, i - 1] = t(j, i)`` of one list size against the conditions of `check_suitable`."""
    for condition in (_sign_and_size, _monotone_in_j):
        failure = condition(steps)
        if failure is not None:
            return failure
    return SuitabilityReport(True)


def _sign_and_size(steps: NDArray[np.float64]) -> SuitabilityReport | None:
    """A failure of ``t ≤ 0``, of finiteness, or of ``Δ ≤ 1``; None if there is none."""
    wrong = np.argwhere(~(np.isfinite(steps) & (steps <= 0)))
    if wrong.size:
        j, i = (int(index) + 1 for index in wrong[0])
        value = float(steps[j - 1, i - 1])
        return SuitabilityReport(
            False, f"step({j}, {i}) is {value}: it must be finite and ≤ 0", {"j": j, "i": i, "step": value}
        )
    largest = -float(steps.sum())
    if largest > 1 + 1e-9:
        return SuitabilityReport(
            False, f"the worst ranking has loss {largest:.6g}: it must not exceed 1", {"largest_loss": largest}
        )
    return None


def _monotone_in_j(steps: NDArray[np.float64]) -> SuitabilityReport | None:
    """A failure of ``t(j + 1, i) ≥ t(j, i)``, with a list that shows it; None if there is none."""
    # Differences of a table of discounts carry rounding errors of that table's size, not of their own.
    tolerance = 8 * np.finfo(np.float64).eps * max(1.0, float(np.abs(steps).max()))
    falls = np.argwhere(np.diff(steps, axis=0) < -tolerance)
    if not falls.size:
        return None
    j, i = (int(index) + 1 for index in falls[0])
    witness: dict[str, Any] = {
        "j": j,
        "i": i,
        "step": float(steps[j - 1, i - 1]),
        "next_step": float(steps[j, i - 1]),
    }
    witness.update(_out_of_order_scores(steps, j, i))
    reason = (
        f"step({j + 1}, {i}) = {witness['next_step']:.6g} < step({j}, {i}) = {witness['step']:.6g}: "
        f"negative {j + 1} may want a place above negative {j}"
    )
    return SuitabilityReport(False, reason, witness)


def _out_of_order_scores(steps: NDArray[np.float64], j: int, i: int) -> dict[str, Any]:
    """Scores on which negative j prefers rank i + 1 and negative j + 1, scoring less, prefers rank i.

    Positive i is set between the two thresholds at which the negatives would cross it, all other positives so
    far away that they decide nothing.
    """
    n_negatives, n_positives = steps.shape
    half = n_positives * n_negatives / 2
    lower, upper = -half * steps[j - 1, i - 1], -half * steps[j, i - 1]
    gap = upper - lower
    far = 4 * half * float(np.abs(steps).max()) + 1.0
    positives = np.array([far * (i - k) for k in range(1, n_positives + 1)])
    positives[i - 1] = lower + 0.75 * gap
    negatives = np.array([0.5 * gap * (k <= j) for k in range(1, n_negatives + 1)])
    values = np.cumsum(positives[None, :] - negatives[:, None] + half * steps, axis=1)
    values = np.concatenate([np.zeros((n_negatives, 1)), values], axis=1)
    ranks = n_positives + 1 - np.argmax(values[:, ::-1], axis=1)
    return {
        "scores": np.concatenate([positives, negatives]),
        "relevant": np.arange(n_positives + n_negatives) < n_positives,
        "ranks": (int(ranks[j - 1]), int(ranks[j])),
    }
