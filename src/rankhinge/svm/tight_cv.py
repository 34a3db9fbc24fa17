"""Choose the unit, the start, the tightness and the reach of the tight bound by cross-validation.

The search has two stages, each with warm starts. The first chooses the start: its own path over C is scored on the test
parts, in every unit of the features, and the best unit and kind of start continue. The second follows the tight bound
along a path of reaches from the best start, for all scales at once.

The paths are followed by descent alone: only the final fit is certified. All problems of all folds run in lockstep,
each with a start and a scale of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge.solvers import Tight
from rankhinge.svm._fitting import Unfinished, interrupts
from rankhinge.svm.folds import Batch
from rankhinge.svm.following import Path, Watch, along
from rankhinge.svm.logistic import fit_logistic
from rankhinge.svm.path import convex_path
from rankhinge.svm.policy import Grid, SearchPolicy
from rankhinge.svm.start import rescaled, unit_of_C
from rankhinge.svm.tuning import positive

__all__ = ["Effort", "Paths", "Point", "Starts", "choose", "follow_paths", "grid_of", "per_problem", "score_starts"]


class Effort(NamedTuple):
    """How much a search may do: its numbers, the tolerance and the iterations of a fit, and its display."""

    policy: SearchPolicy
    tol: float
    max_iter: int
    watch: Watch
    unfinished: Unfinished


class Starts(NamedTuple):
    """Starts of one kind: C (n_units, K, n_Cs), scores (n_units, K, n_Cs, n_folds), and coefficients.

    ``coefs[part, unit]`` is a list, for each C, of those of one part, (d,).
    """

    init: Any
    Cs: NDArray[np.float64]
    scores: NDArray[np.float64]
    coefs: dict[tuple[int, int], list[NDArray[np.float64]]]

    @property
    def units(self) -> list[int]:
        """The units in which this kind was tried."""
        return sorted({unit for _, unit in self.coefs})

    def best(self, unit: int) -> tuple[NDArray[np.int64], float]:
        """The place of each problem's best start, and how well these rank, averaged over folds and problems.

        A problem that no fold has judged has what suits the others in the median; -inf if there are none.
        """
        means = [_smooth(_counted(mine)).mean(axis=1) if _judged(mine) else None for mine in self.scores[unit]]
        places = [int(np.argmax(mean)) for mean in means if mean is not None]
        if not places:
            return np.zeros(len(means), np.int64), -np.inf
        other = int(np.median(places))
        best = np.array([other if mean is None else int(np.argmax(mean)) for mean in means])
        return best, float(np.mean([mean.max() for mean in means if mean is not None]))


class Paths(NamedTuple):
    """The tight bound from one start: scores (K, n_scales, n_reaches, n_folds), and coefficients.

    ``coefs[problem, scale]`` is a list over the folds of lists over the reaches, as far as they were reached.
    """

    scores: NDArray[np.float64]
    coefs: dict[tuple[int, int], list[list[NDArray[np.float64]]]]


class Point(NamedTuple):
    """A point of a path: which scale, and how far along it, from 0, the start itself."""

    scale: int
    place: int


def grid_of(values: Any, name: str, grid: Grid) -> NDArray[np.float64]:
    """The given values in ascending order, or that number of values of the grid. None: all values of the grid."""
    if values is None or isinstance(values, Integral):
        size = grid.size if values is None else int(values)
        # A single one lies in the middle.
        middle = (grid.low + grid.high) / 2
        chosen = np.logspace(grid.low, grid.high, size) if size > 1 else np.array([10.0**middle])
    else:
        chosen = np.asarray(values)
    if chosen.ndim != 1 or chosen.size == 0:
        raise ValueError(f"{name} must be one-dimensional and not empty, got an array of shape {chosen.shape}")
    return np.sort(positive(chosen, name))


def per_problem(values: Any, name: str, grid: Grid, units: NDArray[np.float64]) -> NDArray[np.float64]:
    """A grid for each problem, (K, n): values in the problem's unit, or those that were given as they are."""
    own = grid_of(values, name, grid)
    counted = values is None or isinstance(values, Integral)
    each: NDArray[np.float64] = (units if counted else np.ones_like(units))[:, None] * own
    return each


