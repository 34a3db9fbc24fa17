"""The audit by its kernel, by pieces, and by its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from rankhinge.features import WeightedColumns, audit, feature_map
from rankhinge.features.audit import HasStored

CONTAINERS = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "columns": np.asfortranarray,
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "whole numbers": lambda X: np.rint(X).astype(np.int32),
}


@pytest.mark.parametrize("n_columns", [1, 3, 7])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", CONTAINERS)
@given(seed=st.integers(0, 1000), decades=st.sampled_from([0, 3, 12, 160, 300]))
def test_audit_is_what_its_definition_says(name, weighted, n_columns, seed, decades):
    rng = np.random.default_rng(seed)
    n, d = rng.integers(1, 20, 2)
    if name in ("float32", "whole numbers"):
        decades = min(decades, 3)
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-decades, 0, (n, 1))
    X[rng.integers(n)] = 0.0
    given_X = CONTAINERS[name](X)
    dense = given_X.toarray() if sparse.issparse(given_X) else np.asarray(given_X, np.float64)
    factors = 10.0 ** rng.uniform(-2, 2, d) if weighted else np.ones(d)
    W = rng.normal(size=(d, n_columns))
    found = audit(feature_map(WeightedColumns(given_X, factors) if weighted else given_X), W)
    rows = dense * factors
    sizes = (np.abs(rows) @ np.abs(W)).T
    assert np.all(np.abs(found.scores - (rows @ W).T) <= 1e-13 * sizes)
    np.testing.assert_allclose(found.sizes, sizes, rtol=1e-12)
    largest = np.maximum(np.abs(rows).max(axis=1), np.finfo(np.float64).tiny)
    lengths = largest * np.linalg.norm(rows / largest[:, None], axis=1)
    # Rows so much shorter than others add nothing to a bound on rounding.
    np.testing.assert_allclose(found.lengths, lengths, rtol=1e-12, atol=1e-140 * lengths.max())


@pytest.mark.parametrize("size", [1e200, 1e-200])
def test_squares_beyond_the_numbers_go_the_slow_way(size):
    found = audit(feature_map(np.array([[3.0, 4.0], [0.0, 0.0]]) * size), np.ones((2, 1)))
    np.testing.assert_allclose(found.lengths, [5.0 * size, 0.0])


def test_which_maps_have_stored_rows():
    X = np.ones((3, 2))
    kinds = (X, np.asfortranarray(X), X.astype(np.int8), X[:, ::-1], X.astype(">f8"))
    for rows, direct in zip(kinds, (True, False, False, False, False), strict=True):
        features = feature_map(rows)
        assert isinstance(features, HasStored)
        assert (features.stored()[0] is not None) == direct
    assert not isinstance(feature_map(sparse.csr_array(X)), HasStored)
