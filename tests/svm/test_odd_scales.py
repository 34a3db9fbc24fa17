"""Odd scales: rows of very different length, offsets, far starts. What a fit says holds, or it says why not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from rankhinge import RankSVC, structured_hinge
from rankhinge.solvers import bundle
from rankhinge.solvers.subspace import extension


def rows_of_all_lengths(seed, n=20, d=1200, decades=3.0):
    """Normal rows times 10 to a power between ``±decades``."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-decades, decades, (n, 1)), np.arange(n) % 2


def value(X, y, w, C, loss="ap"):
    """The objective at w."""
    return 0.5 * w @ w + C * structured_hinge(np.asarray(X @ w), y == 1, loss)


# Seeds that once ended with a false certificate or an error, and others.
@pytest.mark.parametrize("seed", [5, 44, 51, 78, 82, 97, 101, 114, 118, 1000, 1001, 1002])
@pytest.mark.parametrize("decades", [3.0, 4.0])
def test_rows_of_all_lengths(seed, decades, monkeypatch):
    """The basis of the span stays orthonormal throughout, and the objective is that of the coefficients."""

    def checked(basis, directions):
        new = extension(basis, directions)
        both = np.column_stack([basis, new])
        products = both.T @ both
        assert np.abs(products - np.diag(np.diag(products) > 0.5)).max() < 1e-12
        return new

    monkeypatch.setattr(bundle, "extension", checked)
    X, y = rows_of_all_lengths(seed, decades=decades)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = RankSVC(bound="convex", C=1.0).fit(sparse.csr_array(X), y)
    found = value(X, y, model.coef_[0], 1.0)
    assert model.objective_ == pytest.approx(found, rel=1e-6)
    assert found < value(X, y, np.zeros(X.shape[1]), 1.0)
