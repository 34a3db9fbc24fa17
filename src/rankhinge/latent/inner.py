r"""The inner problem of CCCP, solved on the candidates that matter.

At any time only few candidates can be the best of their bag. So the inner problem is solved on a *working set*: the
candidates fixed for the positives, and for each free negative those that have been its best so far, or nearly. With
fewer candidates J can only be smaller. Hence planes cut on the working set are planes of the whole problem, and the
solver's lower bound holds for it. The upper bound does not, so that a *sweep* over all candidates follows, one
pass with one column: it gives the objective in truth, the gap, and the candidates that were missing. If the
gap is not small enough, they join the working set, and the solver goes on from where it was, with its planes.

Problems in lockstep share the sweeps. Each has a working set and a solver of its own: together their sets would be
nearly all candidates. Without working sets they share one solver, and each of its passes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankhinge.features import row_lengths
from rankhinge.latent.candidates import CandidateFeatures, Sweep
from rankhinge.latent.objective import LatentObjective, PlaneBook
from rankhinge.latent.problem import LatentProblem
from rankhinge.solvers import CuttingPlane, Planes, Solver, SolverResult, make_solver
from rankhinge.solvers.certificate import Certificate, Rounding, rounding_bound

__all__ = ["InnerOptions", "InnerSolver", "Point"]

# The sizes of the coefficients of a list add up to no more, 2 for the positives and 2 for the negatives.
_MOST_CHANGES = 4.0
# How many of a bag's best candidates join the working set at a time.
_N_BEST = 2
# While a sweep still finds more than this part of the bags with a new best candidate, the working set is solved to a
# part of the gap that the sweep found; after that, to the tolerance and a little more.
_FEW = 0.02
_PART = 0.3
_LITTLE_MORE = 0.8
_FIRST_TOL = 0.1
_MOST_SWEEPS = 50
# A pass over a working set is cheap: what counts is products and memory, not passes. Narrow spans took a third of the
# products of wide ones, two thirds of the time and a third of the memory.
NARROW = {"n_directions": 8, "n_parts": 0, "n_cuts": 2}


class MakeObjective(Protocol):
    """Makes the objective of some problems."""

    def __call__(
        self, features: Any, problems: Sequence[Any], books: Sequence[PlaneBook] | None = None
    ) -> LatentObjective: ...


@dataclass
class InnerOptions:
    """How to solve: solver, iterations, and whether on a working set."""

    solver: str
    max_iter: int
    shrinking: bool
    random_state: Any
    watch: Callable[[Solver], bool]


@dataclass
class Point:
    """A point of one problem and what is known about it.

    Attributes
    ----------
    w : ndarray of shape (d,)
    best, at : ndarray of shape (m, n_best) and (m,)
        Places of each member's best candidates, and the scores of the fixed ones.
    values : ndarray of shape (m, n_best)
        Scores of the best candidates.
    primal, dual, rounding : float
        Of the inner problem that it was found for; see `rankhinge.solvers.certificate`.
    exact : bool
        Whether J is computed exactly; else a bound may lie above the value, and says no more than that.
    status : str
    n_iter : int
    planes : Planes or None
    """

    w: NDArray[np.float64]
    best: NDArray[np.int64] | None = None
    values: NDArray[np.float64] | None = None
    at: NDArray[np.float64] | None = None
    primal: float = np.inf
    dual: float = -np.inf
    rounding: float = 0.0
    exact: bool = True
    status: str = "running"
    n_iter: int = 0
    planes: Planes | None = None
    history: list[tuple[float, float, float, float]] = field(default_factory=list)

    @property
    def certificate(self) -> Certificate:
        """What is known of the inner problem at this point, as of one problem."""
        tolerated = 0.0 if self.exact else np.inf
        return Certificate(*(np.array([value]) for value in (self.primal, self.dual, self.rounding, tolerated)))

    @property
    def gap(self) -> float:
        """The relative gap that is proved; inf if nothing is known."""
        return float(self.certificate.gap[0])

    def scaled(self, factor: float) -> Point:
        """The point ``factor w``: it has the same best candidates; nothing is known about the inner problem there."""
        assert self.values is not None
        assert self.at is not None
        return Point(factor * self.w, self.best, factor * self.values, factor * self.at)


def _carrying(solver: Solver, c: int) -> Planes:
    """The planes that carry the lower bound: the others would only make the master problem larger."""
    if not isinstance(solver, CuttingPlane):
        return solver.planes()[c]
    return solver.masters[c].planes(carrying=True)


Going: TypeAlias = dict[int, tuple[NDArray[np.int64], Point | None]]
"""Problems that are not solved yet: what they fix, and where they are."""


class InnerSolver:
    """Solves the inner problems of K latent problems in lockstep; the working set lives as long as it.

    Parameters
    ----------
    features : CandidateFeatures
        Over all candidates.
    offsets : ndarray of shape (n_bags + 1,)
    problems : sequence of LatentProblem
    C : ndarray of shape (K,)
    make : MakeObjective
    options : InnerOptions

    Attributes
    ----------
    exact : bool
        Whether J is computed exactly, so that the outer objective cannot rise.
    allowed : ndarray of bool or None
        Candidates that negatives may take; None: all.
    """

    exact = True

    def __init__(
        self,
        features: CandidateFeatures,
        offsets: NDArray[np.int64],
        problems: Sequence[LatentProblem],
        C: NDArray[np.float64],
        make: MakeObjective,
        options: InnerOptions,
    ) -> None:
        self.features, self.offsets, self.problems = features, offsets, list(problems)
        self.C, self.make, self.options = C, make, options
        self.books = [PlaneBook() for _ in problems]
        self.allowed: NDArray[np.bool_] | None = None
        n_bags = offsets.size - 1
        # Where bags have two candidates or so there is little to leave out.
        self.shrinks = options.shrinking and features.n_samples >= 4 * n_bags
        n_sets = len(self.problems) if self.shrinks else 1
        self._working = np.zeros((n_sets, features.n_samples), np.bool_)
        # For those who are interrupted: the best points of the current call of `solve` so far, and the solvers of its
        # current turn with their problems.
        self.best: dict[int, Point] = {}
        self.running: list[tuple[Solver, NDArray[np.int64]]] = []
        self._began = time.perf_counter()
        self._longest: float | None = None

    @property
    def passes(self) -> float:
        """Rows of X read so far, in units of all candidates."""
        return self.features.counter.n_rows / max(1, self.features.n_samples)

    def sweep(self, ks: NDArray[np.int64], weights: NDArray[np.float64], fixed: list[NDArray[np.int64]]) -> Sweep:
        """The best candidates of all bags at the columns of `weights`, and the scores of the fixed ones."""
        at = np.tile(self.offsets[:-1], (ks.size, 1))
        for c, k in enumerate(ks):
            places = fixed[c]
            members = self.problems[k].members[places >= 0]
            at[c, members] = places[places >= 0]
        n_best = _N_BEST if self.shrinks else 1
        return self.features.sweep(weights, self.offsets, n_best, at, self.allowed)

    def hinge(self, k: int, scores: NDArray[np.float64], fixed: NDArray[np.int64]) -> float:
        """J of problem k for the scores of its members."""
        objective = self.make(self.features, [self.problems[k].seen_among(None, fixed)])
        return objective.hinge(0, scores, None)[0]

    def point(self, k: int, w: NDArray[np.float64], found: Sweep, c: int, fixed: NDArray[np.int64]) -> Point:
        """The point w of problem k with its true primal value."""
        members = self.problems[k].members
        best, values, at = found.places[c][members], found.values[c][members], found.at[c][members]
        scores = np.where(fixed >= 0, at, values[:, 0])
        primal = 0.5 * float(w @ w) + self.C[k] * self.hinge(k, scores, fixed)
        return Point(w, best, values, at, primal)

    def outer_value(self, k: int, point: Point) -> float:
        """``F(w)``: positives and negatives at their best, known candidates as they are."""
        given = self.problems[k].given
        assert point.values is not None
        assert point.at is not None
        scores = np.where(given >= 0, point.at, point.values[:, 0])
        return 0.5 * float(point.w @ point.w) + self.C[k] * self.hinge(k, scores, given)

    def value_at_zero(self, k: int) -> float:
        """``F(0)``."""
        problem = self.problems[k]
        return float(self.C[k]) * self.hinge(k, np.zeros(problem.members.size), problem.given)

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
            self._prepare(k, fixed[c], starts[c])
        best: dict[int, Point] = {}
        self.best = best
        going = {int(k): (fixed[c], starts[c]) for c, k in enumerate(ks)}
        known = all(start is not None for start in starts)
        aim = (_LITTLE_MORE * tol if known else max(_FIRST_TOL, tol)) if self.shrinks else tol
        for turn in range(_MOST_SWEEPS):
            found = self._turn(going, aim, best)
            for k in list(going):
                point, n_new = found[k]
                at_last = not self.shrinks or turn + 1 == _MOST_SWEEPS or point.status == "stopped"
                # The solver has done what it can, and the working set lacks nothing.
                hopeless = n_new == 0 and (aim < tol or point.status != "converged")
                spent = point.n_iter >= self.options.max_iter
                if point.gap <= tol or at_last or hopeless or spent:
                    del going[k]
                else:
                    going[k] = (going[k][0], point)
            if not going:
                break
            few = all(found[k][1] <= _FEW * self.problems[k].members.size for k in going)
            gap = max(found[k][0].gap for k in going)
            aim = _LITTLE_MORE * tol if few else float(np.clip(_PART * gap, _LITTLE_MORE * tol, aim))
        for c, k in enumerate(ks):
            if starts[c] is None and not best[int(k)].primal < self.value_at_zero(int(k)):
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
                    w, given = result.coef[:, place[0]], self.problems[k].given
                    point = self.point(k, w, self.sweep(np.array([k]), w[:, None], [given]), 0, given)
                    point.n_iter = int(result.n_iter[place[0]])
        return point

    def _prepare(self, k: int, fixed: NDArray[np.int64], start: Point | None) -> None:
        """Candidates for the working set, from the best at the start, or the first of each bag."""
        if not self.shrinks:
            return
        free = fixed < 0
        if start is not None and start.best is not None:
            places = start.best[free].ravel()
            self._working[k, places[places >= 0]] = True
        else:
            self._working[k, self.problems[k].start[free]] = True

    def _active(self, ks: NDArray[np.int64], going: Going) -> NDArray[np.int64] | None:
        """The candidates that the problems see; None: all."""
        seen = np.zeros(self.features.n_samples, np.bool_)
        for k in ks:
            wanted = self._working[k] if self.shrinks else np.ones_like(seen)
            if self.allowed is not None:
                wanted = wanted & self.allowed
            seen |= self.problems[k].needed(going[int(k)][0], wanted)
        return None if seen.all() else np.flatnonzero(seen)

    def _turn(self, going: Going, tol: float, best: dict[int, Point]) -> dict[int, tuple[Point, int]]:
        """Solve on the working sets, sweep, and let what was missing join; the best points, and how much was new."""
        ks = np.array(sorted(going))
        self.running = []
        for group in ks[:, None] if self.shrinks else [ks]:
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
                point = self.point(int(k), result.coef[:, place], swept, c, fixed[c])
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
        n_new = self._join(k, point, fixed)
        if before is not None and before.primal <= point.primal:
            point = Point(before.w, before.best, before.values, before.at, before.primal)
        point.planes, point.dual = _carrying(solver, place), float(result.dual_objective[place])
        point.rounding, point.exact = self._rounding(k, point), self.exact
        point.certificate.check()
        if self.exact:
            self._hold(k, point)
        point.status = str(result.status[place])
        point.n_iter = int(result.n_iter[place]) + (best[k].n_iter if k in best else 0)
        if self.shrinks:
            earlier = best[k].history if k in best else []
            elapsed = time.perf_counter() - self._began
            point.history = [*earlier, (point.primal, point.dual, elapsed, self.passes)]
        else:
            columns = [result.history[name][place].tolist() for name in ("primal", "dual", "time", "passes")]
            point.history = list(zip(*columns, strict=True))
        best[k] = point
        return point, n_new

    def _rounding(self, k: int, point: Point) -> float:
        """What rounding may have changed of value and bound, by the longest candidate."""
        near = max(point.primal - point.dual, 0.0) if np.isfinite(point.primal) else 0.0
        return rounding_bound(self._n_terms(k), float(self.C[k]), self._slope, near, float(np.linalg.norm(point.w)))

    @property
    def _slope(self) -> float:
        """How fast J can change with w; one pass over all candidates, once."""
        if self._longest is None:
            self.features.counter.add(self.features.n_samples, 1)
            self._longest = float(np.max(row_lengths(self.features), initial=0.0))
        return _MOST_CHANGES * self._longest

    def _hold(self, k: int, point: Point) -> None:
        """Hold the planes that carry the bound against J."""
        if point.planes is None or not np.isfinite(point.primal):
            return
        value = (point.primal - 0.5 * float(point.w @ point.w)) / float(self.C[k])
        allowed = Rounding(self._n_terms(k) + point.n_iter, self._slope)
        allowed.hold(point.planes.seen_from(point.w), value, float(np.linalg.norm(point.w)), k)

    def _n_terms(self, k: int) -> int:
        return self.features.n_features + self.problems[k].members.size

    def _untouched(self, start: Point | None, k: int) -> Point:
        """The start as a result: of a problem that was stopped before its turn."""
        if start is not None:
            start.status = "stopped"
            return start
        point = self._at_zero(k, self.problems[k].given)
        point.status = "stopped"
        return point

    def _back_at_zero(self, point: Point, k: int, fixed: NDArray[np.int64]) -> Point:
        """W = 0 with what was proved on the way to a point that is no better: a working set may lead there."""
        zero = self._at_zero(k, fixed)
        zero.planes, zero.dual, zero.status = point.planes, point.dual, point.status
        zero.rounding, zero.exact = point.rounding, point.exact
        zero.n_iter, zero.history = point.n_iter, point.history
        return zero

    def _at_zero(self, k: int, fixed: NDArray[np.int64]) -> Point:
        """W = 0, which every fit has to better."""
        w = np.zeros(self.features.n_features)
        return self.point(k, w, self.sweep(np.array([k]), w[:, None], [fixed]), 0, fixed)

    def _look(self, ks: NDArray[np.int64], fixed: list[NDArray[np.int64]]) -> Sweep:
        """The sweep at the solutions. At w = 0 all candidates are the best: those count that are so a step further on.

        Without that the working set would lack what could lead away from there.
        """
        weights = np.concatenate([solver.result().coef for solver, _ in self.running], axis=1)
        zero = ~weights.any(axis=0)
        minimisers = [
            master.point for solver, _ in self.running if isinstance(solver, CuttingPlane) for master in solver.masters
        ]
        found = self.sweep(ks, np.where(zero, np.stack(minimisers, axis=1), weights), fixed)
        found.at[zero] = 0.0
        found.values[zero] = np.where(found.places[zero] < 0, -np.inf, 0.0)
        return found

    def _join(self, k: int, point: Point, fixed: NDArray[np.int64]) -> int:
        """Add the best candidates of free members to the working set; how many best ones were not in it."""
        assert point.best is not None
        if not self.shrinks:
            return 0
        free = point.best[fixed < 0]
        n_new = int((~self._working[k, free[:, 0]]).sum())
        places = free.ravel()
        self._working[k, places[places >= 0]] = True
        return n_new

    def _solver(self, ks: NDArray[np.int64], going: Going, tol: float) -> Solver:
        """A solver of these problems on what they see, started from where they are."""
        places = self._active(ks, going)
        seen = [self.problems[k].seen_among(places, going[int(k)][0]) for k in ks]
        objective = self.make(self.features.some(places), seen, [self.books[k] for k in ks])
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
            self.C[ks],
            tol=tol,
            max_iter=self.options.max_iter - spent,
            random_state=self.options.random_state,
            **options,
        )
