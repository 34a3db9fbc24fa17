"""Thresholds and calibrations by reductions: what `rankhinge.svm.threshold` does with arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankhinge.objective.cutting import CALIBRATION_STEPS, LEAST_SLOPE, least_difference, log_odds, smoothed
from rankhinge.objective.sharded.engine import Operation
from rankhinge.objective.sharded.talks import Column, Talk

__all__ = ["calibration", "threshold"]

Floats = NDArray[np.float64]
# Best cuts that are asked for the score that follows.
_CANDIDATES = 256


def threshold(column: Column, positives: Floats, sample: Floats, rule: str) -> Talk:
    """The score at or above which samples are called relevant, as `rankhinge.svm.threshold.best_threshold` has it.

    The best cut ends with a positive: to leave out the negatives that stand last can but help. So it takes the numbers
    of negatives above each positive, and the scores that follow the best ones. What is rounding is told by the sample.
    """
    ordered = np.sort(positives)[::-1]
    # Those that score as much are called relevant, too.
    below = np.nextafter(ordered, -np.inf)
    where = (column.scores, column.row, column.problem)
    reply = yield [Operation("ranked", (*where, below), None, "counts")]
    above = np.cumsum(reply.counts[:-1])
    true = np.arange(1, ordered.size + 1)
    # Of equal ones the last counts.
    last = np.append(ordered[:-1] != ordered[1:], True)
    called = true + above
    quality = 2.0 * true / (called + ordered.size) if rule == "f1" else 2.0 * true - called
    quality = np.where(last, quality, -np.inf)
    if rule == "error" and quality.max() <= 0:
        reply = yield [Operation("following", (*where, np.array([np.inf])), None, "each")]
        return float(max(part[0] for part in reply) + 1.0)
    seen = np.concatenate([sample, positives])
    middle = float(np.median(seen))
    least = least_difference(middle, float(np.median(np.abs(seen - middle))))
    best = np.argsort(-quality, kind="stable")[:_CANDIDATES]
    values = np.sort(ordered[best])
    reply = yield [Operation("following", (*where, values), None, "each")]
    following = dict(zip(values.tolist(), np.max(np.stack(reply), axis=0).tolist(), strict=True))
    for i in best.tolist():
        score = float(ordered[i])
        if following[score] == -np.inf:
            return score - 0.5
        if score - following[score] > least:
            return score + (following[score] - score) / 2
    return float(ordered[best[0]])


def calibration(column: Column, n_positives: int, n_negatives: int, centre: float) -> Talk:
    """Slope and offset of Platt's sigmoid, as `rankhinge.svm.threshold.calibrate` has them."""
    place = (column.scores, column.row, column.problem)
    reply = yield [Operation("moments", (*place, centre), None, "each")]
    n = n_positives + n_negatives
    first, second = (float(sum(part[k] for part in reply)) / n for k in range(2))
    mean, spread = centre + first, float(np.sqrt(max(second - first**2, 0.0)))
    if not spread > 0:
        return 1.0, log_odds(n_positives / n) - mean
    targets = np.array(smoothed(n_positives, n_negatives))
    share = (n_negatives * targets[0] + n_positives * targets[1]) / n
    point, step, size = np.array([0.0, log_odds(share)]), np.zeros(2), 1.0
    value, gradient, hessian = np.inf, np.zeros(2), np.eye(2)
    for _ in range(CALIBRATION_STEPS):
        trial = point - size * step
        where = np.array([*trial, mean, spread])
        reply = yield [Operation("likelihood", (*place, where, targets), None, "each")]
        loss, g0, g1, h0, h1, h2 = np.sum(np.stack(reply), axis=0).tolist()
        if loss > value - 1e-4 * size * float(gradient @ step):
            size /= 2
            if size <= 1e-9 or not step.any():
                break
            continue
        done = value - loss <= 0.0
        point, value, gradient = trial, loss, np.array([g0, g1])
        if done:
            break
        hessian = np.array([[h0, h1], [h1, h2]])
        step, size = np.linalg.solve(hessian + 1e-9 * np.eye(2) * np.trace(hessian), gradient), 1.0
        if not gradient @ step > 1e-15 * abs(value):
            break
    slope, offset = float(point[0]), float(point[1])
    if slope < LEAST_SLOPE:
        slope, offset = LEAST_SLOPE, log_odds(share)
    return slope / spread, offset - slope * mean / spread
