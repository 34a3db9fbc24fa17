"""``bound="tight"`` on the estimators: the objective as documented, starts, containers, lockstep, errors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from rankhinge import RankSVC, RankSVCCV, SVMRanker, SVMRankerCV, structured_hinge, tight_hinge
from rankhinge.features import feature_map
from rankhinge.losses import get_loss
from rankhinge.objective import variance
from rankhinge.problems.queries import ranking_lists

from .helpers import binary, graded, level_weights, multiclass, multilabel


def overlapping(seed=0, n=400):
    return binary(n=n, d=5, seed=seed, noise=2.0)


def value(model, X, relevant, k=0):
    away = model.feature_scale_ * (model.coef_[k] - model.init_coef_[k])
    C = np.atleast_1d(model.C_)[k]
    return 0.5 * away @ away + C * tight_hinge(X @ model.coef_[k], relevant, model.loss).value


@pytest.mark.parametrize("loss", ["ap", "ndcg", "rr", "auc", "rbp"])
def test_the_objective_is_as_documented_and_never_rises(loss):
    X, y = overlapping()
    model = RankSVC(loss, bound="tight", reach=1.0, scale=10.0).fit(X, y)
    assert model.objective_ == pytest.approx(value(model, X, y), rel=1e-9)
    assert model.status_ == "converged"
    assert model.gap_ <= model.tol
    assert np.all(np.diff(model.history_["primal"]) <= 0)
    start = model.C_ * tight_hinge(X @ model.init_coef_[0], y, loss).value
    assert model.history_["primal"][0] <= start * (1 + 1e-12)
    assert model.n_passes_ > model.n_iter_
    assert (X @ model.init_coef_[0]).std() == pytest.approx(10.0)


def test_without_tuning_the_training_loss_is_below_that_of_the_start():
    X, y = overlapping()
    model = RankSVC(bound="tight", reach=0.3, standardize=False).fit(X, y)
    logistic = LogisticRegression().fit(X, y).coef_[0]
    assert model.scale_ == pytest.approx((y == 0).sum() / 100)
    start = model.init_coef_[0]
    slope = X.T @ tight_hinge(X @ start, y).coefficients
    assert pytest.approx(0.3 * np.linalg.norm(start) / np.linalg.norm(slope)) == model.C_
    np.testing.assert_allclose(
        model.init_coef_[0] / np.linalg.norm(model.init_coef_[0]), logistic / np.linalg.norm(logistic), atol=0.01
    )
    assert tight_hinge(X @ model.coef_[0], y).value < tight_hinge(X @ model.init_coef_[0], y).value


def test_without_tuning_the_units_of_the_features_do_not_show():
    X, y = overlapping()
    given = np.arange(5.0) - 1.5
    model = RankSVC(bound="tight", init=given, tol=1e-9).fit(X, y)
    other = RankSVC(bound="tight", init=given / 8.0, tol=1e-9).fit(8.0 * X, y)
    np.testing.assert_allclose(8.0 * other.coef_, model.coef_, rtol=1e-6)


def test_starts():
    X, y = overlapping()
    given = np.arange(5.0) - 1.5
    model = RankSVC(bound="tight", init=given, scale=7.0).fit(X, y)
    np.testing.assert_allclose(model.init_coef_[0], given * 7.0 / (X @ given).std())
    convex = RankSVC(C=100.0, bound="convex").fit(X, y)
    model = RankSVC(bound="tight", init="convex", scale=7.0, standardize=False).fit(X, y)
    scores = X @ convex.coef_[0]
    np.testing.assert_allclose(X @ model.init_coef_[0], 7.0 * scores / scores.std(), atol=0.2)
    regularised = RankSVC(bound="tight", init_C=1e-4, standardize=False).fit(X, y)
    expected = LogisticRegression(C=1e-4).fit(X, y).coef_[0]
    direction = regularised.init_coef_[0] / np.linalg.norm(regularised.init_coef_[0])
    np.testing.assert_allclose(direction, expected / np.linalg.norm(expected), atol=0.01)


@pytest.mark.parametrize("d", [3, 40])
def test_the_start_is_regularised_by_the_variance_of_the_features(d):
    """By the samples of an effective feature, whatever the order, the signs and the unit of the features."""
    X, y = binary(n=400, d=d)
    X *= np.linspace(1.0, 3.0, d)
    raw, standardised = (RankSVC(bound="tight", standardize=choice).fit(X, y) for choice in (False, True))
    variances = X.var(axis=0)
    effective = variances.sum() ** 2 / (variances**2).sum()
    assert raw.init_C_ * variances.sum() == pytest.approx(np.clip(400 / 3 / effective, 3, 30), rel=1e-9)
    assert standardised.init_C_ * d == pytest.approx(np.clip(400 / 3 / d, 3, 30), rel=1e-9)
    assert standardised.reach_ == pytest.approx(np.clip(y.sum() / 30 / d, 0.03, 1), rel=1e-9)
    model = RankSVC(bound="tight", standardize=False).fit(X, y)
    scaled = RankSVC(bound="tight", standardize=False).fit(1e-4 * X, y)
    assert scaled.init_C_ == pytest.approx(1e8 * model.init_C_)
    np.testing.assert_allclose(1e-4 * scaled.coef_, model.coef_, rtol=1e-3, atol=1e-4 * np.abs(model.coef_).max())
    turned = RankSVC(bound="tight", standardize=False).fit(-X[:, ::-1], y)
    assert turned.init_C_ == pytest.approx(model.init_C_)


def test_the_start_of_lists_is_regularised_by_the_variance_within_them():
    X, y, qid = graded()
    apart = X + 100.0 * qid[:, None]
    model, other = (SVMRanker(bound="tight", standardize=False).fit(features, y, qid=qid) for features in (X, apart))
    assert other.init_C_ == pytest.approx(model.init_C_, rel=1e-6)
    within = sum(X[qid == q].var(axis=0).sum() for q in np.unique(qid)) / np.unique(qid).size
    assert 3.0 / within <= model.init_C_ * (1 + 1e-9) <= 30.1 / within


def _variance(features, lists):
    return variance.variances_within(features, lists).sum()


@pytest.mark.parametrize("block", [1, 3, 7, 10**6])
@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, sparse.csr_array, sparse.csc_array])
def test_variance_within_lists(monkeypatch, block, make):
    monkeypatch.setattr(variance, "ROW_BLOCK_ENTRIES", 3 * block)
    X, y, qid = graded(n_queries=5, size=6)
    y[qid == 2] = 0
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.3, 0.0, X) + 10.0 * (
        make in (np.asarray, np.asfortranarray)
    )
    lists = ranking_lists(y, qid, get_loss("ndcg"), "exponential", None, None)
    parts = [X[qid == q] for q in (0, 1, 3, 4)]
    expected = sum(((part - part.mean(axis=0)) ** 2).sum(axis=0) for part in parts) / 24
    np.testing.assert_allclose(variance.variances_within(feature_map(make(X)), lists), expected)
    # 0.1 added up ten times is not 1: what is left of the difference is not a variance.
    for factor in (1.0, 0.1):
        constant = feature_map(make(np.ones_like(X) * factor * qid[:, None]))
        assert _variance(constant, lists) == 0.0


@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, sparse.csr_array, sparse.csc_array])
def test_variance_within_lists_that_lie_far_apart(make):
    """A feature of the query alone, a time for instance, must not drown what varies within the lists."""
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(400, 10)), np.repeat(np.arange(20), 20)
    y = rng.integers(0, 2, size=400)
    y[::20], y[1::20] = 0, 1
    lists = ranking_lists(y, qid, get_loss("ap"), "exponential", None, None)
    expected = _variance(feature_map(X), lists)
    for size in (1e3, 1e8):
        apart = np.column_stack([X, np.repeat(rng.uniform(size=20), 20) * size])
        assert _variance(feature_map(make(apart)), lists) == pytest.approx(expected, rel=1e-6)


def test_variance_of_some_rows_in_any_order_of_a_sparse_matrix():
    rng = np.random.default_rng(0)
    X = sparse.random_array((60, 7), density=0.2, rng=rng, format="csr", dtype=np.float32)
    X.data[::5] = 0.0
    qid, y = rng.integers(0, 4, size=60), rng.integers(0, 2, size=60)
    y[qid == 3] = 1
    lists = ranking_lists(y, qid, get_loss("ap"), "exponential", None, None)
    parts = [X.toarray()[qid == q].astype(np.float64) for q in (0, 1, 2)]
    expected = sum(((part - part.mean(axis=0)) ** 2).sum() for part in parts) / sum(map(len, parts))
    for made in (X, X.tocsc(), X.astype(np.float64), X.toarray()):
        assert _variance(feature_map(made), lists) == pytest.approx(expected)


def _units(factor):
    X, y = overlapping()
    X = np.column_stack([X, X[:, ::-1]])
    X[:, 3] *= factor
    return X, y


@pytest.mark.parametrize("machine", [RankSVC(), RankSVCCV(cv=2, reaches=2, scales=1, init_Cs=2)])
@pytest.mark.parametrize(
    "make", [np.asarray, sparse.csr_array, lambda X: sparse.csr_array(np.pad(X, ((0, 0), (0, 50))))]
)
def test_features_that_drown_others(machine, make):
    X, y = _units(1000.0)
    with pytest.warns(UserWarning, match=r"1 of \d+ features, column 3 most of all, hold 100 % of the variance"):
        clone(machine).set_params(standardize=False, max_iter=3000).fit(make(X), y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clone(machine).set_params(standardize=False).fit(make(_units(5.0)[0]), y)
        # By itself it is seen to.
        clone(machine).fit(make(X), y)


@pytest.mark.parametrize(("n_large", "n_features"), [(1, 2), (2, 4)])
def test_half_of_the_features_drown_the_others(n_large, n_features):
    X, y = overlapping()
    X = X[:, :n_features] * np.where(np.arange(n_features) < n_large, 1e3, 1.0)
    with pytest.warns(UserWarning, match=f"{n_large} of {n_features} features"):
        RankSVC(standardize=False).fit(X, y)


def test_rare_categories_beside_scaled_features_are_no_other_unit():
    rng = np.random.default_rng(0)
    which = rng.integers(0, 1500, size=3000)
    categories = sparse.csr_array((np.ones(3000), (np.arange(3000), which)), shape=(3000, 1500))
    X = sparse.hstack([sparse.csr_array(rng.normal(size=(3000, 50))), categories], format="csr")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RankSVC(bound="tight").fit(X, rng.normal(size=3000) > 1)


def test_coordinates_in_the_space_of_the_rows_have_no_units():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2000)) + 30.0 * rng.normal(size=(60, 1)), np.arange(60) % 3 == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RankSVC(bound="tight").fit(X, y)


def test_given_coefficients_have_no_C_of_the_start():
    X, y = overlapping()
    for model in (RankSVC(bound="tight", init=np.ones(5)), RankSVCCV(bound="tight", init=np.ones(5), cv=2, reaches=1)):
        model.fit(X, y)
        assert not hasattr(model, "init_C_")
        assert not hasattr(model, "init_Cs_")


def test_the_start_is_returned_if_nothing_better_is_found():
    X, y = overlapping()
    model = RankSVC(bound="tight", reach=1e-9).fit(X, y)
    np.testing.assert_allclose(model.coef_, model.init_coef_, rtol=1e-6)
    # A perfect ranking far apart: the bound is 0 already.
    X = np.linspace(-1, 1, 30)[:, None]
    model = RankSVC(bound="tight", init=[1.0], scale=1e6).fit(X, X[:, 0] > 0.5)
    np.testing.assert_allclose(model.coef_, model.init_coef_, rtol=1e-12)
    assert model.objective_ == pytest.approx(0.0, abs=1e-9)


def test_warm_start_goes_on_from_the_last_coefficients():
    X, y = overlapping()
    model = RankSVC(bound="tight", reach=1.0, scale=10.0, warm_start=True).fit(X, y)
    first, n_iter = model.objective_, model.n_iter_
    model.fit(X, y)
    assert model.objective_ <= first * (1 + 1e-9)
    assert model.n_iter_ <= n_iter


@pytest.mark.parametrize(
    "container", [sparse.csr_array, sparse.csc_array, lambda X: X.astype(np.float32), np.asfortranarray]
)
def test_containers(container):
    X, y = overlapping()
    X = np.round(X, 2).astype(np.float32).astype(np.float64)
    expected = RankSVC(bound="tight", reach=0.5, scale=10.0).fit(X, y)
    model = RankSVC(bound="tight", reach=0.5, scale=10.0).fit(container(X), y)
    assert model.objective_ == pytest.approx(expected.objective_, rel=2e-3)


def test_labels_in_lockstep_with_a_mask():
    X, Y = multilabel(n=200)
    mask = np.random.default_rng(0).random(Y.shape) < 0.9
    model = RankSVC(bound="tight", reach=0.5, scale=10.0).fit(X, Y, mask=mask)
    assert model.coef_.shape == model.init_coef_.shape == (3, 4)
    assert model.C_.shape == model.scale_.shape == model.gap_.shape == (3,)
    for k in range(3):
        known = mask[:, k]
        assert model.objective_[k] == pytest.approx(value(model, X[known], Y[known, k], k), rel=1e-9)
        alone = RankSVC(bound="tight", reach=0.5, scale=10.0, init_C=model.init_C_[k], standardize=False)
        alone.fit(X[known] / model.feature_scale_, Y[known, k])
        assert model.objective_[k] == pytest.approx(alone.objective_, rel=1e-2)


def test_multiclass_predicts_as_well_as_its_start():
    X, y = multiclass(n=300)
    model = RankSVC(bound="tight").fit(X, y)
    assert np.mean(model.predict(X) == y) > 0.6
    assert model.scale_.shape == model.slope_.shape == (3,)


def test_a_label_without_positives():
    X, Y = multilabel(n=100)
    Y[:, 1] = 0
    with pytest.warns(UserWarning, match="no positive"):
        model = RankSVC(bound="tight").fit(X, Y)
    assert np.isnan(model.C_[1])
    assert model.status_[1] == "constant"
    assert not model.coef_[1].any()


def test_lists_with_grades():
    X, y, qid = graded(n_queries=12, size=15)
    model = SVMRanker(bound="tight", scale=3.0, reach=1.0).fit(X, y, qid=qid)
    expected = 0.0
    gains = [0.0, 1.0, 3.0]
    for query in np.unique(qid):
        rows = qid == query
        for level, weight in level_weights(y[rows].tolist(), gains):
            if not np.all(y[rows] >= level):
                expected += weight * tight_hinge(X[rows] @ model.coef_, y[rows] >= level, "ndcg").value / 12
    away = model.feature_scale_ * (model.coef_ - model.init_coef_)
    assert model.objective_ == pytest.approx(0.5 * away @ away + model.C_ * expected, rel=1e-9)
    within = np.concatenate(
        [X[qid == q] @ model.init_coef_ - (X[qid == q] @ model.init_coef_).mean() for q in set(qid)]
    )
    assert within.std() == pytest.approx(3.0)
    assert SVMRanker(bound="tight", init="convex").fit(X, y, qid=qid).gap_ <= 1e-3


def test_the_same_model_again():
    X, y = overlapping()
    first, second = (RankSVC(bound="tight", random_state=0).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.coef_, second.coef_)


def test_an_interrupt_leaves_a_usable_model():
    X, y = overlapping()
    model = RankSVC(bound="tight", reach=3.0, scale=10.0, verbose=1)
    calls = []

    def interrupt(self, **values):
        calls.append(values)
        if len(calls) == 4:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rankhinge.svm.fit.Progress.update", interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    assert model.status_ == "interrupted"
    assert model.objective_ == pytest.approx(value(model, X, y), rel=1e-9)
    assert model.predict(X).shape == y.shape


@pytest.mark.parametrize("reach", [3.0, "auto"])
@pytest.mark.parametrize("init", ["logistic", "convex"])
def test_an_interrupt_while_the_start_is_found_leaves_that(monkeypatch, init, reach):
    from rankhinge.objective import RankingObjective

    X, y = overlapping()
    model = RankSVC(bound="tight", reach=reach, scale=10.0, init=init)
    original, n_calls = RankingObjective.adjoint, iter(range(1, 10**6))

    def adjoint(self, coefficients):
        if next(n_calls) == 4:
            raise KeyboardInterrupt
        return original(self, coefficients)

    monkeypatch.setattr(RankingObjective, "adjoint", adjoint)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.status_ == "interrupted"
    assert model.objective_ == pytest.approx(value(model, X, y), rel=1e-9)
    assert (X @ model.init_coef_[0]).std() == pytest.approx(10.0)
    assert model.score(X, y) > 1.2 * y.mean()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "zero-one"}, "'zero-one' has none"),
        ({"init": np.ones(3)}, r"init has shape \(3,\), but there are 1 problems with 5 features"),
        ({"init": [1.0, np.nan, 1.0, 1.0, 1.0]}, r"init has nan at \(0, 1\)"),
        ({"scale": -1.0}, "The 'scale' parameter"),
        ({"init": "ridge"}, "The 'init' parameter"),
        ({"bound": "loose"}, "The 'bound' parameter"),
        ({"init_C": [1.0, 2.0]}, r"init_C has shape \(2,\), but there are 1 problems"),
    ],
)
def test_bad_parameters(options, message):
    X, y = overlapping()
    with pytest.raises(ValueError, match=message):
        RankSVC(**{"bound": "tight", **options}).fit(X, y)


def test_the_search_takes_the_best_of_its_grid():
    X, y = overlapping()
    model = RankSVCCV(bound="tight", reaches=3, scales=2, init_Cs=[0.01, 1.0], cv=3, random_state=0).fit(X, y)
    assert model.scores_.shape == (2, 3, 3)
    assert model.init_scores_.shape == (2, 3)
    assert model.scales_.shape == (2,)
    assert model.reaches_.shape == (3,)
    assert model.scale_ in model.scales_
    assert model.init_C_ in model.init_Cs_
    assert np.isclose(model.reach_, [*model.reaches_, 0.1 * model.reaches_[0]]).any()
    again = RankSVC(**model.best_params_).fit(X, y)
    assert model.objective_ == pytest.approx(again.objective_, rel=1e-9)


def test_the_search_refuses_a_start_of_another_shape():
    X, Y = multilabel(n=120)
    with pytest.raises(ValueError, match=r"init has shape \(4,\), but there are 3 problems with 4 features"):
        RankSVCCV(bound="tight", init=np.ones(X.shape[1]), cv=2).fit(X, Y)


def test_the_search_over_labels_and_over_queries():
    X, Y = multilabel(n=120)
    model = RankSVCCV(bound="tight", reaches=[0.3, 3.0], scales=[5.0, 20.0], cv=2, random_state=0).fit(X, Y)
    assert model.scores_.shape == (3, 2, 2, 2)
    assert model.C_.shape == model.scale_.shape == model.init_C_.shape == (3,)
    assert set(model.scale_) <= {5.0, 20.0}
    X, y, qid = graded(n_queries=12, size=10)
    options = {"bound": "tight", "reaches": 2, "scales": 1, "cv": 3, "random_state": 0}
    ranker = SVMRankerCV(init="logistic", init_Cs=[1.0, 10.0], **options).fit(X, y, qid=qid)
    assert ranker.scores_.shape == (1, 2, 3)
    assert ranker.init_ == "logistic"
    assert ranker.coef_.shape == ranker.init_coef_.shape == (3,)
    given = clone(ranker).set_params(init=[1.0, 0.0, 0.0]).fit(X, y, qid=qid)
    assert given.init_scores_.shape == (1, 3)
    assert not hasattr(given, "init_")


def test_the_bound_is_not_above_the_convex_one():
    X, y = overlapping()
    model = RankSVC(bound="tight").fit(X, y)
    scores = X @ model.coef_[0]
    assert tight_hinge(scores, y).value <= structured_hinge(scores, y)


def test_the_scale_is_the_weighted_mean_of_the_negatives_over_100():
    rng = np.random.default_rng(0)
    sizes = np.array([8, 20, 40])
    qid = np.repeat(np.arange(3), sizes)
    X, y = rng.normal(size=(68, 3)), np.arange(68) % 4 == 0
    negatives = np.array([np.sum(~y[qid == q]) for q in range(3)])
    for weights in ([1.0, 1.0, 1.0], [5.0, 1.0, 0.5]):
        model = SVMRanker("ap", bound="tight").fit(X, y, qid=qid, query_weight=dict(enumerate(weights)))
        assert model.scale_ == pytest.approx(0.01 * np.average(negatives, weights=weights))


def test_the_convex_start_has_a_C_of_100_by_default():
    X, y = overlapping()
    model = RankSVC(bound="tight", init="convex", tol=1e-6, standardize=False).fit(X, y)
    expected = RankSVC(C=100.0, tol=1e-6, bound="convex").fit(X, y).coef_
    np.testing.assert_allclose(
        model.init_coef_ / np.linalg.norm(model.init_coef_), expected / np.linalg.norm(expected), atol=1e-5
    )


@pytest.mark.parametrize("seed", [1, 3, 4])
@pytest.mark.parametrize("reach", [0.1, 10.0])
def test_a_warm_start_does_not_end_above_the_start(seed, reach):
    """However poor the coefficients are that it goes on from."""
    X, y = overlapping(seed, n=60)
    model = RankSVC(bound="tight", reach=reach, scale=10.0, warm_start=True).fit(X, 1 - y)
    model.fit(X, y)
    assert model.objective_ == pytest.approx(value(model, X, y), rel=1e-9)
    assert model.objective_ <= model.C_ * tight_hinge(X @ model.init_coef_[0], y).value * (1 + 1e-12)


@pytest.mark.parametrize("loss", ["ap", "auc"])
def test_a_huge_reach_is_certified(loss):
    X, y = overlapping()
    model = RankSVC(loss, bound="tight", reach=1e11, scale=10.0).fit(X, y)
    assert model.status_ == "converged"
    assert 0 <= model.gap_ <= model.tol
    assert model.dual_objective_ <= model.objective_
    assert model.gap_ == pytest.approx((model.objective_ - model.dual_objective_) / model.objective_)
    assert model.objective_ == pytest.approx(value(model, X, y), rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("d", [1, 2])
def test_what_rounding_leaves_of_a_slope_is_no_unit_of_C(seed, d):
    """With features 0 and 1 nearly all samples are tied, and their coefficients cancel."""
    rng = np.random.default_rng(seed)
    X = (rng.random((50, d)) < 0.5).astype(float)
    y = rng.random(50) < 0.4
    options = {"bound": "tight", "init": np.arange(1.0, d + 1), "scale": 1.0, "standardize": False}
    model = RankSVC(**options).fit(X, y)
    assert 0 < model.C_ < 1e6
    np.testing.assert_allclose(RankSVC(**options).fit(1e-8 * X, y).C_, 1e16 * model.C_, rtol=1e-9)


def test_a_start_that_ranks_perfectly_is_certified():
    X = np.linspace(-1, 1, 30)[:, None]
    model = RankSVC(bound="tight", init=[1.0], scale=1e6).fit(X, X[:, 0] > 0.5)
    assert (model.objective_, model.dual_objective_, model.gap_) == (0.0, 0.0, 0.0)
    assert model.status_ == "converged"


def test_the_lower_bound_is_not_above_the_objective():
    """The last convex problem may lead a little lower than it was certified from."""
    for seed in range(50, 70):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 3))
        y = X[:, 0] + rng.normal(size=60) > 0.5
        model = RankSVC(loss="rr", bound="tight", reach=1.0, scale=1.0).fit(X, y)
        assert model.dual_objective_ <= model.objective_
        assert model.history_["gap"][-1] == pytest.approx(model.gap_, abs=1e-9)


@pytest.mark.parametrize("hold", [sparse.csr_array, sparse.csc_array])
def test_entries_that_are_stored_in_pieces_count_once(hold):
    rng = np.random.default_rng(0)
    X = hold(rng.random((200, 6)).round())
    y = X.toarray()[:, 0] + rng.normal(size=200) > 1
    pieces = hold(
        (np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr),
        shape=X.shape,
    )
    model, judge = (RankSVC(bound="tight").fit(held, y) for held in (pieces, X))
    assert pieces.nnz == 2 * X.nnz
    assert model.init_C_ == pytest.approx(judge.init_C_, rel=1e-12)
    assert model.objective_ == pytest.approx(judge.objective_, rel=1e-6)


def test_who_waits_for_others_makes_no_iterations():
    X, y = overlapping()
    easy = X[:, 0] > np.quantile(X[:, 0], 0.7)
    options = {"bound": "tight", "reach": 3.0, "random_state": 0}
    alone = np.array([RankSVC(**options).fit(X, column).n_iter_ for column in (easy, y)])
    together = RankSVC(**options).fit(X, np.stack([easy, y], axis=1))
    # Phases of one length would make as many iterations of both.
    assert alone[1] < 0.7 * alone[0]
    np.testing.assert_allclose(together.n_iter_, alone, rtol=0.15)
    assert together.history_["primal"].shape[1] >= together.n_iter_.max()


@pytest.mark.parametrize("max_iter", [3, 7, 20, 40])
def test_nobody_goes_beyond_max_iter_while_others_go_on(max_iter):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, labels = rng.normal(size=(30, 4)), rng.random((30, 3)) < 0.4
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = RankSVC(bound="tight", reach=100.0, max_iter=max_iter).fit(X, labels)
        assert model.n_iter_.max() <= max_iter


def test_constant_features_are_said_to_be_constant():
    y = np.arange(30) % 3 == 0
    with pytest.warns(UserWarning, match="the same score: .* nothing to rank them by"):
        RankSVC(bound="tight").fit(np.ones((30, 2)), y)
    with pytest.warns(UserWarning, match="the same score: .* Choose another init"):
        RankSVC(bound="tight", init=np.zeros(5)).fit(overlapping(n=30)[0], y)
