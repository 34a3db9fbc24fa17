"""The decomposable baseline."""

from __future__ import annotations

from rankhinge.losses.base import BY_SAMPLE, RankingLoss

__all__ = ["ZeroOne"]


class ZeroOne(RankingLoss):
    """The decomposable baseline: mean over samples of ``max(0, 1 - y s)``, y = ±1. It has no ranks."""

    name = "zero-one"
    way = BY_SAMPLE
