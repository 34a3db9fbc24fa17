"""scikit-learn's own checks, for every estimator; nothing is expected to fail."""

from __future__ import annotations

import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankhinge import ApproximateRankSVC, RankSVC, RankSVCCV, SVMRanker, SVMRankerCV

pytestmark = pytest.mark.sklearn_compat

ESTIMATORS = [
    RankSVC(bound="convex"),
    RankSVC(loss="ndcg", threshold="error", bound="convex"),
    RankSVC(bound="tight"),
    SVMRanker(bound="tight"),
    SVMRanker(bound="convex"),
    RankSVCCV(Cs=[1.0, 10.0], cv=2, bound="convex"),
    SVMRankerCV(Cs=[1.0, 10.0], cv=2, bound="convex"),
    ApproximateRankSVC(),
]


@parametrize_with_checks(ESTIMATORS)
def test_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", [SVMRanker(bound="convex"), SVMRankerCV(bound="convex")])
def test_rankers_have_no_estimator_type(estimator):
    assert not is_classifier(estimator)
    assert not is_regressor(estimator)
    assert estimator.__sklearn_tags__().estimator_type is None
    assert estimator.__sklearn_tags__().input_tags.sparse


@pytest.mark.parametrize("estimator", [RankSVC(bound="convex"), RankSVCCV(bound="convex"), ApproximateRankSVC()])
def test_classifiers_take_labels_and_sparse_features(estimator):
    tags = estimator.__sklearn_tags__()
    assert is_classifier(estimator)
    assert tags.classifier_tags.multi_label
    assert tags.input_tags.sparse
