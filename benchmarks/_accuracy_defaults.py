"""What a newcomer's calls give, on raw features: `RankSVC()` and `RankSVCCV()` beside logistic regressions.

The rivals take the features as they are, and standardised; the better of the two by its *test* score counts, which
favours it. Tuned, they choose among thirteen values of C by average precision on five
stratified folds, as `RankSVCCV()` does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from _accuracy_methods import Method, Scores, columns
from _accuracy_sets import Part
from scipy import sparse
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankhinge import RankSVC, RankSVCCV

TUNED_CS = np.logspace(-4, 2, 13)
# Enough for features in raw units to come near the optimum; the default of 100 is kept for what is untuned.
TUNED_ITERATIONS = 300


def _ours(make: Callable[[], Any]) -> Method:
    """One call for all classes or labels."""

    def run(train: Part, X_test: Any, seed: int) -> Scores:
        del seed
        model = make().fit(train.X, train.y, mask=train.mask)
        scores: Scores = np.atleast_2d(model.decision_function(X_test).T)
        return scores

    return run


def _rival(make: Callable[[], Any], *, scaled: bool) -> Method:
    """One model for each class or label; scikit-learn has no mask."""

    def run(train: Part, X_test: Any, seed: int) -> Scores:
        del seed
        rows = []
        for relevant, known in columns(train):
            # A sparse X cannot be centred.
            scaler = [StandardScaler(with_mean=not sparse.issparse(train.X))] if scaled else []
            model = make_pipeline(*scaler, make()).fit(train.X[known], relevant[known])
            rows.append(model.decision_function(X_test))
        return np.array(rows)

    return run


def _tuned_logistic() -> Any:
    return LogisticRegressionCV(
        Cs=TUNED_CS,
        cv=StratifiedKFold(5, shuffle=True, random_state=0),
        scoring="average_precision",
        max_iter=TUNED_ITERATIONS,
        l1_ratios=(0.0,),
        use_legacy_attributes=False,
    )


PLAIN: dict[str, Method] = {
    "RankSVC()": _ours(RankSVC),
    "LogisticRegression()": _rival(LogisticRegression, scaled=False),
    "LogisticRegression(), scaled": _rival(LogisticRegression, scaled=True),
}
TUNED: dict[str, Method] = {
    "RankSVCCV()": _ours(lambda: RankSVCCV(random_state=0)),
    "LogisticRegressionCV": _rival(_tuned_logistic, scaled=False),
    "LogisticRegressionCV, scaled": _rival(_tuned_logistic, scaled=True),
}
