"""LatentRankSVC: what must hold of every fit."""

from __future__ import annotations

import tracemalloc
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankhinge import RankSVC, metrics
from rankhinge.latent import Bags, BagTransformer, LatentRankSVC, LatentStructuralSVC, LatentSVC
from tests.latent.helpers import bags_and_labels, multilabel_bags, outer_objective
from tests.svm.helpers import binary, multiclass, multilabel


@pytest.mark.parametrize("data", [binary, multiclass, multilabel])
@pytest.mark.parametrize("solver", ["bundle", "cutting-plane"])
def test_one_candidate_a_bag_is_rank_svc(data, solver):
    X, y = data()
    plain = RankSVC(C=30.0, solver=solver, bound="convex").fit(X, y)
    with pytest.warns(UserWarning, match="rows is a bag of one candidate"):
        latent = LatentRankSVC(C=30.0, solver=solver).fit(X, y)
    np.testing.assert_array_equal(latent.coef_, plain.coef_)
    # Sums in another order give scores that differ in their last bits, which Newton's method for the sigmoid enlarges.
    np.testing.assert_allclose(latent.intercept_, plain.intercept_, rtol=1e-8)
    np.testing.assert_allclose(latent.objective_, plain.objective_, rtol=1e-12)
    # Less what rounding may have added.
    np.testing.assert_allclose(latent.dual_objective_, plain.dual_objective_, rtol=1e-9)
    np.testing.assert_allclose(latent.decision_function(X), plain.decision_function(X), atol=1e-8)
    np.testing.assert_array_equal(latent.predict(X), plain.predict(X))
    assert latent.score(X, y) == plain.score(X, y)
    assert np.all(np.asarray(latent.n_outer_) == 1)
    assert not latent.predict_candidates(X).any()


@pytest.mark.parametrize("loss", ["ap", "ndcg", "rr", "auc"])
def test_all_chosen_is_rank_svc(loss):
    bags, y = bags_and_labels()
    chosen = np.random.default_rng(0).integers(0, bags.sizes)
    X = np.stack([bag[h] for bag, h in zip(bags, chosen, strict=True)])
    plain = RankSVC(loss, C=30.0, tol=1e-9, bound="convex").fit(X, y)
    latent = LatentRankSVC(loss, C=30.0, tol=1e-9).fit(bags, y, chosen=chosen)
    np.testing.assert_allclose(latent.coef_, plain.coef_, rtol=1e-4, atol=1e-5)
    assert latent.objective_ == pytest.approx(plain.objective_, rel=1e-8)
    # Prediction maximises even so.
    np.testing.assert_allclose(
        latent.decision_function(bags) - latent.intercept_, [(bag @ latent.coef_[0]).max() for bag in bags]
    )


@pytest.mark.parametrize("shrinking", [True, False])
@pytest.mark.parametrize("loss", ["ap", "ndcg"])
@pytest.mark.parametrize("seed", range(4))
def test_objective_never_rises_and_is_true(shrinking, loss, seed):
    bags, y = bags_and_labels(n=60, seed=seed, sizes=(1, 12), shift=1.5)
    model = LatentRankSVC(loss, C=200.0, shrinking=shrinking, init="random", random_state=seed).fit(bags, y)
    values = model.outer_history_["objective"]
    assert np.all(np.diff(values) <= 0)
    assert values.shape == (model.n_outer_,)
    assert model.objective_ == values[-1]
    assert model.objective_ == pytest.approx(outer_objective(model.coef_[0], bags, y, 200.0, loss), rel=1e-12)
    assert model.gap_ <= 1e-3
    assert model.status_ == "converged"
    # The structured hinge bounds the loss of the ranking.
    loss_value, bounds = model.outer_history_["loss"][-1], model.outer_history_["bound"]
    assert bounds[-1] == pytest.approx((model.objective_ - 0.5 * model.coef_[0] @ model.coef_[0]) / 200.0)
    assert np.all(model.outer_history_["loss"] >= 0)
    assert np.all(model.outer_history_["loss"] <= bounds + 1e-12)
    if loss == "ap":
        assert model.score(bags, y) == pytest.approx(1 - loss_value)


