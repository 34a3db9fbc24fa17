r"""What a solver asks of an objective, and what it gives back.

For K problems that share their features, problem k is

.. math:: \min_w \; P(w) = \tfrac12 \|w - w^0_k\|^2 + C_k J_k(w)
          \quad \text{subject to } a_i \cdot w \ge c_i,

with :math:`J_k \ge 0` convex and piecewise linear. A solver never sees samples. It sees *handles*,
whose columns belong to problems: scores (linear in w) and coefficients (a subgradient in terms of
scores). Where they live, in this process or on a cluster, is the objective's business. A pass over the features is
expensive. Two calls make one, ``score`` and ``adjoint``; all others work on scores.

A **plane** is a pair (b, g) with :math:`J(w) \ge b + g \cdot w` for every w, exact at the w at which
it was cut. It does not depend on C or on the centre.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rankhinge.solvers.certificate import Carrying

__all__ = [
    "Evaluation",
    "Handle",
    "Objective",
    "PayloadObjective",
    "Planes",
    "SolverResult",
    "SpanObjective",
    "TightObjective",
    "payloads_of",
]

Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.int64]
Handle: TypeAlias = Any
"""Scores or coefficients, or a span; opaque to the solver. Column c of scores belongs to one problem."""


class Evaluation(Protocol):
    """Inference at some scores: ``value = loss + coefficients . scores``, column by column.

    ``value`` is J, shape (m,); ``loss`` is the offset b of the plane, shape (m,); ``coefficients``
    is a handle, or None if it was not asked for.
    """

    @property
    def value(self) -> Array: ...

    @property
    def loss(self) -> Array: ...

    @property
    def coefficients(self) -> Handle | None: ...


class Objective(Protocol):
    """J of K problems: all that a solver cannot do without, wherever the samples lie.

    Handles with m columns stand for m problems, or for fewer with repeats. Two calls are **passes** over the features,
    whatever m is; on workers each of the others is a message or none. Scores are linear in the weights, and each handle
    comes from `score` and `zeros` by `along` and `select`: lost values can be recomputed from the weights.
    """

    n_samples: int
    n_features: int
    n_problems: int
    width: float
    """Entries of X for each sample, d unless it is sparse: what a pass costs, where vectors cost d."""

    def score(self, weights: Array, problems: Indices) -> Handle:
        """Scores at the columns of `weights`, shape (d, m). **One pass**."""

    def adjoint(self, coefficients: Handle) -> Array:
        """The planes' slopes g, shape (d, m). **One pass**."""

    def zeros(self, problems: Indices) -> Handle:
        """``score(0, problems)`` without a pass."""

    def along(self, scores: Handle, ahead: Handle, steps: Array) -> Handle:
        """``scores + steps * ahead``, with a step (m,) for each column."""

    def select(self, handle: Handle, places: Indices) -> Handle:
        """Some columns of scores or coefficients."""

    def join(self, handles: Sequence[Handle]) -> Handle:
        """The columns of several handles, one after the other; for coefficients."""

    def evaluate(self, scores: Handle, coefficients: bool = True) -> Evaluation:
        """Inference for each column: O(n) work or a little more."""

    def dots(self, coefficients: Handle, scores: Handle) -> Array:
        """``u . s``, column by column, shape (m,)."""


@runtime_checkable
class SpanObjective(Objective, Protocol):
    """What the rounds of the bundle solver also need: the scores of many directions at hand.

    Without it the bundle solver opens with quasi-Newton steps and continues with plain cuts: on a cluster, a round
    would be thousands of messages. A *span* is a handle of another kind: the scores of T directions of each problem,
    for points in the space that these span. No call is a pass.
    """

    def span(self, scores: Handle, capacity: int) -> Handle:
        """A span of one direction for each column, which is to be widened up to `capacity` of them."""

    def mix(self, span: Handle, coordinates: Array) -> Handle:
        """Scores of one point for each problem of a span, by its coordinates (m, T)."""

    def slopes(self, coefficients: Handle, span: Handle) -> Array:
        """``u . s_i`` of each problem with each of its directions in a span, shape (m, T)."""

    def widen(self, span: Handle, scores: Handle) -> Handle:
        """The span with r more directions for each problem, by their scores, problem by problem.

        The span given may be used up.
        """

    def narrow(self, span: Handle, weights: Array) -> Handle:
        """The span with a first direction combined, by weights (m, t), of the t oldest, which it replaces.

        The span given may be used up.
        """

    def split(self, coefficients: Handle, n_parts: int, generator: np.random.Generator) -> Handle:
        """Coefficients as sums of parts: the positive and the negative ones, each cut into `n_parts` at random.

        The result has ``2 * n_parts`` columns a problem, problem by problem.
        """


