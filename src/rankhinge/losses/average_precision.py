"""Average precision, whole and with a cut."""

from __future__ import annotations

from typing import Any

from rankhinge.losses.base import RankingLoss
from rankhinge.losses.cut import CutLoss

__all__ = ["APAt", "AveragePrecision"]


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


class APAt(CutLoss):
    """``Δ = 1 - Σ_{rank_i ≤ k} i / rank_i / min(k, P)``, one minus average precision cut off after place k.

    Parameters
    ----------
    k : int, float or str
        Number of places, or a share of each list (a float in (0, 1], or ``"1%"``).

    Examples
    --------
    >>> from rankhinge import losses, ranking_loss
    >>> round(ranking_loss([5, 4, 3, 2, 1], [0, 1, 0, 1, 1], losses.APAt(3)), 4)
    0.8333
    """

    word = "ap"
    step_formula = staticmethod(AveragePrecision.step_formula)
    part_formula = staticmethod(AveragePrecision.part_formula)
