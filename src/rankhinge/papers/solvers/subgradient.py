r"""Stochastic subgradient descent over queries, with a certificate.

A visit of block q moves w along a subgradient of :math:`\tfrac12\|w - w^0\|^2 + C J_q(w)`, which is that of
P in the mean over q if blocks are visited with weights :math:`\pi_q`:

.. math:: w \leftarrow (1 - \eta_t) w + \eta_t (w^0 - C \, Q \pi_q \, g_q), \qquad \eta_t = \frac{2}{t + Q},

with steps as for a strongly convex function, which fall as 1 / t (Pegasos: Shalev-Shwartz, Singer, Srebro and Cotter
2011), and the average weighted by t (Lacoste-Julien, Schmidt and Bach 2012). Blocks are visited in random order without
replacement; a single list is one block, whose subgradient is that of J.

*The bound.* The planes met in a sweep make a plane of J. The combination of the planes of all sweeps, with the weights
given by the step sizes, is a plane too and proves a lower bound. With a single list its minimiser is w itself: the
method is then Frank-Wolfe with :math:`\gamma = 2 / (t + 1)` in place of the line search, and the gap falls as 1 / t
(Bach 2015).

Neither the gap nor the objective falls at every step, and slow progress cannot be told from rounding. So a fit ends at
`tol` or at `max_iter`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankhinge.papers.solvers.blocks import Plane, SweepSolver
from rankhinge.solvers.protocol import Array, Objective

__all__ = ["Subgradient"]


class Subgradient(SweepSolver):
    """Stochastic subgradients with averaging; a step is a sweep over the blocks. Parameters as for `SweepSolver`."""

    def __init__(self, objective: Objective, C: Array, **options: Any) -> None:
        super().__init__(objective, C, **options)
        # The combined plane of all sweeps, weighted by the steps.
        self.combinations = list(self.proofs)

    def _advance(self, active: np.ndarray) -> None:
        super()._advance(active)
        # A few steps without progress are no sign of rounding here.
        self._still[active] = -1

    def _visit(self, k: int, q: int, plane: Plane) -> None:
        shares, w0 = self.shares[k], self.centre[:, k]
        self.n_visits[k] += 1
        rate = 2.0 / (self.n_visits[k] + shares.size)
        ahead = w0 - self.C[k] * shares.size * shares[q] * plane.slope
        self.iterates[:, k] += rate * (ahead - self.iterates[:, k])
        self.averages[:, k] += 2.0 / (self.n_visits[k] + 1.0) * (self.iterates[:, k] - self.averages[:, k])

    def _end_sweep(self, k: int, plane: Plane) -> None:
        n_sweeps = self.n_visits[k] / self.shares[k].size
        self.combinations[k] = self.combinations[k].towards(plane, 2.0 / (n_sweeps + 1.0))
        self.prove(k, self.combinations[k])
