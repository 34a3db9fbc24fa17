r"""The certificate: how close to the minimum a solver has stopped, and what rounding leaves of that.

A solver has a point with the value P, and a lower bound D on the minimum. In exact arithmetic
:math:`(P - D) / P` is proved. In float64 both are off by rounding, of which a bound E is known for the point that is
returned. Then

.. math:: \text{gap} = \frac{P - (D - E)}{P}, \qquad D - E \text{ or } 0, \text{ if that is more,}

since no objective here falls below 0. A bound above the value by more than E is not rounding but a defect, and raises.

*What E is.* With X w computed in float64, sums of d terms are off by at most :math:`\gamma |X||w|`, and sums over n
samples likewise. :math:`\gamma` is the unit of rounding times the number of terms; for long sums, times 8 times the
root of that number, because errors take both signs (Higham and Mary 2019). The root assumes independent errors: it
should hardly ever fail, but it is no proof.

J changes with the score of sample i by :math:`L_i = \max |u_i|` at most. Hence C J is off by :math:`\gamma C \sum_i L_i
(|X||w|)_i`. The slopes of the planes have errors of length :math:`a = \gamma C \sum_i L_i \|x_i\|` at most. This moves
the bound by at most :math:`a \sqrt{2(P - D)} + a^2`, where the root is the distance to the master's minimiser.

*Planes are held against J.* The bound is only as true as the planes that carry it. A plane (b, g) that was cut at v
must meet J there, :math:`b + g \cdot v = J(v)`: that ties offset, slope, coefficients, scores and the value of J
together, each of which comes from another piece of code. It must not lie above J at the point that is returned either.
A larger difference than rounding explains raises an error.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Carrying", "Certificate", "CertificateError", "Rounding", "relative_gap", "rounding_bound", "witness"]

RUNNING, CONVERGED, MAX_ITER = "running", "converged", "max_iter"
STALLED, INFEASIBLE, LEFT_OUT = "stalled", "infeasible", "left out"
PRECISION, TIME, HEURISTIC = "precision", "time", "heuristic"

MESSAGES = {
    CONVERGED: "the relative gap is at most tol",
    MAX_ITER: "max_iter reached before the relative gap fell to tol",
    STALLED: "neither primal nor dual has moved for some steps: rounding forbids a smaller gap",
    PRECISION: "rounding may hide more than tol: scale the features",
    TIME: "max_time was over before the relative gap fell to tol; the best point so far",
    HEURISTIC: "it settled, but inference is a heuristic: no gap is proved",
    INFEASIBLE: "the hard constraints contradict each other",
    "interrupted": "interrupted; the best point so far",
    "stopped": "stopped by a callback; the best point so far",
    LEFT_OUT: "not asked for",
    RUNNING: "not finished",
}

Array = NDArray[np.float64]
# Errors of a sum of k terms add up like a random walk, which hardly ever exceeds this many times the root of k.
_WALK = 8.0


class CertificateError(RuntimeError):
    """A lower bound above the value that it bounds, by more than rounding: a defect of the library."""


class Carrying(NamedTuple):
    """The t planes ``J(w) >= b + g @ w`` that carry a lower bound, and what is known of each.

    Attributes
    ----------
    offsets : (t,)
        b.
    heights : (t,)
        ``g @ w`` at the point that is returned.
    misses : (t,)
        ``|b + g @ v - J(v)|`` at the point v at which it was cut.
    reaches : (t,)
        How long v was, or a longer point on the way to it whose rounding its scores have inherited.
    """

    offsets: Array
    heights: Array
    misses: Array
    reaches: Array

    @classmethod
    def none(cls) -> Carrying:
        """No plane: the bound is 0, or not known."""
        return cls(*np.zeros((4, 0)))


def witness(offsets: Array, slopes: Array, point: Array, values: Array) -> tuple[Array, float]:
    """By how much planes (r,), (r, d) miss J, (r,), where they were cut, (d,), and how far that is from 0."""
    return np.abs(offsets + slopes @ point - values), float(np.linalg.norm(point))


def unit_of_rounding(n_terms: int) -> float:
    """The relative error of a sum of `n_terms`, in parts of the sizes of its terms."""
    return float(np.finfo(np.float64).eps * min(n_terms, _WALK * n_terms**0.5))


def rounding_bound(
    n_terms: int, C: float, slope: float, near: float, length: float, *, size: float | None = None, centre: float = 0.0
) -> float:
    """E of one problem, see above.

    Parameters
    ----------
    n_terms : int
        Of the longest sums: features and samples.
    C : float
    slope : float
        ``Σ L_i |x_i|``.
    near : float
        ``P - D``.
    length : float
        ``|w - w0|``.
    size : float, optional
        ``Σ L_i (|X||w|)_i``; by default no more than ``slope * length``, for ``w0 = 0``.
    centre : float
        ``|w0|``.
    """
    unit = unit_of_rounding(n_terms)
    a = unit * C * slope
    size = slope * length if size is None else size
    value = C * (1.0 + size) + length * (length + centre)
    return unit * value + a * (a + (2.0 * abs(near)) ** 0.5)


def relative_gap(primal: Array, dual: Array) -> Array:
    """``(primal - dual) / |primal|``; 0 if they are equal, inf if one is not known.

    Below 0 where rounding has put the bound above the value; what that proves, `Certificate` tells.
    """
    primal, dual = np.asarray(primal, dtype=np.float64), np.asarray(dual, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        gap = np.where(primal == dual, 0.0, (primal - dual) / np.abs(primal))
    return np.where(np.isfinite(primal) & np.isfinite(dual), gap, np.inf)


class Certificate(NamedTuple):
    """What is known of K points.

    Attributes
    ----------
    primal : (K,)
        Their values, from the coefficients that are returned.
    dual : (K,)
        Lower bounds, as the solver has found them.
    rounding : (K,)
        E.
    tolerated : (K,)
        By how much hard constraints, which hold within their tolerance, may have raised the bound.
    """

    primal: Array
    dual: Array
    rounding: Array
    tolerated: Array

    @property
    def lower(self) -> Array:
        """Lower bounds that rounding cannot undo; -inf where none is known.

        A point that keeps constraints within their tolerance only may lie below the bound for those that keep them all.
        """
        lower = np.maximum(self.dual - self.rounding, 0.0)
        lower = np.where(self.tolerated > 0.0, np.minimum(lower, self.primal), lower)
        return np.where(np.isfinite(self.dual), lower, self.dual)

    @property
    def gap(self) -> Array:
        """The proved relative gaps."""
        return relative_gap(self.primal, self.lower)

    def status(self, states: NDArray[np.str_], tol: float) -> NDArray[np.str_]:
        """The solver's states, where ``converged`` means a proved gap of `tol` at most."""
        return np.where((states == CONVERGED) & ~(self.gap <= tol), PRECISION, states)

    def check(self) -> None:
        """Raise `CertificateError` if a lower bound is above its value."""
        wrong = np.flatnonzero(np.isfinite(self.dual) & (self.dual - self.rounding - self.tolerated > self.primal))
        if wrong.size:
            k = wrong[0]
            raise CertificateError(
                f"the lower bound {self.dual[k]!r} of problem {k} lies above the objective {self.primal[k]!r} by more "
                f"than rounding, {self.rounding[k]:.3g}: this is a defect of the library, please report it"
            )


