"""A point of a latent problem, and what is known about it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rankhinge.solvers import Planes
from rankhinge.solvers.certificate import Certificate

__all__ = ["Point"]


@dataclass
class Point:
    """A point of one problem and what is known about it.

    Attributes
    ----------
    w : ndarray of shape (d,)
    best, at : ndarray of shape (m, n_best) and (m,)
        Places of each member's best candidates, and the scores of the fixed ones.
    values : ndarray of shape (m, n_best)
        Scores of the best candidates.
    primal, dual, rounding : float
        Of the inner problem that it was found for; see `rankhinge.solvers.certificate`.
    exact : bool
        Whether J is computed exactly; else `primal` is too low, and nothing is proved of it.
    status : str
    n_iter : int
    planes : Planes or None
    """

    w: NDArray[np.float64]
    best: NDArray[np.int64] | None = None
    values: NDArray[np.float64] | None = None
    at: NDArray[np.float64] | None = None
    primal: float = np.inf
    dual: float = -np.inf
    rounding: float = 0.0
    exact: bool = True
    status: str = "running"
    n_iter: int = 0
    planes: Planes | None = None
    history: list[tuple[float, float, float, float]] = field(default_factory=list)

    @property
    def certificate(self) -> Certificate:
        """What is known of the inner problem at this point, as of one problem."""
        return Certificate(*(np.array([value]) for value in (self.primal, self.dual, self.rounding, 0.0)))

    @property
    def lower(self) -> float:
        """The lower bound that rounding cannot undo; it may lie above a `primal` that is not exact."""
        return float(self.certificate.lower[0])

    @property
    def gap(self) -> float:
        """The relative gap that is proved; inf if nothing is known, or if J is not exact."""
        return float(self.certificate.gap[0]) if self.exact else np.inf

    def check(self) -> None:
        """Raise `CertificateError` if bound and value contradict each other; values that are not exact cannot."""
        if self.exact:
            self.certificate.check()

    def scaled(self, factor: float) -> Point:
        """The point ``factor w``: it has the same best candidates; nothing is known about the inner problem there."""
        assert self.values is not None
        assert self.at is not None
        return Point(factor * self.w, self.best, factor * self.values, factor * self.at)
