r"""The inner objective of latent ranking machines: bags whose score is that of their best candidate.

With the candidate :math:`h_i` of every positive bag fixed, the inner problem is

.. math:: \min_w \tfrac12 \|w\|^2 + C \, J(s(w)), \qquad
          s_i = w \cdot \Phi_i(h_i) \text{ for positives}, \quad s_j = \max_h w \cdot \Phi_j(h) \text{ for negatives.}

The structured hinge J has coefficients ≥ 0 for the negatives, so it does not fall as their scores rise, and a maximum
of linear functions in their place leaves it convex (Behl et al. 2015, Proposition 3). The handles that the solver
sees hold the scores of *candidates*, which are linear in w; the maximum is taken in `evaluate`. The coefficients live
on candidates too, nonzero only at the best one of each bag.

A plane ``Δ(R) + Σ u s`` is valid for every ranking R and every choice of the negatives' candidates. It therefore
survives a change of the positives' choices: only its slope moves, by ``Σ u_i (Φ_i(h'_i) − Φ_i(h_i))``. For that a plane
carries the u of the positives as its payload (`rankhinge.solvers.PayloadObjective`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rankhinge.features import FeatureMap
from rankhinge.latent.segments import segment_maxima
from rankhinge.objective import Evaluation, Handles, Infer, Scores, Spans
from rankhinge.problems import Lists
from rankhinge.solvers import Planes

__all__ = ["BagLists", "LatentObjective", "moved_planes"]


@dataclass(frozen=True)
class BagLists:
    """One problem over bags.

    Attributes
    ----------
    lists : Lists
        Over the bags of the problem.
    positives : ndarray of shape (n_positives,)
        Which of them are relevant.
    start, stop : ndarray of shape (n_bags,)
        Where each bag's candidates lie among those that the feature map has.
    fixed : ndarray of shape (n_bags,)
        The place of the candidate that a bag is fixed to, or -1.
    """

    lists: Lists
    positives: NDArray[np.int64]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    fixed: NDArray[np.int64]

    def seen(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The segments over which the score of each bag is maximised."""
        is_fixed = self.fixed >= 0
        return np.where(is_fixed, self.fixed, self.start), np.where(is_fixed, self.fixed + 1, self.stop)


class LatentObjective(Handles, Spans):
    """`J` of K problems over bags, seen through handles that hold the scores of candidates.

    Parameters
    ----------
    features : FeatureMap
        Over candidates.
    problems : sequence of BagLists
    hinge : callable
        J of each problem from the scores of its bags, `rankhinge.objective.ListsHinge` for instance; it must not fall
        as scores of negatives rise.
    """

    def __init__(self, features: FeatureMap, problems: Sequence[BagLists], hinge: Infer) -> None:
        super().__init__(features, len(problems))
        self.bags, self.hinge = list(problems), hinge
        self._seen = [problem.seen() for problem in problems]

    def evaluate(self, scores: Scores, coefficients: bool = True) -> Evaluation:
        """Inference for each problem, the free bags at their best candidates: J, Δ and, if asked for, u."""
        return self.for_each(self._evaluate_bags, scores, coefficients)

    def _evaluate_bags(self, k: int, scores: NDArray[np.float64], u: NDArray[np.float64] | None) -> tuple[float, float]:
        """J and Δ of problem k; writes u if there is room for it."""
        best, places = segment_maxima(scores, *self._seen[k])
        if u is None:
            return self.hinge(k, best, None)
        of_bags = np.empty_like(best)
        value, loss = self.hinge(k, best, of_bags)
        u[:] = 0.0
        u[places] = of_bags
        return value, loss

    def payload_width(self, problem: int) -> int:
        """How many positives there are."""
        return self.bags[problem].positives.size

    def payloads(self, coefficients: Scores) -> list[NDArray[np.float64]]:
        """U of the positives, for each column."""
        bags = [self.bags[k] for k in coefficients.problems]
        return [u[own.fixed[own.positives]] for u, own in zip(coefficients.values, bags, strict=True)]


def moved_planes(planes: Planes, change: NDArray[np.float64], which: NDArray[np.int64]) -> Planes | None:
    """The planes after the features of some positives have changed; None if they do not carry what that takes.

    Parameters
    ----------
    planes : Planes
    change : ndarray of shape (n_changed, n_features)
        ``Φ(h') - Φ(h)``.
    which : ndarray of shape (n_changed,)
        Which of the positives these are.
    """
    if planes.payloads is None:
        return None
    return replace(planes, slopes=planes.slopes + planes.payloads[:, which] @ change)