class Rounding(NamedTuple):
    """What rounding may do to J and to planes of one problem, by the length of the point they are looked at.

    Attributes
    ----------
    n_terms : int
        Of the longest sums: features, samples and the steps that scores have been carried along.
    slope : float
        ``Σ L_i |x_i|``.
    slack : float
        By how much a value of J may be above its plane because it is known to within so much only.
    largest : float
        J at 0, if that is more than 1: values of J are of this order.
    """

    n_terms: int
    slope: float
    slack: float = 0.0
    largest: float = 1.0

    def allowed(self, length: Any) -> Any:
        """By how much J and a plane that meets it may differ at points of such lengths."""
        return unit_of_rounding(self.n_terms) * (2.0 * self.largest + self.slope * np.asarray(length))

    def hold(self, planes: Carrying, value: float, length: float, k: int = 0) -> None:
        """Raise `CertificateError` unless the planes meet J where they were cut, and are not above it where w ends.

        Parameters
        ----------
        planes : Carrying
        value, length : float
            ``J(w)`` and ``|w|`` at the point that is returned.
        k : int
            The problem, for the message.
        """
        self._refuse(
            planes.misses - self.allowed(planes.reaches) - self.slack,
            planes,
            "misses J where it was cut",
            planes.misses,
            k,
        )
        above = planes.offsets + planes.heights - value
        self._refuse(above - self.allowed(length), planes, f"lies above J, {value!r}, where the fit ends", above, k)

    def hold_near_zero(self, planes: Carrying, value: float, share: float, length: float, k: int = 0) -> None:
        """As `hold`, at the point ``share * w``, where J is `value`: for planes that were cut at 0.

        There slopes say nothing. `length` is that of w.
        """
        above = planes.offsets + share * planes.heights - value
        self._refuse(above - self.allowed(share * length), planes, f"lies above J, {value!r}, near 0", above, k)

    def _refuse(self, excess: Array, planes: Carrying, what: str, size: Array, k: int) -> None:
        wrong = np.flatnonzero(~(excess <= 0.0))
        if wrong.size:
            t = wrong[np.argmax(excess[wrong])]
            offset, height = float(planes.offsets[t]), float(planes.heights[t])
            raise CertificateError(
                f"a plane of problem {k}, {offset!r} + {height!r}, {what}, by {size[t]:.3g}, more than rounding: "
                "this is a defect of the library, please report it"
            )
