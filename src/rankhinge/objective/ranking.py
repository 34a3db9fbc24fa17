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
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankhinge import _threads
from rankhinge.features import FeatureMap
from rankhinge.inference import core
from rankhinge.inference.by_scores import subtract_rankings
from rankhinge.losses import RankingLoss
from rankhinge.objective.span import Span
from rankhinge.problems.lists import Lists

__all__ = ["Evaluation", "RankingObjective", "Scores"]

# With fewer scores in all, other threads take longer to wake up than the calling one needs for the work.
_SMALL = 1 << 16


class Scores(NamedTuple):
    """Scores of some problems: row c of `values` belongs to problem ``problems[c]``."""

    values: NDArray[np.float64]
    problems: NDArray[np.int64]

    def select(self, places: NDArray[np.int64]) -> Scores:
        """Some of the rows."""
        if places.size == self.problems.size == 1:
            return self
        return Scores(self.values[places], self.problems[places])


class Evaluation(NamedTuple):
    """``J``, the loss of the most violating rankings, and u: ``value = loss + Σ u s``, each by problem."""

    value: NDArray[np.float64]
    loss: NDArray[np.float64]
    coefficients: Scores | None


Handle = TypeVar("Handle", Scores, Span)
Inference: TypeAlias = Callable[[int, NDArray[np.float64], NDArray[np.float64] | None], tuple[float, float]]
"""Of a problem's number and scores: J, Δ and, if there is room for it, u."""


Rule: TypeAlias = Callable[[NDArray[np.float64], NDArray[np.bool_], NDArray[np.int64]], tuple[Any, Any, NDArray[Any]]]
"""Of scores, relevance and offsets of lists: the values and losses of each, and all coefficients, in new memory."""


def _convex(
    loss: RankingLoss, scores: NDArray[np.float64], relevant: NDArray[np.bool_], offsets: NDArray[np.int64]
) -> tuple[Any, Any, NDArray[Any]]:
    """J."""
    if offsets.size == 2:
        one = core.infer_one(scores, relevant, loss)
        return one.value, one.loss, one.coefficients
    many = core.infer_many(scores, relevant, offsets, loss)
    return many.values, many.losses, many.coefficients


def _tight(
    loss: RankingLoss, scores: NDArray[np.float64], relevant: NDArray[np.bool_], offsets: NDArray[np.int64]
) -> tuple[Any, Any, NDArray[Any]]:
    """``T = J - H``."""
    _, losses, coefficients = _convex(loss, scores, relevant, offsets)
    # No ranking has a higher score than that by the scores: what lies above 0 is rounding.
    less = np.minimum(subtract_rankings(scores, relevant, offsets, coefficients), 0.0)
    return losses + less, losses, coefficients


def _ranked(
    scores: NDArray[np.float64], relevant: NDArray[np.bool_], offsets: NDArray[np.int64]
) -> tuple[Any, Any, NDArray[Any]]:
    """H."""
    coefficients = np.zeros_like(scores)
    values = -subtract_rankings(scores, relevant, offsets, coefficients)
    return values, np.zeros_like(values), np.negative(coefficients, out=coefficients)


def _infer_one(
    lists: Lists, rule: Rule, scores: NDArray[np.float64], u: NDArray[np.float64] | None
) -> tuple[float, float]:
    """Value and Δ of one problem by a rule; writes u if there is room for it."""
    inside = lists.gather(scores)
    value = loss = 0.0
    total: NDArray[np.float64] | None = None
    for level in lists.levels:
        offsets = lists.offsets[: level.n_lists + 1]
        values, losses, coefficients = rule(inside[: level.n_samples], level.relevant, offsets)
        value, loss = value + float(np.sum(level.weights * values)), loss + float(np.sum(level.weights * losses))
        if lists.n_lists > 1:
            coefficients *= np.repeat(level.weights, np.diff(offsets))
        elif level.weights[0] != 1.0:
            coefficients *= level.weights[0]
        if total is None and level.n_samples == inside.size:
            total = coefficients
        else:
            total = np.zeros_like(inside) if total is None else total
            total[: level.n_samples] += coefficients
    if u is not None:
        lists.scatter(np.zeros_like(inside) if total is None else total, u)
    return value, loss


