"""Choose the start, the tightness and the pull of the tight bound by cross-validation.

In three stages, each with warm starts. First the start alone: its own path over C is scored on the test parts, and
where there are two kinds of starts, the kind whose best ranks better goes on. Then the tight bound along a path over C,
at the middle scale, from the best start and from its neighbour with a smaller C (which leaves more to be gained). Last
the other scales from the better of the two. The paths are followed by descent alone: only the final fit is certified.
All problems of all folds run in lockstep, each with a start and a scale of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge.objective import RankingObjective
from rankhinge.solvers import Tight
from rankhinge.svm._fitting import Unfinished
from rankhinge.svm.folds import Batch
from rankhinge.svm.following import Path, along
from rankhinge.svm.logistic import fit_logistic
from rankhinge.svm.path import convex_path
from rankhinge.svm.results import Candidate
from rankhinge.svm.start import rescaled, unit_of_C
from rankhinge.svm.tuning import Tuning, positive

__all__ = [
    "NothingJudged",
    "ScoredStarts",
    "TightChoice",
    "TightGrid",
    "choose_tight",
    "grid_of",
    "n_points",
    "score_starts",
    "tight_grid",
]

# Of the descents along the paths: further steps would change the score by less than its noise.
_STEPS, _TOL, _WINDOW = 20, 1e-2, 2
_INIT_TOL = {"logistic": 1e-4, "convex": 1e-2}
_N_STARTS = 2
# Grids in their own units: C of the starts in `start.unit_of_init_C`, scale / N, and C in `start.unit_of_C`. Convex
# problems with a larger C take long, and as starts they have nothing over the others.
_INIT_CS = {"logistic": (-1.5, 1.5, 8), "convex": (-3.0, 1.0, 6)}
_TIGHTNESS = (-3.0, -2.0)
_REACHES, _N_REACHES = (-1.0, 1.5), 6
# In units of C: with this the fit stays at the start.
_STAY = 0.01
# How many values of C beyond the best of the middle scale the other scales are followed.
_BEYOND = 2


class TightGrid(NamedTuple):
    """What is tried: `init_Cs` (K, n_init_Cs), `scales` (K, n_scales) and `reaches` (n_reaches,), ascending.

    Reaches are multiples of the unit of C that belongs to a start and a scale.
    """

    init: Any
    init_Cs: NDArray[np.float64]
    scales: NDArray[np.float64]
    reaches: NDArray[np.float64]


class NothingJudged(Exception):
    """No fold of any problem has a score."""


class ScoredStarts(NamedTuple):
    """Starts of one kind: coefficients (d, m) for each batch and each C, and scores (K, n_init_Cs, n_folds)."""

    grid: TightGrid
    coefs: list[list[NDArray[np.float64]]]
    scores: NDArray[np.float64]

    @property
    def judged(self) -> NDArray[np.bool_]:
        """Which problems have a fold with a score, (K,)."""
        return np.array([_counted(mine).shape[1] > 0 for mine in self.scores])

    def best(self) -> tuple[NDArray[np.int64], float]:
        """The place of each problem's best start, and how well these rank, averaged over folds and problems.

        A problem that no fold has judged has what suits the others in the median.
        """
        if not self.judged.any():
            raise NothingJudged
        means = [_smooth(_counted(self.scores[k])).mean(axis=1) for k in np.flatnonzero(self.judged)]
        places = np.array([int(np.argmax(mean)) for mean in means])
        best = np.full(self.judged.size, int(np.median(places)))
        best[self.judged] = places
        return best, float(np.mean([mean.max() for mean in means]))


class TightChoice(NamedTuple):
    """The best of a grid for each problem, and the scores that led there.

    `judged` says which problems had a fold with a score; the others have what suits those in the median.
    `init_scores` has the shape (K, n_init_Cs, n_folds), `scores` (K, 2, n_scales, n_reaches, n_folds). The second axis
    is that of the two starts, the best and its neighbour; nan where nothing was tried. A path that was given up on some
    folds keeps its last score there. `candidates` are all of this as settings, those of each problem, and `chosen` is
    the place of the best among them.
    """

    tuning: Tuning
    judged: NDArray[np.bool_]
    init_scores: NDArray[np.float64]
    scores: NDArray[np.float64]
    candidates: list[list[Candidate]]
    chosen: list[int]


def grid_of(values: Any, name: str, low: float, high: float) -> NDArray[np.float64]:
    """Values given, in ascending order, or so many between two powers of ten."""
    if isinstance(values, Integral):
        # A single one lies in the middle.
        count = int(values)
        grid = np.logspace(low, high, count) if count > 1 else np.array([10.0 ** ((low + high) / 2)])
    else:
        grid = np.asarray(values)
    if grid.ndim != 1 or grid.size == 0:
        raise ValueError(f"{name} must be one-dimensional and not empty, got an array of shape {grid.shape}")
    return np.sort(positive(grid, name))


def tight_grid(
    init: Any,
    init_Cs: Any,
    scales: Any,
    reaches: Any,
    negatives: NDArray[np.float64],
    init_units: NDArray[np.float64],
) -> TightGrid:
    """The grid for problems with so many negatives and such units of the starts' C, (K,) each.

    What is given as an array is taken as it is.
    """
    low, high, count = _INIT_CS[init] if isinstance(init, str) else (0.0, 0.0, 1)
    init_Cs = count if init_Cs is None or not isinstance(init, str) else init_Cs
    starts = _per_problem(init_Cs, "init_Cs", low, high, init_units)
    widths = _per_problem(scales, "scales", *_TIGHTNESS, negatives)
    return TightGrid(init, starts, widths, grid_of(_N_REACHES if reaches is None else reaches, "reaches", *_REACHES))


def _per_problem(values: Any, name: str, low: float, high: float, units: NDArray[np.float64]) -> NDArray[np.float64]:
    """A grid for each problem, (K, n): so many values in the problem's unit, or those that were given."""
    grid = grid_of(values, name, low, high)
    each: NDArray[np.float64] = (units if isinstance(values, Integral) else np.ones_like(units))[:, None] * grid
    return each


