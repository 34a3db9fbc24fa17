"""Whether a table of steps belongs to a suitable loss and, if not, a list that shows why."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge.losses.base import BY_STEP, RankingLoss

__all__ = ["SuitabilityReport", "jit_functions", "judge_compiled", "judge_loss", "judge_steps"]


class Inspection(NamedTuple):
    """How many values of a compiled step are checked.

    On lists of up to `short` samples all of them, if there are at most `values`; on longer lists a sample of `enough`
    for each size. The step may loop over the positives itself: the more there are, the fewer values.
    """

    short: int = 256
    values: int = 1 << 16
    work: int = 1 << 24
    enough: int = 12


INSPECTION = Inspection()


@dataclass(frozen=True)
class SuitabilityReport:
    """The result of `check_suitable`. It is truthy if the loss is suitable.

    Attributes
    ----------
    suitable : bool
    reason : str
        Which condition fails and where. Empty if the loss is suitable.
    witness : dict
        The numbers of the failure. Empty if the loss is suitable. If the step falls with j, it also holds ``scores``
        and ``relevant`` of a small list on which the best ranks of two negatives, ``ranks``, are out of order.

    Examples
    --------
    >>> from rankhinge import losses
    >>> losses.check_suitable(losses.AveragePrecision(), n_positives=3, n_negatives=5).suitable
    True
    """

    suitable: bool
    reason: str = ""
    witness: dict[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.suitable


def judge_loss(loss: RankingLoss, n_positives: int, n_negatives: int) -> SuitabilityReport:
    """Check all steps of a loss on lists of one size, by `judge_steps`."""
    if loss.way != BY_STEP:
        what = "looks at the first places only" if loss.is_ranking else "decomposes over samples"
        return SuitabilityReport(False, f"the loss {loss.name!r} {what} and has no step")
    steps = np.array(
        [
            [loss.step(j, i, n_positives, n_negatives) for i in range(1, n_positives + 1)]
            for j in range(1, n_negatives + 1)
        ],
        dtype=np.float64,
    )
    return judge_steps(steps)


def judge_steps(
    steps: NDArray[np.float64], js: NDArray[np.int64] | None = None, is_: NDArray[np.int64] | None = None
) -> SuitabilityReport:
    """Check ``steps[a, b] = t(js[a], is_[b])`` on lists of one size against the conditions of `check_suitable`.

    By default these are all j and i. If only some are given, their sum exceeds 1 only if the sum of all does.
    """
    js = np.arange(1, steps.shape[0] + 1) if js is None else js
    is_ = np.arange(1, steps.shape[1] + 1) if is_ is None else is_
    for condition in (_sign_and_size, _monotone_in_j):
        failure = condition(steps, js, is_)
        if failure is not None:
            return failure
    return SuitabilityReport(True)


def _sign_and_size(
    steps: NDArray[np.float64], js: NDArray[np.int64], is_: NDArray[np.int64]
) -> SuitabilityReport | None:
    """A step that is positive or not finite, or a loss above 1. None if all is well."""
    for a, b in np.argwhere(~(np.isfinite(steps) & (steps <= 0)))[:1]:
        j, i, value = int(js[a]), int(is_[b]), float(steps[a, b])
        return SuitabilityReport(
            False, f"step({j}, {i}) is {value}: it must be finite and ≤ 0", {"j": j, "i": i, "step": value}
        )
    largest = -float(steps.sum())
    if largest > 1 + 1e-9:
        return SuitabilityReport(
            False, f"the worst ranking has loss {largest:.6g}: it must not exceed 1", {"largest_loss": largest}
        )
    return None


def _monotone_in_j(
    steps: NDArray[np.float64], js: NDArray[np.int64], is_: NDArray[np.int64]
) -> SuitabilityReport | None:
    """A failure of ``t(j + 1, i) ≥ t(j, i)``, with a list that shows it if all steps are given. None if all is well."""
    # Differences of discounts have rounding errors relative to the discounts, not to the differences.
    tolerance = 8 * np.finfo(np.float64).eps * max(1.0, float(np.abs(steps).max()))
    follows = np.diff(js) == 1
    falls = np.argwhere((np.diff(steps, axis=0) < -tolerance) & follows[:, None])
    if not falls.size:
        return None
    a, b = falls[0]
    j, i = int(js[a]), int(is_[b])
    witness: dict[str, Any] = {"j": j, "i": i, "step": float(steps[a, b]), "next_step": float(steps[a + 1, b])}
    if steps.shape == (js[-1], is_[-1]):
        witness.update(_out_of_order_scores(steps, j, i))
    reason = (
        f"step({j + 1}, {i}) = {witness['next_step']:.6g} < step({j}, {i}) = {witness['step']:.6g}: "
        f"negative {j + 1} may want a place above negative {j}"
    )
    return SuitabilityReport(False, reason, witness)


def _out_of_order_scores(steps: NDArray[np.float64], j: int, i: int) -> dict[str, Any]:
    """Scores on which negative j prefers rank i + 1 and negative j + 1, scoring less, prefers rank i.

    Positive i lies between the two thresholds at which the negatives would cross it. All other positives are too far
    away to matter.
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