@pytest.mark.parametrize("seed", range(4))
def test_the_last_inner_problem_is_solved(seed):
    bags, y = bags_and_labels(n=60, seed=seed, sizes=(3, 12))
    models = [LatentRankSVC(C=20.0, shrinking=s, tol=1e-6).fit(bags, y) for s in (True, False)]
    for model in models:
        # With the candidates that it ended with, no fit of the inner problem is better than its bound.
        chosen = np.where(y == 1, model.chosen_, -1)
        again = LatentRankSVC(C=20.0, shrinking=False, tol=1e-6).fit(bags, y, chosen=chosen)
        assert again.objective_ >= model.dual_objective_ * (1 - 1e-9)
        assert again.objective_ <= model.objective_ * (1 + 1e-6)
        assert model.dual_objective_ <= model.objective_
        assert np.all(np.diff(model.history_["primal"]) <= 0)
        assert np.all(np.diff(model.history_["dual"]) >= 0)


def test_chosen_candidates_stay():
    bags, y = bags_and_labels(n=60, sizes=(2, 8))
    rng = np.random.default_rng(0)
    chosen = np.where(rng.random(60) < 0.5, rng.integers(0, bags.sizes), -1)
    model = LatentRankSVC(C=20.0).fit(bags, y, chosen=chosen)
    assert model.objective_ == pytest.approx(outer_objective(model.coef_[0], bags, y, 20.0, chosen=chosen), rel=1e-12)
    assert np.all(np.diff(model.outer_history_["objective"]) <= 0)


def test_finds_the_planted_candidate():
    bags, y = bags_and_labels(n=90, sizes=(4, 9), shift=6.0, seed=3)
    model = LatentRankSVC(C=100.0).fit(bags[:60], y[:60])
    test = bags[60:][y[60:] == 1]
    planted = [np.argmax(bag[:, 0]) for bag in test]
    assert np.mean(model.predict_candidates(test) == planted) > 0.8
    assert model.score(bags[60:], y[60:]) > 0.8


def test_the_same_for_the_same_seed():
    bags, y = bags_and_labels(n=60, sizes=(2, 9))
    models = [LatentRankSVC(C=10.0, n_starts=3, random_state=7).fit(bags, y) for _ in range(2)]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    assert models[0].n_products_ == models[1].n_products_


def test_more_starts_are_no_worse():
    bags, y = bags_and_labels(n=60, sizes=(4, 9), shift=1.0)
    values = [LatentRankSVC(C=10.0, n_starts=n, random_state=1).fit(bags, y).objective_ for n in (1, 2, 6)]
    assert np.all(np.diff(values) <= 0)


@pytest.mark.parametrize("init", ["mean", "first", "random"])
def test_starts(init):
    bags, y = bags_and_labels()
    model = LatentRankSVC(C=10.0, init=init).fit(bags, y)
    assert model.status_ == "converged"


def test_labels_in_lockstep_with_a_mask():
    bags, Y = multilabel_bags(n=60)
    mask = np.random.default_rng(0).random(Y.shape) < 0.8
    together = LatentRankSVC(C=20.0, tol=1e-5).fit(bags, Y, mask=mask)
    assert together.coef_.shape == (3, 4)
    assert np.all(np.diff(together.outer_history_["objective"]) <= 0)
    assert together.predict_candidates(bags).shape == (60, 3)
    for k in range(3):
        known = mask[:, k]
        F = outer_objective(together.coef_[k], bags[known], Y[known, k], 20.0)
        assert together.objective_[k] == pytest.approx(F, rel=1e-10)
    assert np.all(together.gap_ <= 1e-5)
    assert together.predict(bags).shape == Y.shape
    assert 0 <= together.score(bags, Y) <= 1


