"""What latent machines share: parameters, bags and targets, and the parts that their outer loop is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array

from rankhinge._validation import without_unlabelled
from rankhinge.features import FeatureMap
from rankhinge.latent._predict import BagPredictor
from rankhinge.latent.bags import Bags, is_bags_like
from rankhinge.latent.candidates import CandidateFeatures
from rankhinge.latent.cccp import ConcaveConvex
from rankhinge.latent.fit import LatentFit, LatentFitted, fit_latent
from rankhinge.latent.inner import InnerOptions, InnerSolver
from rankhinge.latent.objective import BagLists, LatentObjective
from rankhinge.latent.problem import LatentProblem, check_chosen
from rankhinge.latent.starts import INITS, class_means, first_choice, random_choice
from rankhinge.latent.whole import Whole
from rankhinge.problems.targets import Targets, as_targets, encode_targets
from rankhinge.solvers import Deadline, Solver
from rankhinge.svm._base import LinearRankingMachine
from rankhinge.svm._fitting import earlier_model, warn_user
from rankhinge.svm.fit import Given
from rankhinge.svm.threshold import cut_rankings
from rankhinge.svm.tuning import per_problem

__all__ = ["LatentMachine"]


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
        return self._become(fit_latent(LatentFit(self, given, targets, usable, known, C, deadline, self._weights())))

    def _become(self, fitted: LatentFitted) -> Self:  # type: ignore[override]
        """Take all attributes of a model at once."""
        self.__dict__.update(fitted.attributes)
        if fitted.interrupt is not None:
            raise fitted.interrupt
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


def _seed(random_state: Any) -> int:
    """A number for the random starts; None means 0, as for the solvers."""
    if random_state is None or isinstance(random_state, int | np.integer):
        return int(random_state or 0)
    return int(random_state.randint(2**31 - 1))
