"""scikit-learn's callbacks: told of every iteration, and obeyed when they want to stop."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from rankhinge import RankSVC, SVMRanker, metrics
from rankhinge.objective import RankingObjective
from tests.svm.helpers import binary, graded, multilabel

pytest.importorskip("sklearn.callback")

pytestmark = pytest.mark.sklearn_compat


@pytest.fixture
def scoring_monitor():
    monitors = pytest.importorskip("sklearn.callback")
    if not hasattr(monitors, "ScoringMonitor"):
        pytest.skip("this scikit-learn has no ScoringMonitor")
    return monitors.ScoringMonitor


class Recorder:
    """Writes down what it is told; wants to stop after some iterations."""

    def __init__(self, stop_after=None):
        self.events, self.stop_after = [], stop_after

    def setup(self, estimator, context):
        self.events.append(("setup", context.task_name))

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context):
        self.events.append(("end", context.task_name))
        return self.events.count(("end", "iteration")) == self.stop_after

    def teardown(self, estimator, context):
        self.events.append(("teardown", context.task_name))


@pytest.mark.parametrize("estimator", [RankSVC(C=100.0, bound="convex"), SVMRanker(loss="ap", C=100.0, bound="convex")])
def test_every_iteration_is_told(estimator):
    X, y = binary()
    recorder = Recorder()
    model = clone(estimator).set_callbacks(recorder).fit(X, y)
    iterations = [("begin", "iteration"), ("end", "iteration")] * model.n_iter_
    assert recorder.events == [("setup", "fit"), ("begin", "fit"), *iterations, ("end", "fit"), ("teardown", "fit")]
    np.testing.assert_array_equal(model.coef_, clone(estimator).fit(X, y).coef_)


def test_stop():
    X, y = binary()
    recorder = Recorder(stop_after=2)
    with pytest.warns(ConvergenceWarning, match="after 2 iterations .* above its minimum$"):
        model = RankSVC(C=1e4, tol=1e-8, bound="convex").set_callbacks(recorder).fit(X, y)
    assert (model.n_iter_, model.status_) == (2, "stopped")
    assert recorder.events[-1] == ("teardown", "fit")
    assert np.isfinite(model.decision_function(X)).all()


def test_teardown_after_an_interrupt(monkeypatch):
    X, y = binary()
    recorder = Recorder()
    model = RankSVC(C=1e4, bound="convex").set_callbacks(recorder)
    with monkeypatch.context() as patch:
        patch.setattr(RankingObjective, "adjoint", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    assert recorder.events[-1] == ("teardown", "fit")
    assert model.status_ == "interrupted"
    assert model.fit(X, y).status_ == "converged"


@pytest.mark.parametrize(
    "options", [{"bound": "convex", "C": 100.0}, {"bound": "tight", "reach": 0.5}], ids=["convex", "tight"]
)
def test_scores_of_the_model_so_far(scoring_monitor, options):
    """`ScoringMonitor` gets models that can be asked."""
    X, y = binary(n=200)
    seen = []

    def score(estimator, X, y):
        seen.append(estimator.score(X, y))
        return {"mine": seen[-1]}

    model = RankSVC(**options).set_callbacks(scoring_monitor(scoring=score)).fit(X, y)
    assert len(seen) >= model.n_iter_
    assert seen[-1] == pytest.approx(model.score(X, y))


def test_callbacks_are_told_the_queries(scoring_monitor):
    X, y, qid = graded()
    scoring = {"ndcg": metrics.make_query_scorer("ndcg"), "mine": SVMRanker.score}
    model = SVMRanker(bound="convex").set_callbacks(scoring_monitor(scoring=scoring)).fit(X, y, qid=qid)
    assert model.status_ == "converged"


def test_callbacks_are_told_the_mask(scoring_monitor):
    X, Y = multilabel()
    mask = np.random.default_rng(0).random(Y.shape) < 0.8
    seen = []

    def score(estimator, X, y, mask):
        seen.append(estimator.score(X, y, mask=mask))
        return {"mine": seen[-1]}

    model = RankSVC(bound="convex").set_callbacks(scoring_monitor(scoring=score)).fit(X, Y, mask=mask)
    assert seen[-1] == pytest.approx(model.score(X, Y, mask=mask))
