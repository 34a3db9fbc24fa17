"""A fit of linear machines, on one page: see the features, begin, solve, prove, describe.

``validate → problem`` is the estimators' part (`rank_svc`, `ranker`). What follows is here, as functions that take
values and return values:

- `see`: X in the unit that features count in, and in fewer coordinates where that helps; `Seen`.
- `_begin`: a solver at its start; `_begin_tight` finds that first.
- `fit_linear`: the loop. An interrupt ends it with the best point so far, and is a value from then on.
- `conclude`: the last word on the coefficients, and all fitted attributes; `Fitted`.

The machine's parameters are read; nothing is written to it. `LinearRankingMachine._become` does that, at once. What
else an interrupt or an error finds is put back by `_fitting.fitting`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge._progress import Progress
from rankhinge.features import feature_map
from rankhinge.losses import get_loss
from rankhinge.objective import RankingObjective
from rankhinge.objective.variance import variances_within
from rankhinge.problems import Lists
from rankhinge.solvers import InTurn, Saved, Solver, SolverResult, Tight, make_solver, seed_of
from rankhinge.svm._fitting import interrupts, of_problems, warn_user
from rankhinge.svm.attributes import attributes_of
from rankhinge.svm.checkpointing import NO_FILE, Keeper, keeper_of
from rankhinge.svm.coordinates import Coordinates, weighted
from rankhinge.svm.flat import CONSTANT, are_constant
from rankhinge.svm.last_word import last_word
from rankhinge.svm.lockstep import side_by_side
from rankhinge.svm.logistic import InterruptedStart
from rankhinge.svm.protocol import FitObjective
from rankhinge.svm.start import AUTO_TIGHTNESS, find_start, rescaled, unit_of_C, unit_of_init_C, warn_of_units
from rankhinge.svm.threshold import Cut
from rankhinge.svm.tuning import Tuning
from rankhinge.svm.units import Bearing, bearing_of, exponent_of, feature_scale

__all__ = ["Certified", "Fit", "Fitted", "Given", "Seen", "conclude", "fit_linear", "see", "unit_of_features"]

# What the progress line calls an iteration of the fit that finds the start.
_START = "start: iteration"
_COLUMNS = ("problems to come", "iteration", "primal", "dual", "gap")


class Seen(NamedTuple):
    """X as solvers see it: σ (d,) and what the features are like by it, and the coordinates that stand for them.

    `bearing` is None if the features were not measured.
    """

    X: Any
    coordinates: Coordinates
    scale: NDArray[np.float64]
    bearing: Bearing | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Of what stands for X."""
        n, d = self.X.shape
        return n, d


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
    earlier : mapping
        Attributes of the model before.
    start : ndarray of shape (d, K), optional
        In the coordinates of the fit.
    constraints : Constraints, optional
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
    earlier: Mapping[str, Any] = field(default_factory=dict)
    start: NDArray[np.float64] | None = None
    constraints: Any = None
    n_passes: float = 0.0


class Fitted(NamedTuple):
    """A model: all fitted attributes, the result behind them, and the interrupt that ended the fit, if one did."""

    attributes: dict[str, Any]
    result: SolverResult
    objective: FitObjective
    interrupt: BaseException | None = None


class _Course:
    """What comes to light as groups of problems begin: the values chosen for them, and an interrupt meanwhile.

    `keeper` has what an earlier run has left, if there was one.
    """

    def __init__(self, C: Any, keeper: Keeper = NO_FILE) -> None:
        self.keeper, self.saved = keeper, keeper.saved
        # What is given is known of those that have to wait, too.
        self.chosen = {} if isinstance(C, str) else {"C_": np.array(C, dtype=np.float64)}
        self.interrupt: BaseException | None = None
        self.has_begun = False


