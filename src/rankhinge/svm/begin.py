"""A solver at its start, for some of the problems of a fit: the second stage of `svm.fit`."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankhinge._progress import Progress
from rankhinge.solvers import Saved, Solver, Tight, make_solver, seed_of
from rankhinge.svm._fitting import of_problems, warn_user
from rankhinge.svm.flat import CONSTANT, are_constant
from rankhinge.svm.logistic import InterruptedStart
from rankhinge.svm.protocol import FitObjective
from rankhinge.svm.start import find_start, rescaled, unit_of_C, unit_of_init_C
from rankhinge.svm.tuning import Tuning
from rankhinge.svm.units import UNTUNED, Bearing

if TYPE_CHECKING:
    from rankhinge.svm.fit import Fit

__all__ = ["Course", "begin"]

# What the progress line calls an iteration of the fit that finds the start.
_START = "start: iteration"

Chosen = dict[str, NDArray[np.float64]]


@dataclass
class Course:
    """What is found while groups of problems begin: the values chosen for them, and an interrupt, if any.

    `saved` is what an earlier run has left, if there was one.
    """

    chosen: Chosen
    saved: Saved | None = None
    interrupt: BaseException | None = None
    has_begun: bool = False


def begin(fit: Fit, course: Course, group: NDArray[np.int64]) -> Solver:
    """The solver of some of the problems, which is at their start."""
    machine, whole, objective, tuning = fit.machine, fit.objective, fit.objective, fit.tuning
    if group.size < whole.n_problems:
        objective, tuning = whole.part(group), tuning.part(group)
    options: dict[str, Any] = {"tol": machine.tol, "max_iter": machine.max_iter}
    options["start"] = None if fit.start is None else fit.start[:, group]
    if course.saved is not None:
        options["planes"] = [course.saved.planes[k] for k in group]
    if machine._bound == "tight":
        if course.saved is not None and not np.isnan(course.saved.chosen["C_"][group]).any():
            solver, chosen = _begin_again(fit, course.saved, group, objective, options)
        else:
            options |= {"planes": None, "start": None if course.saved is not None else options["start"]}
            solver, chosen = _begin_tight(fit, course, objective, tuning, **options)
    else:
        chosen = {"C_": np.ones(group.size) if isinstance(tuning.C, str) else tuning.C}
        if fit.start is not None and fit.make is None:
            options["start"] = _worth_it(options["start"], objective, chosen["C_"])
        make = fit.make or partial(make_solver, machine.solver)
        solver = make(objective, chosen["C_"], random_state=machine.random_state, **options)
    for name, values in chosen.items():
        shape = (whole.n_problems, *values.shape[1:])
        course.chosen.setdefault(name, np.full(shape, np.nan))[group] = values
    return solver if course.saved is None else course.saved.resume(solver, group)


def _worth_it(start: NDArray[np.float64], objective: FitObjective, C: NDArray[np.float64]) -> NDArray[np.float64]:
    """Starts (d, K), or 0 where ½‖w‖² alone is more than the objective at 0; no pass over X."""
    at_zero = C * objective.evaluate(objective.zeros(np.arange(C.size)), coefficients=False).value
    with np.errstate(over="ignore"):
        worth_it = 0.5 * np.square(start).sum(axis=0) <= at_zero
    return np.where(worth_it, start, 0.0)


def _begin_tight(
    fit: Fit, course: Course, objective: FitObjective, tuning: Tuning, **options: Any
) -> tuple[Solver, Chosen]:
    """The solver of the tight bound, around a start that is found first, and what was chosen for it.

    After an interrupt, the start so far is used, and the interrupt is noted.
    """
    machine, coordinates, bearing = fit.machine, fit.seen.coordinates, fit.seen.bearing or Bearing(1.0, 1.0)
    counts = objective.counts()
    scale = UNTUNED.tightness * counts.n_negatives if isinstance(tuning.scale, str) else tuning.scale
    reach = bearing.reach(counts.n_positives, counts.n_lists) if isinstance(tuning.reach, str) else tuning.reach
    init, init_C = tuning.init, tuning.init_C
    if isinstance(init_C, str):
        init_C = unit_of_init_C(init, counts.n_samples, bearing)
    inside = init if isinstance(init, str) else coordinates.inside(init)
    if tuning.reached is not None and tuning.reached.centre is not None:
        inside = tuning.reached.centre.T
    try:
        shown = machine.verbose and not course.has_begun
        with Progress(machine.verbose, (_START,)) if shown else nullcontext() as progress:
            steps = count(1)
            found = find_start(
                inside,
                objective,
                init_C,
                tol=machine.tol,
                max_iter=machine.max_iter,
                random_state=machine.random_state,
                deadline=tuning.deadline,
                watch=None if progress is None else lambda: progress.update(**{_START: float(next(steps))}),
            )
    except InterruptedStart as error:
        found, course.interrupt = error.start, KeyboardInterrupt()
        if not found.coef.any():
            raise course.interrupt from error
    try:
        unit, known = unit_of_C(objective, *rescaled(objective, found.coef, scale))
    except KeyboardInterrupt as error:
        # The start has been found. The rest takes hardly any time beside that.
        course.interrupt = error
        unit, known = unit_of_C(objective, *rescaled(objective, found.coef, scale))
    centre = known.weights
    if not centre.any(axis=0).all() and course.interrupt is None and not tuning.deadline.passed:
        _warn_of_flat_starts(objective, centre)
    C = reach * unit
    chosen = {"C_": C, "reach_": reach, "scale_": scale, "init_coef_": coordinates.everywhere(centre.T.copy())}
    if isinstance(init, str):
        chosen["init_C_"] = init_C
    solver = Tight(objective, C, centre=centre, known=known, random_state=seed_of(machine.random_state), **options)
    solver.n_passes += found.n_passes + coordinates.back
    return solver, chosen


def _begin_again(
    fit: Fit, saved: Saved, group: NDArray[np.int64], objective: FitObjective, options: dict[str, Any]
) -> tuple[Solver, Chosen]:
    """The solver of the tight bound where an earlier run was, which had begun with these problems."""
    chosen = {name: values[group] for name, values in saved.chosen.items()}
    centre = fit.seen.coordinates.inside(chosen["init_coef_"]).T
    seed = seed_of(fit.machine.random_state)
    return Tight(objective, chosen["C_"], centre=centre, random_state=seed, **options), chosen


def _warn_of_flat_starts(objective: FitObjective, centre: NDArray[np.float64]) -> None:
    """Warn of starts (d, K), some of which rank nothing."""
    flat = np.flatnonzero(~centre.any(axis=0))
    constant = are_constant(objective, int(flat[0]))
    warn_user(
        f"the start{of_problems(flat.size, objective.n_problems)} gives all samples of a list the same score: the fit "
        f"begins at 0 instead. {CONSTANT if constant else 'Choose another init, or a larger init_C'}"
    )
