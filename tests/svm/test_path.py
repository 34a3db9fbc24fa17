"""The path over C: certified everywhere, cheaper than its parts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from rankhinge import RankSVC, SVMRanker, rank_svm_path, structured_hinge
from tests.svm.helpers import binary, graded, multiclass, multilabel

CS = np.logspace(-1, 4, 8)


@pytest.mark.parametrize("loss", ["ap", "ndcg"])
def test_binary(loss):
    X, y = binary(n=200, d=10, noise=2.0)
    path = rank_svm_path(X, y, CS, loss=loss)
    alone = [RankSVC(loss=loss, C=C, bound="convex").fit(X, y) for C in CS]
    assert path.coefs.shape == (8, 1, 10)
    assert (path.gaps <= 1e-3).all()
    assert (path.dual_objectives <= path.objectives).all()
    for C, w, objective, model in zip(CS, path.coefs[:, 0], path.objectives[:, 0], alone):
        assert objective == pytest.approx(0.5 * w @ w + C * structured_hinge(X @ w, y == 1, loss), rel=1e-9)
        assert objective == pytest.approx(model.objective_, rel=2e-3)
    assert path.n_passes.dtype == np.int64
    assert path.n_passes.sum() < sum(model.n_passes_ for model in alone)


def test_minimum_rises_and_hinge_falls_with_C():
    X, y = binary(noise=2.0)
    path = rank_svm_path(X, y, CS, tol=1e-6)
    assert np.all(np.diff(path.objectives[:, 0]) > 0)
    hinges = [structured_hinge(X @ w, y == 1) for w in path.coefs[:, 0]]
    assert np.all(np.diff(hinges) <= 1e-6)


@pytest.mark.parametrize("data", [multiclass, multilabel])
def test_many_problems(data):
    X, y = data()
    path = rank_svm_path(sparse.csr_array(X), y, [10.0, 1.0])
    assert path.Cs.tolist() == [1.0, 10.0]
    assert path.coefs.shape == (2, 3, 4)
    for C, objectives in zip(path.Cs, path.objectives):
        np.testing.assert_allclose(objectives, RankSVC(C=C, bound="convex").fit(X, y).objective_, rtol=2e-3)


def test_mask():
    X, Y = multilabel()
    mask = np.random.default_rng(0).random(Y.shape) < 0.8
    path = rank_svm_path(X, Y, [5.0], mask=mask)
    np.testing.assert_allclose(
        path.objectives[0], RankSVC(C=5.0, bound="convex").fit(X, Y, mask=mask).objective_, rtol=2e-3
    )


def test_queries():
    X, y, qid = graded()
    names = [f"query {q}" for q in qid]
    path = rank_svm_path(X, y, [1.0, 50.0], qid=names, loss="ndcg", gains="linear")
    for C, objective in zip(path.Cs, path.objectives[:, 0]):
        assert objective == pytest.approx(
            SVMRanker(C=C, gains="linear", bound="convex").fit(X, y, qid=qid).objective_, rel=2e-3
        )
    path = rank_svm_path(X, y, [1.0], qid=qid, loss="ap", level_weights="uniform")
    assert path.objectives[0, 0] == pytest.approx(
        SVMRanker(loss="ap", level_weights="uniform", bound="convex").fit(X, y, qid=qid).objective_, rel=2e-3
    )


def test_what_one_C_has_found_serves_the_next():
    """At the same C again, the planes and the coefficients handed on are certified at once."""
    X, y = binary(n=200, d=10, noise=2.0)
    path = rank_svm_path(X, y, [50.0, 50.0], tol=1e-5)
    assert path.n_passes[0] > 10
    # The last word takes one more.
    assert path.n_passes[1] <= 3
    np.testing.assert_array_equal(path.coefs[0], path.coefs[1])
