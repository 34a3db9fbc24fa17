"""Right without tuning: which bound is in force, what belongs to it, and which unit a feature counts in."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from rankhinge import RankSVC, RankSVCCV, SVMRanker, SVMRankerCV, tight_hinge
from rankhinge.svm.units import effective, exponent_of, feature_scale
from tests.svm.helpers import binary, graded, multilabel


def mixed(n=200, d=5, seed=0):
    """Years beside dollars."""
    X, y = binary(n=n, d=d, seed=seed, noise=2.0)
    return X * 10.0 ** np.arange(d), y


def test_the_tight_bound_is_the_default():
    X, y = binary()
    model = RankSVC().fit(X, y)
    np.testing.assert_array_equal(model.coef_, RankSVC(bound="tight").fit(X, y).coef_)
    assert model.reach_ > 0
    X, y, qid = graded()
    assert hasattr(SVMRanker().fit(X, y, qid=qid), "init_coef_")


def test_zero_one_has_the_convex_bound():
    X, y = binary()
    model = RankSVC("zero-one").fit(X, y)
    np.testing.assert_array_equal(model.coef_, RankSVC("zero-one", bound="convex").fit(X, y).coef_)
    assert not hasattr(model, "reach_")
    assert RankSVC("zero-one", C=3.0).fit(X, y).C_ == 3.0
    with pytest.raises(ValueError, match="loss='zero-one' has none"):
        RankSVC("zero-one", bound="tight").fit(X, y)


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (RankSVC(C=10.0), r"C=10.0 belongs to bound='convex', but the tight bound is in force \(its strength is reach"),
        (RankSVC(C=[1.0]), r"C=\[1.0\] belongs to bound='convex'"),
        (RankSVC(solver="cutting-plane"), "solver='cutting-plane' belongs to bound='convex'"),
        (RankSVC(reach=1.0, bound="convex"), r"reach=1.0 belongs to bound='tight', .* \(its strength is C\)"),
        (RankSVC(scale=1.0, bound="convex"), "scale=1.0 belongs to bound='tight'"),
        (RankSVC(init=np.ones(4), bound="convex"), r"init=array\(.* belongs to bound='tight'"),
        (RankSVC("zero-one", init_C=1.0), "init_C=1.0 belongs to bound='tight', but the convex bound is in force"),
        (RankSVCCV(Cs=[1.0]), r"Cs=\[1.0\] belongs to bound='convex', .* \(its grid is reaches"),
        (RankSVCCV(reaches=3, bound="convex"), r"reaches=3 belongs to bound='tight', .* \(its grid is Cs\)"),
        (SVMRanker("ap", C=1.0), "C=1.0 belongs to bound='convex'"),
        (SVMRankerCV("ap", scales=3, bound="convex"), "scales=3 belongs to bound='tight'"),
    ],
)
def test_what_belongs_to_the_other_bound_is_refused(machine, message):
    with pytest.raises(ValueError, match=message):
        machine.fit(*binary())


@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, sparse.csr_array, sparse.csc_array])
@pytest.mark.parametrize("standardize", [True, 0.5, "auto"])
def test_weights_on_columns_are_a_fit_to_scaled_columns(make, standardize):
    """The slow twin: X divided by σ, in memory."""
    X, y = mixed()
    model = RankSVC(standardize=standardize, tol=1e-6).fit(make(X), y)
    sigma = model.feature_scale_
    np.testing.assert_allclose(sigma, X.std(axis=0) ** (1.0 if standardize == "auto" else standardize))
    twin = RankSVC(standardize=False, tol=1e-6).fit(X / sigma, y)
    np.testing.assert_allclose(model.objective_, twin.objective_, rtol=1e-5)
    np.testing.assert_allclose((model.init_C_, model.reach_), (twin.init_C_, twin.reach_), rtol=1e-9)
    away = sigma * (model.coef_[0] - model.init_coef_[0])
    value = 0.5 * away @ away + model.C_ * tight_hinge(X @ model.coef_[0], y).value
    assert model.objective_ == pytest.approx(value, rel=1e-9)
    assert model.dual_objective_ <= model.objective_
    np.testing.assert_allclose(model.score(X, y), twin.score(X / sigma, y), atol=2e-3)


def test_units_do_not_show():
    X, y = binary(n=200, d=5, noise=2.0)
    other = RankSVC().fit(X * 10.0 ** np.arange(5), y)
    np.testing.assert_allclose(other.coef_ * 10.0 ** np.arange(5), RankSVC().fit(X, y).coef_, rtol=1e-4)


def test_the_convex_bound_is_standardised_on_demand():
    X, y = mixed()
    plain = RankSVC(C=10.0, bound="convex").fit(X, y)
    np.testing.assert_array_equal(plain.feature_scale_, 1.0)
    model = RankSVC(C=10.0, bound="convex", standardize=True, tol=1e-6).fit(X, y)
    twin = RankSVC(C=10.0, bound="convex", tol=1e-6).fit(X / X.std(axis=0), y)
    np.testing.assert_allclose(model.objective_, twin.objective_, rtol=2e-6)


def test_in_the_space_of_the_rows():
    """Few samples, many features, in mixed units: found from weighted products."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 1500)) * np.exp(2.0 * rng.normal(size=1500)), np.arange(50) % 3 == 0
    X[y] += 0.5
    model = RankSVC(tol=1e-6).fit(X, y)
    assert not np.array_equal(model.feature_scale_, np.ones(1500))
    twin = RankSVC(standardize=False, tol=1e-6).fit(X / model.feature_scale_, y)
    np.testing.assert_allclose(model.objective_, twin.objective_, rtol=1e-4)
    again = RankSVC(tol=1e-6, warm_start=True).fit(X, y)
    objective = again.objective_
    assert again.fit(X, y).objective_ <= objective * (1 + 1e-6)


