"""The units of the features that a search tries, and what stands for X in each of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge.features import WeightedColumns, feature_map
from rankhinge.objective.variance import variances_within
from rankhinge.problems import Lists
from rankhinge.svm.coordinates import Coordinates, weighted
from rankhinge.svm.units import EXPONENTS, Bearing, bearing_of, drowning, exponent_of, feature_scale

__all__ = ["Unit", "units_to_try"]


class Unit(NamedTuple):
    """The features in one unit: the exponent, σ, what they are like then, and what stands for X there."""

    exponent: float
    scale: NDArray[np.float64] | None
    bearing: Bearing
    X: Any
    coordinates: Coordinates

    @property
    def shares_X(self) -> bool:
        """Whether the unit is in the weights alone, so that a pass over X serves other units as well."""
        return self.coordinates.whole is None

    @property
    def columns(self) -> Any:
        """X without the unit."""
        return self.X.X if isinstance(self.X, WeightedColumns) else self.X

    @property
    def factors(self) -> NDArray[np.float64]:
        """What weights are multiplied with, (d,)."""
        return self.X.factors if isinstance(self.X, WeightedColumns) else np.ones(self.X.shape[1])


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
        units.append(Unit(exponent, sigma, bearing_of(variances, sigma), reduced, coordinates))
    return units, variances
