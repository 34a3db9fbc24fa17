"""Where to cut a ranking, so that `predict` is usable: ranking itself has no threshold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from rankhinge.objective.cutting import CALIBRATION_STEPS, LEAST_SLOPE, least_difference, log_odds, smoothed

__all__ = ["Cut", "best_threshold", "calibrate", "classes_of", "constant_intercepts", "cut_rankings"]


def best_threshold(scores: NDArray[np.float64], relevant: NDArray[np.bool_], rule: str | float) -> float:
    """The score at or above which a sample is called relevant.

    Parameters
    ----------
    scores, relevant : ndarray of shape (n,)
    rule : {"f1", "error"} or float
        The threshold with the highest F1, the one with the fewest errors, or a given one. On rare positives the
        fewest errors often means calling nothing relevant; F1 does not have that flaw.

    Returns
    -------
    float
        Midway between two neighbouring scores, or beyond the first or the last; among equally good ones the highest.
    """
    if not isinstance(rule, str):
        return float(rule)
    middle = float(np.median(scores))
    away = np.subtract(scores, middle)
    spread = float(np.median(np.abs(away, out=away), overwrite_input=True))
    least = least_difference(middle, spread)
    del away
    # In any order among equals, between which no threshold can lie.
    order = np.argsort(-scores)
    ranked, quality = scores[order], np.cumsum(relevant[order], dtype=np.float64)
    # Arrays of all samples are what a fit has at its peak: in place, and none longer than needed.
    del order
    called = np.arange(1, scores.size + 1)
    quality *= 2.0
    if rule == "f1":
        quality /= called + int(relevant.sum())
    else:
        quality -= called
    # Only between different scores can a threshold lie, and what differs by rounding is not different: the same
    # sample in another batch or container would be called something else.
    quality[:-1][ranked[:-1] - ranked[1:] <= least] = -np.inf
    best = int(np.argmax(quality))
    if rule == "error" and quality[best] <= 0:
        return float(ranked[0] + 1.0)
    following = ranked[best + 1] if best + 1 < ranked.size else ranked[best] - 1.0
    return float(ranked[best] + (following - ranked[best]) / 2)


def calibrate(scores: NDArray[np.float64], relevant: NDArray[np.bool_]) -> tuple[float, float]:
    """Slope a > 0 and offset c such that ``a s + c`` is the log-odds of being relevant (Platt 1999).

    The targets are smoothed as Platt does, ``(n₊ + 1) / (n₊ + 2)`` and ``1 / (n₋ + 2)``, so that separable scores do
    not drive the slope to infinity. Newton's method on the logistic likelihood of standardised scores, with steps that
    are halved until they lead down: a rare class far away from the others lets whole steps run away (Lin, Lin and Weng
    2007).
    """
    spread = scores.std()
    if not spread > 0:
        return 1.0, log_odds(relevant.mean()) - float(scores.mean())
    centre = scores.mean()
    z = (scores - centre) / spread
    n_relevant = int(relevant.sum())
    low, high = smoothed(n_relevant, scores.size - n_relevant)
    target = np.where(relevant, high, low)
    slope, offset = _sigmoid(z, target)
    if slope < LEAST_SLOPE:
        slope, offset = LEAST_SLOPE, log_odds(target.mean())
    return float(slope / spread), float(offset - slope * centre / spread)


def _sigmoid(z: NDArray[np.float64], target: NDArray[np.float64]) -> tuple[float, float]:
    """Slope and offset of the sigmoid of z that is likeliest to give the targets."""
    moments = np.stack([z, np.ones_like(z)])
    point = np.array([0.0, log_odds(target.mean())])

    def loss(point: NDArray[np.float64]) -> float:
        odds = point @ moments
        return float(np.sum(np.logaddexp(0.0, odds) - target * odds))

    value = loss(point)
    for _ in range(CALIBRATION_STEPS):
        probability = expit(point @ moments)
        gradient = moments @ (probability - target)
        hessian = (moments * (probability * (1 - probability))) @ moments.T
        step = np.linalg.solve(hessian + 1e-9 * np.eye(2) * np.trace(hessian), gradient)
        share, before = 1.0, value
        while (value := loss(point - share * step)) > before - 1e-4 * share * float(gradient @ step) and share > 1e-9:
            share /= 2
        if value >= before:
            break
        point = point - share * step
    return float(point[0]), float(point[1])


def _labelled(targets: Any, k: int) -> Any:
    """Which samples are labelled for problem k, as an index."""
    return slice(None) if targets.labelled is None else targets.labelled[k]


def constant_intercepts(targets: Any, usable: NDArray[np.bool_]) -> NDArray[np.float64]:
    """For problems with one class only, 1 or -1, so that they are called what all their samples are; else 0."""
    intercepts = np.zeros(usable.size)
    for k in np.flatnonzero(~usable).tolist():
        intercepts[k] = 1.0 if targets.relevant[k][_labelled(targets, k)].any() else -1.0
    return intercepts


@dataclass(frozen=True)
class Cut:
    """How decisions are made of scores: the kind of the target, and the rule, as for `cut_rankings`.

    Called with the scores and the relevance of one problem's samples. It is a value, so that other holders of the
    scores can apply the rule by other means.
    """

    kind: str
    threshold: str | float

    def __call__(self, scores: NDArray[np.float64], relevant: NDArray[np.bool_]) -> tuple[float, float]:
        """Intercept and slope of one problem with both classes."""
        if self.kind != "multiclass":
            return -best_threshold(scores, relevant, self.threshold), 1.0
        slope, offset = calibrate(scores, relevant)
        return offset / slope, slope


def cut_rankings(
    targets: Any, usable: NDArray[np.bool_], scores: Iterable[NDArray[np.float64]], rule: str | float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Intercepts and slopes of K problems, so that ``slope · (score + intercept)`` can be compared with 0 or across.

    Parameters
    ----------
    targets : Targets
    usable : ndarray of shape (K,)
        Problems with both classes; the others have `constant_intercepts`.
    scores : K arrays of shape (n,)
        Of the training samples; one after the other will do.
    rule : {"f1", "error"} or float
        As for `best_threshold`; multiclass problems are calibrated instead.
    """
    intercepts, slopes, cut = constant_intercepts(targets, usable), np.ones(usable.size), Cut(targets.kind, rule)
    for k, row in enumerate(scores):
        if usable[k]:
            known = _labelled(targets, k)
            intercepts[k], slopes[k] = cut(row[known], targets.relevant[k][known])
    return intercepts, slopes


def classes_of(scores: NDArray[np.float64], kind: str, classes: NDArray[Any]) -> NDArray[Any]:
    """Binary: by the sign of the score; multiclass: the largest; multilabel: an indicator of each label's sign."""
    if kind == "binary":
        return classes[(scores >= 0).astype(np.intp)]
    if kind == "multiclass":
        return classes[np.argmax(scores, axis=1)]
    return (scores >= 0).astype(np.int64)
