"""Latent problems over all their candidates, which give the true value of a point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankhinge.features import row_lengths
from rankhinge.latent.candidates import CandidateFeatures, Sweep
from rankhinge.latent.objective import BagLists, LatentObjective
from rankhinge.latent.point import Point
from rankhinge.latent.problem import LatentProblem
from rankhinge.solvers.certificate import Rounding, rounding_bound

__all__ = ["MakeObjective", "Whole"]

# The sizes of the coefficients of a list add up to no more, 2 for the positives and 2 for the negatives.
_MOST_CHANGES = 4.0

MakeObjective: TypeAlias = Callable[[Any, Sequence[BagLists]], LatentObjective]
"""Of a feature map and problems, their objective."""


class Whole:
    """K latent problems over all candidates.

    Parameters
    ----------
    features : CandidateFeatures
    offsets : ndarray of shape (n_bags + 1,)
    problems : sequence of LatentProblem
    C : ndarray of shape (K,)
    make : MakeObjective

    Attributes
    ----------
    allowed : ndarray of bool or None
        Candidates that negatives may take; None: all.
    n_best : int
        How many of each bag's best candidates a sweep finds.
    sees_all : bool
        Whether the objective looks at all candidates of positives, too, whatever is fixed.
    """

    sees_all = False

    def __init__(
        self,
        features: CandidateFeatures,
        offsets: NDArray[np.int64],
        problems: Sequence[LatentProblem],
        C: NDArray[np.float64],
        make: MakeObjective,
    ) -> None:
        self.features, self.offsets, self.problems = features, offsets, list(problems)
        self.C, self.make = C, make
        self.allowed: NDArray[np.bool_] | None = None
        self.n_best = 1
        self._longest: float | None = None

    def is_exact(self, k: int) -> bool:
        """Whether J of problem k is computed exactly, so that its outer objective cannot rise."""
        return True

    @property
    def passes(self) -> float:
        """Rows of X read so far, in units of all candidates."""
        return self.features.counter.n_rows / max(1, self.features.n_samples)

    def sweep(self, ks: NDArray[np.int64], weights: NDArray[np.float64], fixed: list[NDArray[np.int64]]) -> Sweep:
        """The best candidates of all bags at the columns of `weights`, and the scores of the fixed ones."""
        at = np.tile(self.offsets[:-1], (ks.size, 1))
        for c, k in enumerate(ks):
            places = fixed[c]
            members = self.problems[k].members[places >= 0]
            at[c, members] = places[places >= 0]
        return self.features.sweep(weights, self.offsets, self.n_best, at, self.allowed)

    def hinge(self, k: int, scores: NDArray[np.float64], fixed: NDArray[np.int64]) -> float:
        """J of problem k for the scores of its members."""
        objective = self.make(self.features, [self.problems[k].seen_among(None, fixed)])
        return objective.hinge(0, scores, None)[0]

    def point(self, k: int, w: NDArray[np.float64], found: Sweep, c: int, fixed: NDArray[np.int64]) -> Point:
        """The point w of problem k with its true primal value."""
        members = self.problems[k].members
        best, values, at = found.places[c][members], found.values[c][members], found.at[c][members]
        scores = np.where(fixed >= 0, at, values[:, 0])
        primal = 0.5 * float(w @ w) + self.C[k] * self.hinge(k, scores, fixed)
        return Point(w, best, values, at, primal)

    def outer_value(self, k: int, point: Point) -> float:
        """``F(w)``: positives and negatives at their best, known candidates as they are."""
        given = self.problems[k].given
        assert point.values is not None
        assert point.at is not None
        scores = np.where(given >= 0, point.at, point.values[:, 0])
        return 0.5 * float(point.w @ point.w) + self.C[k] * self.hinge(k, scores, given)

    def value_at_zero(self, k: int) -> float:
        """``F(0)``."""
        problem = self.problems[k]
        return float(self.C[k]) * self.hinge(k, np.zeros(problem.members.size), problem.given)

    def at_zero(self, k: int, fixed: NDArray[np.int64]) -> Point:
        """The point w = 0, which every fit must improve on."""
        w = np.zeros(self.features.n_features)
        return self.point(k, w, self.sweep(np.array([k]), w[:, None], [fixed]), 0, fixed)

    def rounding(self, k: int, point: Point) -> float:
        """By how much rounding may have changed value and bound, from the longest candidate."""
        near = max(point.primal - point.dual, 0.0) if np.isfinite(point.primal) else 0.0
        C = self._largest(k) * float(self.C[k])
        return rounding_bound(self._n_terms(k), C, self._slope, near, float(np.linalg.norm(point.w)))

    def _largest(self, k: int) -> float:
        """J at 0, or 1: of a ranking loss at most 1, of hinges with weights the sum of these."""
        return max(1.0, self.value_at_zero(k) / float(self.C[k]))

    @property
    def _slope(self) -> float:
        """How fast J can change with w; one pass over all candidates, once."""
        if self._longest is None:
            self.features.counter.add(self.features.n_samples, 1)
            self._longest = float(np.max(row_lengths(self.features), initial=0.0))
        return _MOST_CHANGES * self._longest

    def hold(self, k: int, point: Point) -> None:
        """Hold the planes that carry the bound against J."""
        if point.planes is None or not np.isfinite(point.primal):
            return
        value = (point.primal - 0.5 * float(point.w @ point.w)) / float(self.C[k])
        largest = self._largest(k)
        allowed = Rounding(self._n_terms(k) + point.n_iter, largest * self._slope, largest=largest)
        allowed.hold(point.planes.seen_from(point.w), value, float(np.linalg.norm(point.w)), k)

    def _n_terms(self, k: int) -> int:
        return self.features.n_features + self.problems[k].members.size
