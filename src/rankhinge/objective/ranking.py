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

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankhinge import _threads
from rankhinge.features import FeatureMap
from rankhinge.inference import core
from rankhinge.inference.by_scores import subtract_rankings
from rankhinge.losses import RankingLoss
from rankhinge.objective.handles import Evaluation, Scores
from rankhinge.objective.reductions import Reductions
from rankhinge.objective.spans import Spans
from rankhinge.problems import Lists

__all__ = ["RankingObjective"]

# With fewer scores in all, other threads take longer to wake up than the calling one needs for the work.
_SMALL = 1 << 16

Infer: TypeAlias = Callable[[int, NDArray[np.float64], NDArray[np.float64] | None], tuple[float, float]]
"""Of a problem's number and scores: J, Δ and, if there is room for it, u."""
Rule: TypeAlias = Callable[[NDArray[np.float64], NDArray[np.bool_], NDArray[np.int64]], tuple[Any, ...]]
"""Of scores, relevance and offsets of lists: the values and losses of each, and all coefficients, in new memory."""


class RankingObjective(Spans, Reductions):
    """`J` of K problems over shared features, seen through handles that hide where scores live.

    The part that a solver cannot do without is here (`rankhinge.solvers.protocol.Objective`). `Spans` and `Reductions`
    are what arrays offer besides.

    Parameters
    ----------
    features : FeatureMap
    problems : sequence of Lists
        One for each of the K problems.
    loss : RankingLoss
    """

    def __init__(self, features: FeatureMap, problems: Sequence[Lists], loss: RankingLoss) -> None:
        self.features, self.problems, self.loss = features, list(problems), loss
        self.n_samples, self.n_features = features.n_samples, features.n_features
        self.n_problems = len(self.problems)
        self.n_entries = features.n_entries
        self.width = features.n_entries / max(1, features.n_samples)
        longest = max((int(np.diff(lists.offsets).max(initial=0)) for lists in self.problems), default=0)
        self._hinge_of_one = core.prepared(loss, longest)

    def part(self, problems: NDArray[np.int64]) -> RankingObjective:
        """The same of some problems only."""
        return RankingObjective(self.features, [self.problems[k] for k in problems], self.loss)

    def score(self, weights: NDArray[np.float64], problems: NDArray[np.int64]) -> Scores:
        """Scores of the given problems for their columns of `weights`: one pass over X."""
        return Scores(self.features.scores(weights), problems)

    def zeros(self, problems: NDArray[np.int64]) -> Scores:
        """Scores of the weights 0; no pass over X."""
        return Scores(np.zeros((problems.size, self.n_samples)), problems)

    def along(self, scores: Scores, ahead: Scores, steps: NDArray[np.float64]) -> Scores:
        """``scores + steps * ahead``, a step for each row; no pass over X."""
        moved = ahead.values * steps[:, None]
        moved += scores.values
        return Scores(moved, scores.problems)

    def select(self, handle: Any, places: NDArray[np.int64]) -> Any:
        """Some columns of scores or coefficients, some problems of a span, by their places."""
        return handle if places.size == handle.problems.size == 1 else handle.select(places)

    def join(self, handles: Sequence[Scores]) -> Scores:
        """Several handles as one."""
        if len(handles) == 1:
            return handles[0]
        return Scores(
            np.concatenate([handle.values for handle in handles]),
            np.concatenate([handle.problems for handle in handles]),
        )

    def dots(self, coefficients: Scores, scores: Scores) -> NDArray[np.float64]:
        """``Σ u s``, row by row; no pass over X."""
        return np.array([u @ row for u, row in zip(coefficients.values, scores.values, strict=True)])

    def adjoint(self, coefficients: Scores) -> NDArray[np.float64]:
        """``Xᵀ u`` of each problem, a column each: one pass over X."""
        return self.features.adjoint(coefficients.values)

    def evaluate(self, scores: Scores, coefficients: bool = True) -> Evaluation:
        """Inference for each problem: J, Δ and, if asked for, u; no pass over X."""
        return self.for_each(self.hinge, scores, coefficients)

    def evaluate_tight(self, scores: Scores, coefficients: bool = True) -> Evaluation:
        """T, Δ of the most violating rankings, and u less that of the ranking by the scores; no pass over X."""
        found = self.for_each(partial(self._over_levels, rule=self._tight), scores, coefficients)
        # Rounding must not show a bound below the least loss.
        return found._replace(value=np.maximum(found.value, 0.0))

    def reference(self, scores: Scores) -> Evaluation:
        """``H = max_R F(R; s)``, its loss 0, and u of the ranking by the scores; no pass over X."""
        return self.for_each(partial(self._over_levels, rule=_ranked), scores)

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

    @staticmethod
    def for_each(infer: Infer, scores: Scores, coefficients: bool = True) -> Evaluation:
        """``infer(problem, scores, u)`` for each column, on the threads; it has to write all of u."""
        problems, rows = scores.problems.tolist(), scores.values
        u = np.empty_like(rows) if coefficients else None
        tasks = [partial(infer, k, rows[c], None if u is None else u[c]) for c, k in enumerate(problems)]
        found = [task() for task in tasks] if rows.size < _SMALL else _threads.run(tasks)
        value, loss = np.array(found, dtype=np.float64).reshape(-1, 2).T.copy()
        return Evaluation(value, loss, None if u is None else Scores(u, scores.problems))

    def hinge(self, k: int, scores: NDArray[np.float64], u: NDArray[np.float64] | None) -> tuple[float, float]:
        """J and Δ of problem k for these scores (n,); writes u if there is room for it."""
        return self._over_levels(k, scores, u)

    def _over_levels(
        self, k: int, scores: NDArray[np.float64], u: NDArray[np.float64] | None, rule: Rule | None = None
    ) -> tuple[float, float]:
        """J and Δ of problem k, or what another rule makes of its levels, by their weights; writes u."""
        lists = self.problems[k]
        inside = scores if lists.index is None else lists.gather(scores)
        value = loss = 0.0
        total: NDArray[np.float64] | None = None
        for level in lists.levels:
            n_lists, n_samples = level.weights.size, level.relevant.size
            if rule is None and n_lists == 1 == lists.weights.size:
                values, losses, coefficients, *_ = self._hinge_of_one(inside, level.relevant)
            else:
                offsets = lists.offsets[: n_lists + 1]
                values, losses, coefficients = (rule or self._convex)(inside[:n_samples], level.relevant, offsets)
            value, loss = value + float(np.sum(level.weights * values)), loss + float(np.sum(level.weights * losses))
            if lists.weights.size > 1:
                coefficients *= np.repeat(level.weights, np.diff(lists.offsets[: n_lists + 1]))
            elif level.weights[0] != 1.0:
                coefficients *= level.weights[0]
            if total is None and n_samples == inside.size:
                total = coefficients
            else:
                total = np.zeros_like(inside) if total is None else total
                total[:n_samples] += coefficients
        if u is not None and total is not None and lists.index is None:
            u[:] = total
        elif u is not None:
            lists.scatter(np.zeros_like(inside) if total is None else total, u)
        return value, loss

    def _convex(
        self, scores: NDArray[np.float64], relevant: NDArray[np.bool_], offsets: NDArray[np.int64]
    ) -> tuple[Any, ...]:
        """J."""
        if offsets.size == 2:
            return self._hinge_of_one(scores, relevant)[:3]
        many = core.infer_many(scores, relevant, offsets, self.loss)
        return many.values, many.losses, many.coefficients

    def _tight(
        self, scores: NDArray[np.float64], relevant: NDArray[np.bool_], offsets: NDArray[np.int64]
    ) -> tuple[Any, ...]:
        """``T = J - H``."""
        _, losses, coefficients = self._convex(scores, relevant, offsets)
        # No ranking has a higher score than that by the scores: what lies above 0 is rounding.
        less = np.minimum(subtract_rankings(scores, relevant, offsets, coefficients), 0.0)
        return losses + less, losses, coefficients


def _ranked(scores: NDArray[np.float64], relevant: NDArray[np.bool_], offsets: NDArray[np.int64]) -> tuple[Any, ...]:
    """H."""
    coefficients = np.zeros_like(scores)
    values = -subtract_rankings(scores, relevant, offsets, coefficients)
    return values, np.zeros_like(values), np.negative(coefficients, out=coefficients)
