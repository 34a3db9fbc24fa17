"""Inference that trusts its arguments: what the rest of the package calls, and the public door after its checks.

Scores are float32 or float64, contiguous, relevance is bool, and both fit together. Scores that are not finite, and
lists without both classes, are still found by the kernels, and raise.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge.inference.ranking import MostViolatingRanking, MostViolatingRankings
from rankhinge.losses import RankingLoss
from rankhinge.losses.base import BY_CUT, BY_SAMPLE, BY_STEP

__all__ = ["infer_many", "infer_one", "loss_by_scores"]

# Each module has the three functions of this one; loaded when a loss goes its way.
_WAYS = {
    BY_STEP: "rankhinge.inference.by_step",
    BY_CUT: "rankhinge.inference.by_cut",
    BY_SAMPLE: "rankhinge.inference.zero_one",
}
_loaded: dict[str, Any] = {}


def _way(loss: RankingLoss) -> Any:
    if loss.way not in _loaded:
        _loaded[loss.way] = import_module(_WAYS[loss.way])
    return _loaded[loss.way]


def infer_one(scores: NDArray[Any], relevant: NDArray[np.bool_], loss: RankingLoss) -> MostViolatingRanking:
    """`most_violating_ranking`."""
    found: MostViolatingRanking = _way(loss).infer_one(scores, relevant, loss)
    return found


def infer_many(
    scores: NDArray[Any], relevant: NDArray[np.bool_], offsets: NDArray[np.int64], loss: RankingLoss
) -> MostViolatingRankings:
    """`most_violating_rankings`."""
    found: MostViolatingRankings = _way(loss).infer_many(scores, relevant, offsets, loss)
    return found


def loss_by_scores(scores: NDArray[Any], relevant: NDArray[np.bool_], loss: RankingLoss) -> float:
    """`ranking_loss`."""
    return float(_way(loss).loss_by_scores(scores, relevant, loss))
