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
from rankhinge.solvers.protocol import Array, Planes

__all__ = ["Master"]

_QP_TOLERANCE = 1e-12
_QP_STEPS = 20_000


class _Cuts(NamedTuple):
    """The cuts, in one value: an interrupt finds the old ones or the new ones, never a mixture.

    The first `size` entries (rows, products) are in use; what lies beyond is room for more, which a search adds one by
    one.
    """

    size: int
    offsets: Array
    linear: Array
    capped: NDArray[np.bool_]
    payloads: Array
    multipliers: Array
    idle: NDArray[np.int64]
    misses: Array
    reaches: Array
    vectors: Array
    gram: Array

    @classmethod
    def empty(cls, room: int, d: int, width: int = 0) -> _Cuts:
        """Empty room for this many cuts, with payloads of this width."""
        return cls(
            size=0,
            offsets=np.zeros(room),
            linear=np.zeros(room),
            capped=np.zeros(room, dtype=bool),
            payloads=np.zeros((room, width)),
            multipliers=np.zeros(room),
            idle=np.zeros(room, dtype=np.int64),
            misses=np.zeros(room),
            reaches=np.zeros(room),
            vectors=np.zeros((room, d)),
            gram=np.zeros((room, room)),
        )

    def widened(self, room: int) -> _Cuts:
        """The same cuts, with room for this many in all."""
        wider, size = _Cuts.empty(room, self.vectors.shape[1], self.payloads.shape[1]), self.size
        for mine, others in zip(wider[1:-1], self[1:-1], strict=True):
            mine[:size] = others[:size]
        wider.gram[:size, :size] = self.gram[:size, :size]
        return wider._replace(size=size)


