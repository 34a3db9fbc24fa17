"""Searches that end before their end: by Ctrl-C or by the clock, with the best model so far."""

from __future__ import annotations

import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from rankhinge import RankSVCCV, SVMRankerCV
from rankhinge.objective import RankingObjective
from rankhinge.solvers import deadline
from rankhinge.svm.folds import Batch
from rankhinge.svm.policy import LABELS
from tests.judge import check
from tests.svm.helpers import binary, graded, multiclass

SMALL = {"cv": 3, "random_state": 0}


def interrupt_at(monkeypatch, owner, name, k):
    """Let the k-th call of a method raise."""
    original, n_calls = getattr(owner, name), iter(range(1, 10**6))

    def call(self, *arguments, **options):
        if next(n_calls) == k:
            raise KeyboardInterrupt
        return original(self, *arguments, **options)

    monkeypatch.setattr(owner, name, call)


@pytest.mark.parametrize(("bound", "k"), [("convex", 2), ("convex", 3), ("tight", 2), ("tight", 5), ("tight", 10)])
def test_ctrl_c_keeps_the_best_model_and_its_table(monkeypatch, bound, k):
    X, y = binary(noise=2.0)
    options = SMALL | {"bound": bound} | ({"Cs": 12} if bound == "convex" else {"init_Cs": 6})
    whole = RankSVCCV(**options).fit(X, y)
    with monkeypatch.context() as patch:
        interrupt_at(patch, Batch, "quality", k)
        model = RankSVCCV(**options)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    assert model.status_ == "interrupted"
    means = model.cv_results_["mean_test_score"]
    known = np.isfinite(means)
    assert 0 < known.sum() < means.size
    np.testing.assert_allclose(means[known], whole.cv_results_["mean_test_score"][: means.size][known], atol=1e-12)
    assert known[model.best_index_]
    # The mean of the folds' models ranks about as well as they do.
    assert model.score(X, y) > model.best_score_ - 0.2
    assert model.predict(X).shape == y.shape
    check(model, X, y)


@pytest.mark.parametrize("data", [multiclass])
def test_ctrl_c_with_several_labels_and_with_lists(monkeypatch, data):
    X, y = data()
    model = RankSVCCV(**SMALL)
    with monkeypatch.context() as patch:
        interrupt_at(patch, Batch, "quality", 10)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    assert set(model.status_) == {"interrupted"}
    assert model.coef_.any(axis=1).all()
    X, y, qid = graded(n_queries=9)
    ranker = SVMRankerCV(**SMALL)
    with monkeypatch.context() as patch:
        interrupt_at(patch, Batch, "quality", 4)
        with pytest.raises(KeyboardInterrupt):
            ranker.fit(X, y, qid=qid)
    assert ranker.status_ == "interrupted"
    assert np.isfinite(ranker.predict(X)).all()


@pytest.mark.parametrize("bound", ["convex", "tight"])
def test_ctrl_c_before_anything_is_known_leaves_the_earlier_model(monkeypatch, bound):
    X, y = binary(noise=2.0)
    model = RankSVCCV(bound=bound, **SMALL).fit(X, y)
    before = dict(vars(model))
    interrupt_at(monkeypatch, Batch, "quality", 1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :3], y)
    assert vars(model) == before


def test_ctrl_c_in_a_step_of_a_solver(monkeypatch):
    X, y = binary(noise=2.0)
    model = RankSVCCV(**SMALL)
    with monkeypatch.context() as patch:
        interrupt_at(patch, RankingObjective, "evaluate_tight", 15)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    assert model.status_ == "interrupted"
    assert np.isfinite(model.init_scores_).all()


def test_ctrl_c_between_the_starts_and_the_paths(monkeypatch):
    X, y = binary(noise=2.0)
    model = RankSVCCV(bound="tight", **SMALL)
    with monkeypatch.context() as patch:

        def interrupted(*_):
            raise KeyboardInterrupt

        patch.setattr("rankhinge.svm.tight_cv.rescaled", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    assert model.status_ == "interrupted"
    assert np.isfinite(model.init_scores_).all()
    assert np.isnan(model.scores_).all()
    check(model, X, y)


PROGRAM = """
import os, signal, threading, time
import numpy as np
from rankhinge import RankSVCCV

rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 40))
y = X[:, 0] + 2 * rng.normal(size=3000) > 2
calls = []

def scoring(relevant, scores):
    calls.append(1)
    if len(calls) == 30:
        # The next one comes long before the search could end.
        print("under way", flush=True)
    if len(calls) > 30:
        time.sleep(0.05)
    return float(scores[relevant].mean() > scores[~relevant].mean())

model = RankSVCCV(scoring=scoring, random_state=0)
try:
    model.fit(X, y)
    print("ended")
except KeyboardInterrupt:
    print("kept", model.status_, np.isfinite(model.coef_).all(), len(model.cv_results_["params"]) > 0, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of a terminal")
def test_a_real_ctrl_c():
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "under way\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == "kept interrupted True True\n"


@pytest.fixture
def clock(monkeypatch):
    """A clock that moves by a second whenever it is looked at."""
    moments = iter(range(10**6))
    monkeypatch.setattr(deadline.time, "monotonic", lambda: float(next(moments)))


@pytest.mark.parametrize("bound", ["convex", "tight"])
@pytest.mark.parametrize("seconds", [1e-9, 10.0, 40.0])
def test_max_time_takes_the_best_so_far(clock, bound, seconds):
    X, y = binary(noise=2.0)
    with pytest.warns(ConvergenceWarning) as caught:
        model = RankSVCCV(bound=bound, max_time=seconds, tol=1e-6, **SMALL).fit(X, y)
    assert any(f"75% of max_time = {seconds:g} s, after" in str(warning.message) for warning in caught)
    assert np.isfinite(model.cv_results_["mean_test_score"][model.best_index_])
    assert np.isfinite(model.coef_).all()
    assert model.status_ in ("time", "converged")
    check(model, X, y)


def test_time_enough_changes_nothing():
    X, y, qid = graded(n_queries=9)
    models = [SVMRankerCV(max_time=seconds, **SMALL).fit(X, y, qid=qid) for seconds in (None, 1e6)]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    with pytest.raises(ValueError, match="'max_time' parameter"):
        SVMRankerCV(max_time=0).fit(X, y, qid=qid)


def test_the_default_grid_ends_with_its_budget_of_passes(monkeypatch):
    """Larger C are not tried once the passes are spent; a grid that was asked for is followed to its end."""
    X, y = binary(n=200, d=8, noise=2.0)
    policy = LABELS.__class__(passes=12, decline=10.0)
    monkeypatch.setattr(RankSVCCV, "_policy", policy)
    options = {"bound": "convex", "tol": 1e-6} | SMALL
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = RankSVCCV(**options).fit(X, y)
    known = np.isfinite(model.scores_).all(axis=1)
    assert known[0]
    assert not known[-1]
    # A path: what is known comes first.
    assert np.all(np.diff(known.astype(int)) <= 0)
    assert np.isfinite(RankSVCCV(Cs=model.Cs_, **options).fit(X, y).scores_).all()
