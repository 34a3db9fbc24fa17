"""More problems than fit into memory side by side: some of them in lockstep, then the next."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from rankhinge.solvers.base import Solver
from rankhinge.solvers.protocol import Objective

__all__ = ["InTurn"]


class InTurn(Solver):
    """Solvers for groups of problems, one after the other, as one.

    A solver keeps dozens of arrays with an entry for each feature and problem: what lockstep saves is not worth those
    of a thousand problems. Of a group that has ended only its results are kept. A problem whose turn has not come has
    the weights 0, and nothing is known about its objective.

    Parameters
    ----------
    objective : Objective
        Of all K problems.
    groups : sequence of (m,)
        Which problems belong together; each in one group.
    begin : callable
        ``begin(group)``: the solver of a group, whose problems are ``0 … m - 1``. That of the first is made at once.
    """

    def __init__(
        self, objective: Objective, groups: Sequence[np.ndarray], begin: Callable[[np.ndarray], Solver]
    ) -> None:
        super().__init__(objective, np.ones(objective.n_problems))
        self._begin, self._waiting, self._passes_before = begin, list(groups[1:]), 0.0
        self._group, self._report = groups[0], dict[str, float]()
        self._solver: Solver | None = begin(groups[0])

    def step(self) -> None:
        """One step of the group whose turn it is."""
        if self.done:
            return
        if self._solver is None:
            self._solver = self._begin(self._waiting[0])
            self._group, self._passes_before = self._waiting.pop(0), self.n_passes
        solver = self._solver
        solver.step()
        for place, k in enumerate(self._group):
            self.best[k], self.dual[k] = solver.best[place], solver.dual[place]
            self.n_iter[k], self.status[k] = solver.n_iter[place], solver.status[place]
        self.n_passes = self._passes_before + solver.n_passes
        self._report = solver.report()
        if solver.done:
            # What it holds is what the next one needs.
            self._solver = None
        elapsed = time.perf_counter() - self._began
        self._history.append((self.primal, self.dual.copy(), self.gaps(), elapsed, self.n_passes))

    def report(self) -> dict[str, float]:
        """As of the present group, and how many problems have not begun."""
        return {"problems to come": float(sum(map(len, self._waiting)))} | self._report
