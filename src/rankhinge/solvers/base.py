"""What all solvers share: the best point, the certificate, the history and the stopping rule.

A solver is ``init / step / done``; `Solver.result` may be called at any time, also after an
exception has left `Solver.step`. The relative gap ``(primal - dual) / primal`` is a certificate:
primal is the value at the returned point, dual a lower bound on the minimum.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from rankhinge.solvers.certificate import (
    CONVERGED,
    INFEASIBLE,
    LEFT_OUT,
    MAX_ITER,
    MESSAGES,
    RUNNING,
    STALLED,
    Carrying,
    relative_gap,
)
from rankhinge.solvers.protocol import Array, Objective, Planes, SolverResult

__all__ = ["CONVERGED", "INFEASIBLE", "LEFT_OUT", "MAX_ITER", "RUNNING", "Solver"]

# Steps without any progress of primal or dual after which rounding must be the reason.
_PATIENCE = 8


class Solver:
    """Base of the solvers; `_advance` makes one step for the problems in `active`.

    Parameters
    ----------
    objective : Objective
    C : (K,)
    tol : float
        Stop when the relative gap is at most this.
    max_iter : int
    start : (d, K), optional
        Where to begin; default: the centre.
    planes : sequence of Planes, optional
        Planes found before, one set for each problem.
    centre : (d, K), optional
        ``w0`` of ``0.5 * |w - w0|**2``; default 0.
    problems : (m,), optional
        Those to be solved; default: all.
    """

    def __init__(
        self,
        objective: Objective,
        C: Array,
        *,
        tol: float = 1e-3,
        max_iter: int = 1000,
        start: Array | None = None,
        planes: list[Planes] | None = None,
        centre: Array | None = None,
        problems: np.ndarray | None = None,
    ) -> None:
        d, K = objective.n_features, objective.n_problems
        self.objective, self.tol, self.max_iter = objective, float(tol), int(max_iter)
        self.C = np.broadcast_to(np.asarray(C, dtype=np.float64), K).copy()
        # Each problem's weights side by side: they are read one problem at a time.
        self.centre = np.array(np.zeros((d, K)) if centre is None else centre, dtype=np.float64, order="F")
        self.start = np.array(self.centre if start is None else start, dtype=np.float64, order="F")
        self.initial_planes = planes
        # (primal, w) in one tuple: an interrupt cannot part the value from its point.
        self.best: list[tuple[float, Array]] = [(np.inf, self.start[:, k]) for k in range(K)]
        self.dual = np.full(K, -np.inf)
        self.n_iter = np.zeros(K, dtype=np.int64)
        self.n_passes = 0.0
        self.status = [RUNNING if problems is None or k in problems else LEFT_OUT for k in range(K)]
        self._still = np.zeros(K, dtype=np.int64)
        # Of each iteration: primal, dual, gaps, seconds and passes.
        self._history: list[tuple[Array, Array, float, float]] = []
        self._began = time.perf_counter()

    @property
    def active(self) -> np.ndarray:
        """The problems that have not ended, ascending."""
        return np.array([k for k, s in enumerate(self.status) if s == RUNNING], dtype=np.int64)

    @property
    def done(self) -> bool:
        """Whether every problem has ended."""
        return RUNNING not in self.status

    @property
    def primal(self) -> Array:
        """Best primal values, (K,)."""
        return np.array([value for value, _ in self.best])

    def regulariser(self, k: int, w: Array) -> float:
        """``0.5 * |w - w0|**2``."""
        move = w - self.centre[:, k]
        return 0.5 * float(move @ move)

    def offer(self, k: int, value: float, w: Array) -> bool:
        """Keep w if its primal value is the best of problem k so far."""
        if value < self.best[k][0]:
            self.best[k] = (float(value), w)
            return True
        return False

    def bound(self, k: int, value: float) -> None:
        """Keep a lower bound if it is the best of problem k so far."""
        self.dual[k] = max(self.dual[k], value)

    def gaps(self) -> Array:
        """Relative gaps, (K,), rounding not counted; inf as long as nothing is known."""
        return relative_gap(self.primal, self.dual)

    def unfinished(self) -> np.ndarray:
        """Which problems have more to gain than tol allows, or rank nothing yet, (K,).

        Where the features are small beside C, w = 0 may be within tol of the minimum; but all scores are equal there,
        and the first step away from it makes a ranking.
        """
        gaps = self.gaps()
        nowhere = np.array([not w.any() for _, w in self.best])
        unfinished: np.ndarray = (gaps > self.tol) | (nowhere & (gaps > 0.0))
        return unfinished

    def step(self) -> None:
        """Make one step for all problems that have not ended, and update the certificate."""
        if self.done:
            return
        active, before = self.active, (self.primal, self.dual.copy())
        self._advance(active)
        self.n_iter[active] += 1
        self._record(active, before)

    def _record(self, active: np.ndarray, before: tuple[Array, Array]) -> None:
        """Append to the history and decide which problems have ended."""
        primal, gap, unfinished = self.primal, self.gaps(), self.unfinished()
        moved = (primal < before[0]) | (self.dual > before[1])
        for k in active:
            self._still[k] = 0 if moved[k] else self._still[k] + 1
            if self.status[k] != RUNNING:
                continue
            still, last = self._still[k] >= _PATIENCE, self.n_iter[k] >= self.max_iter
            if not unfinished[k] or (gap[k] <= self.tol and (still or last)):
                self.status[k] = CONVERGED
            elif still:
                self.status[k] = STALLED
            elif last:
                self.status[k] = MAX_ITER
        elapsed = time.perf_counter() - self._began
        self._history.append((primal, self.dual.copy(), elapsed, self.n_passes))

    def run(self, callback: Callable[[Solver], object] | None = None) -> SolverResult:
        """Step until done; `callback` is called after each step, and stops the run if it says True."""
        while not self.done:
            self.step()
            if callback is not None and callback(self) is True:
                break
        return self.result()

    def report(self) -> dict[str, float]:
        """Iteration, primal and dual, summed over the problems, and the largest gap, as far as known, for a display."""
        asked = np.array([status != LEFT_OUT for status in self.status])
        values = {
            "iteration": float(self.n_iter.max()),
            "primal": float(self.primal[asked].sum()),
            "dual": float(self.dual[asked].sum()),
            "gap": float(self.gaps()[asked].max()),
        }
        return {name: value for name, value in values.items() if np.isfinite(value)}

    def result(self, status: str | None = None) -> SolverResult:
        """The state as a value; `status` replaces that of the problems that have not ended."""
        states = [s if s != RUNNING or status is None else status for s in self.status]
        return SolverResult(
            coef=np.stack([w for _, w in self.best], axis=1),
            objective=self.primal,
            dual_objective=self.dual.copy(),
            gap=self.gaps(),
            tolerated=self.tolerated(),
            carrying=tuple(
                self.carrying(k) if np.isfinite(value) else Carrying.none() for k, value in enumerate(self.primal)
            ),
            n_iter=self.n_iter.copy(),
            n_passes=self.n_passes,
            history=self._history_arrays(),
            status=np.array(states),
            message="; ".join(dict.fromkeys(MESSAGES.get(s, s) for s in states)),
        )

    def _history_arrays(self) -> dict[str, Array]:
        K, T = len(self.best), len(self._history)
        columns = list(zip(*self._history, strict=True)) or [()] * 4
        primal, dual = (np.array(column).reshape(T, K).T for column in columns[:2])
        seconds, passes = (np.tile(column, (K, 1)).reshape(K, T) for column in columns[2:])
        return {"primal": primal, "dual": dual, "gap": relative_gap(primal, dual), "time": seconds, "passes": passes}

    def carrying(self, k: int) -> Carrying:
        """The planes that the bound of problem k rests on, as they are seen from its best point."""
        return Carrying.none()

    def tolerated(self) -> Array:
        """By how much hard constraints that hold within their tolerance only may have raised the bounds, (K,)."""
        return np.zeros(len(self.best))

    def planes(self) -> list[Planes]:
        """Planes for another fit, one set for each problem."""
        d = self.objective.n_features
        return [Planes(np.zeros(0), np.zeros((0, d))) for _ in self.best]

    def phase(self) -> dict[str, Array]:
        """The state of the method beyond points and planes, (K,) each, from which another solver can continue."""
        return {}

    def take_up(self, phase: dict[str, Array]) -> None:
        """Continue from the state of another solver. Call it before the first step."""

    def _advance(self, active: np.ndarray) -> None:
        raise NotImplementedError
