"""The methods of the tables ``rivals`` and ``lists``. Each chooses its parameters by cross-validation on the training
part, and is then fitted to all of it: by average precision on the same inner folds, for lists by NDCG@10 on five folds
of queries. What a newcomer calls is in `_accuracy_defaults`.

The budget is the same for all: eleven values of C for the linear rivals, eleven settings of the trees; ours spend
theirs on eight starts and then on paths of the tight bound.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from _accuracy_sets import Part, Task
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.svm import LinearSVC

from rankhinge import RankSVCCV, SVMRanker, SVMRankerCV
from rankhinge.metrics import average_precision, ndcg

CS = np.logspace(-4, 1, 11)
SVC_CS = np.logspace(-6, -1, 11)
CONVEX_CS = np.logspace(-2, 4, 7)
# More rows, or more numbers in all, get three inner folds instead of five.
LARGE, LARGE_IN_ALL = 20_000, 4_000_000
Scores = NDArray[np.float64]
Method = Callable[[Part, Any, int], Scores]


def inner_folds(part: Part, seed: int) -> list[tuple[NDArray[Any], NDArray[Any]]]:
    """Five folds, three for large sets; lists stay whole, labels of VOC are not stratified."""
    n, d = part.X.shape
    n_folds = 3 if n > LARGE or n * d > LARGE_IN_ALL else 5
    if part.qid is not None:
        return list(GroupKFold(n_folds, shuffle=True, random_state=seed).split(np.zeros(n), groups=part.qid))
    strata = part.y if part.y.ndim == 1 else np.zeros(n)
    return list(StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(np.zeros(n), strata))


def columns(part: Part) -> list[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    """``(relevant, labelled)`` of each one-vs-rest problem."""
    everywhere = np.ones(part.X.shape[0], np.bool_)
    if part.y.ndim == 2:
        known = part.mask if part.mask is not None else np.ones(part.y.shape, np.bool_)
        return [(part.y[:, k] > 0, known[:, k]) for k in range(part.y.shape[1])]
    labels = np.unique(part.y)
    if labels.size == 2:
        return [(part.y == labels[1], everywhere)]
    return [(part.y == label, everywhere) for label in labels]


def mean_ap(part: Part, scores: Scores) -> list[float]:
    """Average precision of each problem; a row of `scores` each."""
    return [
        float(average_precision(relevant[known], row[known]))
        for (relevant, known), row in zip(columns(part), scores, strict=True)
    ]


def _linear(make: Callable[[float], Any], Cs: NDArray[np.float64]) -> Method:
    """A rival with one C for each problem."""

    def run(train: Part, X_test: Any, seed: int) -> Scores:
        folds, rows = inner_folds(train, seed), []
        for relevant, known in columns(train):
            scores = np.full((Cs.size, len(folds)), np.nan)
            for place, (inside, outside) in enumerate(folds):
                inside, outside = inside[known[inside]], outside[known[outside]]
                for j, C in enumerate(Cs):
                    model = make(C).fit(train.X[inside], relevant[inside])
                    scores[j, place] = average_precision(relevant[outside], model.decision_function(train.X[outside]))
            C = Cs[np.argmax(scores.mean(axis=1))]
            rows.append(make(C).fit(train.X[known], relevant[known]).decision_function(X_test))
        return np.array(rows)

    return run


def _rank_svc(**options: Any) -> Method:
    def run(train: Part, X_test: Any, seed: int) -> Scores:
        model = RankSVCCV(cv=inner_folds(train, seed), random_state=seed, **options)
        model.fit(train.X, train.y, mask=train.mask)
        scores: Scores = np.asarray((X_test @ model.coef_.T).T)
        return scores

    return run


_TREES = [{"num_leaves": leaves, "n_estimators": n} for leaves in (4, 8, 16, 31) for n in (50, 100, 200)][:11]


def _lightgbm(train: Part, X_test: Any, seed: int) -> Scores:
    from lightgbm import LGBMClassifier

    def make(setting: dict[str, Any]) -> Any:
        return LGBMClassifier(
            **setting, learning_rate=0.1, verbose=-1, n_jobs=1, random_state=seed, min_child_samples=10
        )

    folds, rows = inner_folds(train, seed), []
    for relevant, known in columns(train):
        scores = np.zeros((len(_TREES), len(folds)))
        for place, (inside, outside) in enumerate(folds):
            inside, outside = inside[known[inside]], outside[known[outside]]
            # More trees of the same size begin as fewer do: one fit serves all numbers of trees.
            for leaves in {setting["num_leaves"] for setting in _TREES}:
                sizes = [setting["n_estimators"] for setting in _TREES if setting["num_leaves"] == leaves]
                model = make({"num_leaves": leaves, "n_estimators": max(sizes)}).fit(train.X[inside], relevant[inside])
                for j, setting in enumerate(_TREES):
                    if setting["num_leaves"] == leaves:
                        raw = model.predict(train.X[outside], raw_score=True, num_iteration=setting["n_estimators"])
                        scores[j, place] = average_precision(relevant[outside], raw)
        best = _TREES[int(np.argmax(scores.mean(axis=1)))]
        rows.append(make(best).fit(train.X[known], relevant[known]).predict(X_test, raw_score=True))
    return np.array(rows)


CLASSIFIERS: dict[str, Method] = {
    "convex": _rank_svc(bound="convex", Cs=CONVEX_CS, tol=1e-2),
    "tight": _rank_svc(bound="tight"),
    "LinearSVC": _linear(lambda C: LinearSVC(C=C, dual=False), SVC_CS),
    "LinearSVC balanced": _linear(lambda C: LinearSVC(C=C, dual=False, class_weight="balanced"), SVC_CS),
    "LogisticRegression": _linear(lambda C: LogisticRegression(C=C, max_iter=300), CS),
    "LogisticRegression balanced": _linear(
        lambda C: LogisticRegression(C=C, max_iter=300, class_weight="balanced"), CS
    ),
    "LightGBM": _lightgbm,
}


def _svm_ranker(**options: Any) -> Method:
    def run(train: Part, X_test: Any, seed: int) -> Scores:
        model = SVMRankerCV(cv=5, random_state=seed, scoring="ndcg@10", **options).fit(train.X, train.y, qid=train.qid)
        return model.predict(X_test)[None, :]

    return run


def boosted(make: Callable[[dict[str, Any]], Any], groups: bool) -> Method:
    """A boosted ranker, its eleven settings judged by NDCG@10."""

    def run(train: Part, X_test: Any, seed: int) -> Scores:
        order = np.argsort(train.qid, kind="stable")
        X, y, qid = train.X[order], train.y[order], np.asarray(train.qid)[order]

        def fitted(setting: dict[str, Any], rows: NDArray[Any]) -> Any:
            sizes = np.unique(qid[rows], return_counts=True)[1]
            how = {"group": sizes} if groups else {"qid": qid[rows]}
            return make({**setting, "random_state": seed}).fit(X[rows], y[rows].astype(int), **how)

        scores = np.zeros((len(_TREES), 5))
        for place, (inside, outside) in enumerate(GroupKFold(5, shuffle=True, random_state=seed).split(X, groups=qid)):
            for j, setting in enumerate(_TREES):
                predicted = fitted(setting, inside).predict(X[outside])
                scores[j, place] = ndcg(
                    y[outside], predicted, qid=qid[outside], k=10, gains="exponential", no_positives="skip"
                )
        best = _TREES[int(np.argmax(scores.mean(axis=1)))]
        return np.asarray(fitted(best, np.arange(qid.size)).predict(X_test))[None, :]

    return run


def _lgbm_ranker(setting: dict[str, Any]) -> Any:
    from lightgbm import LGBMRanker

    return LGBMRanker(**setting, learning_rate=0.05, verbose=-1, n_jobs=1)


def _xgb_ranker(setting: dict[str, Any]) -> Any:
    from xgboost import XGBRanker

    options = {"max_leaves": setting["num_leaves"], "grow_policy": "lossguide", "max_depth": 0}
    rest = {key: value for key, value in setting.items() if key != "num_leaves"}
    return XGBRanker(objective="rank:ndcg", learning_rate=0.05, n_jobs=1, tree_method="hist", **options, **rest)


def _plain_ranker(train: Part, X_test: Any, seed: int) -> Scores:
    """Nothing is chosen."""
    del seed
    return SVMRanker().fit(train.X, train.y, qid=train.qid).predict(X_test)[None, :]


RANKERS: dict[str, Method] = {
    "SVMRanker()": _plain_ranker,
    "SVMRankerCV()": _svm_ranker(),
    "LGBMRanker": boosted(_lgbm_ranker, groups=True),
    "XGBRanker": boosted(_xgb_ranker, groups=False),
}


def evaluate(task: Task, table: str, name: str, method: Method) -> dict[str, Any]:
    """Fit one method to one task, and what it reaches on the test part."""
    warnings.simplefilter("ignore")
    began = time.perf_counter()
    if task.train.qid is None:
        scores = method(task.train, task.test.X, task.repeat)
        found: dict[str, Any] = {"AP": mean_ap(task.test, scores)}
    else:
        row = method(task.train, task.test.X, task.repeat)[0]
        y, qid = task.test.y, task.test.qid
        found = {
            "NDCG@10": float(ndcg(y, row, qid=qid, k=10, gains="exponential", no_positives="skip")),
            "NDCG@10, lists without positives count 0": float(
                ndcg(y, row, qid=qid, k=10, gains="exponential", no_positives="zero")
            ),
            "MAP": float(average_precision(y > 0, row, qid=qid, no_positives="skip")),
            "MAP, lists without positives count 0": float(average_precision(y > 0, row, qid=qid, no_positives="zero")),
        }
    return {
        "table": table,
        "set": task.name,
        "repeat": task.repeat,
        "fold": task.fold,
        "method": name,
        "shape": task.train.X.shape,
        "seconds": round(time.perf_counter() - began, 2),
        **found,
    }
