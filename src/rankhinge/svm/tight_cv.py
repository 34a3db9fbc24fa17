"""Choose the start, the tightness and the pull of the tight bound by cross-validation.

In three stages, each with warm starts. First the start alone: its own path over C is scored on the test parts. Then the
tight bound along a path over C, at the middle scale, from the best start and from its neighbour with a smaller C (which
leaves more to be gained). Last the other scales from the better of the two. The paths are followed by descent alone:
only the final fit is certified. All problems run in lockstep, each with a start and a scale of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge.objective import RankingObjective
from rankhinge.solvers import Tight
from rankhinge.svm._base import Tuning
from rankhinge.svm.logistic import fit_logistic
from rankhinge.svm.path import walk_path
from rankhinge.svm.tight import find_start, rescaled

__all__ = ["Fold", "TightChoice", "TightGrid", "choose_tight", "grid_of", "tight_grid"]

# Of the descent for each point of the grid: further steps would change the score by less than its noise.
_STEPS, _TOL = 20, 1e-2
_N_STARTS = 2
# Grids in their own units: C of the starts, scale / N, and C / scale².
_INIT_CS = {"logistic": (-4.0, 1.0, 11), "convex": (-1.0, 5.0, 8)}
_TIGHTNESS = (-2.0, -1.0)
_PULLS = (-2.0, 2.0)
# A path ends when the last two points are so much worse, in parts of the best score: it has begun to overfit.
_DECLINE = 0.02
# How many values of C beyond the best of the middle scale the other scales are followed.
_BEYOND = 1


class Fold(NamedTuple):
    """A training part, and how well coefficients (d, m) rank the test part.

    `problems` says which of the K problems the m of the objective are; `quality` gives m numbers, nan where the test
    part cannot be ranked.
    """

    objective: RankingObjective
    problems: NDArray[np.int64]
    quality: Callable[[NDArray[np.float64]], NDArray[np.float64]]


class TightGrid(NamedTuple):
    """What is tried: `init_Cs` (n_starts,), `scales` (K, n_scales) and `Cs` (K, n_scales, n_Cs), ascending."""

    init: Any
    init_Cs: NDArray[np.float64]
    scales: NDArray[np.float64]
    Cs: NDArray[np.float64]


class TightChoice(NamedTuple):
    """The best of a grid for each problem, and the scores that led there.

    `init_scores` has the shape (K, n_init_Cs, n_folds), `scores` (K, 2, n_scales, n_Cs, n_folds): its second axis
    is that of the two starts, the best and its neighbour.
    """

    tuning: Tuning
    init_scores: NDArray[np.float64]
    scores: NDArray[np.float64]


def grid_of(values: Any, name: str, low: float, high: float) -> NDArray[np.float64]:
    """Values given, in ascending order, or so many between two powers of ten."""
    grid = np.logspace(low, high, values) if isinstance(values, Integral) else np.asarray(values, dtype=np.float64)
    if grid.ndim != 1 or grid.size == 0 or not (np.isfinite(grid).all() and np.min(grid) > 0):
        raise ValueError(f"{name} must be positive and finite, got {values!r}")
    return np.sort(grid)


def tight_grid(init: Any, init_Cs: Any, scales: Any, Cs: Any, negatives: NDArray[np.float64]) -> TightGrid:
    """The grid for problems with so many negatives; what is given as an array is taken as it is."""
    low, high, count = _INIT_CS.get(init, (0.0, 0.0, 1)) if isinstance(init, str) else (0.0, 0.0, 1)
    starts = grid_of(count if init_Cs is None or not isinstance(init, str) else init_Cs, "init_Cs", low, high)
    widths = grid_of(scales, "scales", *_TIGHTNESS)
    widths = negatives[:, None] * widths if isinstance(scales, Integral) else np.tile(widths, (negatives.size, 1))
    pulls = grid_of(Cs, "Cs", *_PULLS)
    if isinstance(Cs, Integral):
        return TightGrid(init, starts, widths, widths[:, :, None] ** 2 * pulls)
    return TightGrid(init, starts, widths, np.tile(pulls, (*widths.shape, 1)))


def choose_tight(
    folds: Callable[[int], Fold | None], n_folds: int, grid: TightGrid, *, tol: float, max_iter: int
) -> TightChoice:
    """Score the grid on every fold, and take the best point for each problem.

    Parameters
    ----------
    folds : callable
        ``folds(i)``: fold i, or None if nothing in it can be ranked. It is called again for each part of the search:
        training parts are not kept.
    """
    K, n_scales, n_Cs = grid.Cs.shape
    init_scores = np.full((K, grid.init_Cs.size, n_folds), np.nan)
    starts: list[list[NDArray[np.float64]]] = []
    for place in range(n_folds):
        fold = folds(place)
        starts.append([])
        if fold is not None:
            found = _along(_starts(fold, grid, tol, max_iter), fold.quality, grid.init_Cs.size)
            starts[place], init_scores[fold.problems, :, place] = found
    best = [int(np.argmax(_smooth(_counted(init_scores[k])).sum(axis=1))) for k in range(K)]
    tried = np.array([[a, max(a - 1, 0)] for a in best])
    scores = np.full((K, _N_STARTS, n_scales, n_Cs, n_folds), np.nan)
    # One scale decides on the start, and that start on the scale: not every pair is worth its passes.
    middle, everywhere = n_scales // 2, np.arange(K)
    for a in range(_N_STARTS):
        _score_paths(folds, starts, grid, tried[:, a], np.full(K, a), middle, n_Cs, scores)
    chosen = [_choose(init_scores[k], scores[k], tried[k]) for k in range(K)]
    better = np.array([point.start for point in chosen])
    # C is measured in the square of the scale: the best of one scale is not far from that of another.
    length = min(n_Cs, max(point.top for point in chosen) + _BEYOND)
    for place in set(range(n_scales)) - {middle}:
        _score_paths(folds, starts, grid, tried[everywhere, better], better, place, length, scores)
    chosen = [_choose(init_scores[k], scores[k], tried[k]) for k in range(K)]
    return TightChoice(_tuning(chosen, tried, grid), init_scores, scores)


def _score_paths(
    folds: Callable[[int], Fold | None],
    starts: list[list[NDArray[np.float64]]],
    grid: TightGrid,
    which: NDArray[np.int64],
    slots: NDArray[np.int64],
    scale: int,
    length: int,
    scores: NDArray[np.float64],
) -> None:
    """Fill in the scores of one scale, with start ``which[k]`` of each problem in the place ``slots[k]``.

    Beyond the first `length` values of C the path is not followed.
    """
    for place in range(scores.shape[-1]):
        fold = folds(place)
        if fold is None:
            continue
        mine = fold.problems
        coef = np.stack([starts[place][which[k]][:, c] for c, k in enumerate(mine)], axis=1)
        centre = rescaled(fold.objective, coef, grid.scales[mine, scale])
        path = _tight_path(fold.objective, centre, grid.Cs[mine, scale, :length])
        scores[mine, slots[mine], scale, :, place] = _along(path, fold.quality, grid.Cs.shape[2])[1]


def _starts(fold: Fold, grid: TightGrid, tol: float, max_iter: int) -> Iterator[NDArray[np.float64]]:
    """Coefficients of the starts for each C, each begun where the one before ended."""
    objective = fold.objective
    if not isinstance(grid.init, str):
        part = np.asarray(grid.init, dtype=np.float64)
        part = part if part.ndim == 1 else part[fold.problems]
        yield find_start(part, objective, grid.init_Cs, tol=tol, max_iter=max_iter, random_state=None).coef
    elif grid.init == "convex":
        for result in walk_path(objective, grid.init_Cs, tol=tol, max_iter=max_iter):
            yield result.coef
    else:
        coef = None
        for C in grid.init_Cs:
            coef, _ = fit_logistic(objective, np.full(objective.n_problems, C), coef)
            yield coef


def _tight_path(
    objective: RankingObjective, centre: NDArray[np.float64], Cs: NDArray[np.float64]
) -> Iterator[NDArray[np.float64]]:
    """Descents for each C of shape (m, n_Cs) in turn, each begun where the one before ended."""
    coef = centre
    for C in Cs.T:
        coef = Tight(objective, C, centre=centre, start=coef, tol=_TOL, max_iter=_STEPS, certify=False).run().coef
        yield coef


def _along(
    path: Iterator[NDArray[np.float64]], quality: Callable[[NDArray[np.float64]], NDArray[np.float64]], length: int
) -> tuple[list[NDArray[np.float64]], NDArray[np.float64]]:
    """Coefficients and scores (m, length) along a path; it ends early where every problem has begun to overfit.

    The points after that get the last coefficients and scores.
    """
    coefs: list[NDArray[np.float64]] = []
    scores: list[NDArray[np.float64]] = []
    for coef in path:
        coefs.append(coef)
        scores.append(quality(coef))
        if len(scores) > 2:
            so_far = np.array(scores)
            worse = so_far[-2:] < (1.0 - _DECLINE) * so_far.max(axis=0)
            if np.all(worse | np.isnan(so_far[-2:])):
                break
    missing = length - len(scores)
    return coefs + [coefs[-1]] * missing, np.array(scores + [scores[-1]] * missing).T


def _counted(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scores without the folds, the last axis, that lack one."""
    return scores[..., ~np.isnan(scores).reshape(-1, scores.shape[-1]).any(axis=0)]


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