def n_points(grids: list[TightGrid]) -> int:
    """Points of the paths that a search over these grids follows, at most: starts of all kinds, paths of one."""
    starts, pulls, scales = (
        sum(grid.init_Cs.shape[1] for grid in grids),
        grids[0].reaches.size,
        grids[0].scales.shape[1],
    )
    return starts + pulls * (_N_STARTS + scales - 1)


def score_starts(
    groups: list[Batch],
    n_folds: int,
    grid: TightGrid,
    *,
    tol: float,
    max_iter: int,
    watch: Callable[[], None],
    unfinished: Unfinished,
) -> ScoredStarts:
    """Score the starts of a grid, for each of its C, on every fold.

    Parameters
    ----------
    groups : list of Batch
        Each problem on each fold where it can be ranked.
    watch : callable
        Called after each point of a path.
    unfinished : Unfinished
        Takes note of convex starts that do not converge.
    """
    scores = np.full((*grid.init_Cs.shape, n_folds), np.nan)
    coefs: list[list[NDArray[np.float64]]] = []
    for group in groups:
        path = _starts(group, grid, tol, max_iter, unfinished)
        found = along(path, group.quality, grid.init_Cs.shape[1], watch)
        coefs.append(found.coefs)
        scores[group.problems, :, group.folds] = found.scores
    return ScoredStarts(grid, coefs, scores)


def choose_tight(
    groups: list[Batch], n_folds: int, starts: ScoredStarts, watch: Callable[[], None], tolerated: float
) -> TightChoice:
    """Score the tight bound from the best starts on every fold, and take the best point for each problem.

    `tolerated` is how much worse than the best a more regularised point may be, in standard errors.
    """
    grid, init_scores, judged = starts.grid, starts.scores, starts.judged
    K, n_scales = grid.scales.shape
    best, _ = starts.best()
    tried = np.maximum(best[:, None] - np.arange(_N_STARTS), 0)
    paths = _Paths(groups, starts.coefs, grid, n_folds, watch)
    # One scale decides on the start, and that start on the scale: not every pair is worth its passes.
    middle = n_scales // 2
    everybody = np.ones(K, np.bool_)
    for a in range(_N_STARTS):
        # The best start may be the first, which has no neighbour.
        paths.follow(
            tried, np.full(K, a), middle, grid.reaches.size, everybody if a == 0 else tried[:, a] != tried[:, 0]
        )
    chosen = [_choose(init_scores[k], paths.scores[k], tried[k], tolerated) for k in range(K)]
    better = np.array([point.start for point in chosen])
    # In its unit, the best C of one scale is not far from that of another.
    length = min(grid.reaches.size, max(point.top for point in chosen) + _BEYOND)
    for scale in set(range(n_scales)) - {middle}:
        paths.follow(tried, better, scale, length, everybody)
    chosen = [_choose(init_scores[k], paths.scores[k], tried[k], tolerated) for k in range(K)]
    points = _with_the_unjudged(chosen, judged)
    settings = [_settings(k, init_scores, tried, grid, paths) for k in range(K)]
    keys = [(p.start, p.scale, p.place) for p in points]
    tuning = _tuning([mine[key].params for mine, key in zip(settings, keys, strict=True)], grid.init)
    places = [list(mine).index(key) for mine, key in zip(settings, keys, strict=True)]
    candidates = [list(mine.values()) for mine in settings]
    return TightChoice(tuning, judged, init_scores, paths.scores, candidates, places)


