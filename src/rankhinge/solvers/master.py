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

import numpy as np

from rankhinge.solvers import _active_set
from rankhinge.solvers.protocol import Array, Planes

__all__ = ["Master"]

_QP_TOLERANCE = 1e-12
_QP_STEPS = 20_000


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
        x, one for each cut; the first belongs to the plane ``0 <= J``.
    unbounded : bool
        The dual is unbounded: the hard constraints contradict each other.
    """

    def __init__(self, C: float, centre: Array) -> None:
        self.C, self.centre = float(C), centre
        self.offsets, self.linear = np.zeros(1), np.zeros(1)
        self.capped, self.idle = np.ones(1, dtype=bool), np.zeros(1, dtype=np.int64)
        self.multipliers = np.array([self.C])
        self.names = np.full(1, -1)
        self.point, self.dual_value = centre.copy(), 0.0
        self.unbounded, self.residual = False, 0.0
        # Grown by doubling: a search adds cuts one by one.
        self._vectors, self._gram = np.zeros((1, centre.size)), np.zeros((1, 1))

    def __len__(self) -> int:
        return self.offsets.size

    @property
    def vectors(self) -> Array:
        """H of each cut, (t, d)."""
        return self._vectors[: self.offsets.size]

    @property
    def gram(self) -> Array:
        """Products of the vectors, (t, t)."""
        return self._gram[: self.offsets.size, : self.offsets.size]

    def _reserve(self, size: int) -> None:
        old = len(self)
        if size <= self._vectors.shape[0]:
            return
        vectors, gram = np.zeros((2 * size, self.centre.size)), np.zeros((2 * size, 2 * size))
        vectors[:old], gram[:old, :old] = self.vectors, self.gram
        self._vectors, self._gram = vectors, gram

    def add(self, offsets: Array, vectors: Array, names: Array | None = None) -> None:
        """Add cuts ``offset - h @ w``: planes, or, with their `names`, hard constraints."""
        if offsets.size == 0:
            return
        old, size = len(self), len(self) + offsets.size
        self._reserve(size)
        self._vectors[old:size] = vectors
        products = vectors @ self._vectors[:size].T
        self._gram[old:size, :size] = products
        self._gram[:old, old:size] = products[:, :old].T
        n_new = offsets.size
        self.linear = np.concatenate([self.linear, offsets - vectors @ self.centre])
        self.offsets = np.concatenate([self.offsets, offsets])
        self.multipliers = np.concatenate([self.multipliers, np.zeros(n_new)])
        self.capped = np.concatenate([self.capped, np.full(n_new, names is None)])
        self.names = np.concatenate([self.names, np.full(n_new, -1) if names is None else names])
        self.idle = np.concatenate([self.idle, np.zeros(n_new, dtype=np.int64)])

    def add_planes(self, offsets: Array, slopes: Array) -> None:
        """Add planes ``J(w) >= offset + slope @ w``, slopes of shape (r, d)."""
        self.add(offsets, -slopes)

    def solve(self) -> None:
        """Solve the master problem, starting from the last multipliers."""
        x = self.multipliers
        _, self.residual, _, status = _active_set.maximise(
            np.ascontiguousarray(self.gram), self.linear, self.capped, self.C, x, _QP_TOLERANCE, _QP_STEPS
        )
        self.unbounded = self.unbounded or status == _active_set.UNBOUNDED
        used = np.flatnonzero(x)
        # From the vectors, not from the Gram matrix: rounding would be squared there.
        move = x[used] @ self.vectors[used]
        self.point = self.centre + move
        # The sum differs from C by rounding only; the plane 0 <= J, of offset 0, takes up the rest.
        self.dual_value = float(self.linear @ x - 0.5 * (move @ move))
        self.idle += 1
        self.idle[used] = 0

    def prune(self, patience: int) -> None:
        """Drop cuts whose multiplier has been 0 for more than `patience` solutions."""
        keep = self.idle <= patience
        keep[0] = True
        if keep.all():
            return
        self._gram, self._vectors = self.gram[np.ix_(keep, keep)], self.vectors[keep]
        for name in ("offsets", "linear", "capped", "idle", "multipliers", "names"):
            setattr(self, name, getattr(self, name)[keep])

    def planes(self) -> Planes:
        """The planes of J, for another fit."""
        chosen = np.flatnonzero(self.capped)[1:]
        return Planes(self.offsets[chosen], -self.vectors[chosen])

    def restricted(self, basis: Array) -> Master:
        """The master problem over ``w = basis @ c``, for an orthonormal basis (d, k).

        Its values leave out the constant ``0.5 * |w0 - basis @ basis.T @ w0|**2``.
        """
        small = Master(self.C, basis.T @ self.centre)
        small.add(self.offsets[1:], self.vectors[1:] @ basis)
        small.capped, small.names = self.capped.copy(), self.names.copy()
        small.multipliers = self.multipliers.copy()
        return small
