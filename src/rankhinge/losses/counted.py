"""Losses that count the positives among the first k places. Joachims (2005) has them with another bound."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge.losses.cut import CutLoss

__all__ = ["F1At", "HitAt", "PrecisionAt", "RPrecision", "RecallAt"]


class PrecisionAt(CutLoss):
    """``Δ = (min(k, P) - m) / k`` with m positives among the first k: precision@k against the best possible.

    In a list of at most k samples every ranking has all positives among the first k, so the loss is 0.

    Parameters
    ----------
    k : int, float or str
        Number of places, or a share of each list (a float in (0, 1], or ``"1%"``).

    Examples
    --------
    >>> from rankhinge.losses import PrecisionAt
    >>> PrecisionAt(2).from_counts([0, 1], n_negatives=4)  # + - + - - -
    0.5
    """

    word = "precision"

    @staticmethod
    def norm_formula(n_positives: Any, depth: Any, ideal: Any) -> Any:
        return depth


class RecallAt(CutLoss):
    """``Δ = (min(k, P) - m) / P`` with m positives among the first k.

    Parameters
    ----------
    k : int, float or str
        Number of places, or a share of each list (a float in (0, 1], or ``"1%"``).

    Examples
    --------
    >>> from rankhinge import losses, ranking_loss
    >>> round(ranking_loss([5, 4, 3, 2, 1], [0, 1, 0, 1, 1], losses.RecallAt(2)), 4)
    0.3333
    """

    word = "recall"

    @staticmethod
    def norm_formula(n_positives: Any, depth: Any, ideal: Any) -> Any:
        return n_positives


class F1At(CutLoss):
    """``Δ = 2 (min(k, P) - m) / (k + P)``, with m positives among the first k, which are predicted positive.

    Parameters
    ----------
    k : int, float or str
        Number of places, or a share of each list (a float in (0, 1], or ``"1%"``).

    Examples
    --------
    >>> from rankhinge import losses, ranking_loss
    >>> round(ranking_loss([5, 4, 3, 2, 1], [0, 1, 0, 1, 1], losses.F1At(2)), 4)
    0.4
    """

    word = "f1"

    @staticmethod
    def norm_formula(n_positives: Any, depth: Any, ideal: Any) -> Any:
        return 0.5 * (depth + n_positives)


class HitAt(CutLoss):
    """``Δ = [m = 0]``: 1 if no positive is among the first k, else 0.

    Parameters
    ----------
    k : int, float or str
        Number of places, or a share of each list (a float in (0, 1], or ``"1%"``).

    Examples
    --------
    >>> from rankhinge import losses, ranking_loss
    >>> round(ranking_loss([5, 4, 3, 2, 1], [0, 1, 0, 1, 1], losses.HitAt(1)), 4)
    1.0
    """

    word = "hit"

    @staticmethod
    def gain_formula(i: Any, table: Any) -> Any:
        return (i == 1) * 1.0


class RPrecision(CutLoss):
    """``Δ = 1 - m / P`` with m positives among the first P, where precision, recall and F1 coincide.

    Examples
    --------
    >>> from rankhinge import losses, ranking_loss
    >>> round(ranking_loss([5, 4, 3, 2, 1], [0, 1, 0, 1, 1], losses.RPrecision()), 4)
    0.6667
    """

    name = metric = word = "r-precision"

    def __init__(self) -> None:
        self._k = 0

    def depths(self, n_samples: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.zeros_like(np.asarray(n_samples, np.int64))

    @staticmethod
    def norm_formula(n_positives: Any, depth: Any, ideal: Any) -> Any:
        return n_positives

    def __repr__(self) -> str:
        return "RPrecision()"
