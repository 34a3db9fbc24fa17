r"""Minimise over the span of a few points whose scores are known: no pass over the features.

For points :math:`z_1, \dots, z_k` with known scores, :math:`w = \sum_i y_i z_i` has the scores
:math:`\sum_i y_i s_i`, and a plane with coefficients u has the slope :math:`(u \cdot s_i)_i` in y. So
:math:`P` can be minimised over the span by cutting planes that cost an inference each: the idea of the
line search in OCAS (Franc and Sonnenburg 2009), in more than one dimension. The planes known so far,
restricted to the span, are the start; hence the first minimiser of the small model is that of the whole
model, which is in the span.

Coordinates c refer to an orthonormal basis of the span, ``w = basis @ c``, with ``Z = basis @ R``, so
that ``y = inv(R) @ c``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankhinge.solvers.master import Master
from rankhinge.solvers.protocol import Array, Constraints, Handle, Objective

__all__ = ["Cut", "Probe", "orthonormal", "search"]

_DEPENDENT = 1e-7


class Cut(NamedTuple):
    """A plane found in the span: its place in the small master, offset and coefficients."""

    place: int
    loss: float
    coefficients: Handle


def orthonormal(terms: Array) -> tuple[Array, Array, np.ndarray]:
    """Basis (d, r), triangular R (r, r) and the chosen columns: ``terms[:, chosen] = basis @ R``.

    Columns that depend on those before them are left out. Twice is enough (Kahan and Parlett).
    """
    d, k = terms.shape
    basis, factor, chosen = np.zeros((d, 0)), np.zeros((k, k)), []
    for i in range(k):
        rest, r = terms[:, i].copy(), len(chosen)
        length = np.linalg.norm(rest)
        for _ in range(2):
            along = basis.T @ rest
            rest -= basis @ along
            factor[:r, r] += along
        left = np.linalg.norm(rest)
        if left <= _DEPENDENT * length or left == 0.0:
            factor[:r, r] = 0.0
            continue
        factor[r, r] = left
        basis = np.column_stack([basis, rest / left])
        chosen.append(i)
    r = len(chosen)
    return basis, factor[:r, :r], np.array(chosen, dtype=np.int64)


class Probe:
    """The search of one problem: its span, its small master problem and what was found.

    Parameters
    ----------
    master : Master
    terms : (d, k)
        The points; the first is the best point so far.
    value : float
        Primal value at the first point; inf if it is not feasible.
    first : int
        The point to be evaluated first.
    """

    def __init__(self, master: Master, terms: Array, value: float, first: int) -> None:
        self.master, self.n_terms = master, terms.shape[1]
        self.basis, self.factor, self.chosen = orthonormal(terms)
        self.small = master.restricted(self.basis)
        self.anchor = self.basis.T @ terms[:, 0]
        self.first = self.basis.T @ terms[:, first]
        self.value, self.moved = value, False
        self.cuts: list[Cut] = []
        self.first_cut: Cut | None = None
        self.first_excess = 0.0

    def weights(self, coordinates: Array) -> Array:
        """The weights y of the terms, (k,)."""
        y = np.zeros(self.n_terms)
        y[self.chosen] = np.linalg.solve(self.factor, coordinates)
        return y

    def point(self, coordinates: Array) -> Array:
        """``w``, (d,)."""
        return self.basis @ coordinates

    def regulariser(self, coordinates: Array) -> float:
        """``0.5 * |w - w0|**2``."""
        move = self.basis @ coordinates - self.master.centre
        return 0.5 * float(move @ move)

    def lower(self) -> float:
        """A lower bound over the span."""
        outside = self.master.centre - self.basis @ self.small.centre
        return self.small.dual_value + 0.5 * float(outside @ outside)

    def next_point(self, turn: int) -> Array:
        """The small model's minimiser, or the middle between it and the best point, in turn."""
        if turn == 0:
            return self.first
        if turn % 2 and np.isfinite(self.value):
            return 0.5 * (self.anchor + self.small.point)
        return self.small.point

    def learn(self, loss: float, dots: Array, u: Handle) -> None:
        """Add a plane; `dots` are ``u . s_i`` of all terms."""
        slope = np.linalg.solve(self.factor.T, dots[self.chosen])
        cut = Cut(len(self.small), loss, u)
        self.small.add_planes(np.array([loss]), slope[None, :])
        self.cuts.append(cut)
        if self.first_cut is None:
            self.first_cut = cut

    def improve(self, coordinates: Array, value: float) -> bool:
        """Move the best point if this one is better."""
        if value < self.value:
            self.anchor, self.value, self.moved = coordinates, value, True
            return True
        return False

    def trim(self, n_cuts: int) -> None:
        """Forget the coefficients of all but the newest cut and those that carry most weight."""
        if len(self.cuts) > n_cuts:
            newest, rest = self.cuts[-1], self.cuts[:-1]
            rest.sort(key=lambda cut: -self.small.multipliers[cut.place])
            self.cuts = [*rest[: n_cuts - 1], newest]


