"""Columns with weights, against an X that is written down."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from rankhinge.features import WeightedColumns, feature_map


@pytest.mark.parametrize(
    "make", [np.asarray, np.asfortranarray, lambda X: X.astype(np.float32), sparse.csr_array, sparse.csc_array]
)
def test_products_of_weighted_columns(make):
    rng = np.random.default_rng(0)
    X = make(rng.normal(size=(30, 4)).round(1))
    factors = np.array([1.0, 1e3, 0.0, 1e-3])
    dense = (X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=np.float64)) * factors
    features, twin = feature_map(WeightedColumns(X, factors)), feature_map(dense)
    assert (features.n_samples, features.n_features) == (30, 4)
    W, U = rng.normal(size=(4, 3)), rng.normal(size=(3, 30))
    np.testing.assert_allclose(features.scores(W), twin.scores(W), rtol=1e-12)
    np.testing.assert_allclose(features.adjoint(U), twin.adjoint(U), rtol=1e-12, atol=1e-14)
    index = np.array([4, 0, 29])
    np.testing.assert_allclose(features.rows(index), dense[index])