def unit_of_features(
    machine: Any, variances: Callable[[], NDArray[np.float64]], names: Any = None
) -> tuple[NDArray[np.float64] | None, Bearing | None]:
    """σ of each feature, None if they count as they are, and what they are like by it, None if nobody asks.

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
    """X in so many problems: in the unit that features count in, measured in `lists`, and in fewer coordinates.

    A start that is given may lie beside these.
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
    course = _Course(fit.tuning.C, keeper_of(machine, objective, fit.given))
    before = course.saved or fit.tuning.reached
    if before is not None:
        fit = replace(fit, start=before.coef)

    begin = partial(_begin, fit, course)
    groups = [np.arange(objective.n_problems)]
    if fit.constraints is None:
        groups = side_by_side(objective, objective.n_problems)
    solver = begin(groups[0]) if len(groups) == 1 else InTurn(objective, groups, begin, fit.start)
    course.has_begun = True

    def present() -> dict[str, Any]:
        return conclude(fit, so_far("running"), course.chosen).attributes

    def so_far(status: str = "running") -> SolverResult:
        return _result(fit, solver, status, course.saved)

    status = "stopped"
    try:
        with (
            interrupts(),
            Progress(machine.verbose, _COLUMNS) as progress,
            machine._callbacks(present, fit.given) as wants_stop,
        ):
            while not solver.done:
                solver.step()
                progress.update(**solver.report())
                course.keeper.note(solver, so_far, course.chosen)
                if course.interrupt is not None:
                    # What there was of a start has its value now: it is the best model so far.
                    raise course.interrupt
                if deadline.passed:
                    status = deadline.status
                    break
                if wants_stop():
                    break
    except KeyboardInterrupt as error:
        course.interrupt, status = error, "interrupted"
    result = so_far(status)
    course.keeper.end(solver, result, course.chosen)
    return conclude(fit, result, course.chosen, course.interrupt)


def conclude(
    fit: Fit, result: SolverResult, chosen: dict[str, NDArray[np.float64]], interrupt: BaseException | None = None
) -> Fitted:
    """The last word on a result, and the model that it is.

    After an interrupt, coefficients that are all 0 would rank nothing: an earlier model is worth more, and stays.
    """
    if interrupt is not None and "coef_" in fit.earlier and not result.coef.any():
        raise interrupt
    try:
        certified = _certify(fit, result, chosen)
    except KeyboardInterrupt as error:
        # All is learnt already: what is left to do takes no time beside that.
        certified, interrupt = _certify(fit, result, chosen), error
    attributes = attributes_of(certified.result, chosen, fit.usable) | {"feature_scale_": fit.seen.scale}
    if fit.rule is not None and "init_coef_" in attributes:
        # Those who make decisions have a row for each problem, be there one.
        attributes["init_coef_"] = np.atleast_2d(attributes["init_coef_"])
    return Fitted(attributes | fit.describe(certified), certified.result, fit.objective, interrupt)


def _result(fit: Fit, solver: Solver, status: str, saved: Saved | None) -> SolverResult:
    """The solver's result, with the passes that came before, of this run and of an earlier one."""
    n_passes = fit.n_passes + fit.seen.coordinates.there + (fit.seen.bearing is not None)
    found = solver.result(status=status)
    history = found.history | {"passes": found.history["passes"] + n_passes}
    found = replace(found, n_passes=found.n_passes + n_passes, history=history)
    return found if saved is None else saved.and_then(found)


def _begin(fit: Fit, course: _Course, group: NDArray[np.int64]) -> Solver:
    """The solver of some of the problems, which is at their start."""
    machine, whole, objective, tuning = fit.machine, fit.objective, fit.objective, fit.tuning
    if group.size < whole.n_problems:
        objective, tuning = whole.part(group), tuning.part(group)
    options: dict[str, Any] = {"tol": machine.tol, "max_iter": machine.max_iter}
    options["start"] = None if fit.start is None else fit.start[:, group]
    if course.saved is not None:
        options["planes"] = [course.saved.planes[k] for k in group]
    if machine._bound == "tight":
        again = _begin_again(fit, course, group, objective, options)
        solver, chosen = again or _begin_tight(fit, course, objective, tuning, **options)
    else:
        chosen = {"C_": np.ones(group.size) if isinstance(tuning.C, str) else tuning.C}
        if fit.constraints is not None:
            options["constraints"] = fit.constraints
        elif fit.start is not None:
            options["start"] = _worth_it(options["start"], objective, chosen["C_"])
        solver = make_solver(machine.solver, objective, chosen["C_"], random_state=machine.random_state, **options)
    for name, values in chosen.items():
        shape = (whole.n_problems, *values.shape[1:])
        course.chosen.setdefault(name, np.full(shape, np.nan))[group] = values
    return solver if course.saved is None else course.saved.resume(solver)


def _worth_it(start: NDArray[np.float64], objective: FitObjective, C: NDArray[np.float64]) -> NDArray[np.float64]:
    """Starts (d, K), or 0 where ½‖w‖² alone is more than the objective at 0; no pass over X."""
    at_zero = C * objective.evaluate(objective.zeros(np.arange(C.size)), coefficients=False).value
    with np.errstate(over="ignore"):
        worth_it = 0.5 * np.square(start).sum(axis=0) <= at_zero
    return np.where(worth_it, start, 0.0)


