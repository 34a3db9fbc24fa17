"""K problems in lockstep are K problems, and share their passes."""

from __future__ import annotations

import numpy as np
import pytest

from rankhinge import RankSVC
from tests.svm.helpers import multiclass, multilabel


@pytest.mark.parametrize("solver", ["bundle", "cutting-plane"])
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_classes(solver, tol):
    X, y = multiclass(n_classes=4)
    together = RankSVC(C=10.0, solver=solver, tol=tol).fit(X, y)
    alone = [RankSVC(C=10.0, solver=solver, tol=tol).fit(X, y == k) for k in range(4)]
    for k, model in enumerate(alone):
        # Both lie within tol above the same minimum.
        assert together.objective_[k] == pytest.approx(model.objective_, rel=2 * tol)
        assert together.dual_objective_[k] <= model.objective_
        assert model.dual_objective_ <= together.objective_[k]
        # The objective is 1-strongly convex, so each solution is near the optimum.
        distance = np.linalg.norm(together.coef_[k] - model.coef_[0])
        assert distance <= 2 * np.sqrt(2 * tol * model.objective_)
    assert together.n_passes_ < sum(model.n_passes_ for model in alone)
    assert together.n_iter_.shape == (4,)


def test_labels_with_their_own_C():
    X, Y = multilabel()
    C = [0.1, 10.0, 1000.0]
    together = RankSVC(C=C).fit(X, Y)
    for k in range(3):
        assert together.objective_[k] == pytest.approx(RankSVC(C=C[k]).fit(X, Y[:, k]).objective_, rel=2e-3)
    # Problems end one by one, and the rows of those that have ended go on with their last values.
    assert together.history_["primal"].shape == (3, together.n_iter_.max())
    for k, n_iter in enumerate(together.n_iter_):
        np.testing.assert_array_equal(together.history_["primal"][k, n_iter - 1 :], together.objective_[k])
