"""The last word of a fit: the objective of the coefficients that are returned, and what is proved of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankhinge.features import audit
from rankhinge.objective import RankingObjective, Scores
from rankhinge.solvers import SolverResult
from rankhinge.solvers.certificate import MESSAGES, Carrying, Certificate, Rounding, rounding_bound
from rankhinge.svm.lockstep import side_by_side

__all__ = ["Use", "last_word"]

# Of the distance between neighbours in a ranking of n scores that lie 1 / n apart: a score that moves by less changes
# none of the losses by as much as an exchange of two neighbours does.
_NEAR_ZERO = 0.25

Use: TypeAlias = Callable[[int, NDArray[np.float64]], None]


def last_word(
    objective: RankingObjective,
    result: SolverResult,
    C: NDArray[np.float64],
    centre: NDArray[np.float64],
    tol: float,
    *,
    tight: bool = False,
    lengths: NDArray[np.float64] | None = None,
    use: Use | None = None,
) -> SolverResult:
    """A result with the objective and the certificate of its coefficients. One pass.

    Parameters
    ----------
    objective : RankingObjective
        Over X as it was given.
    result : SolverResult
        With coefficients (d, K) of its columns; problems of an infinite objective have not begun.
    C : ndarray of shape (K,)
    centre : ndarray of shape (d, K)
        ``w0``.
    tight : bool
        Whether the objective is the tight bound.
    lengths : ndarray of shape (n,), optional
        Of the rows that the solver has seen, if it has seen others than those of X.
    use : callable, optional
        ``use(k, scores)`` is called for each problem: this pass over X may serve others.

    Raises
    ------
    CertificateError
        If a lower bound is above its objective by more than rounding, or a plane that carries it is not one of J.
    """
    primal, rounding = result.objective.copy(), np.zeros(result.objective.size)
    begun = np.isfinite(primal)
    groups = side_by_side(objective.features, primal.size)
    for group in groups:
        found = audit(objective.features, result.coef[:, group])
        evaluate = objective.evaluate_tight if tight else objective.evaluate
        values = evaluate(Scores(found.scores, group), coefficients=False).value
        for c, k in enumerate(group):
            if use is not None:
                use(int(k), found.scores[c])
            if begun[k]:
                sizes, seen = found.sizes[c], found.lengths if lengths is None else lengths
                w, w0 = result.coef[:, k], centre[:, k]
                value, length = float(values[c]), float(np.linalg.norm(w))
                primal[k] = 0.5 * float((w - w0) @ (w - w0)) + C[k] * value
                most = objective.problems[k].most_changes(objective.n_samples) * (2 if tight else 1)
                near, slope = primal[k] - result.dual_objective[k], float(most @ seen)
                # Rows that stand for those of X are off by rounding in their own lengths.
                size = float(most @ sizes) + (0.0 if lengths is None else slope * length)
                rounding[k] = rounding_bound(
                    w.size + objective.n_samples,
                    float(C[k]),
                    slope,
                    float(near) if np.isfinite(near) else 0.0,
                    float(np.linalg.norm(w - w0)),
                    size=size,
                    centre=float(np.linalg.norm(w0)),
                )
                allowed = Rounding(w.size + objective.n_samples + int(result.n_iter[k]), slope)
                allowed.hold(result.carrying[k], value, length, int(k))
                if not tight:
                    _hold_near_zero(objective, int(k), found.scores[c], result.carrying[k], allowed, length)
    certificate = Certificate(primal, result.dual_objective, rounding, result.tolerated)
    certificate.check()
    status = certificate.status(result.status, tol)
    return replace(
        result,
        objective=primal,
        dual_objective=certificate.lower,
        gap=certificate.gap,
        status=status,
        message="; ".join(dict.fromkeys(MESSAGES.get(s, s) for s in status.tolist())),
        n_passes=result.n_passes + len(groups),
    )


def _hold_near_zero(
    objective: RankingObjective, k: int, scores: NDArray[np.float64], planes: Carrying, allowed: Rounding, length: float
) -> None:
    """Hold planes that were cut at 0 against J a little way towards w. No pass; one inference, if there are any.

    At 0 itself their slopes cannot be seen. So near to it the ranking that is the worst at 0 is so still.
    """
    at_zero = planes.reaches == 0.0
    largest = float(np.abs(scores).max(initial=0.0))
    if at_zero.any() and largest > 0.0:
        share = _NEAR_ZERO / (largest * scores.size)
        near = objective.evaluate(Scores(share * scores[None, :], np.array([k])), coefficients=False)
        cut_at_zero = Carrying(*(column[at_zero] for column in planes))
        allowed.hold_near_zero(cut_at_zero, float(near.value[0]), share, length, k)