def test_label_without_positives():
    bags, Y = multilabel_bags()
    Y[:, 1] = 0
    with pytest.warns(UserWarning, match=r"labels \[1\] have no positive"):
        model = LatentRankSVC().fit(bags, Y)
    assert not model.coef_[1].any()
    assert model.status_[1] == "constant"
    assert not model.predict(bags)[:, 1].any()


def test_multiclass():
    bags, _ = multilabel_bags(n=60)
    y = np.array(["a", "b", "c"])[np.argmax([bag[:, :3].max(axis=0) for bag in bags], axis=1)]
    model = LatentRankSVC(C=10.0).fit(bags, y)
    assert set(model.predict(bags)) <= {"a", "b", "c"}
    assert model.decision_function(bags).shape == (60, 3)
    assert model.score(bags, y) > 1 / 3


@pytest.mark.parametrize("make", ["float32", "uint8", "sparse", "mapped", "shuffled", "list", "fortran"])
def test_containers(make, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, size=(300, 5)).astype(np.float64)
    ids = np.repeat(np.arange(60), 5)
    y = (np.arange(60) % 3 == 0).astype(int)
    X[ids % 3 == 0] += rng.integers(0, 2, size=(100, 1))
    expected = LatentRankSVC(C=5.0, tol=1e-6).fit(Bags(X, ids), y)
    if make == "mapped":
        np.save(tmp_path / "x.npy", X)
        bags = Bags(np.load(tmp_path / "x.npy", mmap_mode="r"), ids)
    elif make == "sparse":
        bags = Bags(sparse.csr_array(X), ids)
    elif make == "shuffled":
        order = np.concatenate([np.arange(0, 300, 2), np.arange(1, 300, 2)])
        bags = Bags(X[order], ids[order])
        y = y[bags.ids]
    elif make == "list":
        bags = [X[ids == b] for b in range(60)]
    else:
        bags = Bags(np.asfortranarray(X) if make == "fortran" else X.astype(make), ids)
    model = LatentRankSVC(C=5.0, tol=1e-6).fit(bags, y)
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-9)
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-9)
    best = np.array([(X[ids == b] @ expected.coef_[0]).max() for b in range(60)])
    np.testing.assert_allclose(model.decision_function(bags), best + expected.intercept_, atol=1e-9)


def test_ten_thousand_bags_of_one_candidate():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10_000, 3)), np.arange(10_000) % 50 == 0
    X[y] += 1
    model = LatentRankSVC(C=10.0).fit(Bags(X), y)
    assert model.status_ == "converged"


def test_one_bag_of_a_hundred_thousand():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_020, 3))
    offsets = np.concatenate([[0], np.arange(1, 21), [100_020]])
    y = np.arange(21) % 2 == 1
    for last in (0, 1):
        labels = y.copy()
        labels[-1] = last
        model = LatentRankSVC(C=10.0).fit(Bags(X, offsets=offsets), labels)
        assert model.status_ == "converged"
        assert np.all(np.diff(model.outer_history_["objective"]) <= 0)


def test_scikit_learn_tools():
    bags, y = bags_and_labels(n=60)
    assert cross_val_score(LatentRankSVC(C=10.0), bags, y, cv=3).shape == (3,)
    model = make_pipeline(BagTransformer(StandardScaler()), LatentRankSVC())
    search = GridSearchCV(model, {"latentranksvc__C": [1.0, 10.0]}, cv=3).fit(bags, y)
    assert 0 <= search.score(bags, y) <= 1
    with_chosen = GridSearchCV(LatentRankSVC(), {"C": [1.0, 10.0]}, cv=3).fit(bags, y, chosen=np.zeros(60, int))
    assert with_chosen.best_estimator_.score(bags, y) > 0
    scores = with_chosen.decision_function(bags)
    assert with_chosen.score(bags, y) == pytest.approx(metrics.average_precision(y, scores))


