"""The logistic start is scikit-learn's logistic regression, with an intercept for each list."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, sparse, special
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from rankhinge import RankSVC
from rankhinge.features import feature_map
from rankhinge.losses import get_loss
from rankhinge.objective import RankingObjective
from rankhinge.objective.logistic import _profiles
from rankhinge.problems import one_list
from rankhinge.problems.queries import ranking_lists
from rankhinge.svm.logistic import fit_logistic

from .helpers import binary, graded, level_weights, multilabel


def objective_of(X, relevant, masks=None):
    masks = [None] * len(relevant) if masks is None else masks
    lists = [one_list(row, mask) for row, mask in zip(relevant, masks)]
    return RankingObjective(feature_map(X), lists, get_loss("ap"))


@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
def test_it_is_that_of_scikit_learn(C):
    X, y = binary(n=200)
    coef, n_passes, _ = fit_logistic(objective_of(X, [y == 1]), np.array([C]))
    expected = LogisticRegression(C=C, tol=1e-10, max_iter=1000).fit(X, y).coef_[0]
    np.testing.assert_allclose(coef[:, 0], expected, rtol=0.02, atol=0.02 * np.abs(expected).max())
    assert n_passes > 2


def test_problems_with_masks_in_lockstep_on_sparse_features():
    X, Y = multilabel(n=150)
    X[np.abs(X) < 0.3] = 0.0
    masks = np.random.default_rng(0).random(Y.T.shape) < 0.8
    objective = objective_of(sparse.csr_array(X), list(np.ascontiguousarray(Y.T == 1)), list(masks))
    coef = fit_logistic(objective, np.array([0.1, 1.0, 10.0])).coef
    for k, C in enumerate((0.1, 1.0, 10.0)):
        expected = LogisticRegression(C=C, tol=1e-10).fit(X[masks[k]], Y[masks[k], k]).coef_[0]
        np.testing.assert_allclose(coef[:, k], expected, rtol=0.02, atol=0.02 * np.abs(expected).max())


@pytest.mark.parametrize("offset", [0.0, 30.0, -1e4])
def test_the_intercept_is_found_however_far_it_is(offset):
    # A feature with a large mean: the intercept has to make up for it.
    X, y = binary(n=100)
    coef = fit_logistic(objective_of(X + offset, [y == 1]), np.ones(1)).coef
    expected = fit_logistic(objective_of(X, [y == 1]), np.ones(1)).coef
    np.testing.assert_allclose(coef, expected, rtol=0.05, atol=0.02)


def test_separable_classes_have_an_optimum_all_the_same():
    X = np.linspace(-1, 1, 50)[:, None]
    coef = fit_logistic(objective_of(X, [X[:, 0] > 0.1]), np.array([10.0])).coef
    expected = LogisticRegression(C=10.0, tol=1e-10).fit(X, X[:, 0] > 0.1).coef_[0]
    np.testing.assert_allclose(coef[:, 0], expected, rtol=0.01)


def test_each_list_has_an_intercept_of_its_own():
    """As scikit-learn's with a column for each list, so large that its coefficient costs nothing."""
    X, y = binary(n=240)
    rng = np.random.default_rng(0)
    qid = rng.integers(0, 4, 240)
    # Lists of very different base rates, one of them with relevant samples only: it says nothing about the ranking.
    X = X + 3.0 * qid[:, None]
    y = np.where(qid == 3, 1, (y == 1) & (rng.random(240) < (0.2 + 0.4 * qid)))
    loss = get_loss("ap")
    lists = ranking_lists(y, qid, loss, "exponential", None, None)
    coef = fit_logistic(RankingObjective(feature_map(X), [lists], loss), np.array([0.3])).coef
    kept = qid < 3
    columns = 1e4 * (qid[kept, None] == np.arange(3))
    wide = np.hstack([X[kept], columns])
    judge = LogisticRegression(C=0.3, fit_intercept=False, solver="newton-cholesky", tol=1e-10).fit(wide, y[kept])
    expected = judge.coef_[0, : X.shape[1]]
    np.testing.assert_allclose(coef[:, 0], expected, rtol=0.02, atol=0.02 * np.abs(expected).max())


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_features_of_very_different_length_are_fitted_as_exactly(C):
    X, y = binary(n=200)
    X = X * [1.0, 10.0, 0.1, 3.0]
    coef = fit_logistic(objective_of(X, [y == 1]), np.array([C])).coef
    expected = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-12).fit(X, y).coef_[0]
    np.testing.assert_allclose(coef[:, 0], expected, atol=2e-3 * np.abs(expected).max())


