"""`max_time`: a fit that ends by the clock keeps its best point, with an honest gap and status."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from rankhinge import ApproximateRankSVC, RankSVC, SVMRanker, rank_svm_path
from rankhinge.solvers import Deadline, deadline
from rankhinge.svm import lockstep
from tests.judge import check
from tests.svm.helpers import binary, graded, multiclass, multilabel

# Long over when it is first looked at: one step is made.
AT_ONCE = 1e-9
HARD = {"bound": "convex", "C": 1e4, "tol": 1e-9}


@pytest.fixture
def clock(monkeypatch):
    """A clock that moves by a second whenever it is looked at: how far a fit comes depends on nothing else."""
    moments = iter(range(10**6))
    monkeypatch.setattr(deadline.time, "monotonic", lambda: float(next(moments)))


def test_the_deadline(clock):
    assert not Deadline().passed
    end = Deadline.after(2.5)
    assert [end.passed for _ in range(4)] == [False, False, True, True]
    assert Deadline.after(100.0).earlier(0.5).moment == pytest.approx(56.5, abs=1.0)
    assert Deadline().earlier(0.5).moment == np.inf


@pytest.mark.parametrize(
    "options", [HARD, {"tol": 1e-9}, {"init": "convex", "tol": 1e-9}, HARD | {"solver": "cutting-plane"}]
)
@pytest.mark.parametrize("data", [binary, multiclass, multilabel])
@pytest.mark.parametrize("seconds", [AT_ONCE, 5.5])
def test_the_best_point_is_kept(clock, options, data, seconds):
    X, y = data(noise=2.0) if data is binary else data()
    with pytest.warns(ConvergenceWarning, match=rf"max_time = {seconds:g} s was over.* Increase max_time or tol"):
        model = RankSVC(max_time=seconds, **options).fit(X, y)
    assert "time" in np.atleast_1d(model.status_)
    assert np.isfinite(model.coef_).all()
    assert model.predict(X).shape == y.shape
    whole = RankSVC(**options).fit(X, y)
    assert np.all(np.atleast_1d(model.n_iter_) <= np.atleast_1d(whole.n_iter_))
    assert np.all(np.atleast_1d(model.gap_)[np.atleast_1d(model.status_) == "time"] > 1e-9)
    if "bound" in options:
        assert np.all(model.objective_ >= whole.dual_objective_)
        assert np.all(model.dual_objective_ <= whole.objective_)


@pytest.mark.parametrize("bound", ["convex", "tight"])
@pytest.mark.parametrize("seconds", [AT_ONCE, 5.5, 20.5])
def test_an_independent_judge_agrees(clock, bound, seconds):
    X, y = binary(noise=2.0)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = RankSVC(bound=bound, max_time=seconds, tol=1e-9).fit(X, y)
    check(model, X, y)


def test_lists_and_easy_samples(clock):
    X, y, qid = graded(n_queries=8)
    with pytest.warns(ConvergenceWarning, match="max_time = 1e-09 s was over"):
        ranker = SVMRanker(max_time=AT_ONCE, tol=1e-9).fit(X, y, qid=qid)
    assert ranker.status_ == "time"
    with pytest.warns(ConvergenceWarning, match="max_time = 1e-09 s was over"):
        model = ApproximateRankSVC(C=1e3, max_time=AT_ONCE, tol=1e-9).fit(*binary(noise=2.0))
    assert model.status_ == "time"
    assert np.isfinite(model.coef_).all()


def test_time_enough_changes_nothing():
    X, y = binary(noise=2.0)
    for options in ({}, {"bound": "convex"}):
        model = RankSVC(max_time=1e6, **options).fit(X, y)
        assert model.status_ == "converged"
        np.testing.assert_array_equal(model.coef_, RankSVC(**options).fit(X, y).coef_)


def test_problems_that_have_not_begun_are_told(clock, monkeypatch):
    monkeypatch.setattr(lockstep, "MEMORY", lockstep.MEMORY._replace(entries=1, part_of_X=0.0))
    X, y = multiclass()
    with pytest.warns(ConvergenceWarning, match="max_time = 1e-09 s was over, and 2 of 3 problems had not begun"):
        model = RankSVC(max_time=AT_ONCE, **HARD).fit(X, y)
    assert model.status_.tolist() == ["time"] * 3
    assert np.isinf(model.gap_).tolist() == [False, True, True]


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan"), "soon", [1.0]])
def test_bad_values(seconds):
    X, y = binary()
    for call in (RankSVC(max_time=seconds).fit, lambda X, y: rank_svm_path(X, y, [1.0], max_time=seconds)):
        with pytest.raises(ValueError, match=r"'max_time' parameter .* must be a float in the range"):
            call(X, y)


def test_a_path_ends_where_it_is(clock):
    X, y = binary(noise=2.0)
    Cs = [1.0, 1e2, 1e4]
    whole = rank_svm_path(X, y, Cs, tol=1e-9)
    with pytest.warns(ConvergenceWarning) as caught:
        path = rank_svm_path(X, y, Cs, tol=1e-9, max_time=30.5)
    assert any("ended after max_time = 30.5 s, with" in str(warning.message) for warning in caught)
    n = path.Cs.size
    assert 0 < n < 3
    assert path.coefs.shape == (n, 1, X.shape[1])
    np.testing.assert_array_equal(path.coefs[: n - 1], whole.coefs[: n - 1])
    assert np.all(path.objectives >= whole.dual_objectives[:n])
    assert np.all(path.dual_objectives <= whole.objectives[:n])
