r"""The tight bound for linear machines: where it starts, how tight it is, how hard it is pulled back.

.. math:: \min_w \tfrac12 \|w - w_0\|^2 + C \, T(Xw)

:math:`w_0` is the start, rescaled so that its scores have the standard deviation `scale` within the lists. T depends on
the size of the scores beside the margins that the loss asks for. These are proportional to the number of negatives: for
AP, two neighbours at the top of the list are to lie N / 8 apart, lower ones less. So the scale is measured in N.

The start is by default a logistic regression with ``C = s / v``, where v is the variance of the features within the
lists, added up over the features. By the prior that this C stands for, scores have the variance s: regularisation
neither vanishes nor rules, however many features there are and whatever their unit is. s is 3 for wide data, and up to
30 for many samples of few features (`units`).

C is `reach` times ``‖w₀‖ / ‖∇T(w₀)‖``, with the gradient in w: with a reach of 1 a first step with the slope of the
loss leads as far away as the start is from 0. Whatever the units of the features, the loss and the scale are, the same
few values are worth trying.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from rankhinge._validation import as_numbers
from rankhinge.objective.reductions import NO_SPREAD
from rankhinge.solvers import NEVER, Deadline, Known, make_solver
from rankhinge.solvers.protocol import Handle
from rankhinge.svm._fitting import Unfinished, interrupts, of_problems, warn_user
from rankhinge.svm.logistic import InterruptedStart, Start, fit_logistic
from rankhinge.svm.protocol import FitObjective
from rankhinge.svm.units import UNTUNED, Bearing, drowning

__all__ = [
    "LARGEST",
    "find_start",
    "given_start",
    "rescaled",
    "unit_of_C",
    "unit_of_init_C",
    "warn_of_units",
]

# Of C and scale: the square of a number enters the objective, times those of features and scores.
LARGEST = 1e60


def find_start(
    init: Any,
    objective: FitObjective,
    C: NDArray[np.float64],
    *,
    tol: float,
    max_iter: int,
    random_state: Any,
    deadline: Deadline,
    watch: Callable[[], object] | None = None,
) -> Start:
    """The start of each problem, by name or as given.

    Parameters
    ----------
    init : {"logistic", "convex"} or ndarray of shape (K, d)
    objective : FitObjective
    C : ndarray of shape (K,)
        Of the logistic regression or of the convex bound.
    deadline : Deadline
        When it has passed, what was reached is the start, and nobody is warned: the fit ends, too.
    watch : callable, optional
        Called after each iteration.

    Raises
    ------
    InterruptedStart
        After Ctrl-C, with what was reached.
    """
    if not isinstance(init, str):
        return Start(init.T.copy(), 0)
    watched = watch is not None or deadline is not NEVER
    stop = (lambda *_: (watch is None or watch() is None) and deadline.passed) if watched else None
    if init == "logistic":
        found = fit_logistic(objective, C, stop=stop)
        if found.n_unfinished and not deadline.passed:
            warn_user(
                f"the logistic regression{of_problems(found.n_unfinished, C.size)}, from which the fit starts, has not "
                "converged: scale the features, or choose a smaller init_C",
                ConvergenceWarning,
            )
        return found
    solver = make_solver("bundle", objective, C, tol=tol, max_iter=max_iter, random_state=random_state)
    try:
        with interrupts():
            result = solver.run(stop)
    except KeyboardInterrupt as error:
        result = solver.result(status="interrupted")
        raise InterruptedStart(Start(result.coef, result.n_passes)) from error
    if not deadline.passed:
        Unfinished().note(result, tol).warn("the start")
    return Start(result.coef, result.n_passes)


def given_start(init: Any, n_problems: int, n_features: int) -> NDArray[np.float64]:
    """Coefficients that a user has given, (K, d), checked; for one problem (d,) will do."""
    if np.iscomplexobj(init):
        raise ValueError("init has complex numbers: coefficients must be real")
    coef = as_numbers(init, "init")
    if coef.ndim == 1:
        coef = coef[None, :]
    if coef.shape != (n_problems, n_features):
        raise ValueError(
            f"init has shape {np.shape(init)}, but there are {n_problems} problems with {n_features} features"
        )
    wrong = np.flatnonzero(~np.isfinite(coef))
    if wrong.size:
        place = tuple(int(i) for i in np.unravel_index(wrong[0], coef.shape))
        raise ValueError(f"init has {coef.flat[wrong[0]]} at {place}: coefficients must be finite")
    # Only the directions count. By a power of two, which rounds nothing: squares of huge or tiny ones would overflow.
    exponents = np.frexp(np.max(np.abs(coef), axis=1, keepdims=True, initial=0.0))[1]
    normalised: NDArray[np.float64] = np.ldexp(coef, -exponents)
    return normalised


def rescaled(
    objective: FitObjective, coef: NDArray[np.float64], scale: NDArray[np.float64]
) -> tuple[NDArray[np.float64], Handle]:
    """Coefficients (d, K) whose scores have the standard deviations `scale` within the lists, and these scores.

    One pass over X. Where all scores of a list are equal, no factor will do: 0.
    """
    everything = np.arange(objective.n_problems)
    scores = objective.score(coef, everything)
    spread = objective.spread(scores)
    factor = np.divide(scale, spread, out=np.zeros_like(spread), where=spread > 0)
    return coef * factor, objective.along(objective.zeros(everything), scores, factor)


def unit_of_C(
    objective: FitObjective, centre: NDArray[np.float64], scores: Handle
) -> tuple[NDArray[np.float64], Known]:
    """``‖w₀‖ / ‖∇T(w₀)‖`` of each problem, for centres (d, K) with these scores, and T there; one pass over X.

    What is known of T has taken two, with the one for the scores.
    """
    tight = objective.evaluate_tight(scores)
    found = objective.apart(tight.coefficients)
    slopes = found.rising + found.falling
    # Columns without entries do not count.
    length = np.linalg.norm(centre * found.occupied[:, None], axis=0)
    slope = np.linalg.norm(slopes, axis=0)
    # Of samples that are tied the coefficients cancel, or their features do: what is left then is rounding.
    whole = np.linalg.norm(found.rising, axis=0) + np.linalg.norm(found.falling, axis=0)
    changes = (found.sizes > NO_SPREAD) & (slope > NO_SPREAD * whole)
    # Where the loss does not change, or there is no start, any C will do.
    unit = np.divide(length, slope, out=length**2, where=changes)
    known = Known(np.arange(objective.n_problems), centre, scores, tight.value, tight.loss, slopes, n_passes=2)
    return np.where(unit > 0, unit, 1.0), known


def unit_of_init_C(init: Any, n_samples: NDArray[np.int64], bearing: Bearing) -> NDArray[np.float64]:
    """The default C of the starts of some kind, (K,), from the numbers of samples.

    For the logistic regression the variance of the scores that its prior allows, over the sum of the features'
    variances; for others it does not depend on the features.
    """
    variance = bearing.variance
    if not isinstance(init, str) or init != "logistic":
        return np.full(n_samples.size, UNTUNED.convex_C)
    # Features that are constant within the lists rank nothing, whatever C is; those that overflow are refused later.
    if not 1.0 / LARGEST < variance < np.inf:
        return np.ones(n_samples.size)
    return bearing.spread(n_samples) / variance


def warn_of_units(variances: NDArray[np.float64], names: Any = None) -> None:
    """Warn if a few features vary so much more than the others that these can hardly count."""
    large = drowning(variances)
    if large.size:
        share = 100 * variances[large].sum() / variances.sum()
        most = int(np.argmax(variances))
        which = f"column {most}" if names is None else f"column {names[most]!r}"
        warn_user(
            f"{large.size} of {variances.size} features, {which} most of all, hold {share:.4g} % of the variance: the "
            "others can hardly count beside them, in the start and in the pull towards it. standardize='auto' helps"
        )
