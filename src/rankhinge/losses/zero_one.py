"""The decomposable baseline."""

from __future__ import annotations

from rankhinge.losses.base import BY_SAMPLE, RankingLoss

__all__ = ["ZeroOne"]


class ZeroOne(RankingLoss):
    """The decomposable baseline: mean over samples of ``max(0, 1 - y s)``, y = ±1. It has no ranks.

    Examples
    --------
    >>> from rankhinge import losses, structured_hinge
    >>> structured_hinge([2.0, 0.5, -1.0], [1, 1, 0], losses.ZeroOne())
    0.16666666666666666
    """

    name = "zero-one"
    way = BY_SAMPLE
    is_ranking = False
