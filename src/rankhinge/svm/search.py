"""The search over a grid that `RankSVCCV` and `SVMRankerCV` share: C along warm-started paths, for either bound."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from rankhinge._progress import Progress
from rankhinge.losses import get_loss
from rankhinge.problems import Lists
from rankhinge.solvers import Deadline
from rankhinge.svm._base import LinearRankingMachine
from rankhinge.svm._fitting import Unfinished, warn_user
from rankhinge.svm.fit import Seen
from rankhinge.svm.folds import Part, Unit, batches, units_to_try
from rankhinge.svm.following import OF, POINT, Watch, along
from rankhinge.svm.path import convex_path
from rankhinge.svm.policy import Grid, SearchPolicy
from rankhinge.svm.results import Candidate, summary
from rankhinge.svm.start import given_start, unit_of_init_C, warn_of_units
from rankhinge.svm.tight_cv import (
    Effort,
    Paths,
    Point,
    Starts,
    choose,
    follow_paths,
    grid_of,
    per_problem,
    score_starts,
)
from rankhinge.svm.tuning import Reached, Tuning

__all__ = ["GRIDS", "TUNED", "Search"]

# Parameters that are numbers without cross-validation and grids with it.
TUNED = ("C", "reach", "scale", "init_C", "checkpoint", "warm_start")
GRIDS: dict[str, list[Any]] = {
    "Cs": [Interval(Integral, 1, None, closed="left"), "array-like", None],
    "reaches": [Interval(Integral, 1, None, closed="left"), "array-like", None],
    "scales": [Interval(Integral, 1, None, closed="left"), "array-like"],
    "init": [StrOptions({"auto", "logistic", "convex"}), "array-like"],
    "init_Cs": [Interval(Integral, 1, None, closed="left"), "array-like", None],
    "scoring": [str, callable, None],
    "max_time": [Interval(Real, 0, None, closed="neither"), None],
}


_NO_TEST = (
    "no fold has both a positive and a negative in its training part and in its test part, or scoring returned nan: "
    "use fewer folds, or other ones; with a single positive (lists: a single query that has both) there are none"
)
_NO_TRAINING = "no fold has both a positive and a negative in its training part: use other folds, or more samples"


Problems: TypeAlias = dict[Any, Lists | None]
"""The lists of each label; None if it cannot be ranked."""


def _scored(scores: NDArray[np.float64]) -> NDArray[np.bool_]:
    """The folds, the last axis, that have a score everywhere."""
    return np.all(np.isfinite(scores).reshape(-1, scores.shape[-1]), axis=0)


class _Ways(NamedTuple):
    """What the starts of the tight bound have found: those of the best kind, and the number of the best unit."""

    starts: Starts
    unit: int
    # Of all kinds, for the table.
    all: list[Starts]


class Search(LinearRankingMachine):
    """The search over the grid, for machines that can make folds."""

    Cs_: NDArray[np.float64]
    reaches_: NDArray[np.float64]
    standardize_: float
    scores_: NDArray[np.float64]
    scales_: NDArray[np.float64]
    init_: str
    init_Cs_: NDArray[np.float64]
    init_scores_: NDArray[np.float64]
    best_index_: Any
    best_params_: dict[str, Any]
    best_score_: float
    cv_results_: dict[str, Any]
    n_splits_: int

    _policy: ClassVar[SearchPolicy]

    @contextmanager
    def _search(
        self, X: Any, lists: Lists, parts: list[Part], n_folds: int, problems: Problems
    ) -> Iterator[tuple[Seen, Tuning]]:
        """What stands for X, and what suits each problem best, judged by the folds, for a fit within the block.

        Features are measured in `lists`. Ctrl-C ends the search, not the block: it is passed on behind it.
        """
        if not parts:
            raise ValueError(_NO_TRAINING)
        whole = Deadline.after(self.max_time)
        with Progress(self.verbose, (POINT, OF), patience=self._policy.patience) as progress:
            watch = Watch(progress, whole.earlier(self._policy.share))
            effort = Effort(self._policy, self.tol, self.max_iter, watch, Unfinished())
            search = self._search_tight if self._bound == "tight" else self._search_convex
            seen, tuning = search(self._units(X, lists, parts), parts, n_folds, problems, effort)
        if watch.ended == "interrupted":
            yield seen, tuning._replace(deadline=Deadline(-np.inf, "interrupted"))
            raise KeyboardInterrupt
        if watch.ended is not None:
            watch.warn(self._policy.share, self.max_time)
        yield seen, tuning._replace(deadline=whole)

    def _units(self, X: Any, lists: Lists, parts: list[Part]) -> list[Unit]:
        """X in each unit that is to be tried; a start that is given may lie beside the space of the rows."""
        tight = self._bound == "tight"
        given = tight and not isinstance(self.init, str)
        units, variances = units_to_try(
            X,
            lists,
            self.standardize,
            tight=tight,
            n_fits=None if given else self._policy.fits_a_path * len(parts),
            centred=self._ranks_only and get_loss(self.loss).is_ranking,
        )
        if tight and units[0].scale is None:
            warn_of_units(variances, getattr(self, "feature_names_in_", None))
        return units

    def _take(self, unit: Unit) -> tuple[Seen, dict[str, Any]]:
        """What stands for X in the chosen unit, and the first of the attributes that tell of the search."""
        scale = np.ones(self.n_features_in_) if unit.scale is None else unit.scale
        return Seen(unit.X, unit.coordinates, scale, unit.bearing), {"standardize_": unit.exponent}

    def _check_judged(self, judged: NDArray[np.bool_], problems: Problems, effort: Effort) -> None:
        """Raise if no fold has a score, warn of the problems for which none has, and of fits that did not end."""
        if not judged.any():
            raise KeyboardInterrupt if effort.watch.ended == "interrupted" else ValueError(_NO_TEST)
        effort.unfinished.warn("the search")
        unjudged = [name for (name, lists), known in zip(problems.items(), judged) if lists is not None and not known]
        if unjudged and effort.watch.ended is None:
            warn_user(
                f"labels {unjudged[:10]} have no fold with positives and negatives in "
                "each of its parts: they are fitted with the median of what suits the other labels"
            )

    def _search_convex(
        self, units: list[Unit], parts: list[Part], n_folds: int, problems: Problems, effort: Effort
    ) -> tuple[Seen, Tuning]:
        """C of each problem by the scores along the folds' paths: the smallest with the highest mean."""
        K, policy, watch = len(problems), effort.policy, effort.watch
        (seen, table), groups = self._take(units[0]), batches({0: units[0]}, 1, parts, get_loss(self.loss))
        Cs = grid_of(self.Cs, "Cs", policy.Cs)
        scores, reached = np.full((K, Cs.size, n_folds), np.nan), np.full(K, Cs.size)
        coefs: dict[int, list[list[NDArray[np.float64]]]] = {k: [] for k in range(K)}
        watch.n_expected = len(groups) * Cs.size
        watch.stage("path over C")
        options: dict[str, Any] = {"watch": watch, "unfinished": effort.unfinished}
        options["passes"] = policy.passes if self.Cs is None else np.inf
        for group in groups:
            if watch.over and np.isfinite(scores).any():
                break
            path = convex_path(group.objective, Cs, tol=policy.coarser * self.tol, max_iter=self.max_iter, **options)
            # Large C take by far the most passes: they are left out once smaller ones have turned out to be better.
            found = along(path, group.quality, Cs.size, watch, policy.decline, group.problems)
            if not found.coefs:
                break
            scores[group.problems, :, group.folds] = found.scores
            for c, k in enumerate(group.problems.tolist()):
                coefs[k].append([coef[:, c] for coef in found.coefs])
            # Folds that do not fit into memory together are given up apart: only what all have seen can be compared.
            counts = np.isfinite(found.scores[:, 0])
            np.minimum.at(reached, group.problems[counts], found.reached[counts])
        judged = np.array([bool(_scored(mine[:1]).any()) for mine in scores])
        self._check_judged(judged, problems, effort)
        chosen = np.zeros(K, np.intp)
        for k in np.flatnonzero(judged):
            mine = scores[k][: reached[k]]
            # As far as all have come.
            mine = mine[np.isfinite(mine[:, _scored(mine[:1])]).all(axis=1)]
            chosen[k] = np.argmax(mine[:, _scored(mine)].mean(axis=1))
        chosen[~judged] = int(np.median(chosen[judged]))
        table |= {"Cs_": Cs, "scores_": scores if K > 1 else scores[0]}
        tried = [[Candidate({"C": float(C)}, row) for C, row in zip(Cs, mine, strict=True)] for mine in scores]
        table |= summary(tried, chosen.tolist(), list(problems))
        reached_coef = None
        if watch.ended == "interrupted":
            reached_coef = Reached(_means(coefs, chosen, seen.X.shape[1]), None)
        return seen, Tuning(C=Cs[chosen], reached=reached_coef, found=table)

    def _inits(self, n_problems: int, n_features: int) -> tuple[Any, ...]:
        """The kinds of starts to try, or the start that was given."""
        if not isinstance(self.init, str):
            return (given_start(self.init, n_problems, n_features),)
        if self.init != "auto":
            return (self.init,)
        if not (self.init_Cs is None or isinstance(self.init_Cs, Integral)):
            raise ValueError("init_Cs is for one kind of start: pass init='logistic' or 'convex' with it")
        return ("logistic", "convex")

    def _search_tight(
        self, units: list[Unit], parts: list[Part], n_folds: int, problems: Problems, effort: Effort
    ) -> tuple[Seen, Tuning]:
        """Unit, reach, scale and C of the start of each problem; the unit is the same for all."""
        policy, watch, loss = effort.policy, effort.watch, get_loss(self.loss)
        negatives = np.array([1.0 if lists is None else lists.n_negatives() for lists in problems.values()])
        scales = per_problem(self.scales, "scales", policy.tightness, negatives)
        reaches = grid_of(self.reaches, "reaches", policy.reaches)
        ways = self._score_starts(units, parts, n_folds, problems, reaches.size, effort)
        unit = units[ways.unit]
        watch.stage("tight bound")
        groups = batches({ways.unit: unit}, scales.shape[1], parts, loss)
        paths = follow_paths(groups, n_folds, ways.starts, scales, reaches, effort)
        best, _ = ways.starts.best(ways.unit)
        judged = np.isfinite(ways.starts.scores[ways.unit]).any(axis=(1, 2))
        self._check_judged(judged, problems, effort)
        init_scores = ways.starts.scores[ways.unit]
        judges = [
            choose(init_scores[k, best[k]], paths.scores[k], policy.tolerated) if judged[k] else None
            for k in range(len(problems))
        ]
        points = _with_the_unjudged(judges)
        seen, found = self._take(unit)
        each = {"scales_": scales, "scores_": paths.scores, "init_scores_": init_scores}
        if ways.starts.init is not None:
            found["init_"], each["init_Cs_"] = ways.starts.init, ways.starts.Cs[ways.unit]
        found |= {name: values if len(problems) > 1 else values[0] for name, values in each.items()}
        table = _Table(units, ways, best, scales, reaches, paths, policy.stay)
        rows = [table.rows(k) for k in range(len(problems))]
        places = [table.place(k, point) for k, point in enumerate(points)]
        found |= {"reaches_": reaches} | summary(rows, places, list(problems))
        params = [mine[place].params for mine, place in zip(rows, places, strict=True)]
        reach, scale, init_C = (
            np.array([mine.get(name, 1.0) for mine in params]) for name in ("reach", "scale", "init_C")
        )
        init = self.init if ways.starts.init is None else ways.starts.init
        reached = _reached(ways, best, paths, points, seen.X.shape[1], parts) if watch.ended == "interrupted" else None
        return seen, Tuning("auto", reach, scale, init_C, init, reached=reached, found=found)

    def _score_starts(
        self, units: list[Unit], parts: list[Part], n_folds: int, problems: Problems, n_reaches: int, effort: Effort
    ) -> _Ways:
        """Starts of the first kind in all units, of the others in the best of these, and the best of all."""
        K, policy, watch = len(problems), effort.policy, effort.watch
        asked = np.array([lists is not None for lists in problems.values()])
        n_samples = np.array([lists.offsets[-1] for lists in problems.values() if lists is not None])
        groups = batches(dict(enumerate(units)), 1, parts, get_loss(self.loss))
        kinds = self._inits(K, self.n_features_in_)
        grids = []
        for init in kinds:
            named = isinstance(init, str)
            grid = policy.init_Cs[init] if named else Grid(0.0, 0.0, 1)
            values = self.init_Cs if named else None
            of_units = []
            for unit in units:
                size = np.ones(K)
                size[asked] = unit_of_init_C(init, n_samples, unit.bearing)
                of_units.append(per_problem(values, "init_Cs", grid, size))
            grids.append(np.stack(of_units))
        watch.n_expected = len(groups) * (grids[0].shape[2] + n_reaches) + sum(Cs.shape[2] for Cs in grids[1:])
        watch.stage("starts")
        tried: list[Starts] = []
        for init, Cs in zip(kinds, grids, strict=True):
            if watch.over and tried:
                break
            if tried:
                # Which unit suits the features is asked once, of the first kind, which is cheaper.
                suited = max(range(len(units)), key=lambda number: tried[0].best(number)[1])
                groups = batches({suited: units[suited]}, 1, parts, get_loss(self.loss))
            own = [init if isinstance(init, str) else unit.coordinates.inside(init) for unit in units]
            tried.append(score_starts(groups, n_folds, own, Cs, effort))
        # The first of those that rank equally well; by units, then by kinds.
        order = [(number, kind) for number in range(len(units)) for kind in range(len(tried))]
        best, kind = max(order, key=lambda way: tried[way[1]].best(way[0])[1])
        return _Ways(tried[kind], best, tried)


