"""What a latent fit leaves behind: the best of all starts, and the tables made of it."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge.latent.bags import Bags
from rankhinge.latent.candidates import CandidateFeatures
from rankhinge.latent.cccp import HISTORY, ConcaveConvex
from rankhinge.latent.problem import LatentProblem
from rankhinge.solvers.certificate import relative_gap

__all__ = ["Kept", "choice_tables", "counted_within_bags", "inner_history"]


class Kept:
    """The best of all starts, problem by problem, and what is running."""

    def __init__(self, K: int, d: int) -> None:
        self.w, self.objective, self.dual = np.zeros((K, d)), np.full(K, np.inf), np.full(K, -np.inf)
        self.gap, self.exact = np.full(K, np.inf), np.ones(K, np.bool_)
        self.n_iter, self.n_outer = np.zeros(K, np.int64), np.zeros(K, np.int64)
        self.status = ["running"] * K
        self.histories: list[list[tuple[float, float, float, float]]] = [[] for _ in range(K)]
        self._outer: list[dict[str, NDArray[Any]]] = [{} for _ in range(K)]
        self.choices: list[list[NDArray[np.int64]]] = [[] for _ in range(K)]
        self._best: list[tuple[NDArray[np.int64], NDArray[np.float64]] | None] = [None] * K
        self.running: tuple[ConcaveConvex, NDArray[np.int64]] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether w = 0 is all that has been reached."""
        return not self.w.any()

    def copy(self) -> Kept:
        """A copy of the present state, independent of later changes."""
        other = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray | list):
                setattr(other, name, value.copy())
        return other

    @property
    def outer_history(self) -> dict[str, NDArray[Any]]:
        """By round, (K, rounds); shorter ones continue with their last values."""
        length = max((values.size for history in self._outer for values in history.values()), default=0)
        result: dict[str, NDArray[Any]] = {}
        for name in HISTORY:
            rows = [history.get(name, np.empty(0)) for history in self._outer]
            padded = [
                np.pad(row, (0, length - row.size), mode="edge") if row.size else np.zeros(length) for row in rows
            ]
            result[name] = np.stack(padded)
        return result

    def offer(self, outer: ConcaveConvex, group: NDArray[np.int64]) -> None:
        """Take over the problems that ended lower than before."""
        history = outer.history()
        for c, (k, point) in enumerate(zip(group, outer.points, strict=True)):
            if point is None or not outer.objective[c] < self.objective[k]:
                continue
            self.w[k], self.objective[k] = point.w, outer.objective[c]
            self.dual[k], self.exact[k] = point.lower, outer.whole.is_exact(c)
            rounds = outer.rounds[c]
            self.gap[k], self.n_iter[k], self.n_outer[k] = point.gap, point.n_iter, len(rounds)
            self.status[k], self.histories[k] = outer.status[c], point.history
            self.choices[k] = [*outer.fixed[c][: len(rounds)], outer.choices[c]]
            whole = outer.whole.problems[c].members.size == outer.whole.offsets.size - 1
            self._best[k] = None
            if whole and outer.whole.allowed is None and point.best is not None and point.values is not None:
                self._best[k] = (point.best[:, 0], point.values[:, 0])
            self._outer[k] = {name: values[c, rounds] for name, values in history.items()}

    def best_of(self, features: CandidateFeatures, bags: Bags) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Place and score of each bag's best candidate, (K, n_bags) each; a pass only if the rounds left them out."""
        known = [best for best in self._best if best is not None]
        if len(known) == len(self._best):
            return np.stack([places for places, _ in known]), np.stack([values for _, values in known])
        found = features.sweep(self.w.T, bags.offsets, 1)
        return found.places[:, :, 0], found.values[:, :, 0]

    def interrupt(self) -> None:
        """Take over what the running start has reached."""
        self.status = ["interrupted" if status == "running" else status for status in self.status]
        if self.running is None:
            return
        outer, group = self.running
        self.offer(outer, group)
        for k, status in zip(group, outer.status, strict=True):
            if status == "running":
                self.status[k] = "interrupted"
        for c, k in enumerate(group):
            # In its first round a problem has nothing but what the inner solver has.
            point = None if np.isfinite(self.objective[k]) else outer.inner.interrupted(c)
            if point is not None:
                self.w[k], self.objective[k] = point.w, outer.whole.outer_value(c, point)
                self.dual[k], self.gap[k] = point.lower, point.gap
                self.n_iter[k] = point.n_iter
            elif not np.isfinite(self.objective[k]):
                self.objective[k] = outer.whole.value_at_zero(c)


def inner_history(
    histories: list[Any], exact: NDArray[np.bool_], usable: NDArray[np.bool_]
) -> dict[str, NDArray[np.float64]]:
    """The last inner problem: primal, dual, gap, time and passes, (K, steps); shorter ones continue with their last.

    Where values are not exact, the gap is inf.
    """
    length = max((len(history) for history in histories), default=0)
    table = np.zeros((usable.size, length, 4))
    for k, history in zip(np.flatnonzero(usable), histories, strict=True):
        if history:
            table[k, : len(history)] = history
            table[k, len(history) :] = history[-1]
    primal, dual = table[..., 0], table[..., 1]
    proved = np.ones(usable.size, np.bool_)
    proved[usable] = exact
    columns = {
        "primal": primal,
        "dual": dual,
        "gap": np.where(proved[:, None], relative_gap(primal, dual), np.inf),
        "time": table[..., 2],
        "passes": table[..., 3],
    }
    return {name: values[0] if usable.size == 1 else values for name, values in columns.items()}


def counted_within_bags(
    places: NDArray[np.int64], bags: Bags, usable: NDArray[np.bool_], one: bool
) -> NDArray[np.int64]:
    """Candidates counted within their bags; 0 for problems that were not trained."""
    local = np.where(usable[:, None], places - bags.offsets[:-1], 0)
    return local[0] if one else local.T


def choice_tables(kept: list[Any], problems: list[LatentProblem], bags: Bags, usable: NDArray[np.bool_]) -> Any:
    """For each problem, by round: the positives' candidates, counted within their bags; -1 for other bags."""
    tables = {}
    for k, choices, problem in zip(np.flatnonzero(usable), kept, problems, strict=True):
        table = np.full((len(choices), len(bags)), -1)
        for row, choice in zip(table, choices, strict=True):
            row[problem.members] = np.where(problem.relevant, choice - problem.start, -1)
        tables[int(k)] = table
    rows = [tables.get(k, np.full((0, len(bags)), -1)) for k in range(usable.size)]
    return rows[0] if usable.size == 1 else rows
