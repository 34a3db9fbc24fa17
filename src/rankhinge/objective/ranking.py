r"""The structured hinge of K problems, seen through handles.

For K problems that share their samples' features, problem k minimises over its own weights

.. math:: \tfrac12 \|w_k\|^2 + C_k \, J_k(X w_k), \qquad
          J_k(s) = \sum_q \pi_q \sum_\ell \omega_{q\ell} \, J_{q\ell}(s_q)

where q runs over the usable lists of the problem (those with a positive and a negative), the weights of the lists
:math:`\pi_q` sum to one (``1 / Q`` by default: the mean), :math:`J_{q\ell}` is the structured hinge of list q with the
samples at or above level ℓ relevant, and :math:`\omega_{q\ell}` are the level weights, which sum to one over ℓ: for
labels 0/1 there is one level of weight 1, and J is the mean of the lists' hinges.

There is no hidden scaling and no intercept.

**The tight bound.** J compares with the perfect ranking. Compared with the ranking by the scores themselves,

.. math:: T(s) = \max_R [Δ(R) + F(R; s)] - \max_R F(R; s), \qquad Δ(\text{ranking by } s) \le T(s) \le J(s),

with ``F(R; s) = Σ u_k(R) s_k``, is no longer convex but tends to the loss itself as the scores grow. The second term
belongs to the ranking by the scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from rankhinge.features import FeatureMap
from rankhinge.losses import RankingLoss
from rankhinge.objective.handles import Evaluation, Handles, Scores
from rankhinge.objective.hinge import ListsHinge, ranked
from rankhinge.objective.reductions import Reductions
from rankhinge.objective.spans import Spans
from rankhinge.problems import Lists

__all__ = ["RankingObjective"]


class RankingObjective(Handles, Spans, Reductions):
    """`J` of K problems over shared features, seen through handles that hide where scores live.

    With `Handles` it is what a solver cannot do without (`rankhinge.solvers.protocol.Objective`). Arrays also offer
    `Spans` and `Reductions`.

    Parameters
    ----------
    features : FeatureMap
    problems : sequence of Lists
        One for each of the K problems.
    loss : RankingLoss
    """

    def __init__(self, features: FeatureMap, problems: Sequence[Lists], loss: RankingLoss) -> None:
        super().__init__(features, len(problems))
        self.problems, self.loss = list(problems), loss
        self.hinge = ListsHinge(self.problems, loss)

    def part(self, problems: NDArray[np.int64]) -> RankingObjective:
        """The same of some problems only."""
        return RankingObjective(self.features, [self.problems[k] for k in problems], self.loss)

    def evaluate(self, scores: Scores, coefficients: bool = True) -> Evaluation:
        """Inference for each problem: J, Δ and, if asked for, u; no pass over X."""
        return self.for_each(self.hinge, scores, coefficients)

    def evaluate_tight(self, scores: Scores, coefficients: bool = True) -> Evaluation:
        """T, Δ of the most violating rankings, and u less that of the ranking by the scores; no pass over X."""
        found = self.for_each(partial(self.hinge, rule=self.hinge.tight), scores, coefficients)
        # Rounding must not show a bound below the least loss.
        return found._replace(value=np.maximum(found.value, 0.0))

    def reference(self, scores: Scores) -> Evaluation:
        """``H = max_R F(R; s)``, its loss 0, and u of the ranking by the scores; no pass over X."""
        return self.for_each(partial(self.hinge, rule=ranked), scores)

    def evaluate_against(self, scores: Scores, reference: Scores, coefficients: bool = True) -> Evaluation:
        """``J(s) - Σ r s``, Δ and u - r, with r from the row of `reference` that belongs to the problem; no pass.

        Summed over u - r: where the two nearly agree, the difference of two sums would be rounding.
        """
        rows = dict(zip(reference.problems.tolist(), reference.values, strict=True))

        def infer(k: int, row: NDArray[np.float64], u: NDArray[np.float64] | None) -> tuple[float, float]:
            u = np.empty_like(row) if u is None else u
            _, loss = self.hinge(k, row, u)
            u -= rows[k]
            return loss + float(u @ row), loss

        return self.for_each(infer, scores, coefficients)