def score_starts(
    groups: Sequence[Batch], n_folds: int, init: Sequence[Any], Cs: NDArray[np.float64], effort: Effort
) -> Starts:
    """Score the starts of one kind on every fold, for each C (n_units, K, n_Cs).

    Parameters
    ----------
    groups : sequence of Batch
        Each part in each unit.
    init : sequence
        Of each unit: the kind of start, or coefficients (K, d) in that unit's coordinates.
    """
    scores = np.full((*Cs.shape, n_folds), np.nan)
    coefs: dict[tuple[int, int], list[NDArray[np.float64]]] = {}
    for group in groups:
        if effort.watch.ended is not None and coefs:
            break
        path = _starts(group, init, Cs[group.units, group.problems].T, effort)
        found = along(path, group.quality, Cs.shape[2], effort.watch, effort.policy.decline)
        if found.coefs:
            scores[group.units, group.problems, :, group.folds] = found.scores
        for c, run in enumerate(group.runs):
            coefs[run.part, run.unit] = [coef[:, c] for coef in found.coefs]
    return Starts(init[0] if isinstance(init[0], str) else None, Cs, scores, coefs)


def _starts(group: Batch, init: Sequence[Any], Cs: NDArray[np.float64], effort: Effort) -> Path:
    """Coefficients of the starts for each C, each begun where the one before ended."""
    objective, policy = group.objective, effort.policy
    if not isinstance(init[0], str):
        yield np.stack([init[unit][k] for unit, k in zip(group.units, group.problems, strict=True)], axis=1)
    elif init[0] == "convex":
        tol = policy.coarser * effort.tol
        yield from convex_path(
            objective, Cs, tol=tol, max_iter=effort.max_iter, watch=effort.watch, unfinished=effort.unfinished
        )
    else:
        coef: NDArray[np.float64] | None = None
        going: NDArray[np.int64] | None = None
        for C in Cs:
            coef = fit_logistic(objective, C, coef, going, policy.start_tol, policy.window, stop=effort.watch.step).coef
            going = yield coef


def follow_paths(
    groups: Sequence[Batch],
    n_folds: int,
    starts: Starts,
    scales: NDArray[np.float64],
    reaches: NDArray[np.float64],
    effort: Effort,
) -> Paths:
    """Score the tight bound along the reaches, from the best start of each problem, for its scales (K, n_scales).

    `groups` have a lane for each scale, in one unit.
    """
    K, n_scales = scales.shape
    scores = np.full((K, n_scales, reaches.size, n_folds), np.nan)
    coefs: dict[tuple[int, int], list[list[NDArray[np.float64]]]] = {}
    if effort.watch.over:
        return Paths(scores, coefs)
    try:
        with interrupts():
            centres = _centres(groups, starts, scales)
            units = _units(groups, centres, scales.shape)
    except KeyboardInterrupt:
        # The starts have their scores.
        effort.watch.interrupt()
        return Paths(scores, coefs)
    for group, centre in zip(groups, centres, strict=True):
        Cs = units[group.problems, group.lanes][:, None] * reaches
        path = _tight_path(group, centre, Cs, effort)
        found = along(path, group.quality, reaches.size, effort.watch, effort.policy.decline)
        if not found.coefs:
            break
        scores[group.problems, group.lanes, :, group.folds] = found.scores
        for c, (k, lane) in enumerate(zip(group.problems.tolist(), group.lanes.tolist(), strict=True)):
            coefs.setdefault((k, lane), []).append([coef[:, c] for coef in found.coefs])
        if effort.watch.ended is not None:
            break
    return Paths(scores, coefs)


