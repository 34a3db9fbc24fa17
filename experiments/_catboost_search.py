"""CatBoost beside the rankers of the accuracy benchmark: the same outer and inner folds, a smaller budget."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold

from rankhinge.metrics import ndcg

__all__ = ["BUDGET", "NAME", "PLACES", "evaluated"]

NAME = "CatBoostRanker"
# A fit takes some seconds: four settings instead of the other trees' eleven, and those with fewer trees are the
# beginnings of others.
BUDGET = {"leaves": (4, 16), "trees": (50, 100), "rate": 0.05}
N_INNER = 5
# Of lightgbm_rank the first of three repeats alone.
PLACES = tuple((name, fold) for name in ("mq2008", "lightgbm_rank") for fold in range(5))


def _fitted(leaves: int, X: Any, y: Any, qid: Any, seed: int) -> Any:
    from catboost import CatBoostRanker

    model = CatBoostRanker(
        loss_function="YetiRank",
        learning_rate=BUDGET["rate"],
        grow_policy="Lossguide",
        max_leaves=leaves,
        n_estimators=max(BUDGET["trees"]),
        random_seed=seed,
        thread_count=1,
        verbose=False,
        allow_writing_files=False,
    )
    return model.fit(X, y.astype(int), group_id=qid)


def _searched(train: Any, X_test: Any, seed: int) -> Any:
    """The scores of the setting that is best by NDCG@10 on the inner folds of the other trees."""
    order = np.argsort(train.qid, kind="stable")
    X, y, qid = train.X[order], train.y[order], np.asarray(train.qid)[order]
    found: dict[tuple[int, int], float] = dict.fromkeys(
        ((leaves, trees) for leaves in BUDGET["leaves"] for trees in BUDGET["trees"]), 0.0
    )
    for inside, outside in GroupKFold(N_INNER, shuffle=True, random_state=seed).split(X, groups=qid):
        for leaves in BUDGET["leaves"]:
            model = _fitted(leaves, X[inside], y[inside], qid[inside], seed)
            for trees in BUDGET["trees"]:
                predicted = model.predict(X[outside], ntree_end=trees)
                found[leaves, trees] += ndcg(
                    y[outside], predicted, qid=qid[outside], k=10, gains="exponential", no_positives="skip"
                )
    leaves, trees = max(found, key=found.__getitem__)
    return np.asarray(_fitted(leaves, X, y, qid, seed).predict(X_test, ntree_end=trees))[None, :]


def evaluated(name: str, fold: int) -> dict[str, Any]:
    """One outer fold, as a record of the accuracy benchmark."""
    # Here, since `_run` has to put the benchmarks on the path first.
    from _accuracy_methods import evaluate
    from _accuracy_sets import load

    record: dict[str, Any] = evaluate(load("lists", name, 0, fold), "lists", NAME, _searched)
    return record
