"""Ranking of the difficult samples, with the easy ones kept by constraints."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from rankhinge import ApproximateRankSVC, RankSVC, structured_hinge
from rankhinge.features import feature_map
from rankhinge.objective import Scores
from rankhinge.papers.machines.easy_samples import EasySamples
from tests.convex_judge import quadratic_minimum
from tests.svm.helpers import LOSSES, all_planes, binary, multiclass, multilabel


def easy_of(model, X, y, k=0):
    """Which samples stay easy, from w₀ and the definition."""
    sign = np.where(y, 1, -1)
    margins = sign * (X @ model.binary_coef_[k])
    easy = np.zeros(y.size, bool)
    for label in (1, -1):
        mine = np.flatnonzero((sign == label) & (margins >= 1 - 1e-6))
        kept = mine[np.argsort(-margins[mine], kind="stable")][: round(model.keep_easy * mine.size)]
        easy[kept[:-1] if kept.size == np.sum(sign == label) else kept] = True
    return easy


@pytest.mark.parametrize("seed", range(8))
def test_the_last_bit_of_a_margin_does_not_decide(seed):
    """Support vectors of the binary SVM lie at margin 1, and products round otherwise in other containers."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 3))
    y = X[:, 0] + 0.7 * rng.normal(size=40) > 0
    options = {"C": 1000.0, "keep_easy": 1.0, "tol": 1e-8}
    models = [ApproximateRankSVC(**options).fit(Z, y) for Z in (X, np.asfortranarray(X), sparse.csr_array(X))]
    assert len({model.n_easy_ for model in models}) == 1
    np.testing.assert_allclose([model.objective_ for model in models], models[0].objective_, rtol=1e-5)


@pytest.mark.parametrize("keep_easy", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("C", [10.0, 1000.0])
def test_certificate_and_constraints(keep_easy, C):
    X, y = binary()
    model = ApproximateRankSVC(C=C, keep_easy=keep_easy).fit(X, y)
    easy = easy_of(model, X, y)
    w = model.coef_[0]
    assert (model.n_easy_, model.n_difficult_) == (easy.sum(), 60 - easy.sum())
    assert np.all((np.where(y, 1, -1) * (X @ w))[easy] >= 1 - 1e-5)
    hinge = structured_hinge(X[~easy] @ w, y[~easy] == 1)
    assert model.objective_ == pytest.approx(0.5 * w @ w + C * hinge, rel=1e-9)
    assert model.gap_ <= 1e-3
    assert model.status_ == "converged"


def test_without_easy_samples_it_is_the_whole_problem():
    X, y = binary()
    model = ApproximateRankSVC(C=50.0, keep_easy=0.0).fit(X, y)
    assert model.n_easy_ == 0
    assert model.objective_ == pytest.approx(RankSVC(C=50.0, bound="convex").fit(X, y).objective_, rel=2e-3)


def test_known_optimum():
    """The minimum over all rankings of the difficult samples and all constraints, by another solver."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(12, 2))
    y = np.arange(12) < 5
    X[y] += 1.2
    X[~y] -= 1.2
    X[0], X[6] = [-0.3, 0.2], [0.4, -0.1]
    C = 200.0
    model = ApproximateRankSVC(C=C, keep_easy=0.8, tol=1e-8).fit(X, y)
    easy = easy_of(model, X, y)
    assert 0 < easy.sum() < 12
    offsets, slopes = all_planes(X[~easy], y[~easy], LOSSES["ap"])
    lines = np.column_stack([-slopes, np.ones(offsets.size)])
    margins = np.column_stack([np.where(y, 1, -1)[easy, None] * X[easy], np.zeros(easy.sum())])
    expected = quadratic_minimum(
        [1.0, 1.0, 0.0], [0.0, 0.0, C], np.vstack([lines, margins]), np.append(offsets, np.ones(easy.sum()))
    )
    # The constraints hold within 1e-6, so the objective may lie a little below.
    assert model.objective_ == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("data", [multiclass, multilabel])
def test_many_problems(data):
    X, y = data()
    model = ApproximateRankSVC(C=100.0).fit(X, y)
    assert model.n_easy_.shape == model.n_difficult_.shape == (3,)
    assert (model.gap_ <= 1e-3).all()
    for k in range(3):
        easy = easy_of(model, X, (y == k) if y.ndim == 1 else y[:, k] == 1, k)
        assert model.n_easy_[k] == easy.sum()


def test_masked_samples_are_neither_easy_nor_difficult():
    X, Y = multilabel()
    mask = np.random.default_rng(0).random(Y.shape) < 0.8
    model = ApproximateRankSVC(C=100.0).fit(X, Y, mask=mask)
    np.testing.assert_array_equal(model.n_easy_ + model.n_difficult_, mask.sum(axis=0))


def test_of_a_class_that_is_all_easy_the_least_easy_sample_is_difficult():
    margins = np.array([3.0, 1.5, 2.0, 1.2, 5.0, 0.5, 4.0])
    relevant = np.array([True, True, True, False, False, False, True])
    known = np.array([True, True, True, True, True, True, False])
    signs = ApproximateRankSVC(keep_easy=1.0)._easy(margins, relevant, known)
    np.testing.assert_array_equal(signs, [1, 0, 1, -1, -1, 0, 0])


def test_a_constraint_holds_within_a_millionth():
    X = np.array([[1.0], [1.0 - 1e-3], [1.0 - 1e-7], [-1.0 + 1e-3], [-3.0], [0.0]])
    constraints = EasySamples(feature_map(X), np.array([[1, 1, 1, -1, -1, 0]], np.int8))
    (found,) = constraints.violated(np.ones((1, 1)), Scores(X.T, np.arange(1)), np.arange(1))
    assert sorted(found.names) == [1, 3]
    np.testing.assert_allclose(found.rows @ np.ones(1), 1 - 1e-3)
    np.testing.assert_array_equal(found.bounds, 1.0)


def test_constraints_that_bind_hold():
    X, y = binary(noise=0.3)
    model = ApproximateRankSVC(C=10.0, keep_easy=1.0).fit(X, y)
    easy = easy_of(model, X, y)
    assert (np.where(y, 1, -1) * (X @ model.coef_[0]))[easy].min() == pytest.approx(1.0, abs=1e-6)


def test_a_model_that_ranks_nothing_is_not_told_of_another_bound():
    X, y = binary()
    with pytest.warns(UserWarning, match="the coefficients are all 0, .* choose a larger C$"):
        ApproximateRankSVC(C=1e-300).fit(X, y)
    with pytest.warns(UserWarning, match="the coefficients are all 0, .* nothing to rank them by$"):
        ApproximateRankSVC().fit(np.zeros((40, 3)), np.arange(40) % 4 == 0)
