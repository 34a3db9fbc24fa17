"""Fits of data that enter by the door for containers (`rankhinge.problems.door`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankhinge.losses import get_loss
from rankhinge.problems.door import Opened
from rankhinge.svm._fitting import warn_user
from rankhinge.svm.coordinates import AsGiven
from rankhinge.svm.fit import Certified, Fit, Fitted, Given, Seen, fit_linear, unit_of_features
from rankhinge.svm.threshold import Cut
from rankhinge.svm.tuning import Tuning

__all__ = ["fit_opened"]

# Of the tolerance.
_SLACK = 1e-3
# Solvers that fetch a few rows at a time.
_LIST_BY_LIST = ("frank-wolfe", "subgradient")


class _Elsewhere:
    """Stands for X where there is no array; it has a shape."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.shape = shape


def fit_opened(
    machine: Any, data: Opened, given: Given, rule: Cut | None = None, tuning: Tuning | None = None
) -> Fitted:
    """Fit data that live elsewhere: like `rankhinge.svm.fit`, without the steps that need arrays.

    Parameters
    ----------
    machine : LinearRankingMachine
    data : Opened
    given : Given
        What `fit` was given, untouched.
    rule : Cut, optional
        How decisions are made of scores, for classifiers.
    tuning : Tuning, optional
        What a search has chosen; default: what the machine was given.
    """
    if not data.usable.any():
        raise ValueError("no label has both a positive and a negative sample: there is nothing to rank")
    if not data.usable.all():
        warn_user(
            f"labels {np.flatnonzero(~data.usable)[:10].tolist()} have no positive or no negative sample: their scores "
            "are constant"
        )
    if machine.solver in _LIST_BY_LIST:
        raise ValueError(
            f"solver={machine.solver!r} works list by list and needs arrays in memory: choose solver='bundle'"
        )
    tuning = machine._tuning() if tuning is None else tuning
    sigma, bearing = unit_of_features(machine, data.variances, data.feature_names)
    objective = data.objective(get_loss(machine.loss), sigma)
    if hasattr(objective, "slack"):
        # What inference leaves undecided of a value must be small beside the gap.
        objective.slack = _SLACK * machine.tol
    coordinates = AsGiven(data.n_features, sigma)
    scale = np.ones(data.n_features) if sigma is None else sigma
    seen = Seen(_Elsewhere((objective.n_samples, data.n_features)), coordinates, scale, bearing)

    start = None
    if getattr(machine, "warm_start", False):
        start = machine._warm_start(seen, None if rule is None else data.usable)

    def describe(certified: Certified) -> dict[str, Any]:
        found: dict[str, Any] = data.attributes | {"n_features_in_": data.n_features, "coef_": certified.coef[0]}
        if data.feature_names is not None:
            found["feature_names_in_"] = data.feature_names
        if rule is None:
            return found | {"intercept_": 0.0}
        coef = np.zeros((data.usable.size, data.n_features))
        coef[data.usable] = certified.coef
        intercept, slope = data.constant.copy(), np.ones(data.usable.size)
        for c, cut in certified.cuts.items():
            k = np.flatnonzero(data.usable)[c]
            intercept[k], slope[k] = cut
        return found | {"coef_": coef, "intercept_": intercept, "slope_": slope}

    return fit_linear(
        Fit(
            machine,
            seen,
            objective,
            data.usable,
            tuning.of(data.usable, data.n_features),
            given,
            describe=describe,
            rule=rule,
            start=start,
        )
    )
