"""scikit-learn's own checks: a 2-D array has one candidate a bag."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankhinge.latent import LatentRankSVC, LatentRankSVCCV, LatentStructuralSVC, LatentSVC

pytestmark = [pytest.mark.sklearn_compat, pytest.mark.filterwarnings("ignore:X has two dimensions")]


ESTIMATORS = [
    LatentRankSVC(),
    LatentRankSVC(loss="ndcg", init="random"),
    LatentRankSVCCV(Cs=[1.0, 10.0], cv=2, random_state=0),
    LatentSVC(),
    LatentSVC(ignore_confusing=10.0, fit_intercept=False),
    LatentStructuralSVC(),
]


@parametrize_with_checks(ESTIMATORS)
def test_checks(estimator, check):
    check(estimator)