def _begin_tight(
    fit: Fit, course: _Course, objective: FitObjective, tuning: Tuning, **options: Any
) -> tuple[Solver, dict[str, NDArray[np.float64]]]:
    """The solver of the tight bound, around a start that is found first, and what was chosen for it.

    An interrupt meanwhile makes do with the start so far, and is noted.
    """
    machine, coordinates, bearing = fit.machine, fit.seen.coordinates, fit.seen.bearing or Bearing(1.0, 1.0)
    counts = objective.counts()
    scale = AUTO_TIGHTNESS * counts.n_negatives if isinstance(tuning.scale, str) else tuning.scale
    reach = bearing.reach(counts.n_positives, counts.n_lists) if isinstance(tuning.reach, str) else tuning.reach
    init, init_C = tuning.init, tuning.init_C
    if isinstance(init_C, str):
        init_C = unit_of_init_C(init, counts.n_samples, bearing)
    inside = init if isinstance(init, str) else coordinates.inside(init)
    if tuning.reached is not None and tuning.reached.centre is not None:
        inside = tuning.reached.centre.T
    try:
        with Progress(0 if course.has_begun else machine.verbose, (_START,)) as progress:
            steps = count(1)
            found = find_start(
                inside,
                objective,
                init_C,
                tol=machine.tol,
                max_iter=machine.max_iter,
                random_state=machine.random_state,
                deadline=tuning.deadline,
                watch=lambda: progress.update(**{_START: float(next(steps))}),
            )
    except InterruptedStart as error:
        found, course.interrupt = error.start, KeyboardInterrupt()
        if not found.coef.any():
            raise course.interrupt from error
    centre = rescaled(objective, found.coef, scale)
    if course.interrupt is None and not tuning.deadline.passed:
        _warn_of_flat_starts(objective, centre)
    C = reach * unit_of_C(objective, centre)
    chosen = {"C_": C, "reach_": reach, "scale_": scale, "init_coef_": coordinates.everywhere(centre.T.copy())}
    if isinstance(init, str):
        chosen["init_C_"] = init_C
    solver = Tight(objective, C, centre=centre, random_state=seed_of(machine.random_state), **options)
    # One for the spread of the start, two for the unit of C.
    solver.n_passes = found.n_passes + 3 + coordinates.back
    return solver, chosen


def _begin_again(
    fit: Fit, course: _Course, group: NDArray[np.int64], objective: FitObjective, options: dict[str, Any]
) -> tuple[Solver, dict[str, NDArray[np.float64]]] | None:
    """The solver of the tight bound where an earlier run was; None if that had not begun with these problems."""
    if course.saved is None or np.isnan(course.saved.chosen["C_"][group]).any():
        options.pop("planes", None)
        options["start"] = options["start"] if course.saved is None else None
        return None
    chosen = {name: values[group] for name, values in course.saved.chosen.items()}
    centre = fit.seen.coordinates.inside(chosen["init_coef_"]).T
    seed = seed_of(fit.machine.random_state)
    return Tight(objective, chosen["C_"], centre=centre, random_state=seed, **options), chosen


def _warn_of_flat_starts(objective: FitObjective, centre: NDArray[np.float64]) -> None:
    """Warn of starts (d, K) that rank nothing."""
    flat = np.flatnonzero(~centre.any(axis=0))
    if flat.size:
        constant = are_constant(objective, int(flat[0]))
        warn_user(
            f"the start{of_problems(flat.size, objective.n_problems)} gives all samples of a list the same score: the "
            f"fit begins at 0 instead. {CONSTANT if constant else 'Choose another init, or a larger init_C'}"
        )


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
    cuts: dict[int, tuple[float, float]] = {}

    def cut(problems: NDArray[np.int64], scores: Any) -> None:
        if fit.rule is not None:
            by = objective if fit.cut_by is None else fit.cut_by
            cuts.update(zip(problems.tolist(), by.cut(scores, fit.rule), strict=True))

    certified = last_word(
        objective,
        replace(result, coef=inner),
        chosen.get("C_", np.ones(objective.n_problems)),
        centre,
        machine.tol,
        tight=tight,
        lengths=coordinates.lengths,
        inside=inside,
        use=cut,
    )
    return Certified(replace(certified, n_passes=certified.n_passes + coordinates.back), coef, cuts)
