"""`ApproximateRankSVC`: rank only the difficult samples, keep the easy ones where they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval

from rankhinge._progress import Progress
from rankhinge.features import feature_map
from rankhinge.losses import RankingLoss, get_loss
from rankhinge.objective import RankingObjective
from rankhinge.papers.machines.easy_samples import TOLERATED, EasySamples
from rankhinge.papers.solvers.constrained import constrained_solver
from rankhinge.problems import one_list
from rankhinge.problems.targets import Targets
from rankhinge.solvers import Solver, SolverResult, make_solver
from rankhinge.svm._fitting import Unfinished, interrupts
from rankhinge.svm.fit import Fit, Fitted, Given, Seen, conclude, fit_linear
from rankhinge.svm.rank_svc import RankSVC
from rankhinge.svm.tuning import Tuning

__all__ = ["ApproximateRankSVC"]


_FIXED = ("solver", "checkpoint", "warm_start", "bound", "scale", "init", "init_C")


class ApproximateRankSVC(RankSVC):
    r"""`RankSVC` on the samples that a binary SVM finds difficult (AP-SVM-APPX).

    A binary SVM without intercept, :math:`w_0`, is trained first. Samples with ``y w₀·x ≥ 1`` are easy. In each class
    the share `keep_easy` of them with the largest margin stays easy; the others join the difficult ones. Then it solves

    .. math:: \min_w \tfrac12\|w\|^2 + C \, J(X_{\text{difficult}}\, w)
              \quad \text{subject to } y_i \, w \cdot x_i \ge 1 \text{ for the easy samples.}

    It approximates `RankSVC`. Exact inference is now fast enough that the approximation rarely pays. It is included as
    the method of the paper, and as an example of training under hard constraints.

    Parameters
    ----------
    loss : str or RankingLoss, default "ap"
    C : float or array of shape (K,), default 1.0
        For both stages; the binary SVM minimises ``½‖w‖² + C · mean hinge``.
    keep_easy : float, default 0.5
        Share of the easy samples that stay easy, in [0, 1].
    tol, max_iter, max_time, threshold, random_state, verbose
        As for `RankSVC`; the solver is the bundle method.

    Attributes
    ----------
    n_easy_, n_difficult_ : int or ndarray of shape (K,)
    binary_coef_ : ndarray of shape (1, d) or (K, d)
        w₀.
    coef_, … :
        As for `RankSVC`; `objective_` is that of the difficult samples.

    References
    ----------
    Mohapatra, Jawahar, Kumar: Efficient Optimization for Average Precision SVM, NIPS 2014, section 3.3.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from rankhinge import ApproximateRankSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = ApproximateRankSVC(C=100.0).fit(scale(X), y)
    >>> model.n_easy_ > 100, model.n_easy_ + model.n_difficult_, model.score(scale(X), y) > 0.99
    (True, 569, True)
    """

    n_easy_: Any
    n_difficult_: Any
    binary_coef_: NDArray[np.float64]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{key: value for key, value in RankSVC._parameter_constraints.items() if key not in _FIXED},
        "C": [Interval(Real, 0, None, closed="neither"), "array-like"],
        "keep_easy": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(
        self,
        loss: str | RankingLoss = "ap",
        C: float | ArrayLike = 1.0,
        *,
        keep_easy: float = 0.5,
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_time: float | None = None,
        threshold: str | float = "f1",
        pos_label: Any = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.C = C
        self.keep_easy = keep_easy
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.threshold = threshold
        self.pos_label = pos_label
        self.random_state = random_state
        self.verbose = verbose

    # Only this solver takes constraints, so there is nothing to choose.
    solver, bound = "bundle", "convex"

    def _fit_opened(self, data: Any, given: Given, rule: Any = None, tuning: Any = None) -> Fitted:
        raise TypeError(
            f"ApproximateRankSVC reads single rows, which {type(given.X).__name__} does not offer: pass an array"
        )

    # The binary SVM decides which samples are easy.
    _ranks_only = False

    def _fit_targets(
        self, seen: Seen, targets: Targets, tuning: Tuning, given: Given, run: Callable[[Fit], Fitted] = fit_linear
    ) -> Fitted:
        return super()._fit_targets(seen, targets, tuning, given, partial(self._two_stages, targets, run))

    def _two_stages(self, targets: Targets, run: Callable[[Fit], Fitted], fit: Fit) -> Fitted:
        """The binary SVM first; then what it finds difficult, under constraints."""
        features, chosen, known = feature_map(fit.seen.X), np.flatnonzero(fit.usable), targets.known()
        first = RankingObjective(features, targets.lists(fit.usable), get_loss("zero-one"))
        result, interrupt = self._binary_svm(first, fit.tuning)
        if interrupt is not None:
            # The binary SVM so far. It is a usable model, which calls no sample easy yet.
            easy = self._stage(fit, result.coef, np.zeros((chosen.size, features.n_samples), np.int8), targets)
            alone = replace(fit, objective=first, describe=lambda found: fit.describe(found) | easy)
            return conclude(alone, result, {"C_": fit.tuning.C}, interrupt)
        margins = np.where(targets.relevant[chosen], 1, -1) * features.scores(result.coef)
        signs = np.stack([self._easy(margins[c], targets.relevant[k], known[k]) for c, k in enumerate(chosen)])
        easy = self._stage(fit, result.coef, signs, targets)
        problems = [one_list(targets.relevant[k], known[k] & (signs[c] == 0)) for c, k in enumerate(chosen)]
        second = replace(
            fit,
            objective=RankingObjective(features, problems, get_loss(self.loss)),
            describe=lambda found: fit.describe(found) | easy,
            cut_by=first,
            # w₀ satisfies all constraints: the search begins with a feasible point.
            start=result.coef,
            make=partial(constrained_solver, "bundle", constraints=EasySamples(features, signs)),
            n_passes=float(np.ceil(result.n_passes)) + 1,
        )
        return run(second)

    def _stage(
        self, fit: Fit, binary: NDArray[np.float64], signs: NDArray[np.int8], targets: Targets
    ) -> dict[str, Any]:
        """Fitted attributes of the first stage."""
        usable = fit.usable
        coef = np.zeros((usable.size, binary.shape[0]))
        coef[usable] = binary.T
        n_easy, n_difficult = np.zeros((2, usable.size), np.int64)
        n_easy[usable] = np.count_nonzero(signs, axis=1)
        n_difficult[usable] = targets.known()[usable].sum(axis=1) - n_easy[usable]
        return {
            "binary_coef_": fit.seen.coordinates.everywhere(coef),
            "n_easy_": int(n_easy[0]) if n_easy.size == 1 else n_easy,
            "n_difficult_": int(n_difficult[0]) if n_easy.size == 1 else n_difficult,
        }

    def _binary_svm(self, objective: RankingObjective, tuning: Tuning) -> tuple[SolverResult, BaseException | None]:
        """w₀ of each problem, and the interrupt that ended it, if one did."""
        options = {"tol": self.tol, "max_iter": self.max_iter, "random_state": self.random_state}
        solver = make_solver("bundle", objective, tuning.C, **options)
        try:
            with interrupts(), Progress(self.verbose) as progress:

                def watch(running: Solver) -> bool:
                    progress.update(**running.report())
                    return tuning.deadline.passed

                result = solver.run(watch)
        except KeyboardInterrupt as error:
            return solver.result(status="interrupted"), error
        if not tuning.deadline.passed:
            Unfinished().note(result, self.tol).warn("the binary SVM, which finds the easy samples,")
        return result, None

    def _easy(
        self, margins: NDArray[np.float64], relevant: NDArray[np.bool_], known: NDArray[np.bool_]
    ) -> NDArray[np.int8]:
        """±1 for the samples of one problem that stay easy, 0 for the difficult ones."""
        signs = np.zeros(margins.size, np.int8)
        for label in (True, False):
            mine = np.flatnonzero(known & (relevant == label))
            # Up to rounding, support vectors lie at 1: the last bit must not decide.
            easy = mine[margins[mine] >= 1.0 - TOLERATED]
            easy = easy[np.argsort(-margins[easy], kind="stable")][: round(self.keep_easy * easy.size)]
            # A ranking needs both classes: if no sample of this one is difficult, the least easy one is.
            if easy.size == mine.size:
                easy = easy[:-1]
            signs[easy] = 1 if label else -1
        return signs
