"""From a ranking to classes: thresholds, calibration, masks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import f1_score

from rankhinge import RankSVC, metrics
from rankhinge.svm.threshold import best_threshold, calibrate
from tests.svm.helpers import binary, multiclass, multilabel


def cuts(scores):
    """One threshold below, between and above all scores."""
    values = np.unique(scores)
    return np.concatenate([[values[0] - 1], (values[1:] + values[:-1]) / 2, [values[-1] + 1]])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("share", [0.05, 0.5])
def test_thresholds_are_optimal_on_the_training_data(seed, share):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 3))
    strength = X[:, 0] + 2 * rng.normal(size=80)
    y = (strength > np.quantile(strength, 1 - share)).astype(int)
    scores = X @ RankSVC(C=10.0, bound="convex").fit(X, y).coef_[0]

    by_f1 = RankSVC(C=10.0, threshold="f1", bound="convex").fit(X, y).predict(X)
    assert f1_score(y, by_f1) == pytest.approx(max(f1_score(y, scores >= cut) for cut in cuts(scores)), abs=1e-12)

    by_error = RankSVC(C=10.0, threshold="error", bound="convex").fit(X, y).predict(X)
    assert np.sum(by_error != y) == min(np.sum((scores >= cut) != y) for cut in cuts(scores))


@pytest.mark.parametrize("rule", ["f1", "error"])
def test_tied_scores_are_not_parted(rule):
    rng = np.random.default_rng(0)
    for _ in range(50):
        scores = rng.integers(0, 4, size=12).astype(float)
        relevant = rng.permutation(np.arange(12) < 4)
        cut = best_threshold(scores, relevant, rule)
        assert cut not in scores
        # Rounding must not change what is called relevant.
        blurred = scores * (1 + 1e-14 * rng.normal(size=12))
        assert best_threshold(blurred, relevant, rule) == pytest.approx(cut, abs=1e-9)
        if rule == "error":
            assert np.sum((scores >= cut) != relevant) == min(np.sum((scores >= c) != relevant) for c in cuts(scores))


def test_nothing_relevant_has_fewest_errors():
    scores, relevant = np.array([3.0, 2.0, 1.0, 0.0]), np.array([False, False, True, False])
    assert best_threshold(scores, relevant, "error") > 3.0
    assert 0.0 < best_threshold(scores, relevant, "f1") < 1.0


@pytest.mark.parametrize("threshold", [0, -1.5, 2.0])
def test_given_threshold(threshold):
    X, y = binary()
    model = RankSVC(threshold=threshold, bound="convex").fit(X, y)
    assert model.intercept_.tolist() == [-threshold]
    np.testing.assert_array_equal(model.predict(X), (X @ model.coef_[0] >= threshold).astype(int))


def test_decision_function_is_linear():
    X, y = binary()
    model = RankSVC(bound="convex").fit(X, y)
    assert model.coef_.shape == (1, 4)
    assert model.intercept_.shape == (1,)
    np.testing.assert_allclose(model.decision_function(X), X @ model.coef_[0] + model.intercept_[0], rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), model.classes_[(model.decision_function(X) >= 0).astype(int)])


@pytest.mark.parametrize("data", [binary, multilabel])
def test_ranking_does_not_depend_on_the_threshold(data):
    X, y = data()
    models = [RankSVC(threshold=threshold, bound="convex").fit(X, y) for threshold in ("f1", "error", 0.3)]
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)
        assert model.score(X, y) == pytest.approx(models[0].score(X, y), abs=1e-12)
        for ours, first in zip(
            np.atleast_2d(model.decision_function(X).T), np.atleast_2d(models[0].decision_function(X).T)
        ):
            np.testing.assert_allclose(np.diff(ours - first), 0.0, atol=1e-12)


def test_multiclass():
    X, y = multiclass()
    names = np.array(["red", "green", "blue"])[y]
    model = RankSVC(C=10.0, bound="convex").fit(X, names)
    scores = model.decision_function(X)
    assert model.classes_.tolist() == ["blue", "green", "red"]
    assert (model.slope_ > 0).all()
    np.testing.assert_allclose(scores, model.slope_ * (X @ model.coef_.T + model.intercept_), rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), model.classes_[np.argmax(scores, axis=1)])
    # Calibration leaves each class's own ranking alone.
    for k in range(3):
        np.testing.assert_array_equal(np.argsort(scores[:, k]), np.argsort(X @ model.coef_[k]))
    by_class = [metrics.average_precision(names == name, scores[:, k]) for k, name in enumerate(model.classes_)]
    assert model.score(X, names) == pytest.approx(np.mean(by_class), abs=1e-12)


def test_calibrated_scores_are_log_odds():
    """The smoothed likelihood is stationary at the calibration: mean and first moment of the probabilities match."""
    rng = np.random.default_rng(0)
    scores = 5 + 3 * rng.normal(size=200)
    relevant = rng.random(200) < 1 / (1 + np.exp(6 - scores))
    slope, offset = calibrate(scores, relevant)
    probability = 1 / (1 + np.exp(-(slope * scores + offset)))
    n = relevant.sum()
    target = np.where(relevant, (n + 1) / (n + 2), 1 / (200 - n + 2))
    assert probability.sum() == pytest.approx(target.sum(), rel=1e-6)
    assert probability @ scores == pytest.approx(target @ scores, rel=1e-6)


@pytest.mark.parametrize("scores", [np.zeros(10), np.arange(10.0), -np.arange(10.0), 1e6 * np.arange(10.0)])
def test_calibration_keeps_the_order(scores):
    """Constant, separated, reversed and large scores: a finite positive slope."""
    slope, offset = calibrate(scores, np.arange(10) > 6)
    assert np.isfinite([slope, offset]).all()
    assert slope > 0


@pytest.mark.parametrize("negative", [0, -1])
def test_masked_entries_do_not_matter(negative):
    X, Y = multilabel()
    Y = np.where(Y == 1, 1, negative)
    mask = np.random.default_rng(1).random(Y.shape) < 0.7
    expected = RankSVC(C=10.0, bound="convex").fit(X, Y, mask=mask)
    other = RankSVC(C=10.0, bound="convex").fit(X, np.where(mask, Y, -negative - 1), mask=mask)
    np.testing.assert_array_equal(other.coef_, expected.coef_)
    np.testing.assert_array_equal(other.intercept_, expected.intercept_)
    np.testing.assert_array_equal(other.objective_, expected.objective_)
    # Each label is the problem of its labelled rows.
    for k in range(3):
        rows = mask[:, k]
        alone = RankSVC(C=10.0, bound="convex").fit(X[rows], Y[rows, k])
        assert expected.objective_[k] == pytest.approx(alone.objective_, rel=2e-3)


def test_full_mask_is_no_mask():
    X, Y = multilabel()
    expected = RankSVC(bound="convex").fit(X, Y)
    for labels in (Y, 2 * Y - 1):
        model = RankSVC(bound="convex").fit(X, labels, mask=np.ones(Y.shape, bool))
        np.testing.assert_array_equal(model.coef_, expected.coef_)
        np.testing.assert_array_equal(model.predict(X), expected.predict(X))


def test_one_label_with_a_mask():
    X, y = binary()
    mask = np.arange(60)[:, None] % 3 > 0
    model = RankSVC(bound="convex").fit(X, y[:, None], mask=mask)
    expected = RankSVC(bound="convex").fit(X[mask[:, 0]], y[mask[:, 0]])
    assert model.objective_ == pytest.approx(expected.objective_, rel=2e-3)
    assert model.predict(X).shape == (60, 1)


@pytest.mark.parametrize("hold", [sparse.csr_matrix, sparse.csc_array])
def test_sparse_labels(hold):
    X, Y = multilabel()
    expected = RankSVC(bound="convex").fit(X, Y)
    model = RankSVC(bound="convex").fit(X, hold(Y))
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    assert model.score(X, hold(Y)) == expected.score(X, Y)


def test_multilabel():
    X, Y = multilabel()
    model = RankSVC(C=10.0, bound="convex").fit(X, Y)
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores, X @ model.coef_.T + model.intercept_, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), scores >= 0)
    macro = np.mean([metrics.average_precision(Y[:, k], scores[:, k]) for k in range(3)])
    assert model.score(X, Y) == pytest.approx(macro, abs=1e-12)


def test_labels_without_both_classes_do_not_count_in_the_score():
    X, Y = multilabel()
    model = RankSVC(bound="convex").fit(X, Y)
    blank = Y * [1, 0, 1]
    scores = model.decision_function(X)
    macro = np.mean([metrics.average_precision(Y[:, k], scores[:, k]) for k in (0, 2)])
    assert model.score(X, blank) == pytest.approx(macro, abs=1e-12)
    with pytest.warns(UserWarning, match="no label with both a positive and a negative sample: the score is nan"):
        assert np.isnan(model.score(X, np.zeros_like(Y)))


def test_zero_one_scores_by_accuracy():
    X, y = binary()
    model = RankSVC(loss="zero-one", threshold="error", bound="convex").fit(X, y)
    assert model.score(X, y) == np.mean(model.predict(X) == y)


def test_one_huge_score_does_not_merge_the_others():
    rng = np.random.default_rng(0)
    relevant = np.arange(300) < 60
    scores = rng.normal(size=300) + 2.0 * relevant
    alone = best_threshold(scores, relevant, "f1")
    together = best_threshold(np.append(scores, -1e10), np.append(relevant, False), "f1")
    assert together == pytest.approx(alone)


@pytest.mark.parametrize("rule", ["f1", "error"])
def test_thresholds_lie_midway_and_are_the_highest_of_the_best(rule):
    rng = np.random.default_rng(1)
    n_ties = n_beyond = 0
    for _ in range(200):
        scores = rng.integers(0, 8, size=10).astype(float)
        relevant = rng.permutation(np.arange(10) < rng.integers(1, 6))
        candidates = cuts(scores)[::-1]
        called = [scores >= cut for cut in candidates]
        if rule == "f1":
            quality = [2 * np.sum(mine & relevant) / (mine.sum() + relevant.sum()) for mine in called]
        else:
            quality = [np.sum(mine == relevant) for mine in called]
        expected = candidates[int(np.argmax(quality))]
        cut = best_threshold(scores, relevant, rule)
        if expected > scores.min():
            assert cut == pytest.approx(expected, abs=1e-12)
        else:
            assert cut < scores.min()
        n_ties += np.count_nonzero(np.array(quality) == max(quality)) > 1
        n_beyond += expected > scores.max() and quality.count(max(quality)) > 1
    assert n_ties > 10
    assert n_beyond > 10 or rule == "f1"


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e8])
def test_an_offset_of_the_features_does_not_blur_the_threshold(offset):
    X, y = binary(n=300)
    expected = f1_score(y, RankSVC(C=10.0, bound="convex").fit(X, y).predict(X))
    assert f1_score(y, RankSVC(C=10.0, bound="convex").fit(X + offset, y).predict(X + offset)) == pytest.approx(
        expected, abs=0.02
    )
