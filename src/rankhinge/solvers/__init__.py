"""Minimise ``0.5 * |w - w0|**2 + C * J(w)`` for K problems that share their features.

`make_solver` gives a solver by name; each is ``init / step / done``, and its `result` is a
`SolverResult` at any time. What a solver asks of an objective is in `rankhinge.solvers.protocol`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from rankhinge.solvers.base import Solver
from rankhinge.solvers.bundle import Bundle, QuasiNewton
from rankhinge.solvers.checkpoint import Checkpoint, CheckpointError, Saved
from rankhinge.solvers.deadline import NEVER, Deadline
from rankhinge.solvers.descent import Descent, Known, look
from rankhinge.solvers.in_turn import InTurn
from rankhinge.solvers.planes import PlaneSolver
from rankhinge.solvers.protocol import Objective, PayloadObjective, Planes, SolverResult
from rankhinge.solvers.tight import Tight

__all__ = [
    "NEVER",
    "SOLVERS",
    "Bundle",
    "Checkpoint",
    "CheckpointError",
    "Deadline",
    "Descent",
    "InTurn",
    "Known",
    "Objective",
    "PayloadObjective",
    "PlaneSolver",
    "Planes",
    "QuasiNewton",
    "Saved",
    "Solver",
    "SolverResult",
    "Tight",
    "look",
    "make_solver",
    "seed_of",
    "solver_class",
]

_OWN: dict[str, type[Solver]] = {"bundle": Bundle, "quasi-newton": QuasiNewton}
# The module whose SOLVERS have a class of this name: the papers' own, loaded when they are asked for.
_ELSEWHERE = dict.fromkeys(("cutting-plane", "frank-wolfe", "subgradient"), "rankhinge.papers.solvers")
SOLVERS = (*_OWN, *_ELSEWHERE)


def solver_class(name: str) -> type[Solver]:
    """The class of a solver by its name.

    Raises
    ------
    ValueError
        For an unknown name.
    """
    if name in _OWN:
        return _OWN[name]
    if name not in _ELSEWHERE:
        raise ValueError(f"unknown solver {name!r}: choose one of {', '.join(SOLVERS)}")
    found: type[Solver] = import_module(_ELSEWHERE[name]).SOLVERS[name]
    return found


def make_solver(
    name: str,
    objective: Objective,
    C: Any,
    *,
    tol: float = 1e-3,
    max_iter: int = 1000,
    start: Any = None,
    planes: list[Planes] | None = None,
    centre: Any = None,
    random_state: Any = None,
    **options: Any,
) -> Solver:
    """A solver of the given name, ready to `step`.

    Parameters
    ----------
    name : {"bundle", "quasi-newton", "cutting-plane", "frank-wolfe", "subgradient"}
    objective : Objective
    C : float or (K,)
    tol : float
        Stop when the relative gap is at most this.
    max_iter : int
    start, centre : (d, K), optional
    planes : list of Planes, optional
        From an earlier result; they do not depend on C or the centre.
    random_state : int or RandomState, optional
        Seeds the parts ("bundle") and the order of the blocks; None means 0.
    **options
        Of the solver's class.

    Raises
    ------
    ValueError
        For an unknown name.
    """
    kind = solver_class(name)
    if name != "cutting-plane":
        options["random_state"] = seed_of(random_state)
    return kind(objective, C, tol=tol, max_iter=max_iter, start=start, planes=planes, centre=centre, **options)


def seed_of(random_state: Any) -> int | None:
    """An integer from what scikit-learn calls a random state."""
    if random_state is None or isinstance(random_state, int):
        return random_state
    if hasattr(random_state, "randint"):
        return int(random_state.randint(2**31 - 1))
    return int(random_state)
