"""Hard linear constraints: what solvers ask of them, and those that fit into memory, checked at w itself."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from rankhinge.solvers.protocol import Array, Handle, Indices

__all__ = ["Constraints", "LinearConstraints", "Violation"]


class Violation(NamedTuple):
    """Violated constraints ``rows @ w >= bounds`` of one problem, with names to tell them apart."""

    names: Indices
    rows: Array
    bounds: Array


class Constraints(Protocol):
    """Hard linear constraints, generated as they are violated; each holds if it lacks no more than `tol` (1 + |c|)."""

    tol: float

    def violated(self, weights: Array, scores: Handle, problems: Indices) -> list[Violation]:
        """For each column of `weights` (d, m), the worst constraints that it violates.

        `scores` is the handle of the same points, for those who can read the violation off it.
        No more than a few dozen at a time; none if all hold within the constraints' own tolerance,
        which is then the tolerance of the result.
        """


class LinearConstraints:
    """The same constraints ``A @ w >= c`` for all problems.

    Parameters
    ----------
    A : (r, d), dense or sparse
    c : (r,)
    tol : float
        A constraint holds if it is violated by no more than ``tol * (1 + |c|)``.
    limit : int
        How many violated constraints are handed out at a time, the worst first.

    Examples
    --------
    >>> import numpy as np
    >>> constraints = LinearConstraints(np.eye(2), np.array([1.0, 0.0]))
    >>> constraints.violated(np.zeros((2, 1)), None, np.array([0]))[0].names
    array([0])
    """

    def __init__(self, A: Any, c: Array, *, tol: float = 1e-7, limit: int = 64) -> None:
        self.A, self.c, self.tol, self.limit = A, np.asarray(c, dtype=np.float64), tol, limit

    def violated(self, weights: Array, scores: Handle, problems: np.ndarray) -> list[Violation]:
        """For each column of `weights`, the worst violated constraints."""
        excess = (self.c[:, None] - self.A @ weights) / (1.0 + np.abs(self.c))[:, None]
        found = []
        for column in excess.T:
            worst = np.argsort(-column, kind="stable")[: self.limit]
            names = worst[column[worst] > self.tol]
            rows = self.A[names]
            rows = rows.toarray() if hasattr(rows, "toarray") else rows
            found.append(Violation(names, np.asarray(rows, dtype=np.float64), self.c[names]))
        return found
