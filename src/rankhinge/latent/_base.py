"""What latent machines share: bags in, the outer loop, fitted attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array

from rankhinge._progress import Progress
from rankhinge._validation import without_unlabelled
from rankhinge.features import FeatureMap
from rankhinge.latent._predict import BagPredictor
from rankhinge.latent.bags import Bags, is_bags_like
from rankhinge.latent.candidates import CandidateFeatures, Counter
from rankhinge.latent.cccp import ConcaveConvex
from rankhinge.latent.inner import InnerOptions, InnerSolver
from rankhinge.latent.kept import Kept, choice_tables, counted_within_bags, inner_history
from rankhinge.latent.objective import BagLists, LatentObjective
from rankhinge.latent.problem import LatentProblem, check_chosen, problems_of
from rankhinge.latent.starts import INITS, class_means, first_choice, random_choice
from rankhinge.latent.whole import Whole
from rankhinge.problems.targets import Targets, as_targets, encode_targets
from rankhinge.solvers import Deadline, Solver
from rankhinge.solvers.certificate import HEURISTIC
from rankhinge.svm._base import LinearRankingMachine
from rankhinge.svm._fitting import earlier_model, interrupts, warn_of_zeros, warn_user
from rankhinge.svm.fit import Given
from rankhinge.svm.threshold import cut_rankings
from rankhinge.svm.tuning import per_problem

__all__ = ["LatentMachine"]

_COLUMNS = ("start", "round", "iteration", "primal", "dual", "gap")


class LatentMachine(BagPredictor):
    """From bags and labels to fitted attributes; the leaves say what the objective is and how to cut the ranking."""

    n_outer_: Any
    outer_history_: dict[str, NDArray[Any]]
    chosen_: Any
    chosen_history_: Any
    n_products_: int

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0, None, closed="neither"), "array-like"],
        "solver": [StrOptions({"bundle", "cutting-plane"})],
        "n_starts": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions(set(INITS))],
        "tol": LinearRankingMachine._parameter_constraints["tol"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "max_outer": [Interval(Integral, 1, None, closed="left")],
        "max_time": LinearRankingMachine._parameter_constraints["max_time"],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    @property
    def _constant(self) -> float:
        """An intercept by a constant feature of this value; 0: none."""
        return 0.0

    def _make_objective(self, features: FeatureMap, problems: Sequence[BagLists]) -> LatentObjective:
        """The inner objective."""
        raise NotImplementedError

    # Computes true values, over all candidates.
    _whole: ClassVar[type[Whole]] = Whole

    def _make_inner(
        self,
        features: CandidateFeatures,
        bags: Bags,
        problems: list[LatentProblem],
        C: NDArray[np.float64],
        watch: Callable[[Solver], bool],
    ) -> InnerSolver:
        whole = self._whole(features, bags.offsets, problems, C, self._make_objective)
        shrinking = getattr(self, "shrinking", False)
        return InnerSolver(whole, InnerOptions(self.solver, self.max_iter, shrinking, self.random_state, watch))

    def _make_outer(self, inner: InnerSolver) -> ConcaveConvex:
        return ConcaveConvex(inner, self._loss(), self.tol, self.max_outer)

    def _groups(self, n_problems: int) -> list[NDArray[np.int64]]:
        """Which problems go in lockstep: all."""
        return [np.arange(n_problems)]

    def _cut(
        self, targets: Targets, usable: NDArray[np.bool_], scores: NDArray[np.float64], bias: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Intercepts and slopes from the bags' scores, of shape (K, n_bags), and the learnt intercepts."""
        return cut_rankings(targets, usable, scores, self.threshold)

    def _bags_and_targets(self, X: Any, y: Any, mask: ArrayLike | None) -> tuple[Given, Targets]:
        if not isinstance(X, Bags) and not is_bags_like(X):
            X, y = self._validated(X, without_unlabelled(y, mask), multi_output=True, ensure_min_samples=2)
            warn_user(
                f"X has two dimensions, so each of its {X.shape[0]} rows is a bag of one candidate, and there is "
                "nothing to choose. If rows are candidates, group them, Bags(X, bag_ids=...), with a label for each "
                "bag; if they are samples, RankSVC does the same"
            )
            bags = Bags(X)
        else:
            bags = self._bags(X, reset=True)
            y = check_array(
                without_unlabelled(y, mask), accept_sparse="csr", ensure_2d=False, dtype=None, input_name="y"
            )
        if y.shape[0] != len(bags):
            hint = ": one label for each bag, not for each candidate" if y.shape[0] == bags.n_candidates else ""
            raise ValueError(f"there are {len(bags)} bags, but y has {y.shape[0]} labels{hint}")
        given = Given(bags, as_targets(y, mask), {} if mask is None else {"mask": mask})
        return given, encode_targets(given.y, mask)

    def _fit(self, X: Any, y: Any, chosen: ArrayLike | None, mask: ArrayLike | None) -> Self:
        given, targets, usable, known = self._prepared(X, y, chosen, mask)
        deadline = Deadline.after(self.max_time)
        C = per_problem(self.C, usable)
        self._run(given, targets, usable, problems_of(given.X, targets, usable, known), C, deadline, self._weights())
        return self

    def _prepared(
        self, X: Any, y: Any, chosen: ArrayLike | None, mask: ArrayLike | None
    ) -> tuple[Given, Targets, NDArray[np.bool_], NDArray[np.int64]]:
        """What is given, the targets, which of them can be ranked, and the known candidates, (K, n_bags)."""
        given, targets = self._bags_and_targets(X, y, mask)
        usable = targets.usable()
        known = check_chosen(chosen, given.X, usable.size)
        if not usable.any():
            raise ValueError("no label has both a positive and a negative bag: there is nothing to rank")
        if not usable.all():
            warn_user(
                f"labels {np.flatnonzero(~usable)[:10].tolist()} have no positive or no negative bag: "
                "their scores are constant"
            )
        return given, targets, usable, known

    def _run(
        self,
        given: Given,
        targets: Targets,
        usable: NDArray[np.bool_],
        problems: list[LatentProblem],
        C: NDArray[np.float64],
        deadline: Deadline,
        known: NDArray[np.float64],
    ) -> None:
        """Train from each start, keep the least objective of each problem, also after an interrupt.

        Weights that are known, (K, d), are the only start; there are none if their shape is another.
        """
        bags: Bags = given.X
        latent = bags.n_candidates > len(bags)
        features = CandidateFeatures(
            bags.matrix, bags.rows(), constant=self._constant, skip_zeros=latent, counter=Counter()
        )
        kept = Kept(len(problems), features.n_features)
        before = known if known.shape == (usable.size, features.n_features) else None

        def fitted(kept: Kept) -> dict[str, Any]:
            return self._fitted_by(bags, targets, usable, problems, features, kept)

        def present() -> dict[str, Any]:
            now = kept.copy()
            now.interrupt()
            return fitted(now)

        try:
            with (
                interrupts(),
                Progress(self.verbose, _COLUMNS) as progress,
                self._callbacks(present, given) as wants_stop,
            ):
                stop = _Wish(wants_stop, deadline)
                for start in range(self.n_starts if before is None else 1):
                    self._run_from(start, before, bags, problems, C, usable, features, progress, stop, kept)
                    if stop.granted:
                        break
        except KeyboardInterrupt:
            kept.interrupt()
            # If nothing has been reached yet, keep an earlier model.
            if not (kept.is_empty and earlier_model(self)):
                self.__dict__.update(fitted(kept))
            raise
        kept.status = [stop.status if status == "stopped" else status for status in kept.status]
        self.__dict__.update(fitted(kept))
        if stop.status != "interrupted":
            self._warn(kept)

    def _run_from(
        self,
        start: int,
        before: NDArray[np.float64] | None,
        bags: Bags,
        problems: list[LatentProblem],
        C: NDArray[np.float64],
        usable: NDArray[np.bool_],
        features: CandidateFeatures,
        progress: Progress,
        wants_stop: Callable[[], bool],
        kept: Kept,
    ) -> None:
        """One start: the outer loop to its end."""
        for group in self._groups(len(problems)):
            self._run_group(start, before, group, bags, problems, C, usable, features, progress, wants_stop, kept)

    def _run_group(
        self,
        start: int,
        before: NDArray[np.float64] | None,
        group: NDArray[np.int64],
        bags: Bags,
        problems: list[LatentProblem],
        C: NDArray[np.float64],
        usable: NDArray[np.bool_],
        features: CandidateFeatures,
        progress: Progress,
        wants_stop: Callable[[], bool],
        kept: Kept,
    ) -> None:
        """The outer loop of problems that go in lockstep."""
        outer: ConcaveConvex

        def watch(solver: Solver) -> bool:
            progress.update(start=start + 1, round=float(outer.n_outer.max()) + 1, **solver.report())
            return wants_stop()

        outer = self._make_outer(self._make_inner(features, bags, [problems[k] for k in group], C[group], watch))
        kept.running = outer, group
        labels = np.flatnonzero(usable)[group]
        self._begin(outer, start, None if before is None else before[labels])
        while not outer.done:
            outer.step()
        kept.offer(outer, group)
        kept.running = None

    def _weights(self) -> NDArray[np.float64]:
        """The coefficients to continue from as the solver sees them, with the intercept's; none: empty."""
        earlier = earlier_model(self) if self.warm_start else {}
        if "coef_" not in earlier:
            return np.empty((0, 0))
        coef: NDArray[np.float64] = earlier["coef_"]
        return np.column_stack([coef, earlier["intercept_"] / self._constant]) if self._constant else coef

    def _begin(self, outer: ConcaveConvex, start: int, before: NDArray[np.float64] | None) -> None:
        """The first choice of candidates; `start` counts from 0, and all but the first are random."""
        problems, features = outer.whole.problems, outer.whole.features
        if before is not None and before.any():
            outer.begin_at(before.T.copy(), exact=True)
            return
        if not any(np.any(problem.relevant & problem.latent) for problem in problems):
            return
        if start == 0 and self.init == "mean":
            outer.begin_at(class_means(features, problems), exact=False)
        elif start == 0 and self.init == "first":
            outer.begin_with(first_choice(problems))
        else:
            outer.begin_with(random_choice(problems, np.random.default_rng([_seed(self.random_state), start])))

    def _fitted_by(
        self,
        bags: Bags,
        targets: Targets,
        usable: NDArray[np.bool_],
        problems: list[LatentProblem],
        features: CandidateFeatures,
        kept: Kept,
    ) -> dict[str, Any]:
        """All fitted attributes."""
        one = usable.size == 1

        def spread(values: NDArray[Any], missing: Any = 0) -> Any:
            everywhere = np.full((usable.size, *values.shape[1:]), missing, dtype=values.dtype)
            everywhere[usable] = values
            return everywhere

        def scalar(values: NDArray[Any]) -> Any:
            return values[0].item() if one else values

        weights = spread(kept.w)
        bias = self._constant * weights[:, bags.n_features :].sum(axis=1)
        status = spread(np.array(kept.status, dtype="<U16"), "constant")
        places, values = kept.best_of(features, bags)
        intercepts, slopes = self._cut(targets, usable, spread(values), bias)
        outer = kept.outer_history
        return {
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
            "chosen_history_": choice_tables(kept.choices, problems, bags, usable),
            "n_passes_": int(np.ceil(features.counter.n_rows / features.n_samples)),
            "n_products_": features.counter.n_products,
        }

    def _warn(self, kept: Kept) -> None:
        """Warn of models that rank nothing, and of those that may be far from where the fit would end."""
        # With heuristic inference no gap is proved; the fit is not to blame.
        settled = (kept.gap <= self.tol) | (np.array(kept.status) == HEURISTIC)
        flat = ~kept.w[:, : self.n_features_in_].any(axis=1) & settled
        # Where the bound of a loss has its minimum at 0, as those with a cut often have, no C helps.
        remedy = "Scale the features, or choose a larger C; if that does not help, another loss"
        warn_of_zeros(int(flat.sum()), flat.size, remedy)
        if "max_outer" in kept.status:
            message = f"the candidates still changed after max_outer = {self.max_outer} rounds"
        elif not settled.all():
            worst = float(np.max(kept.gap[~settled]))
            message = f"an inner problem ended with a relative gap of {worst:.3g} > tol = {self.tol:g}"
            if np.isinf(worst):
                states = sorted({status for status, ended in zip(kept.status, settled, strict=True) if not ended})
                message = f"an inner problem ended as {', '.join(states)}, and nothing is proved of it"
        else:
            return
        warn_user(f"{type(self).__name__}: {message}", ConvergenceWarning)


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


def _seed(random_state: Any) -> int:
    """A number for the random starts; None means 0, as for the solvers."""
    if random_state is None or isinstance(random_state, int | np.integer):
        return int(random_state or 0)
    return int(random_state.randint(2**31 - 1))
