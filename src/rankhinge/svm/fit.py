"""A fit of linear machines, on one page: see the features, begin, solve, prove, describe.

``validate → problem`` is the estimators' part (`rank_svc`, `ranker`). What follows is here, as functions that take
values and return values:

- `see`: X in the unit that features count in, and in fewer coordinates where that helps; `Seen`.
- `begin`, in a file of its own: a solver at its start, which the tight bound finds first.
- `fit_linear`: the loop. An interrupt ends it with the best point so far, and is a value from then on.
- `conclude`: the last word on the coefficients, and all fitted attributes; `Fitted`.

The machine's parameters are read; nothing is written to it. `LinearRankingMachine._become` does that, at once. What
else an interrupt or an error finds is put back by `_fitting.fitting`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge._progress import Progress
from rankhinge.features import feature_map
from rankhinge.losses import get_loss
from rankhinge.objective import RankingObjective
from rankhinge.objective.errors import EngineLostError
from rankhinge.objective.variance import variances_within
from rankhinge.problems import Lists
from rankhinge.solvers import NEVER, InTurn, Saved, Solver, SolverResult
from rankhinge.svm._fitting import earlier_model, interrupts
from rankhinge.svm.begin import Course, begin
from rankhinge.svm.checkpointing import checkpoint_of
from rankhinge.svm.coordinates import Coordinates, weighted
from rankhinge.svm.last_word import last_word
from rankhinge.svm.lockstep import side_by_side
from rankhinge.svm.protocol import FitObjective
from rankhinge.svm.start import warn_of_units
from rankhinge.svm.threshold import Cut
from rankhinge.svm.tuning import Tuning
from rankhinge.svm.units import Bearing, bearing_of, exponent_of, feature_scale

__all__ = ["Certified", "Fit", "Fitted", "Given", "Seen", "conclude", "fit_linear", "see", "unit_of_features"]

_COLUMNS = ("problems to come", "iteration", "primal", "dual", "gap")


class Seen(NamedTuple):
    """X as solvers see it: σ (d,) and what the features are like by it, and the coordinates that stand for them.

    `bearing` is None if the features were not measured.
    """

    X: Any
    coordinates: Coordinates
    scale: NDArray[np.float64]
    bearing: Bearing | None = None


class Given(NamedTuple):
    """What `fit` was given, validated, as scikit-learn's callbacks want to know it."""

    X: Any
    y: Any
    metadata: dict[str, Any]


class Certified(NamedTuple):
    """The end of a fit: what is proved, the coefficients for all features (K, d), and what cuts each ranking."""

    result: SolverResult
    coef: NDArray[np.float64]
    cuts: dict[int, tuple[float, float]]


@dataclass(frozen=True)
class Fit:
    """All that the stages of a fit need.

    Attributes
    ----------
    machine : LinearRankingMachine
        For its parameters.
    seen : Seen
    objective : FitObjective
        Of the usable problems.
    usable : ndarray of shape (K,)
    tuning : Tuning
        Of the usable problems.
    given : Given
    describe : callable
        ``describe(certified)``: the machine's own fitted attributes.
    rule : Cut, optional
        How decisions are made of scores, for machines that make any; `cut_by` is the objective whose lists have all
        labelled samples.
    start : ndarray of shape (d, K), optional
        In the coordinates of the fit.
    make : callable, optional
        Makes the solver, of all problems at once, in place of `make_solver`.
    n_passes : float
        That were used before.
    """

    machine: Any
    seen: Seen
    objective: FitObjective
    usable: NDArray[np.bool_]
    tuning: Tuning
    given: Given
    describe: Callable[[Certified], dict[str, Any]]
    rule: Cut | None = None
    cut_by: FitObjective | None = None
    start: NDArray[np.float64] | None = None
    make: Callable[..., Solver] | None = None
    n_passes: float = 0.0


class Fitted(NamedTuple):
    """A model: all fitted attributes, the result behind them, and the interrupt that ended the fit, if one did."""

    attributes: dict[str, Any]
    result: SolverResult
    objective: FitObjective
    interrupt: BaseException | None = None


