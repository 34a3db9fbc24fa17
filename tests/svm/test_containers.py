"""Every container of the same numbers gives the same model, and a file is not loaded."""

from __future__ import annotations

import tempfile
import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from rankhinge import ApproximateRankSVC, RankSVC, RankSVCCV, SVMRanker, rank_svm_path
from rankhinge.latent import Bags, LatentRankSVC, LatentStructuralSVC, LatentSVC
from tests.svm.helpers import binary

SETTINGS = {"bound": "convex", "C": 20.0, "tol": 1e-10}


def counts():
    """Small whole numbers, many of them 0: exact in every dtype."""
    rng = np.random.default_rng(0)
    X = rng.poisson(0.8, size=(50, 4))
    return X, (X[:, 0] - X[:, 1] + rng.normal(size=50) > 0.5).astype(int)


def explicit_zeros(X):
    rows, columns = np.indices(X.shape)
    return sparse.csr_array((X.ravel().astype(float), (rows.ravel(), columns.ravel())), shape=X.shape)


def strided(X):
    wide = np.zeros((2 * X.shape[0], 3 * X.shape[1]))
    wide[::2, ::3] = X
    return wide[::2, ::3]


def of_another_machine(matrix):
    """A sparse matrix whose arrays have the other byte order, as they come from a file."""
    for name in ("data", "indices", "indptr"):
        part = getattr(matrix, name)
        setattr(matrix, name, part.astype(part.dtype.newbyteorder("S")))
    return matrix


CONTAINERS = {
    "C order": lambda X: np.ascontiguousarray(X, dtype=float),
    "F order": lambda X: np.asfortranarray(X, dtype=float),
    "float32": lambda X: X.astype(np.float32),
    "float32, F order": lambda X: np.asfortranarray(X, dtype=np.float32),
    "float16": lambda X: X.astype(np.float16),
    "int64": lambda X: X.astype(np.int64),
    "int32, F order": lambda X: np.asfortranarray(X, dtype=np.int32),
    "uint8": lambda X: X.astype(np.uint8),
    "strided": strided,
    "read-only": lambda X: np.frombuffer(X.astype(float).tobytes()).reshape(X.shape),
    "list": lambda X: X.tolist(),
    "objects": lambda X: X.astype(object),
    "CSR array": lambda X: sparse.csr_array(X.astype(float)),
    "CSC array": lambda X: sparse.csc_array(X.astype(float)),
    "CSR matrix": lambda X: sparse.csr_matrix(X.astype(np.float32)),
    "CSC matrix": lambda X: sparse.csc_matrix(X.astype(np.int64)),
    "CSR of uint8": lambda X: sparse.csr_array(X.astype(np.uint8)),
    "COO": lambda X: sparse.coo_array(X.astype(float)),
    "explicit zeros": explicit_zeros,
    "other byte order": lambda X: X.astype(np.dtype(float).newbyteorder("S")),
    "CSR, other byte order": lambda X: of_another_machine(sparse.csr_array(X.astype(float))),
    "CSC, other byte order": lambda X: of_another_machine(sparse.csc_matrix(X.astype(np.float32))),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_same_model(container):
    X, y = counts()
    expected = RankSVC(**SETTINGS).fit(X.astype(float), y)
    held = CONTAINERS[container](X)
    model = RankSVC(**SETTINGS).fit(held, y)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-6)
    assert model.coef_.dtype == np.float64
    np.testing.assert_allclose(model.decision_function(held), expected.decision_function(X), atol=1e-5)
    ranker = SVMRanker(loss="ap", **SETTINGS).fit(held, y)
    np.testing.assert_allclose(ranker.coef_, expected.coef_[0], atol=1e-6)


def mapped(X):
    with tempfile.TemporaryFile() as file:
        file.write(np.ascontiguousarray(X, dtype=np.float32).tobytes())
        file.flush()
        return np.memmap(file, dtype=np.float32, mode="r", shape=X.shape)


OTHERS = {
    "approximate": ApproximateRankSVC(C=20.0, tol=1e-8),
    "search": RankSVCCV(Cs=[1.0, 20.0], cv=2, bound="convex", tol=1e-8, random_state=0),
    "bags": LatentRankSVC(C=20.0, tol=1e-8),
    "binary bags": LatentSVC(C=20.0, tol=1e-8),
    "structural bags": LatentStructuralSVC(C=20.0, tol=1e-8),
}
HELD = ("float32", "other byte order", "CSR, other byte order", "CSC, other byte order")


