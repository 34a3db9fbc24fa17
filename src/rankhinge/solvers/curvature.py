r"""Where to look next: the planes' model, bent as the objective is bent.

The minimiser of the planes' model lies too far out: between its planes J is curved, and in directions
that no plane has explored the model does not know it. For scores that are linear in w,
:math:`J(w + p) \approx J(w) + g \cdot p + \tfrac12 \sum_i d_i (x_i \cdot p)^2`, where the weights
:math:`d_i` are large for the samples whose subgradient coefficient changes. So a few rows B of the
features, drawn where two subgradients differ, tell the shape of the curvature, and one secant its size
:math:`\gamma`. The point proposed minimises

.. math:: \tfrac12\|w - w^0\|^2 + C \max_t (b_t - h_t \cdot w)
          + \tfrac12 (w - \hat w)^\top S (w - \hat w), \qquad
          S = \gamma\,(B^\top B + \rho \tfrac{\operatorname{tr} B B^\top}{d} I),

around the best point :math:`\hat w`; the multiple of I stands for the rows that were not drawn. With
:math:`M = I + S` and the multipliers x, :math:`w = \hat w + M^{-1}(w^0 - \hat w + \sum_t x_t h_t)`, and x
solves the usual small programme with the Gram matrix :math:`h_s^\top M^{-1} h_t`.

This only proposes points: bounds and certificates are those of the plain master problem. It is the
variable-metric variant of the proximal bundle method (Lemaréchal and Sagastizábal 1997), with a metric
from subsampled rows.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from rankhinge.solvers import _active_set
from rankhinge.solvers.master import Master
from rankhinge.solvers.protocol import Array

__all__ = ["Curvature"]

_SHRINKAGE = 0.5
# Multiples of 1 / (mean curvature) tried when no secant is known yet.
_FIRST_SIZES = (1.0, 10.0, 100.0)
# Only planes that were of use lately shape a proposal.
_RECENT = 3


class Curvature:
    """Sampled rows of one problem and the size of the curvature.

    Parameters
    ----------
    n_rows : int
        How many rows are kept; the oldest leave first.
    n_features : int
    """

    def __init__(self, n_rows: int, n_features: int) -> None:
        self.n_rows = n_rows
        self._kept = np.zeros((0, n_features))
        self._centred, self._gram = self._kept, np.zeros((0, 0))
        self.size: float | None = None

    @property
    def known(self) -> bool:
        """Whether there are rows to go by."""
        return self._gram.shape[0] > 1 and float(np.trace(self._gram)) > 0.0

    def insert(self, rows: Array) -> None:
        """Take in rows of shape (r, d)."""
        if rows.shape[0] == 0:
            return
        self._kept = np.concatenate([rows, self._kept])[: self.n_rows]
        # The coefficients of a ranking sum to 0: a common offset of the rows does not count.
        self._centred = self._kept - self._kept.mean(axis=0)
        self._gram = self._centred @ self._centred.T

    def observe(self, step: Array, excess: float) -> None:
        """Learn the size: C·J exceeds its plane by `excess` at a distance of `step`."""
        if not self.known or excess <= 0.0:
            return
        seen = self._centred @ step
        shape = float(seen @ seen) + self._isotropic() * float(step @ step)
        if shape > 0.0:
            secant = 2.0 * excess / shape
            # Halfway on a logarithmic scale: one secant over a kink can be off by orders.
            self.size = secant if self.size is None else float(np.sqrt(self.size * secant))

    def _isotropic(self) -> float:
        return _SHRINKAGE * float(np.trace(self._gram)) / max(self._centred.shape[1], 1)

    def propose(self, master: Master, best: Array) -> list[Array]:
        """Points to look at: one, or a few of different size as long as the size is unknown."""
        if not self.known:
            return []
        if self.size is not None:
            return [self._minimise(master, best, self.size)]
        mean = float(np.trace(self._gram)) / self._gram.shape[0]
        return [self._minimise(master, best, size / mean) for size in _FIRST_SIZES]

    def _minimise(self, master: Master, best: Array, size: float) -> Array:
        scale = 1.0 + size * self._isotropic()
        # M = scale * I + size * B'B, hence inv(M) = (I - B' inv(BB' + ridge I) B) / scale.
        ridge = max(scale / size, 1e-12 * float(np.trace(self._gram)))
        B, factor = self._centred, cho_factor(self._gram + ridge * np.eye(self._gram.shape[0]), lower=True)
        used = np.flatnonzero((master.idle <= _RECENT) & master.capped)
        used = used if used.size and used[0] == 0 else np.concatenate([[0], used])
        vectors = master.vectors[used]
        seen = B @ vectors.T
        pull = master.centre - best
        pull = (pull - B.T @ cho_solve(factor, B @ pull)) / scale
        gram = (master.gram[np.ix_(used, used)] - seen.T @ cho_solve(factor, seen)) / scale
        # The difference is rounded: keep it symmetric and positive.
        gram = 0.5 * (gram + gram.T)
        gram[np.diag_indices_from(gram)] += 1e-10 * np.abs(np.diag(gram))
        linear = master.offsets[used] - vectors @ (best + pull)
        x = master.multipliers[used].copy()
        x[0] += max(master.C - x.sum(), 0.0)
        _active_set.maximise(gram, linear, np.ones(used.size, dtype=bool), master.C, x, 1e-9, 1000)
        force = x @ vectors
        return best + pull + (force - B.T @ cho_solve(factor, B @ force)) / scale
