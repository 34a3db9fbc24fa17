r"""The master problem: the best lower bound that a set of cuts gives.

Cuts are kept in one form, ``offset - h @ w``: a plane of J is ``(b, h = -g)``, a hard constraint
``a @ w >= c`` is ``(c, h = a)``. With the centre :math:`w^0` the master problem is

.. math:: \min_w \tfrac12\|w - w^0\|^2 + C \max_{t \in \text{planes}} (b_t - h_t \cdot w)
          \quad \text{s.t. } c_i - h_i \cdot w \le 0,

and its dual, with :math:`q = \text{offset} - h \cdot w^0` and :math:`w = w^0 + \sum_t x_t h_t`,

.. math:: \max_{x \ge 0} \; q \cdot x - \tfrac12 \Big\|\sum_t x_t h_t\Big\|^2
          \quad \text{s.t. } \sum_{t \in \text{planes}} x_t = C.

The plane ``0 <= J`` (offset 0, h = 0) is always there, which turns the usual ``<= C`` into ``= C``.
Every feasible x gives a lower bound on the true minimum, since each cut is valid there
(Joachims, Finley and Yu 2009, for planes).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge._jit import kernel
from rankhinge.solvers import _active_set
from rankhinge.solvers.certificate import Carrying
from rankhinge.solvers.protocol import Array, Indices, Planes, Violation

__all__ = ["Master"]

_QP_TOLERANCE = 1e-12
_QP_STEPS = 20_000
# A sum of constraints below this part of its terms is 0: whatever satisfies them would be longer than its inverse.
_CONTRADICTION = 1e-9


def _with_room(size: int) -> int:
    """Room for so many cuts and for some more: in vain it is memory, too little of it is one copy after the other."""
    return size + max(size // 4, 8)


class _Cuts(NamedTuple):
    """The cuts, in one value: an interrupt finds the old ones or the new ones, never a mixture.

    The first `size` entries (rows, products) are in use; what lies beyond is room for more, which a search adds one by
    one.
    """

    size: int
    offsets: Array
    linear: Array
    capped: NDArray[np.bool_]
    names: NDArray[np.int64]
    multipliers: Array
    idle: NDArray[np.int64]
    misses: Array
    reaches: Array
    vectors: Array
    gram: Array

    @classmethod
    def empty(cls, room: int, d: int) -> _Cuts:
        """Room for so many cuts, and none."""
        return cls(
            size=0,
            offsets=np.zeros(room),
            linear=np.zeros(room),
            capped=np.zeros(room, dtype=bool),
            names=np.full(room, -1),
            multipliers=np.zeros(room),
            idle=np.zeros(room, dtype=np.int64),
            misses=np.zeros(room),
            reaches=np.zeros(room),
            vectors=np.zeros((room, d)),
            gram=np.zeros((room, room)),
        )

    def widened(self, room: int) -> _Cuts:
        """The same cuts, with room for so many in all."""
        wider, size = _Cuts.empty(room, self.vectors.shape[1]), self.size
        for mine, others in zip(wider[1:-1], self[1:-1], strict=True):
            mine[:size] = others[:size]
        wider.gram[:size, :size] = self.gram[:size, :size]
        return wider._replace(size=size)


@kernel
def _close_gaps(keep, offsets, linear, capped, names, multipliers, idle, misses, reaches, vectors, gram):
    """Move the last cuts that are kept to the places of those that are not; returns how many are left."""
    place, last = 0, keep.size - 1
    while True:
        while place <= last and keep[place]:
            place += 1
        while last >= place and not keep[last]:
            last -= 1
        if place > last:
            return place
        offsets[place], linear[place], capped[place] = offsets[last], linear[last], capped[last]
        names[place], multipliers[place], idle[place] = names[last], multipliers[last], idle[last]
        misses[place], reaches[place] = misses[last], reaches[last]
        for i in range(vectors.shape[1]):
            vectors[place, i] = vectors[last, i]
        for i in range(keep.size):
            gram[place, i] = gram[last, i]
        for i in range(keep.size):
            gram[i, place] = gram[i, last]
        place, last = place + 1, last - 1


class Master:
    """Cuts of one problem and the solution of the master problem.

    Parameters
    ----------
    C : float
    centre : (d,)
        ``w0``.

    Attributes
    ----------
    point : (d,)
        The minimiser w of the master problem.
    dual_value : float
        Its value: a lower bound.
    multipliers : (t,)
        x, one for each cut; the first belongs to the plane ``0 <= J``. A view that `solve` overwrites.
    unbounded : bool
        The dual is unbounded: the hard constraints contradict each other.
    """

    def __init__(self, C: float, centre: Array) -> None:
        self.C, self.centre = float(C), centre
        self.point, self.dual_value = centre.copy(), 0.0
        self.unbounded = False
        cuts = _Cuts.empty(1, centre.size)
        cuts.capped[0], cuts.multipliers[0] = True, self.C
        self._cuts = cuts._replace(size=1)

    def __len__(self) -> int:
        return self._cuts.size

    @property
    def multipliers(self) -> Array:
        """``x``, one for each cut, (t,)."""
        return self._cuts.multipliers[: self._cuts.size]

    @property
    def names(self) -> np.ndarray:
        """Names of the hard constraints, -1 for planes, (t,)."""
        return self._cuts.names[: self._cuts.size]

    @property
    def vectors(self) -> Array:
        """``h`` of each cut, (t, d)."""
        return self._cuts.vectors[: len(self)]

    @property
    def gram(self) -> Array:
        """Products of the vectors, (t, t)."""
        return self._cuts.gram[: len(self), : len(self)]

    def add(
        self,
        offsets: Array,
        vectors: Array,
        names: Indices | None = None,
        misses: Array | float = 0.0,
        reaches: Array | float = 0.0,
    ) -> None:
        """Add cuts ``offset - h @ w``: planes, or, with their `names`, hard constraints."""
        old, size = len(self), len(self) + offsets.size
        if size == old:
            return
        cuts = self._cuts
        if size > cuts.offsets.size:
            cuts = cuts.widened(_with_room(size))
        new = slice(old, size)
        cuts.vectors[new] = vectors
        with np.errstate(over="ignore", invalid="ignore"):
            # As they are stored, not as they were given: BLAS takes no strides.
            products = cuts.vectors[new] @ cuts.vectors[:size].T
        if not np.isfinite(products).all():
            raise ValueError("the features are so large that products of cutting planes overflow: scale them")
        cuts.gram[new, :size], cuts.gram[:old, new] = products, products[:, :old].T
        cuts.offsets[new], cuts.linear[new] = offsets, offsets - cuts.vectors[new] @ self.centre
        cuts.capped[new], cuts.names[new] = names is None, -1 if names is None else names
        cuts.multipliers[new], cuts.idle[new] = 0.0, 0
        cuts.misses[new], cuts.reaches[new] = misses, reaches
        self._cuts = cuts._replace(size=size)

    def constrain(self, violated: Violation) -> Violation:
        """Add the hard constraints that are new, and return these."""
        new = ~np.isin(violated.names, self.names)
        fresh = Violation(violated.names[new], violated.rows[new], violated.bounds[new])
        self.add(fresh.bounds, fresh.rows, fresh.names)
        return fresh

    def add_planes(
        self, offsets: Array, slopes: Array, misses: Array | float = 0.0, reaches: Array | float = 0.0
    ) -> None:
        """Add planes ``J(w) >= offset + slope @ w``, slopes of shape (r, d), with what `witness` says of them."""
        self.add(offsets, -slopes, None, misses, reaches)

    def take(self, planes: Planes) -> None:
        """Add planes of another fit."""
        misses, reaches = (0.0 if known is None else known for known in (planes.misses, planes.reaches))
        self.add_planes(planes.offsets, planes.slopes, misses, reaches)

    def solve(self) -> None:
        """Solve the master problem, starting from the last multipliers."""
        cuts, size = self._cuts, len(self)
        x, linear = self.multipliers, cuts.linear[:size]
        status = _active_set.maximise(
            np.ascontiguousarray(self.gram), linear, cuts.capped[:size], self.C, x, _QP_TOLERANCE, _QP_STEPS
        )[3]
        self.unbounded = self.unbounded or status == _active_set.UNBOUNDED or self._contradicts()
        # Less than C is valid, as the plane 0 <= J takes up the rest; more is not, and steps between nearly dependent
        # planes may add up to it.
        total = float(x[cuts.capped[:size]].sum())
        if total > self.C:
            x[cuts.capped[:size]] *= self.C / total
        used = np.flatnonzero(x)
        # From the vectors, not from the Gram matrix: rounding would be squared there. Where most of them are used, all
        # of them are read sooner than these are copied.
        move = x @ self.vectors if 2 * used.size > size else x[used] @ self.vectors[used]
        self.point = self.centre + move
        self.dual_value = float(linear @ x - 0.5 * (move @ move))
        cuts.idle[:size] += 1
        cuts.idle[used] = 0

    def weight_of_constraints(self) -> float:
        """``Σ z (1 + |c|)`` over the hard constraints, with their multipliers z."""
        cuts, hard = self._cuts, ~self._cuts.capped[: len(self)]
        return float(self.multipliers[hard] @ (1.0 + np.abs(cuts.offsets[: len(self)][hard])))

    def _contradicts(self) -> bool:
        """Whether the multipliers show that the hard constraints contradict each other.

        ``Σ z h = 0`` and ``Σ z c > 0`` cannot be for constraints ``h @ w >= c`` with a solution (Farkas). Where the sum
        is 0 but for rounding, the programme may seem bounded, by multipliers of the order of 1e16.
        """
        cuts, size = self._cuts, len(self)
        hard = np.flatnonzero(~cuts.capped[:size] & (cuts.multipliers[:size] > 0.0))
        if hard.size == 0:
            return False
        z = cuts.multipliers[hard] / cuts.multipliers[hard].max()
        left = np.linalg.norm(z @ cuts.vectors[hard])
        whole = z @ np.linalg.norm(cuts.vectors[hard], axis=1)
        return bool(left <= _CONTRADICTION * whole and z @ cuts.offsets[hard] > 0.0)

    def prune(self, patience: int) -> None:
        """Drop cuts whose multiplier has been 0 for more than `patience` solutions."""
        keep = self._cuts.idle[: len(self)] <= patience
        keep[0] = True
        if not keep.all():
            # If an interrupt comes in between, some cuts are there twice, which does no harm.
            self._cuts = self._cuts._replace(size=_close_gaps(keep, *self._cuts[1:]))

    def planes(self, carrying: bool = False) -> Planes:
        """The planes of J, for another fit: all of them, or those that carry the bound."""
        cuts = self._cuts
        chosen = np.flatnonzero(cuts.capped[: cuts.size] & ((cuts.multipliers[: cuts.size] > 0.0) | (not carrying)))
        chosen = chosen[chosen > 0]
        return Planes(cuts.offsets[chosen], -cuts.vectors[chosen], cuts.misses[chosen], cuts.reaches[chosen])

    def carrying(self, w: Array) -> Carrying:
        """The planes that carry the bound, as they are seen from w, (d,)."""
        return self.planes(carrying=True).seen_from(w)

    def restricted(self, basis: Array, room: int = 0) -> Master:
        """The master problem over ``w = basis @ c``, for an orthonormal basis (d, k), with room for more cuts.

        Its values leave out the constant ``0.5 * |w0 - basis @ basis.T @ w0|**2``.
        """
        cuts, size = self._cuts, len(self)
        small = Master(self.C, basis.T @ self.centre)
        mine = _Cuts.empty(size + room, basis.shape[1])
        mine.vectors[:size] = self.vectors @ basis
        mine.gram[:size, :size] = mine.vectors[:size] @ mine.vectors[:size].T
        mine.linear[:size] = cuts.offsets[:size] - mine.vectors[:size] @ small.centre
        for name in ("offsets", "capped", "names", "multipliers"):
            getattr(mine, name)[:size] = getattr(cuts, name)[:size]
        small._cuts = mine._replace(size=size)
        return small
