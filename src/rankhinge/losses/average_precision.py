"""Average precision."""

from __future__ import annotations

from typing import Any

from rankhinge.losses.base import RankingLoss

__all__ = ["AveragePrecision"]


class AveragePrecision(RankingLoss):
    r"""``Δ = 1 - mean_i i / (i + a_i)``, one minus average precision.

    .. math:: t(j, i) = -\frac{1}{P} \frac{i}{(i + j)(i + j - 1)}

    Yue, Finley, Radlinski, Joachims: A support vector method for optimizing average precision, SIGIR 2007.

    Examples
    --------
    >>> from rankhinge.losses import AveragePrecision
    >>> round(AveragePrecision().from_counts([0, 1, 1, 2], n_negatives=4), 4)  # + - + + - + - -
    0.2292
    """

    name = "ap"
    metric = "average_precision"
    is_concave = True

    @staticmethod
    def step_formula(scale: Any, j: Any, i: Any, n_positives: Any, n_negatives: Any, table: Any) -> Any:
        return -scale * i / ((i + j) * (i + j - 1.0))

    @staticmethod
    def part_formula(i: Any, above: Any, n_positives: Any, n_negatives: Any, table: Any) -> Any:
        return above / (i + above)

    @staticmethod
    def divisor_formula(n_positives: Any, n_negatives: Any, ideal: Any, table: Any) -> Any:
        return n_positives
