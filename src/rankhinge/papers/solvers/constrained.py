r"""Solvers by planes under hard constraints ``a @ w >= c``, which are generated as they are violated.

A constraint is a cut of the master problem whose multiplier has no cap: with :math:`z \ge 0`, w gains
:math:`\sum_i z_i a_i` and the dual :math:`\sum_i z_i c_i`. Only points that keep all constraints, within their
tolerance, may be the best.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from rankhinge.papers.solvers.constraints import Constraints, Violation
from rankhinge.papers.solvers.cutting_plane import CuttingPlane
from rankhinge.solvers import Bundle, Objective, PlaneSolver, Solver, _active_set, seed_of
from rankhinge.solvers.certificate import INFEASIBLE
from rankhinge.solvers.master import Master
from rankhinge.solvers.protocol import Array, Handle
from rankhinge.solvers.subspace import Probe

__all__ = ["constrained_solver"]

# A sum of constraints below this part of its terms is 0: whatever satisfies them would be longer than its inverse.
_CONTRADICTION = 1e-9


class _Master(Master):
    """With constraints, whose names are what the cuts carry."""

    def __init__(self, C: float, centre: Array) -> None:
        super().__init__(C, centre, width=1)
        # The dual is unbounded: the constraints contradict each other.
        self.unbounded = False

    def _hard(self) -> np.ndarray:
        return np.flatnonzero(~self._cuts.capped[: self._cuts.size])

    def constrain(self, violated: Violation) -> Violation:
        """Add the hard constraints that are new, and return these."""
        new = ~np.isin(violated.names, self._cuts.payloads[self._hard(), 0])
        fresh = Violation(violated.names[new], violated.rows[new], violated.bounds[new])
        self.add_planes(fresh.bounds, -fresh.rows, payloads=fresh.names[:, None].astype(np.float64), hard=True)
        return fresh

    def solve(self) -> int:
        """As of `Master`; notes contradictions."""
        status = super().solve()
        self.unbounded = self.unbounded or status == _active_set.UNBOUNDED or self._contradicts()
        return status

    def weight_of_constraints(self) -> float:
        """``Σ z (1 + |c|)`` over the hard constraints, with their multipliers z."""
        hard = self._hard()
        return float(self._cuts.multipliers[hard] @ (1.0 + np.abs(self._cuts.offsets[hard])))

    def _contradicts(self) -> bool:
        """Whether the multipliers show that the hard constraints contradict each other.

        ``Σ z h = 0`` and ``Σ z c > 0`` cannot be for constraints ``h @ w >= c`` with a solution (Farkas). Where the sum
        is 0 up to rounding, the programme may seem bounded, by multipliers of the order of 1e16.
        """
        cuts = self._cuts
        hard = self._hard()
        hard = hard[cuts.multipliers[hard] > 0.0]
        if hard.size == 0:
            return False
        z = cuts.multipliers[hard] / cuts.multipliers[hard].max()
        left = np.linalg.norm(z @ cuts.vectors[hard])
        whole = z @ np.linalg.norm(cuts.vectors[hard], axis=1)
        return bool(left <= _CONTRADICTION * whole and z @ cuts.offsets[hard] > 0.0)


class _Constrained(PlaneSolver):
    """What the two solvers below share; to be mixed in before them."""

    masters: list[_Master]  # type: ignore[assignment]

    def __init__(self, objective: Objective, C: Array, *, constraints: Constraints, **options: Any) -> None:
        self.constraints = constraints
        super().__init__(objective, C, **options)

    def _make_master(self, k: int) -> Master:
        return _Master(float(self.C[k]), self.centre[:, k])

    def tolerated(self) -> Array:
        """As of `Solver`: what the multipliers of the constraints make of their tolerance."""
        return np.array([master.weight_of_constraints() for master in self.masters]) * self.constraints.tol

    def _solve(self, k: int) -> None:
        super()._solve(k)
        if self.masters[k].unbounded:
            self.status[k] = INFEASIBLE

    def _admit(self, weights: Array, scores: Handle, active: np.ndarray) -> np.ndarray:
        violations = self.constraints.violated(weights, scores, active)
        for k, violation in zip(active, violations, strict=True):
            self.masters[k].constrain(violation)
        return np.array([violation.names.size == 0 for violation in violations])


class ConstrainedCuttingPlane(_Constrained, CuttingPlane):
    """`CuttingPlane` under constraints."""


class ConstrainedBundle(_Constrained, Bundle):
    """`Bundle` under constraints: without an opening, which knows none."""

    def __init__(self, objective: Objective, C: Array, **options: Any) -> None:
        super().__init__(objective, C, **options | {"opening": False})

    def _admit_in_span(
        self, probes: list[Probe], points: list[Array], scores: Handle, problems: np.ndarray
    ) -> np.ndarray:
        weights = np.stack([probe.point(point) for probe, point in zip(probes, points, strict=True)], axis=1)
        violations = self.constraints.violated(weights, scores, problems)
        for k, probe, violation in zip(problems, probes, violations, strict=True):
            new = self.masters[k].constrain(violation)
            probe.small.add_planes(new.bounds, -(new.rows @ probe.basis), hard=True)
        return np.array([violation.names.size == 0 for violation in violations])


def constrained_solver(
    name: str, objective: Objective, C: Any, *, constraints: Constraints, random_state: Any = None, **options: Any
) -> Solver:
    """As `rankhinge.solvers.make_solver`, for "bundle" and "cutting-plane".

    Raises
    ------
    ValueError
        For another solver.
    """
    if name == "cutting-plane":
        return ConstrainedCuttingPlane(objective, C, constraints=constraints, **options)
    if name != "bundle":
        raise ValueError(f"solver {name!r} takes no hard constraints; use 'bundle'")
    return ConstrainedBundle(objective, C, constraints=constraints, random_state=seed_of(random_state), **options)
