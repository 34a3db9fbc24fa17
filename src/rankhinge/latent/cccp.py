r"""The concave-convex procedure for latent ranking machines (Behl et al. 2015, Algorithm 3).

The objective is, with the score of each bag that of its best candidate,

.. math:: F(w) = \tfrac12 \|w\|^2 + C \, J(s(w)), \qquad s_b(w) = \max_h w \cdot \Phi_b(h).

J falls as the scores of positives rise, so F is not convex. Each round fixes the candidates of the positives at their
best ones for the current w and minimises the inner problem, which is convex, lies nowhere below F and touches it at w.
Therefore F never rises. This is checked in each round.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge.inference.core import loss_by_scores
from rankhinge.latent.inner import InnerSolver
from rankhinge.latent.objective import moved_planes
from rankhinge.latent.point import Point
from rankhinge.latent.starts import ways_from_zero
from rankhinge.losses import RankingLoss
from rankhinge.solvers.certificate import HEURISTIC, PRECISION, relative_gap

__all__ = ["HISTORY", "ConcaveConvex"]

HISTORY = ("objective", "bound", "loss", "n_changed", "time", "passes")

_ROUNDING = 1e-7
# Lengths of a step from w = 0 along a direction whose scores spread by 1.
_STEPS_FROM_ZERO = np.geomspace(1e-4, 10.0, 6)
# While the choices still change, the inner problems are solved to this many times the tolerance.
_LOOSE = 10.0


class ConcaveConvex:
    """The outer loop of K problems in lockstep: `step` until `done`; its state is usable at any time.

    Parameters
    ----------
    inner : InnerSolver
    loss : RankingLoss
        For the history only: the loss of the ranking by w.
    tol : float
        Relative gap of the inner problems; a round that lowers F by no more than this part of it is the last.
    max_outer : int

    Notes
    -----
    The first rounds solve their inner problems less accurately, which CCCP allows, since F falls even so. When F
    no longer falls by more than that accuracy, the problem continues with `tol`.
    """

    def __init__(self, inner: InnerSolver, loss: RankingLoss, tol: float, max_outer: int) -> None:
        K = len(inner.whole.problems)
        self.inner, self.whole, self.loss, self.tol, self.max_outer = inner, inner.whole, loss, tol, max_outer
        self.points: list[Point | None] = [None] * K
        self.choices = [problem.given.copy() for problem in inner.whole.problems]
        self.objective = np.full(K, np.inf)
        self.status = ["running"] * K
        self.n_outer = np.zeros(K, np.int64)
        latent = [bool(np.any(problem.relevant & problem.latent)) for problem in inner.whole.problems]
        self._loose = np.array(latent) & (tol < 0.01)
        # The steps in which each problem took part: in lockstep some continue while others wait.
        self.rounds: list[list[int]] = [[] for _ in range(K)]
        # The choices that each round of a problem had fixed.
        self.fixed: list[list[NDArray[np.int64]]] = [[] for _ in range(K)]
        self._history: list[dict[str, NDArray[Any]]] = []
        self._n_changed = np.zeros(K, np.int64)
        self._bounds, self._losses = np.full(K, np.nan), np.full(K, np.nan)
        self._began = time.perf_counter()

    @property
    def done(self) -> bool:
        """Whether every problem has ended."""
        return "running" not in self.status

    def begin_with(self, choices: list[NDArray[np.int64]]) -> None:
        """Start from these places for the latent positives; others keep what is given."""
        for k, problem in enumerate(self.whole.problems):
            open_ = problem.relevant & problem.latent
            self.choices[k] = np.where(open_, choices[k], problem.given)

    def begin_at(self, weights: NDArray[np.float64], exact: bool) -> None:
        """Start from the best candidates at these points, (d, K); `exact`: they are to be improved on, not forgotten.

        One pass over all candidates.
        """
        ks = np.arange(len(self.points))
        found = self.whole.sweep(ks, weights, self.choices)
        for k in ks:
            point = self.whole.point(int(k), weights[:, k], found, int(k), self.choices[k])
            assert point.best is not None
            problem = self.whole.problems[k]
            self.choices[k] = np.where(problem.relevant & problem.latent, point.best[:, 0], problem.given)
            point.primal = self.whole.outer_value(int(k), point) if exact else np.inf
            if exact:
                self.objective[k] = point.primal
            self.points[k] = point
            if not exact:
                # Its best candidates are worth keeping, not the point itself: it solves another problem.
                self.inner.working.begin(int(k), problem.fixed(self.choices[k]), point)
                self.points[k] = None

    def go_on_from(self, earlier: ConcaveConvex) -> None:
        """Start where another loop over the same inner problems has ended, for other C.

        Its planes do not depend on C: they hold, moved along with the choices.
        """
        for k, point in enumerate(earlier.points):
            problem = self.whole.problems[k]
            assert point is not None
            assert point.best is not None
            start = Point(point.w, point.best, point.values, point.at, self.whole.outer_value(k, point))
            start.planes = point.planes
            self.objective[k], self.points[k] = start.primal, start
            # What the planes were cut for: the choices may have changed after the last round.
            self.choices[k] = earlier.fixed[k][-1]
            choice = np.where(problem.relevant & problem.latent, point.best[:, 0], problem.given)
            self._move(k, choice, np.flatnonzero((choice != self.choices[k]) & problem.relevant))

    def step(self) -> None:
        """One round for all problems that have not ended."""
        ks = np.flatnonzero([status == "running" for status in self.status])
        if ks.size == 0:
            return
        # The last round that is allowed is an accurate one.
        self._loose &= self.n_outer + 1 < self.max_outer
        if self._loose[ks].any():
            ks = ks[self._loose[ks]]
        tol = min(_LOOSE * self.tol, 0.01) if self._loose[ks[0]] else self.tol
        fixed = [self.whole.problems[k].fixed(self.choices[k]) for k in ks]
        for k in ks:
            self.fixed[k].append(self.choices[k])
        solved = self.inner.solve(ks, fixed, [self.points[k] for k in ks], tol)
        for k in ks:
            self._finish_round(int(k), solved[int(k)], tol)
        self._record()
        # The last: an interrupt finds no round that the history lacks.
        for k in ks:
            self.rounds[k].append(len(self._history) - 1)

    def _finish_round(self, k: int, point: Point, tol: float) -> None:
        """Compare with the incumbent, take the new choices, and decide whether that was the last round."""
        problem = self.whole.problems[k]
        assert point.best is not None
        before, value = self.objective[k], self.whole.outer_value(k, point)
        if value > before * (1 + _ROUNDING) and self.whole.is_exact(k):
            raise RuntimeError(f"the outer objective of problem {k} rose from {before!r} to {value!r}")
        self.n_outer[k] += 1
        if value <= before:
            self.objective[k], self.points[k] = value, point
        else:
            self.points[k] = point = self._certified(k, point)
        if self.whole.is_exact(k) and self._is_near_zero(k, point, tol):
            point = self._leave_zero(k, point)
        assert point.best is not None
        choice = np.where(problem.relevant & problem.latent, point.best[:, 0], problem.given)
        changed = np.flatnonzero((choice != self.choices[k]) & problem.relevant)
        self._n_changed[k], self._losses[k] = changed.size, self._loss_of(k, point)
        self._bounds[k] = (self.objective[k] - 0.5 * float(point.w @ point.w)) / self.whole.C[k]
        value = float(self.objective[k])
        settled = changed.size == 0 or before - value <= tol * abs(value)
        if point.status == "stopped":
            self.status[k] = "stopped"
        elif self.n_outer[k] >= self.max_outer and not (settled and not self._loose[k]):
            self.status[k] = "max_outer"
        elif settled and self._loose[k]:
            self._loose[k] = False
        elif settled and (self._may_end() or self.n_outer[k] >= self.max_outer):
            self.status[k] = self._end_of(point, tol)
            if self.status[k] == "running" and self.n_outer[k] >= self.max_outer:
                # A point away from 0 that was found at the end of the last round; nothing is proved about it.
                self.status[k] = "max_outer"
        self._move(k, choice, changed)

    def _end_of(self, point: Point, tol: float) -> str:
        """How the last inner problem has ended, whose solver may have converged on fewer candidates only."""
        if point.gap <= tol:
            return "converged"
        if point.status != "converged":
            return point.status
        if not point.exact:
            return HEURISTIC
        if relative_gap(np.array(point.primal), np.array(point.dual)) <= tol:
            return PRECISION
        return "max_iter" if point.n_iter >= self.inner.options.max_iter else "stalled"

    def _may_end(self) -> bool:
        """Whether a problem whose choices have settled is done."""
        return True

    def _is_near_zero(self, k: int, point: Point, tol: float) -> bool:
        """Whether a point is 0, or no better than 0 within the tolerance; the latter only if a round is to follow.

        A working set may let an inner problem end beside 0. A point that was found from there has no certificate.
        """
        if not point.w.any():
            return True
        return self.n_outer[k] < self.max_outer and self.objective[k] >= (1 - tol) * self.whole.value_at_zero(k)

    def _leave_zero(self, k: int, point: Point) -> Point:
        """From w = 0, or from nearby, a point at which F is lower, if one can be found; else the same one.

        At w = 0 every candidate is the best of its bag, and a minimum of one inner problem need not be one of F.
        """
        whole, given = self.whole, self.whole.problems[k].given
        directions = ways_from_zero(whole, k)
        if directions.shape[1] == 0:
            return point
        found = whole.sweep(np.full(directions.shape[1], k), directions, [given] * directions.shape[1])
        for c, direction in enumerate(directions.T):
            ahead = whole.point(k, direction, found, c, given)
            for step in _STEPS_FROM_ZERO:
                moved = ahead.scaled(step)
                value = whole.outer_value(k, moved)
                if value < self.objective[k]:
                    moved.primal = self.objective[k] = value
                    self.points[k] = point = moved
        return point

    def _certified(self, k: int, point: Point) -> Point:
        """The incumbent, with the certificate of a round that did not improve on it."""
        kept = self.points[k]
        assert kept is not None
        kept.dual, kept.status, kept.n_iter, kept.history = point.dual, point.status, point.n_iter, point.history
        kept.rounding, kept.exact = point.rounding, point.exact
        return kept

    def _move(self, k: int, choice: NDArray[np.int64], changed: NDArray[np.int64]) -> None:
        """Take the new choices; the planes' slopes move with them."""
        point, problem = self.points[k], self.whole.problems[k]
        assert point is not None
        old, self.choices[k] = self.choices[k], choice
        if self.status[k] != "running" or changed.size == 0:
            return
        rows = self.whole.features.rows
        change = rows(choice[changed]) - rows(old[changed])
        which = np.searchsorted(np.flatnonzero(problem.relevant), changed)
        planes = None if point.planes is None else moved_planes(point.planes, change, which)
        start = Point(point.w, point.best, point.values, point.at, float(self.objective[k]))
        start.planes = planes
        self.points[k] = start

    def _loss_of(self, k: int, point: Point) -> float:
        if not self.loss.is_ranking:
            return float("nan")
        assert point.values is not None
        return loss_by_scores(point.values[:, 0], self.whole.problems[k].relevant, self.loss)

    def _record(self) -> None:
        K = len(self.points)
        self._history.append(
            {
                "objective": self.objective.copy(),
                "bound": self._bounds.copy(),
                "loss": self._losses.copy(),
                "n_changed": self._n_changed.copy(),
                "time": np.full(K, time.perf_counter() - self._began),
                "passes": np.full(K, self.whole.passes),
            }
        )

    def history(self) -> dict[str, NDArray[Any]]:
        """By step, arrays of shape (K, steps); `rounds` has the steps of each problem."""
        K = len(self.points)
        return {
            name: np.array([row[name] for row in self._history]).reshape(-1, K).T if self._history else np.empty((K, 0))
            for name in HISTORY
        }