def search(
    objective: Objective,
    probes: list[Probe],
    terms: list[Handle],
    problems: np.ndarray,
    gaps: Array,
    *,
    n_turns: int,
    n_cuts: int,
    precision: Array,
    constraints: Constraints | None = None,
    best_coefficients: list[Handle] | None = None,
    best_losses: Array | None = None,
) -> list[tuple[float, Handle] | None]:
    """Run the probes of several problems side by side.

    Returns the plane (loss and coefficients) at each new best point, None where it has not moved.

    Parameters
    ----------
    probes : list of Probe, one for each of the m problems
    terms : list of handles with m columns
        Scores of the points of the probes.
    problems : (m,)
    gaps : (m,)
        Absolute gaps; a probe ends when its own gap is a twentieth of that,
    precision : (m,)
        or below this.
    n_turns : int
        Inferences at most.
    n_cuts : int
        How many cuts each probe keeps.
    best_coefficients, best_losses
        The plane at each first term, if the secant at the first point is wanted.
    """
    planes: list[tuple[float, Handle] | None] = [None] * len(probes)
    going, handles = np.arange(len(probes)), terms
    for turn in range(n_turns):
        still = []
        for p in going:
            probe = probes[p]
            probe.small.solve()
            enough = max(0.05 * gaps[p], precision[p])
            if turn < 1 or probe.value - probe.lower() > enough:
                still.append(p)
            probe.trim(n_cuts)
        if not still:
            break
        if len(still) < len(going):
            places = np.searchsorted(going, still)
            handles = [objective.select(handle, places) for handle in handles]
            going = np.array(still)
        points = [probes[p].next_point(turn) for p in going]
        weights = np.stack([probes[p].weights(c) for p, c in zip(going, points)], axis=1)
        scores = objective.combine(weights, handles)
        found = objective.evaluate(scores)
        dots = np.stack([objective.dot(found.coefficients, handle) for handle in handles])
        feasible = _check(constraints, probes, going, points, scores, problems)
        if turn == 0 and best_coefficients is not None and best_losses is not None:
            linear = best_losses + objective.dot(objective.join(best_coefficients), scores)
            for p in going:
                probes[p].first_excess = probes[p].master.C * float(found.value[p] - linear[p])
        for c, p in enumerate(going):
            u = found.coefficients
            u = u if going.size == 1 else objective.select(u, np.array([c]))
            probe, value = probes[p], float(found.value[c])
            probe.learn(float(found.loss[c]), dots[:, c], u)
            total = probe.regulariser(points[c]) + probe.master.C * value
            if feasible[c] and probe.improve(points[c], total):
                planes[p] = (float(found.loss[c]), u)
    for probe in probes:
        probe.small.solve()
    return planes


def _check(
    constraints: Constraints | None,
    probes: list[Probe],
    going: np.ndarray,
    points: list[Array],
    scores: Handle,
    problems: np.ndarray,
) -> np.ndarray:
    """Add violated hard constraints to both masters; which points satisfy all of them."""
    feasible = np.ones(going.size, dtype=bool)
    if constraints is None:
        return feasible
    weights = np.stack([probes[p].point(c) for p, c in zip(going, points)], axis=1)
    for c, violation in enumerate(constraints.violated(weights, scores, problems[going])):
        feasible[c] = violation.names.size == 0
        probe = probes[going[c]]
        new = ~np.isin(violation.names, probe.master.names)
        bounds, rows, names = (field[new] for field in (violation.bounds, violation.rows, violation.names))
        probe.master.add(bounds, rows, names)
        probe.small.add(bounds, rows @ probe.basis, names)
    return feasible
