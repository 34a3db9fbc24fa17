r"""Minimise over a span whose scores are known: no pass over the features.

For an orthonormal basis :math:`z_1, \dots, z_T` with known scores, :math:`w = \sum_i c_i z_i` has the scores
:math:`\sum_i c_i s_i`, and a plane with coefficients u has the slope :math:`(u \cdot s_i)_i` in c. So :math:`P` can be
minimised over the span by cutting planes that cost an inference each: the idea of the line search in OCAS (Franc and
Sonnenburg 2009), in many dimensions.

The search starts from the known planes, restricted to the span. The span contains the master problem's minimiser, so
the small model begins where the whole model ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from rankhinge.solvers.master import Master
from rankhinge.solvers.protocol import Array, Evaluation, Handle, SpanObjective

__all__ = ["Cut", "Probe", "extension", "narrowing", "search"]

# A direction counts as dependent below this part of its own length: what is left of it is the difference of two long
# vectors. The products of what is left are rounded at 1e-16, so its square must be far above.
_DEPENDENT = 1e-5
# Products off by this much are mended to second order: what is left of its square is rounding.
_NEARLY = np.finfo(np.float64).eps ** 0.5
# Two or three rounds suffice. More than this many mean that the basis itself is at fault.
_MOST_ROUNDS = 10


class Cut(NamedTuple):
    """A plane found in the span: its place in the small master, offset and coefficients; where, and J there."""

    place: int
    loss: float
    coefficients: Handle
    coordinates: Array
    value: float


def extension(basis: Array, directions: Array) -> Array:
    """What directions (d, r) add to an orthonormal basis (d, T): vectors (d, r), orthonormal to it and to each other.

    A direction that depends on the others becomes a column of zeros.
    """
    lengths = np.linalg.norm(directions, axis=0)
    new: Array = directions / np.where(lengths > 0, lengths, 1.0)
    for _ in range(_MOST_ROUNDS):
        along = basis.T @ new
        new -= basis @ along
        gram = new.T @ new
        # Checked, not hoped: twice is mostly enough (Kahan and Parlett), but where directions nearly depend on each
        # other and on the basis, their products say little about what is left of them.
        is_set = np.diag(gram) > 0.5
        off = np.abs(gram - np.diag(is_set.astype(np.float64))).max(initial=np.abs(along).max(initial=0.0))
        if not off > _NEARLY:
            return new @ _nearly_orthonormalising(gram)
        new = new @ _orthonormalising(gram)
    raise RuntimeError(f"the basis of a span is not orthonormal after {_MOST_ROUNDS} rounds: please report this")


def _orthonormalising(gram: Array) -> Array:
    """A triangular A that makes vectors of length 1 or less, with these products, orthonormal: ``Aᵀ G A = I``.

    Vectors that depend on those before them become 0.
    """
    change = np.zeros_like(gram)
    for i, products in enumerate(gram):
        column = -change @ (change.T @ products)
        column[i] = 1.0
        left = column @ gram @ column
        if left > _DEPENDENT**2:
            change[:, i] = column / np.sqrt(left)
    return change


def _nearly_orthonormalising(gram: Array) -> Array:
    """``G^(-1/2)`` to second order, for vectors that are 0 or, up to rounding, orthonormal."""
    change: Array = 1.5 * np.eye(len(gram)) - 0.5 * gram
    return change


def narrowing(anchor: Array, T: int) -> tuple[Array, Array]:
    """How to keep T of the coordinates of `anchor`: the newest, and its direction among the others.

    Returns that direction (t,), of length 1 or 0, and the coordinates (T,) of the anchor thereafter.
    """
    oldest = anchor[: anchor.size - T + 1]
    length = np.linalg.norm(oldest)
    direction = oldest / length if length > 0 else np.zeros_like(oldest)
    return direction, np.concatenate([[length], anchor[oldest.size :]])


class Probe:
    """The search of one problem: its span, its small master problem and what was found.

    Parameters
    ----------
    master : Master
    basis : (d, T)
        Orthonormal, or with columns of zeros.
    anchor : (T,)
        Coordinates of the best point so far.
    value : float
        Primal value there; inf if it is not feasible.
    n_turns : int
        Planes that the search adds, at most.
    """

    def __init__(self, master: Master, basis: Array, anchor: Array, value: float, n_turns: int) -> None:
        self.master, self.basis = master, basis
        self.small = master.restricted(basis, n_turns)
        self.anchor, self.value, self.moved = anchor, value, False
        self.loss = np.inf
        # Not as a difference of squares: of a far centre's, nothing but rounding might be left.
        beside = master.centre - basis @ self.small.centre
        self.outside = float(beside @ beside)
        self.cuts: list[Cut] = []
        self.first_cut: Cut | None = None

    def point(self, coordinates: Array) -> Array:
        """``w``, (d,)."""
        return self.basis @ coordinates

    def regulariser(self, coordinates: Array) -> float:
        """``0.5 * |w - w0|**2``."""
        move = coordinates - self.small.centre
        return 0.5 * (float(move @ move) + self.outside)

    def lower(self) -> float:
        """A lower bound over the span."""
        return self.small.dual_value + 0.5 * self.outside

    def next_point(self, turn: int) -> Array:
        """The small model's minimiser, or the middle between it and the best point, in turn."""
        if turn % 2 and np.isfinite(self.value):
            return 0.5 * (self.anchor + self.small.point)
        return self.small.point

    def learn(self, loss: float, slope: Array, u: Handle, coordinates: Array, value: float) -> None:
        """Add a plane with the slope ``u . s_i`` in the span, found where J is `value`."""
        cut = Cut(len(self.small), loss, u, coordinates, value)
        self.small.add_planes(np.array([loss]), slope[None, :])
        self.cuts.append(cut)
        if self.first_cut is None:
            self.first_cut = cut

    def improve(self, coordinates: Array, loss: float) -> None:
        """Move the best point if this one, where J is `loss`, is better."""
        value = self.regulariser(coordinates) + self.master.C * loss
        if value < self.value:
            self.anchor, self.value, self.loss, self.moved = coordinates, value, loss, True

    def trim(self, n_cuts: int) -> None:
        """Forget the coefficients of all but the newest cut and those that carry most weight."""
        if len(self.cuts) > n_cuts:
            newest, rest = self.cuts[-1], self.cuts[:-1]
            rest.sort(key=lambda cut: -self.small.multipliers[cut.place])
            self.cuts = [*rest[: n_cuts - 1], newest]


