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
from rankhinge.solvers.certificate import MESSAGES, Certificate, rounding_bound
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
                near, slope = primal[k] - result.dual_objective[k], float(most @ seen)
                # Rows that stand for those of X are off by rounding in their own lengths.
                size = float(most @ sizes) + (0.0 if lengths is None else slope * float(np.linalg.norm(w)))
                rounding[k] = rounding_bound(
                    w.size + objective.n_samples,
                    float(C[k]),
                    slope,
                    float(near) if np.isfinite(near) else 0.0,
                    float(np.linalg.norm(w - w0)),
                    size=size,
                    centre=float(np.linalg.norm(w0)),
                )
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
