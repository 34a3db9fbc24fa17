"""Where rankings are cut: what the rules for arrays (`rankhinge.svm.threshold`) and for shards have in common."""

from __future__ import annotations

import numpy as np

__all__ = ["CALIBRATION_STEPS", "LEAST_SLOPE", "least_difference", "log_odds", "smoothed"]

# Newton steps of a calibration, and the least slope of one: it must not reverse a ranking, however poor that is.
CALIBRATION_STEPS = 100
LEAST_SLOPE = 1e-6


def least_difference(middle: float, spread: float) -> float:
    """By how much two scores have to differ at least: less is rounding, and may be another sign elsewhere.

    It goes by the bulk of the scores, their median and the median distance from it: a single huge one must not merge
    all others. An offset that all have is rounded like any number, but does not make their differences any less.
    """
    return 1e-9 * spread + 1e-14 * abs(middle)


def smoothed(n_positives: int, n_negatives: int) -> tuple[float, float]:
    """What a calibration takes for the probabilities of a negative and of a positive (Platt 1999)."""
    return 1 / (n_negatives + 2), (n_positives + 1) / (n_positives + 2)


def log_odds(probability: float) -> float:
    """``log(p / (1 - p))``, finite also for 0 and 1."""
    clipped = min(max(float(probability), 1e-9), 1 - 1e-9)
    return float(np.log(clipped / (1 - clipped)))
