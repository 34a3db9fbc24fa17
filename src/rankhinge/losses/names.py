"""Losses by their names."""

from __future__ import annotations

from collections.abc import Callable

from rankhinge.losses.auc import AUC
from rankhinge.losses.average_precision import AveragePrecision
from rankhinge.losses.base import RankingLoss
from rankhinge.losses.dcg import NDCG, RBP
from rankhinge.losses.reciprocal_rank import ReciprocalRank
from rankhinge.losses.zero_one import ZeroOne

__all__ = ["get_loss"]

_BUILT_IN: dict[str, Callable[[], RankingLoss]] = {
    loss.name: loss for loss in (AveragePrecision, NDCG, ReciprocalRank, AUC, RBP, ZeroOne)
}
_INSTANCES: dict[str, RankingLoss] = {}


def get_loss(loss: str | RankingLoss) -> RankingLoss:
    """The loss object for a name, or the object itself.

    Parameters
    ----------
    loss : str or RankingLoss
        One of ``"ap"``, ``"ndcg"``, ``"rr"``, ``"auc"``, ``"rbp"``, ``"zero-one"``, or a loss object.

    Examples
    --------
    >>> from rankhinge.losses import get_loss
    >>> get_loss("ndcg")
    NDCG()
    """
    if isinstance(loss, RankingLoss):
        return loss
    if not isinstance(loss, str) or loss not in _INSTANCES:
        if not isinstance(loss, str) or loss not in _BUILT_IN:
            raise ValueError(f"unknown loss {loss!r}: choose one of {sorted(_BUILT_IN)} or give a loss object")
        # One instance a name: its table of discounts is built once, not once a call.
        _INSTANCES[loss] = _BUILT_IN[loss]()
    return _INSTANCES[loss]
