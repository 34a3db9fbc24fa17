r"""J by blocks (queries), and bounds from sweeps over all of them: for the two stochastic solvers.

With :math:`J = \sum_q \pi_q J_q`, a plane :math:`(b_q, g_q)` of each block gives the plane
:math:`(\sum_q \pi_q b_q, \sum_q \pi_q g_q)` of J, wherever the blocks' planes were cut. So a sweep that
visits every block once yields a valid plane of J, even if w has moved at each visit, and these planes in
a master problem yield a certified lower bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankhinge.solvers.base import Solver
from rankhinge.solvers.certificate import Carrying, witness
from rankhinge.solvers.master import Master
from rankhinge.solvers.protocol import Array, BlockObjective, Objective, Planes

__all__ = ["Blocks", "SweepSolver"]

_PRUNE_AFTER = 50
# Sweeps without progress after which the next one also cuts at the master's minimiser.
_STUCK = 3


class Blocks:
    """One problem's blocks; an objective that has none counts as a single one.

    Attributes
    ----------
    weights : (Q,)
    """

    def __init__(self, objective: Objective, problem: int) -> None:
        self.objective, self.problem = objective, problem
        self.split = isinstance(objective, BlockObjective)
        self.weights = np.ones(1)
        if isinstance(objective, BlockObjective):
            self.weights = np.asarray(objective.block_weights(problem), dtype=np.float64)

    def plane(self, w: Array, block: int) -> tuple[float, Array, float]:
        """Plane (b, g) of the block at w, and by how much it misses there: two passes over the block's features."""
        if self.split:
            b, g, value = self.objective.block_plane(w, self.problem, block)  # type: ignore[attr-defined]
        else:
            found = self.objective.evaluate(self.objective.score(w[:, None], np.array([self.problem])))
            b, g, value = float(found.loss[0]), self.objective.adjoint(found.coefficients)[:, 0], float(found.value[0])
        return b, g, abs(b + float(g @ w) - value)


class SweepSolver(Solver):
    """Base of the stochastic solvers: a step is a sweep of each problem and a check of the primal.

    Parameters
    ----------
    objective : Objective
        With blocks if it is a `BlockObjective`.
    C : (K,)
    random_state : int, optional
        Seed of the order of the blocks.
    **options
        As for `Solver`.
    """

    def __init__(self, objective: Objective, C: Array, *, random_state: int | None = None, **options: Any) -> None:
        super().__init__(objective, C, **options)
        self.generator = np.random.default_rng(0 if random_state is None else random_state)
        self.blocks = [Blocks(objective, k) for k in range(objective.n_problems)]
        self.masters = [Master(c, self.centre[:, k]) for k, c in enumerate(self.C)]
        for master, planes in zip(self.masters, self.initial_planes or ()):
            master.take(planes)
        self.iterates = self.start.copy()
        # The longest point at which a block was cut, problem by problem.
        self.reaches = np.zeros(len(self.blocks))

    def carrying(self, k: int) -> Carrying:
        """The planes with multipliers."""
        return self.masters[k].carrying(self.best[k][1])

    def planes(self) -> list[Planes]:
        """The planes of the sweeps."""
        return [master.planes() for master in self.masters]

    def _advance(self, active: np.ndarray) -> None:
        for k in active:
            offset, slope, miss = self._sweep(int(k))
            master = self.masters[k]
            master.add_planes(np.array([offset]), slope[None, :], miss, self.reaches[k])
            master.solve()
            master.prune(_PRUNE_AFTER)
            self.bound(k, master.dual_value)
        # The blocks of a sweep, of one problem each, make up the features once for the scores and once for the slopes.
        self.n_passes += 2 * active.size
        self._check(active)
        stuck = active[self._still[active] >= _STUCK]
        if stuck.size:
            self._cut_at_minimisers(stuck)

    def _cut_at_minimisers(self, stuck: np.ndarray) -> None:
        """What plain cutting planes do: if that moves nothing either, rounding forbids it. Two passes."""
        weights = np.stack([self.masters[k].point for k in stuck], axis=1)
        found = self.objective.evaluate(self.objective.score(weights, stuck))
        slopes = self.objective.adjoint(found.coefficients)
        self.n_passes += 2
        for c, k in enumerate(stuck):
            self.offer(k, self.regulariser(k, weights[:, c]) + self.C[k] * float(found.value[c]), weights[:, c].copy())
            master = self.masters[k]
            loss, slope, value = found.loss[c : c + 1], slopes[:, c][None, :], found.value[c : c + 1]
            master.add_planes(loss, slope, *witness(loss, slope, weights[:, c], value))
            master.solve()
            self.bound(k, master.dual_value)

    def _check(self, active: np.ndarray) -> None:
        """Evaluate all candidates of all problems: one pass."""
        candidates = [self._candidates(int(k)) for k in active]
        if self.n_iter[active[0]] == 0:
            for k, points in zip(active, candidates):
                points.append(self.start[:, k])
        problems = np.repeat(active, [len(points) for points in candidates])
        weights = np.stack([w for points in candidates for w in points], axis=1)
        scores = self.objective.score(weights, problems)
        self.n_passes += 1
        values = self.objective.evaluate(scores, coefficients=False).value
        for k, w, value in zip(problems, weights.T, values):
            self.offer(k, self.regulariser(k, w) + self.C[k] * float(value), w.copy())

    def _cut_block(self, k: int, w: Array, block: int) -> tuple[float, Array, float]:
        """As `Blocks.plane`; how far w is from 0 is noted."""
        self.reaches[k] = max(self.reaches[k], float(np.linalg.norm(w)))
        return self.blocks[k].plane(w, block)

    def _sweep(self, k: int) -> tuple[float, Array, float]:
        """Visit every block once; returns a valid plane of J, and by how much its parts miss where they were cut."""
        raise NotImplementedError

    def _candidates(self, k: int) -> list[Array]:
        """Points of which one may be the best so far."""
        raise NotImplementedError
