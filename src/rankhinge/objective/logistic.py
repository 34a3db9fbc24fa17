r"""The logistic loss of lists as a function of their scores: for the start of the tight bound.

.. math:: \min_w \tfrac12 \|w\|^2 + C \sum_q \min_{b_q} \sum_i \log\bigl(1 + e^{-y_{qi} (x_{qi} \cdot w + b_q)}\bigr),
    \qquad y_{qi} = \pm 1

Each list has an intercept of its own: how many of its samples are relevant says nothing about how to rank them. With
one list this is the objective of scikit-learn's `LogisticRegression`. The intercepts are eliminated: for given scores
the best b is found by Newton's method, and by the envelope theorem the gradient in the scores is that at the best b. So
the loss is a convex function of the scores, like every other here, and K problems share each pass over X, whatever X is
made of.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from rankhinge._jit import compiled, inner, kernel, once
from rankhinge.problems import Lists

__all__ = ["LogisticLoss"]

NEWTON_STEPS, INTERCEPT_TOLERANCE = 50, 1e-10
_NEAR = 30.0
_LARGE_PRODUCT = 1e100


@partial(compiled, nogil=True, error_model="numpy", fastmath={"reassoc"})
def _derivatives(odds, factor):
    """Sum of the probabilities ``1 / (1 + odds · factor)``, and its derivative in the intercept."""
    first, second = 0.0, 0.0
    for i in range(odds.size):
        share = 1.0 / (1.0 + odds[i] * factor)
        first += share
        second += share * (1.0 - share)
    return first, second


@inner
def _near_odds(scores, intercept, centre, odds):
    """Make `odds`, taken with the intercept `centre`, anew if that is far away; returns the one they are taken with.

    One exponential a sample serves many intercepts, as long as none of them overflows.
    """
    if abs(intercept - centre) < _NEAR:
        return centre
    for i in range(scores.size):
        odds[i] = np.exp(-(scores[i] + intercept))
    return intercept


@once
def _best_intercept(scores, n_relevant, intercept, odds):
    """The intercept at which the probabilities add up to the number of relevant samples; `odds` is as with that one."""
    lowest = highest = scores[0]
    for i in range(scores.size):
        lowest, highest = min(lowest, scores[i]), max(highest, scores[i])
    # The sum ascends in b, and were all scores the highest, or the lowest, the answer would be known. This bracket
    # keeps Newton's steps from running away where the sum is flat.
    log_odds = np.log(n_relevant / (scores.size - n_relevant))
    low, high = log_odds - highest, log_odds - lowest
    intercept = min(max(intercept, low), high)
    centre = np.inf
    for _ in range(NEWTON_STEPS):
        centre = _near_odds(scores, intercept, centre, odds)
        first, second = _derivatives(odds, np.exp(centre - intercept))
        first -= n_relevant
        if abs(first) <= INTERCEPT_TOLERANCE * scores.size:
            break
        if first > 0:
            high = intercept
        else:
            low = intercept
        ahead = intercept - first / second if second > 0.0 else np.nan
        intercept = ahead if low < ahead < high else 0.5 * (low + high)
    factor = np.exp(_near_odds(scores, intercept, centre, odds) - intercept)
    for i in range(scores.size):
        odds[i] *= factor
    return intercept


@once
def _profile(scores, relevant, n_relevant, intercept, u):
    """The loss at the best intercept, and that intercept; writes the gradient in the scores."""
    intercept = _best_intercept(scores, n_relevant, intercept, u)
    total, product = 0.0, 1.0
    for i in range(scores.size):
        odds, margin = u[i], scores[i] + intercept
        # log(1 + exp(-m)) = max(0, -m) + log(1 + exp(-|m|)), and few logarithms of products instead of many.
        total += max(0.0, -margin if relevant[i] else margin)
        product *= 1.0 + min(odds, 1.0 / odds)
        if product > _LARGE_PRODUCT:
            total += np.log(product)
            product = 1.0
        u[i] = 1.0 / (1.0 + odds) - relevant[i]
    return total + np.log(product), intercept


@kernel
def _profiles(scores, relevant, offsets, weights, intercepts, u):
    """The sum over lists of weight times loss, each at its best intercept; adds to the gradient in the scores.

    A list of one class loses nothing: its intercept goes to infinity.
    """
    total = 0.0
    gradient = np.empty(scores.size)
    for q in range(offsets.size - 1):
        part, mine = scores[offsets[q] : offsets[q + 1]], relevant[offsets[q] : offsets[q + 1]]
        n_relevant = mine.sum()
        if n_relevant == 0 or n_relevant == mine.size:
            continue
        loss, intercepts[q] = _profile(part, mine, n_relevant, intercepts[q], gradient[: part.size])
        total += weights[q] * loss
        for i in range(part.size):
            u[offsets[q] + i] += weights[q] * gradient[i]
    return total


class LogisticLoss:
    """The logistic loss of each problem's samples as a function of the scores.

    Lists and levels of graded labels have the weights that they have in the objective, times the number of lists.
    """

    def __init__(self, problems: list[Lists]) -> None:
        self.problems = problems
        # Where Newton's method begins: near the intercept of the last call, which was made with similar scores.
        self._intercepts = [np.zeros((len(lists.levels), lists.offsets.size - 1)) for lists in problems]

    def __call__(self, problem: int, scores: NDArray[np.float64], u: NDArray[np.float64] | None) -> tuple[float, float]:
        """The loss of a problem, twice: it is the offset of its plane, too; writes the gradient in the scores."""
        lists, intercepts = self.problems[problem], self._intercepts[problem]
        inside = lists.gather(scores)
        total, gradient = 0.0, np.zeros_like(inside)
        for level, own in zip(lists.levels, intercepts, strict=True):
            n_lists, weights = level.weights.size, own.size * level.weights
            part = slice(level.relevant.size)
            total += _profiles(
                inside[part], level.relevant, lists.offsets[: n_lists + 1], weights, own[:n_lists], gradient[part]
            )
        if u is not None:
            lists.scatter(gradient, u)
        return total, total