@pytest.mark.parametrize("hold", [*(CONTAINERS[name] for name in HELD), mapped], ids=[*HELD, "mapped"])
@pytest.mark.parametrize("name", OTHERS)
def test_same_model_of_other_machines(name, hold):
    X, y = counts()
    new = clone(OTHERS[name])
    of_bags = "bags" in name
    expected = clone(new).fit(Bags(X.astype(float)) if of_bags else X.astype(float), y)
    model = new.fit(Bags(hold(X)) if of_bags else hold(X), y)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-4 * np.abs(expected.coef_).max())
    assert model.coef_.dtype == np.float64
    np.testing.assert_allclose(model.objective_, expected.objective_, rtol=1e-6)


def test_other_byte_order_in_paths_and_bags():
    X, y = counts()
    swapped = of_another_machine(sparse.csr_array(X.astype(float)))
    before = swapped.data
    path = rank_svm_path(swapped, y, [1.0, 20.0])
    np.testing.assert_array_equal(path.objectives, rank_svm_path(sparse.csr_array(X.astype(float)), y, [1.0, 20.0])[2])
    assert LatentRankSVC(C=20.0).fit(Bags(swapped), y).coef_.any()
    assert swapped.data is before


@pytest.mark.parametrize("hold", [np.asarray, sparse.csr_array, sparse.csc_array])
def test_bool_features(hold):
    X, y = counts()
    expected = RankSVC(**SETTINGS).fit((X > 0).astype(float), y)
    np.testing.assert_allclose(RankSVC(**SETTINGS).fit(hold(X > 0), y).coef_, expected.coef_, atol=1e-6)


@pytest.mark.parametrize("hold", [np.asarray, np.asfortranarray, sparse.csr_array, sparse.csc_matrix])
def test_float32_is_computed_in_float64(hold):
    X, y = binary()
    X = X.astype(np.float32)
    expected = RankSVC(**SETTINGS).fit(X.astype(np.float64), y)
    model = RankSVC(**SETTINGS).fit(hold(X), y)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-6)
    assert model.gap_ <= 1e-10


def test_pandas():
    pd = pytest.importorskip("pandas")
    X, y = counts()
    expected = RankSVC(**SETTINGS).fit(X, y)
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = RankSVC(**SETTINGS).fit(frame, pd.Series(y))
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-6)
    assert model.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("badc")])
    qid = pd.Series(np.arange(50) % 5).map("query {}".format)
    ranker = SVMRanker(bound="convex").fit(frame, pd.Series(y), qid=qid)
    assert ranker.score(frame, pd.Series(y), qid=qid) == ranker.score(frame, y, qid=list(qid))


def test_polars():
    pl = pytest.importorskip("polars")
    X, y = counts()
    expected = RankSVC(**SETTINGS).fit(X, y)
    frame = pl.DataFrame(X, schema=list("abcd"))
    model = RankSVC(**SETTINGS).fit(frame, pl.Series(y))
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-6)
    assert model.feature_names_in_.tolist() == list("abcd")
    qid = pl.Series([f"query {k % 5}" for k in range(50)])
    ranker = SVMRanker(bound="convex").fit(frame, pl.Series(y), qid=qid)
    same = SVMRanker(bound="convex").fit(X, y, qid=qid.to_list())
    assert ranker.score(frame, pl.Series(y), qid=qid) == same.score(X, y, qid=qid.to_list())


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_mapped_file_is_not_loaded(tmp_path, dtype, order):
    n, d = 4000, 600
    rng = np.random.default_rng(0)
    X = np.memmap(tmp_path / "X", dtype=dtype, mode="w+", shape=(n, d), order=order)
    X[:] = (10 * rng.normal(size=(n, d))).astype(dtype)
    y = np.asarray(X[:, 0]) > 12
    X.flush()
    X = np.memmap(tmp_path / "X", dtype=dtype, mode="r", shape=(n, d), order=order)
    model = RankSVC(C=0.01, tol=0.05, bound="convex")
    model.fit(X[:200], y[:200])  # compiles
    tracemalloc.start()
    try:
        model.fit(X, y)
        model.predict(X)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # A block of rows in float64, planes and some arrays of n numbers, but not X.
    assert peak < 0.75 * 4 * n * d
    assert not X.flags.writeable


@pytest.mark.parametrize("hold", [np.asarray, sparse.csr_array])
def test_features_are_left_as_they_are(hold):
    X, y = counts()
    held = hold(X.astype(np.float32))
    data = held if isinstance(held, np.ndarray) else held.data
    before = data.copy()
    data.flags.writeable = False
    RankSVC(bound="convex").fit(held, y)
    np.testing.assert_array_equal(data, before)
