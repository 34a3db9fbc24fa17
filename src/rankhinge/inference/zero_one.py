"""The decomposable baseline: mean over samples of ``max(0, 1 - y s)``, y = ±1."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge._jit import inner, kernel
from rankhinge._validation import describe_bad_score
from rankhinge.inference.long_list import LONG, BadScore, on_stretches, raise_if_bad, stretches
from rankhinge.inference.passes import CHUNK, first_bad
from rankhinge.inference.ranking import MostViolatingRanking, MostViolatingRankings
from rankhinge.losses import RankingLoss

__all__ = ["infer_many", "infer_one", "loss_by_scores"]


@kernel
def hinge(scores, relevant, n_samples, coefficients, sums, margins):
    """Write ``u = -y / n`` where ``y s < 1``, else 0.

    ``sums[c]`` becomes the sum of the hinges over chunk c and ``margins[c]`` the number of samples within the margin.
    Returns the first place with a bad score, or -1.
    """
    unit = 1.0 / n_samples
    for start in range(0, scores.size, CHUNK):
        part, part_relevant = scores[start : start + CHUNK], relevant[start : start + CHUNK]
        part_coefficients = coefficients[start : start + CHUNK]
        bad = first_bad(part)
        if bad >= 0:
            return start + bad
        inside = 0
        for k in range(part.size):
            signed = part[k] if part_relevant[k] else -part[k]
            within = signed < 1.0
            inside += within
            part_coefficients[k] = (-unit if part_relevant[k] else unit) if within else 0.0
        sums[start // CHUNK] = _sum_of_hinges(part, part_relevant)
        margins[start // CHUNK] = inside
    return -1


@inner
def _sum_of_hinges(scores, relevant):
    # Four lanes: a single running sum would wait for itself at every sample.
    sum0 = sum1 = sum2 = sum3 = 0.0
    for quarter in range(scores.size // 4):
        k = 4 * quarter
        sum0 += max(0.0, 1.0 - (scores[k] if relevant[k] else -scores[k]))
        sum1 += max(0.0, 1.0 - (scores[k + 1] if relevant[k + 1] else -scores[k + 1]))
        sum2 += max(0.0, 1.0 - (scores[k + 2] if relevant[k + 2] else -scores[k + 2]))
        sum3 += max(0.0, 1.0 - (scores[k + 3] if relevant[k + 3] else -scores[k + 3]))
    for k in range(scores.size // 4 * 4, scores.size):
        sum0 += max(0.0, 1.0 - (scores[k] if relevant[k] else -scores[k]))
    return (sum0 + sum1) + (sum2 + sum3)


def infer_one(scores: NDArray[Any], relevant: NDArray[np.bool_], loss: RankingLoss) -> MostViolatingRanking:
    """Value and coefficients of one list; there is no ranking to tell."""
    n = _require_samples(scores)
    coefficients = np.empty_like(scores)
    sums = np.empty(-(-n // CHUNK))
    inside = np.empty(sums.size, np.int64)

    def work(_: int, part: slice) -> int:
        first = part.start // CHUNK
        return hinge(scores[part], relevant[part], n, coefficients[part], sums[first:], inside[first:])

    parts = stretches(n) if n >= LONG else [slice(0, n)]
    places = on_stretches(work, parts) if len(parts) > 1 else [work(0, parts[0])]
    try:
        raise_if_bad(places, parts)
    except BadScore as error:
        raise ValueError(describe_bad_score(scores, error.place)) from None
    value, delta = float(sums.sum()) / n, float(inside.sum()) / n
    return MostViolatingRanking(value, delta, coefficients, n, scores, relevant, None)


def infer_many(
    scores: NDArray[Any], relevant: NDArray[np.bool_], bounds: NDArray[np.int64], loss: RankingLoss
) -> MostViolatingRankings:
    """Those of many lists, one after the other; all that have a sample are usable."""
    batch = MostViolatingRankings.empty(scores, bounds)
    place = first_bad(scores)
    if place >= 0:
        raise ValueError(describe_bad_score(scores, place))
    for q in np.flatnonzero(np.diff(bounds)):
        part = slice(int(bounds[q]), int(bounds[q + 1]))
        one = infer_one(scores[part], relevant[part], loss)
        batch.values[q], batch.losses[q], batch.usable[q] = one.value, one.loss, True
        batch.coefficients[part] = one.coefficients
    return batch


def loss_by_scores(scores: NDArray[Any], relevant: NDArray[np.bool_], loss: RankingLoss) -> float:
    """The share of samples on the wrong side of 0."""
    place = first_bad(scores)
    if place >= 0:
        raise ValueError(describe_bad_score(scores, place))
    _require_samples(scores)
    return float(np.mean((scores > 0) != relevant))


def _require_samples(scores: NDArray[Any]) -> int:
    if scores.size == 0:
        raise ValueError("there are no samples")
    return scores.size