def _centres(groups: Sequence[Batch], starts: Starts, scales: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """The best start of each run (d, m), group by group, as long as its scale says."""
    best, _ = starts.best(int(groups[0].units[0]))
    centres = []
    for group in groups:
        # Where the path of starts was cut short, the last is what there is.
        own = [starts.coefs[run.part, run.unit] for run in group.runs]
        start = np.stack([c[min(int(best[k]), len(c) - 1)] for c, k in zip(own, group.problems)], axis=1)
        centres.append(rescaled(group.objective, start, scales[group.problems, group.lanes])[0])
    return centres


def _units(groups: Sequence[Batch], centres: list[NDArray[np.float64]], shape: tuple[int, ...]) -> NDArray[np.float64]:
    """The unit of C of each problem and scale: the geometric mean over its folds; 1 for one without any."""
    sums, counts = np.zeros(shape), np.zeros(shape)
    for group, centre in zip(groups, centres, strict=True):
        place = (group.problems, group.lanes)
        scores = group.objective.score(centre, np.arange(group.objective.n_problems))
        np.add.at(sums, place, np.log(unit_of_C(group.objective, centre, scores)[0]))
        np.add.at(counts, place, 1.0)
    units: NDArray[np.float64] = np.exp(sums / np.maximum(counts, 1.0))
    return units


def _tight_path(group: Batch, centre: NDArray[np.float64], Cs: NDArray[np.float64], effort: Effort) -> Path:
    """Descents for each C of shape (m, n_Cs) in turn, each begun where the one before ended."""
    coef, policy = centre, effort.policy
    going: NDArray[np.int64] | None = None
    for C in Cs.T:
        solver = Tight(
            group.objective,
            C,
            centre=centre,
            start=coef,
            problems=going,
            tol=policy.step_tol,
            max_iter=policy.steps,
            certify=False,
        )
        coef = solver.run(effort.watch.step).coef
        going = yield coef


def choose(init_scores: NDArray[np.float64], scores: NDArray[np.float64], tolerated: float) -> Point:
    """The point for one problem, from the start's scores (n_folds,) and those of its paths (n_scales, length, n_folds).

    Of the path with the best score the point nearest to the start that is not worse by more than `tolerated` standard
    errors of the difference, taken fold by fold. The start counts as the first point of each path: pulled hardest.
    """
    best, level = Point(0, 0), -np.inf
    for scale, path in enumerate(scores):
        points = np.concatenate([init_scores[None, :], path])
        # As far as the path has come.
        counted = _smooth(_counted(points[~np.isnan(points).all(axis=1)]))
        if counted.size == 0:
            continue
        means = counted.mean(axis=1)
        top = int(np.argmax(means))
        if means[top] <= level:
            continue
        lost, n_folds = counted[top] - counted, counted.shape[1]
        error = lost.std(axis=1, ddof=1) / np.sqrt(n_folds) if n_folds > 1 else np.zeros(means.size)
        best, level = Point(scale, int(np.argmax(lost.mean(axis=1) <= tolerated * error))), float(means[top])
    return best


def _judged(scores: NDArray[np.float64]) -> bool:
    """Whether a fold has scores."""
    return _counted(scores).size > 0


def _counted(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores (length, n_folds) as far as a path has come, of the folds that have one at each point."""
    known = np.isfinite(scores)
    come = known.any(axis=1)
    return scores[come][:, known[come].all(axis=0)] if come.any() else scores[:0]


def _smooth(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values along a path, the first axis, with half the weight on the neighbours: a peak of one point is noise."""
    if len(values) == 0:
        return values
    padded = np.pad(values, [(1, 1)] + [(0, 0)] * (values.ndim - 1), mode="edge")
    smooth: NDArray[np.float64] = (padded[:-2] + 2.0 * padded[1:-1] + padded[2:]) / 4.0
    return smooth
