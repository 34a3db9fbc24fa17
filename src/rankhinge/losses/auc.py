"""The area under the ROC curve."""

from __future__ import annotations

from typing import Any

from rankhinge.losses.base import RankingLoss

__all__ = ["AUC"]


class AUC(RankingLoss):
    """``Δ = mean_i a_i / N``, the share of wrongly ordered pairs; step ``-1 / (P N)``."""

    name = "auc"
    metric = "auc"

    @staticmethod
    def step_formula(scale: Any, j: Any, i: Any, n_positives: Any, n_negatives: Any, table: Any) -> Any:
        # As many as there are j, if these are an array.
        return -scale + 0.0 * j

    @staticmethod
    def part_formula(i: Any, above: Any, n_positives: Any, n_negatives: Any, table: Any) -> Any:
        return above / 1.0

    @staticmethod
    def divisor_formula(n_positives: Any, n_negatives: Any, ideal: Any, table: Any) -> Any:
        return 1.0 * n_positives * n_negatives
