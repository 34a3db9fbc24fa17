"""`RankSVC` on workers in processes of their own: against memory, with bad input, and with workers that are killed."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from scipy import sparse

from rankhinge import RankSVC, SVMRanker

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.dask,
    # Workers that are killed leave sockets behind.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:Sending large graph"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
N, D = 3000, 8


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def data(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    scores = X @ rng.normal(size=(D, 3)) + 2 * rng.normal(size=(n, 3))
    return X, scores


def shards_left(client):
    """Keys of shards on the workers; the scheduler lets go of futures a little later."""
    for _ in range(50):
        held = client.run(lambda dask_worker: [key for key in dask_worker.data if key.startswith("build")])
        if not any(held.values()):
            return []
        time.sleep(0.1)
    return held


CHUNKS = {"uneven": ((1, 999, 0, 1500, 500), D), "one": ((N,), D), "even": ((500,) * 6, D)}


@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("options", [{"bound": "convex", "C": 10.0}, {"bound": "tight"}], ids=["convex", "tight"])
def test_as_in_memory(client, chunks, options):
    X, scores = data()
    y = (scores[:, 0] > 4).astype(int)
    tol = 1e-8 if options["bound"] == "convex" else 1e-3
    expected = RankSVC(tol=tol, **options).fit(X, y)
    found = RankSVC(tol=tol, **options).fit(da.from_array(X, chunks=CHUNKS[chunks]), da.from_array(y, chunks=700))
    assert found.gap_ <= tol
    if options["bound"] == "convex":
        assert found.objective_ == pytest.approx(expected.objective_, rel=1e-6)
        assert found.dual_objective_ <= expected.objective_
        assert expected.dual_objective_ <= found.objective_
    else:
        # Local minima: what both reach is about the same.
        assert found.objective_ == pytest.approx(expected.objective_, rel=1e-2)
    assert set(vars(expected)) == set(vars(found))
    assert not shards_left(client)


@pytest.mark.parametrize("kind", ["multiclass", "multilabel"])
def test_many_problems(client, kind):
    X, scores = data()
    y = np.argmax(scores, axis=1) if kind == "multiclass" else (scores > 2).astype(int)
    options = {"bound": "convex", "C": 10.0, "tol": 1e-6}
    expected = RankSVC(**options).fit(X, y)
    found = RankSVC(**options).fit(da.from_array(X, chunks=(800, D)), da.from_array(y, chunks=900))
    np.testing.assert_allclose(found.objective_, expected.objective_, rtol=1e-5)
    np.testing.assert_allclose(found.slope_, expected.slope_, rtol=1e-2)
    lazy = found.predict(da.from_array(X, chunks=(800, D)))
    assert isinstance(lazy, da.Array)
    np.testing.assert_array_equal(lazy.compute(), found.predict(X))
    np.testing.assert_allclose(found.decision_function(da.from_array(X)).compute(), found.decision_function(X))


@pytest.mark.parametrize("kind", ["float32", "integers", "sparse"])
def test_containers(client, kind):
    X, scores = data()
    y = (scores[:, 0] > 4).astype(int)
    if kind == "sparse":
        whole = sparse.csr_array(np.where(np.abs(X) > 1, X, 0.0))
        blocks = da.from_array(whole.toarray(), chunks=(700, D)).map_blocks(sparse.csr_matrix)
    else:
        whole = X.astype(np.float32) if kind == "float32" else np.round(3 * X).astype(np.int16)
        blocks = da.from_array(whole, chunks=(700, D))
    options = {"bound": "convex", "C": 10.0, "tol": 1e-7}
    expected, found = RankSVC(**options).fit(whole, y), RankSVC(**options).fit(blocks, y)
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-6)


def test_bad_input(client):
    X, scores = data()
    y = (scores[:, 0] > 4).astype(int)
    spoilt = X.copy()
    spoilt[1234, 5] = np.nan
    chunked = da.from_array(X, chunks=(500, D))
    with pytest.raises(ValueError, match="chunk 2 of X has nan in its row 234, column 5"):
        RankSVC().fit(da.from_array(spoilt, chunks=(500, D)), y)
    with pytest.raises(ValueError, match=r"X\.rechunk\(\{1: -1\}\)"):
        RankSVC().fit(da.from_array(X, chunks=(500, 3)), y)
    with pytest.raises(ValueError, match="X has 3000 rows, but y has 2999"):
        RankSVC().fit(chunked, da.from_array(y[1:]))
    with pytest.raises(ValueError, match="one class only"):
        RankSVC().fit(chunked, np.zeros(N, int))
    with pytest.raises(ValueError, match="goes list by list"):
        RankSVC(bound="convex", solver="frank-wolfe").fit(chunked, y)
    with pytest.raises(ValueError, match="looks at the first places only"):
        RankSVC("precision@10").fit(chunked, y)
    with pytest.raises(ValueError, match=r"% of the workers' memory"):
        RankSVC().fit(da.zeros((10**9, 1000), chunks=(10**6, 1000)), da.zeros(10**9, chunks=10**6).astype(int) % 2)
    with pytest.raises(TypeError, match="SVMRanker takes arrays in memory"):
        SVMRanker().fit(chunked, y, qid=np.zeros(N))
    with pytest.raises(TypeError, match="score takes arrays in memory"):
        RankSVC().fit(X, y).score(chunked, y)
    with pytest.warns(UserWarning, match="are not known"):
        RankSVC(bound="convex", C=1.0).fit(chunked[chunked[:, 0] > -9.0], y)
    assert not shards_left(client)


def test_without_a_client(monkeypatch):
    def none():
        raise ValueError("no global client")

    monkeypatch.setattr(distributed, "get_client", none)
    X, scores = data(100)
    with pytest.raises(ValueError, match=r"no distributed\.Client"):
        RankSVC().fit(da.from_array(X), scores[:, 0] > 0)


class _Killer(threading.Thread):
    """Kills a worker of a cluster some time after it was started."""

    def __init__(self, cluster, delay, n_killed=1):
        super().__init__(daemon=True)
        self.cluster, self.delay, self.n_killed = cluster, delay, n_killed

    def run(self):
        time.sleep(self.delay)
        for nanny in list(self.cluster.workers.values())[: self.n_killed]:
            nanny.process.process._process.kill()


def _fit_while_killing(delay, n_workers=2, n_killed=1):
    X, scores = data(20_000, seed=1)
    y = (scores[:, 0] > 5).astype(int)
    options = {"bound": "convex", "C": 100.0, "tol": 1e-9, "max_iter": 300}
    expected = RankSVC(**options).fit(X, y)
    with (
        distributed.LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster),
    ):
        killer = _Killer(cluster, delay, n_killed)
        killer.start()
        found = RankSVC(**options).fit(da.from_array(X, chunks=(2500, D)), y)
        killer.join()
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-9)


@pytest.mark.parametrize(("delay", "n_workers", "n_killed"), [(0.5, 2, 1), (3.0, 2, 1), (2.0, 1, 1)])
def test_killed_workers(delay, n_workers, n_killed):
    """While shards are built, within the fit, and the only worker, which its nanny starts again."""
    _fit_while_killing(delay, n_workers, n_killed)


@pytest.mark.slow
@pytest.mark.parametrize("delay", np.random.default_rng(0).uniform(0, 8, 8).tolist())
@pytest.mark.parametrize("n_killed", [1, 2])
def test_killed_at_any_moment(delay, n_killed):
    _fit_while_killing(delay, 2, n_killed)
