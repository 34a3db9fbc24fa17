"""The rivals of `training.py`: how each is fitted to a data set, and how its ranking is judged.

A rival is a function without arguments that fits and returns a `Fit`. Conversions that a user would do once (rows
with a label, groups for LightGBM) are done beforehand and not timed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from _datasets import Dataset
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.svm import LinearSVC

from rankhinge import RankSVC, RankSVCCV, SVMRanker, SVMRankerCV
from rankhinge.metrics import average_precision, ndcg

SOLVERS = ("bundle", "quasi-newton", "cutting-plane", "frank-wolfe", "subgradient")
# The papers' solvers work block by block, a block being a list: with one list they have nothing to gain, and converge
# slowly. They take part where a hundred sweeps are cheap, and stop there.
STOCHASTIC_SETS = ("VOC action", "mq2008", "mammography", "CIFAR10_0")
STOCHASTIC_SWEEPS = 100
MOST_ITERATIONS = 3000
CV_FOLDS = 3
# The default grid of the CV classes; on two sets with many features cross-validation picked its lower end, and the
# large values take long.
GRID = np.logspace(-1, 5, 8)
OTHER_GRIDS = {"hiv_molecules": np.logspace(-4, 2, 7), "CIFAR10_0": np.logspace(-4, 2, 7)}
LINEAR: dict[str, Callable[[], Any]] = {
    "LinearSVC": LinearSVC,
    "LogisticRegression": LogisticRegression,
    "SGDClassifier": lambda: SGDClassifier(random_state=0),
}
TREES = ("LightGBM", "XGBoost")
# Ten fits of boosted trees to 1280 dense features take minutes and say nothing about linear models.
WITHOUT_TREES = ("VOC action",)


@dataclass
class Fit:
    """What one fit gave: a scoring function (rows of X to scores, a column for each label) and its certificates."""

    scores: Callable[[Any], NDArray[Any]]
    facts: dict[str, Any] = field(default_factory=dict)


Rival = Callable[[], Fit]


def quietly(fit: Callable[[], Any]) -> tuple[Any, bool]:
    """The result, and whether it came without a warning that it has not converged; other chatter is dropped."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = fit()
    return result, not any(issubclass(entry.category, ConvergenceWarning) for entry in caught)


def grid_of(data: Dataset) -> NDArray[np.float64]:
    return OTHER_GRIDS.get(data.name, GRID)


def choose_C(data: Dataset) -> Any:
    """C by cross-validation on the training part, with one grid for nearly all sets; for VOC one for each class."""
    options = {"bound": "convex", "Cs": grid_of(data), "cv": CV_FOLDS, "random_state": 0, "max_iter": MOST_ITERATIONS}
    if data.kind == "lists":
        search = SVMRankerCV(**options)
        return quietly(lambda: search.fit(data.X, data.y, qid=data.qid))[0].C_
    search = RankSVCCV(**options)
    return quietly(lambda: search.fit(data.X, data.y, mask=data.mask))[0].C_


def quality(data: Dataset, fit: Fit, part: str) -> float:
    """Average precision, its mean over the classes for VOC; mean NDCG over the queries for lists."""
    X, y, mask, qid = (getattr(data, name + ("_test" if part == "test" else "")) for name in ("X", "y", "mask", "qid"))
    scores = fit.scores(X)
    if data.kind == "lists":
        return float(ndcg(y, scores, qid=qid, gains="exponential", no_positives="skip"))
    if data.kind == "binary":
        return float(average_precision(y, scores))
    columns = zip(y.T, mask.T, scores.T, strict=True)
    return float(
        np.mean([average_precision((labels[known] > 0).astype(int), row[known]) for labels, known, row in columns])
    )


def ours(data: Dataset, solver: str, C: Any) -> Rival:
    stochastic = solver in ("frank-wolfe", "subgradient")
    options = {
        "bound": "convex",
        "solver": solver,
        "C": C,
        "max_iter": STOCHASTIC_SWEEPS if stochastic else MOST_ITERATIONS,
    }

    def fit() -> Fit:
        if data.kind == "lists":
            model = quietly(lambda: SVMRanker(**options).fit(data.X, data.y, qid=data.qid))[0]
            return Fit(model.predict, certificates(model))
        model = quietly(lambda: RankSVC(**options).fit(data.X, data.y, mask=data.mask))[0]
        return Fit(model.decision_function, certificates(model))

    return fit


def certificates(model: Any) -> dict[str, Any]:
    """Passes, objective (summed over the classes) and the largest gap."""
    return {
        "passes": model.n_passes_,
        "objective": float(np.sum(model.objective_)),
        "gap": float(np.max(model.gap_)),
        "converged": bool(np.max(model.gap_) <= model.tol),
    }


def pointwise(data: Dataset, make: Callable[[], Any], positive_score: Callable[[Any, Any], NDArray[Any]]) -> Rival:
    """A classifier of relevant against not; for VOC one for each class, on the rows that are labelled for it."""
    if data.mask is None:
        tasks = [(data.X, (data.y > 0).astype(np.int64))]
    else:
        tasks = [
            (data.X if known.all() else data.X[known], (labels[known] > 0).astype(np.int64))
            for labels, known in zip(data.y.T, data.mask.T, strict=True)
        ]

    def fit() -> Fit:
        models, converged = quietly(lambda: [make().fit(X, y) for X, y in tasks])

        def scores(X: Any) -> NDArray[Any]:
            columns = [positive_score(model, X) for model in models]
            return columns[0] if data.mask is None else np.stack(columns, axis=1)

        return Fit(scores, {"converged": converged})

    return fit


def decision(model: Any, X: Any) -> NDArray[Any]:
    return model.decision_function(X)


def probability(model: Any, X: Any) -> NDArray[Any]:
    # LightGBM warns of feature names that nobody gave.
    return quietly(lambda: model.predict_proba(X))[0][:, 1]


def trees(data: Dataset, name: str) -> Rival:
    """Classifiers for binary sets, rankers by NDCG for lists, all with their defaults."""
    if name == "LightGBM":
        from lightgbm import LGBMClassifier, LGBMRanker

        if data.kind != "lists":
            return pointwise(data, lambda: LGBMClassifier(verbose=-1), probability)
        order, groups = by_query(data.qid)
        X, y = data.X[order], data.y[order].astype(np.int64)
        return lambda: Fit(quietly(lambda: LGBMRanker(verbose=-1).fit(X, y, group=groups))[0].predict)
    from xgboost import XGBClassifier, XGBRanker

    if data.kind != "lists":
        return pointwise(data, XGBClassifier, probability)
    order, groups = by_query(data.qid)
    X, y, qid = data.X[order], data.y[order].astype(np.int64), np.repeat(np.arange(groups.size), groups)
    return lambda: Fit(XGBRanker(objective="rank:ndcg").fit(X, y, qid=qid).predict)


def by_query(qid: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The order that brings queries together, and their sizes: what LightGBM and XGBoost ask for."""
    _, codes, sizes = np.unique(qid, return_inverse=True, return_counts=True)
    return np.argsort(codes, kind="stable"), sizes


def rivals_for(data: Dataset, C: Any, solvers: Sequence[str] = SOLVERS) -> dict[str, Rival]:
    rivals: dict[str, Rival] = {}
    for solver in solvers:
        if solver in ("bundle", "cutting-plane") or data.name in STOCHASTIC_SETS:
            rivals[solver] = ours(data, solver, C)
    for name, make in LINEAR.items():
        rivals[name] = pointwise(data, make, decision)
    if data.name not in WITHOUT_TREES:
        for name in TREES:
            rivals[name] = trees(data, name)
    return rivals