class RankingObjective:
    """`J` of K problems over shared features, seen through handles that hide where scores live.

    Parameters
    ----------
    features : FeatureMap
    problems : sequence of Lists
        One for each of the K problems.
    loss : RankingLoss
    """

    def __init__(self, features: FeatureMap, problems: Sequence[Lists], loss: RankingLoss) -> None:
        self.features = features
        self.problems = list(problems)
        self.loss = loss
        self.n_samples = features.n_samples
        self.n_features = features.n_features
        self.n_problems = len(self.problems)
        self.width = features.n_entries / max(1, features.n_samples)

    def part(self, problems: NDArray[np.int64]) -> RankingObjective:
        """The same of some problems only."""
        return RankingObjective(self.features, [self.problems[k] for k in problems], self.loss)

    def score(self, weights: NDArray[np.float64], problems: NDArray[np.int64]) -> Scores:
        """Scores of the given problems for their columns of `weights`: one pass over X."""
        return Scores(self.features.scores(weights), problems)

    def span(self, scores: Scores, capacity: int) -> Span:
        """A span of one direction for each row, with room for so many in all."""
        return Span.of(scores.values, scores.problems, capacity)

    def mix(self, span: Span, coordinates: NDArray[np.float64]) -> Scores:
        """Scores of a point of each problem, by its coordinates (m, T) in the span; no pass over X."""
        return Scores(span.mix(coordinates), span.problems)

    def slopes(self, coefficients: Scores, span: Span) -> NDArray[np.float64]:
        """``Σ u s`` of each problem with each of its directions in a span, (m, T); no pass over X."""
        return span.slopes(coefficients.values)

    def widen(self, span: Span, scores: Scores) -> Span:
        """The span with r more directions a problem, by their scores, problem by problem."""
        return span.widen(scores.values)

    def narrow(self, span: Span, weights: NDArray[np.float64]) -> Span:
        """The span with one combination, by weights (m, t), in place of its t oldest directions."""
        return span.narrow(weights)

    def along(self, scores: Scores, ahead: Scores, steps: NDArray[np.float64]) -> Scores:
        """``scores + steps * ahead``, a step for each row; no pass over X."""
        moved = ahead.values * steps[:, None]
        moved += scores.values
        return Scores(moved, scores.problems)

    def zeros(self, problems: NDArray[np.int64]) -> Scores:
        """Scores of the weights 0; no pass over X."""
        return Scores(np.zeros((problems.size, self.features.n_samples)), problems)

    def select(self, handle: Handle, places: NDArray[np.int64]) -> Handle:
        """Some columns of scores or coefficients, some problems of a span, by their places."""
        return handle.select(places)

    def join(self, handles: Sequence[Scores]) -> Scores:
        """Several handles as one."""
        if len(handles) == 1:
            return handles[0]
        return Scores(
            np.concatenate([handle.values for handle in handles]),
            np.concatenate([handle.problems for handle in handles]),
        )

    def evaluate(self, scores: Scores, coefficients: bool = True) -> Evaluation:
        """Inference for each problem: J, Δ and, if asked for, u; no pass over X."""
        return self.for_each(self.hinge, scores, coefficients)

    def hinge(self, k: int, scores: NDArray[np.float64], u: NDArray[np.float64] | None) -> tuple[float, float]:
        """J and Δ of problem k for these scores (n,); writes u if there is room for it."""
        return _infer_one(self.problems[k], partial(_convex, self.loss), scores, u)

    def reference(self, scores: Scores) -> Evaluation:
        """``max_R F(R; s)``, its loss 0, and u of the ranking by the scores; no pass over X."""
        return self._infer(_ranked, scores)

    def evaluate_tight(self, scores: Scores, coefficients: bool = True) -> Evaluation:
        """T, Δ of the most violating rankings, and u less that of the ranking by the scores; no pass over X."""
        found = self._infer(partial(_tight, self.loss), scores, coefficients)
        # Rounding must not show a bound below the least loss.
        return found._replace(value=np.maximum(found.value, 0.0))

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

    def _infer(self, rule: Rule, scores: Scores, coefficients: bool = True) -> Evaluation:
        def infer(k: int, row: NDArray[np.float64], u: NDArray[np.float64] | None) -> tuple[float, float]:
            return _infer_one(self.problems[k], rule, row, u)

        return self.for_each(infer, scores, coefficients)

    @staticmethod
    def for_each(infer: Inference, scores: Scores, coefficients: bool = True) -> Evaluation:
        """``infer(problem, scores, u)`` for each column, on the threads; it has to write all of u."""
        m = scores.problems.size
        value, loss = np.empty(m), np.empty(m)
        u = np.empty_like(scores.values) if coefficients else None

        def work(c: int) -> None:
            row = None if u is None else u[c]
            value[c], loss[c] = infer(int(scores.problems[c]), scores.values[c], row)

        tasks = [partial(work, c) for c in range(m)]
        if scores.values.size < _SMALL:
            for task in tasks:
                task()
        else:
            _threads.run(tasks)
        return Evaluation(value, loss, None if u is None else Scores(u, scores.problems))

    def dots(self, coefficients: Scores, scores: Scores) -> NDArray[np.float64]:
        """``Σ u s``, row by row; no pass over X."""
        return np.array([u @ row for u, row in zip(coefficients.values, scores.values, strict=True)])

    def split(self, coefficients: Scores, n_parts: int, generator: np.random.Generator) -> Scores:
        """Each problem's u as a sum of ``2 n_parts``: its negative and its positive entries, cut at random."""
        m = coefficients.problems.size
        parts = np.zeros((m, 2 * n_parts, self.n_samples))
        which = generator.integers(n_parts, size=self.n_samples)
        place = np.arange(self.n_samples)
        for part, u in zip(parts, coefficients.values, strict=True):
            part[which + n_parts * (u > 0), place] = u
        return Scores(parts.reshape(-1, self.n_samples), np.repeat(coefficients.problems, 2 * n_parts))

    def adjoint(self, coefficients: Scores) -> NDArray[np.float64]:
        """``Xᵀ u`` of each problem, a column each: one pass over X."""
        return self.features.adjoint(coefficients.values)

    def block_weights(self, problem: int) -> NDArray[np.float64]:
        """π of a problem's lists."""
        return self.problems[problem].weights

    def block_plane(
        self, weights: NDArray[np.float64], problem: int, block: int
    ) -> tuple[float, NDArray[np.float64], float]:
        """Δ, ``X_qᵀ u`` and J of one list's own hinge at these weights."""
        lists = self.problems[problem]
        if lists.n_lists == 1:
            # Its rows may be all of X, which is not to be copied.
            whole = self.evaluate(self.score(weights[:, None], np.array([problem])))
            u: Any = whole.coefficients
            return float(whole.loss[0]), self.adjoint(u)[:, 0], float(whole.value[0])
        inside = slice(int(lists.offsets[block]), int(lists.offsets[block + 1]))
        index = np.arange(inside.start, inside.stop) if lists.index is None else lists.index[inside]
        rows = self.features.rows(index)
        scores = rows @ weights
        loss, value, total = 0.0, 0.0, np.zeros_like(scores)
        for level in lists.levels:
            if block >= level.n_lists:
                continue
            relevant, weight = level.relevant[inside], level.weights[block] / lists.weights[block]
            if weight > 0 and (not self.loss.is_ranking or not relevant.all()):
                found = core.infer_one(scores, relevant, self.loss)
                loss, value = loss + weight * found.loss, value + weight * found.value
                total += weight * found.coefficients
        return loss, rows.T @ total, value
