"""The search over a grid that `RankSVCCV` and `SVMRankerCV` share: C along warm-started paths, for either bound."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from rankhinge.features import feature_map
from rankhinge.losses import get_loss
from rankhinge.objective import Lists
from rankhinge.svm._base import LinearRankingMachine, Tuning
from rankhinge.svm.folds import Batch, Part, batches
from rankhinge.svm.path import walk_path
from rankhinge.svm.tight import n_negatives
from rankhinge.svm.tight_cv import choose_tight, grid_of, tight_grid

__all__ = ["GRIDS", "TUNED", "Search"]

# What is a number without cross-validation, and a grid with it.
TUNED = ("C", "scale", "init_C", "warm_start")
GRIDS: dict[str, list[Any]] = {
    "Cs": [Interval(Integral, 1, None, closed="left"), "array-like", None],
    "scales": [Interval(Integral, 1, None, closed="left"), "array-like"],
    "init_Cs": [Interval(Integral, 1, None, closed="left"), "array-like", None],
    "scoring": [str, callable, None],
}

_SPAN, _N_CS = (-1.0, 5.0), 8
_NO_FOLD = "no fold has both a positive and a negative in its test part: use fewer folds"


def _choose(scores: NDArray[np.float64]) -> int:
    """The smallest C with the highest mean score over the folds; folds without a score do not count."""
    counted = scores[:, ~np.isnan(scores).any(axis=0)]
    if counted.shape[1] == 0:
        raise ValueError(_NO_FOLD)
    return int(np.argmax(counted.mean(axis=1)))


class Search(LinearRankingMachine):
    """The search over the grid, for machines that can make folds."""

    def _check_bound(self) -> None:
        if self.bound == "tight" and get_loss(self.loss).family == "zero-one":
            raise ValueError("bound='tight' compares rankings: loss='zero-one' has none")

    def _search(self, X: Any, parts: list[Part], n_folds: int, problems: list[Lists | None]) -> Tuning:
        """What suits each problem best, judged by the folds."""
        if not parts:
            raise ValueError("no fold has both a positive and a negative in its training part: use fewer folds")
        groups = batches(feature_map(X), parts, get_loss(self.loss))
        search = self._search_tight if self.bound == "tight" else self._search_convex
        return search(groups, n_folds, problems)

    def _search_convex(self, groups: list[Batch], n_folds: int, problems: list[Lists | None]) -> Tuning:
        """C of each problem by the scores along the folds' paths."""
        K = len(problems)
        self.Cs_ = grid_of(_N_CS if self.Cs is None else self.Cs, "Cs", *_SPAN)
        scores = np.full((K, self.Cs_.size, n_folds), np.nan)
        for group in groups:
            for j, result in enumerate(walk_path(group.objective, self.Cs_, tol=self.tol, max_iter=self.max_iter)):
                scores[group.problems, j, group.folds] = group.quality(result.coef)
        chosen = [0 if lists is None else _choose(scores[k]) for k, lists in enumerate(problems)]
        self.scores_ = scores if K > 1 else scores[0]
        return Tuning(C=self.Cs_[chosen])

    def _search_tight(self, groups: list[Batch], n_folds: int, problems: list[Lists | None]) -> Tuning:
        """C, scale and C of the start of each problem."""
        K = len(problems)
        negatives = np.array([1.0 if lists is None else n_negatives(lists) for lists in problems])
        grid = tight_grid(self.init, self.init_Cs, self.scales, self.Cs, negatives)
        choice = choose_tight(groups, n_folds, grid, tol=self.tol, max_iter=self.max_iter)
        for k, lists in enumerate(problems):
            if lists is not None and np.isnan(choice.init_scores[k]).any(axis=0).all():
                raise ValueError(_NO_FOLD)
        for name, values in zip(
            ("Cs_", "scales_", "scores_", "init_scores_", "init_C_"),
            (choice.Cs, grid.scales, choice.scores, choice.init_scores, choice.tuning.init_C),
            strict=True,
        ):
            setattr(self, name, values if K > 1 else values[0])
        self.init_Cs_ = grid.init_Cs
        return choice.tuning
