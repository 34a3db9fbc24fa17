"""The two products of every feature map, against the plain ones in float64."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from rankhinge.features import dense, feature_map, maps, register

DENSE = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "row": lambda X: X[:1],
    "column": lambda X: X[:, :1],
}
SPARSE = {
    "CSR": sparse.csr_array,
    "CSC": sparse.csc_array,
    "CSR matrix": sparse.csr_matrix,
    "CSC matrix": sparse.csc_matrix,
    "COO": sparse.coo_array,
}
DTYPES = [np.float64, np.float32, np.int64, np.int32, np.uint8, np.bool_]


def random_matrix(dtype, seed=0, n=57, d=23):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.3)
    X = 100 * np.abs(X) if np.dtype(dtype).kind in "iub" else X
    # Rows and columns without entries.
    X[[0, 5, n - 1]] = 0
    X[:, [0, 7, d - 1]] = 0
    return X.astype(dtype)


def check(held, plain):
    """Both products and single rows, for one and for several problems."""
    found = feature_map(held)
    plain = plain.astype(np.float64)
    rng = np.random.default_rng(1)
    assert (found.n_samples, found.n_features) == plain.shape
    scale = np.abs(plain).max(initial=1.0)
    for m in (1, 2, 7):
        W, U = rng.normal(size=(plain.shape[1], m)), rng.normal(size=(m, plain.shape[0]))
        scores, adjoint = found.scores(W), found.adjoint(U)
        assert scores.shape == (m, plain.shape[0])
        assert adjoint.shape == (plain.shape[1], m)
        assert scores.dtype == adjoint.dtype == np.float64
        np.testing.assert_allclose(scores, (plain @ W).T, rtol=1e-12, atol=1e-12 * scale)
        np.testing.assert_allclose(adjoint, plain.T @ U.T, rtol=1e-12, atol=1e-12 * scale)
        # One is the adjoint of the other.
        np.testing.assert_allclose(np.sum(scores * U), np.sum(W * adjoint), rtol=1e-10, atol=1e-10 * scale)
        # Any memory layout of the factors.
        np.testing.assert_allclose(found.scores(np.asfortranarray(W)), scores, rtol=1e-12, atol=1e-12 * scale)
        np.testing.assert_allclose(found.adjoint(np.asfortranarray(U)), adjoint, rtol=1e-12, atol=1e-12 * scale)
    index = rng.integers(plain.shape[0], size=6)
    rows = found.rows(index)
    assert rows.dtype == np.float64
    np.testing.assert_array_equal(rows, plain[index])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", DENSE)
def test_dense(layout, dtype):
    held = DENSE[layout](random_matrix(dtype))
    check(held, np.array(held))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", SPARSE)
def test_sparse(layout, dtype):
    X = random_matrix(dtype)
    check(SPARSE[layout](X), X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_blocks(monkeypatch, dtype, order):
    """Blocks of a few rows, the last one shorter, and rows longer than a block."""
    for entries in (1, 100, 1000):
        monkeypatch.setattr(dense, "BLOCK_ENTRIES", entries)
        X = np.asarray(random_matrix(dtype), order=order)
        check(X, X)


@pytest.mark.parametrize("hold", [sparse.csr_array, sparse.csc_array])
def test_sparse_with_explicit_zeros_and_duplicates(hold):
    rows, columns = np.array([0, 0, 2, 2, 2, 3]), np.array([1, 1, 0, 2, 0, 1])
    data = np.array([1.0, 2.0, 0.0, 4.0, 5.0, 0.0])
    X = sparse.coo_array((data, (rows, columns)), shape=(5, 3))
    check(hold(X), X.toarray())
    unsummed = sparse.csr_array((data, columns, np.array([0, 2, 2, 5, 6, 6])), shape=(5, 3))
    check(unsummed, X.toarray())


@pytest.mark.parametrize("hold", [np.asarray, np.asfortranarray, sparse.csr_array, sparse.csc_array])
def test_nothing_but_zeros(hold):
    check(hold(np.zeros((4, 3))), np.zeros((4, 3)))


@pytest.mark.parametrize("hold", [sparse.csr_array, sparse.csc_array])
def test_rows_of_very_different_length(hold):
    """All entries in one row or column: most shares of the work are empty."""
    X = np.zeros((40, 30))
    X[17] = np.arange(30)
    X[:, 3] = np.arange(40)
    check(hold(X), X)


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_index_types(index_type):
    X = random_matrix(np.float64)
    held = sparse.csr_array(X)
    held.indices, held.indptr = held.indices.astype(index_type), held.indptr.astype(index_type)
    check(held, X)


@pytest.mark.parametrize("hold", [sparse.csr_array, sparse.csc_array])
def test_read_only(hold):
    X = random_matrix(np.float64)
    held = hold(X)
    for part in (held.data, held.indices, held.indptr):
        part.flags.writeable = False
    check(held, X)


def test_float32_is_summed_in_float64():
    """The sum of many small numbers and a large one, which float32 would lose."""
    X = np.full((100_000, 1), 1e-4, dtype=np.float32)
    X[0] = 1e6
    exact = float(np.float32(1e6)) + 99_999 * float(np.float32(1e-4))
    for hold in (np.asarray, np.asfortranarray, sparse.csr_array, sparse.csc_array):
        found = feature_map(hold(X)).adjoint(np.ones((1, 100_000)))
        assert found[0, 0] == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize("hold", [np.ascontiguousarray, np.asfortranarray, sparse.csr_array, sparse.csc_array])
def test_float32_is_not_widened_as_a_whole(hold):
    X = hold(np.ones((4000, 500), dtype=np.float32))
    found = feature_map(X)
    W, U = np.ones((500, 1)), np.ones((1, 4000))
    found.scores(W), found.adjoint(U)
    tracemalloc.start()
    try:
        found.scores(W), found.adjoint(U)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4000 * 500 * 4


@pytest.mark.parametrize("hold", [sparse.csr_array, sparse.csc_array])
def test_same_bits_whatever_the_number_of_threads(monkeypatch, hold):
    found = feature_map(hold(random_matrix(np.float64, n=3000)))
    W, U = np.random.default_rng(0).normal(size=(23, 3)), np.random.default_rng(1).normal(size=(3, 3000))
    results = []
    for n_threads in (1, 2, 5):
        monkeypatch.setenv("RANKHINGE_NUM_THREADS", str(n_threads))
        results.append((found.scores(W), found.adjoint(U)))
    for scores, adjoint in results[1:]:
        np.testing.assert_array_equal(scores, results[0][0])
        np.testing.assert_array_equal(adjoint, results[0][1])


def test_registry(monkeypatch):
    class Diagonal:
        def __init__(self, values):
            self.values = values

    class DiagonalMap:
        def __init__(self, X):
            self.values = X.values
            self.n_samples = self.n_features = self.n_entries = len(X.values)

        def scores(self, weights):
            return (self.values[:, None] * weights).T

        def adjoint(self, coefficients):
            return (self.values * coefficients).T

        def rows(self, index):
            return np.diag(self.values)[index]

    monkeypatch.setattr(maps, "_REGISTERED", list(maps._REGISTERED))
    X = Diagonal(np.arange(1.0, 4.0))
    with pytest.raises(TypeError, match="there is no feature map for Diagonal"):
        feature_map(X)
    register(lambda held: isinstance(held, Diagonal), DiagonalMap)
    check_map = feature_map(X)
    np.testing.assert_array_equal(check_map.scores(np.ones((3, 2))), [[1, 2, 3]] * 2)
    # Later ones are asked first.
    register(lambda held: isinstance(held, Diagonal), lambda held: "another")
    assert feature_map(X) == "another"
    assert feature_map(np.ones((2, 2))).n_samples == 2


@pytest.mark.parametrize("X", [[[1.0]], "text", None, np.ones(3), np.ones((2, 2, 2)), sparse.coo_array(np.ones(3))])
def test_no_feature_map(X):
    with pytest.raises(TypeError, match="there is no feature map for"):
        feature_map(X)


@pytest.mark.parametrize("view", ["columns", "backwards", "both"])
def test_views_with_other_strides_are_not_copied_whole(view):
    rng = np.random.default_rng(7)
    base = rng.normal(size=(4000, 40))
    X = {"columns": base[:, ::2], "backwards": base[::-1], "both": base[::-1, ::-3]}[view]
    features = feature_map(X)
    W, U = rng.normal(size=(X.shape[1], 3)), rng.normal(size=(3, X.shape[0]))
    tracemalloc.start()
    scores, slopes = features.scores(W), features.adjoint(U)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(scores, (np.array(X) @ W).T, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(slopes, np.array(X).T @ U.T, rtol=1e-12, atol=1e-12)
    assert peak < X.nbytes


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_sparse_of_extended_precision(form):
    X = sparse.random(30, 8, density=0.4, format=form, random_state=0).astype(np.longdouble)
    W = np.random.default_rng(0).normal(size=(8, 2))
    np.testing.assert_allclose(feature_map(X).scores(W), (X.toarray().astype(float) @ W).T, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("form", ["csr", "csc"])
def test_far_more_columns_than_entries(form):
    """The sums of shares must not take more memory than the result does."""
    X = sparse.random(*((300, 50_000) if form == "csr" else (50_000, 300)), density=1e-3, format=form, random_state=0)
    rng = np.random.default_rng(0)
    features = feature_map(X)
    W, U = rng.normal(size=(X.shape[1], 4)), rng.normal(size=(4, X.shape[0]))
    product, arguments = (features.adjoint, U) if form == "csr" else (features.scores, W)
    expected = X.T @ U.T if form == "csr" else (X @ W).T
    product(arguments)
    tracemalloc.start()
    result = product(arguments)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12)
    assert peak < 3 * result.nbytes


VIEWS = {
    "rows": (lambda X: X, 0),
    "columns": (np.asfortranarray, 0),
    "every second row": (lambda X: X[::2], 0),
    "some columns": (lambda X: X[:, 5:20], 0),
    "every second column": (lambda X: X[:, ::2], 2),
    "rows backwards": (lambda X: X[::-1], 2),
    "columns backwards": (lambda X: X[:, ::-1], 2),
    "float32": (lambda X: X.astype(np.float32), 2),
}


@pytest.mark.parametrize("name", VIEWS)
def test_only_rows_that_lie_side_by_side_are_handed_over_as_they_are(monkeypatch, name):
    """BLAS would copy all of any other array at each product."""
    calls, original = [], dense._Dense._blocks
    monkeypatch.setattr(dense._Dense, "_blocks", lambda self: calls.append(1) or original(self))
    view, n_blocks = VIEWS[name]
    X = view(np.random.default_rng(0).normal(size=(50, 30)))
    found = feature_map(X)
    found.scores(np.ones((X.shape[1], 2))), found.adjoint(np.ones((2, X.shape[0])))
    assert len(calls) == n_blocks


def unaligned(X):
    held = np.zeros(X.nbytes + 4, np.uint8)[4:].view(np.uint8)
    view = np.ndarray(X.shape, np.float64, buffer=held.data)
    view[:] = X
    return view


@pytest.mark.parametrize(
    "hold",
    [unaligned, lambda X: np.lib.stride_tricks.sliding_window_view(X.ravel(), X.shape[1])[: len(X)]],
    ids=["unaligned", "overlapping rows"],
)
def test_what_blas_does_not_take_is_taken_in_blocks(monkeypatch, hold):
    """A product of the whole would copy all of it, or do without BLAS."""
    held = hold(random_matrix(np.float64))
    seen = []
    blocks = dense._Dense._blocks
    monkeypatch.setattr(dense._Dense, "_blocks", lambda self: seen.append(1) or blocks(self))
    check(held, np.array(held))
    assert seen
    seen.clear()
    check(np.array(held), np.array(held))
    assert not seen