@pytest.mark.parametrize("seed", range(6))
def test_the_status_is_that_of_what_ended_the_fit(seed):
    """``max_iter`` only where so many iterations were made."""
    bags, y = bags_and_labels(n=30, seed=seed)
    for C, max_iter in ((0.1, 1000), (10.0, 1000), (1e4, 1000), (1e4, 2)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LatentRankSVC(C=C, max_iter=max_iter).fit(bags, y)
        assert (model.status_ == "max_iter") == (model.gap_ > model.tol and model.n_iter_ >= max_iter)
        assert (model.status_ == "converged") == (model.gap_ <= model.tol)


def test_max_outer_warns():
    bags, y = bags_and_labels(n=60, sizes=(4, 9), shift=1.0)
    with pytest.warns(ConvergenceWarning, match="max_outer = 1"):
        model = LatentRankSVC(C=10.0, max_outer=1).fit(bags, y)
    assert model.status_ == "max_outer"
    assert model.gap_ <= 1e-3
    with pytest.warns(ConvergenceWarning, match="max_outer = 1"):
        # The inner problem has its minimum at 0, where all candidates are alike: what lies beside is better, unproved.
        model = LatentRankSVC(C=10.0, max_outer=1, init="random").fit(bags, y)
    assert model.coef_.any()
    assert model.gap_ == np.inf
    with pytest.warns(ConvergenceWarning, match="relative gap"):
        LatentRankSVC(C=1e4, max_iter=1).fit(bags, y)


def test_warm_start_goes_on():
    bags, y = bags_and_labels(n=60, sizes=(4, 9), shift=1.0)
    model = LatentRankSVC(C=10.0, max_outer=1, init="random", warm_start=True)
    with pytest.warns(ConvergenceWarning):
        reached = model.fit(bags, y).objective_
    model.set_params(max_outer=50).fit(bags, y)
    assert model.outer_history_["objective"][0] <= reached
    assert model.status_ == "converged"
    again = model.fit(bags, y)
    assert again.n_outer_ <= 2


@pytest.mark.parametrize("k", [1, 2, 5, 20, 60])
def test_interrupt_leaves_a_model(monkeypatch, k):
    from rankhinge.latent.objective import LatentObjective

    bags, y = bags_and_labels(n=60, sizes=(4, 9), shift=1.0)
    original, n_calls = LatentObjective.evaluate, iter(range(1, 10**6))

    def evaluate(self, *arguments, **options):
        if next(n_calls) == k:
            raise KeyboardInterrupt
        return original(self, *arguments, **options)

    model = LatentRankSVC(C=50.0, tol=1e-5, warm_start=True)
    monkeypatch.setattr(LatentObjective, "evaluate", evaluate)
    with pytest.raises(KeyboardInterrupt):
        model.fit(bags, y)
    monkeypatch.undo()
    assert model.status_ == "interrupted"
    assert np.isfinite(model.decision_function(bags)).all()
    assert model.predict_candidates(bags).shape == (60,)
    reached = model.objective_
    model.fit(bags, y)
    assert model.status_ == "converged"
    assert model.outer_history_["objective"][0] <= reached * (1 + 1e-9)


def test_verbose(capsys):
    bags, y = bags_and_labels()
    LatentRankSVC(verbose=2, n_starts=2).fit(bags, y)
    text = capsys.readouterr().err
    assert "start 2" in text
    assert "round 1" in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.zeros(39)}, "40 bags, but y has 39"),
        ({"y": np.zeros(40)}, "one class only"),
        ({"y": np.full(40, np.nan)}, "NaN"),
        ({"chosen": np.zeros(39, int)}, r"chosen has shape \(39,\), but there are 40 bags"),
        ({"chosen": np.zeros(40)}, "must be integers"),
        ({"chosen": np.full(40, 9)}, r"chosen\[0\] is 9, but bag 0 has"),
        ({"chosen": np.full(40, -2)}, r"chosen\[0\] is -2"),
        ({"C": -1.0}, "C"),
        ({"C": [1.0, 2.0]}, "C has shape"),
        ({"n_starts": 0}, "n_starts"),
        ({"init": "best"}, "init"),
        ({"solver": "frank-wolfe"}, "solver"),
        ({"loss": "f1"}, "f1"),
        ({"mask": np.ones((40, 1), bool)}, "a mask goes with"),
    ],
)
def test_refuses(change, message):
    bags, y = bags_and_labels()
    arguments = {key: change.pop(key) for key in ("chosen", "mask") if key in change}
    y = change.pop("y", y)
    with pytest.raises(ValueError, match=message):
        LatentRankSVC(**change).fit(bags, y, **arguments)


