r"""Which unit a feature counts in, and how much the data can bear: what a fit needs to be right without tuning.

The regularisation :math:`\tfrac12 \|\sigma \circ w\|^2` compares features by their scale σ. With the standard deviation
for σ, features are standardised; with 1 they count as they measure; in between, :math:`\sigma_j = \mathrm{sd}_j^p`. A
table in mixed units (years beside dollars) has to be standardised: else a column or two hold all the variance, and the
others count for nothing. Embeddings, pixels, words and fingerprints share a unit, and there the variance of a column
says something about its worth. How many columns share the variance,

.. math:: e = \frac{(\sum_j \mathrm{sd}_j^2)^2}{\sum_j \mathrm{sd}_j^4},

tells the two from each other: below about 30, standardise; above, take the square root.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge.problems import Lists

__all__ = ["EXPONENTS", "Bearing", "bearing_of", "effective", "exponent_of", "feature_scale", "n_positives"]

# Columns that share the variance: fewer are told to be in mixed units. On 62 problems, narrow and wide, the place
# hardly mattered between 20 and 60.
_COMMON_UNIT = 30.0
# What a search tries: half way, and standardised.
EXPONENTS = (0.5, 1.0)
# Positives for each effective feature at which the fit may move as far as the start is from 0, and the least and the
# farthest that it may: fits to fewer positives than features hardly leave the start.
_POSITIVES_A_FEATURE, _LEAST_REACH, _MOST_REACH = 30.0, 0.03, 1.0
# Variance of the scores that the start's prior allows: samples for each effective feature over this, within these.
_SAMPLES_A_FEATURE, _LEAST_SPREAD, _MOST_SPREAD = 3.0, 3.0, 30.0


class Bearing(NamedTuple):
    """What the features of a fit are like, in the unit they count in: their variances' sum, and how many share it."""

    variance: float
    effective: float

    def reach(self, lists: Lists) -> float:
        """How far a fit to these lists may move from its start, where nothing else is asked for."""
        wanted = n_positives(lists) / (_POSITIVES_A_FEATURE * self.effective)
        return float(np.clip(wanted, _LEAST_REACH, _MOST_REACH))

    def spread(self, lists: Lists) -> float:
        """Variance of the scores by the prior of the start, where nothing else is asked for."""
        n_samples = int(lists.offsets[-1])
        return float(np.clip(n_samples / (_SAMPLES_A_FEATURE * self.effective), _LEAST_SPREAD, _MOST_SPREAD))


def effective(variances: NDArray[np.float64]) -> float:
    """How many features share the variance: d if all have the same, 1 if one has it all."""
    largest = np.max(variances, initial=0.0)
    if not (largest > 0 and np.isfinite(largest)):
        return 1.0
    # By the largest: squares of squares overflow.
    shares = variances / largest
    return float(shares.sum() ** 2 / np.sum(shares**2))


def exponent_of(standardize: Any, variances: NDArray[np.float64]) -> float:
    """The p of ``σ = sd^p``: 1 to standardise, 0 to take features as they are; ``"auto"`` asks the variances."""
    if isinstance(standardize, str):
        return 1.0 if effective(variances) < _COMMON_UNIT else 0.5
    return float(standardize)


def feature_scale(variances: NDArray[np.float64], exponent: float) -> NDArray[np.float64] | None:
    """σ of each feature; None if all count as they are. Features that do not vary have 1."""
    varies = variances > np.finfo(np.float64).tiny
    if exponent == 0.0 or not varies.any() or not np.isfinite(variances).all():
        return None
    return np.where(varies, np.where(varies, variances, 1.0) ** (exponent / 2), 1.0)


def bearing_of(variances: NDArray[np.float64], scale: NDArray[np.float64] | None) -> Bearing:
    """What features with these variances are like, once they are divided by the scale."""
    own = variances if scale is None else variances / scale**2
    with np.errstate(over="ignore"):
        return Bearing(float(own.sum()), effective(own))


def n_positives(lists: Lists) -> int:
    """Samples that are relevant at all, in all lists."""
    return max(int(np.count_nonzero(level.relevant)) for level in lists.levels)
