"""scikit-learn's own checks: a 2-D array has one candidate a bag."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankhinge.latent import LatentRankSVC

pytestmark = pytest.mark.sklearn_compat


@parametrize_with_checks([LatentRankSVC(), LatentRankSVC(loss="ndcg", init="random")])
def test_checks(estimator, check):
    check(estimator)
