"""Losses of a block: by the book, subgradients, and convex parts."""

from __future__ import annotations

import numpy as np
import pytest

from rankhinge import structured_hinge
from rankhinge.metrics import average_precision, ndcg
from rankhinge.torch.layerwise.criteria import make_criterion
from tests.torch.layerwise.helpers import LOSSES


def block(n=25, n_outputs=4, seed=0):
    generator = np.random.default_rng(seed)
    return 3.0 * generator.normal(size=(n, n_outputs)), generator.integers(n_outputs, size=n)


def by_the_book(loss, scores, y):
    n, K = scores.shape
    if loss == "multiclass-hinge":
        return sum(max(float(k != y[i]) + scores[i, k] - scores[i, y[i]] for k in range(K)) for i in range(n)) / n
    classes = [k for k in range(K) if 0 < np.sum(y == k) < n]
    return np.mean([structured_hinge(scores[:, k], y == k, loss) for k in classes])


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("loss", [*LOSSES, "rr"])
def test_value(loss, seed):
    scores, y = block(seed=seed)
    criterion = make_criterion(loss, "auto")
    value, _ = criterion.evaluate(scores, criterion.prepare(y, *scores.shape))
    assert value == pytest.approx(by_the_book(loss, scores, y), rel=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_classes_that_do_not_occur(loss):
    scores, y = block()
    y = np.where(y == 2, 1, y)
    criterion = make_criterion(loss, "auto")
    targets = criterion.prepare(y, *scores.shape)
    value, slope = criterion.evaluate(scores, targets)
    assert value == pytest.approx(by_the_book(loss, scores, y), rel=1e-12)
    plus, minus = criterion.shifts(targets, 4)
    if loss != "multiclass-hinge":
        assert not slope[:, 2].any()
        assert not plus[:, 2].any()
        assert not minus[:, 2].any()


@pytest.mark.parametrize("loss", LOSSES)
def test_slope_is_a_subgradient(loss):
    scores, y = block()
    criterion = make_criterion(loss, "auto")
    targets = criterion.prepare(y, *scores.shape)
    value, slope = criterion.evaluate(scores, targets)
    generator = np.random.default_rng(1)
    for size in (1e-3, 0.1, 10.0):
        move = size * generator.normal(size=scores.shape)
        assert criterion.evaluate(scores + move, targets).value >= value + np.sum(slope * move) - 1e-12


@pytest.mark.parametrize("loss", [*LOSSES, "auc"])
def test_shifts_make_all_coefficients_non_negative(loss):
    criterion = make_criterion(loss, "auto")
    for seed in range(20):
        scores, y = block(seed=seed)
        targets = criterion.prepare(y, *scores.shape)
        _, slope = criterion.evaluate(10.0 ** (seed % 4 - 1) * scores, targets)
        plus, minus = criterion.shifts(targets, 4)
        assert min(plus.min(), minus.min()) >= 0
        assert (slope + plus).min() >= -1e-15
        assert (minus - slope).min() >= -1e-15


def test_shifts_of_a_ranking_by_the_formula():
    y = np.array([0, 0, 1, 2, 2, 2])
    criterion = make_criterion("ap", "auto")
    plus, minus = criterion.shifts(criterion.prepare(y, 6, 3), 3)
    np.testing.assert_allclose(plus[:, 0], np.where(y == 0, 2 / 2, 0) / 3)
    np.testing.assert_allclose(minus[:, 0], np.where(y != 0, 2 / 4, 0) / 3)


@pytest.mark.parametrize("method", ["greedy", "quicksort", "histogram"])
@pytest.mark.parametrize("loss", ["ap", "ndcg"])
def test_methods_agree(loss, method):
    scores, y = block(60)
    one, other = make_criterion(loss, "auto"), make_criterion(loss, method)
    targets = one.prepare(y, *scores.shape)
    assert other.evaluate(scores, targets).value == pytest.approx(one.evaluate(scores, targets).value, rel=1e-12)
    assert min(one.seconds, other.seconds) > 0


def test_metric():
    scores, y = block()
    relevant = y[:, None] == np.arange(4)
    for loss, metric in (("ap", average_precision), ("ndcg", ndcg)):
        expected = np.mean([metric(relevant[:, k], scores[:, k]) for k in range(4)])
        assert make_criterion(loss, "auto").metric(scores, relevant) == pytest.approx(expected, rel=1e-12)
    assert make_criterion("multiclass-hinge", "auto").metric(scores, y) == np.mean(scores.argmax(axis=1) == y)


def test_targets():
    criterion = make_criterion("ap", "auto")
    np.testing.assert_array_equal(criterion.prepare([1, 0], 2, 2), [[False, True], [True, False]])
    np.testing.assert_array_equal(criterion.prepare([1, 0], 2, 1), [[True], [False]])
    np.testing.assert_array_equal(criterion.prepare([[1, 1], [0, 1]], 2, 2), [[True, True], [False, True]])


@pytest.mark.parametrize(
    ("loss", "y", "n_outputs", "complaint"),
    [
        ("ap", [0, 1, 5], 3, r"y\[2\] is 5: with 3 outputs"),
        ("multiclass-hinge", [0, -1, 2], 3, r"y\[1\] is -1"),
        ("multiclass-hinge", [0, 0.5, 2], 3, r"y\[1\] is 0.5"),
        ("multiclass-hinge", [0, float("nan"), 2], 3, r"y\[1\] is nan"),
        ("multiclass-hinge", [0, 0, 0], 1, "needs an output for each class"),
        ("multiclass-hinge", [[0], [0], [0]], 2, r"shape \(3, 1\)"),
        ("ap", [0, 1], 3, r"shape \(2,\), but there are 3 samples"),
        ("ap", ["a", "b", "c"], 3, "class numbers"),
        ("ap", [[0, 1], [2, 0], [1, 1]], 2, r"y\[1, 0\] is 2"),
        ("ap", [0, 2, 1], 1, r"y\[1\] is 2"),
        ("ap", [[0, 1, 1]] * 3, 2, r"shape \(3, 3\)"),
    ],
)
def test_bad_targets(loss, y, n_outputs, complaint):
    with pytest.raises(ValueError, match=complaint):
        make_criterion(loss, "auto").prepare(np.array(y), 3, n_outputs)


@pytest.mark.parametrize(
    ("loss", "method", "complaint"),
    [
        ("nonsense", "auto", "multiclass-hinge"),
        ("zero-one", "auto", "ranks nothing"),
        ("ap", "nonsense", "unknown method 'nonsense'"),
        ("ndcg", "search", "'ap' only"),
        ("multiclass-hinge", "greedy", "method must be 'auto'"),
    ],
)
def test_bad_losses(loss, method, complaint):
    with pytest.raises(ValueError, match=complaint):
        make_criterion(loss, method)


@pytest.mark.parametrize("loss", LOSSES)
def test_scores_that_overflowed(loss):
    scores, y = block()
    scores[3, 1] = np.inf
    criterion = make_criterion(loss, "auto")
    with pytest.raises(ValueError, match="sample 3 of a block, output 1, is inf"):
        criterion.evaluate(scores, criterion.prepare(y, *scores.shape))
