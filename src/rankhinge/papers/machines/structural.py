"""`LatentStructuralSVC`: the general latent structural SVM, the other baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankhinge.features import FeatureMap
from rankhinge.inference.core import loss_by_scores
from rankhinge.latent._base import LatentMachine
from rankhinge.latent.objective import BagLists, LatentObjective
from rankhinge.latent.point import Point
from rankhinge.latent.rank_svc import LatentRankSVC
from rankhinge.latent.segments import segment_maxima
from rankhinge.latent.whole import Whole
from rankhinge.losses import RankingLoss, get_loss
from rankhinge.objective import ListsHinge, Scores
from rankhinge.papers.machines.assignment import greedy_ranking
from rankhinge.svm._fitting import fitting

__all__ = ["LatentStructuralSVC", "StructuralObjective"]


class StructuralObjective(LatentObjective):
    """`J` with candidates of its own in the most violating ranking; see `LatentStructuralSVC`.

    Planes carry nothing: the positives' coefficients are spread over two candidates each.
    """

    def __init__(self, features: FeatureMap, problems: Sequence[BagLists], loss: RankingLoss) -> None:
        super().__init__(features, problems, ListsHinge([problem.lists for problem in problems], loss))
        self.loss = loss

    def payload_width(self, problem: int) -> int:
        return 0

    def payloads(self, coefficients: Scores) -> list[NDArray[np.float64]]:
        return [np.zeros(0)] * coefficients.problems.size

    def _evaluate_bags(self, k: int, scores: NDArray[np.float64], u: NDArray[np.float64] | None) -> tuple[float, float]:
        bags = self.bags[k]
        if np.all(bags.stop - bags.start == 1):
            # Nothing is latent: both bounds are the structured hinge, and inference is exact.
            return super()._evaluate_bags(k, scores, u)
        relevant = bags.lists.levels[0].relevant
        highest, at_highest = segment_maxima(scores, bags.start, bags.stop)
        lowest, at_lowest = segment_maxima(-scores, bags.start, bags.stop)
        lowest = -lowest
        found = greedy_ranking(
            (highest[relevant], lowest[relevant]), (highest[~relevant], lowest[~relevant]), self._loss_of_counts
        )
        c = np.empty(relevant.size)
        c[relevant], c[~relevant] = found.positive_coefficients, found.negative_coefficients
        of_right_ranking = np.where(relevant, -1.0 / relevant.sum(), 1.0 / (~relevant).sum())
        at_right_ranking = np.where(relevant, bags.fixed, at_highest)
        value = found.value + float(of_right_ranking @ scores[at_right_ranking])
        if u is not None:
            u[:] = 0.0
            u[np.where(c >= 0, at_highest, at_lowest)] = c
            u[at_right_ranking] += of_right_ranking
        return value, found.loss

    def _loss_of_counts(self, above: NDArray[np.int64], n_negatives: int) -> float:
        """Δ of the pattern with `above[i]` negatives above positive i + 1."""
        n = above.size + n_negatives
        relevant = np.zeros(n, np.bool_)
        relevant[np.arange(above.size) + above] = True
        return loss_by_scores(-np.arange(n, dtype=np.float64), relevant, self.loss)


class _StructuralWhole(Whole):
    """Inner problems that see all candidates of all bags, the positives' too."""

    sees_all = True

    def is_exact(self, k: int) -> bool:
        return not bool(self.problems[k].latent.any())

    def point(self, k: int, w: NDArray[np.float64], found: Any, c: int, fixed: NDArray[np.int64]) -> Point:
        members = self.problems[k].members
        best, values, at = found.places[c][members], found.values[c][members], found.at[c][members]
        known = np.where(self.problems[k].relevant & (fixed < 0), best[:, 0], fixed)
        return Point(w, best, values, at, self._value(k, w, known))

    def outer_value(self, k: int, point: Point) -> float:
        problem = self.problems[k]
        assert point.best is not None
        return self._value(
            k, point.w, np.where(problem.relevant & (problem.given < 0), point.best[:, 0], problem.given)
        )

    def _value(self, k: int, w: NDArray[np.float64], fixed: NDArray[np.int64]) -> float:
        objective = self.make(self.features, [self.problems[k].seen_among(None, fixed)])
        J = objective.evaluate(objective.score(w[:, None], np.zeros(1, np.int64)), coefficients=False).value[0]
        return 0.5 * float(w @ w) + self.C[k] * float(J)


