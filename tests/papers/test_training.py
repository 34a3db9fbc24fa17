"""Training by a given method of inference: one minimum, whatever the method."""

from __future__ import annotations

import numpy as np
import pytest

from rankhinge import RankSVC
from rankhinge.features import feature_map
from rankhinge.losses import get_loss
from rankhinge.objective import RankingObjective
from rankhinge.papers.training import ObjectiveBy, train_by
from rankhinge.problems import graded_lists, one_list

TOL = 1e-3
EXACT = {
    "ap": ("greedy", "search", "select", "quicksort", "quicksort-search", "histogram"),
    "ndcg": ("greedy", "quicksort", "histogram"),
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = rng.random(150) < 0.25
    return rng.normal(size=(150, 8)) + 0.7 * y[:, None], y


@pytest.mark.parametrize("loss", EXACT)
def test_every_exact_method_reaches_the_same_objective(data, loss):
    X, y = data
    expected = RankSVC(loss, C=30.0, bound="convex", tol=TOL).fit(X, y)
    for method in ("auto", *EXACT[loss]):
        trained = train_by("auto" if method == "histogram" else method, X, y, loss, 30.0, tol=TOL)
        # Each is above the minimum by no more than its gap, and near-ties may fall either way.
        assert trained.result.gap[0] <= TOL
        assert trained.result.objective[0] >= expected.dual_objective_
        assert trained.result.dual_objective[0] <= expected.objective_
        assert trained.result.objective[0] == pytest.approx(expected.objective_, rel=2 * TOL)


@pytest.mark.parametrize("method", EXACT["ap"][:-1])
def test_an_objective_by_a_method_is_the_objective(data, method):
    X, y = data
    features, problems = feature_map(X), [one_list(y)]
    usual = RankingObjective(features, problems, get_loss("ap"))
    mine = ObjectiveBy(features, problems, get_loss("ap"), method)
    for scale in (0.0, 1.0, 1e3):
        w = scale * np.random.default_rng(1).normal(size=(8, 1))
        scores = usual.score(w, np.array([0]))
        a, b = usual.evaluate(scores), mine.evaluate(scores)
        assert b.value[0] == pytest.approx(a.value[0], rel=1e-12, abs=1e-12)
        assert b.coefficients is not None
        # The value belongs to the coefficients: J = Δ + u·s.
        assert b.loss[0] + b.coefficients.values[0] @ scores.values[0] == pytest.approx(a.value[0], rel=1e-9, abs=1e-9)
    assert mine.n_calls == 3
    assert mine.seconds > 0


def test_ranks_are_kept_best_negative_first(data):
    X, y = data
    trained = train_by("greedy", X, y, "ap", 10.0, keeps_ranks=True)
    assert len(trained.ranks) == trained.n_calls
    assert all(ranks.size == (~y).sum() and np.all(np.diff(ranks) >= 0) for ranks in trained.ranks)


def test_graded_lists_are_refused(data):
    X, _ = data
    grades = np.arange(len(X)) % 3
    lists = graded_lists(grades, np.zeros(len(X), np.int64), get_loss("ndcg"), np.arange(3.0))
    with pytest.raises(ValueError, match="one list with labels 0 and 1"):
        ObjectiveBy(feature_map(X), [lists], get_loss("ap"))
