"""Machines that optimise a metric at a cut: fits, bounds, searches, scores."""

from __future__ import annotations

import numpy as np
import pytest

from rankhinge import LatentRankSVC, RankSVC, RankSVCCV, SVMRanker, SVMRankerCV, metrics
from rankhinge.latent import Bags

LOSSES = ["ndcg@5", "ap@5", "precision@10%", "recall@8", "f1@8", "hit@3", "r-precision", "bedroc@5", "partial-auc@0.2"]


def problem(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + 0.5 * rng.normal(size=n) > 0.9


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("bound", ["convex", "tight"])
# With more positives than places the convex bound may have its minimum at 0, and says so.
@pytest.mark.filterwarnings("ignore:the coefficients are all 0:UserWarning")
def test_a_fit_has_a_certificate(loss, bound):
    X, y = problem()
    strength = {"C": 300.0} if bound == "convex" else {}
    model = RankSVC(loss=loss, bound=bound, tol=1e-2, **strength).fit(X, y)
    assert model.gap_ <= 1e-2 + 1e-9 or bound == "tight"
    expected = metrics.per_query(loss, y, model.decision_function(X), np.zeros(y.size))[1][0]
    assert model.score(X, y) == pytest.approx(expected)
    assert model.score(X, y) > 0.2 or (bound == "convex" and not model.coef_.any())


def test_queries_with_grades():
    rng = np.random.default_rng(1)
    X, qid = rng.normal(size=(200, 3)), np.repeat(np.arange(10), 20)
    y = np.clip(np.round(X[:, 0] + 0.5 * rng.normal(size=200)), 0, 3).astype(int)
    model = SVMRanker(loss="ndcg@5", bound="convex", C=100.0).fit(X, y, qid=qid)
    expected = metrics.ndcg(y, model.predict(X), qid=qid, k=5, gains="exponential", no_positives="skip")
    assert model.score(X, y, qid=qid) == pytest.approx(expected)
    assert expected > 0.5


def test_searches_judge_by_the_metric_of_the_loss():
    X, y = problem()
    assert RankSVCCV(loss="precision@10%", cv=3).fit(X, y).score(X, y) > 0.5
    qid = np.repeat(np.arange(12), 10)
    assert SVMRankerCV(loss="ndcg@3", cv=3).fit(X, y.astype(int), qid=qid).score(X, y.astype(int), qid=qid) > 0.3


def test_bags():
    rng = np.random.default_rng(2)
    bags = [rng.normal(size=(3, 2)) + (k < 10) for k in range(40)]
    model = LatentRankSVC(loss="precision@10").fit(Bags(bags), np.arange(40) < 10)
    assert model.score(Bags(bags), np.arange(40) < 10) >= 0.5
