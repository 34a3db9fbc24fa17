"""The fitting side goes: Ctrl-C, a lost scheduler, a closed client. An end in time, and where to go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from rankhinge import RankSVC
from tests.dask import clusters

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
pytestmark = [
    *clusters.MARKS,
    # Futures of a lost scheduler.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]

HARD = {"bound": "convex", "C": 1e4, "tol": 1e-7, "max_iter": 500}
# The deadline that docs/scaling.md states for a scheduler that is lost, and for one that does not answer.
AT_ONCE, NO_ANSWER = 5.0, 30.0
# What takes longer hangs; a first fit compiles.
WAITING = 240


def data(n=4000, d=30):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=n) > 1.0).astype(int)


def at_message(monkeypatch, number, act):
    """Act once, before so many messages have been sent."""
    from rankhinge.dask.engine import DaskEngine

    call, seen = DaskEngine.call, []

    def counted(engine, *arguments):
        seen.append(time.monotonic())
        if len(seen) == number:
            act()
        return call(engine, *arguments)

    monkeypatch.setattr(DaskEngine, "call", counted)
    return seen


def soon(act, delay=0.005):
    return lambda: threading.Timer(delay, act).start()


@pytest.fixture(autouse=True)
def _listening():
    """A shell that runs tests in the background makes them ignore interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("number", [25, pytest.param(60, marks=pytest.mark.slow)])
def test_an_interrupt_leaves_the_best_model_and_no_shard(monkeypatch, client, number):
    X, y = data()
    rows, model = da.from_array(X, chunks=(1000, 30)), RankSVC(**HARD)
    with monkeypatch.context() as patched:
        at_message(patched, number, soon(interrupt))
        with clusters.no_longer_than(WAITING), pytest.raises(KeyboardInterrupt):
            model.fit(rows, y)
    assert model.status_ == "interrupted"
    assert 0 < model.objective_ < HARD["C"]
    assert model.dual_objective_ <= model.objective_
    assert model.coef_.any()
    assert not clusters.shards_left(client)
    # The same workers are ready for another fit.
    assert RankSVC(bound="convex", C=10.0).fit(rows, y).status_ == "converged"


def test_an_interrupt_while_shards_are_built(client):
    X, y = data()
    rows = da.from_array(X, chunks=(500, 30)).map_blocks(_slowly, dtype=X.dtype, meta=X[:0])
    threading.Timer(0.8, interrupt).start()
    with clusters.no_longer_than(WAITING), pytest.raises(KeyboardInterrupt):
        RankSVC(**HARD).fit(rows, y)
    assert not clusters.shards_left(client)


def _slowly(block):
    time.sleep(0.5)
    return block


CLUSTER = """
import sys, time
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0") as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""


@pytest.fixture
def elsewhere(tmp_path):
    """A scheduler in a process of its own, and a client."""
    script = tmp_path / "cluster.py"
    script.write_text(CLUSTER)
    child = subprocess.Popen([sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        with distributed.Client(child.stdout.readline().strip(), timeout=20) as client:
            yield child, client
            child.send_signal(signal.SIGCONT)
            child.kill()
    finally:
        child.kill()
        child.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 30])
@pytest.mark.parametrize("with_file", [True, False])
def test_the_scheduler_is_killed(monkeypatch, tmp_path, elsewhere, number, with_file):
    child, _ = elsewhere
    path = tmp_path / "fit.ckpt"
    X, y = data()
    seen = at_message(monkeypatch, number, child.kill)
    model = RankSVC(checkpoint=path if with_file else None, **HARD)
    with clusters.no_longer_than(WAITING), pytest.raises(RuntimeError, match=r"lost the scheduler|is closed") as raised:
        model.fit(da.from_array(X, chunks=(1000, 30)), y)
    assert time.monotonic() - seen[number - 1] < AT_ONCE
    assert not hasattr(model, "coef_")
    # Workers still answer for a moment. Before there is a solver there is nothing to write.
    assert (f"is in {path}" in str(raised.value)) == path.exists()
    assert path.exists() or not with_file or number == 1


@pytest.mark.slow
def test_the_scheduler_is_killed_while_shards_are_built(elsewhere):
    child, _ = elsewhere
    X, y = data()
    rows = da.from_array(X, chunks=(500, 30)).map_blocks(_slowly, dtype=X.dtype, meta=X[:0])
    threading.Timer(1.0, child.kill).start()
    began = time.monotonic()
    with clusters.no_longer_than(WAITING), pytest.raises((RuntimeError, OSError)):
        RankSVC(**HARD).fit(rows, y)
    assert time.monotonic() - began < AT_ONCE + 1.0


@pytest.mark.slow
def test_the_scheduler_does_not_answer(monkeypatch, tmp_path, elsewhere):
    """It is stopped, and a worker is killed: who could make its shards anew does not say a word."""
    child, client = elsewhere
    path = tmp_path / "fit.ckpt"
    pids = list(client.run(os.getpid).values())
    X, y = data()

    def strike():
        child.send_signal(signal.SIGSTOP)
        os.kill(pids[0], signal.SIGKILL)

    seen = at_message(monkeypatch, 30, strike)
    message = "the scheduler has not answered within 30 seconds.*the state so far is in"
    with clusters.no_longer_than(WAITING), pytest.raises(RuntimeError, match=message):
        RankSVC(checkpoint=path, **HARD).fit(da.from_array(X, chunks=(1000, 30)), y)
    assert time.monotonic() - seen[29] < NO_ANSWER + AT_ONCE


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 30])
def test_the_client_is_closed(monkeypatch, tmp_path, number):
    path = tmp_path / "fit.ckpt"
    X, y = data()
    with clusters.started(2) as client:
        rows = da.from_array(X, chunks=(1000, 30))
        seen = at_message(monkeypatch, number, soon(client.close))
        with clusters.no_longer_than(WAITING), pytest.raises(RuntimeError, match="the client is closed") as raised:
            RankSVC(checkpoint=path, **HARD).fit(rows, y)
        assert time.monotonic() - seen[number - 1] < AT_ONCE
        assert (f"is in {path}" in str(raised.value)) == (number > 1)
        monkeypatch.undo()
        with distributed.Client(client.cluster) as again:
            found = RankSVC(checkpoint=path, **HARD).fit(rows, y)
            assert found.gap_ <= HARD["tol"]
            assert not clusters.shards_left(again)
