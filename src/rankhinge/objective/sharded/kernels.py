"""Sums over the samples of a shard that logistic functions take."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankhinge._jit import kernel


@kernel
def _logistic(scores, relevant, intercept, u, totals):
    loss, first, second = 0.0, 0.0, 0.0
    lowest, highest = np.inf, -np.inf
    for i in range(scores.size):
        margin = scores[i] + intercept
        small = np.exp(-abs(margin))
        probability = 1.0 / (1.0 + small) if margin >= 0 else small / (1.0 + small)
        loss += max(0.0, -margin if relevant[i] else margin) + np.log1p(small)
        first += probability
        second += small / ((1.0 + small) * (1.0 + small))
        u[i] = probability - relevant[i]
        lowest, highest = min(lowest, scores[i]), max(highest, scores[i])
    totals[0], totals[1], totals[2], totals[3], totals[4] = loss, first, second, lowest, highest


def logistic(scores: Any, relevant: Any, intercept: float, u: Any) -> Any:
    """Loss, ``Σ p``, ``Σ p (1 - p)``, least and greatest score; writes ``p - y``."""
    totals = np.empty(5)
    _logistic(scores, relevant, intercept, u, totals)
    return totals


@kernel
def _log_likelihood(scores, relevant, point, targets, totals):
    slope, offset, centre, spread = point[0], point[1], point[2], point[3]
    for i in range(scores.size):
        z = (scores[i] - centre) / spread
        odds, target = slope * z + offset, targets[1] if relevant[i] else targets[0]
        small = np.exp(-abs(odds))
        probability = 1.0 / (1.0 + small) if odds >= 0 else small / (1.0 + small)
        weight = small / ((1.0 + small) * (1.0 + small))
        totals[0] += max(0.0, odds) + np.log1p(small) - target * odds
        totals[1] += z * (probability - target)
        totals[2] += probability - target
        totals[3] += z * z * weight
        totals[4] += z * weight
        totals[5] += weight


def log_likelihood(scores: Any, relevant: Any, point: Any, targets: Any) -> Any:
    """Loss, its gradient in slope and offset, and its second derivatives."""
    totals = np.zeros(6)
    _log_likelihood(scores, relevant, point, targets, totals)
    return totals
