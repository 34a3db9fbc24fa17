r"""The bundle solver: cutting planes that get the most out of each pass over the features.

A round, for all problems that have not ended, in lockstep:

1. *Look.* The minimiser of the master problem, and points that `Curvature` proposes where the objective
   shows rows, get their scores: one pass, however many columns.
2. *Search.* The best point, these points and the last step span a small space, in which P is minimised
   with inferences only (`subspace.search`): the best point moves.
3. *Cut.* The planes that carry the solution in the span become planes of the master problem: one pass,
   however many columns. Their convex combination has no slope in the span, so the next minimiser
   looks elsewhere.

The dual bound is the value of the master problem and never falls; planes whose multiplier has been 0 for
long are dropped, which does not change it. If a round has not raised the bound noticeably, the next one
cuts at the master problem's minimiser whatever else it does: this alone makes plain cutting planes
converge (Joachims, Finley and Yu 2009). Line search on cached scores: Franc and Sonnenburg 2009.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankhinge.solvers.base import INFEASIBLE
from rankhinge.solvers.curvature import Curvature
from rankhinge.solvers.cutting_plane import CuttingPlane
from rankhinge.solvers.protocol import Array, Handle, Objective, RowSource
from rankhinge.solvers.subspace import Cut, Probe, search

__all__ = ["Bundle"]

_PRUNE_AFTER = 25
# A bound that rises by less than this part of the gap calls for a cut at the master's minimiser.
_NOTICEABLE = 0.02


class Bundle(CuttingPlane):
    """Cutting planes with a search on cached scores, for K problems in lockstep.

    Parameters
    ----------
    objective : Objective
        If it is a `RowSource`, sampled rows shape the proposals.
    C : (K,)
    n_cuts : int
        Planes added in a round, at most.
    n_turns : int, optional
        Inferences in a round, at most; by default more if a pass is dear (many features).
    n_rows : int
        Rows that each problem keeps, at most; 0: none, even if the objective could show them.
    random_state : int, optional
        Seed of the choice of rows.
    **options
        As for `Solver` and `CuttingPlane`.
    """

    def __init__(
        self,
        objective: Objective,
        C: Array,
        *,
        n_cuts: int = 3,
        n_turns: int | None = None,
        n_rows: int = 256,
        random_state: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(objective, C, **options)
        d, K = objective.n_features, objective.n_problems
        self.n_cuts = n_cuts
        self.n_turns = int(np.clip(d // 100, 4, 10)) if n_turns is None else n_turns
        self.generator = np.random.default_rng(random_state if random_state is not None else 0)
        self.curvature: list[Curvature] | None = None
        if n_rows > 1 and self.constraints is None and isinstance(objective, RowSource):
            # A problem's rows cost about as much as a pass when their number is a few times sqrt(n).
            limit = min(n_rows, max(2 * n_rows // K, 16), int(4 * objective.n_samples**0.5) + 1)
            self.curvature = [Curvature(limit, d) for _ in range(K)]
        self._columns = np.zeros(0, dtype=np.int64)
        self._best_scores: Handle = None
        self._step_scores: Handle = None
        self._steps = np.zeros((d, K))
        self._points = self.start.copy()
        self._coefficients: list[Handle] = [None] * K
        self._losses = np.zeros(K)
        self._cut_at_minimiser = np.zeros(K, dtype=bool)

    def _advance(self, active: np.ndarray) -> None:
        if self._best_scores is None:
            self._begin(active)
            active = active[self.gaps()[active] > self.tol]
        self._align(active)
        if active.size == 0:
            return
        probes, terms = self._look(active)
        gaps = np.array([self.best[k][0] - self.dual[k] for k in active])
        precision = 0.2 * self.tol * np.array([abs(self.best[k][0]) for k in active])
        wanted = None if self.curvature is None else [self._coefficients[k] for k in active]
        found = search(
            self.objective,
            probes,
            terms,
            active,
            np.where(np.isfinite(gaps), gaps, 0.0),
            n_turns=self.n_turns,
            n_cuts=self.n_cuts,
            precision=np.where(np.isfinite(precision), precision, 0.0),
            constraints=self.constraints,
            best_coefficients=wanted,
            best_losses=self._losses[active],
        )
        self._learn_curvature(active, probes)
        self._move(active, probes, terms, found)
        self._cut_all(active, probes)

    def _begin(self, active: np.ndarray) -> None:
        """Evaluate the start, and cut there."""
        weights = self.start[:, active]
        if weights.any():
            self._best_scores = self.objective.score(weights, active)
            self.n_passes += 1
        else:
            self._best_scores = self.objective.zeros(active)
        self._columns = active
        found = self.objective.evaluate(self._best_scores)
        feasible = self._constrain(weights, self._best_scores, active)
        for c, k in enumerate(active):
            if feasible[c]:
                value = self.regulariser(k, weights[:, c]) + self.C[k] * float(found.value[c])
                self.offer(k, value, weights[:, c].copy())
            self._coefficients[k] = self.objective.select(found.coefficients, np.array([c]))
            self._losses[k] = found.loss[c]
        if self.curvature is not None:
            drawn = self.objective.rows(found.coefficients, None, self._limit, self.generator)
            for k, rows in zip(active, drawn):
                self.curvature[k].insert(rows)
            self._count_rows(drawn)
        # Warm planes may have certified a warm start already.
        open_ = active[self.gaps()[active] > self.tol]
        self._add_cuts(open_, [[Cut(0, float(self._losses[k]), self._coefficients[k])] for k in open_])

    @property
    def _limit(self) -> int:
        return 0 if self.curvature is None else self.curvature[0].n_rows

    def _count_rows(self, drawn: list[Array]) -> None:
        n_rows = sum(rows.shape[0] for rows in drawn)
        self.n_passes += n_rows / max(self.objective.n_samples * self.objective.n_problems, 1)

    def _align(self, active: np.ndarray) -> None:
        """Drop the scores of problems that have ended."""
        if active.size == self._columns.size or active.size == 0:
            return
        places = np.searchsorted(self._columns, active)
        self._best_scores = self.objective.select(self._best_scores, places)
        if self._step_scores is not None:
            self._step_scores = self.objective.select(self._step_scores, places)
        self._columns = active

    def _look(self, active: np.ndarray) -> tuple[list[Probe], list[Handle]]:
        """Choose points, and score them: one pass."""
        proposals = [self._proposals(k) for k in active]
        width = max(len(points) for points in proposals)
        # Problems with fewer proposals repeat their last; the search leaves out what depends.
        columns = [points + points[-1:] * (width - len(points)) for points in proposals]
        weights = np.stack([points[i] for i in range(width) for points in columns], axis=1)
        scores = self.objective.score(weights, np.tile(active, width))
        self.n_passes += 1
        m = active.size
        terms = [self._best_scores]
        terms += [self.objective.select(scores, slice(i * m, (i + 1) * m)) for i in range(width)]
        if self._step_scores is not None:
            terms.append(self._step_scores)
        probes = []
        for c, k in enumerate(active):
            vectors = [self._points[:, k], *columns[c]]
            if self._step_scores is not None:
                vectors.append(self._steps[:, k])
            first = 1 if self._cut_at_minimiser[k] or len(proposals[c]) != 2 else 2
            probes.append(Probe(self.masters[k], np.stack(vectors, axis=1), self.best[k][0], first))
        return probes, terms

    def _proposals(self, k: int) -> list[Array]:
        """The master's minimiser, and what the curvature suggests."""
        points = [self.masters[k].point]
        if self.curvature is not None:
            points += self.curvature[k].propose(self.masters[k], self._points[:, k])
        return points

    def _learn_curvature(self, active: np.ndarray, probes: list[Probe]) -> None:
        """Rows where the subgradients at the best and at the first point differ, and the secant."""
        if self.curvature is None:
            return
        first = self.objective.join([probe.first_cut.coefficients for probe in probes])  # type: ignore[union-attr]
        best = self.objective.join([self._coefficients[k] for k in active])
        drawn = self.objective.rows(first, best, max(self._limit // 4, 1), self.generator)
        self._count_rows(drawn)
        for k, probe, rows in zip(active, probes, drawn):
            self.curvature[k].insert(rows)
            step = probe.point(probe.first) - self._points[:, k]
            self.curvature[k].observe(step, probe.first_excess)

    def _move(
        self, active: np.ndarray, probes: list[Probe], terms: list[Handle], found: list[Any]
    ) -> None:
        """Make the points found the best ones, and keep the scores of the steps to them."""
        n_terms, m = len(terms), active.size
        stay = np.zeros((n_terms, m))
        stay[0] = 1.0
        weights, steps = stay.copy(), np.zeros((n_terms, m))
        if self._step_scores is not None:
            steps[-1] = 1.0
        for c, (k, probe) in enumerate(zip(active, probes)):
            if not probe.moved:
                continue
            weights[:, c] = probe.weights(probe.anchor)
            steps[:, c] = weights[:, c] - stay[:, c]
            point = probe.point(probe.anchor)
            self._steps[:, k] = point - self._points[:, k]
            self._points[:, k] = point
            self._losses[k], self._coefficients[k] = found[c]
            self.offer(k, probe.value, point)
        # Both before either is replaced: they are made of the same terms.
        scores = self.objective.combine(weights, terms)
        self._step_scores = self.objective.combine(steps, terms)
        self._best_scores = scores

    def _cut_all(self, active: np.ndarray, probes: list[Probe]) -> None:
        """Turn the planes that carry the solution in the span into planes of the masters."""
        gaps, chosen, open_ = self.gaps(), [], []
        for k, probe in zip(active, probes):
            if gaps[k] <= self.tol:
                continue
            weight = probe.small.multipliers
            cuts = [cut for cut in probe.cuts if weight[cut.place] > 0.0]
            cuts = cuts or probe.cuts[-1:]
            if self._cut_at_minimiser[k] and probe.first_cut not in cuts:
                cuts.append(probe.first_cut)  # type: ignore[arg-type]
            open_.append(k)
            chosen.append(cuts)
        self._add_cuts(np.array(open_, dtype=np.int64), chosen)

    def _add_cuts(self, problems: np.ndarray, cuts: list[list[Cut]]) -> None:
        """One pass for all slopes, then the masters are solved again."""
        if problems.size == 0:
            return
        slopes = self.objective.adjoint(
            self.objective.join([cut.coefficients for group in cuts for cut in group])
        )
        self.n_passes += 1
        begin = 0
        for k, group in zip(problems, cuts):
            master, gap = self.masters[k], self.best[k][0] - self.dual[k]
            master.add_planes(
                np.array([cut.loss for cut in group]), slopes[:, begin : begin + len(group)].T
            )
            begin += len(group)
            master.solve()
            if master.unbounded:
                self.status[k] = INFEASIBLE
            before = self.dual[k]
            self.bound(k, master.dual_value)
            self._cut_at_minimiser[k] = not self.dual[k] - before > _NOTICEABLE * gap
            master.prune(_PRUNE_AFTER)
