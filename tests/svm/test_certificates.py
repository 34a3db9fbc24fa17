"""What a fit proves: the objective by hand, the gap, the history, the bound on the metric."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from rankhinge import ApproximateRankSVC, RankSVC, RankSVCCV, SVMRanker, metrics, rank_svm_path, structured_hinge
from rankhinge.features import feature_map
from rankhinge.losses import SoftNDCG
from rankhinge.objective import reductions
from tests.svm.helpers import LOSSES, binary, graded, hinge_of_grades, multiclass, multilabel

SOLVERS = ["bundle", "quasi-newton", "cutting-plane", "frank-wolfe", "subgradient"]


def check_certificate(model, K=None):
    tol = model.tol
    assert np.all(model.gap_ <= tol)
    assert np.all(model.dual_objective_ <= model.objective_)
    np.testing.assert_allclose(model.gap_, (model.objective_ - model.dual_objective_) / model.objective_, atol=1e-12)
    assert np.all(np.asarray(model.status_) == "converged")
    history = model.history_
    assert set(history) >= {"primal", "dual", "gap", "time", "passes"}
    assert {values.shape for values in history.values()} == {(*(() if K is None else (K,)), np.max(model.n_iter_))}
    assert np.all(np.diff(history["primal"]) <= 0)
    assert np.all(np.diff(history["dual"]) >= 0)
    assert np.all(np.diff(history["time"]) >= 0)
    # The history is what the solver saw; the last word comes from the coefficients, and counts rounding.
    np.testing.assert_allclose(history["primal"][..., -1], model.objective_, rtol=1e-9)
    np.testing.assert_allclose(history["dual"][..., -1], model.dual_objective_, rtol=1e-7)
    assert isinstance(model.n_passes_, int)
    assert model.n_passes_ >= np.max(model.n_iter_)


@pytest.mark.parametrize("loss", [*LOSSES, "rbp", "zero-one"])
@pytest.mark.parametrize("C", [1.0, 300.0])
def test_objective_by_hand(loss, C):
    X, y = binary()
    model = RankSVC(loss=loss, C=C, bound="convex").fit(X, y)
    check_certificate(model)
    w = model.coef_[0]
    assert model.objective_ == pytest.approx(0.5 * w @ w + C * structured_hinge(X @ w, y == 1, loss), rel=1e-9)
    assert isinstance(model.objective_, float)
    assert isinstance(model.n_iter_, int)
    assert isinstance(model.status_, str)


def test_one_certificate_a_class():
    X, y = multiclass()
    C = np.array([1.0, 10.0, 100.0])
    model = RankSVC(C=C, bound="convex").fit(X, y)
    check_certificate(model, K=3)
    for k, w in enumerate(model.coef_):
        assert model.objective_[k] == pytest.approx(0.5 * w @ w + C[k] * structured_hinge(X @ w, y == k), rel=1e-9)


@pytest.mark.parametrize(("gains", "table"), [("exponential", [0, 1, 3]), ("linear", [0, 1, 2]), ([0, 5, 6],) * 2])
@pytest.mark.parametrize("weighted", [False, True])
def test_graded_objective_by_hand(gains, table, weighted):
    X, y, qid = graded()
    weights = dict(enumerate([1.0, 0.0, 2.0, 3.0, 1.0, 0.5])) if weighted else None
    model = SVMRanker(C=50.0, gains=gains, bound="convex").fit(X, y, qid=qid, query_weight=weights)
    check_certificate(model)
    w = model.coef_
    expected = 0.5 * w @ w + 50.0 * hinge_of_grades(X @ w, y, qid, table, weights)
    assert model.objective_ == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("gains", "table"), [("exponential", [0, 1, 3]), ("linear", [0, 1, 2]), ([0, 5, 6],) * 2])
def test_hinge_bounds_the_loss_of_graded_ndcg(gains, table):
    X, y, qid = graded(seed=1)
    fitted = SVMRanker(C=50.0, gains=gains, bound="convex").fit(X, y, qid=qid).coef_
    for w in [fitted, -fitted, np.zeros(3), *np.random.default_rng(0).normal(size=(5, 3))]:
        value = metrics.ndcg(y, X @ w, qid=qid, gains=gains, ties="worst")
        assert hinge_of_grades(X @ w, y, qid, table) >= 1 - value - 1e-12


@pytest.mark.parametrize(("loss", "metric"), [("ap", "average_precision"), ("ndcg", "ndcg"), ("rr", "reciprocal_rank")])
def test_hinge_bounds_the_loss(loss, metric):
    X, y = binary(noise=2.0)
    model = RankSVC(loss=loss, C=10.0, bound="convex").fit(X, y)
    w = model.coef_[0]
    hinge = (model.objective_ - 0.5 * w @ w) / 10.0
    assert hinge >= 1 - getattr(metrics, metric)(y, X @ w) - 1e-12
    assert model.score(X, y) == pytest.approx(getattr(metrics, metric)(y, X @ w), abs=1e-12)


@pytest.mark.parametrize("loss", ["ap", "ndcg", "zero-one"])
def test_solvers_meet_on_one_list(loss):
    X, y = binary(n=40, d=3)
    options = {"bound": "convex", "loss": loss, "C": 2.0, "max_iter": 20000, "random_state": 0}
    models = [RankSVC(solver=solver, **options).fit(X, y) for solver in SOLVERS]
    best = min(model.objective_ for model in models)
    for model in models:
        check_certificate(model)
        assert model.objective_ <= best * (1 + 1e-3)


@pytest.mark.parametrize("C", [1.0, 1e3, 1e5])
def test_larger_problem(C):
    X, y = binary(n=3000, d=60, noise=3.0)
    model = RankSVC(C=C, bound="convex").fit(X, y)
    check_certificate(model)
    w = model.coef_[0]
    assert model.objective_ == pytest.approx(0.5 * w @ w + C * structured_hinge(X @ w, y == 1), rel=1e-9)


@pytest.mark.parametrize("solver", ["bundle", "cutting-plane"])
@pytest.mark.parametrize("data", [binary, multiclass])
def test_passes_are_counted(monkeypatch, solver, data):
    """Each ``X @ W`` and each ``Xᵀ U`` is one pass, however many problems share it."""
    X, y = data()
    passes = []
    kind = type(feature_map(X))
    # The last look at X is a pass of its own kind.
    for home, name in ((kind, "scores"), (kind, "adjoint"), (reductions, "audit")):
        original = getattr(home, name)
        monkeypatch.setattr(home, name, lambda *a, original=original: passes.append(1) or original(*a))
    model = RankSVC(C=100.0, solver=solver, bound="convex").fit(X, y)
    assert model.n_passes_ == len(passes)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("loss", ["ap", "ndcg"])
def test_solvers_meet_on_many_lists(loss):
    X, y, qid = graded(n_queries=8, n_grades=2)
    reference = SVMRanker(loss=loss, C=2.0, tol=1e-6, bound="convex").fit(X, y, qid=qid).objective_
    for solver in SOLVERS:
        model = SVMRanker(loss=loss, C=2.0, solver=solver, max_iter=3000, random_state=0, bound="convex").fit(
            X, y, qid=qid
        )
        assert reference * (1 - 1e-6) <= model.objective_ <= reference * (1 + 1e-3), solver


def test_optimality_conditions():
    """At the optimum ``-w / C`` is a subgradient of J: no direction descends."""
    X, y = binary(n=30, d=3)
    model = RankSVC(C=5.0, tol=1e-10, bound="convex").fit(X, y)
    w = model.coef_[0]

    def value(v):
        return 0.5 * v @ v + 5.0 * structured_hinge(X @ v, y == 1)

    for direction in np.random.default_rng(0).normal(size=(50, 3)):
        for step in (1e-4, 1e-2, 1.0):
            assert value(w + step * direction) >= model.dual_objective_


@pytest.mark.parametrize(
    "fit",
    [
        lambda: RankSVC(C=1e4, max_iter=2, tol=1e-6, bound="convex").fit(*binary(noise=2.0)),
        lambda: RankSVC(C=1e4, max_iter=2, tol=1e-6, bound="convex").fit(*multilabel()),
        lambda: SVMRanker(C=1e4, max_iter=2, tol=1e-6, bound="convex").fit(*graded()),
    ],
)
def test_not_converged_warns_with_the_gap(fit):
    with pytest.warns(ConvergenceWarning, match="after 2 iterations with a relative gap of") as caught:
        model = fit()
    assert f"{np.max(model.gap_):.3g}" in str(caught[0].message)
    assert "max_iter" in np.atleast_1d(model.status_)
    assert np.isfinite(model.coef_).all()


def test_separable_features_and_no_features_that_matter():
    X, y = binary(noise=0.0)
    check_certificate(RankSVC(C=1e4, bound="convex").fit(X, y))
    with pytest.warns(UserWarning, match="the coefficients are all 0, .* there is nothing to rank them by"):
        constant = RankSVC(bound="convex").fit(np.ones((6, 2)), [0, 1, 0, 1, 0, 0])
    np.testing.assert_array_equal(constant.coef_, 0.0)
    assert constant.objective_ == structured_hinge(np.zeros(6), np.array([0, 1, 0, 1, 0, 0]))


def test_a_gap_just_above_the_tolerance_warns():
    X, y = binary(noise=2.0)
    gaps = RankSVC(C=1e3, tol=1e-9, solver="cutting-plane", bound="convex").fit(X, y).history_["gap"]
    n_iter = int(np.flatnonzero(gaps < 0.1)[0]) + 1
    gap = gaps[n_iter - 1]
    options = {"bound": "convex", "C": 1e3, "solver": "cutting-plane", "max_iter": n_iter}
    with pytest.warns(ConvergenceWarning, match=f"relative gap of {gap:.3g} > tol"):
        RankSVC(tol=gap / 1.5, **options).fit(X, y)
    assert RankSVC(tol=gap * 1.5, **options).fit(X, y).status_ == "converged"


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("data", [binary, multiclass])
def test_small_features_are_ranked_all_the_same(solver, data):
    """The minimum is next to 0, and at 0 itself all scores are equal."""
    X, y = data(n=150)
    model = RankSVC(solver=solver, bound="convex").fit(1e-5 * X, y)
    assert model.coef_.any(axis=1).all()
    assert np.all(np.asarray(model.status_) == "converged")
    assert model.score(1e-5 * X, y) == pytest.approx(
        RankSVC(solver=solver, bound="convex").fit(X, y).score(X, y), abs=0.02
    )


@pytest.mark.parametrize("solver", SOLVERS[:2])
@pytest.mark.parametrize("seed", [153, 154, 155, 156])
def test_columns_of_different_size_do_not_blur_the_objective(solver, seed):
    """Scores are kept from round to round: what is made of others must not add up their errors."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(170, 8))
    t = X.sum(axis=1) / np.sqrt(8) + 0.1 * rng.normal(size=170)
    y, X = t > np.quantile(t, 0.7), X * np.logspace(0, 3, 8)
    model = RankSVC(C=3e5, solver=solver, bound="convex").fit(X, y)
    check_certificate(model)
    w = model.coef_[0]
    assert model.objective_ == pytest.approx(0.5 * w @ w + 3e5 * structured_hinge(X @ w, y), rel=1e-9)