class LatentStructuralSVC(LatentMachine):
    r"""Latent structural SVM for a ranking loss, with the approximate inference of Behl et al. 2015, appendix C.

    This is the standard treatment of latent variables (Yu and Joachims 2009). Use it to compare with `LatentRankSVC`.
    It bounds the loss by

    .. math:: \max_{R, H} \{\Delta(R) + F(R, H)\} - \max_{H_P} \min_{H_N} F(R^*, H), \qquad
              F(R, H) = \sum_k c_k(R) \, w \cdot \Phi_k(h_k),

    in which the candidates H of the most violating ranking are independent of those of the right ranking R*. That
    bound is never below that of `LatentRankSVC` (their Proposition 1), and no efficient exact inference is known for
    it. The greedy search with Hungarian assignments costs O(N P (P² + N²)), which allows a few hundred bags.

    **There is no certificate.** The search may miss the maximum, so `objective_` can be far below the true objective:
    a fit of it proves nothing. `gap_` is inf, and `status_` is ``"heuristic"`` where the fit has settled. The outer
    objective need not fall; the fit ends with the first round that does not lower it. Inference is exact only if every
    bag has one candidate or all candidates are known. Then the fit ends as for `LatentRankSVC`.

    Parameters
    ----------
    loss : str or RankingLoss, default "ap"
    C : float or array of shape (K,), default 1.0
    n_starts, init, tol, max_iter, max_outer, max_time, threshold, warm_start, random_state, verbose
        As for `LatentRankSVC`.
    solver : {"bundle", "cutting-plane"}, default "cutting-plane"
        The plain algorithm needs the fewest inferences.

    Attributes
    ----------
    coef_, intercept_, outer_history_, chosen_, …
        As for `LatentRankSVC`. Prediction is the same too: each bag's best candidate.
    objective_ : float or ndarray of shape (K,)
        What the search has found: at most the objective at `coef_`.
    dual_objective_ : float or ndarray of shape (K,)
        A lower bound on the true objective of the last inner problem. It may lie above `objective_`.
    gap_ : float or ndarray of shape (K,)
        inf: nothing is proved.
    status_ : str or ndarray of shape (K,)
        ``"heuristic"``: the fit has settled, without proof; else as for `LatentRankSVC`.

    References
    ----------
    Yu, Joachims: Learning structural SVMs with latent variables, ICML 2009;
    Behl, Mohapatra, Jawahar, Kumar: Optimizing Average Precision using Weakly Supervised Data, TPAMI 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from rankhinge.latent import LatentStructuralSVC
    >>> rng = np.random.default_rng(0)
    >>> y = np.arange(12) % 3 == 0
    >>> X = rng.normal(size=(12, 3, 4))
    >>> X[y, 2] += 3.0
    >>> model = LatentStructuralSVC(C=10.0).fit(list(X), y)
    >>> model.coef_.shape, model.status_, model.gap_
    ((1, 4), 'heuristic', inf)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        name: constraint for name, constraint in LatentRankSVC._parameter_constraints.items() if name != "shrinking"
    }

    def __init__(
        self,
        loss: str | RankingLoss = "ap",
        C: float | ArrayLike = 1.0,
        *,
        n_starts: int = 1,
        init: str = "mean",
        solver: str = "cutting-plane",
        tol: float = 1e-3,
        max_iter: int = 1000,
        max_outer: int = 50,
        max_time: float | None = None,
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
        self.threshold = threshold
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

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
        if not self._loss().is_ranking:
            raise ValueError("loss='zero-one' ranks nothing: use LatentSVC")
        return self._fit(X, y, chosen, mask)

    _whole: ClassVar[type[Whole]] = _StructuralWhole

    def _make_objective(self, features: FeatureMap, problems: Sequence[BagLists]) -> LatentObjective:
        return StructuralObjective(features, problems, get_loss(self.loss))

    def __sklearn_tags__(self) -> Any:
        """Multilabel and sparse input are fine."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.input_tags.sparse = True
        return tags