class _Paths:
    """The tight bound along paths over C.

    Attributes
    ----------
    units : ndarray of shape (K, 2, n_scales)
        Of C, for each problem, start and scale; nan where there was no path.
    Cs : ndarray of shape (K, 2, n_scales, n_Cs)
    scores : ndarray of shape (K, 2, n_scales, n_Cs, n_folds)
    """

    def __init__(
        self,
        groups: list[Batch],
        starts: list[list[NDArray[np.float64]]],
        grid: TightGrid,
        n_folds: int,
        watch: Callable[[], None],
    ) -> None:
        self._groups, self._starts, self._grid, self._watch = groups, starts, grid, watch
        K, n_scales = grid.scales.shape
        self.units = np.full((K, _N_STARTS, n_scales), np.nan)
        self.Cs = np.full((*self.units.shape, grid.reaches.size), np.nan)
        self.scores = np.full((*self.Cs.shape, n_folds), np.nan)

    def follow(
        self,
        tried: NDArray[np.int64],
        slots: NDArray[np.int64],
        scale: int,
        length: int,
        wanted: NDArray[np.bool_],
    ) -> None:
        """Follow the paths of one scale, for the first `length` values of C, from start ``tried[k, slots[k]]`` each.

        `wanted` says for which problems (K,).
        """
        which, grid = tried[np.arange(slots.size), slots], self._grid
        concerned = [wanted[group.problems].any() for group in self._groups]
        groups = [group for group, counts in zip(self._groups, concerned, strict=True) if counts]
        starts = [coefs for coefs, counts in zip(self._starts, concerned, strict=True) if counts]
        centres = []
        for group, coefs in zip(groups, starts, strict=True):
            coef = np.stack([coefs[which[k]][:, c] for c, k in enumerate(group.problems)], axis=1)
            centres.append(rescaled(group.objective, coef, grid.scales[group.problems, scale]))
        if not groups:
            return
        unit, chosen = _units(groups, centres, slots.size), np.flatnonzero(wanted)
        self.units[chosen, slots[chosen], scale] = unit[chosen]
        Cs = unit[:, None] * grid.reaches
        self.Cs[chosen, slots[chosen], scale] = Cs[chosen]
        for group, centre in zip(groups, centres, strict=True):
            mine = group.problems
            going = np.flatnonzero(wanted[mine])
            path = _tight_path(group.objective, centre, Cs[mine, :length], going)
            found = along(path, group.quality, length, self._watch)
            mine, folds = mine[going], group.folds[going]
            self.scores[mine, slots[mine], scale, :length, folds] = found.scores[going]


def _units(groups: list[Batch], centres: list[NDArray[np.float64]], n_problems: int) -> NDArray[np.float64]:
    """The unit of C of each problem: the geometric mean over its folds; 1 for one without any."""
    problems = np.concatenate([group.problems for group in groups])
    logs = np.concatenate([np.log(unit_of_C(group.objective, centre)) for group, centre in zip(groups, centres)])
    sums, counts = np.bincount(problems, logs, n_problems), np.bincount(problems, minlength=n_problems)
    units: NDArray[np.float64] = np.exp(sums / np.maximum(counts, 1))
    return units


def _starts(group: Batch, grid: TightGrid, tol: float, max_iter: int, unfinished: Unfinished) -> Path:
    """Coefficients of the starts for each C, each begun where the one before ended."""
    objective = group.objective
    if not isinstance(grid.init, str):
        yield grid.init[group.problems].T.copy()
    elif grid.init == "convex":
        tol = max(tol, _INIT_TOL["convex"])
        Cs = grid.init_Cs[group.problems].T
        yield from convex_path(objective, Cs, tol=tol, max_iter=max_iter, unfinished=unfinished)
    else:
        coef: NDArray[np.float64] | None = None
        going: NDArray[np.int64] | None = None
        for C in grid.init_Cs[group.problems].T:
            coef = fit_logistic(objective, C, coef, going, _INIT_TOL["logistic"], _WINDOW).coef
            going = yield coef


def _tight_path(
    objective: RankingObjective, centre: NDArray[np.float64], Cs: NDArray[np.float64], problems: NDArray[np.int64]
) -> Path:
    """Descents of some problems for each C of shape (m, n_Cs) in turn, each begun where the one before ended."""
    coef: NDArray[np.float64] = centre
    going: NDArray[np.int64] | None = problems
    for C in Cs.T:
        options: dict[str, Any] = {"tol": _TOL, "max_iter": _STEPS, "window": _WINDOW, "certify": False}
        coef = Tight(objective, C, centre=centre, start=coef, problems=going, **options).run().coef
        still = yield coef
        going = problems if still is None else np.intersect1d(still, problems)


