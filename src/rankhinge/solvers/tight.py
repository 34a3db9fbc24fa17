r"""The tight bound: descend, then certify by the convex problem that lies above.

.. math:: \min_w \; G(w) = \tfrac12 \|w - w^0\|^2 + C \, T(Xw), \qquad T(s) = J(s) - H(s)

with J the structured hinge and H the score of the predicted ranking, both convex: a difference of convex functions.
A round, for all problems that have not ended, in lockstep:

1. *Descend.* Quasi-Newton steps on G itself (`descent`), whose line search needs no pass over the features. If C is so
   large that the start hardly holds w back, smaller values come first: T is rugged, and a descent that is set free at
   once ends in the first dent.
2. *Certify.* With H replaced by its tangent at the point reached, ``H(s) ≥ r·s``, the problem becomes convex and lies
   above G, touching it there: the concave-convex procedure (Yuille and Rangarajan 2003). The bundle solver takes it as
   it is, ``J(s) - r·s`` in place of J, and the planes of J stay valid from round to round: only the slope ``Xᵀr`` is
   to be subtracted. It would do to move the centre by ``C Xᵀr`` instead, but then all values would be differences of
   numbers that are larger by orders of magnitude.

If the convex problem leads noticeably below G, the next round begins there; else the point is one at which the
concave-convex procedure stops, up to the gap of that last convex problem, which is the certificate. Descent alone is
much faster, far from such a point; certification alone would take hundreds of rounds, because each tangent holds
the predicted ranking fixed. No step raises G.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rankhinge.solvers.base import CONVERGED, MAX_ITER, RUNNING, Solver
from rankhinge.solvers.bundle import Bundle
from rankhinge.solvers.certificate import Carrying
from rankhinge.solvers.descent import Descent, Known, look
from rankhinge.solvers.protocol import Array, Planes, TightObjective

__all__ = ["Tight"]


class TightPolicy(NamedTuple):
    """How the descent goes, and how the tolerance is shared."""

    # So many iterations of the descent that gain less than this part of the tolerance end it.
    window: int = 2
    finer: float = 0.1
    # Of the tolerance, for the gap of the convex problem, and for the way from where it touches G to its best point:
    # together they are the gap that is reported.
    half: float = 0.5
    # C ascends from where the loss pulls w by this part of its length, in steps of a factor, each for so many
    # iterations and to so much coarser a tolerance than the last.
    gentle: float = 0.1
    factor: float = 4.0
    stage: int = 30
    coarser: float = 5.0


POLICY = TightPolicy()


class Tight(Solver):
    """Minimise the tight bound for K problems in lockstep, to a point where the concave-convex procedure stops.

    Parameters
    ----------
    objective : TightObjective
    C : (K,)
    centre : (d, K)
        ``w0``.
    known : Known, optional
        T of all problems at the centre, if somebody has looked; its passes are counted. Where the start is another
        point, nothing else is made of it.
    certify : bool
        Without it the descent alone is run, and there is no gap.
    random_state : int, optional
        For the bundle solver.
    **options
        As for `Solver`; `tol` is that of the certificate, and a round continues if it gained more than this part.
    """

    objective: TightObjective

    def __init__(
        self,
        objective: TightObjective,
        C: Array,
        *,
        known: Known | None = None,
        certify: bool = True,
        random_state: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(objective, C, **options)
        self.certify, self.random_state = certify, random_state
        self._planes = self.initial_planes
        # Slopes of the tangents of the last round, (K, d).
        self._slopes = np.zeros_like(self.centre.T)
        self._inner: Bundle | None = None
        # Problems whose certificate is final.
        self._carrying: dict[int, Carrying] = {}
        self._counted = 0.0
        self._descent: Descent | None = None
        # The current C. It rises to the final C, unless the run continues an earlier one.
        self._present = self.C.copy()
        self._gently = options.get("start") is None
        # T where the next descent begins.
        self._known = known
        if known is not None and not self._gently:
            self._known, self.n_passes = None, known.n_passes
        self._in_stage = 0

    def carrying(self, k: int) -> Carrying:
        """The planes of the convex problem that touches G at the best point."""
        if not np.isfinite(self.dual[k]):
            return Carrying.none()
        if self._inner is not None and self.status[k] == RUNNING:
            return self._inner.masters[k].carrying(self.best[k][1])
        return self._carrying.get(k, Carrying.none())

    def planes(self) -> list[Planes]:
        """The planes of J that the convex problems have found."""
        return super().planes() if self._planes is None else self._planes

    def phase(self) -> dict[str, Array]:
        """C as far as it has ascended."""
        return {"present": self._present}

    def take_up(self, phase: dict[str, Array]) -> None:
        """Let C rise from the saved value."""
        self._present = phase["present"].copy()

    def step(self) -> None:
        """One iteration of the descent, or one round of the convex problem's solver."""
        active = self.active
        if active.size == 0:
            return
        # Problems that have finished this phase wait for the others; waiting does not count as an iteration.
        if self._inner is not None:
            taking_part = self._inner.active
            self._certify_further(self._inner)
        else:
            if self._descent is not None and not np.isin(self._descent.active, active).all():
                # Problems that have reached max_iter stop here.
                self._descent.keep(np.isin(self._descent.active, active))
            taking_part = active if self._descent is None else self._descent.active
            self._descend(active)
        self.n_iter[taking_part] += 1
        late = np.array([k for k in self.active if self.n_iter[k] >= self.max_iter], dtype=np.int64)
        if late.size and self._inner is not None:
            self._keep_carrying(self._inner, late)
            # The convex problem is unfinished, but its best point may already be lower.
            self._follow(self._inner, late, 0.0)
            for k in late:
                self._inner.status[k] = MAX_ITER
        self._end(late, [MAX_ITER] * late.size)
        elapsed = time.perf_counter() - self._began
        dual = np.where(np.isinf(self.dual), np.nan, self.dual)
        self._history.append((self.primal, dual, elapsed, self.n_passes))

    def _descend(self, active: np.ndarray) -> None:
        """One step of the descent, which begins at the best points so far."""
        if self._gently:
            self._gently = False
            self._begin_gently(active)
        elif self._descent is None and self.certify and not self.n_iter[active].any():
            self._compare_with_centre(active)
        if self._descent is None:
            tol = POLICY.finer * self.tol * (POLICY.coarser if self._climbing(active) else 1.0)
            evaluate, points = self.objective.evaluate_tight, np.stack([self.best[k][1] for k in active], axis=1)
            start = self._known or look(self.objective, evaluate, points, active)
            self.n_passes += start.n_passes
            self._descent = Descent(
                self.objective, evaluate, self._present, self.centre, start, tol=tol, window=POLICY.window
            )
            self._counted, self._in_stage, self._known = 0.0, 0, None
        elif self._descent.active.size:
            self._descent.step()
        self._in_stage += 1
        self._count(self._descent.n_passes)
        for k in active:
            self.offer(int(k), self._value(int(k), self._descent), self._descent.states[int(k)].w)
        ended = self._descent.active.size == 0
        if self._climbing(active):
            if ended or self._in_stage > POLICY.stage:
                self._present = np.minimum(POLICY.factor * self._present, self.C)
                # The next descent continues from here, unless C has made an earlier point the best.
                if all(self.best[k][1] is self._descent.states[k].w for k in active.tolist()):
                    self._known = self._descent.known(active)
                self._descent = None
        elif ended:
            self._descent = None
            if self.certify:
                self._begin_certificate(active)
            else:
                self._end(active, [CONVERGED] * active.size)

    def _climbing(self, active: np.ndarray) -> bool:
        """Whether C is still below its value somewhere."""
        return bool(np.any(self._present[active] < self.C[active]))

    def _begin_gently(self, active: np.ndarray) -> None:
        """Begin at the start, with a C at which the loss moves w by a small part of its length only."""
        evaluate = self.objective.evaluate_tight
        self._known = known = self._known or look(self.objective, evaluate, self.start[:, active], active)
        for k, w, value, slope in zip(active.tolist(), known.weights.T, known.value.tolist(), known.slopes.T):
            self.offer(k, self.regulariser(k, w) + self.C[k] * value, w.copy())
            length, pull = np.linalg.norm(w), np.linalg.norm(slope)
            if self.C[k] * pull > POLICY.gentle * length > 0:
                self._present[k] = POLICY.gentle * length / pull

    def _compare_with_centre(self, active: np.ndarray) -> None:
        """Begin at the centre where that is lower than the start: what is returned must not lie above it."""
        points = np.concatenate([self.start[:, active], self.centre[:, active]], axis=1)
        problems = np.concatenate([active, active])
        found = self.objective.evaluate_tight(self.objective.score(points, problems), coefficients=False)
        self.n_passes += 1
        for k, w, value in zip(problems, points.T, found.value):
            self.offer(int(k), self.regulariser(k, w) + self.C[k] * float(value), w.copy())

    def _value(self, k: int, descent: Descent) -> float:
        """G of problem k where the descent is, with C itself."""
        distance = self.regulariser(k, descent.states[k].w)
        return distance + float(self.C[k] / self._present[k]) * (descent.states[k].value - distance)

    def _begin_certificate(self, active: np.ndarray) -> None:
        """The convex problem above G at the best points: H becomes linear."""
        perfect = active[self.primal[active] == 0.0]
        if perfect.size:
            # Nothing lies below 0.
            self.dual[perfect] = 0.0
            self._carrying.update((int(k), Carrying.none()) for k in perfect)
            self._end(perfect, [CONVERGED] * perfect.size)
            active = self.active
        if active.size == 0:
            return
        points = np.stack([w for _, w in self.best], axis=1)
        # The convex problem begins where T is left, at the same scores.
        scores = self.objective.score(points[:, active], active)
        reference = self.objective.reference(scores).coefficients
        self._slopes[active] = self.objective.adjoint(reference).T
        self.n_passes += 2
        planes = self._planes
        if planes is not None:
            planes = [replace(own, slopes=own.slopes - slope) for own, slope in zip(planes, self._slopes, strict=True)]
        self._inner = Bundle(
            self.objective,
            self.C,
            evaluate=partial(self.objective.evaluate_against, reference=reference),
            tol=POLICY.half * self.tol,
            max_iter=self.max_iter,
            start=points,
            planes=planes,
            centre=self.centre,
            problems=active,
            random_state=self.random_state,
            start_scores=scores,
        )
        self._counted = 0.0

    def _certify_further(self, inner: Bundle) -> None:
        """One round of the convex problem's solver."""
        inner.step()
        self._count(inner.n_passes)
        # Problems that ended in an earlier round keep the certificate of that. The gap is that of the best point, where
        # the convex problem touches G, not of the point that its solver has reached: G there is not known yet.
        active = self.active
        self.dual[active] = inner.dual[active]
        for k in active[self.gaps()[active] <= self.tol]:
            if inner.status[k] == RUNNING:
                inner.status[k] = CONVERGED
        if inner.done:
            self._conclude(inner)

    def _conclude(self, inner: Bundle) -> None:
        """Go where the convex problem leads if that is noticeably lower; else end."""
        active, result = self.active, inner.result()
        self._planes = [
            replace(own, slopes=own.slopes + slope) for own, slope in zip(inner.planes(), self._slopes, strict=True)
        ]
        self._keep_carrying(inner, active)
        self._inner = None
        moved = self._follow(inner, active, POLICY.half * self.tol)
        self._end(active[~moved], [str(result.status[k]) for k in active[~moved]])

    def _keep_carrying(self, inner: Bundle, problems: np.ndarray) -> None:
        for k in problems:
            self._carrying[int(k)] = inner.masters[k].carrying(self.best[k][1])

    def _follow(self, inner: Bundle, problems: np.ndarray, least: float) -> np.ndarray:
        """Go to the best points of the convex problems where G is lower by more than the part `least`: one pass.

        Returns which problems have moved, (m,). For the others the convex problem touches G where they are, and its
        bound is their certificate; the new points have none until the next convex problem.
        """
        weights = np.stack([inner.best[k][1] for k in problems], axis=1)
        found = self.objective.evaluate_tight(self.objective.score(weights, problems), coefficients=False)
        self.n_passes += 1
        moved = np.zeros(problems.size, dtype=bool)
        for c, k in enumerate(problems):
            value = self.regulariser(k, weights[:, c]) + self.C[k] * float(found.value[c])
            before = self.best[k][0]
            if value < before - least * abs(before):
                moved[c] = self.offer(int(k), value, weights[:, c].copy())
                self.dual[k] = -np.inf
        return moved

    def _end(self, problems: np.ndarray, outcomes: list[str]) -> None:
        for k, outcome in zip(problems, outcomes):
            self.status[k] = outcome

    def _count(self, n_passes: float) -> None:
        """Add what the present phase has used since it was last asked."""
        self.n_passes += n_passes - self._counted
        self._counted = n_passes
