"""Inference that trusts its arguments: what the rest of the package calls, and the public door after its checks.

Scores are float32 or float64, contiguous, relevance is bool, and both fit together. Scores that are not finite, and
lists without both classes, are still found by the kernels, and raise.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankhinge.inference.ranking import MostViolatingRanking, MostViolatingRankings
from rankhinge.losses import RankingLoss
from rankhinge.losses.base import BY_CUT, BY_SAMPLE, BY_STEP

__all__ = ["infer_many", "infer_one", "loss_by_scores", "prepared"]

# Each module has the three functions of this one; loaded when a loss goes its way.
_WAYS = {
    BY_STEP: "rankhinge.inference.by_step",
    BY_CUT: "rankhinge.inference.by_cut",
    BY_SAMPLE: "rankhinge.inference.zero_one",
}
_loaded: dict[str, Any] = {}

Hinge: TypeAlias = Callable[[NDArray[Any], NDArray[np.bool_]], tuple[Any, ...]]
"""Of scores and relevance of one list: J, Δ and u, in new memory, and more."""


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


def prepared(loss: RankingLoss, longest: int) -> Hinge:
    """Inference on one list after the other, none longer than `longest`, with everything compiled in advance."""
    if loss.way == BY_STEP:
        way = _way(loss)
        return partial(way.hinge_of_one, loss, way.compile_loss(loss, longest))
    return partial(_hinge_of_one, loss)


def _hinge_of_one(loss: RankingLoss, scores: NDArray[Any], relevant: NDArray[np.bool_]) -> tuple[Any, ...]:
    found = infer_one(scores, relevant, loss)
    return found.value, found.loss, found.coefficients
