"""The tight bound of one list: the structured hinge against the predicted ranking instead of the perfect one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankhinge._validation import check_relevant, check_scores
from rankhinge.inference import core
from rankhinge.inference.by_scores import subtract_ranking
from rankhinge.losses import RankingLoss, get_loss

__all__ = ["TightHinge", "tight_hinge"]


class TightHinge(NamedTuple):
    """The result of `tight_hinge`.

    Attributes
    ----------
    value : float
        T.
    coefficients : ndarray of shape (n,)
        A subgradient of the first term minus one of the second. Away from ties this is the gradient of T.

    Examples
    --------
    >>> from rankhinge import tight_hinge
    >>> bound = tight_hinge([2.0, 1.5, 1.0], [True, False, True], loss="ap")
    >>> round(bound.value, 4)
    0.1667
    """

    value: float
    coefficients: NDArray[Any]


def tight_hinge(scores: ArrayLike, relevant: ArrayLike, loss: str | RankingLoss = "ap") -> TightHinge:
    r"""The tight bound on a ranking loss. It is not convex.

    .. math:: T(s) = \max_R [\Delta(R) + F(R; s)] - \max_R F(R; s), \qquad F(R; s) = \sum_k u_k(R) s_k

    The ranking by the scores attains the second maximum. Therefore
    ``Δ(ranking by s) ≤ T(s) ≤ J(s) = structured_hinge(s)``. As c grows, ``T(c s)`` tends to Δ, with the worst order of
    tied scores. T is the structured ramp of Do, Le, Teo, Chapelle and Smola ("Tighter bounds for structured
    estimation", 2008). Its gradient is that of direct loss minimisation.

    Parameters
    ----------
    scores : array of shape (n,)
    relevant : array of shape (n,)
        Bool or 0/1.
    loss : str or RankingLoss, default "ap"
        Any ranking loss, but not ``"zero-one"``.

    Returns
    -------
    TightHinge

    Examples
    --------
    >>> from rankhinge import ranking_loss, structured_hinge, tight_hinge
    >>> scores, relevant = [3.0, 1.0, 2.0, 0.0], [1, 1, 0, 0]
    >>> round(structured_hinge(scores, relevant), 4), round(tight_hinge(scores, relevant).value, 4)
    (0.6667, 0.1667)
    >>> round(ranking_loss(scores, relevant), 4)
    0.1667
    """
    loss = get_loss(loss)
    if not loss.is_ranking:
        raise ValueError("the tight bound compares rankings: loss='zero-one' has none")
    scores = check_scores(scores)
    relevant = check_relevant(relevant, scores.size)
    # Rounded to float32 before the difference is taken, equal coefficients would not cancel.
    wide = scores.astype(np.float64, copy=False)
    worst = core.infer_one(wide, relevant, loss)
    # No ranking has a higher score than that by the scores, and no bound is below the loss: beyond that is rounding.
    value = worst.loss + min(subtract_ranking(wide, relevant, worst.coefficients), 0.0)
    value = max(value, core.loss_by_scores(wide, relevant, loss))
    return TightHinge(value, worst.coefficients.astype(scores.dtype, copy=False))