def test_refuses_other_features():
    bags, y = bags_and_labels()
    model = LatentRankSVC()
    with pytest.raises(NotFittedError):
        model.predict(bags)
    model.fit(bags, y)
    with pytest.raises(ValueError, match="has 2 features, but LatentRankSVC is expecting 4"):
        model.predict(Bags(np.ones((3, 2))))
    with pytest.raises(ValueError, match="there are no bags"):
        model.predict(bags[:0])
    with pytest.raises(ValueError, match="40 bags, but y has 3"):
        model.score(bags, y[:3])
    with pytest.raises(ValueError, match="sample_weight"):
        model.score(bags, y, sample_weight=y)


@pytest.mark.parametrize("n_calls", [1, 2, 7, 30])
@pytest.mark.parametrize("shrinking", [True, False])
def test_a_callback_may_stop(n_calls, shrinking):
    from contextlib import contextmanager

    class Stopped(LatentRankSVC):
        @contextmanager
        def _callbacks(self, fitted=None, given=None):
            calls = iter(range(1, 10**6))
            yield lambda: next(calls) >= n_calls

    bags, Y = multilabel_bags(n=50)
    bags = Bags(
        np.repeat(bags.matrix, 5, axis=0) + np.arange(bags.n_candidates * 5)[:, None] % 5 / 9, offsets=5 * bags.offsets
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = Stopped(C=100.0, tol=1e-10, shrinking=shrinking).fit(bags, Y)
    assert "stopped" in model.status_
    assert np.isfinite(model.decision_function(bags)).all()
    assert np.all(np.diff(model.outer_history_["objective"]) <= 0)
    for k in range(3):
        F = outer_objective(model.coef_[k], bags, Y[:, k], 100.0)
        assert model.objective_[k] == pytest.approx(F, rel=1e-9)


def test_a_mapped_matrix_is_not_copied(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 100)).astype(np.float32)
    y = np.arange(400) % 8 == 0
    X[np.flatnonzero(y) * 100 + 7, 0] += 8
    np.save(tmp_path / "x.npy", X)
    bags = Bags(np.load(tmp_path / "x.npy", mmap_mode="r"), offsets=np.arange(0, 40_001, 100))
    LatentRankSVC(C=1.0, tol=0.1).fit(bags[:50], y[:50])
    tracemalloc.start()
    model = LatentRankSVC(C=1.0).fit(bags, y)
    model.decision_function(bags)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < X.nbytes / 2


def test_names_of_features():
    pandas = pytest.importorskip("pandas")
    bags, y = bags_and_labels()
    frames = [pandas.DataFrame(bag, columns=list("abcd")) for bag in bags]
    model = LatentRankSVC().fit(frames, y)
    assert model.feature_names_in_.tolist() == list("abcd")
    expected = LatentRankSVC().fit(bags, y).decision_function(bags)
    np.testing.assert_allclose(model.decision_function(frames), expected, atol=1e-12)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict([frame[list("dcba")] for frame in frames])
    with pytest.warns(UserWarning, match="X does not have valid feature names, but LatentRankSVC was fitted with"):
        model.predict(bags)
    with pytest.warns(UserWarning, match="X has feature names, but LatentRankSVC was fitted without"):
        LatentRankSVC().fit(bags, y).predict(frames)
    assert not hasattr(model.fit(bags, y), "feature_names_in_")


