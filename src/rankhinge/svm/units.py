r"""The unit of the features and the strength of a fit: defaults that make a fit right without tuning.

The regularisation :math:`\tfrac12 \|\sigma \circ w\|^2` compares features by their scale σ. With the standard deviation
for σ, features are standardised; with 1 they count as they measure; in between, :math:`\sigma_j = \mathrm{sd}_j^p`.

A table in mixed units (years beside dollars) has to be standardised: otherwise one or two columns hold all the
variance, and the others count for nothing. Embeddings, pixels, words and fingerprints share a unit, and there the
variance of a column says something about its worth. How many columns share the variance once they are standardised by a
quarter, with :math:`p = \tfrac14`,

.. math:: e = \frac{(\sum_j \mathrm{sd}_j^{3/2})^2}{\sum_j \mathrm{sd}_j^3},

tells the two from each other: below about 30, standardise; above, half-way it is. (Not of the raw variances: a few
frequent words hold most of the variance of counts, though all are in one unit.)
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["EXPONENTS", "UNTUNED", "Bearing", "bearing_of", "drowning", "effective", "exponent_of", "feature_scale"]

# What a search tries: half way, and standardised.
EXPONENTS = (0.5, 1.0)


class Untuned(NamedTuple):
    """Defaults, set on problems outside the tables (see the design notes)."""

    # Columns that share the variance, standardised by a quarter: fewer are told to be in mixed units. Tables in mixed
    # units have up to 13, pixels, words and embeddings 32 and more; with the raw variances, or half-way, the two kinds
    # overlap.
    common_unit: float = 30.0
    # The power of a variance that is left once its feature is divided by a quarter's power of its deviation.
    quarter: float = 0.75
    # Positives for each effective feature at which the fit may move as far as the start is from 0, and the least and
    # the farthest that it may: fits to fewer positives than features hardly leave the start.
    positives_a_feature: float = 30.0
    least_reach: float = 0.03
    most_reach: float = 1.0
    # For several lists, however many positives they have: on 17 problems a reach of 1 ranked worse than the start.
    reach_of_lists: float = 0.1
    # Variance of the scores that the start's prior allows: samples for each effective feature over this, within these.
    samples_a_feature: float = 3.0
    least_spread: float = 3.0
    most_spread: float = 30.0
    # The scale of the start's scores, in numbers of negatives.
    tightness: float = 1 / 100
    # C of a convex start.
    convex_C: float = 100.0


class Drowning(NamedTuple):
    """When features drown the others.

    If, with none above so many times the median, the variances would add up to so much less, and if the largest is that
    far above the median. With words of texts, pixels or frequent categories the sum shrinks by factors of 1 to 3; the
    variances of rare categories are a thousandth of others, and still they are in the same unit.
    """

    large: float = 10.0
    less: float = 30.0
    apart: float = 5000.0


UNTUNED, DROWNING = Untuned(), Drowning()


class Bearing(NamedTuple):
    """What the features of a fit are like, in the unit they count in: their variances' sum, and how many share it."""

    variance: float
    effective: float

    def reach(self, n_positives: NDArray[np.int64], n_lists: NDArray[np.int64]) -> NDArray[np.float64]:
        """The default of `reach`, from the numbers of positives and lists."""
        of_one = np.clip(
            n_positives / (UNTUNED.positives_a_feature * self.effective), UNTUNED.least_reach, UNTUNED.most_reach
        )
        return np.where(n_lists == 1, of_one, UNTUNED.reach_of_lists)

    def spread(self, n_samples: NDArray[np.int64]) -> NDArray[np.float64]:
        """The default variance of the scores under the prior of the start, from the number of samples."""
        return np.clip(
            n_samples / (UNTUNED.samples_a_feature * self.effective), UNTUNED.least_spread, UNTUNED.most_spread
        )


def effective(variances: NDArray[np.float64]) -> float:
    """How many features share the variance: d if all have the same, 1 if a single one has all of it."""
    largest = np.max(variances, initial=0.0)
    if not (largest > 0 and np.isfinite(largest)):
        return 1.0
    # By the largest: squares of squares overflow.
    shares = variances / largest
    return float(shares.sum() ** 2 / np.sum(shares**2))


def exponent_of(standardize: Any, variances: NDArray[np.float64]) -> float:
    """The p of ``σ = sd^p``: 1 to standardise, 0 to take features as they are; ``"auto"`` asks the variances."""
    if isinstance(standardize, str):
        return 1.0 if effective(variances**UNTUNED.quarter) < UNTUNED.common_unit else 0.5
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


def drowning(variances: NDArray[np.float64]) -> NDArray[np.int64]:
    """Which features vary so much that the others count for nothing in a sum of the variances; mostly none."""
    varying = variances[variances > 0]
    total = varying.sum()
    if varying.size == 0 or not np.isfinite(total):
        return np.zeros(0, np.int64)
    # Of the two in the middle the smaller one: half of the features may be the large ones.
    median = np.quantile(varying, 0.5, method="lower")
    large = DROWNING.large * median
    if total <= DROWNING.less * np.minimum(varying, large).sum() or varying.max() <= DROWNING.apart * median:
        return np.zeros(0, np.int64)
    return np.flatnonzero(variances > large)
