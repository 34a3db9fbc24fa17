"""What is refused on workers, each with a sentence, before the first round."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from rankhinge import RankSVC, SVMRanker
from tests.dask import clusters

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
pytestmark = clusters.MARKS
N, D = 3000, 8


@pytest.fixture(autouse=True)
def _before_the_first_round(monkeypatch, request):
    """Whoever is refused has cost no pass over X."""
    from rankhinge.dask.engine import DaskEngine

    asked, call = [], DaskEngine.call

    def noted(engine, batch, shards=None):
        asked.extend(operation.method for operation in batch)
        return call(engine, batch, shards)

    monkeypatch.setattr(DaskEngine, "call", noted)
    yield
    if "fitted" not in request.keywords:
        assert set(asked) <= {"layout"}


def data(chunks=500):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    y = (X[:, 0] + rng.normal(size=N) > 1.5).astype(int)
    return X, y, da.from_array(X, chunks=(chunks, D))


def changed(chunks, change, number=2):
    """The same with one chunk that is not as it was announced."""

    def one(block, block_id=None):
        return change(block) if block_id and block_id[0] == number else block

    return chunks.map_blocks(one, dtype=chunks.dtype, meta=chunks._meta)


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
@pytest.mark.parametrize("form", ["dense", "float32", "sparse"])
def test_not_finite(client, value, form):
    X, y, _ = data()
    X[1234, 5] = float(value)
    chunks = da.from_array(X.astype(np.float32) if form == "float32" else X, chunks=(500, D))
    if form == "sparse":
        chunks = chunks.map_blocks(sparse.csr_matrix)
    with pytest.raises(ValueError, match=rf"chunk 2 of X has {value} in its row 234, column 5: all entries must be"):
        RankSVC().fit(chunks, y)
    assert not clusters.shards_left(client)


CHANGES = {
    "narrow": (lambda block: block[:, :-1], "chunk 2 of X has 7 columns, but X has 8"),
    "short": (lambda block: block[:-1], "chunk 2 of X has 499 rows, but 500 were announced"),
    "sparse": (
        sparse.csr_matrix,
        r"chunk 2 of X is sparse, but X says that it is dense \(X\._meta\): all chunks must be of one format",
    ),
    "integers": (lambda block: block.astype(int), "chunk 2 of X has dtype int64, of another kind than the first"),
    "words": (lambda block: block.astype(str), "chunk 2 of X has dtype <U32: numbers are needed"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_chunk_that_differs(client, name):
    _, y, chunks = data()
    change, message = CHANGES[name]
    with pytest.raises(ValueError, match=message):
        RankSVC().fit(changed(chunks, change), y)
    assert not clusters.shards_left(client)


def test_a_dense_chunk_among_sparse_ones(client):
    _, y, chunks = data()
    blocks = changed(chunks.map_blocks(sparse.csr_matrix), lambda block: block.toarray(), 1)
    with pytest.raises(ValueError, match="chunk 1 of X is dense, but X says that it is sparse"):
        RankSVC().fit(blocks, y)


def test_shapes(client):
    X, y, chunks = data()
    with pytest.raises(ValueError, match=r"X is cut into 3 blocks of columns: join them with X\.rechunk\(\{1: -1\}\)"):
        RankSVC().fit(da.from_array(X, chunks=(500, 3)), y)
    with pytest.raises(ValueError, match="X has 3000 rows, but y has 2999"):
        RankSVC().fit(chunks, da.from_array(y[1:]))
    with pytest.raises(ValueError, match="X has 1 dimensions"):
        RankSVC().fit(chunks[:, 0], y)
    with pytest.raises(ValueError, match="X has 1 rows: at least 2"):
        RankSVC().fit(chunks[:1], y[:1])
    with pytest.raises(ValueError, match="X has dtype <U32: numbers are needed"):
        RankSVC().fit(da.from_array(X.astype(str), chunks=(500, D)), y)
    with pytest.raises(ValueError, match="X has no columns"):
        RankSVC().fit(chunks[:, :0], y)
    for labels, n_dimensions in ((3, 0), (np.zeros((N, 2, 2)), 3), (da.zeros((N, 1, 1)), 3)):
        with pytest.raises(ValueError, match=f"y has {n_dimensions} dimensions: a label for each row of X is needed"):
            RankSVC().fit(chunks, labels)
    with pytest.raises(ValueError, match="y is None: every sample needs a label"):
        RankSVC().fit(chunks, None)
    # dask cannot cut an array of objects by itself.
    with pytest.raises(ValueError, match="X has 3000 rows, but y has 7"):
        RankSVC().fit(chunks, np.array(["a", None] * 3 + ["b"], dtype=object))


def test_what_is_masked(client):
    masked = pytest.importorskip("dask.array.ma")
    X, y, chunks = data()
    X[1234, 5] = 99.0
    with pytest.raises(ValueError, match=r"in chunk 2, X\[234, 5\] is masked"):
        RankSVC().fit(masked.masked_greater(da.from_array(X, chunks=(500, D)), 98.0), y)
    with pytest.raises(ValueError, match=r"in chunk 2, y\[234\] is masked"):
        RankSVC().fit(chunks, masked.masked_greater(da.from_array(np.where(X[:, 5] > 98.0, 7, y), chunks=500), 5))
    assert not clusters.shards_left(client)


def test_labels(client):
    _, y, chunks = data()
    with pytest.raises(ValueError, match="one class only"):
        RankSVC().fit(chunks, np.zeros(N, int))
    with pytest.raises(ValueError, match="y has nan: every sample needs a label"):
        RankSVC().fit(chunks, np.where(np.arange(N) == 7, np.nan, y))
    words = np.where(y == 1, "yes", "no").astype(object)
    for label, message in (
        (None, r"in chunk 2, y\[234\] is None"),
        (np.nan, r"in chunk 2, y\[234\] is nan"),
        (7, "in chunk 2, y has labels of several types, int, str: choose one"),
    ):
        words[1234] = label
        with pytest.raises(ValueError, match=message):
            RankSVC().fit(chunks, words)
    with pytest.raises(ValueError, match="there is nothing to rank"):
        RankSVC().fit(chunks, np.stack([np.zeros(N, int), np.ones(N, int)], axis=1))


def test_an_error_that_is_kept_keeps_nothing_on_the_workers(client):
    """Those who look at an error hold what its frames hold: the entries of the other chunks among it."""
    _, y, chunks = data()
    queries = np.arange(N) // 30.0
    queries[1234] = np.nan
    with pytest.raises(ValueError, match=r"in chunk 2: qid\[234\] is nan") as raised:
        SVMRanker().fit(chunks, da.from_array(y, chunks=500), qid=da.from_array(queries, chunks=500))
    assert raised.tb is not None
    assert not clusters.left(client, "entries_of_chunk")


@pytest.mark.fitted
def test_the_frequent_class_ranked_first_is_reported(client):
    """As in memory; how frequent it is is known once the shards are there."""
    _, y, chunks = data()
    words = np.where(y == 1, "a", "b")
    share = f"{100 * np.mean(words == 'b'):.3g}"
    with pytest.warns(UserWarning, match=f"the label 'b' is ranked first, and {share} % of the samples have it"):
        RankSVC(bound="convex", C=1.0, tol=0.1).fit(chunks, words)


def test_what_goes_list_by_list(client):
    _, y, chunks = data()
    with pytest.raises(ValueError, match="works list by list and needs arrays in memory: choose solver='bundle'"):
        RankSVC(bound="convex", solver="frank-wolfe").fit(chunks, y)
    assert not clusters.shards_left(client)


@pytest.mark.fitted
def test_a_cut_that_is_too_deep(client, monkeypatch):
    from rankhinge.inference.spread import top

    monkeypatch.setattr(top, "MOST_SHIPPED", 100)
    _, y, chunks = data()
    message = (
        r"loss='precision@60' looks at the first 60 places of a list, for which 121 scores .*, and 100 may: .*spool"
    )
    with pytest.raises(ValueError, match=message):
        RankSVC("precision@60").fit(chunks, y)
    assert not clusters.shards_left(client)


def test_more_than_the_workers_have_room_for(client):
    n, d = 10**9, 1000
    y = da.zeros(n, chunks=10**6).astype(int)
    limit = sum(client.run(lambda dask_worker: dask_worker.memory_manager.memory_limit).values())
    message = rf"about 8\.05e\+03 GB, and 70% of the workers' memory are {0.7 * limit / 1e9:.3g} GB: .*rankhinge\.spool"
    with pytest.raises(ValueError, match=message):
        RankSVC().fit(da.zeros((n, d), chunks=(10**6, d)), y)


@pytest.mark.fitted
def test_chunks_that_are_put_right(client):
    """y in other chunks is cut like X; lengths that are not known are computed, with a word on what that costs."""
    X, y, chunks = data()
    options = {"bound": "convex", "C": 1.0, "tol": 1e-6}
    expected = RankSVC(**options).fit(X, y).objective_
    for labels in (da.from_array(y, chunks=(1, 999, 2000)), da.from_array(y, chunks=N), y, y.tolist()):
        assert RankSVC(**options).fit(chunks, labels).objective_ == pytest.approx(expected, rel=1e-5)
    known = da.from_array(y, chunks=500)
    with pytest.warns(
        UserWarning, match="the lengths of the chunks of X are not known: they are computed, which reads"
    ):
        found = RankSVC(**options).fit(chunks[chunks[:, 0] > -9.0], known)
    assert found.objective_ == pytest.approx(expected, rel=1e-5)
    with pytest.warns(UserWarning, match="the lengths of the chunks of y are not known"):
        RankSVC(**options).fit(chunks, known[known > -1])


def test_without_a_client(monkeypatch):
    def none():
        raise ValueError("no global client")

    monkeypatch.setattr(distributed, "get_client", none)
    _, y, chunks = data()
    with pytest.raises(ValueError, match=r"no distributed\.Client to compute it: .*rankhinge\.spool"):
        RankSVC().fit(chunks, y)


WITHOUT = """
import sys
sys.modules["distributed"] = None
import dask.array as da
from rankhinge import RankSVC, SVMRanker
X = da.ones((10, 2))
try:
    RankSVC().fit(X, X[:, 0])
except ImportError as error:
    print(error)
"""


def test_without_the_package():
    """In a process of its own: here it is loaded."""
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    assert done.stdout == "fits on dask arrays need the package distributed: pip install 'rankhinge[dask]'\n"
