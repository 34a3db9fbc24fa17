"""The last word of a fit: the objective of the coefficients that are returned, and what is proved of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankhinge.solvers import SolverResult
from rankhinge.solvers.certificate import MESSAGES, Carrying, Certificate, Rounding, rounding_bound
from rankhinge.solvers.protocol import Handle
from rankhinge.svm.lockstep import side_by_side
from rankhinge.svm.protocol import FitObjective

__all__ = ["last_word"]

# Of the distance between neighbours in a ranking of n scores that lie 1 / n apart: a score that moves by less changes
# none of the losses by as much as an exchange of two neighbours does.
_NEAR_ZERO = 0.25
# A coefficient that is divided by the scale of its feature and multiplied by it again is off by two roundings at most.
_THERE_AND_BACK = 2 * float(np.finfo(np.float64).eps)

Inside: TypeAlias = tuple[FitObjective, NDArray[np.float64]]


def last_word(
    objective: FitObjective,
    result: SolverResult,
    C: NDArray[np.float64],
    centre: NDArray[np.float64],
    tol: float,
    *,
    tight: bool = False,
    lengths: NDArray[np.float64] | None = None,
    inside: Inside | None = None,
    cut: Callable[[Handle], Any] | None = None,
) -> tuple[SolverResult, dict[int, tuple[float, float]]]:
    """A result with the objective and the certificate of its coefficients, and where its rankings are cut. One pass.

    Parameters
    ----------
    objective : FitObjective
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
    inside : tuple of RankingObjective and ndarray of shape (r, K), optional
        What the solver has seen, and its coefficients, if these are others: planes are held against J there.
    cut : callable, optional
        ``cut(scores)``: intercept and slope of each column of a handle.

    Raises
    ------
    CertificateError
        If a lower bound is above its objective by more than rounding, or a plane that carries it is not one of J.
    """
    primal, rounding = result.objective.copy(), np.zeros(result.objective.size)
    begun, cuts = np.isfinite(primal), dict[int, tuple[float, float]]()
    groups = [np.arange(primal.size)] if primal.size == 1 else side_by_side(objective, primal.size)
    for group in groups:
        found = objective.audit(result.coef[:, group], group, tight=tight, lengths=lengths)
        if cut is not None:
            cuts.update(zip(group.tolist(), cut(found.scores), strict=True))
        for c, k in enumerate(group):
            if begun[k]:
                w, w0 = result.coef[:, k], centre[:, k]
                value, length = float(found.values[c]), float(np.linalg.norm(w))
                moved = _moved(w, w0)
                primal[k] = 0.5 * float(moved @ moved) + C[k] * value
                near, slope, size = primal[k] - result.dual_objective[k], float(found.slopes[c]), float(found.sizes[c])
                # Rows that stand for those of X are off by rounding in their own lengths.
                size += 0.0 if lengths is None else slope * length
                rounding[k] = rounding_bound(
                    w.size + objective.n_samples,
                    float(C[k]),
                    slope,
                    float(near) if np.isfinite(near) else 0.0,
                    float(np.linalg.norm(moved)),
                    size=size,
                    centre=float(np.linalg.norm(w0)),
                )
                allowed = Rounding(w.size + objective.n_samples + int(result.n_iter[k]), slope, objective.slack_used)
                here = found.scores if group.size == 1 else objective.select(found.scores, np.array([c]))
                if inside is not None:
                    # The way back to the features is not exact: it may have led to a point beside that of the planes.
                    seen_by, w = inside[0], inside[1][:, k]
                    here = seen_by.score(w[:, None], np.array([k]))
                    evaluate = seen_by.evaluate_tight if tight else seen_by.evaluate
                    value = float(evaluate(here, coefficients=False).value[0])
                    length = float(np.linalg.norm(w))
                allowed.hold(result.carrying[k], value, length, int(k))
                if not tight and not result.carrying[k].reaches.all():
                    _hold_near_zero(objective, int(k), here, result.carrying[k], allowed, length)
    certificate = Certificate(primal, result.dual_objective, rounding, result.tolerated)
    certificate.check()
    status = certificate.status(result.status, tol)
    proved = replace(
        result,
        objective=primal,
        dual_objective=certificate.lower,
        gap=certificate.gap,
        status=status,
        message="; ".join(dict.fromkeys(MESSAGES.get(s, s) for s in status.tolist())),
        n_passes=result.n_passes + len(groups),
    )
    return proved, cuts


def _moved(w: NDArray[np.float64], start: NDArray[np.float64]) -> NDArray[np.float64]:
    """``w - start`` without what the way to the user's units and back has rounded.

    Where the loss is 0 at the start already, this would be all of the objective, and no bound is near it.
    """
    way = w - start
    return np.where(np.abs(way) <= _THERE_AND_BACK * np.abs(start), 0.0, way)


def _hold_near_zero(
    objective: FitObjective, k: int, scores: Handle, planes: Carrying, allowed: Rounding, length: float
) -> None:
    """Hold planes that were cut at 0 against J a little way towards w. No pass; one inference.

    At 0 itself their slopes cannot be seen. So near to it the ranking that is the worst at 0 is so still.
    """
    at_zero = planes.reaches == 0.0
    largest = float(objective.largest(scores)[0])
    if largest > 0.0:
        share = _NEAR_ZERO / (largest * objective.n_samples)
        point = objective.along(objective.zeros(np.array([k])), scores, np.array([share]))
        near = objective.evaluate(point, coefficients=False)
        cut_at_zero = Carrying(*(column[at_zero] for column in planes))
        allowed.hold_near_zero(cut_at_zero, float(near.value[0]), share, length, k)
