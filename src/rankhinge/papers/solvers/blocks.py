r"""J by blocks (queries), and bounds from combinations of planes: for the two solvers that keep no model of J.

With :math:`J = \sum_q \pi_q J_q`, a plane :math:`(b_q, g_q)` of each block gives the plane
:math:`(\sum_q \pi_q b_q, \sum_q \pi_q g_q)` of J, wherever the blocks' planes were cut: w may have moved between them.
A convex combination :math:`(\ell, g)` of planes of J is a plane of J again, and proves

.. math:: \min P \ge D = C (\ell + g \cdot w^0) - \tfrac12 \|C g\|^2, \qquad \text{attained at } w^0 - C g.

A single list is one block. Its plane is cut at the point whose value is wanted anyway, in the same two passes over X,
and many problems share these.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from rankhinge.objective import RankingObjective
from rankhinge.papers.solvers.lists import ListBlocks
from rankhinge.solvers.base import Solver
from rankhinge.solvers.certificate import Carrying
from rankhinge.solvers.master import Master
from rankhinge.solvers.protocol import Array, Objective, Planes

__all__ = ["BlockObjective", "Plane", "SweepSolver"]


@runtime_checkable
class BlockObjective(Protocol):
    """One problem's J as a weighted mean of blocks (queries): ``J = sum_q weight_q J_q``."""

    def block_weights(self, problem: int) -> Array:
        """Weights of the blocks, positive, sum 1; shape (n_blocks,)."""

    def block_plane(self, weights: Array, problem: int, block: int) -> tuple[float, Array, float]:
        """Plane (b, g) of ``J_q``, not weighted, cut at ``weights`` of shape (d,), and ``J_q`` there."""


class Plane(NamedTuple):
    """``J(w) >= offset + slope @ w``; by how much it misses J where it was cut, and how far from 0 that is, at most."""

    offset: float
    slope: Array
    miss: float = 0.0
    reach: float = 0.0

    def towards(self, other: Plane, step: float) -> Plane:
        """The combination ``(1 - step) self + step other``."""
        return Plane(
            self.offset + step * (other.offset - self.offset),
            self.slope + step * (other.slope - self.slope),
            self.miss + step * (other.miss - self.miss),
            max(self.reach, other.reach),
        )

    def bound(self, C: float, centre: Array) -> float:
        """D, see above."""
        move = C * self.slope
        return C * self.offset + float(move @ centre) - 0.5 * float(move @ move)


