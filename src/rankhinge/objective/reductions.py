"""What a fit asks of an objective in addition to planes: numbers that summarise scores, coefficients and features.

Where samples are spread over workers, each of these is a reduction. Nobody else reads what a handle holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge.features import FeatureMap, audit
from rankhinge.objective.handles import Evaluation, Scores
from rankhinge.objective.logistic import LogisticLoss
from rankhinge.objective.variance import variances_within
from rankhinge.problems import Lists

__all__ = ["Apart", "Audited", "Counts", "Reductions", "deviations"]

# What is less than this part of its terms is what rounding leaves of them: a spread of equal scores, a slope that
# cancels.
NO_SPREAD = 1e-12


class Counts(NamedTuple):
    """Of each problem, (K,): samples and positives in its lists, negatives of a list on average, and lists."""

    n_samples: NDArray[np.int64]
    n_positives: NDArray[np.int64]
    n_negatives: NDArray[np.float64]
    n_lists: NDArray[np.int64]


class Apart(NamedTuple):
    """Slopes of the positive and of the negative coefficients, (d, m) each, and ``Σ |u|``, (m,).

    `occupied` says which columns of X have an entry at all, (d,).
    """

    rising: NDArray[np.float64]
    falling: NDArray[np.float64]
    sizes: NDArray[np.float64]
    occupied: NDArray[np.bool_]


class Audited(NamedTuple):
    """Values at some weights, (m,), and what bounds their rounding.

    With :math:`L_i` the most that a value changes with the score of sample i, `sizes` are ``Σ L_i (|X||w|)_i`` and
    `slopes` are ``Σ L_i |x_i|``, (m,) each. `scores` is the handle of the same points.
    """

    values: NDArray[np.float64]
    sizes: NDArray[np.float64]
    slopes: NDArray[np.float64]
    scores: Scores


class Reductions:
    """The part of `rankhinge.svm.protocol.FitObjective` that needs arrays; a mixin."""

    features: FeatureMap
    problems: list[Lists]
    n_samples: int
    slack_used: float = 0.0
    evaluate: Callable[..., Evaluation]
    evaluate_tight: Callable[..., Evaluation]
    for_each: Callable[..., Evaluation]
    adjoint: Callable[[Scores], NDArray[np.float64]]

    def counts(self) -> Counts:
        """How many samples, positives, negatives and lists there are."""
        n_samples = np.array([int(lists.offsets[-1]) for lists in self.problems])
        n_positives = np.array([lists.n_positives() for lists in self.problems])
        n_negatives = np.array([lists.n_negatives() for lists in self.problems])
        return Counts(n_samples, n_positives, n_negatives, np.array([lists.weights.size for lists in self.problems]))

    def spread(self, scores: Scores) -> NDArray[np.float64]:
        """Standard deviation of each row of scores about the means of its lists, (m,); 0 if that is rounding."""
        return np.array([_spread(self.problems[k], row) for k, row in zip(scores.problems, scores.values, strict=True)])

    def largest(self, scores: Scores) -> NDArray[np.float64]:
        """The largest score of each row, by its size, (m,)."""
        most: NDArray[np.float64] = np.max(np.abs(scores.values), axis=1, initial=0.0)
        return most

    def apart(self, coefficients: Scores) -> Apart:
        """Slopes of the positive and of the negative coefficients; one pass over X."""
        u, m = coefficients.values, coefficients.problems.size
        # A combination of all rows shows which columns are empty.
        rows = np.random.default_rng(0).uniform(1.0, 2.0, (1, self.n_samples))
        problems = np.concatenate([coefficients.problems, coefficients.problems, [0]])
        slopes = self.adjoint(Scores(np.concatenate([np.maximum(u, 0.0), np.minimum(u, 0.0), rows]), problems))
        return Apart(slopes[:, :m], slopes[:, m:-1], np.abs(u).sum(axis=1), slopes[:, -1] != 0.0)

    def variances(self, problem: int) -> NDArray[np.float64]:
        """How much each feature varies within the lists of a problem, (d,); one pass over X."""
        return variances_within(self.features, self.problems[problem])

    def logistic(self) -> Callable[[Scores], Evaluation]:
        """A function to descend on: the logistic loss of scores, with an intercept for each list."""
        loss = LogisticLoss(self.problems)
        return lambda scores: self.for_each(loss, scores)

    def audit(
        self,
        weights: NDArray[np.float64],
        problems: NDArray[np.int64],
        *,
        tight: bool = False,
        lengths: NDArray[np.float64] | None = None,
    ) -> Audited:
        """Values at the columns of `weights` (d, m), anew, with what bounds their rounding; one pass over X.

        `lengths` (n,) are those of the rows that a solver has seen, if it has seen others than those of X.
        """
        found = audit(self.features, weights)
        scores = Scores(found.scores, problems)
        values = (self.evaluate_tight if tight else self.evaluate)(scores, coefficients=False).value
        sizes, slopes = np.empty_like(values), np.empty_like(values)
        for c, k in enumerate(problems):
            most = self.problems[k].most_changes(self.n_samples) * (2 if tight else 1)
            sizes[c], slopes[c] = most @ found.sizes[c], most @ (found.lengths if lengths is None else lengths)
        return Audited(values, sizes, slopes, scores)

    def cut(self, scores: Scores, rule: Callable[[NDArray[np.float64], NDArray[np.bool_]], Any]) -> list[Any]:
        """``rule(scores, relevant)`` for the samples of each row that are in its lists, relevant at all."""
        found = []
        for k, row in zip(scores.problems, scores.values, strict=True):
            lists = self.problems[k]
            found.append(rule(lists.gather(row), lists.levels[0].relevant))
        return found


def deviations(lists: Lists, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores less the means of their lists, list by list."""
    inside = lists.gather(scores)
    sizes = np.diff(lists.offsets)
    means = np.add.reduceat(inside, lists.offsets[:-1]) / sizes
    away: NDArray[np.float64] = inside - np.repeat(means, sizes)
    return away


def _spread(lists: Lists, scores: NDArray[np.float64]) -> float:
    """Standard deviation of the scores about the means of their lists."""
    deviation = float(np.std(deviations(lists, scores)))
    return deviation if deviation > NO_SPREAD * float(np.max(np.abs(lists.gather(scores)))) else 0.0
