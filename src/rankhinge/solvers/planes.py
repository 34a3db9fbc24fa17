"""What solvers by planes share: a master problem for each problem, and plain rounds.

A plain round minimises the master problem over the planes so far, evaluates J at its minimiser w and cuts there. It
takes two passes over the features: one for the scores of w, one for the slope of the plane. Primal is the best w
evaluated so far, dual the value of the master problem, which never falls since planes are only added. By itself that is
the papers' algorithm (`rankhinge.papers.solvers`); here it is what is left where an objective has no spans to search.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rankhinge.solvers.base import LEFT_OUT, Solver
from rankhinge.solvers.certificate import Carrying, witness
from rankhinge.solvers.master import Master
from rankhinge.solvers.protocol import Array, Evaluation, Handle, Objective, Planes, payloads_of

__all__ = ["PlaneSolver"]


class PlaneSolver(Solver):
    """Base of the solvers by planes, of K problems in lockstep.

    Parameters
    ----------
    objective : Objective
    C : (K,)
    evaluate : callable, optional
        ``evaluate(scores)``, if the convex function is another one of the scores than the objective's own J.
    **options
        As for `Solver`.
    """

    def __init__(
        self,
        objective: Objective,
        C: Array,
        *,
        evaluate: Callable[[Handle], Evaluation] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(objective, C, **options)
        self.evaluate = objective.evaluate if evaluate is None else evaluate
        self.masters = [self._make_master(k) for k in range(self.C.size)]
        # Problems that are left out hand their planes on as they are; the others have copies.
        given, self.initial_planes = self.initial_planes or [], None
        self._handed_on = {k: planes for k, planes in enumerate(given) if self.status[k] == LEFT_OUT}
        for k in self.active:
            if given:
                self.masters[k].take(given[k])
                self.masters[k].solve()
            self.dual[k] = max(self.dual[k], self.masters[k].dual_value)

    def _make_master(self, k: int) -> Master:
        """The master problem of problem k, without planes."""
        width = getattr(self.objective, "payload_width", None)
        return Master(float(self.C[k]), self.centre[:, k], 0 if width is None else width(k))

    def carrying(self, k: int) -> Carrying:
        """The planes with multipliers."""
        return self.masters[k].carrying(self.best[k][1])

    def planes(self) -> list[Planes]:
        """The planes cut so far."""
        return [self._handed_on.get(k) or master.planes() for k, master in enumerate(self.masters)]

    def _plain_round(self, active: np.ndarray) -> None:
        """Evaluate the minimisers of the masters, at first the start, and cut there."""
        first = self.n_iter[active[0]] == 0
        points = [self.start[:, k] if first else self.masters[k].point for k in active]
        weights = np.stack(points, axis=1)
        if not weights.any():
            scores = self.objective.zeros(active)
        else:
            scores = self.objective.score(weights, active)
            self.n_passes += 1
        found = self.evaluate(scores)
        admitted = self._admit(weights, scores, active)
        for c, k in enumerate(active):
            if admitted[c]:
                value = self.regulariser(k, points[c]) + self.C[k] * float(found.value[c])
                self.offer(k, value, points[c])
        # A problem that is certified already needs no further plane.
        open_ = np.flatnonzero(self.unfinished()[active])
        if open_.size:
            coefficients = self.objective.select(found.coefficients, open_)
            slopes, payloads = self.objective.adjoint(coefficients), payloads_of(self.objective, coefficients)
            self.n_passes += 1
            for c, place in enumerate(open_):
                loss, slope = found.loss[place : place + 1], slopes[:, c][None, :]
                known = witness(loss, slope, points[place], found.value[place : place + 1])
                k = int(active[place])
                self.masters[k].add_planes(loss, slope, *known, payloads(c))
                self._solve(k)
                self.bound(k, self.masters[k].dual_value)

    def _admit(self, weights: Array, scores: Handle, active: np.ndarray) -> np.ndarray:
        """Which of the points (d, m) of these problems may be the best: all."""
        return np.ones(active.size, dtype=bool)

    def _solve(self, k: int) -> None:
        """Solve the master problem of problem k."""
        self.masters[k].solve()
