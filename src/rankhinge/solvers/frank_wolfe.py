r"""Block-coordinate Frank-Wolfe on the dual, for many queries.

Each block q keeps a convex combination :math:`(\ell_q, g_q)` of its planes, at first the plane
:math:`0 \le J_q`. With :math:`v = w - w^0 = -C \sum_q \pi_q g_q` the dual value is
:math:`D = C \sum_q \pi_q (\ell_q + g_q \cdot w^0) - \tfrac12 \|v\|^2`. A visit cuts block q at the
current w, which gives (b, g), and moves its combination towards it by the best step:

.. math:: \gamma = \operatorname{clip}\Big(\frac{d_\ell + d_g \cdot v}{\|d_g\|^2}, 0, 1\Big), \quad
          d_g = C \pi_q (g - g_q), \quad d_\ell = C \pi_q (b - \ell_q) + d_g \cdot w^0,

so that D never falls (Lacoste-Julien, Jaggi, Schmidt and Pletscher 2013, algorithm 4). Memory: one
slope for each block. With a single block the step goes to the best combination of all its planes
instead ("fully corrective"): the line search alone would converge sublinearly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankhinge.solvers.blocks import SweepSolver
from rankhinge.solvers.protocol import Array, Objective

__all__ = ["FrankWolfe"]


class FrankWolfe(SweepSolver):
    """Block-coordinate Frank-Wolfe; a step is a sweep over the blocks in random order.

    Parameters
    ----------
    objective : Objective
    C : (K,)
    **options
        As for `SweepSolver`.
    """

    def __init__(self, objective: Objective, C: Array, **options: Any) -> None:
        super().__init__(objective, C, **options)
        d = objective.n_features
        self.slopes = [np.zeros((blocks.weights.size, d)) for blocks in self.blocks]
        self.offsets = [np.zeros(blocks.weights.size) for blocks in self.blocks]
        self.misses = [np.zeros(blocks.weights.size) for blocks in self.blocks]
        # The dual starts at the planes 0 <= J_q, whose point is the centre.
        self.iterates = self.centre.copy()
        self.averages, self.counts = self.centre.copy(), np.zeros(len(self.blocks))

    def _sweep(self, k: int) -> tuple[float, Array, float]:
        weights = self.blocks[k].weights
        if weights.size == 1:
            return self._cut_block(k, self.masters[k].point, 0)
        offset, slope, missed = 0.0, np.zeros(self.centre.shape[0]), 0.0
        for q in self.generator.permutation(weights.size):
            b, g, miss = self._cut_block(k, self.iterates[:, k], int(q))
            offset, slope, missed = offset + weights[q] * b, slope + weights[q] * g, missed + weights[q] * miss
            self._visit(k, int(q), b, g, miss)
        self._bound_by_combination(k)
        return offset, slope, missed

    def _visit(self, k: int, q: int, b: float, g: Array, miss: float) -> None:
        """Move block q's combination towards the plane (b, g) by the best step."""
        share, w0 = self.C[k] * self.blocks[k].weights[q], self.centre[:, k]
        change = g - self.slopes[k][q]
        d_g, v = share * change, self.iterates[:, k] - w0
        d_l = share * (b - self.offsets[k][q]) + d_g @ w0
        square = float(d_g @ d_g)
        gain = float(d_l + d_g @ v)
        step = min(max(gain / square, 0.0), 1.0) if square > 0.0 else float(gain > 0.0)
        self.slopes[k][q] += step * change
        self.offsets[k][q] += step * (b - self.offsets[k][q])
        self.misses[k][q] += step * (miss - self.misses[k][q])
        self.iterates[:, k] -= step * d_g
        self.counts[k] += 1
        rate = 2.0 / (self.counts[k] + 1.0)
        self.averages[:, k] += rate * (self.iterates[:, k] - self.averages[:, k])

    def _bound_by_combination(self, k: int) -> None:
        """The blocks' combinations make a plane of J too, which bounds from below."""
        weights, w0 = self.blocks[k].weights, self.centre[:, k]
        slope, offset = weights @ self.slopes[k], float(weights @ self.offsets[k])
        move = self.C[k] * slope
        # Recomputed: the iterate has gathered rounding over the visits.
        self.iterates[:, k] = w0 - move
        self.bound(k, self.C[k] * offset + float(move @ w0) - 0.5 * float(move @ move))
        self.masters[k].add_planes(np.array([offset]), slope[None, :], float(weights @ self.misses[k]), self.reaches[k])

    def _candidates(self, k: int) -> list[Array]:
        points = [self.masters[k].point]
        if self.blocks[k].weights.size > 1:
            points += [self.iterates[:, k], self.averages[:, k]]
        return points
