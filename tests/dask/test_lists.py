"""`SVMRanker` on workers in processes of their own: against memory, however the queries lie, and with bad input."""

from __future__ import annotations

import numpy as np
import pytest

from rankhinge import SVMRanker
from tests.dask.clusters import shards_left

da = pytest.importorskip("dask.array")
pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.dask,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:Sending large graph"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
N, D = 900, 5


def data(order="sorted", n_lists=60, n_grades=2, long=0, seed=0):
    """Samples in lists; `long` is how many belong to one of them."""
    rng = np.random.default_rng(seed)
    qid = rng.integers(1, n_lists, N)
    qid[rng.permutation(N)[:long]] = 0
    qid = np.sort(qid) if order == "sorted" else qid
    X = rng.normal(size=(N, D)) + rng.normal(size=(n_lists, D))[qid]
    scores = X @ rng.normal(size=D) + rng.normal(size=N)
    return X, np.clip(np.round(scores - np.median(scores)), 0, n_grades - 1), qid


@pytest.fixture
def small(monkeypatch):
    """Lists that count as short have 50 samples at most, and hardly any score is fetched."""
    monkeypatch.setattr("rankhinge.dask.lists.LONGEST", 50)
    monkeypatch.setattr("rankhinge.dask.lists.MOST_FETCHED", 40)


CASES = {
    "sorted": ({}, (200,) * 4 + (100,)),
    "scattered": ({"order": "scattered"}, (200,) * 4 + (100,)),
    "one long list": ({"order": "scattered", "long": 300}, (200,) * 4 + (100,)),
    "one long list, sorted": ({"long": 300}, (200,) * 4 + (100,)),
    "single rows": ({"order": "scattered"}, (1, 1, 1, 400, 1, 496)),
    "empty chunks": ({"order": "scattered"}, (0, 300, 0, 0, 600)),
    "grades": ({"order": "scattered", "n_grades": 4, "long": 300}, (450, 450)),
}


@pytest.mark.parametrize("case", CASES)
def test_as_in_memory(client, small, case):
    options, chunks = CASES[case]
    X, y, qid = data(**options)
    machine = SVMRanker(bound="convex", C=20.0, tol=1e-8)
    expected = machine.fit(X, y, qid=qid)
    objective, attributes = expected.objective_, set(vars(expected))
    blocks = da.from_array(X, chunks=(chunks, D))
    found = SVMRanker(bound="convex", C=20.0, tol=1e-8).fit(
        blocks, da.from_array(y, chunks=330), qid=da.from_array(qid)
    )
    assert found.gap_ <= 1e-8
    assert found.objective_ == pytest.approx(objective, rel=1e-6)
    assert found.dual_objective_ <= objective
    assert expected.dual_objective_ <= found.objective_
    assert (found.n_queries_, found.n_unusable_queries_) == (expected.n_queries_, expected.n_unusable_queries_)
    assert attributes == set(vars(found))
    np.testing.assert_allclose(found.predict(blocks).compute(), found.predict(X), rtol=1e-10)
    assert not shards_left(client)


def test_the_tight_bound(client, small):
    X, y, qid = data("scattered", n_grades=3, long=300)
    expected = SVMRanker(bound="tight").fit(X, y, qid=qid)
    found = SVMRanker(bound="tight").fit(da.from_array(X, chunks=(300, D)), y, qid=qid)
    # Local minima: what both reach is about the same.
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-2)
    np.testing.assert_allclose(
        [found.C_, found.scale_, found.reach_], [expected.C_, expected.scale_, expected.reach_], rtol=1e-3
    )