class SweepSolver(Solver):
    """Base of both: a step looks at all candidates for the best point, and then visits every block once.

    Parameters
    ----------
    objective : Objective
        On arrays the lists are its blocks; any other has blocks if it is a `BlockObjective`, else one.
    C : (K,)
    random_state : int, optional
        Seed of the order of the blocks.
    **options
        As for `Solver`.
    """

    def __init__(self, objective: Objective, C: Array, *, random_state: int | None = None, **options: Any) -> None:
        super().__init__(objective, C, **options)
        self.generator = np.random.default_rng(0 if random_state is None else random_state)
        K, d = objective.n_problems, objective.n_features
        # The weights of each problem's blocks.
        self.shares = [np.ones(1)] * K
        blocks = ListBlocks(objective) if isinstance(objective, RankingObjective) else objective
        if isinstance(blocks, BlockObjective):
            self._plane_of = blocks.block_plane
            self.shares = [np.asarray(blocks.block_weights(k), dtype=np.float64) for k in range(K)]
        self.iterates, self.averages = self.start.copy(), self.start.copy()
        self.n_visits = np.zeros(K)
        # What the bounds rest on: at first ``0 <= J``, or of planes that are given the best combination.
        self.proofs = [Plane(0.0, np.zeros(d))] * K
        given, self.initial_planes = self.initial_planes or [], None
        for k in range(K):
            self.prove(k, self.proofs[k])
            if given:
                self.prove(k, _best_combination(given[k], self.C[k], self.centre[:, k]))

    def prove(self, k: int, plane: Plane) -> None:
        """Keep a combination of planes of problem k if it proves more than was known."""
        value = plane.bound(self.C[k], self.centre[:, k])
        if value > self.dual[k]:
            self.proofs[k] = plane
            self.bound(k, value)

    def carrying(self, k: int) -> Carrying:
        """The combination of planes that proves the bound."""
        return self.planes()[k].seen_from(self.best[k][1])

    def planes(self) -> list[Planes]:
        """The combinations that prove the bounds, one plane for each problem."""
        return [
            Planes(np.array([p.offset]), p.slope[None, :], np.array([p.miss]), np.array([p.reach])) for p in self.proofs
        ]

    def phase(self) -> dict[str, Array]:
        """How many blocks have been visited, which sets the steps."""
        return {"visits": self.n_visits.copy()}

    def take_up(self, phase: dict[str, Array]) -> None:
        """As of `Solver`."""
        self.n_visits = phase["visits"].copy()

    def _advance(self, active: np.ndarray) -> None:
        found, first = self._look(active)
        open_ = np.flatnonzero(self.unfinished()[active]).tolist()
        whole = [c for c in open_ if self.shares[active[c]].size == 1]
        slopes: dict[int, Array] = {}
        if whole:
            columns = self.objective.adjoint(self.objective.select(found.coefficients, first[whole]))
            self.n_passes += 1
            slopes = dict(zip(whole, columns.T.copy(), strict=True))
        for c in open_:
            k = int(active[c])
            if c in slopes:
                place = first[c]
                plane = self._cut(k, self.iterates[:, k], found.loss[place], slopes[c], found.value[place])
                self._visit(k, 0, plane)
            else:
                plane = self._sweep(k)
                # The blocks make up the features once for the scores and once for the slopes.
                self.n_passes += 2
            self._end_sweep(k, plane)

    def _look(self, active: np.ndarray) -> tuple[Any, np.ndarray]:
        """Evaluate all candidates of all problems, in one pass; and which column has each one's iterate."""
        candidates = [self._candidates(int(k)) for k in active]
        sizes = [len(points) for points in candidates]
        problems = np.repeat(active, sizes)
        weights = np.stack([w for points in candidates for w in points], axis=1)
        if weights.any():
            scores = self.objective.score(weights, problems)
            self.n_passes += 1
        else:
            scores = self.objective.zeros(problems)
        found = self.objective.evaluate(scores)
        for k, w, value in zip(problems, weights.T, found.value, strict=True):
            self.offer(k, self.regulariser(k, w) + self.C[k] * float(value), w.copy())
        return found, np.cumsum([0, *sizes[:-1]])

    def _candidates(self, k: int) -> list[Array]:
        """Points of which one may be the best so far; the iterate comes first."""
        points = [self.iterates[:, k]]
        if self.n_iter[k] > 0:
            points.append(self.averages[:, k])
        elif not np.array_equal(self.start[:, k], points[0]):
            points.append(self.start[:, k])
        return points

    def _sweep(self, k: int) -> Plane:
        """Visit every block once, in random order; returns a plane of J."""
        shares, d = self.shares[k], self.centre.shape[0]
        offset, slope, miss, reach = 0.0, np.zeros(d), 0.0, 0.0
        for q in self.generator.permutation(shares.size):
            w = self.iterates[:, k]
            plane = self._cut(k, w, *self._plane_of(w, k, int(q)))
            self._visit(k, int(q), plane)
            offset, slope = offset + shares[q] * plane.offset, slope + shares[q] * plane.slope
            miss, reach = miss + shares[q] * plane.miss, max(reach, plane.reach)
        return Plane(offset, slope, miss, reach)

    def _cut(self, k: int, w: Array, offset: float, slope: Array, value: float) -> Plane:
        """The plane with what the certificate asks: it meets J, or that of a block, at w, where this is `value`."""
        with np.errstate(over="ignore"):
            # Steps are as long as two planes differ.
            if not np.isfinite(np.square(2.0 * max(self.C[k], 1.0) * np.linalg.norm(slope))):
                raise ValueError("the features are so large that squares of slopes overflow: scale them")
        return Plane(float(offset), slope, abs(float(offset + slope @ w - value)), float(np.linalg.norm(w)))

    def _visit(self, k: int, q: int, plane: Plane) -> None:
        """Move the iterate of problem k, by the plane of block q that was cut there."""
        raise NotImplementedError

    def _end_sweep(self, k: int, plane: Plane) -> None:
        """All blocks have been visited; their planes make up this one."""
        raise NotImplementedError


def _best_combination(planes: Planes, C: float, centre: Array) -> Plane:
    """Of some planes the combination that proves most."""
    master = Master(C, centre)
    master.take(planes)
    master.solve()
    shares, known = master.multipliers[1:] / C, master.planes()
    misses, reaches = (np.zeros(shares.size) if part is None else part for part in (known.misses, known.reaches))
    return Plane(
        float(shares @ known.offsets),
        shares @ known.slopes,
        float(shares @ misses),
        float(reaches[shares > 0.0].max(initial=0.0)),
    )
