"""`RankSVC` on workers with a mask: unlabelled samples of a problem belong to no list of it, as in memory."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from rankhinge import RankSVC
from tests.dask import clusters

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
pytestmark = clusters.MARKS
N, D, K = 2000, 6, 3
OPTIONS = {"bound": "convex", "C": 10.0, "tol": 1e-8}


def data(seed=0):
    """The problems have 70 %, 40 % and 3 % of the samples; whole chunks have nothing of the last one."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D)) * np.linspace(0.5, 3.0, D)
    Y = (X @ rng.normal(size=(D, K)) + 4 * rng.normal(size=(N, K)) > 3).astype(float)
    known = rng.random((N, K)) < [0.7, 0.4, 0.03]
    known[:700, 2] = False
    Y[~known] = np.nan
    return X, Y, known


def frame(values):
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    return dd.from_pandas(pd.DataFrame(values, columns=list("abc")), npartitions=3)


FORMS = {
    "as Y is": lambda known: da.from_array(known, chunks=(700, K)),
    "other chunks": lambda known: da.from_array(known, chunks=(450, 2)),
    "numbers": lambda known: da.from_array(known.astype(np.int8), chunks=(700, K)),
    "in memory": lambda known: known,
    "sparse": sparse.csr_array,
}


@pytest.fixture(scope="module")
def expected():
    X, Y, known = data()
    return RankSVC(**OPTIONS).fit(X, Y, mask=known)


@pytest.mark.parametrize("form", FORMS)
def test_as_in_memory(client, expected, form):
    X, Y, known = data()
    chunks = da.from_array(X, chunks=((1, 699, 0, 300, 1000), D))
    found = RankSVC(**OPTIONS).fit(chunks, da.from_array(Y, chunks=(700, K)), mask=FORMS[form](known))
    assert (found.gap_ <= 1e-8).all()
    np.testing.assert_allclose(found.objective_, expected.objective_, rtol=1e-6)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-2, atol=1e-3)
    np.testing.assert_array_equal(found.classes_, expected.classes_)
    assert not clusters.shards_left(client)


@pytest.mark.filterwarnings("ignore:the lengths of the partitions")
def test_frames(client, expected):
    X, Y, known = data()
    found = RankSVC(**OPTIONS).fit(da.from_array(X, chunks=(600, D)), frame(Y), mask=frame(known))
    np.testing.assert_allclose(found.objective_, expected.objective_, rtol=1e-6)
    assert found.classes_.tolist() == ["a", "b", "c"]


def test_the_tight_bound(client):
    X, Y, known = data()
    expected = RankSVC().fit(X, Y, mask=known)
    found = RankSVC().fit(da.from_array(X, chunks=(600, D)), Y, mask=known)
    # Local minima: what both reach is about the same.
    np.testing.assert_allclose(found.objective_, expected.objective_, rtol=1e-2)


def test_what_is_not_labelled_does_not_matter(client):
    X, Y, known = data()
    chunks = da.from_array(X, chunks=(600, D))
    first = RankSVC(**OPTIONS).fit(chunks, Y, mask=known)
    other = RankSVC(**OPTIONS).fit(chunks, np.where(known, Y, 1.0), mask=known)
    np.testing.assert_array_equal(first.coef_, other.coef_)


def test_one_column_and_labels_without_a_list(client):
    X, Y, known = data()
    chunks, last = da.from_array(X, chunks=(600, D)), [2]
    expected = RankSVC(**OPTIONS).fit(X, Y[:, last], mask=known[:, last])
    found = RankSVC(**OPTIONS).fit(chunks, Y[:, last], mask=known[:, last])
    assert (found._kind, found.classes_.tolist()) == ("multilabel", [0])
    np.testing.assert_allclose(found.objective_, expected.objective_, rtol=1e-6)
    # Of the second problem nothing is labelled, of the third only positives.
    known[:, 1] = False
    known[:, 2] &= Y[:, 2] == 1
    for fitted in (X, chunks):
        with pytest.warns(UserWarning, match=r"labels \[1, 2\] have no positive or no negative sample"):
            machine = RankSVC(**OPTIONS).fit(fitted, np.where(known, Y, 0), mask=known)
        assert machine.intercept_[1:].tolist() == [-1.0, 1.0]


def test_what_is_refused(client):
    X, Y, known = data()
    chunks, Y = da.from_array(X, chunks=(600, D)), da.from_array(Y, chunks=(600, K))

    def refused(mask, message, labels=Y):
        with pytest.raises(ValueError, match=message):
            RankSVC().fit(chunks, labels, mask=mask)
        assert not clusters.shards_left(client)

    for mask in (known[1:], known[:, :2], known[:, 0], da.from_array(known[:, :2])):
        refused(mask, r"mask must be bool or 0/1 of shape \(2000, 3\), got bool of shape \(")
    refused(known.astype(float), r"mask must be bool or 0/1 of shape \(2000, 3\), got float64")
    refused(2 * known.astype(int), r"in chunk \d, mask must be bool or 0/1 of shape \(\d00, 3\), got int64")
    refused(np.zeros_like(known), "mask is False everywhere, so that nothing is labelled")
    refused(~known, r"in chunk \d, y\[\d+, \d\] is nan, .*The mask seems to be inverted")
    refused(known, r"labelled entries of y must be 0/1 or -1/1, got \[0\. 2\.\]", 2 * Y)
    refused(known[:, 0], r"a mask goes with a multilabel y of shape \(n, K\), got shape \(2000,\)", Y[:, 0])