class TightObjective(Objective, Protocol):
    """An objective that also has a tight bound, ``T(s) = J(s) - H(s)`` with H convex."""

    def evaluate_tight(self, scores: Handle, coefficients: bool = True) -> Evaluation:
        """T and a subgradient of J less one of H, for each column. No pass."""

    def reference(self, scores: Handle) -> Evaluation:
        """H and a subgradient of it. No pass."""

    def evaluate_against(self, scores: Handle, reference: Handle, coefficients: bool = True) -> Evaluation:
        """``J(s) - r . s`` for the coefficients r of each problem that `reference` holds. No pass."""


class PayloadObjective(Protocol):
    """An objective whose planes carry a payload, with which they can be moved when the objective changes."""

    def payload_width(self, problem: int) -> int:
        """How many numbers a plane of this problem carries."""

    def payloads(self, coefficients: Handle) -> list[Array]:
        """What the plane of each column is to carry, (width,) each. No pass."""


def payloads_of(objective: Objective, coefficients: Handle) -> Callable[[int], Array | float]:
    """What the plane of each column is to carry; nothing, unless it is a `PayloadObjective`."""
    if not hasattr(objective, "payloads"):
        return lambda column: 0.0
    found: list[Array] = objective.payloads(coefficients)
    return found.__getitem__


@dataclass(frozen=True)
class Planes:
    """Cutting planes of one problem, ``J(w) >= offsets + slopes @ w``, to start another fit with.

    Attributes
    ----------
    offsets : (t,)
    slopes : (t, d)
    misses, reaches : (t,), optional
        As of `Carrying`; 0 if they are not known.
    payloads : (t, width), optional
        What the objective has them carry.
    """

    offsets: Array
    slopes: Array
    misses: Array | None = None
    reaches: Array | None = None
    payloads: Array | None = None

    def seen_from(self, w: Array) -> Carrying:
        """What the certificate asks of the planes if a fit ends at w, (d,)."""
        unknown = np.zeros_like(self.offsets)
        misses, reaches = (unknown if known is None else known for known in (self.misses, self.reaches))
        return Carrying(self.offsets, self.slopes @ w, misses, reaches)


@dataclass(frozen=True)
class SolverResult:
    """What a solver reaches; usable at any time, also after an interrupt.

    Attributes
    ----------
    coef : (d, K)
        The best w found.
    objective : (K,)
        ``P(coef)``; inf where no feasible w was found or none evaluated.
    dual_objective : (K,)
        A lower bound on the minimum.
    gap : (K,)
        ``(objective - dual_objective) / objective``.
    tolerated : (K,)
        By how much the tolerance of hard constraints may have raised the lower bound.
    carrying : tuple of K Carrying
        The planes that the lower bounds rest on.
    n_iter : (K,) int
    n_passes : float
        Passes over the features, of all problems together; blocks and rows count in proportion.
    history : dict of (K, iterations)
        ``primal`` (best so far, never rises), ``dual`` (never falls; for the tight bound that of the present convex
        problem, nan while there is none), ``gap``, ``time`` (seconds) and ``passes``; the rows of problems that have
        ended continue with their last values.
    status : (K,) str
        ``converged``, ``max_iter``, ``stalled``, ``infeasible``, ``interrupted``, ``stopped``, ``time``, ``running``
        or, for problems that were not asked for, ``left out``.
    message : str
    """

    coef: Array
    objective: Array
    dual_objective: Array
    gap: Array
    tolerated: Array
    carrying: tuple[Carrying, ...]
    n_iter: Indices
    n_passes: float
    history: dict[str, Array]
    status: NDArray[np.str_]
    message: str
