"""Hard constraints that are read off the scores of samples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankhinge.features import FeatureMap
from rankhinge.objective import Scores
from rankhinge.papers.solvers.constraints import Violation

__all__ = ["TOLERATED", "EasySamples"]

# By how much a constraint may be violated, and by how much an easy sample may lie inside the margin.
TOLERATED = 1e-6


class EasySamples:
    """The constraints ``y_i w·x_i ≥ 1`` for the easy samples of each problem, read off their scores.

    Parameters
    ----------
    features : FeatureMap
    signs : ndarray of shape (K, n)
        y of the easy samples, 0 for all others.
    tol : float
        A constraint holds if it is violated by no more; `TOLERATED`, by which samples count as easy.
    limit : int
        How many are handed out at a time, the worst first.
    """

    def __init__(
        self, features: FeatureMap, signs: NDArray[np.int8], *, tol: float = TOLERATED, limit: int = 64
    ) -> None:
        self.features, self.signs, self.tol, self.limit = features, signs, tol, limit

    def violated(self, weights: NDArray[np.float64], scores: Scores, problems: NDArray[np.int64]) -> list[Violation]:
        """For each problem the easy samples that lie most inside the margin."""
        found = []
        for row, problem in zip(scores.values, problems, strict=True):
            easy = np.flatnonzero(self.signs[problem])
            missing = 1.0 - self.signs[problem, easy] * row[easy]
            worst = np.argsort(-missing, kind="stable")[: self.limit]
            names = easy[worst[missing[worst] > self.tol]]
            rows = self.signs[problem, names][:, None] * self.features.rows(names)
            found.append(Violation(names, rows, np.ones(names.size)))
        return found
