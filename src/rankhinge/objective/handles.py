"""What objectives on arrays hand out: scores and coefficients, a row for each column that a solver asked for.

`Handles` has the algebra of it, which is the same whatever is made of the scores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankhinge import _threads
from rankhinge.features import FeatureMap

__all__ = ["Evaluation", "Handles", "Infer", "Scores"]

# With fewer scores in all, other threads take longer to wake up than the calling one needs for the work.
_SMALL = 1 << 16

Infer: TypeAlias = Callable[[int, NDArray[np.float64], NDArray[np.float64] | None], tuple[float, float]]
"""Of a problem's number and scores: J, Δ and, if there is room for it, u."""


class Scores(NamedTuple):
    """Scores of some problems: row c of `values` belongs to problem ``problems[c]``."""

    values: NDArray[np.float64]
    problems: NDArray[np.int64]

    def select(self, places: NDArray[np.int64]) -> Scores:
        """Some of the rows."""
        return Scores(self.values[places], self.problems[places])


class Evaluation(NamedTuple):
    """``J``, the loss of the most violating rankings, and u: ``value = loss + Σ u s``, each by problem."""

    value: NDArray[np.float64]
    loss: NDArray[np.float64]
    coefficients: Scores | None


class Handles:
    """The calls of `rankhinge.solvers.protocol.Objective` that know of features alone.

    Parameters
    ----------
    features : FeatureMap
    n_problems : int
    """

    def __init__(self, features: FeatureMap, n_problems: int) -> None:
        self.features, self.n_problems = features, n_problems
        self.n_samples, self.n_features = features.n_samples, features.n_features
        self.n_entries = features.n_entries
        self.width = features.n_entries / max(1, features.n_samples)

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

    @staticmethod
    def for_each(infer: Infer, scores: Scores, coefficients: bool = True) -> Evaluation:
        """``infer(problem, scores, u)`` for each column, on the threads; it has to write all of u."""
        problems, rows = scores.problems.tolist(), scores.values
        u = np.empty_like(rows) if coefficients else None
        tasks = [partial(infer, k, rows[c], None if u is None else u[c]) for c, k in enumerate(problems)]
        found = [task() for task in tasks] if rows.size < _SMALL else _threads.run(tasks)
        value, loss = np.array(found, dtype=np.float64).reshape(-1, 2).T.copy()
        return Evaluation(value, loss, None if u is None else Scores(u, scores.problems))
