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
from rankhinge.solvers.certificate import MESSAGES, Certificate, unit_of_rounding
from rankhinge.svm.lockstep import side_by_side

__all__ = ["Use", "last_word"]

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
        If a lower bound is above its objective by more than rounding.
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
                primal[k] = 0.5 * float((w - w0) @ (w - w0)) + C[k] * float(values[c])
                most = objective.problems[k].most_changes(objective.n_samples) * (2 if tight else 1)
                unit = unit_of_rounding(w.size + objective.n_samples)
                # Rows that the solver has seen may be off by rounding in their lengths, as sums of their terms are.
                slope = unit * C[k] * float(most @ seen)
                near = abs(primal[k] - result.dual_objective[k]) if np.isfinite(result.dual_objective[k]) else 0.0
                move = float(np.linalg.norm(w - w0))
                value = C[k] * (1.0 + float(most @ sizes)) + move * (move + float(np.linalg.norm(w0)))
                away = (2.0 * near) ** 0.5 + (0.0 if lengths is None else float(np.linalg.norm(w)))
                rounding[k] = unit * value + slope * (slope + away)
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
