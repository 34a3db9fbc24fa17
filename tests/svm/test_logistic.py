"""The logistic start is scikit-learn's logistic regression, with an intercept for each list."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from rankhinge.features import feature_map
from rankhinge.losses import get_loss
from rankhinge.objective import RankingObjective, one_list
from rankhinge.svm.logistic import fit_logistic
from rankhinge.svm.ranker import ranking_lists

from .helpers import binary, multilabel


def objective_of(X, relevant, masks=None):
    masks = [None] * len(relevant) if masks is None else masks
    lists = [one_list(row, mask) for row, mask in zip(relevant, masks)]
    return RankingObjective(feature_map(X), lists, get_loss("ap"))


@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])
def test_it_is_that_of_scikit_learn(C):
    X, y = binary(n=200)
    coef, n_passes = fit_logistic(objective_of(X, [y == 1]), np.array([C]))
    expected = LogisticRegression(C=C, tol=1e-10, max_iter=1000).fit(X, y).coef_[0]
    np.testing.assert_allclose(coef[:, 0], expected, rtol=0.02, atol=0.02 * np.abs(expected).max())
    assert n_passes > 2


def test_problems_with_masks_in_lockstep_on_sparse_features():
    X, Y = multilabel(n=150)
    X[np.abs(X) < 0.3] = 0.0
    masks = np.random.default_rng(0).random(Y.T.shape) < 0.8
    objective = objective_of(sparse.csr_array(X), list(np.ascontiguousarray(Y.T == 1)), list(masks))
    coef, _ = fit_logistic(objective, np.array([0.1, 1.0, 10.0]))
    for k, C in enumerate((0.1, 1.0, 10.0)):
        expected = LogisticRegression(C=C, tol=1e-10).fit(X[masks[k]], Y[masks[k], k]).coef_[0]
        np.testing.assert_allclose(coef[:, k], expected, rtol=0.02, atol=0.02 * np.abs(expected).max())


@pytest.mark.parametrize("offset", [0.0, 30.0, -1e4])
def test_the_intercept_is_found_however_far_it_is(offset):
    # A feature with a large mean: the intercept has to make up for it.
    X, y = binary(n=100)
    coef, _ = fit_logistic(objective_of(X + offset, [y == 1]), np.ones(1))
    expected, _ = fit_logistic(objective_of(X, [y == 1]), np.ones(1))
    np.testing.assert_allclose(coef, expected, rtol=0.05, atol=0.02)


def test_separable_classes_have_an_optimum_all_the_same():
    X = np.linspace(-1, 1, 50)[:, None]
    coef, _ = fit_logistic(objective_of(X, [X[:, 0] > 0.1]), np.array([10.0]))
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
    coef, _ = fit_logistic(RankingObjective(feature_map(X), [lists], loss), np.array([0.3]))
    kept = qid < 3
    columns = 1e4 * (qid[kept, None] == np.arange(3))
    wide = np.hstack([X[kept], columns])
    judge = LogisticRegression(C=0.3, fit_intercept=False, solver="newton-cholesky", tol=1e-10).fit(wide, y[kept])
    expected = judge.coef_[0, : X.shape[1]]
    np.testing.assert_allclose(coef[:, 0], expected, rtol=0.02, atol=0.02 * np.abs(expected).max())