def test_columns_that_do_not_vary_have_no_scale():
    X, y = binary()
    X = np.column_stack([X, np.full(len(X), 7.0)])
    model = RankSVC().fit(X, y)
    assert model.feature_scale_[-1] == 1.0
    assert abs(model.coef_[0, -1]) < 1e-9 * np.abs(model.coef_).max()


def test_mixed_units_are_told_from_common_ones():
    assert effective(np.ones(40)) == pytest.approx(40.0)
    assert effective(np.array([1e200, 1.0])) == pytest.approx(1.0)
    assert effective(np.zeros(3)) == 1.0
    assert exponent_of("auto", np.array([1e6, 1.0, 1.0])) == 1.0
    assert exponent_of("auto", np.ones(100)) == 0.5
    # Counts of words: a few hold most of the variance, and still all are in the same unit.
    variances = np.arange(1.0, 3001.0) ** -1.2
    assert effective(variances) < 30.0
    assert exponent_of("auto", variances) == 0.5
    # Eighty answers from 0 to 9, and a number of the kind from 1 to 41.
    assert exponent_of("auto", np.append(np.ones(80), 165.0)) == 1.0
    assert exponent_of("auto", np.array([np.inf, 1.0])) == exponent_of("auto", np.array([np.nan, 1.0])) == 1.0
    assert (exponent_of(True, np.ones(2)), exponent_of(False, np.ones(2)), exponent_of(0.3, np.ones(2))) == (1, 0, 0.3)
    assert feature_scale(np.array([4.0, np.inf]), 1.0) is None
    np.testing.assert_array_equal(feature_scale(np.array([4.0, 0.0, 16.0]), 0.5), [np.sqrt(2.0), 1.0, 2.0])


def test_several_lists_move_little():
    X, y, qid = graded(n_queries=12)
    X = X[:, :1]
    assert SVMRanker().fit(X, y, qid=qid).reach_ == 0.1
    # One list is a sample for each of its positives.
    bearable = np.count_nonzero(y) / 30
    assert bearable > 0.1
    one = SVMRanker().fit(X, y, qid=np.zeros(len(y), np.intp))
    assert one.reach_ == pytest.approx(min(bearable, 1.0))


def test_lists_are_measured_within():
    X, y, qid = graded(n_queries=12)
    apart = X + 1e3 * qid[:, None]
    models = [SVMRanker().fit(features, y, qid=qid) for features in (X, apart)]
    np.testing.assert_allclose(models[1].feature_scale_, models[0].feature_scale_, rtol=1e-9)
    np.testing.assert_allclose(models[1].coef_, models[0].coef_, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("data", [mixed, multilabel])
def test_a_search_chooses_the_unit(data):
    X, y = data()
    model = RankSVCCV(cv=3, reaches=2, scales=1, random_state=0).fit(X, y)
    assert model.standardize_ in (0.5, 1.0)
    assert model.best_params_["standardize"] == model.standardize_
    again = RankSVC(**model.best_params_).fit(X, y)
    np.testing.assert_allclose(again.coef_, model.coef_, rtol=1e-9)
    alone = RankSVCCV(cv=3, reaches=2, scales=1, random_state=0, standardize=model.standardize_).fit(X, y)
    np.testing.assert_allclose(alone.coef_, model.coef_, rtol=1e-9)


def test_a_given_start_is_in_the_units_of_the_user():
    X, y = mixed()
    given = 10.0 ** -np.arange(5.0)
    for model in (RankSVC(init=given, scale=7.0), RankSVCCV(init=given, scales=[7.0], reaches=1, cv=2)):
        model.fit(X, y)
        np.testing.assert_allclose(model.init_coef_[0], given * 7.0 / (X @ given).std())
