r"""Quasi-Newton descent on cached scores, for functions of the scores that need not be convex or smooth.

For K problems in lockstep it lowers

.. math:: G(w) = \tfrac12 \|w - w^0\|^2 + C f(Xw)

where f is any function that the objective can evaluate with a subgradient in terms of scores. An iteration takes two
passes over the features, one for the scores of the direction and one for the gradient. The line search between them
works on scores, and may make as many inferences as it likes. Directions are those of the limited-memory BFGS
method with a line search for the weak Wolfe conditions, which copes well with functions that are not smooth
(Lewis and Overton 2013). No step raises G.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from rankhinge.solvers.protocol import Array, Evaluation, Handle, Indices, Objective, payloads_of

__all__ = ["Descent", "Known", "look"]


Evaluate: TypeAlias = Callable[[Handle], Evaluation]


class LineSearch(NamedTuple):
    """The weak Wolfe conditions, as textbooks have them, and where the search begins and ends."""

    sufficient: float = 1e-4
    curvature: float = 0.9
    # Points that are tried, at most.
    n_trials: int = 25
    # How far the first step goes, in parts of the length of w: nothing is known about the curvature yet.
    first_step: float = 0.1


LINE = LineSearch()


class Known(NamedTuple):
    """What is known of f at one point of each of m problems, so that it need not be evaluated there again.

    Attributes
    ----------
    problems : (m,)
    weights : (d, m)
    scores : handle
    value, loss : (m,)
        f, and the offset of its plane.
    slopes : (d, m)
        Of the planes.
    n_passes : int
        That it took to find out.
    payloads : callable
        What the plane of each column is to carry.
    reaches : (m,), optional
        As of `Plane`, for scores that were added up on the way there.
    """

    problems: Indices
    weights: Array
    scores: Handle
    value: Array
    loss: Array
    slopes: Array
    n_passes: int
    payloads: Callable[[int], Array | float] = lambda column: 0.0
    reaches: Array | None = None


def look(
    objective: Objective, evaluate: Evaluate, weights: Array, problems: Indices, scores: Handle | None = None
) -> Known:
    """The value of f and its slopes at some points (d, m), whose scores may be known: one pass or two."""
    n_passes = 1
    if scores is None:
        elsewhere = bool(weights.any())
        scores = objective.score(weights, problems) if elsewhere else objective.zeros(problems)
        n_passes += elsewhere
    found = evaluate(scores)
    slopes, payloads = objective.adjoint(found.coefficients), payloads_of(objective, found.coefficients)
    return Known(problems, weights, scores, found.value, found.loss, slopes, n_passes, payloads)


class Plane(NamedTuple):
    """Where f was evaluated last: ``offset + slope @ w``, which lies below f if that is convex.

    `value` is f there, `miss` by how much the plane misses it. `reach` is the length of the longest point so far, whose
    rounding the scores have inherited; `payload` is what the objective has it carry.
    """

    offset: float
    slope: Array
    value: float
    miss: float
    reach: float
    payload: Array | float = 0.0


def _plane(
    offset: float, slope: Array, w: Array, value: float, reach: float = 0.0, payload: Array | float = 0.0
) -> Plane:
    """The plane that was cut at w, where f is `value`; `reach` is that of the plane before."""
    miss = abs(offset + float(slope @ w) - value)
    return Plane(offset, slope, value, miss, max(reach, float(np.linalg.norm(w))), payload)


class _Found(NamedTuple):
    """A point of a line search: G, C f and f there, the step, the offset of f's plane and f's coefficients."""

    value: float
    loss: float
    bare: float
    step: float
    offset: float
    coefficients: Handle


@dataclass
class State:
    """One problem: its point, G and its gradient there, the plane of f, and what is known about the curvature.

    `pairs` are steps, changes of the gradient and their products; `recent` the last values.
    """

    w: Array
    value: float
    gradient: Array
    plane: Plane
    pairs: deque[tuple[Array, Array, float]]
    recent: deque[float]

    def direction(self) -> Array:
        """``-H g`` by the two-loop recursion (Nocedal 1980)."""
        # Changed in place: where features are many, new memory at each step would cost more than the sums.
        move, factors = -self.gradient, []
        for step, change, product in reversed(self.pairs):
            factors.append(step @ move / product)
            move -= factors[-1] * change
        if self.pairs:
            _, change, product = self.pairs[-1]
            move *= product / (change @ change)
        for (step, change, product), factor in zip(self.pairs, reversed(factors)):
            move += (factor - change @ move / product) * step
        return move

    def first_step(self, direction: Array) -> float:
        """Where the line search begins."""
        if self.pairs:
            return 1.0
        length, ahead = np.linalg.norm(self.w), np.linalg.norm(direction)
        if length > 0 and ahead > 0:
            return float(LINE.first_step * length / ahead)
        # From w = 0: no farther than to where a straight line would meet 0, below which nothing here goes.
        slope = -float(self.gradient @ direction)
        return min(1.0, self.value / slope) if slope > 0.0 < self.value else 1.0

    def move(self, w: Array, value: float, gradient: Array, plane: Plane) -> None:
        """Go to a new point, and learn from the change of the gradient."""
        step, change = w - self.w, gradient - self.gradient
        product = float(step @ change)
        if product > 1e-12 * np.linalg.norm(step) * np.linalg.norm(change):
            self.pairs.append((step, change, product))
        self.w, self.value, self.gradient, self.plane = w, value, gradient, plane
        self.recent.append(value)

    def settled(self, tol: float) -> bool:
        """Whether the last iterations have gained next to nothing."""
        full = len(self.recent) == self.recent.maxlen
        return full and self.recent[0] - self.recent[-1] <= tol * abs(self.recent[-1])


class _Trial:
    """The line search of one problem: bisection and doubling, for the weak Wolfe conditions.

    Along ``w + t p`` the term ½‖w − w⁰‖² is a parabola in t, known by three products. That is good enough to search by;
    from far away to near w⁰ it is a difference of numbers that are larger by orders of magnitude.
    """

    def __init__(self, state: State, direction: Array, away: Array) -> None:
        self.direction, self.step = direction, state.first_step(direction)
        self.value, self.slope = state.value, float(state.gradient @ direction)
        self.distance = 0.5 * float(away @ away)
        self.rise, self.bend = float(away @ direction), float(direction @ direction)
        self.low, self.high = 0.0, np.inf
        self.found: _Found | None = None
        self.done = not self.slope < 0.0

    def learn(self, loss: float, loss_slope: float, bare: float, offset: float, coefficients: Handle) -> None:
        """Narrow the bracket by the value and the slope of the loss, ``C f``, at the present step; `bare` is f."""
        value = self.distance + self.step * (self.rise + 0.5 * self.step * self.bend) + loss
        slope = self.rise + self.step * self.bend + loss_slope
        if not value <= self.value + LINE.sufficient * self.step * self.slope:
            self.high = self.step
        else:
            if self.found is None or value < self.found.value:
                self.found = _Found(value, loss, bare, self.step, offset, coefficients)
            self.low = self.step
            self.done = slope >= LINE.curvature * self.slope
        self.step = 2.0 * self.low if self.high == np.inf else 0.5 * (self.low + self.high)


class Descent:
    """Descent for some of an objective's problems, in lockstep.

    Parameters
    ----------
    objective : Objective
    evaluate : callable
        ``evaluate(scores)``: f and its subgradient for each column of a handle, as an `Evaluation`.
    C : (K,)
    centre : (d, K)
    start : Known
        Where it begins, and with which of the problems, ascending.
    tol : float
        A problem ends when the last iterations have lowered G by less than this part of it.
    n_pairs : int
        Pairs of steps and changes of the gradient that are kept.
    window : int
        How many iterations progress is judged over: a single one may be poor without much meaning.
    hopeful : bool
        Whether line searches are expected to end with their first point. Elsewhere its slopes then come along, until
        one does not: that saves a message each time, and costs a pass once.

    Attributes
    ----------
    active : (m,)
        Problems that have not ended.
    states : dict of State
        Of each problem.
    n_passes : int
        Since the start was known.
    """

    def __init__(
        self,
        objective: Objective,
        evaluate: Evaluate,
        C: Array,
        centre: Array,
        start: Known,
        *,
        tol: float,
        n_pairs: int = 12,
        window: int = 5,
        hopeful: bool = False,
    ) -> None:
        self.objective, self.evaluate, self.C, self.centre, self.tol = objective, evaluate, C, centre, tol
        self.active = self._scored = start.problems
        self._scores, self._hopeful = start.scores, hopeful and hasattr(objective, "expecting_slopes")
        self.n_passes = 0
        with np.errstate(over="ignore", invalid="ignore"):
            if not np.isfinite(np.linalg.norm(C[self.active] * start.slopes)):
                raise ValueError("the features are so large that squares of slopes overflow: scale them")
        self.states: dict[int, State] = {}
        reaches = np.zeros(self.active.size) if start.reaches is None else start.reaches
        for c, k in enumerate(self.active.tolist()):
            w, bare = start.weights[:, c].copy(), float(start.value[c])
            plane = _plane(float(start.loss[c]), start.slopes[:, c], w, bare, float(reaches[c]), start.payloads(c))
            away = w - centre[:, k]
            value = 0.5 * float(away @ away) + float(C[k]) * bare
            recent = deque([value], maxlen=window + 1)
            self.states[k] = State(w, value, away + C[k] * plane.slope, plane, deque(maxlen=n_pairs), recent)

    def step(self) -> None:
        """One iteration for all problems that have not ended."""
        states = [self.states[k] for k in self.active.tolist()]
        steepest = [not state.pairs for state in states]
        trials = [_Trial(s, s.direction(), s.w - self.centre[:, k]) for k, s in zip(self.active, states)]
        ahead = self._score(np.stack([trial.direction for trial in trials], axis=1))
        self._search(ahead, trials)
        moved = np.flatnonzero([trial.found is not None for trial in trials])
        if moved.size:
            self._move(moved, states, trials)
        steps = np.array([0.0 if trial.found is None else trial.found.step for trial in trials])
        self._scores = self.objective.along(self._scores, ahead, steps)
        ended = []
        for state, trial, was_steepest in zip(states, trials, steepest):
            if trial.found is None:
                # Curvature learnt elsewhere may mislead: forget it, and end only if the gradient itself does not help.
                state.pairs.clear()
            ended.append(state.settled(self.tol) if trial.found is not None else was_steepest)
        if any(ended):
            self.keep(~np.array(ended))

    def keep(self, going: np.ndarray) -> None:
        """Go on with these of the active problems only, (m,) bool."""
        self.active = self.active[going]
        # The last to end keep their scores, for those who continue from there.
        if self.active.size:
            self._scores = self.objective.select(self._scores, np.flatnonzero(going))
            self._scored = self.active

    def known(self, problems: Indices) -> Known | None:
        """What is known where these problems are; None if some have ended before others, and their scores are gone."""
        if not np.array_equal(problems, self._scored):
            return None
        states = [self.states[k] for k in problems.tolist()]
        planes = [state.plane for state in states]
        return Known(
            problems,
            weights=np.stack([state.w for state in states], axis=1),
            scores=self._scores,
            value=np.array([plane.value for plane in planes]),
            loss=np.array([plane.offset for plane in planes]),
            slopes=np.stack([plane.slope for plane in planes], axis=1),
            n_passes=0,
            payloads=[plane.payload for plane in planes].__getitem__,
            reaches=np.array([plane.reach for plane in planes]),
        )

    def _search(self, ahead: Handle, trials: list[_Trial]) -> None:
        """Line searches side by side: an inference for each that has not ended."""
        for number in range(LINE.n_trials):
            going = np.flatnonzero([not trial.done for trial in trials])
            if going.size == 0:
                return
            here, there = self._scores, ahead
            if going.size < len(trials):
                here, there = (self.objective.select(handle, going) for handle in (here, there))
            steps = np.array([trials[c].step for c in going])
            is_likely = number == 0 and self._ends_soon()
            with self._slopes_expected(is_likely):
                found = self.evaluate(self.objective.along(here, there, steps))
            along = self.objective.dots(found.coefficients, there)
            C = self.C[self.active[going]]
            for place, c in enumerate(going):
                u = found.coefficients
                u = u if going.size == 1 else self.objective.select(u, np.array([place]))
                value, slope = C[place] * found.value[place], C[place] * along[place]
                trials[c].learn(float(value), float(slope), float(found.value[place]), float(found.loss[place]), u)
            if is_likely and not trials[going[0]].done and getattr(found.coefficients, "slopes", None) is not None:
                # Slopes have come along, and are of no use.
                self.n_passes += 1
                self._hopeful = False

    def _ends_soon(self) -> bool:
        """Whether a line search is likely to end with its first point: not the one that learns how long steps are."""
        states = [self.states[k] for k in self.active.tolist()]
        return self._hopeful and len(states) == 1 and len(states[0].pairs) != 1

    def _slopes_expected(self, is_likely: bool) -> AbstractContextManager[Any]:
        return self.objective.expecting_slopes() if is_likely else nullcontext()  # type: ignore[attr-defined]

    def _move(self, moved: np.ndarray, states: list[State], trials: list[_Trial]) -> None:
        """Go where the line searches have led: one pass for the gradients there."""
        found = [trials[c].found for c in moved]
        coefficients = [one.coefficients for one in found]
        joined = coefficients[0] if len(found) == 1 else self.objective.join(coefficients)
        slopes, payloads = self.objective.adjoint(joined), payloads_of(self.objective, joined)
        self.n_passes += 1
        for place, (slope, one, c) in enumerate(zip(slopes.T, found, moved)):
            k, w = int(self.active[c]), states[c].w + one.step * trials[c].direction
            gradient = w - self.centre[:, k]
            value = 0.5 * float(gradient @ gradient) + one.loss
            gradient += self.C[k] * slope
            # Of its own: the slopes of all problems would stay as long as one of them.
            plane = _plane(one.offset, slope.copy(), w, one.bare, states[c].plane.reach, payloads(place))
            states[c].move(w, value, gradient, plane)

    def _score(self, weights: Array) -> Handle:
        if not weights.any():
            return self.objective.zeros(self.active)
        self.n_passes += 1
        return self.objective.score(weights, self.active)
