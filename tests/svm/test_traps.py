"""What is easily meant otherwise says what it does."""

from __future__ import annotations

import numpy as np
import pytest

from rankhinge import RankSVC, RankSVCCV, SVMRanker, SVMRankerCV, metrics, rank_svm_path
from tests.svm.helpers import binary


def words(n=60):
    X, y = binary(n=n)
    return X, np.where(y == 1, "fraud", "legit"), y


@pytest.mark.parametrize(
    "fit",
    [
        lambda X, y: RankSVC(bound="convex").fit(X, y),
        lambda X, y: RankSVCCV(bound="convex", Cs=[1.0], cv=2).fit(X, y),
        lambda X, y: rank_svm_path(X, y, Cs=[1.0]),
    ],
)
def test_the_frequent_one_of_two_words_ranked_first(fit):
    X, y, _ = words()
    message = "the label 'legit' is ranked first, and .* train on y == 'fraud'; RankSVC also takes pos_label='fraud'"
    with pytest.warns(UserWarning, match=message):
        fit(X, y)


def test_pos_label():
    X, y, relevant = words()
    plain = RankSVC(bound="convex").fit(X, relevant)
    model = RankSVC(bound="convex", pos_label="fraud").fit(X, y)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert model.classes_.tolist() == ["legit", "fraud"]
    np.testing.assert_array_equal(model.predict(X) == "fraud", plain.predict(X) == 1)
    assert model.score(X, y) == plain.score(X, relevant)
    search = RankSVCCV(bound="convex", Cs=[1.0, 10.0], cv=2, random_state=0, pos_label="fraud").fit(X, y)
    np.testing.assert_array_equal(
        search.scores_, RankSVCCV(bound="convex", Cs=[1.0, 10.0], cv=2, random_state=0).fit(X, relevant).scores_
    )
    # Asking for what is ranked first anyway is no mistake.
    np.testing.assert_array_equal(RankSVC(bound="convex", pos_label=1).fit(X, relevant).coef_, plain.coef_)


def test_a_pos_label_that_does_not_fit():
    X, y, _ = words()
    with pytest.raises(ValueError, match=r"pos_label is 'spam', but y has the labels \['fraud', 'legit'\]"):
        RankSVC(pos_label="spam").fit(X, y)
    with pytest.raises(ValueError, match="pos_label is 1, but y is multiclass"):
        RankSVC(pos_label=1).fit(X, np.arange(len(X)) % 3)


def test_the_metric_has_the_gains_of_the_ranker():
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(90, 3)), rng.integers(0, 5, 90), np.arange(90) % 6
    ranker = SVMRanker(bound="convex").fit(X, y, qid=qid)
    assert ranker.score(X, y, qid=qid) == pytest.approx(metrics.ndcg(y, ranker.predict(X), qid=qid), abs=1e-12)
    assert ranker.score(X, y, qid=qid) != pytest.approx(metrics.ndcg(y, ranker.predict(X), qid=qid, gains="linear"))


def test_many_rows_without_queries():
    X, y = binary(n=1000)
    with pytest.warns(UserWarning, match="there is no qid: all 1000 rows are ranked as one list"):
        model = SVMRanker("ap", bound="convex").fit(X, y)
    with pytest.warns(UserWarning, match="there is no qid: all 1000 rows are ranked as one list"):
        SVMRankerCV("ap", bound="convex", Cs=[1.0], cv=2).fit(X, y)
    same = SVMRanker("ap", bound="convex").fit(X, y, qid=np.zeros(1000))
    np.testing.assert_array_equal(same.coef_, model.coef_)