@pytest.mark.parametrize("kind", ["words", "column", "weights of rows", "weights by query", "frame"])
def test_queries_and_weights(client, small, kind):
    X, y, qid = data("scattered")
    options, fit, own = {"bound": "convex", "C": 20.0, "tol": 1e-6}, {}, {}
    if kind == "words":
        qid = np.array([f"q{k}" for k in qid])
    if kind.startswith("weights"):
        weights = np.random.default_rng(1).integers(0, 4, 60).astype(float)
        fit["query_weight"] = weights[qid] if kind == "weights of rows" else dict(enumerate(weights.tolist()))
    expected = SVMRanker(**options).fit(X, y, qid=qid, **fit)
    blocks = da.from_array(X, chunks=(200, D))
    if kind == "column":
        own, blocks, qid = {"qid_column": 2}, da.from_array(np.insert(X, 2, qid, axis=1), chunks=(200, D + 1)), None
    elif kind == "frame":
        dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
        frame = pd.DataFrame(X, columns=list("abcde")).assign(q=[f"q{k}" for k in qid])
        own, blocks, qid = {"qid_column": "q"}, dd.from_pandas(frame, npartitions=4), None
    if kind == "frame":
        with pytest.warns(UserWarning, match="are not known"):
            found = SVMRanker(**options, **own).fit(blocks, y, **fit)
        assert found.feature_names_in_.tolist() == list("abcde")
    else:
        found = SVMRanker(**options, **own).fit(blocks, y, qid=qid, **fit)
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-5)
    assert found.n_queries_ == expected.n_queries_
    if own:
        np.testing.assert_allclose(found.predict(blocks).compute(), X @ found.coef_, rtol=1e-10)


def test_many_chunks_exchange_in_two_steps(client, small):
    X, y, qid = data("scattered")
    expected = SVMRanker(bound="convex", C=20.0, tol=1e-6).fit(X, y, qid=qid)
    found = SVMRanker(bound="convex", C=20.0, tol=1e-6).fit(da.from_array(X, chunks=(17, D)), y, qid=qid)
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-5)


def test_bad_input(client, small):
    X, y, qid = data("scattered")
    blocks, machine = da.from_array(X, chunks=(300, D)), SVMRanker(bound="convex", C=1.0)
    with pytest.raises(ValueError, match="X has 900 rows, but qid has 899"):
        machine.fit(blocks, y, qid=da.from_array(qid[1:]))
    with pytest.raises(ValueError, match=r"in chunk 1: y\[100\] is -1"):
        machine.fit(blocks, np.where(np.arange(N) == 400, -1, y), qid=qid)
    with pytest.raises(ValueError, match=r"in chunk 2: qid\[0\] is nan"):
        machine.fit(blocks, y, qid=np.where(np.arange(N) == 600, np.nan, qid))
    with pytest.raises(ValueError, match="y has 4 grades, but the loss 'ap'"):
        SVMRanker("ap").fit(blocks, np.arange(N) % 4, qid=qid)
    with pytest.raises(ValueError, match="none of the 59 queries has both"):
        machine.fit(blocks, np.zeros(N), qid=qid)
    with pytest.raises(ValueError, match=r"query_weight of query \d+ is 0 in one row and 1 in another"):
        machine.fit(blocks, y, qid=qid, query_weight=np.arange(N) % 2)
    with pytest.raises(ValueError, match="leave out one of them"):
        SVMRanker(qid_column=0).fit(blocks, y, qid=qid)
    with pytest.raises(ValueError, match="qid_column='q': X has 5 columns without names"):
        SVMRanker(qid_column="q").fit(blocks, y)
    spoilt = X.copy()
    spoilt[303, 2] = np.inf
    with pytest.raises(ValueError, match="chunk 1 of X has inf in its row 3, column 2"):
        machine.fit(da.from_array(spoilt, chunks=(300, D)), y, qid=qid)
    assert not shards_left(client)


def test_nothing_as_long_as_the_data_moves(client, monkeypatch):
    """Of sorted queries X stays where it is; messages of a fit are short beside its scores."""
    from rankhinge.dask import engine, lists

    X, y, qid = data()
    monkeypatch.setattr(lists, "exchanged", lambda pieces: pytest.fail("X was moved"))
    engines = []
    made = engine.DaskEngine.__init__

    def noted(self, *arguments):
        engines.append(self)
        made(self, *arguments)

    monkeypatch.setattr(engine.DaskEngine, "__init__", noted)
    SVMRanker(bound="convex", C=20.0).fit(da.from_array(X, chunks=(300, D)), y, qid=qid)
    # Two lists are cut by the borders of chunks; their scores travel, and weights and slopes.
    assert engines[0].bytes_back < engines[0].n_messages * 8 * (100 + 3 * D + 20)