def unit_of_features(
    machine: Any, variances: Callable[[], NDArray[np.float64]], names: Any = None
) -> tuple[NDArray[np.float64] | None, Bearing | None]:
    """σ of each feature (None if they count as they are), and what the features are like after it (None if not needed).

    By itself the convex bound takes features as they are: its C has the meaning that papers give it.
    """
    tight = machine._bound == "tight"
    if not tight and (isinstance(machine.standardize, str) or not float(machine.standardize) > 0):
        return None, None
    measured = variances()
    sigma = feature_scale(measured, exponent_of(machine.standardize, measured))
    if sigma is None and tight:
        warn_of_units(measured, names)
    return sigma, bearing_of(measured, sigma)


def see(machine: Any, X: Any, lists: Lists, n_problems: int, names: Any = None) -> Seen:
    """X as the solvers of `n_problems` see it: in the unit of its features, and in fewer coordinates.

    The unit is measured in `lists`. A given start may lie outside these coordinates.
    """
    sigma, bearing = unit_of_features(machine, lambda: variances_within(feature_map(X), lists), names)
    tight = machine._bound == "tight"
    given = tight and not isinstance(machine.init, str)
    # Of a ranking's scores only the differences count, of a binary SVM's the scores themselves.
    centred = machine._ranks_only and get_loss(machine.loss).is_ranking
    reduced, coordinates = weighted(X, sigma, None if given else n_problems, centred=centred)
    return Seen(reduced, coordinates, np.ones(X.shape[1]) if sigma is None else sigma, bearing)


def fit_linear(fit: Fit) -> Fitted:
    """Run the solver to its end, and conclude. Problems run in lockstep, as many as memory allows at a time.

    An interrupt leaves the best model so far. Before there is any, it passes on.
    """
    machine, objective, deadline = fit.machine, fit.objective, fit.tuning.deadline
    file = None if machine.checkpoint is None else checkpoint_of(machine, objective, fit.given)
    # Given values are known for waiting problems, too.
    known = {} if isinstance(fit.tuning.C, str) else {"C_": fit.tuning.C.copy()}
    course = Course(known, None if file is None else file.load())
    before = course.saved or fit.tuning.reached
    if before is not None:
        fit = replace(fit, start=before.coef)

    groups = [np.arange(objective.n_problems)]
    if fit.make is None and objective.n_problems > 1:
        groups = side_by_side(objective, objective.n_problems)
    begun, keep = partial(begin, fit, course), file is not None
    solver = begun(groups[0]) if len(groups) == 1 else InTurn(objective, groups, begun, fit.start, keep)
    course.has_begun = True
    so_far = partial(_result, fit, solver, course.saved)

    def present() -> dict[str, Any]:
        return conclude(fit, so_far(), course.chosen).attributes

    status = "stopped"
    try:
        with (
            interrupts(),
            Progress(machine.verbose, _COLUMNS) if machine.verbose else nullcontext() as progress,
            machine._callbacks(present, fit.given) as wants_stop,
        ):
            while not solver.done:
                solver.step()
                if progress is not None:
                    progress.update(**solver.report())
                if file is not None:
                    file.note(solver, so_far, course.chosen)
                if course.interrupt is not None:
                    # The unfinished start has been evaluated: it is the best model so far.
                    raise course.interrupt
                if deadline is not NEVER and deadline.passed:
                    status = deadline.status
                    break
                if wants_stop():
                    break
    except KeyboardInterrupt as error:
        course.interrupt, status = error, "interrupted"
    except EngineLostError:
        if file is not None:
            file.write(solver, so_far(), course.chosen)
        raise
    result = so_far(status)
    if file is not None:
        file.write(solver, result, course.chosen)
    return conclude(fit, result, course.chosen, course.interrupt)


