"""Workers that hang, and workers that take their time: every wait ends, and none ends too early."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
from scipy import sparse

from rankhinge import RankSVC
from rankhinge.objective.errors import EngineLostError
from tests.dask import clusters

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
pytestmark = clusters.MARKS

OPTIONS = {"bound": "convex", "C": 100.0, "tol": 1e-6}
# The deadline of these tests, and what a wait may take with it: it is asked four times in that time, and beside it the
# machine may have other things to do.
SECONDS = 5.0
ENDED = 90.0


def data(n=4000, d=6):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] + rng.normal(size=n) > 1.0).astype(int)


@pytest.fixture(scope="module")
def client():
    """Its workers have loaded the library, during which they are not heard."""
    with clusters.started(2) as client:
        X, y = data()
        RankSVC(bound="convex", C=1.0).fit(da.from_array(X, chunks=(500, 6)), y)
        yield client


@contextmanager
def stopped(client, n_stopped=1):
    """A function that stops some workers, which neither answer nor are gone; in the end they go on."""
    pids = list(client.run(os.getpid).values())[:n_stopped]
    try:
        yield lambda: [os.kill(pid, signal.SIGSTOP) for pid in pids]
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def at_message(monkeypatch, number, act):
    """Act before so many messages have been sent; when each was."""
    from rankhinge.dask.engine import DaskEngine

    call, seen = DaskEngine.call, []

    def noted(engine, *arguments):
        seen.append(time.monotonic())
        if len(seen) == number:
            act()
        return call(engine, *arguments)

    monkeypatch.setattr(DaskEngine, "call", noted)
    return seen


@contextmanager
def patience(seconds=SECONDS):
    with clusters.no_longer_than(ENDED), dask.config.set({"rankhinge.deadline": seconds}):
        yield


def test_a_worker_hangs_amid_a_fit(monkeypatch, tmp_path, client):
    X, y = data()
    rows, path = da.from_array(X, chunks=(500, 6)).persist(), tmp_path / "fit.ckpt"
    distributed.wait(rows)
    with stopped(client) as stop:
        seen = at_message(monkeypatch, 20, stop)
        message = rf"the worker tcp://\S+ has not been heard for {SECONDS:g} seconds.*the state so far is in {path}"
        with patience(), pytest.raises(EngineLostError, match=message):
            RankSVC(checkpoint=path, **OPTIONS).fit(rows, y)
        assert time.monotonic() - seen[19] >= SECONDS


@pytest.mark.slow
def test_workers_hang_before_a_fit(client):
    """Labels are read by tasks, which nobody takes."""
    X, y = data()
    rows = da.from_array(X, chunks=(500, 6))
    message = f"tasks are not done, and for {SECONDS:g} seconds no worker that is heard has been at work"
    with stopped(client, 2) as stop, patience():
        stop()
        with pytest.raises(EngineLostError, match=message):
            RankSVC(**OPTIONS).fit(rows, da.from_array(y, chunks=500))


@pytest.mark.slow
def test_a_worker_that_takes_no_plugin(client):
    from rankhinge.dask.calls import Messenger

    with stopped(client) as stop, patience():
        stop()
        with pytest.raises(EngineLostError, match="not all workers have taken a plugin"):
            Messenger(client)


@pytest.mark.slow
def test_lengths_that_nobody_finds(client):
    from rankhinge.dask.chunks import array_of

    X, _ = data()
    rows = da.from_array(X, chunks=(500, 6))
    with stopped(client, 2) as stop, patience():
        stop()
        with pytest.warns(UserWarning, match="are computed"), pytest.raises(EngineLostError, match="8 tasks"):
            array_of(rows[rows[:, 0] > 0], "X")


@pytest.mark.slow
def test_a_worker_that_hangs_and_is_given_up(monkeypatch, client):
    """Within the deadline: the fit goes on without it."""
    X, y = data()
    expected = RankSVC(**OPTIONS).fit(X, y).objective_
    pid = next(iter(client.run(os.getpid).values()))

    def hang():
        os.kill(pid, signal.SIGSTOP)
        threading.Timer(2.0, os.kill, (pid, signal.SIGKILL)).start()

    at_message(monkeypatch, 20, hang)
    with clusters.no_longer_than(2 * ENDED):
        found = RankSVC(**OPTIONS).fit(da.from_array(X, chunks=(500, 6)), y)
    assert found.objective_ == pytest.approx(expected, rel=1e-5)


def slowly(block):
    time.sleep(1.5)
    return block


@pytest.mark.slow
def test_work_may_take_longer_than_the_deadline(client):
    """Shards that take ten seconds, and workers that are heard all the time."""
    X, y = data()
    rows = da.from_array(X, chunks=(300, 6)).map_blocks(slowly, dtype=X.dtype, meta=X[:0])
    began = time.monotonic()
    with patience():
        assert RankSVC(**OPTIONS).fit(rows, y).status_ == "converged"
    assert time.monotonic() - began > 2 * SECONDS


def test_a_task_may_take_longer_than_the_deadline(client):
    from rankhinge.dask.waiting import Waiting

    with patience(1.0):
        assert Waiting(client).gather(client.map(lambda seconds: time.sleep(seconds) or seconds, [4.0])) == [4.0]


def test_a_deadline_that_is_none(client):
    X, y = data()
    with patience(0), pytest.raises(ValueError, match=r"rankhinge\.deadline of dask is 0 seconds: it must be positive"):
        RankSVC(**OPTIONS).fit(da.from_array(X, chunks=(500, 6)), y)


@pytest.mark.filterwarnings("ignore:unclosed")
def test_workers_within_this_process(monkeypatch):
    """Messages are not written to any connection then; and nobody's variables change."""
    monkeypatch.delenv("RANKHINGE_NUM_THREADS", raising=False)
    X, y = data()
    expected = RankSVC(**OPTIONS).fit(X, y)
    own = {"processes": False, "n_workers": 2, "threads_per_worker": 2, "dashboard_address": None}
    with distributed.Client(**own), clusters.no_longer_than(ENDED):
        rows = da.from_array(X, chunks=(500, 6))
        found = RankSVC(**OPTIONS).fit(rows, da.from_array(y, chunks=700))
        scores = found.decision_function(rows).compute()
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-5)
    np.testing.assert_allclose(scores, found.decision_function(X))
    assert "RANKHINGE_NUM_THREADS" not in os.environ


