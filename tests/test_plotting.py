"""Pictures: scikit-learn's convention, what is drawn, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris

import rankhinge
from rankhinge import metrics

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402

from rankhinge.plotting import ConvergenceDisplay, PathDisplay, PerQueryDisplay  # noqa: E402

X, Y = load_iris(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
QID = np.arange(150) % 10


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


@pytest.mark.parametrize("over", ["passes", "time", "iteration"])
def test_convergence(over):
    model = rankhinge.RankSVC(bound="convex", C=100.0).fit(X, Y == 1)
    display = ConvergenceDisplay.from_estimator(model, over=over)
    primal, dual, gap = display.lines_
    assert np.array_equal(primal.get_ydata(), model.history_["primal"])
    assert np.array_equal(dual.get_ydata(), model.history_["dual"])
    assert gap.get_ydata()[-1] == pytest.approx(model.gap_)
    if over != "iteration":
        assert np.array_equal(primal.get_xdata(), model.history_[over])
    assert display.figure_ is display.ax_[0].figure
    display.figure_.canvas.draw()


def test_convergence_of_many_and_of_others():
    model = rankhinge.RankSVC(bound="convex").fit(X, Y)
    assert len(ConvergenceDisplay.from_estimator(model).lines_) == 9
    figure, axes = plt.subplots(1, 2)
    history = {
        "primal": np.array([2.0, 1.0]),
        "dual": np.array([-np.inf, 1.0]),
        "gap": np.array([np.inf, 0.0]),
        "passes": np.array([1.0, 2.0]),
    }
    display = ConvergenceDisplay.from_history(history, ax=axes)
    assert display.figure_ is figure
    figure.canvas.draw()
    with pytest.raises(ValueError, match="ax must be 2 axes, got 1"):
        ConvergenceDisplay(history).plot(ax=axes[0])
    with pytest.raises(ValueError, match="over must be one of"):
        ConvergenceDisplay(history).plot(over="cost")


def test_path():
    model = rankhinge.RankSVCCV(bound="convex", Cs=[1.0, 10.0, 100.0], random_state=0).fit(X, Y == 1)
    display = PathDisplay.from_estimator(model)
    assert np.allclose(display.line_.get_ydata(), model.scores_.mean(axis=1), rtol=1e-12)
    assert display.line_.get_xdata().tolist() == [1.0, 10.0, 100.0]
    assert display.ax_.get_xscale() == "log"
    assert display.ax_.get_ylabel() == "ap"
    display.figure_.canvas.draw()


def test_path_of_one_label_and_of_the_tight_bound():
    model = rankhinge.RankSVCCV(bound="convex", Cs=[1.0, 10.0], random_state=0).fit(X, Y)
    with pytest.raises(ValueError, match="there are 3 labels: choose one"):
        PathDisplay.from_estimator(model)
    display = PathDisplay.from_estimator(model, problem=2)
    assert np.allclose(display.line_.get_ydata(), model.scores_[2].mean(axis=1), rtol=1e-12)
    tight = rankhinge.RankSVCCV(bound="tight", reaches=3, random_state=0).fit(X, Y == 1)
    display = PathDisplay.from_estimator(tight)
    assert np.nanmax(display.line_.get_ydata()) == pytest.approx(np.nanmax(tight.scores_.mean(axis=-1)))
    with pytest.raises(ValueError, match="RankSVC has no path"):
        PathDisplay.from_estimator(rankhinge.RankSVC(bound="convex").fit(X, Y == 1))
    with pytest.raises(ValueError, match="a row for each of the 2 values"):
        PathDisplay.from_scores([1, 2], [1, 2])


def test_per_query():
    first = rankhinge.SVMRanker(bound="convex", C=0.01).fit(X, Y, qid=QID)
    second = rankhinge.SVMRanker(bound="convex", C=100.0).fit(X, Y, qid=QID)
    display = PerQueryDisplay.from_estimators(first, second, X, Y, qid=QID, metric="ndcg@10", names=("a", "b"))
    means = [metrics.ndcg(Y, model.predict(X), qid=QID, k=10) for model in (first, second)]
    assert display.differences_.mean() == pytest.approx(means[1] - means[0], abs=1e-12)
    assert (np.diff(display.differences_) >= 0).all()
    assert display.ax_.get_ylabel() == "difference of ndcg@10"
    display.figure_.canvas.draw()


def test_per_query_of_values():
    display = PerQueryDisplay.from_values([0.5, np.nan, 1.0], [0.25, 1.0, 1.0])
    assert display.differences_.tolist() == [-0.25, 0.0]
    PerQueryDisplay.from_values([1.0], [1.0]).figure_.canvas.draw()
    with pytest.raises(ValueError, match="one value per query"):
        PerQueryDisplay([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="no query counts"):
        PerQueryDisplay.from_values([np.nan], [1.0])
