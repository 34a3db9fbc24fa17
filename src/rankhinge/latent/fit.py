"""A fit of latent machines, on one page: the starts, their outer loop, and what the best of them has found.

What comes before is the machines' part (`_base`): bags, targets and known candidates. What follows takes values and
returns values. Nothing is written to the machine but by `LatentMachine._become`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from rankhinge._progress import Progress
from rankhinge.latent.candidates import CandidateFeatures, Counter
from rankhinge.latent.kept import Kept, choice_tables, counted_within_bags, inner_history
from rankhinge.latent.problem import LatentProblem, problems_of
from rankhinge.problems.targets import Targets
from rankhinge.solvers import Deadline, Solver
from rankhinge.solvers.certificate import HEURISTIC
from rankhinge.svm._fitting import earlier_model, interrupts, warn_of_zeros, warn_user
from rankhinge.svm.fit import Given

__all__ = ["LatentFit", "LatentFitted", "fit_latent"]

_COLUMNS = ("start", "round", "iteration", "primal", "dual", "gap")


@dataclass(frozen=True)
class LatentFit:
    """All that the stages of a fit need.

    Attributes
    ----------
    machine : LatentMachine
        For its parameters, and for the parts of its outer loop.
    given : Given
        Bags and labels.
    targets : Targets
    usable : ndarray of shape (K,)
    known : ndarray of shape (K, n_bags)
        Candidates that are known.
    C : ndarray of shape (n_usable,)
    deadline : Deadline
    start : ndarray of shape (K, d)
        Weights that are the only start; there are none if the shape is another.
    found : dict, optional
        Fitted attributes that tell of a search.
    """

    machine: Any
    given: Given
    targets: Targets
    usable: NDArray[np.bool_]
    known: NDArray[np.int64]
    C: NDArray[np.float64]
    deadline: Deadline
    start: NDArray[np.float64]
    found: dict[str, Any] | None = None

    @cached_property
    def features(self) -> CandidateFeatures:
        """The candidates as solvers see them, and a count of what is asked of them."""
        bags = self.given.X
        latent, constant = bags.n_candidates > len(bags), self.machine._constant
        return CandidateFeatures(bags.matrix, bags.rows(), constant=constant, skip_zeros=latent, counter=Counter())

    @cached_property
    def problems(self) -> list[LatentProblem]:
        """Of the usable targets."""
        return problems_of(self.given.X, self.targets, self.usable, self.known)


class LatentFitted(NamedTuple):
    """A model: all fitted attributes, and the interrupt that ended the fit, if one did."""

    attributes: dict[str, Any]
    interrupt: BaseException | None = None


def fit_latent(fit: LatentFit) -> LatentFitted:
    """Train from each start, and keep the least objective of each problem.

    An interrupt leaves the best model so far. Before there is any, it passes on.
    """
    machine, start = fit.machine, fit.start
    kept = Kept(len(fit.problems), fit.features.n_features)
    before = start if start.shape == (fit.usable.size, fit.features.n_features) else None

    def present() -> dict[str, Any]:
        now = kept.copy()
        now.interrupt()
        return _attributes(fit, now)

    try:
        with (
            interrupts(),
            Progress(machine.verbose, _COLUMNS) as progress,
            machine._callbacks(present, fit.given) as wants_stop,
        ):
            stop = _Wish(wants_stop, fit.deadline)
            for number in range(machine.n_starts if before is None else 1):
                for group in machine._groups(len(fit.problems)):
                    _follow(fit, number, before, group, progress, stop, kept)
                if stop.granted:
                    break
    except KeyboardInterrupt as error:
        kept.interrupt()
        # If nothing has been reached yet, an earlier model is worth more, and stays.
        if kept.is_empty and earlier_model(machine):
            raise
        return LatentFitted(_attributes(fit, kept), error)
    kept.status = [stop.status if status == "stopped" else status for status in kept.status]
    attributes = _attributes(fit, kept)
    if stop.status != "interrupted":
        _warn(machine, kept)
    return LatentFitted(attributes)


def _follow(
    fit: LatentFit,
    number: int,
    before: NDArray[np.float64] | None,
    group: NDArray[np.int64],
    progress: Progress,
    stop: _Wish,
    kept: Kept,
) -> None:
    """The outer loop of problems that go in lockstep, from one start to its end."""
    machine, outer = fit.machine, None

    def watch(solver: Solver) -> bool:
        rounds = 0.0 if outer is None else float(outer.n_outer.max())
        progress.update(start=number + 1, round=rounds + 1, **solver.report())
        return stop()

    problems = [fit.problems[k] for k in group]
    outer = machine._make_outer(machine._make_inner(fit.features, fit.given.X, problems, fit.C[group], watch))
    kept.running = outer, group
    labels = np.flatnonzero(fit.usable)[group]
    machine._begin(outer, number, None if before is None else before[labels])
    while not outer.done:
        outer.step()
    kept.offer(outer, group)
    kept.running = None


def _attributes(fit: LatentFit, kept: Kept) -> dict[str, Any]:
    """All fitted attributes."""
    bags, targets, usable, features = fit.given.X, fit.targets, fit.usable, fit.features
    one = usable.size == 1

    def spread(values: NDArray[Any], missing: Any = 0) -> Any:
        everywhere = np.full((usable.size, *values.shape[1:]), missing, dtype=values.dtype)
        everywhere[usable] = values
        return everywhere

    def scalar(values: NDArray[Any]) -> Any:
        return values[0].item() if one else values

    weights = spread(kept.w)
    bias = fit.machine._constant * weights[:, bags.n_features :].sum(axis=1)
    status = spread(np.array(kept.status, dtype="<U16"), "constant")
    places, values = kept.best_of(features, bags)
    intercepts, slopes = fit.machine._cut(targets, usable, spread(values), bias)
    outer = kept.outer_history
    return (fit.found or {}) | {
        "coef_": np.ascontiguousarray(weights[:, : bags.n_features]),
        "intercept_": intercepts,
        "slope_": slopes,
        "classes_": targets.classes,
        "_kind": targets.kind,
        "objective_": scalar(spread(kept.objective)),
        "dual_objective_": scalar(spread(kept.dual)),
        "gap_": scalar(spread(kept.gap)),
        "n_iter_": scalar(spread(kept.n_iter)),
        "n_outer_": scalar(spread(kept.n_outer)),
        "status_": str(status[0]) if one else status,
        "history_": inner_history(kept.histories, kept.exact, usable),
        "outer_history_": {name: spread(rows)[0] if one else spread(rows) for name, rows in outer.items()},
        "chosen_": counted_within_bags(spread(places), bags, usable, one),
        "chosen_history_": choice_tables(kept.choices, fit.problems, bags, usable),
        "n_passes_": int(np.ceil(features.counter.n_rows / features.n_samples)),
        "n_products_": features.counter.n_products,
    }


def _warn(machine: Any, kept: Kept) -> None:
    """Warn of models that rank nothing, and of those that may be far from where the fit would end."""
    # With heuristic inference no gap is proved; the fit is not to blame.
    settled = (kept.gap <= machine.tol) | (np.array(kept.status) == HEURISTIC)
    flat = ~kept.w[:, : machine.n_features_in_].any(axis=1) & settled
    # Where the bound of a loss has its minimum at 0, as those with a cut often have, no C helps.
    remedy = "Scale the features, or choose a larger C; if that does not help, another loss"
    warn_of_zeros(int(flat.sum()), flat.size, remedy)
    if "max_outer" in kept.status:
        message = f"the candidates still changed after max_outer = {machine.max_outer} rounds"
    elif not settled.all():
        worst = float(np.max(kept.gap[~settled]))
        message = f"an inner problem ended with a relative gap of {worst:.3g} > tol = {machine.tol:g}"
        if np.isinf(worst):
            states = sorted({status for status, ended in zip(kept.status, settled, strict=True) if not ended})
            message = f"an inner problem ended as {', '.join(states)}, and nothing is proved of it"
    else:
        return
    warn_user(f"{type(machine).__name__}: {message}", ConvergenceWarning)


class _Wish:
    """A function that tells whether to stop, by a callback's wish or by the clock. After its first True it stays so."""

    def __init__(self, wants_stop: Callable[[], bool], deadline: Deadline) -> None:
        self._wants_stop, self._deadline, self.granted = wants_stop, deadline, False
        # Of problems that end so.
        self.status = "stopped"

    def __call__(self) -> bool:
        if not self.granted and self._deadline.passed:
            self.granted, self.status = True, self._deadline.status
        self.granted = self.granted or self._wants_stop()
        return self.granted
