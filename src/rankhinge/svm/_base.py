"""What all linear ranking machines share: from a problem to fitted attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from rankhinge._progress import Progress
from rankhinge._validation import as_numbers, in_native_order, refuse_masked
from rankhinge.features import feature_map
from rankhinge.losses import RankingLoss, get_loss
from rankhinge.objective import RankingObjective
from rankhinge.objective.variance import variances_within
from rankhinge.problems import Lists
from rankhinge.solvers import NEVER, SOLVERS, Deadline, InTurn, Solver, SolverResult, Tight, make_solver, seed_of
from rankhinge.svm._fitting import interrupts, of_problems, warn_of_zeros, warn_user
from rankhinge.svm.bounds import bound_in_force, refuse_strangers
from rankhinge.svm.coordinates import Coordinates, weighted
from rankhinge.svm.flat import CONSTANT, are_constant, ways_out
from rankhinge.svm.last_word import Use, last_word
from rankhinge.svm.lockstep import side_by_side
from rankhinge.svm.logistic import InterruptedStart
from rankhinge.svm.tight import (
    AUTO_TIGHTNESS,
    LARGEST,
    find_start,
    given_start,
    rescaled,
    unit_of_C,
    unit_of_init_C,
    warn_of_units,
)
from rankhinge.svm.units import Bearing, bearing_of, exponent_of, feature_scale

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""


__all__ = ["LinearRankingMachine", "Tuning", "per_problem", "positive"]

# What the progress line calls an iteration of the fit that finds the start.
_START = "start: iteration"
_COLUMNS = ("problems to come", "iteration", "primal", "dual", "gap")


def positive(values: Any, name: str) -> NDArray[np.float64]:
    """Numbers that may be a C or a scale."""
    numbers = as_numbers(values, name)
    # Of numbers below the least normal one the inverse overflows.
    wrong = np.flatnonzero(~(np.isfinite(numbers) & (numbers >= np.finfo(np.float64).tiny)))
    if wrong.size:
        raise ValueError(f"{name} must be positive and finite, got {numbers.flat[wrong[0]]}")
    if numbers.max(initial=0.0) > LARGEST:
        raise ValueError(f"{name} is {numbers.max()}: beyond {LARGEST:g} its products with others would overflow")
    return numbers


def per_problem(values: Any, usable: NDArray[np.bool_], name: str = "C") -> NDArray[np.float64]:
    """A positive number for each usable problem, from one for all or one for each; `C_` of the others is nan."""
    if np.ndim(values) > 0:
        if np.shape(values) != usable.shape:
            raise ValueError(f"{name} has shape {np.shape(values)}, but there are {usable.size} problems")
        values = as_numbers(values, name)[usable]
    return np.broadcast_to(positive(values, name), int(usable.sum())).copy()


class Tuning(NamedTuple):
    """What can be tuned: each one number, or one for each problem; ``"auto"``: what goes without tuning.

    And when the fit has to end.
    """

    C: Any = "auto"
    reach: Any = "auto"
    scale: Any = "auto"
    init_C: Any = "auto"
    init: Any = "logistic"
    deadline: Deadline = NEVER

    def of(self, usable: NDArray[np.bool_], n_features: int) -> Tuning:
        """The part that belongs to the usable problems, checked."""
        C, reach, scale, init_C = (
            value if isinstance(value, str) else per_problem(value, usable, name)
            for name, value in zip(self._fields[:4], self[:4], strict=True)
        )
        init = self.init if isinstance(self.init, str) else given_start(self.init, usable.size, n_features)[usable]
        return Tuning(C, reach, scale, init_C, init, self.deadline)

    def part(self, group: NDArray[np.int64]) -> Tuning:
        """The part that belongs to some problems, once there is one value for each."""
        C, reach, scale, init_C, init = (value if isinstance(value, str) else value[group] for value in self[:5])
        return Tuning(C, reach, scale, init_C, init, self.deadline)


def _worth_it(start: NDArray[np.float64], objective: RankingObjective, C: NDArray[np.float64]) -> NDArray[np.float64]:
    """Starts (d, K), or 0 where ½‖w‖² alone is more than the objective at 0; no pass over X."""
    at_zero = C * objective.evaluate(objective.zeros(np.arange(C.size)), coefficients=False).value
    with np.errstate(over="ignore"):
        worth_it = 0.5 * np.square(start).sum(axis=0) <= at_zero
    return np.where(worth_it, start, 0.0)


class _Beginning:
    """How starts are found: whether that is shown, and the interrupt that came meanwhile."""

    def __init__(self, verbose: int) -> None:
        self.verbose = verbose
        self.interrupted: KeyboardInterrupt | None = None


class LinearRankingMachine(CallbackSupportMixin, BaseEstimator):
    """Parameters, the loop around the solver, and the attributes it leaves behind."""

    # Fitted attributes: numbers for one problem, arrays of length K for K. A fit replaces all that are declared here
    # and in the subclasses.
    coef_: NDArray[np.float64]
    _coordinates: Coordinates
    _bearing: Bearing | None
    _chosen: dict[str, NDArray[np.float64]]
    C_: Any
    reach_: Any
    feature_scale_: NDArray[np.float64]
    scale_: Any
    init_C_: Any
    init_coef_: NDArray[np.float64]
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    objective_: Any
    dual_objective_: Any
    gap_: Any
    n_iter_: Any
    n_passes_: float
    status_: Any
    history_: dict[str, NDArray[Any]]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "loss": [str, RankingLoss],
        "C": [Interval(Real, 0, None, closed="neither"), "array-like", StrOptions({"auto"})],
        "bound": [StrOptions({"auto", "convex", "tight"})],
        "reach": [Interval(Real, 0, None, closed="neither"), "array-like", StrOptions({"auto"})],
        "standardize": [StrOptions({"auto"}), "boolean", Interval(Real, 0, 1, closed="both")],
        "scale": [Interval(Real, 0, None, closed="neither"), "array-like", StrOptions({"auto"})],
        "init": [StrOptions({"logistic", "convex"}), "array-like"],
        "init_C": [Interval(Real, 0, None, closed="neither"), "array-like", StrOptions({"auto"})],
        "solver": [StrOptions(set(SOLVERS))],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def _validated(self, *arrays: Any, reset: bool = True, **options: Any) -> Any:
        """X (and y) as the feature maps take it: not copied if it is an array of numbers already."""
        for array, name in zip(arrays, ("X", "y"), strict=False):
            refuse_masked(array, name)
        arrays = (in_native_order(arrays[0]), *arrays[1:])
        return validate_data(self, *arrays, accept_sparse=("csr", "csc"), dtype="numeric", reset=reset, **options)

    # Machines without these have nothing to choose.
    bound: str = "convex"
    standardize: str | bool | float = False
    max_time: float | None = None

    @property
    def _bound(self) -> str:
        """The bound in force."""
        return bound_in_force(self.bound, getattr(self, "loss", "ap"))

    def _tuning(self) -> Tuning:
        """What the user has chosen; what the bound does not use is refused."""
        refuse_strangers(self, self._bound)
        deadline = Deadline.after(self.max_time)
        if self._bound == "convex":
            return Tuning(self.C, deadline=deadline)
        return Tuning("auto", self.reach, self.scale, self.init_C, self.init, deadline)

    def _reduced(self, X: Any, lists: Lists, n_problems: int) -> Any:
        """What stands for X in so many problems: weighted, and in fewer coordinates.

        A start that is given may lie beside these. `lists` are those in which features are measured. By itself the
        convex bound takes them as they are: its C has the meaning that papers give it.
        """
        tight, self._bearing = self._bound == "tight", None
        sigma = None
        if tight or (not isinstance(self.standardize, str) and float(self.standardize) > 0):
            variances = variances_within(feature_map(X), lists)
            sigma = feature_scale(variances, exponent_of(self.standardize, variances))
            self._bearing = bearing_of(variances, sigma)
            if sigma is None and tight:
                warn_of_units(variances, getattr(self, "feature_names_in_", None))
        given = tight and not isinstance(self.init, str)
        self.feature_scale_ = np.ones(X.shape[1]) if sigma is None else sigma
        # Of a ranking's scores only the differences count, of a binary SVM's the scores themselves.
        centred = self._ranks_only and get_loss(self.loss).is_ranking
        X, self._coordinates = weighted(X, sigma, None if given else n_problems, centred=centred)
        return X

    # Whether no stage of the fit looks at anything but differences of scores, if the loss does not.
    _ranks_only = True

    def _last_word(
        self, result: SolverResult, objective: RankingObjective, use: Use | None = None
    ) -> tuple[SolverResult, NDArray[np.float64]]:
        """The result with what is proved of its coefficients, and these for all features, (K, d)."""
        coordinates = self._coordinates
        coef = coordinates.everywhere(result.coef.T.copy())
        inner = result.coef
        if coordinates.whole is not None:
            objective, inner = (
                RankingObjective(feature_map(coordinates.whole), objective.problems, objective.loss),
                (coef * self.feature_scale_).T,
            )
        C = self._chosen.get("C_", np.ones(objective.n_problems))
        centre = np.zeros_like(inner)
        if self._bound == "tight" and "init_coef_" in self._chosen:
            known = self._chosen["init_coef_"]
            centre = (known * self.feature_scale_ if coordinates.whole is not None else coordinates.inside(known)).T
        certified = last_word(
            objective,
            replace(result, coef=inner),
            C,
            centre,
            self.tol,
            tight=self._bound == "tight",
            lengths=coordinates.lengths,
            use=use,
        )
        return replace(certified, n_passes=certified.n_passes + coordinates.back), coef

    def _linear(self, X: Any) -> NDArray[np.float64]:
        """``X @ coef_.T``, of shape (n, K)."""
        check_is_fitted(self)
        return feature_map(self._validated(X, reset=False)).scores(np.atleast_2d(self.coef_).T).T

    def _solve(
        self, objective: RankingObjective, tuning: Tuning, n_passes: float = 0.0, **options: Any
    ) -> SolverResult:
        """Run the solver to its end; an interrupt leaves the best model so far, and passes on.

        `n_passes` is what has been used before. Problems run in lockstep, as many as memory allows at a time; with
        constraints all of them.
        """
        K, beginning = objective.n_problems, _Beginning(self.verbose)
        groups = [np.arange(K)] if "constraints" in options else side_by_side(objective.features, K)
        # What is given is known of those that have to wait, too.
        self._chosen = {} if isinstance(tuning.C, str) else {"C_": np.array(tuning.C, dtype=np.float64)}

        def begin(group: NDArray[np.int64]) -> Solver:
            return self._solver_of(objective, group, tuning, beginning, **options)

        solver = begin(groups[0]) if len(groups) == 1 else InTurn(objective, groups, begin, options.get("start"))
        beginning.verbose = 0
        n_passes += self._coordinates.there + (self._bearing is not None)

        def result(status: str) -> SolverResult:
            found = solver.result(status=status)
            history = found.history | {"passes": found.history["passes"] + n_passes}
            return replace(found, n_passes=found.n_passes + n_passes, history=history)

        try:
            with (
                interrupts(),
                Progress(self.verbose, _COLUMNS) as progress,
                self._callbacks(lambda: self._fitted(result("running"))[0]) as wants_stop,
            ):
                while not solver.done:
                    solver.step()
                    progress.update(**solver.report())
                    if beginning.interrupted is not None:
                        # What there was of a start has its value now: it is the best model so far.
                        raise beginning.interrupted
                    if tuning.deadline.passed:
                        return result(tuning.deadline.status)
                    if wants_stop():
                        break
        except KeyboardInterrupt:
            self._keep(result("interrupted"))
            raise
        return result("stopped")

    def _solver_of(
        self,
        whole: RankingObjective,
        group: NDArray[np.int64],
        tuning: Tuning,
        beginning: _Beginning,
        start: NDArray[np.float64] | None = None,
        **options: Any,
    ) -> Solver:
        """The solver of some of the problems, which is at their start."""
        objective = whole.part(group) if group.size < whole.n_problems else whole
        start, tuning = None if start is None else start[:, group], tuning.part(group)
        options |= {"tol": self.tol, "max_iter": self.max_iter, "start": start}
        if self._bound == "tight":
            solver, chosen = self._tight_solver(objective, tuning, beginning, **options)
        else:
            chosen = {"C_": np.ones(group.size) if isinstance(tuning.C, str) else tuning.C}
            if start is not None and "constraints" not in options:
                options["start"] = _worth_it(start, objective, chosen["C_"])
            solver = make_solver(self.solver, objective, chosen["C_"], random_state=self.random_state, **options)
        for name, values in chosen.items():
            shape = (whole.n_problems, *values.shape[1:])
            self._chosen.setdefault(name, np.full(shape, np.nan))[group] = values
        return solver

    def _tight_solver(
        self, objective: RankingObjective, tuning: Tuning, beginning: _Beginning, **options: Any
    ) -> tuple[Solver, dict[str, NDArray[np.float64]]]:
        """The solver of the tight bound, around a start that is found first, and what was chosen for it.

        An interrupt meanwhile makes do with the start so far, and is noted.
        """
        bearing = self._bearing or Bearing(1.0, 1.0)
        counts = objective.counts()
        scale = AUTO_TIGHTNESS * counts.n_negatives if isinstance(tuning.scale, str) else tuning.scale
        init_C, init = tuning.init_C, tuning.init
        if isinstance(init_C, str):
            init_C = unit_of_init_C(init, counts.n_samples, bearing)
        if not isinstance(init, str):
            init = self._coordinates.inside(init)
        try:
            with Progress(beginning.verbose, (_START,)) as progress:
                steps = count(1)
                found = find_start(
                    init,
                    objective,
                    init_C,
                    tol=self.tol,
                    max_iter=self.max_iter,
                    random_state=self.random_state,
                    deadline=tuning.deadline,
                    watch=lambda: progress.update(**{_START: float(next(steps))}),
                )
        except InterruptedStart as error:
            found, beginning.interrupted = error.start, KeyboardInterrupt()
            if not found.coef.any():
                raise beginning.interrupted from error
        centre = rescaled(objective, found.coef, scale)
        n_flat = int(np.count_nonzero(~centre.any(axis=0)))
        if n_flat and beginning.interrupted is None and not tuning.deadline.passed:
            constant = are_constant(objective, int(np.argmin(centre.any(axis=0))))
            warn_user(
                f"the start{of_problems(n_flat, objective.n_problems)} gives all samples of a list the same score: the "
                f"fit begins at 0 instead. {CONSTANT if constant else 'Choose another init, or a larger init_C'}"
            )
        reach = tuning.reach
        if isinstance(reach, str):
            reach = bearing.reach(counts.n_positives)
        C = reach * unit_of_C(objective, centre)
        chosen = {"C_": C, "reach_": reach, "scale_": scale}
        chosen["init_coef_"] = self._coordinates.everywhere(centre.T.copy())
        if isinstance(init, str):
            chosen["init_C_"] = init_C
        solver = Tight(objective, C, centre=centre, random_state=seed_of(self.random_state), **options)
        # One for the spread of the start, two for the unit of C.
        solver.n_passes = found.n_passes + 3 + self._coordinates.back
        return solver, chosen

    def _earlier_coef(self, *n_problems: int) -> NDArray[np.float64] | None:
        """Coefficients of the previous fit, if a warm start is wanted and they are those of as many problems."""
        coef: NDArray[np.float64] = self._earlier.get("coef_", np.empty(0))
        if not getattr(self, "warm_start", False) or coef.shape != (*n_problems, self._coordinates.n_features):
            return None
        return self._coordinates.inside(coef)

    def _note(self, X: Any, y: Any, **metadata: Any) -> tuple[Any, Any]:
        """Remember what a fit was given, as scikit-learn's callbacks want to know it."""
        given = {name: value for name, value in metadata.items() if value is not None}
        self._seen = {"X": X, "y": y, "metadata": given}
        return X, y

    @contextmanager
    def _callbacks(self, fitted: Callable[[], dict[str, Any]] | None = None) -> Iterator[Callable[[], bool]]:
        """A function to be called once an iteration: it tells scikit-learn's callbacks, which may want to stop.

        `fitted` makes the attributes of a model out of what there is at present, for those who ask.
        """
        if not hasattr(self, "_init_callback_context"):
            yield lambda: False
            return
        context = self._init_callback_context(max_subtasks=None)
        known = {"estimator": self, **getattr(self, "_seen", {})}
        context.call_on_fit_task_begin(**known)

        def wants_stop() -> bool:
            task = context.subcontext(task_name="iteration")
            task.call_on_fit_task_begin(**known)
            return bool(task.call_on_fit_task_end(**known, reconstruction_attributes=fitted))

        yield wants_stop
        context.call_on_fit_task_end(**known, reconstruction_attributes=fitted)

    def _store(self, result: SolverResult) -> SolverResult:
        """Set all fitted attributes, at once: an interrupt finds none of them or all. Returns what is proved."""
        try:
            fitted, certified = self._fitted(result)
        except KeyboardInterrupt:
            # All is learnt already: what is left to do takes no time beside that.
            self.__dict__.update(self._fitted(result)[0])
            raise
        self.__dict__.update(fitted)
        return certified

    def _keep(self, reached: SolverResult) -> None:
        """Make a model of what an interrupt has left. All 0 it would rank nothing: an earlier one is worth more."""
        if reached.coef.any() or "coef_" not in self._earlier:
            self._store(reached)

    def _fitted(self, result: SolverResult) -> tuple[dict[str, Any], SolverResult]:
        """All fitted attributes, and the result with what is proved of it."""
        raise NotImplementedError

    def _certificate(self, result: SolverResult, usable: NDArray[np.bool_] | None = None) -> dict[str, Any]:
        """What the solver proved; scalars for one problem, arrays of length K for K.

        Problems that are not usable have the objective ½‖w‖², whose minimum is 0.
        """
        usable = np.ones(result.coef.shape[1], np.bool_) if usable is None else usable

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
        for name, values in self._chosen.items():
            value = spread(values, np.nan)
            fitted[name] = float(value) if usable.size == 1 and values.ndim == 1 else value
        fitted["n_passes_"] = int(np.ceil(result.n_passes))
        fitted["history_"] = {key: spread(values) for key, values in result.history.items()}
        return fitted

    def _warn_of_flaws(self, result: SolverResult, objective: RankingObjective) -> None:
        """Warn if the model ranks nothing, or if it may be far from the optimum."""
        flat = np.flatnonzero(~result.coef.any(axis=0) & (result.gap <= self.tol))
        if flat.size and self._bound == "convex":
            tight = "bound='tight'" if "bound" in self.get_params() else ""
            warn_of_zeros(flat.size, result.gap.size, ways_out(objective, int(flat[0]), tight))
        worst = float(np.max(result.gap))
        n_waiting = int(np.count_nonzero(np.isinf(result.objective) & np.isin(result.status, ["stopped", "time"])))
        if worst > self.tol:
            states = set(result.status[result.gap > self.tol].tolist())
            meaning = "the objective may be that much above its minimum"
            if n_waiting:
                meaning = f"{n_waiting} of {result.gap.size} problems had not begun"
            elif "precision" in states:
                meaning = "that much may be rounding"
            elif self._bound == "tight":
                meaning = "that of its last convex problem" if np.isfinite(worst) else "it was still descending"
            # More iterations do not help where rounding is what forbids a smaller gap, nor advice who wanted to stop.
            strength = "reach" if self._bound == "tight" else "C"
            stuck = states <= {"stalled", "precision"}
            limit = f"Lower {strength}" if stuck else f"Increase max_iter, lower {strength}"
            if "time" in states:
                meaning = f"max_time = {self.max_time:g} s was over, and {meaning}"
                limit = f"Increase max_time or tol, lower {strength}"
            advice = "" if states == {"stopped"} else f". {limit}, or scale the features"
            warn_user(
                f"{type(self).__name__} stopped after {int(np.max(result.n_iter))} iterations with a relative gap of "
                f"{worst:.3g} > tol = {self.tol:g}: {meaning}{advice}",
                ConvergenceWarning,
            )