@pytest.mark.parametrize("inherited", ["", "7"])
def test_threads_of_a_worker(monkeypatch, inherited):
    """As many as dask gives it, whatever the variable that it has inherited says."""
    from rankhinge import _threads
    from rankhinge.dask import worker

    monkeypatch.setenv("RANKHINGE_NUM_THREADS", inherited)
    before, seen = _threads.n_threads(), []
    monkeypatch.setattr(worker, "execute", lambda shards, batch: seen.append(_threads.n_threads()))
    worker._one_at_a_time({}, [], 3)
    assert seen == [3]
    assert os.environ["RANKHINGE_NUM_THREADS"] == inherited
    assert _threads.n_threads() == before


def limits(monkeypatch, n_bytes):
    from rankhinge.dask.waiting import Waiting

    monkeypatch.setattr(Waiting, "memory_limits", lambda waiting: [n_bytes // 2] * 2)


def test_room_for_sparse_rows(monkeypatch, client):
    """By what the largest chunk takes, 12 bytes an entry and 4 a row."""
    X, y = data()
    blocks = da.from_array(X, chunks=(500, 6)).map_blocks(sparse.csr_matrix)
    with_entries, without = 4000 * (6 * 12 + 4 + 49), 4000 * 49
    limits(monkeypatch, int(0.9 * with_entries / 0.7))
    assert without < 0.9 * with_entries
    with pytest.raises(ValueError, match=r"the fit needs about 0\.000[45]\S* GB, and 70%"):
        RankSVC(**OPTIONS).fit(blocks, y)
    limits(monkeypatch, int(1.1 * with_entries / 0.7))
    assert RankSVC(**OPTIONS).fit(blocks, y).status_ == "converged"


def test_room_for_many_classes(monkeypatch, client):
    X, _ = data()
    y = np.arange(4000) % 20
    need = [4000 * (6 * 8 + 49 * n_problems) for n_problems in (1, 20)]
    limits(monkeypatch, int(2 * need[0] / 0.7))
    assert 2 * need[0] < need[1]
    with pytest.raises(ValueError, match=r"the fit needs about 0\.0041\S* GB"):
        RankSVC(**OPTIONS).fit(da.from_array(X, chunks=(500, 6)), y)
    assert not clusters.shards_left(client)