def messages_of(model, X, y):
    """What a fit warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert {warning.category for warning in caught} <= {ConvergenceWarning}
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize(
    ("model", "stage"),
    [
        (ApproximateRankSVC(C=1e4, max_iter=2), "the binary SVM, which finds the easy samples, ended"),
        (RankSVC(bound="tight", init="convex", init_C=1e4, max_iter=2), "the start ended"),
        (
            RankSVCCV(Cs=[1e3, 1e4], cv=2, max_iter=2, random_state=0, bound="convex"),
            "of the 4 fits of the search 4 ended",
        ),
        (
            RankSVCCV(reaches=1, bound="tight", init="convex", cv=2, max_iter=2, random_state=0),
            "of the 24 fits of the search 24 ended",
        ),
    ],
)
def test_an_earlier_stage_that_does_not_converge_is_told(model, stage):
    X, y = binary(n=300, d=6)
    told = messages_of(model, X, y)
    assert any(message.startswith(stage) and "a relative gap above tol, up to" in message for message in told)
    assert messages_of(model.set_params(max_iter=1000), X, y) == []


def test_more_iterations_are_advised_only_where_they_help():
    X, y = binary()
    (told,) = messages_of(RankSVC(C=100.0, max_iter=1, bound="convex"), X, y)
    assert "Increase max_iter, lower C, or scale the features" in told
    # Beside such an offset little is left of the differences.
    model = RankSVC(C=100.0, tol=1e-17, bound="convex")
    (told,) = messages_of(model, X + 1e4, y)
    assert model.status_ == "stalled"
    assert "Lower C, or scale the features" in told


@pytest.mark.parametrize(("unit", "C"), [(1e6, 1e-4), (1e7, 1e-4), (1e9, 1e-2)])
@pytest.mark.parametrize("seed", range(3))
def test_a_start_that_is_far_away_does_not_blur_the_objective(unit, C, seed):
    """Weights of features in another unit: on the way back their squares are larger by many orders of magnitude."""
    X, y = binary(n=400, seed=seed)
    model = RankSVC(C=1e3 * unit**2, warm_start=True, bound="convex").fit(X / unit, y)
    assert np.linalg.norm(model.coef_) > 0.1 * unit
    model.set_params(C=C).fit(X, y)
    w = model.coef_[0]
    assert model.objective_ == pytest.approx(0.5 * w @ w + C * structured_hinge(X @ w, y, "ap"), rel=1e-5)
    assert model.dual_objective_ <= RankSVC(C=C, tol=1e-9, bound="convex").fit(X, y).objective_ * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_the_bound_is_not_above_what_it_bounds(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 3))
    y = X[:, 0] + rng.normal(size=30) > 0
    model = RankSVC("auc", 1.0, solver="cutting-plane", tol=1e-9, bound="convex").fit(X, y)
    assert model.dual_objective_ <= model.objective_
    assert np.all(model.history_["dual"] <= model.objective_ * (1 + 1e-12))
    assert np.all(np.diff(model.history_["dual"]) >= 0)


@pytest.mark.parametrize("size", [1e-9, 1e-150])
def test_features_that_are_too_small_for_C_are_not_called_hopeless(size):
    X, y = binary(n=100)
    with pytest.warns(UserWarning, match="all 0, .* Scale the features, choose bound='tight', or choose a larger C$"):
        RankSVC(bound="convex").fit(size * X, y)
    with pytest.warns(UserWarning, match="all 0, .* Scale the features, or choose a larger C$"):
        path = rank_svm_path(size * X, y, [0.1, 1.0])
    assert not path.coefs.any()
    if size == 1e-9:
        larger = RankSVC(C=1e20, bound="convex").fit(size * X, y)
        assert larger.objective_ < 0.9 * 1e20


def test_a_path_over_constant_features_says_so():
    with pytest.warns(UserWarning, match="there is nothing to rank them by"):
        rank_svm_path(np.ones((20, 2)), np.arange(20) % 2, [1.0, 10.0])


@pytest.mark.parametrize(("loss", "C"), [("rbp", 1e6), (SoftNDCG(10), 1.0), (SoftNDCG(10), 1e6)], ids=str)
def test_a_bound_that_is_trivial_whatever_C_is(loss, C):
    X, y = binary(n=800, noise=2.0)
    with pytest.warns(UserWarning, match="minimum there whatever C is. Choose bound='tight'"):
        model = RankSVC(loss, C=C, bound="convex").fit(X, y)
    assert model.objective_ == pytest.approx(C)
    tight = RankSVC(loss, bound="tight").fit(X, y)
    assert tight.coef_.any()
