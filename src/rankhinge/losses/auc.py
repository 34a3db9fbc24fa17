"""The area under the ROC curve, whole and up to a false-positive rate."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge.losses.base import RankingLoss

__all__ = ["AUC", "PartialAUC"]


class AUC(RankingLoss):
    """``Δ = mean_i a_i / N``, the share of wrongly ordered pairs; step ``-1 / (P N)``.

    Examples
    --------
    >>> from rankhinge import losses, ranking_loss
    >>> round(ranking_loss([5, 4, 3, 2, 1], [0, 1, 0, 1, 1], losses.AUC()), 4)
    0.8333
    """

    name = "auc"
    metric = "auc"

    @staticmethod
    def step_formula(scale: Any, j: Any, i: Any, n_positives: Any, n_negatives: Any, table: Any) -> Any:
        # Multiplied by j so that an array of j gives an array.
        return -scale + 0.0 * j

    @staticmethod
    def part_formula(i: Any, above: Any, n_positives: Any, n_negatives: Any, table: Any) -> Any:
        return above / 1.0

    @staticmethod
    def divisor_formula(n_positives: Any, n_negatives: Any, ideal: Any, table: Any) -> Any:
        return 1.0 * n_positives * n_negatives


class PartialAUC(RankingLoss):
    """One minus the area under the ROC curve up to a false-positive rate β, divided by β.

    ``t(j, i) = -w_j / (P β N)`` with ``w_j = clip(β N - j + 1, 0, 1)``: only the ``β N`` best negatives count.
    scikit-learn's ``roc_auc_score(max_fpr=β)`` rescales this value (McClish). See Narasimhan and Agarwal, ICML 2013.

    Parameters
    ----------
    max_fpr : float, default 0.1
        β in (0, 1].

    Examples
    --------
    >>> from rankhinge import losses, ranking_loss
    >>> round(ranking_loss([5, 4, 3, 2, 1], [0, 1, 0, 1, 1], losses.PartialAUC(0.5)), 4)
    1.0
    """

    def __init__(self, max_fpr: float = 0.1) -> None:
        if not isinstance(max_fpr, int | float | np.number) or not 0.0 < max_fpr <= 1.0:
            raise ValueError(f"max_fpr is {max_fpr!r}: it must be a number above 0 and at most 1")
        self._table = np.array([max_fpr], dtype=np.float64)
        self.name = self.metric = f"partial-auc@{float(max_fpr)!r}"

    @property
    def max_fpr(self) -> float:
        """β."""
        return float(self._table[0])

    def table(self, length: int) -> NDArray[np.float64]:
        return self._table

    @staticmethod
    def step_formula(scale: Any, j: Any, i: Any, n_positives: Any, n_negatives: Any, table: Any) -> Any:
        bound = table[0] * n_negatives
        whole = bound // 1.0
        return -scale * ((j <= whole) + (j == whole + 1.0) * (bound - whole))

    @staticmethod
    def part_formula(i: Any, above: Any, n_positives: Any, n_negatives: Any, table: Any) -> Any:
        bound = table[0] * n_negatives
        return (above <= bound) * above + (above > bound) * bound

    @staticmethod
    def divisor_formula(n_positives: Any, n_negatives: Any, ideal: Any, table: Any) -> Any:
        return table[0] * n_positives * n_negatives

    def __repr__(self) -> str:
        return f"PartialAUC({self.max_fpr})"
