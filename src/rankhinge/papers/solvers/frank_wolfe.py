r"""Frank-Wolfe on the dual of the one-slack problem, block by block where J is a mean over queries.

Each block q keeps a convex combination :math:`(\ell_q, g_q)` of its planes, at first the plane
:math:`0 \le J_q`. With :math:`v = w - w^0 = -C \sum_q \pi_q g_q` the dual value is
:math:`D = C \sum_q \pi_q (\ell_q + g_q \cdot w^0) - \tfrac12 \|v\|^2`. A visit cuts block q at the
current w, which gives (b, g), the vertex that the linearised dual is largest at, and moves its combination towards it
by exact line search:

.. math:: \gamma = \operatorname{clip}\Big(\frac{d_\ell + d_g \cdot v}{\|d_g\|^2}, 0, 1\Big), \quad
          d_g = C \pi_q (g - g_q), \quad d_\ell = C \pi_q (b - \ell_q) + d_g \cdot w^0,

so that D never falls (Lacoste-Julien, Jaggi, Schmidt and Pletscher 2013, algorithm 2 for one block, 4 for many). With
one block, :math:`P(w) - D` at the iterate is Frank and Wolfe's own duality gap, and falls as 1 / t at least: large C
take very many steps. The best of iterates and their averages is kept. Memory: one slope for each block.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankhinge.papers.solvers.blocks import Plane, SweepSolver
from rankhinge.solvers.protocol import Array, Objective

__all__ = ["FrankWolfe"]


class FrankWolfe(SweepSolver):
    """Frank-Wolfe with exact line search; a step is one for each block, in random order.

    It lives in the dual: a start is only a point to compare with, but planes that are given are begun with where there
    is one block.

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
        # By problem: the combinations of its blocks, an entry or a row for each.
        self.slopes = [np.zeros((shares.size, d)) for shares in self.shares]
        self.offsets, self.misses, self.reaches = ([np.zeros(s.size) for s in self.shares] for _ in range(3))
        self.iterates = self.centre.copy()
        for k, plane in enumerate(self.proofs):
            if self.shares[k].size == 1:
                self.slopes[k][0], self.offsets[k][0] = plane.slope, plane.offset
                self.misses[k][0], self.reaches[k][0] = plane.miss, plane.reach
                self.iterates[:, k] -= self.C[k] * plane.slope
        self.averages = self.iterates.copy()
        # D of the blocks' combinations; what proves the bound may be planes that were given, and prove more at first.
        self.heights = np.full(len(self.shares), -np.inf)

    def take_up(self, phase: dict[str, Array]) -> None:
        """As of `Solver`; many blocks begin anew, since their planes are not known one by one."""
        alone = np.array([shares.size == 1 for shares in self.shares])
        self.n_visits = np.where(alone, phase["visits"], 0.0)

    def _visit(self, k: int, q: int, plane: Plane) -> None:
        share, w0 = self.C[k] * self.shares[k][q], self.centre[:, k]
        change = plane.slope - self.slopes[k][q]
        d_g, v = share * change, self.iterates[:, k] - w0
        d_l = share * (plane.offset - self.offsets[k][q]) + float(d_g @ w0)
        square, gain = float(d_g @ d_g), d_l + float(d_g @ v)
        step = min(max(gain / square, 0.0), 1.0) if square > 0.0 else float(gain > 0.0)
        self.slopes[k][q] += step * change
        self.offsets[k][q] += step * (plane.offset - self.offsets[k][q])
        self.misses[k][q] += step * (plane.miss - self.misses[k][q])
        self.reaches[k][q] = max(self.reaches[k][q], plane.reach)
        self.iterates[:, k] -= step * d_g
        self.n_visits[k] += 1
        self.averages[:, k] += 2.0 / (self.n_visits[k] + 1.0) * (self.iterates[:, k] - self.averages[:, k])

    def _end_sweep(self, k: int, plane: Plane) -> None:
        shares = self.shares[k]
        slope = shares @ self.slopes[k]
        # Recomputed: the iterate has gathered rounding over the visits.
        self.iterates[:, k] = self.centre[:, k] - self.C[k] * slope
        miss, reach = float(shares @ self.misses[k]), float(self.reaches[k].max())
        combination = Plane(float(shares @ self.offsets[k]), slope, miss, reach)
        self.prove(k, combination)
        height = combination.bound(self.C[k], self.centre[:, k])
        if height > self.heights[k]:
            # It makes progress, even below the best bound so far.
            self.heights[k], self._still[k] = height, -1
