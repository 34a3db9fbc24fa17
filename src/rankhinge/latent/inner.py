r"""The inner problem of CCCP, solved on the candidates that matter.

At any time only few candidates can be the best of their bag. So the inner problem is solved on a *working set*: the
candidates fixed for the positives, and for each free negative those that have been its best so far, or nearly.

With fewer candidates J can only be smaller. Hence planes cut on the working set are planes of the whole problem, and
the solver's lower bound holds for it. The upper bound does not. So a *sweep* over all candidates follows, one pass with
one column. It gives the true objective, the gap, and the candidates that were missing. If the gap is not small enough,
they join the working set, and the solver continues with its planes.

Problems in lockstep share the sweeps. Each has a working set and a solver of its own: together their sets would be
nearly all candidates. Without working sets they share one solver, and each of its passes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankhinge.latent.candidates import Sweep
from rankhinge.latent.point import Point
from rankhinge.latent.whole import Whole
from rankhinge.latent.working import WORKING, WorkingSets
from rankhinge.solvers import Planes, PlaneSolver, Solver, SolverResult, make_solver

__all__ = ["InnerOptions", "InnerSolver"]

# A pass over a working set is cheap: what counts is products and memory, not passes. Narrow spans took a third of the
# products of wide ones, two thirds of the time and a third of the memory.
NARROW = {"n_directions": 8, "n_parts": 0, "n_cuts": 2}


@dataclass
class InnerOptions:
    """How to solve: solver, iterations, and whether on a working set."""

    solver: str
    max_iter: int
    shrinking: bool
    random_state: Any
    watch: Callable[[Solver], bool]


def _carrying(solver: Solver, c: int) -> Planes:
    """The planes that carry the lower bound: the others would only make the master problem larger."""
    if not isinstance(solver, PlaneSolver):
        return solver.planes()[c]
    return solver.masters[c].planes(carrying=True)


Going: TypeAlias = dict[int, tuple[NDArray[np.int64], Point | None]]
"""Problems that are not solved yet: what they fix, and where they are."""


class InnerSolver:
    """Solves the inner problems of K latent problems in lockstep; the working set lives as long as it.

    Parameters
    ----------
    whole : Whole
    options : InnerOptions
    """

    def __init__(self, whole: Whole, options: InnerOptions) -> None:
        self.whole, self.options = whole, options
        self.working = WorkingSets(whole, options.shrinking)
        # For those who are interrupted: the best points of the current call of `solve` so far, and the solvers of its
        # current turn with their problems.
        self.best: dict[int, Point] = {}
        self.running: list[tuple[Solver, NDArray[np.int64]]] = []
        self._began = time.perf_counter()

    def solve(
        self, ks: NDArray[np.int64], fixed: list[NDArray[np.int64]], starts: list[Point | None], tol: float
    ) -> dict[int, Point]:
        """Solve the inner problems `ks` to a relative gap of `tol`.

        Parameters
        ----------
        ks : ndarray
        fixed : list of ndarray of shape (m,)
            The places that the members of each are fixed to, or -1.
        starts : list of Point or None
            Where to begin, with valid planes and the primal value of *this* inner problem; kept if nothing better
            is found.
        tol : float
        """
        for c, k in enumerate(ks):
            self.working.begin(k, fixed[c], starts[c])
        best: dict[int, Point] = {}
        self.best = best
        going = {int(k): (fixed[c], starts[c]) for c, k in enumerate(ks)}
        known = all(start is not None for start in starts)
        aim = (WORKING.last * tol if known else max(WORKING.first_tol, tol)) if self.working.in_use else tol
        for turn in range(WORKING.sweeps):
            found = self._turn(going, aim, best)
            for k in list(going):
                point, n_new = found[k]
                at_last = not self.working.in_use or turn + 1 == WORKING.sweeps or point.status == "stopped"
                # The solver has done what it can, and the working set lacks nothing.
                hopeless = n_new == 0 and (aim < tol or point.status != "converged")
                spent = point.n_iter >= self.options.max_iter
                if point.gap <= tol or at_last or hopeless or spent:
                    del going[k]
                else:
                    going[k] = (going[k][0], point)
            if not going:
                break
            few = all(found[k][1] <= WORKING.few * self.whole.problems[k].members.size for k in going)
            gap = max(found[k][0].gap for k in going)
            aim = WORKING.last * tol if few else float(np.clip(WORKING.part * gap, WORKING.last * tol, aim))
        for c, k in enumerate(ks):
            if starts[c] is None and not best[int(k)].primal < self.whole.value_at_zero(int(k)):
                best[int(k)] = self._back_at_zero(best[int(k)], int(k), fixed[c])
        return best

    def interrupted(self, k: int) -> Point | None:
        """What an interrupted call of `solve` has reached for problem k, with its value F; None: nothing.

        One pass over all candidates if the solver was interrupted in its first turn.
        """
        point = self.best.get(k)
        if point is None:
            for solver, ks in self.running:
                place = np.flatnonzero(ks == k)
                result = solver.result(status="interrupted")
                if place.size and np.isfinite(result.objective[place[0]]):
                    w, given = result.coef[:, place[0]], self.whole.problems[k].given
                    point = self.whole.point(k, w, self.whole.sweep(np.array([k]), w[:, None], [given]), 0, given)
                    point.n_iter = int(result.n_iter[place[0]])
        return point

    def _turn(self, going: Going, tol: float, best: dict[int, Point]) -> dict[int, tuple[Point, int]]:
        """Solve on the working sets, sweep, and let what was missing join; the best points, and how much was new."""
        ks = np.array(sorted(going))
        self.running = []
        for group in ks[:, None] if self.working.in_use else [ks]:
            solver = self._solver(group, going, tol)
            self.running.append((solver, group))
            stopped = False
            while not solver.done and not stopped:
                solver.step()
                stopped = self.options.watch(solver)
            if stopped:
                break
        solved = np.concatenate([group for _, group in self.running])
        fixed = [going[int(k)][0] for k in solved]
        swept = self._look(solved, fixed)
        outcome: dict[int, tuple[Point, int]] = {}
        for solver, group in self.running:
            result = solver.result(status="stopped")
            for place, k in enumerate(group):
                c = int(np.flatnonzero(solved == k)[0])
                point = self.whole.point(int(k), result.coef[:, place], swept, c, fixed[c])
                outcome[int(k)] = self._taken(int(k), point, going[int(k)], best, solver, result, place)
        self.running = []
        for k in set(going) - set(outcome):
            # Stopped before its turn came.
            outcome[k] = self._untouched(going[k][1], k), 0
            best[k] = outcome[k][0]
        return outcome

    def _taken(
        self,
        k: int,
        point: Point,
        going: tuple[NDArray[np.int64], Point | None],
        best: dict[int, Point],
        solver: Solver,
        result: SolverResult,
        place: int,
    ) -> tuple[Point, int]:
        """The better of a new point and the best so far, with what the solver has proved; and how much was new."""
        fixed, start = going
        before = best.get(k, start)
        n_new = self.working.join(k, point, fixed)
        if before is not None and before.primal <= point.primal:
            point = Point(before.w, before.best, before.values, before.at, before.primal)
        point.planes, point.dual = _carrying(solver, place), float(result.dual_objective[place])
        point.rounding, point.exact = self.whole.rounding(k, point), self.whole.is_exact(k)
        point.check()
        if point.exact:
            self.whole.hold(k, point)
        point.status = str(result.status[place])
        point.n_iter = int(result.n_iter[place]) + (best[k].n_iter if k in best else 0)
        if self.working.in_use:
            earlier = best[k].history if k in best else []
            elapsed = time.perf_counter() - self._began
            point.history = [*earlier, (point.primal, point.dual, elapsed, self.whole.passes)]
        else:
            columns = [result.history[name][place].tolist() for name in ("primal", "dual", "time", "passes")]
            point.history = list(zip(*columns, strict=True))
        best[k] = point
        return point, n_new

    def _untouched(self, start: Point | None, k: int) -> Point:
        """The start as a result: of a problem that was stopped before its turn."""
        if start is not None:
            start.status = "stopped"
            return start
        point = self.whole.at_zero(k, self.whole.problems[k].given)
        point.status = "stopped"
        return point

    def _back_at_zero(self, point: Point, k: int, fixed: NDArray[np.int64]) -> Point:
        """W = 0 with what was proved on the way to a point that is no better: a working set may lead there."""
        zero = self.whole.at_zero(k, fixed)
        zero.planes, zero.dual, zero.status = point.planes, point.dual, point.status
        zero.rounding, zero.exact = point.rounding, point.exact
        zero.n_iter, zero.history = point.n_iter, point.history
        return zero

    def _look(self, ks: NDArray[np.int64], fixed: list[NDArray[np.int64]]) -> Sweep:
        """The sweep at the solutions. At w = 0 all candidates are the best: those count that are so a step further on.

        Without that the working set would lack what could lead away from there.
        """
        weights = np.concatenate([solver.result().coef for solver, _ in self.running], axis=1)
        zero = ~weights.any(axis=0)
        minimisers = [
            master.point for solver, _ in self.running if isinstance(solver, PlaneSolver) for master in solver.masters
        ]
        found = self.whole.sweep(ks, np.where(zero, np.stack(minimisers, axis=1), weights), fixed)
        found.at[zero] = 0.0
        found.values[zero] = np.where(found.places[zero] < 0, -np.inf, 0.0)
        return found

    def _solver(self, ks: NDArray[np.int64], going: Going, tol: float) -> Solver:
        """A solver of these problems on what they see, started from where they are."""
        places = self.working.seen({int(k): going[int(k)][0] for k in ks})
        seen = [self.whole.problems[k].seen_among(places, going[int(k)][0]) for k in ks]
        objective = self.whole.make(self.whole.features.some(places), seen)
        starts = [going[int(k)][1] for k in ks]
        options: dict[str, Any] = dict(NARROW) if self.options.solver == "bundle" else {}
        if any(start is not None for start in starts):
            d = objective.n_features
            options["start"] = np.stack([np.zeros(d) if s is None else s.w for s in starts], axis=1)
            none = Planes(np.zeros(0), np.zeros((0, d)))
            options["planes"] = [none if s is None or s.planes is None else s.planes for s in starts]
        # Turns on working sets share the iterations of their inner problem.
        spent = max((self.best[int(k)].n_iter for k in ks if int(k) in self.best), default=0)
        return make_solver(
            self.options.solver,
            objective,
            self.whole.C[ks],
            tol=tol,
            max_iter=self.options.max_iter - spent,
            random_state=self.options.random_state,
            **options,
        )