class _Table(NamedTuple):
    """The settings of a search of the tight bound, as rows of `cv_results_`: all starts, then the paths' points.

    A start stands for a reach so small that the fit stays there.
    """

    units: list[Unit]
    ways: _Ways
    best: NDArray[np.int64]
    scales: NDArray[np.float64]
    reaches: NDArray[np.float64]
    paths: Paths
    stay: float

    def rows(self, k: int) -> list[Candidate]:
        """Those of problem k."""
        stay, middle = min(self.stay, 0.1 * self.reaches[0]), float(self.scales[k, self._middle])
        found = []
        for starts in self.ways.all:
            for unit, place in product(starts.units, range(starts.Cs.shape[2])):
                found.append(self._row(k, starts, unit, place, float(stay), middle, starts.scores[unit, k, place]))
        starts, unit, place = self.ways.starts, self.ways.unit, int(self.best[k])
        for scale, reach in np.ndindex(*self.paths.scores.shape[1:3]):
            setting = float(self.reaches[reach]), float(self.scales[k, scale])
            found.append(self._row(k, starts, unit, place, *setting, self.paths.scores[k, scale, reach]))
        return found

    def place(self, k: int, point: Point) -> int:
        """Where a point of problem k is among the rows."""
        before = 0
        for starts in self.ways.all:
            n_Cs = starts.Cs.shape[2]
            if point.place == 0 and starts is self.ways.starts:
                return int(before + starts.units.index(self.ways.unit) * n_Cs + self.best[k])
            before += len(starts.units) * n_Cs
        return before + point.scale * self.reaches.size + point.place - 1

    @property
    def _middle(self) -> int:
        return self.scales.shape[1] // 2

    def _row(
        self, k: int, starts: Starts, unit: int, place: int, reach: float, scale: float, scores: NDArray[np.float64]
    ) -> Candidate:
        params: dict[str, Any] = {"reach": reach, "scale": scale}
        if starts.init is not None:
            params |= {"init": starts.init, "init_C": float(starts.Cs[unit, k, place])}
        return Candidate(params | {"standardize": self.units[unit].exponent}, scores)