def jit_functions(step: Any, partial_sum: Any) -> tuple[Any, Any]:
    """Compile a user's functions. If numba cannot, raise an error with its message."""
    from numba import njit, types
    from numba.core.errors import NumbaError

    compiled = []
    for name, function in (("step", step), ("partial_sum", partial_sum)):
        made = None if function is None else njit(function)
        try:
            if made is not None:
                made.compile((types.int64,) * 4)
        except NumbaError as error:
            raise ValueError(f"{name} {function!r} cannot be compiled: {error}") from None
        compiled.append(made)
    return compiled[0], compiled[1]


@cache
def _sampler() -> Any:
    """``sample(function, js, is_, P, N)``: the values of a compiled function. It keeps the GIL and passes errors on."""
    from numba import njit

    # numba infers the types.
    @njit
    def sample(function, js, is_, n_positives, n_negatives):  # type: ignore[no-untyped-def]
        values = np.empty((js.size, is_.size))
        for a in range(js.size):
            for b in range(is_.size):
                values[a, b] = function(js[a], is_[b], n_positives, n_negatives)
        return values

    return sample


def judge_compiled(step: Any, partial_sum: Any, n_samples: int) -> str:
    """Why a compiled step (and its partial sum) is unsuitable for lists of this length. Empty if no reason was found.

    Lists of this length and shorter ones are checked, each with about twenty divisions into positives and negatives.
    """
    sample = _sampler()
    for size in sorted({min(n_samples, INSPECTION.short), n_samples}):
        counts = np.unique(np.geomspace(1, max(size - 1, 1), 10).astype(np.int64))
        for n_positives in np.unique(np.concatenate([counts, size - counts])).tolist():
            n_negatives = size - n_positives
            if n_positives < 1 or n_negatives < 1:
                continue
            js, is_ = _places(n_positives, n_negatives)
            reason = _judge_sample(sample, step, partial_sum, js, is_, n_positives, n_negatives)
            if reason:
                return f"with {n_positives} positives and {n_negatives} negatives, {reason}"
    return ""


def _places(n_positives: int, n_negatives: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The j and i to check: all of them, or the first ones and pairs of neighbours up to the last."""
    if n_positives * n_negatives <= min(INSPECTION.values, max(INSPECTION.enough**2, INSPECTION.work // n_positives)):
        return np.arange(1, n_negatives + 1), np.arange(1, n_positives + 1)
    return _some(n_negatives), _some(n_positives)


def _some(n: int) -> NDArray[np.int64]:
    far = np.geomspace(1, n, INSPECTION.enough // 2).astype(np.int64)
    return np.unique(np.concatenate([np.arange(1, INSPECTION.enough + 1), far, far + 1]).clip(1, n))


def _judge_sample(
    sample: Any,
    step: Any,
    partial_sum: Any,
    js: NDArray[np.int64],
    is_: NDArray[np.int64],
    n_positives: int,
    n_negatives: int,
) -> str:
    try:
        steps = sample(step, js, is_, n_positives, n_negatives)
    except Exception as error:  # whatever the user's function raises
        return f"step raised {type(error).__name__}: {error}"
    reason = judge_steps(steps, js, is_).reason
    if reason or partial_sum is None:
        return reason
    # Only the first places can be added up: they have no gaps between them.
    within = is_[: int(np.searchsorted(is_ - np.arange(is_.size), 1, side="right"))]
    sums = sample(partial_sum, js, np.append(within, within[-1] + 1), n_positives, n_negatives)
    expected = np.concatenate([np.zeros((js.size, 1)), np.cumsum(steps[:, : within.size], axis=1)], axis=1)
    wrong = ~(np.abs(sums - sums[:, :1] - expected) <= 1e-6 * (np.abs(expected).max() + np.finfo(np.float64).tiny))
    for a, b in np.argwhere(wrong)[:1]:
        return (
            f"partial_sum({js[a]}, {b + 1}) - partial_sum({js[a]}, 1) is {sums[a, b] - sums[a, 0]:.6g}, but the steps "
            f"before {b + 1} add up to {expected[a, b]:.6g}"
        )
    return ""