def _counted(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores without the folds, the last axis, that lack one."""
    return scores[..., np.isfinite(scores).reshape(-1, scores.shape[-1]).all(axis=0)]


def _smooth(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values along a path, the first axis, with half the weight on the neighbours: a peak of one point is noise."""
    padded = np.pad(values, [(1, 1)] + [(0, 0)] * (values.ndim - 1), mode="edge")
    smooth: NDArray[np.float64] = (padded[:-2] + 2.0 * padded[1:-1] + padded[2:]) / 4.0
    return smooth


class _Point(NamedTuple):
    """A point of the grid: which start, which scale, and how far along the path over C, from 0, the start itself.

    `top` is where on that path the best score was, without regard to noise, and `score` is that score.
    """

    start: int
    scale: int
    place: int
    top: int
    score: float


def _best(scores: NDArray[np.float64], tolerated: float) -> tuple[int, int, float]:
    """Which point of a path (length, n_folds) to take, which one is the best, and the mean score of that.

    Taken is the earliest, most regularised one that is not noticeably worse than the best: by so many standard errors
    of the difference, which is taken fold by fold (Breiman et al. 1984 allow one).
    """
    counted = _smooth(_counted(scores))
    n_folds = counted.shape[1]
    if n_folds == 0:
        return 0, 0, -np.inf
    means = counted.mean(axis=1)
    top = int(np.argmax(means))
    lost = counted[top] - counted
    error = lost.std(axis=1, ddof=1) / np.sqrt(n_folds) if n_folds > 1 else np.zeros(means.size)
    return int(np.argmax(lost.mean(axis=1) <= tolerated * error)), top, float(means[top])


def _choose(
    init_scores: NDArray[np.float64], scores: NDArray[np.float64], tried: NDArray[np.int64], tolerated: float
) -> _Point:
    """The point for one problem, from the paths that have scores.

    Along each path the start itself counts as the point before the first: pulled hardest.
    """
    # What stands for a problem that no fold has scored.
    best = _Point(0, 0, 0, 0, -np.inf)
    for a, start in enumerate(tried):
        for b in range(scores.shape[1]):
            if np.isnan(scores[a, b]).all():
                continue
            followed = scores[a, b][~np.isnan(scores[a, b]).all(axis=1)]
            place, top, score = _best(np.concatenate([init_scores[start][None, :], followed]), tolerated)
            if score > best.score:
                best = _Point(a, b, place, top, score)
    return best


def _with_the_unjudged(chosen: list[_Point], judged: NDArray[np.bool_]) -> list[_Point]:
    """The points, with the median of the others for problems that no fold has judged.

    Units of C and numbers of negatives differ from problem to problem, but not so much the places in the grid.
    """
    known = [point for point, is_judged in zip(chosen, judged, strict=True) if is_judged]
    scale, place = (int(np.median([getattr(point, name) for point in known])) for name in ("scale", "place"))
    return [
        p if is_judged else p._replace(scale=scale, place=place) for p, is_judged in zip(chosen, judged, strict=True)
    ]


def _settings(
    k: int, init_scores: NDArray[np.float64], tried: NDArray[np.int64], grid: TightGrid, paths: _Paths
) -> dict[tuple[int, int, int], Candidate]:
    """The points of problem k's paths as settings, by start, scale and place; place 0 is the start itself.

    That is a reach so small that the fit stays there.
    """
    found = {}
    for a, b in np.ndindex(paths.units.shape[1:]):
        path = paths.Cs[k, a, b]
        if np.isnan(path).all():
            continue
        reaches = [min(_STAY, 0.1 * grid.reaches[0]), *grid.reaches]
        scores = [init_scores[k, tried[k, a]], *paths.scores[k, a, b]]
        for place, (reach, score) in enumerate(zip(reaches, scores, strict=True)):
            params: dict[str, Any] = {"reach": float(reach), "scale": float(grid.scales[k, b])}
            if isinstance(grid.init, str):
                params |= {"init": grid.init, "init_C": float(grid.init_Cs[k, tried[k, a]])}
            found[a, b, place] = Candidate(params, score)
    return found


def _tuning(params: list[dict[str, Any]], init: Any) -> Tuning:
    """What the chosen settings stand for."""
    reach, scale, init_C = (np.array([mine.get(name, 1.0) for mine in params]) for name in ("reach", "scale", "init_C"))
    return Tuning("auto", reach, scale, init_C, init)