def _with_the_unjudged(points: list[Point | None]) -> list[Point]:
    """The points, with the median of the others for problems that no fold has judged.

    Units of C and numbers of negatives differ from problem to problem, but not so much the places in the grid.
    """
    known = [point for point in points if point is not None]
    other = Point(*(int(np.median([point[i] for point in known])) for i in range(2)))
    return [other if point is None else point for point in points]


def _means(
    coefs: dict[int, list[list[NDArray[np.float64]]]], places: NDArray[np.intp], n_features: int
) -> NDArray[np.float64]:
    """Of each problem the mean over the folds of the coefficients at one place, (d, K); 0 where there are none."""
    found = np.zeros((n_features, len(coefs)))
    for k, folds in coefs.items():
        mine = [path[min(int(places[k]), len(path) - 1)] for path in folds if path]
        if mine:
            found[:, k] = np.mean(mine, axis=0)
    return found


def _reached(
    ways: _Ways,
    best: NDArray[np.int64],
    paths: Paths,
    points: list[Point],
    n_features: int,
    parts: list[Part],
) -> Reached:
    """Where an interrupt has left the search: the means over the folds of the best starts, and of the best points."""
    K = len(points)
    starts: dict[int, list[list[NDArray[np.float64]]]] = {k: [] for k in range(K)}
    for (part, unit), coefs in ways.starts.coefs.items():
        if unit == ways.unit:
            starts[parts[part].problem].append(coefs)
    centre = _means(starts, best, n_features)
    moved = {k: paths.coefs.get((k, point.scale), []) if point.place else [] for k, point in enumerate(points)}
    coef = _means(moved, np.array([max(point.place - 1, 0) for point in points]), n_features)
    return Reached(coef if all(moved.values()) else None, centre)
