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

from rankhinge.solvers import _active_set
from rankhinge.solvers.protocol import Array, Planes

__all__ = ["Master"]

_QP_TOLERANCE = 1e-12
_QP_STEPS = 20_000


class _Cuts(NamedTuple):
    """All that belongs to the cuts, in one value: an interrupt finds the old ones or the new ones, never a mixture.

    `vectors` and `gram` have room for more.
    """

    offsets: Array
    linear: Array
    capped: NDArray[np.bool_]
    names: NDArray[np.int64]
    multipliers: Array
    idle: NDArray[np.int64]
    vectors: Array
    gram: Array


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
        self._cuts = _Cuts(
            offsets=np.zeros(1),
            linear=np.zeros(1),
            capped=np.ones(1, dtype=bool),
            names=np.full(1, -1),
            multipliers=np.array([self.C]),
            idle=np.zeros(1, dtype=np.int64),
            vectors=np.zeros((1, centre.size)),
            gram=np.zeros((1, 1)),
        )

    def __len__(self) -> int:
        return self._cuts.offsets.size

    @property
    def multipliers(self) -> Array:
        """X, one for each cut, (t,)."""
        return self._cuts.multipliers

    @property
    def names(self) -> np.ndarray:
        """Names of the hard constraints, -1 for planes, (t,)."""
        return self._cuts.names

    @property
    def vectors(self) -> Array:
        """H of each cut, (t, d)."""
        return self._cuts.vectors[: len(self)]

    @property
    def gram(self) -> Array:
        """Products of the vectors, (t, t)."""
        return self._cuts.gram[: len(self), : len(self)]

    def _with_room(self, size: int) -> tuple[Array, Array]:
        """Vectors and products, in arrays with room for so many; grown by doubling: a search adds cuts one by one."""
        old, cuts = len(self), self._cuts
        if size <= cuts.vectors.shape[0]:
            return cuts.vectors, cuts.gram
        vectors, gram = np.zeros((2 * size, self.centre.size)), np.zeros((2 * size, 2 * size))
        vectors[:old], gram[:old, :old] = self.vectors, self.gram
        return vectors, gram

    def add(self, offsets: Array, vectors: Array, names: Array | None = None) -> None:
        """Add cuts ``offset - h @ w``: planes, or, with their `names`, hard constraints."""
        n_new, old, size = offsets.size, len(self), len(self) + offsets.size
        if n_new == 0:
            return
        all_vectors, gram = self._with_room(size)
        all_vectors[old:size] = vectors
        with np.errstate(over="ignore", invalid="ignore"):
            products = vectors @ all_vectors[:size].T
        if not np.isfinite(products).all():
            raise ValueError("the features are so large that products of cutting planes overflow: scale them")
        gram[old:size, :size] = products
        gram[:old, old:size] = products[:, :old].T
        cuts = self._cuts
        self._cuts = _Cuts(
            offsets=np.concatenate([cuts.offsets, offsets]),
            linear=np.concatenate([cuts.linear, offsets - vectors @ self.centre]),
            capped=np.concatenate([cuts.capped, np.full(n_new, names is None)]),
            names=np.concatenate([cuts.names, np.full(n_new, -1) if names is None else names]),
            multipliers=np.concatenate([cuts.multipliers, np.zeros(n_new)]),
            idle=np.concatenate([cuts.idle, np.zeros(n_new, dtype=np.int64)]),
            vectors=all_vectors,
            gram=gram,
        )

    def add_planes(self, offsets: Array, slopes: Array) -> None:
        """Add planes ``J(w) >= offset + slope @ w``, slopes of shape (r, d)."""
        self.add(offsets, -slopes)

    def solve(self) -> None:
        """Solve the master problem, starting from the last multipliers."""
        cuts = self._cuts
        x = cuts.multipliers
        status = _active_set.maximise(
            np.ascontiguousarray(self.gram), cuts.linear, cuts.capped, self.C, x, _QP_TOLERANCE, _QP_STEPS
        )[3]
        self.unbounded = self.unbounded or status == _active_set.UNBOUNDED
        used = np.flatnonzero(x)
        # From the vectors, not from the Gram matrix: rounding would be squared there.
        move = x[used] @ self.vectors[used]
        self.point = self.centre + move
        # The sum differs from C by rounding only; the plane 0 <= J, of offset 0, takes up the rest.
        self.dual_value = float(cuts.linear @ x - 0.5 * (move @ move))
        cuts.idle[:] += 1
        cuts.idle[used] = 0

    def prune(self, patience: int) -> None:
        """Drop cuts whose multiplier has been 0 for more than `patience` solutions."""
        keep = self._cuts.idle <= patience
        keep[0] = True
        if keep.all():
            return
        arrays = {name: values[keep] for name, values in self._cuts._asdict().items() if values.ndim == 1}
        self._cuts = _Cuts(**arrays, vectors=self.vectors[keep], gram=self.gram[np.ix_(keep, keep)])

    def planes(self, carrying: bool = False) -> Planes:
        """The planes of J, for another fit: all of them, or those that carry the bound."""
        cuts = self._cuts
        chosen = np.flatnonzero(cuts.capped & ((cuts.multipliers > 0.0) | (not carrying)))
        chosen = chosen[chosen > 0]
        return Planes(cuts.offsets[chosen], -cuts.vectors[chosen])

    def restricted(self, basis: Array) -> Master:
        """The master problem over ``w = basis @ c``, for an orthonormal basis (d, k).

        Its values leave out the constant ``0.5 * |w0 - basis @ basis.T @ w0|**2``.
        """
        small, cuts = Master(self.C, basis.T @ self.centre), self._cuts
        small.add(cuts.offsets[1:], self.vectors[1:] @ basis)
        small._cuts = small._cuts._replace(
            capped=cuts.capped.copy(), names=cuts.names.copy(), multipliers=cuts.multipliers.copy()
        )
        return small