def conclude(
    fit: Fit, result: SolverResult, chosen: dict[str, NDArray[np.float64]], interrupt: BaseException | None = None
) -> Fitted:
    """The last word on a result, and the model that it is.

    After an interrupt, coefficients that are all 0 would rank nothing: an earlier model is worth more, and stays.
    """
    if interrupt is not None and "coef_" in earlier_model(fit.machine) and not result.coef.any():
        raise interrupt
    try:
        certified = _certify(fit, result, chosen)
    except KeyboardInterrupt as error:
        # The solver has finished. The rest takes hardly any time beside that.
        certified, interrupt = _certify(fit, result, chosen), error
    attributes = _attributes(certified.result, chosen, fit.usable) | {"feature_scale_": fit.seen.scale}
    if fit.rule is not None and "init_coef_" in attributes:
        # Classifiers have a row for each problem, even if there is only one.
        attributes["init_coef_"] = np.atleast_2d(attributes["init_coef_"])
    attributes |= fit.describe(certified) | (fit.tuning.found or {})
    return Fitted(attributes, certified.result, fit.objective, interrupt)


def _result(fit: Fit, solver: Solver, saved: Saved | None, status: str = "running") -> SolverResult:
    """The solver's result, with the passes that came before, of this run and of an earlier one."""
    n_passes = fit.n_passes + fit.seen.coordinates.there + (fit.seen.bearing is not None)
    found = solver.result(status=status)
    history = found.history | {"passes": found.history["passes"] + n_passes}
    found = replace(found, n_passes=found.n_passes + n_passes, history=history)
    return found if saved is None else saved.and_then(found)


def _certify(fit: Fit, result: SolverResult, chosen: dict[str, NDArray[np.float64]]) -> Certified:
    """What is proved of the coefficients, these for all features, and where the rankings are cut; one pass."""
    machine, seen, coordinates, objective = fit.machine, fit.seen, fit.seen.coordinates, fit.objective
    coef, tight = coordinates.everywhere(result.coef.T.copy()), machine._bound == "tight"
    inner, inside = result.coef, None
    if coordinates.whole is not None and isinstance(objective, RankingObjective):
        inside = objective, result.coef
        objective = RankingObjective(feature_map(coordinates.whole), objective.problems, objective.loss)
        inner = (coef * seen.scale).T
    centre = np.zeros_like(inner)
    if tight and "init_coef_" in chosen:
        known = chosen["init_coef_"]
        centre = (known * seen.scale if coordinates.whole is not None else coordinates.inside(known)).T
    by = objective if fit.cut_by is None else fit.cut_by
    certified, cuts = last_word(
        objective,
        replace(result, coef=inner),
        chosen.get("C_", np.ones(objective.n_problems)),
        centre,
        machine.tol,
        tight=tight,
        lengths=coordinates.lengths,
        inside=inside,
        cut=None if fit.rule is None else partial(by.cut, rule=fit.rule),
    )
    return Certified(replace(certified, n_passes=certified.n_passes + coordinates.back), coef, cuts)


def _attributes(
    result: SolverResult, chosen: dict[str, NDArray[np.float64]], usable: NDArray[np.bool_]
) -> dict[str, Any]:
    """What the solver proved, and with which values; scalars for one problem, arrays of length K for K.

    Problems that are not usable have the objective ½‖w‖², whose minimum is 0.
    """

    def spread(values: NDArray[Any], missing: Any = 0) -> Any:
        everywhere = np.full((usable.size, *values.shape[1:]), missing, dtype=values.dtype)
        everywhere[usable] = values
        return everywhere[0] if usable.size == 1 else everywhere

    fitted: dict[str, Any] = {}
    for name in ("objective", "dual_objective", "gap", "n_iter"):
        value = spread(np.asarray(getattr(result, name)))
        fitted[f"{name}_"] = value.item() if usable.size == 1 else value
    status = spread(np.asarray(result.status, dtype="<U16"), "constant")
    fitted["status_"] = str(status) if usable.size == 1 else status
    for name, values in chosen.items():
        value = spread(values, np.nan)
        fitted[name] = float(value) if usable.size == 1 and values.ndim == 1 else value
    fitted["n_passes_"] = int(np.ceil(result.n_passes))
    fitted["history_"] = {key: spread(values) for key, values in result.history.items()}
    return fitted
