"""A fit ends with a model or leaves the machine as it was; nothing of two fits is ever mixed."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

from rankhinge import ApproximateRankSVC, LatentRankSVC, RankSVC, RankSVCCV, SVMRanker, SVMRankerCV, rank_svm_path

from .helpers import binary, graded, multiclass, multilabel

INTERRUPTED = {
    "the start": (RankSVC(bound="tight"), "rankhinge.svm.logistic.Descent.step"),
    "the search": (RankSVCCV(cv=2, bound="convex"), "rankhinge.svm.folds.Batch.quality"),
    "the tight search": (RankSVCCV(bound="tight", cv=2), "rankhinge.svm.folds.Batch.quality"),
    "features": (RankSVC(bound="convex"), "rankhinge.features.dense._Dense.scores"),
    "the approximation": (ApproximateRankSVC(), "rankhinge.papers.machines.approximate.ApproximateRankSVC._easy"),
    "latent": (LatentRankSVC(), "rankhinge.latent.fit.Counter"),
}


def _state(model):
    return {name: value for name, value in vars(model).items() if not name.startswith("_skl")}


def _raise(*arguments, **options):
    raise KeyboardInterrupt


@pytest.mark.filterwarnings("ignore:X has two dimensions")
@pytest.mark.parametrize("where", list(INTERRUPTED))
def test_an_interrupted_refit_leaves_the_old_model(monkeypatch, where):
    """Another number of features, other classes: nothing of them shows."""
    model, place = INTERRUPTED[where]
    X, y = binary()
    model.fit(X, y)
    before = _state(model)
    monkeypatch.setattr(place, _raise)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :3], np.where(y, "spam", "ham"))
    assert _state(model).keys() == before.keys()
    assert all(_state(model)[name] is before[name] for name in before)
    monkeypatch.undo()
    assert set(model.predict(X)) <= {0, 1}


def test_an_interrupted_first_fit_leaves_nothing(monkeypatch):
    monkeypatch.setattr("rankhinge.svm.logistic.Descent.step", _raise)
    model = RankSVC(bound="tight")
    with pytest.raises(KeyboardInterrupt):
        model.fit(*binary())
    assert not [name for name in vars(model) if name.endswith("_")]
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


def test_a_refused_refit_leaves_the_old_model():
    X, y = binary()
    model = RankSVC(bound="convex").fit(X, y)
    predicted = model.predict(X)
    with pytest.raises(ValueError, match="C has shape"):
        model.set_params(C=[1.0, 2.0]).fit(*multiclass())
    np.testing.assert_array_equal(model.classes_, [0, 1])
    np.testing.assert_array_equal(model.predict(X), predicted)


@pytest.mark.parametrize("machine", [RankSVC, RankSVCCV])
def test_nothing_of_another_bound_is_left(machine):
    X, y = binary()
    model = machine(bound="tight").fit(X, y)
    fresh = machine(bound="convex").fit(X, y)
    assert vars(model.set_params(bound="convex").fit(X, y)).keys() == vars(fresh).keys()


def test_a_warm_start_goes_on():
    X, y = binary(n=200)
    for model in (
        RankSVC(C=1e3, tol=1e-6, warm_start=True, bound="convex"),
        SVMRanker("ap", C=1e3, warm_start=True, bound="convex"),
    ):
        first = model.fit(X, y).n_iter_
        assert model.fit(X, y).n_iter_ < first


@pytest.mark.parametrize(
    "fit",
    [
        lambda X, y: RankSVC(C=1e4, max_iter=1, bound="convex").fit(X, y),
        lambda X, y: SVMRanker("ap", C=1e4, max_iter=1, bound="convex").fit(X, y),
        lambda X, y: RankSVCCV(Cs=[1e4], cv=2, max_iter=1, bound="convex").fit(X, y),
        lambda X, y: rank_svm_path(X, y, [1e4], max_iter=1),
    ],
)
def test_warnings_point_at_the_users_line(fit):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(*binary())
    # A search warns of its paths and of the final fit.
    assert {(w.category, w.filename) for w in caught} == {(ConvergenceWarning, __file__)}


def test_a_label_that_no_fold_can_judge_is_fitted_all_the_same():
    X, Y = multilabel()
    Y[:, 1] = 0
    Y[7, 1] = 1
    for options in ({"bound": "convex"}, {"bound": "tight"}):
        with pytest.warns(UserWarning, match=r"labels \[1\] have no fold"):
            model = RankSVCCV(cv=3, random_state=0, **options).fit(X, Y)
        assert np.isfinite(model.C_).all()
        assert model.coef_[1].any()
    with (
        pytest.warns(UserWarning, match="least populated class"),
        pytest.raises(ValueError, match="no fold has both"),
    ):
        RankSVCCV(cv=3, bound="convex").fit(X, np.arange(len(X)) == 7)


def test_given_starts_with_a_constant_label():
    X, Y = multilabel()
    Y[:, 1] = 0
    init = np.eye(3, 4)
    for model in (RankSVC(bound="tight", init=init), RankSVCCV(bound="tight", init=init, cv=2)):
        with pytest.warns(UserWarning, match=r"labels \[1\] have no positive"):
            model.fit(X, Y)
        assert model.status_[1] == "constant"
        assert model.init_coef_[2, 2] > 0


def test_a_flat_start_begins_at_0():
    X, y = binary()
    with pytest.warns(UserWarning, match="the same score"):
        model = RankSVC(bound="tight", init=np.zeros(4)).fit(X, y)
    assert model.score(X, y) > y.mean()
    with pytest.warns(UserWarning, match="the same score"):
        model = RankSVC(bound="tight").fit(np.ones((60, 2)), y)
    np.testing.assert_array_equal(model.coef_, 0.0)
    assert model.status_ == "converged"


def test_progress_of_a_search(capsys):
    for options in ({"bound": "convex"}, {"bound": "tight"}):
        RankSVCCV(cv=2, verbose=1, **options).fit(*binary())
        shown = capsys.readouterr().err
        assert re.search(r"point [1-9]", shown)
        assert "inf" not in shown
    X, y, qid = graded()
    SVMRankerCV(cv=2, verbose=1, bound="convex").fit(X, y, qid=qid)
    assert re.search(r"point [1-9]", capsys.readouterr().err)
