"""`LatentRankSVC`: a linear ranking model for bags of candidates."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from rankhinge.features import FeatureMap
from rankhinge.latent._base import LatentMachine
from rankhinge.latent.objective import BagLists, LatentObjective
from rankhinge.losses import RankingLoss, get_loss
from rankhinge.objective import ListsHinge
from rankhinge.svm._fitting import fitting

__all__ = ["LatentRankSVC"]


class LatentRankSVC(LatentMachine):
    r"""Latent AP-SVM: a linear classifier of bags that optimises a ranking metric.

    A sample is a bag of candidates, for instance the windows of an image. Its label refers to one of them; which one is
    unknown. The score of a bag is that of its best candidate. For each one-vs-rest problem the fit minimises

    .. math:: F(w) = \tfrac12 \|w\|^2 + C \, J(s(w)), \qquad s_b(w) = \max_h w \cdot \Phi_b(h),

    where J is the structured hinge of the loss, an upper bound on one minus average precision (or NDCG, …) of the
    bags ranked by their scores. F is not convex. The concave-convex procedure fixes the best candidate of each positive
    bag, solves the remaining convex problem, in which negative bags take their best candidate in every inference, and
    repeats. F never rises.

    Parameters
    ----------
    loss : str or RankingLoss, default "ap"
        ``"ap"``, ``"ndcg"``, ``"rr"``, ``"auc"``, ``"rbp"``, or any object of `rankhinge.losses`; ``"zero-one"`` is
        `LatentSVC` without an intercept.
    C : float or array of shape (K,), default 1.0
        Weight of the loss.
    n_starts : int, default 1
        The number of starts. The result with the least objective is kept. All starts but the first draw random
        candidates.
    init : {"mean", "first", "random"}, default "mean"
        The first start's candidates: those that score best along the difference of the classes' means, the first of
        each bag (the whole image, say), or random ones.
    solver : {"bundle", "cutting-plane"}, default "bundle"
    tol : float, default 1e-3
        Relative gap of each inner problem. The procedure ends after a round that lowers F by at most this fraction.
    max_iter : int, default 1000
        Iterations of the solver on each inner problem.
    max_outer : int, default 50
        Rounds.
    max_time : float or None, default None
        Seconds after which the fit ends with the best point so far. The time is checked between steps of a solver.
        None: no limit.
    shrinking : bool, default True
        Solve the inner problems on the candidates that matter, then check against all of them. The result and its
        certificate hold for the whole problem.
    threshold : {"f1", "error"} or float, default "f1"
        How to set `intercept_` after training: see `RankSVC`.
    warm_start : bool, default False
        Start from the coefficients of the previous fit, even an interrupted one.
    random_state : int, RandomState or None, default None
        For the random starts and the solver; None means 0.
    verbose : int, default 0
        1: a progress line with start, round, iteration, primal, dual, gap and time.

    Attributes
    ----------
    coef_ : ndarray of shape (1, d) or (K, d)
    intercept_, slope_, classes_ : ndarray
        As for `RankSVC`.
    objective_ : float or ndarray of shape (K,)
        ``F(coef_)``.
    dual_objective_, gap_ : float or ndarray of shape (K,)
        Lower bound and relative gap of the last inner problem, not of F, which is not convex.
    outer_history_ : dict of ndarray
        By round: ``"objective"`` (F, which never rises), ``"bound"`` (its J), ``"loss"`` (of the ranking by w),
        ``"n_changed"`` (positives whose candidate then changed), ``"time"``, ``"passes"``.
    history_ : dict of ndarray
        The last inner problem: ``"primal"``, ``"dual"``, ``"gap"``, ``"time"``, ``"passes"``; with `shrinking` an
        entry for each look at all candidates, else for each iteration.
    chosen_ : ndarray of shape (n_bags,) or (n_bags, K)
        Each training bag's best candidate.
    chosen_history_ : ndarray of shape (rounds + 1, n_bags), or a list of K of them
        The candidates that the positive bags were fixed to in each round, and at the end; -1 for other bags. No rows
        after Ctrl-C in the first round.
    n_outer_, n_iter_ : int or ndarray of shape (K,)
        Rounds, and iterations of the last one.
    n_passes_, n_products_ : int
        Passes over all candidates, and inner products computed, by all starts and problems together.
    status_ : str or ndarray of shape (K,)
        ``"converged"``, ``"max_outer"``, ``"max_iter"``, ``"time"``, ``"interrupted"``, …

    Notes
    -----
    With one candidate in each bag it is `RankSVC`.

    References
    ----------
    Behl, Mohapatra, Jawahar, Kumar: Optimizing Average Precision using Weakly Supervised Data, TPAMI 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from rankhinge.latent import Bags, LatentRankSVC
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(60) % 3 == 0
    >>> X = rng.normal(size=(60, 5, 4))
    >>> X[y, 2] += 3.0  # the third of five candidates is what makes a bag positive
    >>> model = LatentRankSVC(C=100.0).fit(Bags(list(X)), y)
    >>> bool(np.all(np.diff(model.outer_history_["objective"]) <= 0))
    True
    >>> model.score(list(X), y) > 0.99, bool(np.mean(model.predict_candidates(list(X[y])) == 2) > 0.9)
    (True, True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "loss": [str, RankingLoss],
        **LatentMachine._parameter_constraints,
        "shrinking": ["boolean"],
        "threshold": [StrOptions({"f1", "error"}), Interval(Real, None, None, closed="neither")],
    }

    def __init__(
        self,
        loss: str | RankingLoss = "ap",
        C: float | ArrayLike = 1.0,
        *,
        n_starts: int = 1,
        init: str = "mean",
        solver: str = "bundle",
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_outer: int = 50,
        max_time: float | None = None,
        shrinking: bool = True,
        threshold: str | float = "f1",
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.C = C
        self.n_starts = n_starts
        self.init = init
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_outer = max_outer
        self.max_time = max_time
        self.shrinking = shrinking
        self.threshold = threshold
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    @fitting
    def fit(self, X: Any, y: Any, chosen: ArrayLike | None = None, mask: ArrayLike | None = None) -> Self:
        """Fit one linear model for each problem.

        Parameters
        ----------
        X : Bags, sequence of 2-D arrays, or array of shape (n, d)
            An array means one candidate for each bag.
        y : array of shape (n_bags,) or (n_bags, K)
            Binary, multiclass or multilabel targets of the bags.
        chosen : array of int of shape (n_bags,) or (n_bags, K), optional
            The right candidate of each bag, positive or negative, where it is known, and -1 where it is not. Known ones
            stay fixed during training. Prediction still takes the best of all candidates.
        mask : bool array of shape (n_bags, K), optional
            For a multilabel y: False where a label is unknown.

        Returns
        -------
        self
        """
        return self._fit(X, y, chosen, mask)

    def _make_objective(self, features: FeatureMap, problems: Sequence[BagLists]) -> LatentObjective:
        hinge = ListsHinge([problem.lists for problem in problems], get_loss(self.loss))
        return LatentObjective(features, problems, hinge)

    def __sklearn_tags__(self) -> Any:
        """Multilabel and sparse input are fine."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.input_tags.sparse = True
        return tags
