"""The metric of early recognition in virtual screening."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge.losses.base import RankingLoss, decimal

__all__ = ["BEDROC"]


class BEDROC(RankingLoss):
    r"""One minus the Boltzmann-enhanced discrimination of ROC (Truchon and Bayly 2007).

    With ``D(i) = exp(-α i / n)`` and the sums of the best and the worst ranking,

    .. math:: \Delta = \frac{\sum_{i \le P} D(i) - \sum_i D(i + a_i)}{\sum_{i \le P} D(i) - \sum_{N < i \le n} D(i)}.

    The step is written with ``q = exp(-α / n)``: ``-q^(i+j-2) (1 - q)² / ((1 - q^P) (1 - q^N))``.

    Parameters
    ----------
    alpha : float, default 20
        α > 0. A larger α puts more weight on the first places: with 20 the first 8 % carry 80 % of the weight.

    Examples
    --------
    >>> from rankhinge import losses, ranking_loss
    >>> round(ranking_loss([5, 4, 3, 2, 1], [0, 1, 0, 1, 1], losses.BEDROC(20.0)), 4)
    0.9823
    """

    def __init__(self, alpha: float = 20.0) -> None:
        if not isinstance(alpha, int | float | np.number) or not 0.0 < alpha <= 1e6:
            raise ValueError(f"alpha is {alpha!r}: it must be a number above 0 and at most 1e6")
        self._table = np.array([alpha], dtype=np.float64)
        self.name = self.metric = f"bedroc@{decimal(self.alpha)}"

    @property
    def alpha(self) -> float:
        """α."""
        return float(self._table[0])

    def table(self, length: int) -> NDArray[np.float64]:
        return self._table

    @staticmethod
    def step_formula(scale: Any, j: Any, i: Any, n_positives: Any, n_negatives: Any, table: Any) -> Any:
        rate = table[0] / (n_positives + n_negatives)
        return scale * np.exp(-rate * (i + j - 2)) * np.expm1(-rate)

    @staticmethod
    def part_formula(i: Any, above: Any, n_positives: Any, n_negatives: Any, table: Any) -> Any:
        rate = table[0] / (n_positives + n_negatives)
        return -np.exp(-rate * (i - 1)) * np.expm1(-rate * above)

    @staticmethod
    def divisor_formula(n_positives: Any, n_negatives: Any, ideal: Any, table: Any) -> Any:
        rate = table[0] / (n_positives + n_negatives)
        return -np.expm1(-rate * n_positives) * np.expm1(-rate * n_negatives) / np.expm1(-rate)

    def __repr__(self) -> str:
        return f"BEDROC({decimal(self.alpha)})"