def _best(scores: NDArray[np.float64]) -> tuple[int, int, float]:
    """Which point of a path (length, n_folds) to take, which one is the best, and the mean score of that.

    Taken is the earliest, most regularised one that is not noticeably worse than the best: by no more than the
    standard error of the difference, which is taken fold by fold (the one-standard-error rule of Breiman et al. 1984).
    """
    counted = _smooth(_counted(scores))
    n_folds = counted.shape[1]
    if n_folds == 0:
        return 0, 0, -np.inf
    means = counted.mean(axis=1)
    top = int(np.argmax(means))
    lost = counted[top] - counted
    error = lost.std(axis=1, ddof=1) / np.sqrt(n_folds) if n_folds > 1 else np.zeros(means.size)
    return int(np.argmax(lost.mean(axis=1) <= error)), top, float(means[top])


def _choose(init_scores: NDArray[np.float64], scores: NDArray[np.float64], tried: NDArray[np.int64]) -> _Point:
    """The point for one problem, from the paths that have scores.

    Along each path the start itself counts as the point before the first: pulled hardest.
    """
    # If no fold could be scored, the caller says so.
    best = _Point(0, 0, 0, 0, -np.inf)
    for a, start in enumerate(tried):
        for b in range(scores.shape[1]):
            if np.isnan(scores[a, b]).all():
                continue
            place, top, score = _best(np.concatenate([init_scores[start][None, :], scores[a, b]]))
            if score > best.score:
                best = _Point(a, b, place, top, score)
    return best


def _tuning(chosen: list[_Point], tried: NDArray[np.int64], grid: TightGrid) -> Tuning:
    """What the points stand for; the start itself is the least C of the path, ten times smaller."""
    C = [
        grid.Cs[k, p.scale, p.place - 1] if p.place > 0 else 0.1 * grid.Cs[k, p.scale, 0] for k, p in enumerate(chosen)
    ]
    scale = [grid.scales[k, p.scale] for k, p in enumerate(chosen)]
    init_C = [grid.init_Cs[tried[k, p.start]] for k, p in enumerate(chosen)]
    return Tuning(*(np.array(values) for values in (C, scale, init_C)))