def test_score_by_labelled_entries():
    bags, Y = multilabel_bags(n=60)
    mask = np.random.default_rng(0).random(Y.shape) < 0.7
    shown = np.where(mask, Y, 1 - Y)
    model = LatentRankSVC(C=10.0).fit(bags, shown, mask=mask)
    scores = model.decision_function(bags)
    expected = [metrics.average_precision(Y[on, k], scores[on, k]) for k, on in enumerate(mask.T)]
    assert model.score(bags, shown, mask=mask) == pytest.approx(np.mean(expected))
    assert model.score(bags, shown) != pytest.approx(np.mean(expected))


@pytest.mark.parametrize("y", [None, 3])
def test_score_without_labels(y):
    bags, labels = bags_and_labels()
    with pytest.raises(ValueError, match="there are 40 bags, but y has no labels"):
        LatentRankSVC().fit(bags, labels).score(bags, y)


@pytest.mark.parametrize("call", ["fit", "predict"])
def test_no_bags(call):
    bags, y = bags_and_labels()
    model = LatentRankSVC().fit(bags, y)
    with pytest.raises(ValueError, match="there are no bags"):
        model.fit([], []) if call == "fit" else model.predict([])


def test_scores_of_the_model_so_far():
    """`ScoringMonitor` gets models that can be asked."""
    monitors = pytest.importorskip("sklearn.callback")
    if not hasattr(monitors, "ScoringMonitor"):
        pytest.skip("this scikit-learn has no ScoringMonitor")
    bags, y = bags_and_labels(n=60, shift=1.0)
    seen = []

    def score(estimator, X, y):
        seen.append(estimator.score(X, y))
        return {"mine": seen[-1]}

    model = LatentRankSVC(C=100.0).set_callbacks(monitors.ScoringMonitor(scoring=score)).fit(bags, y)
    alone = LatentRankSVC(C=100.0).fit(bags, y)
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    assert len(seen) > 5
    assert seen[-1] >= 0.9 * model.score(bags, y)


@pytest.mark.parametrize("machine", [LatentRankSVC, LatentSVC, LatentStructuralSVC])
def test_a_model_that_ranks_nothing_says_so(machine):
    X, y = np.zeros((40, 3)), np.arange(40) % 4 == 0
    with pytest.warns(
        UserWarning, match="the coefficients are all 0, .* a larger C; if that does not help, another loss"
    ):
        model = machine().fit([row[None] for row in X], y)
    assert not model.coef_.any()


def test_masked_choices_are_refused():
    bags, y = bags_and_labels()
    chosen = np.ma.masked_array(np.zeros(len(bags), int), mask=np.arange(len(bags)) == 0)
    with pytest.raises(ValueError, match="masked"):
        LatentRankSVC().fit(bags, y, chosen=chosen)


@pytest.mark.parametrize("shrinking", [True, False])
def test_no_fit_ends_above_the_value_at_zero(shrinking):
    rng = np.random.default_rng(11)
    X, y = list(rng.normal(size=(20, 10, 3))), np.arange(20) % 4 == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LatentSVC(C=100.0, max_iter=2, max_outer=1, shrinking=shrinking).fit(X, y)
    assert model.objective_ <= 100.0 * (1 + 1e-12)


@pytest.mark.parametrize("shrinking", [True, False])
def test_a_fit_that_ends_at_zero_is_exactly_there(shrinking):
    rng = np.random.default_rng(54)
    n, d = int(rng.integers(6, 40)), int(rng.integers(1, 4))
    X, y = [rng.normal(size=(rng.integers(4, 25), d)) for _ in range(n)], np.arange(n) % 3 == 0
    with pytest.warns(UserWarning, match="the coefficients are all 0"):
        model = LatentRankSVC(C=100.0, init="first", shrinking=shrinking).fit(X, y)
    assert not model.coef_.any()
