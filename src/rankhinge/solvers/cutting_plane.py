"""The plain cutting-plane algorithm with one slack variable: the baseline.

Each step minimises the master problem over the planes so far, evaluates J at its minimiser w and
cuts there (Joachims, Finley and Yu 2009, algorithm 3). Primal: the best w evaluated so far. Dual:
the value of the master problem, which never falls since planes are only added. No line search.
A step needs two passes over the features: one for the scores of w, one for the slope of the plane.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankhinge.solvers.base import INFEASIBLE, LEFT_OUT, Solver
from rankhinge.solvers.certificate import Carrying, witness
from rankhinge.solvers.master import Master
from rankhinge.solvers.protocol import Array, Constraints, Objective, Planes

__all__ = ["CuttingPlane"]


class CuttingPlane(Solver):
    """Plain 1-slack cutting planes for K problems in lockstep; parameters as for `Solver`."""

    def __init__(
        self,
        objective: Objective,
        C: Array,
        *,
        constraints: Constraints | None = None,
        **options: Any,
    ) -> None:
        super().__init__(objective, C, **options)
        self.constraints = constraints
        self.masters = [Master(c, self.centre[:, k]) for k, c in enumerate(self.C)]
        # Problems that are left out hand their planes on as they are; the others have copies.
        given, self.initial_planes = self.initial_planes or [], None
        self._handed_on = {k: planes for k, planes in enumerate(given) if self.status[k] == LEFT_OUT}
        for k in self.active:
            if given:
                self.masters[k].take(given[k])
            self.masters[k].solve()
            self.bound(int(k), self.masters[k].dual_value)

    def tolerated(self) -> Array:
        """As of `Solver`: what the multipliers of the constraints make of their tolerance."""
        if self.constraints is None:
            return super().tolerated()
        return np.array([master.weight_of_constraints() for master in self.masters]) * self.constraints.tol

    def carrying(self, k: int) -> Carrying:
        """The planes with multipliers."""
        return self.masters[k].carrying(self.best[k][1])

    def planes(self) -> list[Planes]:
        """The planes cut so far."""
        return [self._handed_on.get(k) or master.planes() for k, master in enumerate(self.masters)]

    def _advance(self, active: np.ndarray) -> None:
        first = self.n_iter[active[0]] == 0
        points = [self.start[:, k] if first else self.masters[k].point for k in active]
        weights = np.stack(points, axis=1)
        if not weights.any():
            scores = self.objective.zeros(active)
        else:
            scores = self.objective.score(weights, active)
            self.n_passes += 1
        found = self.objective.evaluate(scores)
        feasible = self._constrain(weights, scores, active)
        for c, k in enumerate(active):
            if feasible[c]:
                value = self.regulariser(k, points[c]) + self.C[k] * float(found.value[c])
                self.offer(k, value, points[c])
        # A problem that is certified already needs no further plane.
        open_ = np.flatnonzero(self.unfinished()[active])
        if open_.size:
            slopes = self.objective.adjoint(self.objective.select(found.coefficients, open_))
            self.n_passes += 1
            for slope, place in zip(slopes.T, open_):
                loss, value = found.loss[place : place + 1], found.value[place : place + 1]
                self._cut(int(active[place]), loss, slope[None, :], points[place], value)

    def _constrain(self, weights: Array, scores: Any, active: np.ndarray) -> np.ndarray:
        """Add the violated hard constraints; which points satisfy all of them."""
        feasible = np.ones(active.size, dtype=bool)
        if self.constraints is None:
            return feasible
        for c, violation in enumerate(self.constraints.violated(weights, scores, active)):
            feasible[c] = violation.names.size == 0
            self.masters[active[c]].constrain(violation)
        return feasible

    def _cut(self, k: int, loss: Array, slope: Array, point: Array, value: Array) -> None:
        master = self.masters[k]
        master.add_planes(loss, slope, *witness(loss, slope, point, value))
        master.solve()
        if master.unbounded:
            self.status[k] = INFEASIBLE
        self.bound(k, master.dual_value)
