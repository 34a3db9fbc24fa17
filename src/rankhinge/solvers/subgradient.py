r"""Stochastic subgradient descent over queries, with a certificate.

A visit of block q moves w along a subgradient of :math:`\tfrac12\|w - w^0\|^2 + C J_q(w)`, which is that of
P in the mean over q if blocks are visited with weights :math:`\pi_q`:

.. math:: w \leftarrow (1 - \eta_t) w + \eta_t (w^0 - C \, Q \pi_q \, g_q), \qquad \eta_t = \frac{2}{t + 1 + Q},

the step sizes of a strongly convex function (Shalev-Shwartz, Singer and Srebro 2007), with the average
weighted by t (Lacoste-Julien, Schmidt and Bach 2012). Blocks are visited in random order without
replacement: then the planes met in a sweep make a valid plane of J, and the best convex combination of
the sweeps' planes gives a lower bound. So this solver, too, reports a gap that is proved.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankhinge.solvers.blocks import SweepSolver
from rankhinge.solvers.protocol import Array, Objective

__all__ = ["Subgradient"]


class Subgradient(SweepSolver):
    """Stochastic subgradients; a step is a sweep over the blocks. Parameters as for `SweepSolver`."""

    def __init__(self, objective: Objective, C: Array, **options: Any) -> None:
        super().__init__(objective, C, **options)
        self.averages, self.counts = self.start.copy(), np.zeros(len(self.blocks))

    def _sweep(self, k: int) -> tuple[float, Array, float]:
        weights, w0 = self.blocks[k].weights, self.centre[:, k]
        offset, slope, missed = 0.0, np.zeros(self.centre.shape[0]), 0.0
        for q in self.generator.permutation(weights.size):
            w = self.iterates[:, k]
            b, g, miss = self._cut_block(k, w, int(q))
            offset, slope, missed = offset + weights[q] * b, slope + weights[q] * g, missed + weights[q] * miss
            self.counts[k] += 1
            rate = 2.0 / (self.counts[k] + 1.0 + weights.size)
            self.iterates[:, k] = (1.0 - rate) * w + rate * (w0 - self.C[k] * weights.size * weights[q] * g)
            self.averages[:, k] += rate * (self.iterates[:, k] - self.averages[:, k])
        return offset, slope, missed

    def _candidates(self, k: int) -> list[Array]:
        return [self.averages[:, k], self.masters[k].point]
