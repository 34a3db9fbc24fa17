"""More problems than fit into memory side by side: some of them in lockstep, then the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from rankhinge.solvers.base import Solver
from rankhinge.solvers.certificate import Carrying
from rankhinge.solvers.protocol import Array, Objective, Planes

__all__ = ["InTurn"]


class InTurn(Solver):
    """Solvers for groups of problems, one after the other, as one.

    A solver keeps dozens of arrays with an entry for each feature and problem. For a thousand problems, lockstep saves
    less than these arrays cost. Only the results of a finished group are kept. A problem of a group that has not begun
    has its starting weights, and nothing is known about its objective. In the history each problem has the steps of its
    own group, as if the others were not there. Time and passes are those of all groups.

    Parameters
    ----------
    objective : Objective
        Of all K problems.
    groups : sequence of (m,)
        Which problems belong together; each in one group.
    begin : callable
        ``begin(group)``: the solver of a group, whose problems are ``0 … m - 1``. That of the first is made at once.
    start : (d, K), optional
    keep_planes : bool
        Whether the planes of groups that have ended are wanted, for a checkpoint.
    """

    def __init__(
        self,
        objective: Objective,
        groups: Sequence[np.ndarray],
        begin: Callable[[np.ndarray], Solver],
        start: Array | None = None,
        keep_planes: bool = False,
    ) -> None:
        super().__init__(objective, np.ones(objective.n_problems), start=start)
        self._begin, self._waiting, self._passes_before = begin, list(groups[1:]), 0.0
        self._group, self._report = groups[0], dict[str, float]()
        self._solver: Solver | None = begin(groups[0])
        self._ended: list[tuple[np.ndarray, dict[str, Array]]] = []
        self._carrying: dict[int, Carrying] = {}
        self._keep_planes = keep_planes
        self._planes: dict[int, Planes] = {}
        self._phases: list[tuple[np.ndarray, dict[str, Array]]] = []

    def step(self) -> None:
        """One step of the group whose turn it is."""
        if self.done:
            return
        if self._solver is None:
            begun = self._begin(self._waiting[0])
            self._group, self._passes_before = self._waiting.pop(0), self.n_passes
            # Last: an interrupt must not find it beside the problems of another group.
            self._solver = begun
        solver = self._solver
        try:
            solver.step()
        finally:
            # After an interrupt, too: what it says of its planes is seen from its own best points.
            for place, k in enumerate(self._group):
                self.best[k], self.dual[k] = solver.best[place], solver.dual[place]
                self.n_iter[k], self.status[k] = solver.n_iter[place], solver.status[place]
        self.n_passes = self._passes_before + solver.n_passes
        self._report = solver.report()
        if solver.done:
            self._ended.append((self._group, self._history_of(solver)))
            self._carrying.update((int(k), solver.carrying(place)) for place, k in enumerate(self._group))
            if self._keep_planes:
                self._planes.update(zip(self._group.tolist(), solver.planes(), strict=True))
                self._phases.append((self._group, solver.phase()))
            # What it holds is what the next one needs.
            self._solver = None

    def carrying(self, k: int) -> Carrying:
        """The value from the solver of the problem's group."""
        place = np.flatnonzero(self._group == k)
        if self._solver is not None and place.size:
            return self._solver.carrying(int(place[0]))
        return self._carrying.get(k, Carrying.none())

    def planes(self) -> list[Planes]:
        """Those of the groups that have begun; without `keep_planes` those of the present one."""
        known = dict(self._planes)
        if self._solver is not None:
            known.update(zip(self._group.tolist(), self._solver.planes(), strict=True))
        return [known.get(k, none) for k, none in enumerate(super().planes())]

    def phase(self) -> dict[str, Array]:
        """The values from the groups' solvers; nan for problems in groups that have not begun."""
        parts = list(self._phases)
        if self._solver is not None:
            parts.append((self._group, self._solver.phase()))
        phase: dict[str, Array] = {}
        for group, values in parts:
            for name, own in values.items():
                phase.setdefault(name, np.full(len(self.best), np.nan))[group] = own
        return phase

    def _history_of(self, solver: Solver) -> dict[str, Array]:
        """The history of a group, with the time and the passes of all."""
        own = solver._history_arrays()
        waited = solver._began - self._began
        return own | {"time": own["time"] + waited, "passes": own["passes"] + self._passes_before}

    def _history_arrays(self) -> dict[str, Array]:
        parts = list(self._ended)
        if self._solver is not None:
            parts.append((self._group, self._history_of(self._solver)))
        length = max(values["primal"].shape[1] for _, values in parts)
        unknown = {"primal": np.inf, "dual": -np.inf, "gap": np.inf, "time": np.nan, "passes": np.nan}
        history = {name: np.full((len(self.best), length), value) for name, value in unknown.items()}
        for group, values in parts:
            for name, rows in values.items():
                history[name][group, : rows.shape[1]] = rows
                if rows.shape[1] > 0:
                    # Those that have ended continue with their last values.
                    history[name][group, rows.shape[1] :] = rows[:, -1:]
        return history

    def report(self) -> dict[str, float]:
        """The progress of the present group, and how many problems have not begun."""
        return {"problems to come": float(sum(map(len, self._waiting)))} | self._report
