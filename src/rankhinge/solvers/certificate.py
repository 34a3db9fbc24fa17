r"""The certificate: how close to the minimum a solver has stopped, and what rounding leaves of that.

A solver has a point with the value P, and a lower bound D on the minimum. In exact arithmetic
:math:`(P - D) / P` is proved. In float64 both are off by rounding, of which a bound E is known for the point that is
returned. Then

.. math:: \text{gap} = \frac{P - (D - E)}{P}, \qquad D - E \text{ or } 0, \text{ if that is more,}

since no objective here falls below 0. A bound above the value by more than E is not rounding but a defect, and raises.

*What E is.* With X w computed in float64, sums of d terms are off by at most :math:`\gamma |X||w|`, and those over n
samples likewise; :math:`\gamma` is the unit of rounding times the number of terms, or, of long sums, times 8 times its
root: errors of sums take both signs (Higham and Mary 2019). That bound assumes independent errors; it should hardly
ever fail, but is no proof. J moves with the scores by :math:`L_i = \max |u_i|` at most. Hence C J is off by
:math:`\gamma C \sum_i L_i (|X||w|)_i`. The
slopes of the planes have errors of length :math:`a = \gamma C \sum_i L_i \|x_i\|` at most, which moves the bound by no
more than that times the distance to the master's minimiser, :math:`\sqrt{2(P - D)}`, and :math:`a^2` besides.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Certificate", "CertificateError", "relative_gap", "rounding_bound", "unit_of_rounding"]

RUNNING, CONVERGED, MAX_ITER = "running", "converged", "max_iter"
STALLED, INFEASIBLE, LEFT_OUT = "stalled", "infeasible", "left out"
PRECISION, TIME = "precision", "time"

MESSAGES = {
    CONVERGED: "the relative gap is at most tol",
    MAX_ITER: "max_iter reached before the relative gap fell to tol",
    STALLED: "neither primal nor dual has moved for some steps: rounding forbids a smaller gap",
    PRECISION: "rounding may hide more than tol: scale the features",
    TIME: "max_time was over before the relative gap fell to tol; the best point so far",
    INFEASIBLE: "the hard constraints contradict each other",
    "interrupted": "interrupted; the best point so far",
    "stopped": "stopped by a callback; the best point so far",
    LEFT_OUT: "not asked for",
    RUNNING: "not finished",
}

Array = NDArray[np.float64]
# Errors of a sum of k terms add up like a random walk; beyond so many times the root of k hardly ever.
_WALK = 8.0


class CertificateError(RuntimeError):
    """A lower bound above the value that it bounds, by more than rounding: a defect of the library."""


def unit_of_rounding(n_terms: int) -> float:
    """By which part of its terms' sizes a sum of so many may be off."""
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
