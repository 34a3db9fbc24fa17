r"""Training as in the papers' tables: plain cutting planes, with the method of inference as an option.

The estimators have no such option: all exact methods return the same J, and the default one is the fastest. Here a
method is chosen for what it costs, and calls and seconds of inference are counted.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge.features import FeatureMap, feature_map
from rankhinge.inference import core
from rankhinge.inference.methods import infer_by
from rankhinge.losses import RankingLoss, get_loss
from rankhinge.objective import Evaluation, RankingObjective, Scores
from rankhinge.papers.solvers.constrained import constrained_solver
from rankhinge.papers.solvers.constraints import Constraints
from rankhinge.problems import Lists, one_list
from rankhinge.solvers import SolverResult, make_solver

__all__ = ["ObjectiveBy", "Trained", "train_by"]


class ObjectiveBy(RankingObjective):
    """`RankingObjective` of problems with one list each, by a given method of inference; it counts what that costs.

    Parameters
    ----------
    features : FeatureMap
    problems : sequence of Lists
    loss : RankingLoss
    method : str
        As of `rankhinge.most_violating_ranking`; ``"auto"`` is the default method.
    keeps_ranks : bool
        Whether to keep the interleaving ranks of each call, negatives by descending score.

    Attributes
    ----------
    n_calls : int
    seconds : float
        Of inference alone: neither ``X @ w`` nor ``Xᵀ u``.
    ranks : list of ndarray of shape (N,)
    """

    def __init__(
        self,
        features: FeatureMap,
        problems: Sequence[Lists],
        loss: RankingLoss,
        method: str = "auto",
        *,
        keeps_ranks: bool = False,
    ) -> None:
        super().__init__(features, problems, loss)
        if any(lists.n_lists != 1 or len(lists.levels) != 1 for lists in self.problems):
            raise ValueError("the papers' methods rank one list with labels 0 and 1: use RankingObjective for others")
        self.method, self.keeps_ranks = method, keeps_ranks
        self.n_calls, self.seconds = 0, 0.0
        self.ranks: list[NDArray[np.int64]] = []

    def evaluate(self, scores: Scores, coefficients: bool = True) -> Evaluation:
        """As of `RankingObjective`."""
        return self.for_each(self._infer, scores, coefficients)

    def _infer(self, k: int, scores: NDArray[np.float64], u: NDArray[np.float64] | None) -> tuple[float, float]:
        lists = self.problems[k]
        inside, relevant = lists.gather(scores), lists.levels[0].relevant
        start = time.perf_counter()
        if self.method == "auto":
            found = core.infer_one(inside, relevant, self.loss)
        else:
            found = infer_by(self.method, inside, relevant, self.loss)
        self.seconds += time.perf_counter() - start
        self.n_calls += 1
        if self.keeps_ranks:
            negatives = inside[~relevant]
            self.ranks.append(found.interleaving_ranks[np.argsort(-negatives, kind="stable")])
        if u is not None:
            lists.scatter(found.coefficients, u)
        return found.value, found.loss


@dataclass(frozen=True)
class Trained:
    """What `train_by` returns.

    Attributes
    ----------
    result : SolverResult
    n_calls : int
        Of inference.
    seconds : float
        Of inference, all calls together.
    ranks : list of ndarray of shape (N,)
        If asked for, the interleaving ranks of each call.
    """

    result: SolverResult
    n_calls: int
    seconds: float
    ranks: list[NDArray[np.int64]]


def train_by(
    method: str,
    X: Any,
    relevant: NDArray[np.bool_],
    loss: str | RankingLoss = "ap",
    C: float = 1.0,
    *,
    rows: NDArray[np.bool_] | None = None,
    constraints: Constraints | None = None,
    solver: str = "cutting-plane",
    tol: float = 1e-3,
    max_iter: int = 1000,
    start: NDArray[np.float64] | None = None,
    keeps_ranks: bool = False,
) -> Trained:
    """Minimise ``½‖w‖² + C J(Xw)`` for one list with a given method of inference.

    Parameters
    ----------
    method : str
        As of `rankhinge.most_violating_ranking`.
    X : array of shape (n, d)
    relevant : bool array of shape (n,)
    loss : str or RankingLoss, default "ap"
    C : float, default 1.0
    rows : bool array of shape (n,), optional
        The samples that are ranked; default: all.
    constraints : Constraints, optional
        Hard constraints on the others, as AP-SVM-APPX has them.
    solver : str, default "cutting-plane"
        The papers'.
    tol : float, default 1e-3
        Relative gap.
    max_iter : int, default 1000
    start : array of shape (d, 1), optional
    keeps_ranks : bool, default False

    Returns
    -------
    Trained

    References
    ----------
    Joachims, Finley, Yu: Cutting-plane training of structural SVMs, Machine Learning 2009, algorithm 3;
    Mohapatra, Jawahar, Kumar: Efficient Optimization for Average Precision SVM, NIPS 2014, Tables 2 and 3.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from rankhinge.papers.training import train_by
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> slow, fast = (train_by(method, scale(X), y == 1, C=10.0) for method in ("greedy", "quicksort"))
    >>> bool(abs(slow.result.objective[0] - fast.result.objective[0]) <= 2e-3 * fast.result.objective[0])
    True
    """
    problem = one_list(np.ascontiguousarray(relevant, dtype=np.bool_), rows)
    objective = ObjectiveBy(feature_map(X), [problem], get_loss(loss), method, keeps_ranks=keeps_ranks)
    options: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "start": start}
    if constraints is None:
        result = make_solver(solver, objective, C, **options).run()
    else:
        result = constrained_solver(solver, objective, C, constraints=constraints, **options).run()
    return Trained(result, objective.n_calls, objective.seconds, objective.ranks)
