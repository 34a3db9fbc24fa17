"""Copies, files, warm starts, and what a fit prints."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from rankhinge import ApproximateRankSVC, RankSVC, RankSVCCV, SVMRanker, SVMRankerCV
from rankhinge.losses import NDCG, RBP, SoftNDCG
from tests.svm.helpers import binary, multiclass

pytestmark = pytest.mark.sklearn_compat

ESTIMATORS = [
    RankSVC(C=10.0, bound="convex"),
    RankSVC(loss=RBP(0.7), threshold="error", bound="convex"),
    SVMRanker(loss="ap", C=10.0, bound="convex"),
    RankSVCCV(Cs=[1.0, 10.0], cv=2, random_state=0, bound="convex"),
    SVMRankerCV(loss="ap", Cs=[1.0, 10.0], cv=2, random_state=0, bound="convex"),
    ApproximateRankSVC(C=10.0),
]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_clone(estimator):
    copy = clone(estimator)
    assert repr(copy.get_params()) == repr(estimator.get_params())
    X, y = binary()
    fitted = clone(estimator).fit(X, y)
    assert not hasattr(clone(fitted), "coef_")
    np.testing.assert_array_equal(clone(fitted).fit(X, y).coef_, fitted.coef_)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_pickle(estimator):
    X, y = binary()
    fitted = clone(estimator).fit(X, y)
    loaded = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    assert loaded.gap_ == fitted.gap_
    assert set(vars(loaded)) == set(vars(fitted))


@pytest.mark.parametrize(
    "estimator",
    [
        RankSVC(bound="convex"),
        SVMRanker(bound="convex"),
        RankSVCCV(Cs=[1.0], cv=2, bound="convex"),
        ApproximateRankSVC(),
    ],
)
def test_training_data_do_not_travel_along(estimator):
    X, y = binary(n=900)
    assert len(pickle.dumps(clone(estimator).fit(X, y))) < 8 * y.size


@pytest.mark.parametrize(
    "estimator",
    [
        RankSVC(C=10.0, bound="convex"),
        SVMRanker(loss="ap", bound="convex"),
        RankSVCCV(Cs=[1.0], cv=2, bound="convex"),
        RankSVC(loss=NDCG(), bound="convex"),
        RankSVC(loss=RBP(0.7), bound="convex"),
        RankSVC(loss=SoftNDCG(30), C=1000.0, bound="convex"),
    ],
)
def test_skops(estimator):
    skops = pytest.importorskip("skops.io")
    X, y = binary()
    fitted = clone(estimator).fit(X, y)
    data = skops.dumps(fitted)
    unknown = skops.get_untrusted_types(data=data)
    # Nothing but the estimator itself and, if it has one, its loss object has to be trusted.
    assert all(name.startswith("rankhinge.") for name in unknown)
    loaded = skops.loads(data, trusted=unknown)
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_feature_names(estimator):
    pd = pytest.importorskip("pandas")
    X, y = binary()
    frame = pd.DataFrame(X, columns=[f"feature {k}" for k in range(4)])
    model = clone(estimator).fit(frame, y)
    assert model.n_features_in_ == 4
    assert model.feature_names_in_.tolist() == frame.columns.tolist()
    with pytest.warns(UserWarning, match="valid feature names"):
        model.predict(X)


def test_warm_start():
    X, y = binary()
    model = RankSVC(C=100.0, tol=1e-4, warm_start=True, bound="convex").fit(X, y)
    first, n_passes = model.objective_, model.n_passes_
    model.fit(X, y)
    assert model.history_["primal"][0] <= first * (1 + 1e-12)
    assert model.objective_ <= first * (1 + 1e-12)
    assert model.gap_ <= 1e-4
    assert model.n_passes_ <= n_passes
    cold = RankSVC(C=120.0, tol=1e-4, bound="convex").fit(X, y)
    assert model.set_params(C=120.0).fit(X, y).objective_ == pytest.approx(cold.objective_, rel=1e-4)


def test_warm_start_of_another_shape_starts_afresh():
    X, y = binary()
    model = RankSVC(warm_start=True, bound="convex").fit(X, y)
    np.testing.assert_array_equal(model.fit(X[:, :2], y).coef_, RankSVC(bound="convex").fit(X[:, :2], y).coef_)
    X, y = multiclass()
    np.testing.assert_array_equal(model.fit(X, y).coef_, RankSVC(bound="convex").fit(X, y).coef_)
    ranker = SVMRanker(loss="ap", warm_start=True, bound="convex").fit(*binary())
    assert ranker.fit(*binary(d=3)).coef_.shape == (3,)


def test_fits_are_repeatable():
    X, y = binary()
    for options in (
        {"bound": "convex"},
        {"bound": "convex", "solver": "frank-wolfe", "random_state": 3, "max_iter": 5000},
    ):
        np.testing.assert_array_equal(RankSVC(**options).fit(X, y).coef_, RankSVC(**options).fit(X, y).coef_)


def test_fit_leaves_global_random_state_alone():
    X, y = binary()
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    RankSVC(random_state=0, bound="convex").fit(X, y)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


@pytest.mark.parametrize(
    "estimator", [RankSVC(bound="convex"), SVMRanker(loss="ap", bound="convex"), ApproximateRankSVC()]
)
def test_progress(estimator, capfd):
    X, y = binary()
    clone(estimator).fit(X, y)
    assert capfd.readouterr() == ("", "")
    clone(estimator).set_params(verbose=1).fit(X, y)
    shown = capfd.readouterr()
    assert shown.out == ""
    for word in ("iteration", "primal", "dual", "gap", "time"):
        assert word in shown.err
