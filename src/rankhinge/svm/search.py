"""The search over a grid that `RankSVCCV` and `SVMRankerCV` share: C along warm-started paths, for either bound."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from numbers import Integral
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from rankhinge._progress import Progress
from rankhinge.features import feature_map
from rankhinge.losses import get_loss
from rankhinge.objective.variance import variances_within
from rankhinge.problems import Lists
from rankhinge.svm._base import LinearRankingMachine
from rankhinge.svm._fitting import Unfinished, warn_user
from rankhinge.svm.coordinates import Coordinates, weighted
from rankhinge.svm.fit import Seen
from rankhinge.svm.folds import Batch, Part, batches
from rankhinge.svm.following import along
from rankhinge.svm.path import convex_path
from rankhinge.svm.results import Candidate, summary
from rankhinge.svm.start import given_start, unit_of_init_C, warn_of_units
from rankhinge.svm.tight_cv import NothingJudged, choose_tight, grid_of, n_points, score_starts, tight_grid
from rankhinge.svm.tuning import Tuning
from rankhinge.svm.units import EXPONENTS, Bearing, bearing_of, feature_scale

__all__ = ["GRIDS", "PATHS", "TUNED", "Search"]

# What is a number without cross-validation, and a grid with it.
TUNED = ("C", "reach", "scale", "init_C", "max_time", "warm_start")
GRIDS: dict[str, list[Any]] = {
    "Cs": [Interval(Integral, 1, None, closed="left"), "array-like", None],
    "reaches": [Interval(Integral, 1, None, closed="left"), "array-like", None],
    "scales": [Interval(Integral, 1, None, closed="left"), "array-like"],
    "init": [StrOptions({"auto", "logistic", "convex"}), "array-like"],
    "init_Cs": [Interval(Integral, 1, None, closed="left"), "array-like", None],
    "scoring": [str, callable, None],
}

# How many fits a path is worth, at least, where it is asked whether fewer coordinates are worth finding.
PATHS = 2

_SPAN, _N_CS = (-1.0, 5.0), 8
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


class Unit(NamedTuple):
    """The features in one unit: the exponent, σ, what they are like then, what stands for X there, and the folds."""

    exponent: float
    scale: NDArray[np.float64] | None
    bearing: Bearing
    X: Any
    coordinates: Coordinates
    groups: list[Batch]


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

    # How much worse than the best a point nearer to the start of the tight bound may be, in standard errors.
    _tolerated: ClassVar[float]

    def _search(self, X: Any, lists: Lists, parts: list[Part], n_folds: int, problems: Problems) -> tuple[Any, Tuning]:
        """What stands for X, and what suits each problem best, judged by the folds.

        Features are measured in `lists`.
        """
        if not parts:
            raise ValueError(_NO_TRAINING)
        search = self._search_tight if self._bound == "tight" else self._search_convex
        with Progress(self.verbose, ("point", "of at most")) as progress:
            steps = count(1)

            def watch(n_points: int) -> None:
                # Paths that have begun to overfit are given up.
                progress.update(**{"point": float(next(steps)), "of at most": float(n_points)})

            return search(self._units(X, lists, parts), n_folds, problems, watch)

    def _units(self, X: Any, lists: Lists, parts: list[Part]) -> list[Unit]:
        """X in each unit that is to be tried; a start that is given may lie beside the space of the rows."""
        tight = self._bound == "tight"
        given = tight and not isinstance(self.init, str)
        variances = variances_within(feature_map(X), lists)
        exponents: tuple[float, ...] = (float(self.standardize),) if not isinstance(self.standardize, str) else (0.0,)
        if tight and isinstance(self.standardize, str):
            exponents = EXPONENTS
        units: list[Unit] = []
        for exponent in exponents:
            sigma = feature_scale(variances, exponent)
            # Of columns that cannot be scaled there is one way only.
            if sigma is None and units:
                break
            if sigma is None and tight:
                warn_of_units(variances, getattr(self, "feature_names_in_", None))
            centred = self._ranks_only and get_loss(self.loss).is_ranking
            reduced, coordinates = weighted(X, sigma, None if given else PATHS * len(parts), centred=centred)
            groups = batches(feature_map(reduced), parts, get_loss(self.loss))
            units.append(Unit(exponent, sigma, bearing_of(variances, sigma), reduced, coordinates, groups))
        return units

    def _take(self, unit: Unit) -> Seen:
        """Go on in this unit; what stands for X there."""
        self.standardize_ = unit.exponent
        scale = np.ones(self.n_features_in_) if unit.scale is None else unit.scale
        return Seen(unit.X, unit.coordinates, scale, unit.bearing)

    def _warn_of_unjudged(self, judged: NDArray[np.bool_], problems: Problems) -> None:
        """Warn of the problems for which no fold has a score."""
        unjudged = [name for (name, lists), known in zip(problems.items(), judged) if lists is not None and not known]
        if unjudged:
            warn_user(
                f"labels {unjudged[:10]} have no fold with positives and negatives in "
                "each of its parts: they are fitted with what suits the others, in the median"
            )

    def _search_convex(
        self, units: list[Unit], n_folds: int, problems: Problems, watch: Callable[[int], None]
    ) -> tuple[Any, Tuning]:
        """C of each problem by the scores along the folds' paths: the smallest with the highest mean."""
        K, groups = len(problems), units[0].groups
        X = self._take(units[0])
        Cs = grid_of(_N_CS if self.Cs is None else self.Cs, "Cs", *_SPAN)
        scores, reached = np.full((K, Cs.size, n_folds), np.nan), np.full(K, Cs.size)
        unfinished = Unfinished()
        for group in groups:
            path = convex_path(group.objective, Cs, tol=self.tol, max_iter=self.max_iter, unfinished=unfinished)
            # Large C take by far the most passes: they are left out once smaller ones have turned out to be better.
            found = along(path, group.quality, Cs.size, partial(watch, len(groups) * Cs.size), group.problems)
            scores[group.problems, :, group.folds] = found.scores
            # Folds that do not fit into memory together are given up apart: only what all have seen can be compared.
            counts = np.isfinite(found.scores).all(axis=1)
            np.minimum.at(reached, group.problems[counts], found.reached[counts])
        judged = np.array([bool(_scored(mine).any()) for mine in scores])
        if not judged.any():
            raise ValueError(_NO_TEST)
        unfinished.warn("the search")
        self._warn_of_unjudged(judged, problems)
        chosen = np.zeros(K, np.intp)
        for k in np.flatnonzero(judged):
            chosen[k] = np.argmax(scores[k][: reached[k], _scored(scores[k])].mean(axis=1))
        chosen[~judged] = int(np.median(chosen[judged]))
        self.Cs_, self.scores_ = Cs, scores if K > 1 else scores[0]
        tried = [[Candidate({"C": float(C)}, row) for C, row in zip(Cs, mine, strict=True)] for mine in scores]
        self.__dict__.update(summary(tried, chosen.tolist(), list(problems)))
        return X, Tuning(C=Cs[chosen])

    def _inits(self, n_problems: int, n_features: int) -> tuple[Any, ...]:
        """The kinds of starts to try, or the start that was given."""
        if not isinstance(self.init, str):
            return (given_start(self.init, n_problems, n_features),)
        if self.init != "auto":
            return (self.init,)
        if not (self.init_Cs is None or isinstance(self.init_Cs, Integral)):
            raise ValueError("init_Cs are those of one kind of start: give init='logistic' or 'convex' with them")
        return ("logistic", "convex")

    def _search_tight(
        self, units: list[Unit], n_folds: int, problems: Problems, watch: Callable[[int], None]
    ) -> tuple[Any, Tuning]:
        """Unit, reach, scale and C of the start of each problem; the unit is the same for all."""
        K = len(problems)
        negatives = np.array([1.0 if lists is None else lists.n_negatives() for lists in problems.values()])
        asked = np.array([lists is not None for lists in problems.values()])
        n_samples = np.array([lists.offsets[-1] for lists in problems.values() if lists is not None])
        ways = []
        for unit in units:
            for init in self._inits(K, self.n_features_in_):
                size = np.ones(K)
                if self.init_Cs is None or isinstance(self.init_Cs, Integral):
                    size[asked] = unit_of_init_C(init, n_samples, unit.bearing)
                start = init if isinstance(init, str) else unit.coordinates.inside(init)
                ways.append((unit, tight_grid(start, self.init_Cs, self.scales, self.reaches, negatives, size)))
        unfinished = Unfinished()
        watched = partial(watch, len(units[0].groups) * n_points([grid for _, grid in ways]))
        options = {"tol": self.tol, "max_iter": self.max_iter, "watch": watched, "unfinished": unfinished}
        try:
            starts = [score_starts(unit.groups, n_folds, grid, **options) for unit, grid in ways]
            # The first of those that rank equally well.
            best = max(range(len(starts)), key=lambda place: starts[place].best()[1])
            chosen, unit = starts[best], ways[best][0]
            choice = choose_tight(unit.groups, n_folds, chosen, watched, self._tolerated)
        except NothingJudged:
            raise ValueError(_NO_TEST) from None
        unfinished.warn("the search for a start")
        self._warn_of_unjudged(choice.judged, problems)
        grid = chosen.grid
        X, self.reaches_ = self._take(unit), grid.reaches
        found = {"scales_": grid.scales, "scores_": choice.scores, "init_scores_": choice.init_scores}
        if isinstance(grid.init, str):
            self.init_ = grid.init
            found["init_Cs_"] = grid.init_Cs
        for name, values in found.items():
            setattr(self, name, values if K > 1 else values[0])
        tried = [
            [known._replace(params=known.params | {"standardize": unit.exponent}) for known in mine]
            for mine in choice.candidates
        ]
        self.__dict__.update(summary(tried, choice.chosen, list(problems)))
        return X, choice.tuning._replace(init=grid.init if isinstance(grid.init, str) else self.init)
