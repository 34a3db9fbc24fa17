"""The problems of all folds side by side, in every unit of the features that is tried.

A fold of a cross-validation is one more problem over the same features: its training part is a list of some of the
rows, its test part tells how well the scores rank the others. So folds need no copies of X, and share each pass over it
as the classes of a multiclass target do. So do settings that differ in the unit of the features: the unit goes to the
weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge.features import FeatureMap, WeightedColumns, feature_map
from rankhinge.losses import RankingLoss
from rankhinge.objective import RankingObjective, Scores
from rankhinge.objective.variance import variances_within
from rankhinge.problems import Lists
from rankhinge.svm.coordinates import Coordinates, weighted
from rankhinge.svm.lockstep import side_by_side
from rankhinge.svm.units import EXPONENTS, Bearing, bearing_of, drowning, exponent_of, feature_scale

__all__ = ["Batch", "Part", "Run", "Unit", "batches", "units_to_try"]


class Unit(NamedTuple):
    """The features in one unit: the exponent, σ, what they are like then, and what stands for X there.

    That is `columns`, multiplied with `factors` (d,).
    """

    exponent: float
    scale: NDArray[np.float64] | None
    bearing: Bearing
    X: Any
    coordinates: Coordinates
    columns: Any
    factors: NDArray[np.float64]


def units_to_try(
    X: Any, lists: Lists, standardize: Any, *, tight: bool, n_fits: int | None, centred: bool
) -> tuple[list[Unit], NDArray[np.float64]]:
    """The units, and the features' variances within the lists.

    By itself the convex bound takes features as they are: its C has the meaning that papers give it. The tight bound
    tries half way and standardised, and as they are where they seem to share a unit.

    Parameters
    ----------
    n_fits : int or None
        How many fits may share fewer coordinates; None: all columns stay.
    """
    variances = variances_within(feature_map(X), lists)
    exponents: tuple[float, ...] = (0.0,)
    if not isinstance(standardize, str):
        exponents = (float(standardize),)
    elif tight:
        mixed = exponent_of("auto", variances) == 1.0
        exponents = EXPONENTS if mixed or drowning(variances).size else (*EXPONENTS, 0.0)
    units: list[Unit] = []
    for exponent in exponents:
        sigma = feature_scale(variances, exponent)
        # Of columns that cannot be scaled there is one way only.
        if units and sigma is None and units[-1].scale is None:
            break
        reduced, coordinates = weighted(X, sigma, n_fits, centred=centred)
        columns, factors = reduced, np.ones(reduced.shape[1])
        if isinstance(reduced, WeightedColumns):
            columns, factors = reduced.X, reduced.factors
        units.append(Unit(exponent, sigma, bearing_of(variances, sigma), reduced, coordinates, columns, factors))
    return units, variances


class Part(NamedTuple):
    """One problem on one fold: the training part's lists, and how well scores (n,) of all samples rank the test part.

    `quality` is nan where the test part cannot be ranked.
    """

    problem: int
    fold: int
    lists: Lists
    quality: Callable[[NDArray[np.float64]], float]


class Run(NamedTuple):
    """A part, by its number, in one unit of the features, and what else is tried in the same passes: a lane."""

    part: int
    unit: int
    lane: int


class _InUnits(RankingObjective):
    """Problems whose features count in units of their own: the factors go to the weights, and one pass serves all."""

    def __init__(
        self,
        features: FeatureMap,
        problems: Sequence[Lists],
        loss: RankingLoss,
        factors: NDArray[np.float64],
        unit: NDArray[np.int64],
    ) -> None:
        super().__init__(features, problems, loss)
        # (d, n_units), and which of them each problem has.
        self._factors, self._unit = factors, unit

    def score(self, weights: NDArray[np.float64], problems: NDArray[np.int64]) -> Scores:
        return super().score(self._factors[:, self._unit[problems]] * weights, problems)

    def adjoint(self, coefficients: Scores) -> NDArray[np.float64]:
        slopes: NDArray[np.float64] = super().adjoint(coefficients)
        slopes *= self._factors[:, self._unit[coefficients.problems]]
        return slopes


class Batch:
    """Runs in lockstep.

    Attributes
    ----------
    objective : RankingObjective
        With a problem for each of the m runs.
    runs : list of Run
    problems, folds, units, lanes : ndarray of shape (m,)
        Where each run belongs.
    """

    def __init__(self, objective: RankingObjective, runs: Sequence[Run], parts: Sequence[Part]) -> None:
        self.objective, self.runs = objective, list(runs)
        self._parts = [parts[run.part] for run in runs]
        self.problems = np.array([part.problem for part in self._parts])
        self.folds = np.array([part.fold for part in self._parts])
        self.units = np.array([run.unit for run in runs])
        self.lanes = np.array([run.lane for run in runs])

    def quality(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """How well coefficients (d, m) rank the test parts, (m,): one pass over X."""
        rows = self.objective.score(coef, np.arange(len(self.runs))).values
        return np.array([part.quality(row) for part, row in zip(self._parts, rows, strict=True)])


def batches(units: Mapping[int, Unit], n_lanes: int, parts: Sequence[Part], loss: RankingLoss) -> list[Batch]:
    """Every part in each of the units (given by number), once per lane: side by side as far as memory allows."""
    # Where the unit is in the weights alone, a pass over X serves all units.
    shared = all(unit.coordinates.whole is None for unit in units.values())
    found = []
    for some in [list(units)] if shared else [[number] for number in units]:
        first = units[some[0]]
        features = feature_map(first.X if len(some) == 1 else first.columns)
        factors = np.stack([units[number].factors for number in some], axis=1)
        runs = [Run(part, unit, lane) for part in range(len(parts)) for unit in some for lane in range(n_lanes)]
        for group in side_by_side(features, len(runs)):
            mine = [runs[place] for place in group]
            lists = [parts[run.part].lists for run in mine]
            objective = RankingObjective(features, lists, loss)
            if len(some) > 1:
                which = np.array([some.index(run.unit) for run in mine])
                objective = _InUnits(features, lists, loss, factors, which)
            found.append(Batch(objective, mine, parts))
    return found