@kernel
def _close_gaps(keep, offsets, linear, capped, payloads, multipliers, idle, misses, reaches, vectors, gram):
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
        multipliers[place], idle[place] = multipliers[last], idle[last]
        misses[place], reaches[place] = misses[last], reaches[last]
        for i in range(payloads.shape[1]):
            payloads[place, i] = payloads[last, i]
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
    width : int
        The number of extra values that each cut carries for its owner.

    Attributes
    ----------
    point : (d,)
        The minimiser w of the master problem.
    dual_value : float
        Its value: a lower bound.
    multipliers : (t,)
        x, one for each cut; the first belongs to the plane ``0 <= J``. A view that `solve` overwrites.
    """

    def __init__(self, C: float, centre: Array, width: int = 0) -> None:
        self.C, self.centre = float(C), centre
        self.point, self.dual_value = centre.copy(), 0.0
        cuts = _Cuts.empty(1, centre.size, width)
        cuts.capped[0], cuts.multipliers[0] = True, self.C
        self._cuts = cuts._replace(size=1)

    def __len__(self) -> int:
        return self._cuts.size

    @property
    def multipliers(self) -> Array:
        """``x``, one for each cut, (t,)."""
        return self._cuts.multipliers[: self._cuts.size]

    def add_planes(
        self,
        offsets: Array,
        slopes: Array,
        misses: Array | float = 0.0,
        reaches: Array | float = 0.0,
        payloads: Array | float = 0.0,
        *,
        hard: bool = False,
    ) -> None:
        """Add planes ``J(w) >= offset + slope @ w``, slopes of shape (r, d), with what `witness` says of them.

        If they are `hard`, they are constraints, ``offset + slope @ w <= 0``.
        """
        cuts, old = self._cuts, self._cuts.size
        size = old + offsets.size
        if size == old:
            return
        if size > cuts.offsets.size:
            # Too much room wastes memory; too little means one copy after another.
            cuts = cuts.widened(size + max(size // 4, 8))
        new = slice(old, size)
        np.negative(slopes, out=cuts.vectors[new])
        with np.errstate(over="ignore", invalid="ignore"):
            # As they are stored, not as they were given: BLAS takes no strides.
            products = cuts.vectors[new] @ cuts.vectors[:size].T
        if not np.isfinite(products).all():
            raise ValueError("the features are so large that products of cutting planes overflow: scale them")
        cuts.gram[new, :size], cuts.gram[:old, new] = products, products[:, :old].T
        cuts.offsets[new], cuts.linear[new] = offsets, offsets - cuts.vectors[new] @ self.centre
        cuts.capped[new], cuts.payloads[new] = not hard, payloads
        cuts.multipliers[new], cuts.idle[new] = 0.0, 0
        cuts.misses[new], cuts.reaches[new] = misses, reaches
        self._cuts = cuts._replace(size=size)

    def take(self, planes: Planes) -> None:
        """Add planes of another fit."""
        misses, reaches = (0.0 if known is None else known for known in (planes.misses, planes.reaches))
        payloads = 0.0 if planes.payloads is None else planes.payloads
        self.add_planes(planes.offsets, planes.slopes, misses, reaches, payloads)

    def solve(self) -> int:
        """Solve the master problem, starting from the last multipliers; the status of `_active_set.maximise`."""
        cuts, size = self._cuts, self._cuts.size
        x, linear, capped, vectors = (
            column[:size] for column in (cuts.multipliers, cuts.linear, cuts.capped, cuts.vectors)
        )
        gram = np.ascontiguousarray(cuts.gram[:size, :size])
        status = _active_set.maximise(gram, linear, capped, self.C, x, _QP_TOLERANCE, _QP_STEPS)[3]
        # Less than C is valid, as the plane 0 <= J takes up the rest; more is not, and steps between nearly dependent
        # planes may add up to it.
        total = float(x[capped].sum())
        if total > self.C:
            x[capped] *= self.C / total
        used = np.flatnonzero(x)
        # From the vectors, not from the Gram matrix: rounding would be squared there. Where most of them are used, all
        # of them are read sooner than these are copied.
        move = x @ vectors if 2 * used.size > size else x[used] @ vectors[used]
        self.point = self.centre + move
        self.dual_value = float(linear @ x - 0.5 * (move @ move))
        cuts.idle[:size] += 1
        cuts.idle[used] = 0
        return int(status)

    def prune(self, patience: int) -> None:
        """Drop cuts whose multiplier has been 0 for more than `patience` solutions."""
        keep = self._cuts.idle[: self._cuts.size] <= patience
        keep[0] = True
        if not keep.all():
            # If an interrupt comes in between, some cuts are there twice, which does no harm.
            self._cuts = self._cuts._replace(size=_close_gaps(keep, *self._cuts[1:]))

    def planes(self, carrying: bool = False) -> Planes:
        """The planes of J, for another fit: all of them, or those that carry the bound."""
        cuts = self._cuts
        chosen = np.flatnonzero(cuts.capped[: cuts.size] & ((cuts.multipliers[: cuts.size] > 0.0) | (not carrying)))
        chosen = chosen[chosen > 0]
        payloads = cuts.payloads[chosen] if cuts.payloads.shape[1] else None
        return Planes(cuts.offsets[chosen], -cuts.vectors[chosen], cuts.misses[chosen], cuts.reaches[chosen], payloads)

    def carrying(self, w: Array) -> Carrying:
        """The planes that carry the bound, as they are seen from w, (d,)."""
        cuts = self._cuts
        used = 1 + np.flatnonzero(cuts.capped[1 : cuts.size] & (cuts.multipliers[1 : cuts.size] > 0.0))
        return Carrying(cuts.offsets[used], -(cuts.vectors[used] @ w), cuts.misses[used], cuts.reaches[used])

    def restricted(self, basis: Array, room: int = 0) -> Master:
        """The master problem over ``w = basis @ c``, for an orthonormal basis (d, k), with room for more cuts.

        Its values leave out the constant ``0.5 * |w0 - basis @ basis.T @ w0|**2``.
        """
        cuts, size = self._cuts, self._cuts.size
        small = Master(self.C, basis.T @ self.centre)
        mine = _Cuts.empty(size + room, basis.shape[1])
        mine.vectors[:size] = cuts.vectors[:size] @ basis
        mine.gram[:size, :size] = mine.vectors[:size] @ mine.vectors[:size].T
        mine.linear[:size] = cuts.offsets[:size] - mine.vectors[:size] @ small.centre
        for name in ("offsets", "capped", "multipliers"):
            getattr(mine, name)[:size] = getattr(cuts, name)[:size]
        small._cuts = mine._replace(size=size)
        return small
