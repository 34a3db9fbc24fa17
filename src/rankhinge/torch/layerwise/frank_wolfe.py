r"""Block-coordinate Frank-Wolfe on the dual of one layer's problem.

The problem, with n blocks whose losses :math:`H_i \ge 0` are convex:

.. math:: \min_W \tfrac{\lambda}{2}\|W\|^2 + \tfrac{\mu}{2}\|W - W_t\|^2 + \frac1n \sum_i H_i(W).

With :math:`K = 1 / (\lambda + \mu)` each block keeps a convex combination of linear pieces :math:`c + \langle G, W
\rangle \le H_i`, stored as :math:`W_i = K G / n` and :math:`\ell_i = c / n`, at first the piece 0. The primal point
that belongs to them is :math:`W = \frac{\mu}{\lambda + \mu} W_t - \sum_i W_i`, and the dual value is

.. math:: D = \sum_i \ell_i - \frac{\|W\|^2}{2K} + \frac{\mu}{2} \|W_t\|^2.

A visit to block i moves its combination towards a new piece by the step in [0, 1] that raises D most.

References
----------
Lacoste-Julien, Jaggi, Schmidt, Pletscher: Block-coordinate Frank-Wolfe optimization for structural SVMs, ICML 2013.
Berrada, Zisserman, Kumar: Trusting SVM for piecewise linear CNNs, ICLR 2017.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["FrankWolfe", "proximal_term"]


class FrankWolfe:
    """The state of the dual: blocks' combinations, the point W, and the average of the points.

    Parameters
    ----------
    start : Tensor of shape (d,), float64
        ``W_t``.
    n_blocks : int
    lam, mu : float
        λ > 0 and μ ≥ 0.

    Attributes
    ----------
    point, average : Tensor of shape (d,)
        W, and the average ``W̄ ← k/(k+2) W̄ + 2/(k+2) W`` over the visits k = 0, 1, ….
    largest : Tensor of shape (d,)
        Entry by entry the largest absolute value of all points so far.

    Examples
    --------
    One block, one piece ``1 - W``: the minimiser of ``½ W² + max(0, 1 - W)`` is 1.

    >>> import torch
    >>> solver = FrankWolfe(torch.zeros(1, dtype=torch.float64), n_blocks=1, lam=1.0, mu=0.0)
    >>> solver.visit(0, 1.0, torch.tensor([-1.0], dtype=torch.float64))
    1.0
    >>> solver.point.item(), solver.dual
    (1.0, 0.5)
    """

    def __init__(self, start: Tensor, n_blocks: int, lam: float, mu: float) -> None:
        self.inverse = lam + mu  # 1 / K
        self.n_blocks = n_blocks
        self._centre = (mu / self.inverse) * start
        self._constant = 0.5 * mu * float(start @ start)
        self._slopes = start.new_zeros(n_blocks, start.numel())
        self._offsets = [0.0] * n_blocks
        self.point, self.average = self._centre.clone(), self._centre.clone()
        self.largest = self.point.abs()
        self.n_visits = 0

    @property
    def dual(self) -> float:
        """D, a lower bound on the minimum."""
        return sum(self._offsets) - 0.5 * self.inverse * float(self.point @ self.point) + self._constant

    def visit(self, block: int, offset: float, slope: Tensor) -> float:
        """Take in the piece ``offset + ⟨slope, W⟩`` of a block; return the step taken."""
        d_slope = slope / (self.inverse * self.n_blocks) - self._slopes[block]
        d_offset = offset / self.n_blocks - self._offsets[block]
        gain = d_offset / self.inverse + float(d_slope @ self.point)
        square = float(d_slope @ d_slope)
        if square > 0.0:
            step = min(max(gain / square, 0.0), 1.0)
        else:
            step = float(d_offset > 0.0)
        self.point -= step * d_slope
        torch.maximum(self.largest, self.point.abs(), out=self.largest)
        self._slopes[block] += step * d_slope
        self._offsets[block] += step * d_offset
        self.average += (2.0 / (self.n_visits + 2.0)) * (self.point - self.average)
        self.n_visits += 1
        return step

    def pieces_at(self, weights: Tensor) -> list[float]:
        """What each block's combination says of its loss at some weights: ``c + ⟨G, W⟩ ≤ H_i(W)``."""
        heights = (self.inverse * (self._slopes @ weights)).tolist()
        return [self.n_blocks * (offset + height) for offset, height in zip(self._offsets, heights, strict=True)]

    def refresh(self) -> None:
        """Compute the point from the blocks' combinations: visits have gathered rounding in it."""
        self.point = self._centre - self._slopes.sum(dim=0)
        torch.maximum(self.largest, self.point.abs(), out=self.largest)


def proximal_term(weights: Tensor, start: Tensor, lam: float, mu: float) -> float:
    """``λ/2 ‖W‖² + μ/2 ‖W - W_t‖²``."""
    move = weights - start
    return 0.5 * lam * float(weights @ weights) + 0.5 * mu * float(move @ move)
