r"""From the scores of a problem's lists to its value, loss and coefficients: the levels and lists by their weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankhinge.inference import core
from rankhinge.inference.by_scores import subtract_rankings
from rankhinge.losses import RankingLoss
from rankhinge.problems import Lists

__all__ = ["ListsHinge", "ranked"]

Rule: TypeAlias = Callable[[NDArray[np.float64], NDArray[np.bool_], NDArray[np.int64]], tuple[Any, ...]]
"""Of scores, relevance and offsets of lists: the values and losses of each, and all coefficients, in new memory."""


class ListsHinge:
    """J of K problems, each over its lists; T and H by the rules `tight` and `ranked`.

    Parameters
    ----------
    problems : sequence of Lists
    loss : RankingLoss
    """

    def __init__(self, problems: Sequence[Lists], loss: RankingLoss) -> None:
        self.problems, self.loss = problems, loss
        longest = max((int(np.diff(lists.offsets).max(initial=0)) for lists in self.problems), default=0)
        self._hinge_of_one = core.prepared(loss, longest)

    def __call__(
        self, k: int, scores: NDArray[np.float64], u: NDArray[np.float64] | None, rule: Rule | None = None
    ) -> tuple[float, float]:
        """J and Δ of problem k at its scores (n,), or what a rule says, summed over its levels; writes u if asked."""
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

    def tight(
        self, scores: NDArray[np.float64], relevant: NDArray[np.bool_], offsets: NDArray[np.int64]
    ) -> tuple[Any, ...]:
        """The rule of ``T = J - H``: u is less that of the ranking by the scores."""
        _, losses, coefficients = self._convex(scores, relevant, offsets)
        # No ranking has a higher score than that by the scores: what lies above 0 is rounding.
        less = np.minimum(subtract_rankings(scores, relevant, offsets, coefficients), 0.0)
        return losses + less, losses, coefficients


def ranked(scores: NDArray[np.float64], relevant: NDArray[np.bool_], offsets: NDArray[np.int64]) -> tuple[Any, ...]:
    """The rule of H, the score of the ranking by the scores, whose loss is 0."""
    coefficients = np.zeros_like(scores)
    values = -subtract_rankings(scores, relevant, offsets, coefficients)
    return values, np.zeros_like(values), np.negative(coefficients, out=coefficients)
