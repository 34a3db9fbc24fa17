"""The reciprocal rank of the best positive."""

from __future__ import annotations

from typing import Any

from rankhinge.losses.base import RankingLoss

__all__ = ["ReciprocalRank"]


class ReciprocalRank(RankingLoss):
    """``Δ = 1 - 1 / (1 + a_1)``; step ``-1 / (j (j + 1))`` at i = 1, else 0.

    Examples
    --------
    >>> from rankhinge import losses, ranking_loss
    >>> round(ranking_loss([5, 4, 3, 2, 1], [0, 1, 0, 1, 1], losses.ReciprocalRank()), 4)
    0.5
    """

    name = "rr"
    metric = "reciprocal_rank"

    @staticmethod
    def step_formula(scale: Any, j: Any, i: Any, n_positives: Any, n_negatives: Any, table: Any) -> Any:
        return (i == 1) * -scale / (j * (j + 1.0))

    @staticmethod
    def part_formula(i: Any, above: Any, n_positives: Any, n_negatives: Any, table: Any) -> Any:
        return (i == 1) * (above / (1.0 + above))
