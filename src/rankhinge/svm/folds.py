"""The problems of all folds side by side.

A fold of a cross-validation is one more problem over the same features: its training part is a list of some of the
rows, its test part tells how well the scores rank the others. So folds need no copies of X, and share each pass over it
as the classes of a multiclass target do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge.features import FeatureMap
from rankhinge.losses import RankingLoss
from rankhinge.objective import RankingObjective
from rankhinge.problems import Lists
from rankhinge.svm.lockstep import side_by_side

__all__ = ["Batch", "Part", "batches"]


class Part(NamedTuple):
    """One problem on one fold: the training part's lists, and how well scores (n,) of all samples rank the test part.

    `quality` is nan where the test part cannot be ranked.
    """

    problem: int
    fold: int
    lists: Lists
    quality: Callable[[NDArray[np.float64]], float]


class Batch:
    """Parts that run in lockstep.

    Attributes
    ----------
    objective : RankingObjective
        With a problem for each of the m parts.
    problems, folds : ndarray of shape (m,)
        Where each part belongs.
    """

    def __init__(self, features: FeatureMap, parts: Sequence[Part], loss: RankingLoss) -> None:
        self.objective = RankingObjective(features, [part.lists for part in parts], loss)
        self.problems = np.array([part.problem for part in parts])
        self.folds = np.array([part.fold for part in parts])
        self._parts = parts

    def quality(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """How well coefficients (d, m) rank the test parts, (m,): one pass over X."""
        rows = self.objective.features.scores(coef)
        return np.array([part.quality(row) for part, row in zip(self._parts, rows, strict=True)])


def batches(features: FeatureMap, parts: Sequence[Part], loss: RankingLoss) -> list[Batch]:
    """The parts in as few batches as memory allows."""
    groups = side_by_side(features, len(parts)) if parts else []
    return [Batch(features, [parts[place] for place in group], loss) for group in groups]
