"""`LatentSVC`: the baseline that classifies bags by their best candidate and ignores the ranking."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval

from rankhinge.features import FeatureMap
from rankhinge.latent._base import LatentMachine
from rankhinge.latent.cccp import ConcaveConvex
from rankhinge.latent.inner import InnerSolver
from rankhinge.latent.objective import BagLists, LatentObjective
from rankhinge.latent.problem import LatentProblem
from rankhinge.problems.targets import Targets
from rankhinge.svm._fitting import fitting
from rankhinge.svm.threshold import constant_intercepts

__all__ = ["LatentSVC"]

# How often the ignored candidates are chosen anew: the objective changes with them, and might never settle.
_MOST_TRIMS = 5


class BagsHinge:
    """Mean over the bags of each problem of ``weight · max(0, 1 - y s)``: value, offset of its plane, and u."""

    def __init__(self, problems: Sequence[BagLists], positive_weight: float) -> None:
        self._relevant = [problem.lists.levels[0].relevant for problem in problems]
        self._positive_weight = positive_weight

    def __call__(self, k: int, scores: NDArray[np.float64], u: NDArray[np.float64] | None) -> tuple[float, float]:
        relevant = self._relevant[k]
        sign = np.where(relevant, 1.0, -1.0)
        margins = 1.0 - sign * scores
        weights = np.where(margins > 0, np.where(relevant, self._positive_weight, 1.0), 0.0) / relevant.size
        if u is not None:
            u[:] = -sign * weights
        return float(weights @ margins), float(weights.sum())


class LatentSVC(LatentMachine):
    r"""Latent SVM: a linear classifier of bags with the 0-1 loss's hinge, the baseline of Behl et al. 2015.

    It minimises, with :math:`s_b = \max_h w \cdot \Phi_b(h) + b` and :math:`J_b` = `positive_weight` for positive bags
    and 1 for negative ones,

    .. math:: \tfrac12 (\|w\|^2 + b^2) + \frac{C}{n} \sum_b J_b \max(0, 1 - y_b s_b),

    by the concave-convex procedure. Use it as a baseline. `LatentRankSVC` optimises the ranking.

    Parameters
    ----------
    C : float or array of shape (K,), default 1.0
    positive_weight : float, default 1.0
        The weight of a positive bag relative to a negative one (J in the paper).
    ignore_confusing : float, default 0.0
        Leave out the highest-scoring c % of the candidates of negative bags, which may be unlabelled objects. Each bag
        keeps at least one candidate. In the first few rounds they are chosen anew, by the weights of the previous
        round. So the objective changes from round to round and may rise. It also differs between several starts, of
        which the one with the least objective is kept.
    fit_intercept : bool, default True
        Learn b, as the weight of a constant feature.
    n_starts, init, solver, tol, max_iter, max_outer, max_time, shrinking, warm_start, random_state, verbose
        As for `LatentRankSVC`.

    Attributes
    ----------
    coef_, intercept_, objective_, gap_, outer_history_, chosen_, …
        As for `LatentRankSVC`; `intercept_` is b.

    References
    ----------
    Felzenszwalb, Girshick, McAllester, Ramanan: Object Detection with Discriminatively Trained Part-Based Models,
    TPAMI 2010; Behl, Mohapatra, Jawahar, Kumar: Optimizing Average Precision using Weakly Supervised Data, TPAMI 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from rankhinge.latent import LatentSVC
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(60) % 3 == 0
    >>> X = rng.normal(size=(60, 5, 4))
    >>> X[y, 2] += 3.0
    >>> model = LatentSVC(C=100.0, positive_weight=2.0).fit(list(X), y)
    >>> model.score(list(X), y) > 0.9  # average precision
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **LatentMachine._parameter_constraints,
        "positive_weight": [Interval(Real, 0, None, closed="neither")],
        "ignore_confusing": [Interval(Real, 0, 100, closed="both")],
        "fit_intercept": ["boolean"],
        "shrinking": ["boolean"],
    }

    def __init__(
        self,
        C: float | ArrayLike = 1.0,
        *,
        positive_weight: float = 1.0,
        ignore_confusing: float = 0.0,
        fit_intercept: bool = True,
        n_starts: int = 1,
        init: str = "mean",
        solver: str = "bundle",
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_outer: int = 50,
        max_time: float | None = None,
        shrinking: bool = True,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.positive_weight = positive_weight
        self.ignore_confusing = ignore_confusing
        self.fit_intercept = fit_intercept
        self.n_starts = n_starts
        self.init = init
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_outer = max_outer
        self.max_time = max_time
        self.shrinking = shrinking
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    @property
    def _constant(self) -> float:
        return 1.0 if self.fit_intercept else 0.0

    @fitting
    def fit(self, X: Any, y: Any, chosen: ArrayLike | None = None, mask: ArrayLike | None = None) -> Self:
        """Fit one linear model for each problem; parameters as for `LatentRankSVC.fit`.

        Parameters
        ----------
        X : Bags, sequence of 2-D arrays, or array of shape (n, d)
        y : array of shape (n_bags,) or (n_bags, K)
        chosen : array of int of shape (n_bags,) or (n_bags, K), optional
        mask : bool array of shape (n_bags, K), optional

        Returns
        -------
        self
        """
        return self._fit(X, y, chosen, mask)

    def _make_objective(self, features: FeatureMap, problems: Sequence[BagLists]) -> LatentObjective:
        return LatentObjective(features, problems, BagsHinge(problems, float(self.positive_weight)))

    def _make_outer(self, inner: InnerSolver) -> ConcaveConvex:
        if self.ignore_confusing == 0:
            return super()._make_outer(inner)
        return _Trimmed(inner, self._loss(), self.tol, self.max_outer, float(self.ignore_confusing))

    def _groups(self, n_problems: int) -> list[NDArray[np.int64]]:
        # Each problem ignores other candidates, so that they cannot share their products.
        return super()._groups(n_problems) if self.ignore_confusing == 0 else list(np.arange(n_problems)[:, None])

    def _cut(
        self, targets: Targets, usable: NDArray[np.bool_], scores: NDArray[np.float64], bias: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return np.where(usable, bias, constant_intercepts(targets, usable)), np.ones(usable.size)

    def __sklearn_tags__(self) -> Any:
        """Multilabel and sparse input are fine."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.input_tags.sparse = True
        return tags


class _Trimmed(ConcaveConvex):
    """The outer loop of one problem with the most confusing candidates of negatives left out."""

    def __init__(self, inner: InnerSolver, loss: Any, tol: float, max_outer: int, percent: float) -> None:
        super().__init__(inner, loss, tol, max_outer)
        self._percent, self._n_trims = percent, 0

    def step(self) -> None:
        """Choose what to ignore, then one round."""
        point = self.points[0]
        if point is not None and self._n_trims < _MOST_TRIMS:
            self._n_trims += 1
            scores = self.whole.features.scores(point.w[:, None])[0]
            allowed = _less_confusing(self.whole.problems[0], scores, self._percent)
            if self.whole.allowed is None or not np.array_equal(allowed, self.whole.allowed):
                self.whole.allowed = allowed
                # Planes through ignored candidates are no bounds any more, and the value at w is another.
                self.begin_at(point.w[:, None], exact=True)
        super().step()

    def _may_end(self) -> bool:
        return self._n_trims >= _MOST_TRIMS


def _less_confusing(problem: LatentProblem, scores: NDArray[np.float64], percent: float) -> NDArray[np.bool_]:
    """All candidates but the highest-scoring of the free negatives; each bag keeps its least confusing one."""
    allowed = np.ones(scores.size, np.bool_)
    free = np.flatnonzero(~problem.relevant & (problem.given < 0))
    places = np.concatenate([np.arange(problem.start[b], problem.stop[b]) for b in free] or [np.zeros(0, np.int64)])
    worst = places[np.argsort(-scores[places], kind="stable")[: int(places.size * percent / 100)]]
    allowed[worst] = False
    for b in free:
        allowed[problem.start[b] + np.argmin(scores[problem.start[b] : problem.stop[b]])] = True
    return allowed