@pytest.mark.parametrize("weighted", [False, True])
def test_lists_and_levels_have_the_weights_of_the_objective_times_the_number_of_lists(weighted):
    """As scikit-learn's with a row for each sample and level, and a column for each list and level."""
    X, y, qid = graded(n_queries=4, size=15)
    weight = np.array([1.0, 3.0, 0.5, 2.0] if weighted else [1.0] * 4)
    loss = get_loss("ndcg")
    lists = ranking_lists(y, qid, loss, "exponential", None, weight[qid] if weighted else None)
    coef = fit_logistic(RankingObjective(feature_map(X), [lists], loss), np.array([2.0])).coef
    rows, targets, weights, columns = [], [], [], []
    for q in range(4):
        mine = np.flatnonzero(qid == q)
        for level, omega in level_weights(y[mine].tolist(), [0, 1, 3]):
            rows += mine.tolist()
            targets += (y[mine] >= level).tolist()
            weights += [4 * weight[q] / weight.sum() * omega] * mine.size
            columns += [2 * q + level - 1] * mine.size
    wide = np.hstack([X[rows], 1e4 * (np.array(columns)[:, None] == np.arange(8))])
    judge = LogisticRegression(C=2.0, fit_intercept=False, solver="newton-cholesky", tol=1e-10)
    expected = judge.fit(wide, targets, sample_weight=weights).coef_[0, : X.shape[1]]
    np.testing.assert_allclose(coef[:, 0], expected, atol=2e-3 * np.abs(expected).max())


@pytest.mark.parametrize("shift", [0.0, 3.0, 40.0, 60.0, 100.0, 1000.0, -40.0, -1e6, 1e14])
@pytest.mark.parametrize("spread", [0.0, 1.0, 30.0])
@pytest.mark.parametrize("begin", [0.0, 7.0, -500.0])
def test_the_loss_at_the_best_intercept_wherever_it_is(shift, spread, begin):
    """Probabilities that are all 0 or all 1 as seen from the first intercept say nothing about how far to go."""
    rng = np.random.default_rng(0)
    relevant = np.arange(250) < 50
    scores = spread * (rng.normal(size=250) + 2.0 * relevant) + shift
    u, intercepts = np.zeros(250), np.array([begin])
    value = _profiles(scores, relevant, np.array([0, 250]), np.ones(1), intercepts, u)
    centred = scores - shift

    def excess(b):
        return special.expit(centred + b).sum() - 50

    best = optimize.brentq(excess, -1000.0, 1000.0, xtol=1e-12)
    margins = np.where(relevant, 1, -1) * (centred + best)
    rounding = 1e-12 * (1.0 + abs(shift)) * 250
    assert value == pytest.approx(np.logaddexp(0.0, -margins).sum(), rel=1e-6, abs=rounding)
    assert abs(u.sum()) <= 1e-6 + rounding


def test_a_regression_that_does_not_converge_says_so():
    X, y = load_wine(return_X_y=True)
    with (
        pytest.warns(UserWarning, match="column 12 most of all"),
        pytest.warns(ConvergenceWarning, match="the logistic regression, from which the fit starts, has not conv"),
    ):
        RankSVC(bound="tight", init_C=30.4, standardize=False).fit(X, y == 1)
