"""The lists of an objective on arrays, one by one: the blocks of the solvers that go list by list."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankhinge.inference import core
from rankhinge.objective import RankingObjective

__all__ = ["ListBlocks"]


class ListBlocks:
    """``J = Σ π_q J_q`` over the lists q of each problem: a `rankhinge.papers.solvers.blocks.BlockObjective`.

    Parameters
    ----------
    objective : RankingObjective
    """

    def __init__(self, objective: RankingObjective) -> None:
        self.objective = objective

    def block_weights(self, problem: int) -> NDArray[np.float64]:
        """π of a problem's lists."""
        return self.objective.problems[problem].weights

    def block_plane(
        self, weights: NDArray[np.float64], problem: int, block: int
    ) -> tuple[float, NDArray[np.float64], float]:
        """Δ, ``X_qᵀ u`` and J of one list's own hinge at these weights."""
        lists, loss_of = self.objective.problems[problem], self.objective.loss
        inside = slice(int(lists.offsets[block]), int(lists.offsets[block + 1]))
        index = np.arange(inside.start, inside.stop) if lists.index is None else lists.index[inside]
        rows = self.objective.features.rows(index)
        scores = rows @ weights
        loss, value, total = 0.0, 0.0, np.zeros_like(scores)
        for level in lists.levels:
            if block >= level.weights.size:
                continue
            relevant, weight = level.relevant[inside], level.weights[block] / lists.weights[block]
            if weight > 0 and (not loss_of.is_ranking or not relevant.all()):
                found = core.infer_one(scores, relevant, loss_of)
                loss, value = loss + weight * found.loss, value + weight * found.value
                total += weight * found.coefficients
        return loss, rows.T @ total, value
