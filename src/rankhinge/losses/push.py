"""Losses that push negatives down from the top."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge.losses.base import RankingLoss, decimal

__all__ = ["PNormPush", "TopPush"]


class TopPush(RankingLoss):
    """The share of positives below the best negative: ``t(1, i) = -1 / P``, else 0 (Li, Jin, Zhou, NIPS 2014).

    Examples
    --------
    >>> from rankhinge import losses, ranking_loss
    >>> round(ranking_loss([5, 4, 3, 2, 1], [0, 1, 0, 1, 1], losses.TopPush()), 4)
    1.0
    """

    name = metric = "top-push"

    @staticmethod
    def step_formula(scale: Any, j: Any, i: Any, n_positives: Any, n_negatives: Any, table: Any) -> Any:
        return (j == 1) * -scale

    @staticmethod
    def part_formula(i: Any, above: Any, n_positives: Any, n_negatives: Any, table: Any) -> Any:
        return (above > 0) * 1.0

    @staticmethod
    def divisor_formula(n_positives: Any, n_negatives: Any, ideal: Any, table: Any) -> Any:
        return n_positives


class PNormPush(RankingLoss):
    """``Δ = mean_j (b_j / P)^p`` with b_j positives below negative j (Rudin, JMLR 2009).

    ``t(j, i) = (((P - i) / P)^p - ((P + 1 - i) / P)^p) / N``.

    Parameters
    ----------
    p : float, default 4
        At least 1, which gives the AUC. A larger p puts more weight on the top of the list.

    Examples
    --------
    >>> from rankhinge import losses, ranking_loss
    >>> round(ranking_loss([5, 4, 3, 2, 1], [0, 1, 0, 1, 1], losses.PNormPush(2.0)), 4)
    0.7222
    """

    def __init__(self, p: float = 4.0) -> None:
        if not isinstance(p, int | float | np.number) or not 1.0 <= p <= 1e6:
            raise ValueError(f"p is {p!r}: it must be a number between 1 and 1e6")
        self._table = np.array([p], dtype=np.float64)
        self.name = self.metric = f"p-norm-push@{decimal(self.p)}"

    @property
    def p(self) -> float:
        """The exponent."""
        return float(self._table[0])

    def table(self, length: int) -> NDArray[np.float64]:
        return self._table

    @staticmethod
    def step_formula(scale: Any, j: Any, i: Any, n_positives: Any, n_negatives: Any, table: Any) -> Any:
        return scale * (
            ((n_positives - i) / n_positives) ** table[0] - ((n_positives + 1 - i) / n_positives) ** table[0]
        )

    @staticmethod
    def part_formula(i: Any, above: Any, n_positives: Any, n_negatives: Any, table: Any) -> Any:
        upper, lower = (n_positives + 1 - i) / n_positives, (n_positives - i) / n_positives
        return above * (upper ** table[0] - lower ** table[0])

    @staticmethod
    def divisor_formula(n_positives: Any, n_negatives: Any, ideal: Any, table: Any) -> Any:
        return 1.0 * n_negatives

    def __repr__(self) -> str:
        return f"PNormPush({decimal(self.p)})"
