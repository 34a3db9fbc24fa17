r"""The tight bound: descend, then certify by the convex problem that lies above.

.. math:: \min_w \; G(w) = \tfrac12 \|w - w^0\|^2 + C \, T(Xw), \qquad T(s) = J(s) - H(s)

with J the structured hinge and H the score of the predicted ranking, both convex: a difference of convex functions.
A round, for all problems that have not ended, in lockstep:

1. *Descend.* Quasi-Newton steps on G itself (`descent`), whose line search needs no pass over the features.
2. *Certify.* With H replaced by its tangent at the point reached, ``H(s) ≥ u·s``, the problem becomes convex and lies
   above G, touching it there: the concave-convex procedure (Yuille and Rangarajan 2003). A linear term only moves
   the centre, ``½‖w - w⁰‖² - C g·w = ½‖w - (w⁰ + C g)‖² + const``, so the bundle solver takes it as it is, and the
   planes of J, which know nothing of centres, stay valid from round to round.

If the convex problem leads noticeably below G, the next round begins there; else the point is one at which the
concave-convex procedure stops, up to the gap of that last convex problem, which is the certificate. Descent alone is
much faster, far from such a point; certification alone would take hundreds of rounds, because each tangent holds
the predicted ranking fixed. No step raises G.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from rankhinge.solvers.base import CONVERGED, MAX_ITER, RUNNING, Solver
from rankhinge.solvers.bundle import Bundle
from rankhinge.solvers.descent import Descent
from rankhinge.solvers.protocol import Array, Planes, TightObjective

__all__ = ["Tight"]

# Five iterations of the descent that gain less than this part of the tolerance end it.
_FINER = 0.1


class Tight(Solver):
    """Minimise the tight bound for K problems in lockstep, to a point where the concave-convex procedure stops.

    Parameters
    ----------
    objective : TightObjective
    C : (K,)
    centre : (d, K)
        ``w0``.
    certify : bool
        Without it the descent alone is run, and there is no gap.
    random_state : int, optional
        For the bundle solver.
    **options
        As for `Solver`; `tol` is that of the certificate, and a round goes on if it gained more than this part.
    """

    objective: TightObjective

    def __init__(
        self,
        objective: TightObjective,
        C: Array,
        *,
        certify: bool = True,
        random_state: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(objective, C, **options)
        self.certify, self.random_state = certify, random_state
        self._gap = np.full(self.C.size, np.inf)
        self._planes = self.initial_planes
        self._inner: Bundle | None = None
        self._counted = 0.0
        self._descent: Descent | None = None

    def gaps(self) -> Array:
        """Relative gaps of the last convex problems, (K,); inf before there was one."""
        return self._gap.copy()

    def planes(self) -> list[Planes]:
        """The planes of J that the convex problems have found."""
        return super().planes() if self._planes is None else self._planes

    def step(self) -> None:
        """One iteration of the descent, or one round of the convex problem's solver."""
        active = self.active
        if active.size == 0:
            return
        if self._inner is not None:
            self._certify_further()
        else:
            self._descend(active)
        self.n_iter[active] += 1
        late = active[self.n_iter[active] >= self.max_iter]
        for k in late:
            self.status[k] = MAX_ITER if self.status[k] == RUNNING else self.status[k]
        elapsed = time.perf_counter() - self._began
        self._history.append((self.primal, np.where(np.isinf(self.dual), np.nan, self.dual), elapsed, self.n_passes))

    def _descend(self, active: np.ndarray) -> None:
        """One step of the descent, which begins at the best points so far."""
        if self._descent is None:
            start = np.stack([w for _, w in self.best], axis=1)
            tol = _FINER * self.tol
            evaluate = self.objective.evaluate_tight
            self._descent = Descent(self.objective, evaluate, self.C, self.centre, start, active, tol=tol)
            self._counted = 0.0
        else:
            self._descent.step()
        self._count(self._descent.n_passes)
        for k in active:
            self.offer(int(k), self._descent.value(int(k)), self._descent.point(int(k)))
        if self._descent.active.size == 0:
            self._descent = None
            if self.certify:
                self._begin_certificate(active)
            else:
                self._end(active, [CONVERGED] * active.size)

    def _begin_certificate(self, active: np.ndarray) -> None:
        """The convex problem above G at the best points: H becomes linear, which moves the centre."""
        points = np.stack([w for _, w in self.best], axis=1)
        scores = self.objective.score(points[:, active], active)
        slopes = self.objective.adjoint(self.objective.reference(scores).coefficients)
        self.n_passes += 2
        centre, constant = self.centre.copy(), np.zeros(self.C.size)
        for c, k in enumerate(active):
            shift = self.C[k] * slopes[:, c]
            centre[:, k] += shift
            constant[k] = -shift @ (self.centre[:, k] + 0.5 * shift)
        self._inner = Bundle(
            self.objective,
            self.C,
            tol=self.tol,
            max_iter=self.max_iter,
            start=points,
            planes=self._planes,
            centre=centre,
            constant=constant,
            problems=active,
            random_state=self.random_state,
        )
        self._counted = 0.0

    def _certify_further(self) -> None:
        inner = self._inner
        if inner is None:
            return
        inner.step()
        self._count(inner.n_passes)
        self.dual = inner.dual + inner.constant
        self._gap = np.where([s == RUNNING for s in self.status], inner.gaps(), self._gap)
        if inner.done:
            self._conclude(inner)

    def _conclude(self, inner: Bundle) -> None:
        """Go where the convex problem leads if that is lower; end where it does not lead noticeably lower."""
        active = self.active
        result, before = inner.result(), self.primal
        self._planes, self._inner = result.planes, None
        weights = result.coef[:, active]
        found = self.objective.evaluate_tight(self.objective.score(weights, active), coefficients=False)
        self.n_passes += 1
        settled, outcomes = [], []
        for c, k in enumerate(active):
            value = self.regulariser(k, weights[:, c]) + self.C[k] * float(found.value[c])
            self.offer(int(k), value, weights[:, c].copy())
            if not self.best[k][0] < before[k] - self.tol * abs(before[k]):
                settled.append(k)
                outcomes.append(str(result.status[k]))
        self._end(np.array(settled, dtype=np.int64), outcomes)

    def _end(self, problems: np.ndarray, outcomes: list[str]) -> None:
        for k, outcome in zip(problems, outcomes):
            self.status[k] = outcome

    def _count(self, n_passes: float) -> None:
        """Add what the present phase has used since it was last asked."""
        self.n_passes += n_passes - self._counted
        self._counted = n_passes