Admit: TypeAlias = Callable[[list[Probe], list[Array], Handle, np.ndarray], np.ndarray]


def search(
    objective: SpanObjective,
    evaluate: Callable[[Handle], Evaluation],
    probes: list[Probe],
    span: Handle,
    problems: np.ndarray,
    enough: Array,
    *,
    n_turns: int,
    n_cuts: int,
    admit: Admit,
) -> None:
    """Run the probes of several problems side by side.

    Parameters
    ----------
    objective : SpanObjective
    evaluate : callable
        ``evaluate(scores)``: the convex function and its coefficients, for each column of a handle.
    probes : list of Probe, one for each of the m problems
    span : handle
        Scores of the basis vectors.
    problems : (m,)
    enough : (m,)
        A probe ends when its own gap is below this.
    n_turns : int
        Inferences at most.
    n_cuts : int
        How many cuts each probe keeps.
    admit : callable
        ``admit(probes, points, scores, problems)``: which points, by their coordinates in the spans of these probes,
        may be the best, (m,) bool.
    """
    going = np.arange(len(probes))
    for turn in range(n_turns):
        still = []
        for p in going:
            probe = probes[p]
            probe.small.solve()
            if turn < 1 or probe.value - probe.lower() > enough[p]:
                still.append(p)
            probe.trim(n_cuts)
        if not still:
            break
        if len(still) < len(going):
            span = objective.select(span, np.searchsorted(going, still))
            going = np.array(still)
        points = [probes[p].next_point(turn) for p in going]
        scores = objective.mix(span, np.stack(points))
        found = evaluate(scores)
        slopes = objective.slopes(found.coefficients, span)
        admitted = admit([probes[p] for p in going], points, scores, problems[going])
        for c, p in enumerate(going):
            u = found.coefficients
            u = u if going.size == 1 else objective.select(u, np.array([c]))
            probe = probes[p]
            probe.learn(float(found.loss[c]), slopes[c], u, points[c], float(found.value[c]))
            if admitted[c]:
                probe.improve(points[c], float(found.value[c]))
    for probe in probes:
        probe.small.solve()
