"""The plain cutting-plane algorithm with one slack variable: the papers' baseline.

Each step minimises the master problem over the planes so far, evaluates J at its minimiser w and cuts there (Joachims,
Finley and Yu 2009, algorithm 3). No line search: primal is the best w evaluated so far.
"""

from __future__ import annotations

import numpy as np

from rankhinge.solvers import PlaneSolver

__all__ = ["CuttingPlane"]


class CuttingPlane(PlaneSolver):
    """Plain 1-slack cutting planes for K problems in lockstep; parameters as for `Solver`."""

    def _advance(self, active: np.ndarray) -> None:
        self._plain_round(active)
