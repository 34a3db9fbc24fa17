"""`ApproximateRankSVC`: rank only the difficult samples, keep the easy ones where they are."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval

from rankhinge._progress import Progress
from rankhinge.features import FeatureMap, feature_map
from rankhinge.losses import RankingLoss, get_loss
from rankhinge.objective import RankingObjective
from rankhinge.objective.constraints import TOLERATED, EasySamples
from rankhinge.problems import one_list
from rankhinge.problems.targets import Targets
from rankhinge.solvers import Solver, make_solver
from rankhinge.svm._base import Tuning
from rankhinge.svm._fitting import Unfinished, interrupts
from rankhinge.svm.rank_svc import RankSVC

__all__ = ["ApproximateRankSVC"]


_FIXED = ("solver", "warm_start", "bound", "scale", "init", "init_C")


class ApproximateRankSVC(RankSVC):
    r"""`RankSVC` on the samples that a binary SVM finds difficult (AP-SVM-APPX).

    A binary SVM without intercept, :math:`w_0`, is trained first. Samples with ``y w₀·x ≥ 1`` are easy; of these the
    `keep_easy` with the largest margin, in each class, stay easy, and the others join the difficult ones. Then

    .. math:: \min_w \tfrac12\|w\|^2 + C \, J(X_{\text{difficult}}\, w)
              \quad \text{subject to } y_i \, w \cdot x_i \ge 1 \text{ for the easy samples.}

    It is an approximation of `RankSVC`, whose own inference is fast enough to make it rarely worth while: it is here
    because the paper has it, and as an example of training under hard constraints.

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

    # Of the solvers only this one takes constraints, and they are convex: there is nothing to choose.
    solver, bound = "bundle", "convex"

    def _fit_problems(self, X: Any, targets: Targets, usable: NDArray[np.bool_], tuning: Tuning) -> None:
        features = feature_map(X)
        chosen = np.flatnonzero(usable)
        known = targets.known()
        first = RankingObjective(features, targets.lists_of(usable), get_loss("zero-one"))
        self._finish_with = first, first, targets, usable
        binary, n_passes = self._binary_svm(features, targets, usable, tuning)
        margins = np.where(targets.relevant[chosen], 1, -1) * features.scores(binary)
        signs = np.stack([self._easy(margins[c], targets.relevant[k], known[k]) for c, k in enumerate(chosen)])
        self._describe(binary, signs, targets, usable)
        problems = [one_list(targets.relevant[k], known[k] & (signs[c] == 0)) for c, k in enumerate(chosen)]
        objective = RankingObjective(features, problems, get_loss(self.loss))
        self._finish_with = objective, first, targets, usable
        # w₀ satisfies all constraints: the search begins with a feasible point.
        constraints = EasySamples(features, signs)
        result = self._solve(objective, tuning, n_passes + 1, start=binary, constraints=constraints)
        self._warn_of_flaws(self._store(result), objective)

    # Easy is what a binary SVM calls so.
    _ranks_only = False

    def _describe(
        self,
        binary: NDArray[np.float64],
        signs: NDArray[np.int8],
        targets: Targets,
        usable: NDArray[np.bool_],
    ) -> None:
        """Fitted attributes of the first stage."""
        self.binary_coef_ = np.zeros((usable.size, binary.shape[0]))
        self.binary_coef_[usable] = binary.T
        self.binary_coef_ = self._coordinates.everywhere(self.binary_coef_)
        n_easy, n_difficult = np.zeros((2, usable.size), np.int64)
        n_easy[usable] = np.count_nonzero(signs, axis=1)
        n_difficult[usable] = targets.known()[usable].sum(axis=1) - n_easy[usable]
        self.n_easy_ = int(n_easy[0]) if n_easy.size == 1 else n_easy
        self.n_difficult_ = int(n_difficult[0]) if n_easy.size == 1 else n_difficult

    def _binary_svm(
        self, features: FeatureMap, targets: Targets, usable: NDArray[np.bool_], tuning: Tuning
    ) -> tuple[NDArray[np.float64], int]:
        """w₀ of each problem, of shape (d, K), and the passes over X that it took."""
        objective = self._finish_with[0]
        options = {"tol": self.tol, "max_iter": self.max_iter, "random_state": self.random_state}
        solver = make_solver("bundle", objective, tuning.C, **options)
        try:
            with interrupts(), Progress(self.verbose) as progress:

                def watch(running: Solver) -> bool:
                    progress.update(**running.report())
                    return tuning.deadline.passed

                result = solver.run(watch)
        except KeyboardInterrupt:
            # The binary SVM as far as it has come: a model all the same, which finds nothing easy yet.
            self._chosen = {"C_": tuning.C}
            result = solver.result(status="interrupted")
            self._keep(result)
            self._describe(result.coef, np.zeros((objective.n_problems, features.n_samples), np.int8), targets, usable)
            raise
        if not tuning.deadline.passed:
            Unfinished().note(result, self.tol).warn("the binary SVM, which tells what is easy,")
        return result.coef, int(np.ceil(result.n_passes))

    def _easy(
        self, margins: NDArray[np.float64], relevant: NDArray[np.bool_], known: NDArray[np.bool_]
    ) -> NDArray[np.int8]:
        """±1 for the samples of one problem that stay easy, 0 for the difficult ones."""
        signs = np.zeros(margins.size, np.int8)
        for label in (True, False):
            mine = np.flatnonzero(known & (relevant == label))
            # Support vectors lie at 1 but for rounding: the last bit must not decide.
            easy = mine[margins[mine] >= 1.0 - TOLERATED]
            easy = easy[np.argsort(-margins[easy], kind="stable")][: round(self.keep_easy * easy.size)]
            # A ranking needs both classes: if no sample of this one is difficult, the least easy one is.
            if easy.size == mine.size:
                easy = easy[:-1]
            signs[easy] = 1 if label else -1
        return signs
