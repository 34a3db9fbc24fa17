"""Fits whose workers are killed, at every kind of moment: the same objective, soon, and no hang."""

from __future__ import annotations

import threading
import time
from functools import cache

import numpy as np
import pytest

from rankhinge import RankSVC
from tests.dask import clusters

da = pytest.importorskip("dask.array")
pytestmark = clusters.MARKS

N, D, N_CHUNKS = 20_000, 8, 8
OPTIONS = {"bound": "convex", "C": 100.0, "tol": 1e-9, "max_iter": 300}
# Seconds for a fit to go on, beside the tasks that make the shards anew: to find out that they are lost and where the
# new ones are, to connect, and to make scores and coefficients again.
SOON = 10.0
# Beside it: chunks are computed again, by workers that may have to start and to load the library, on a machine that may
# have other things to do.
HANGING = 120.0
INFERENCE = {"count", "refine", "ship", "finish"}


@pytest.fixture
def client():
    """Of its own for each test: a nanny whose worker dies while it starts gives up."""
    with clusters.started(2) as client:
        yield client


@cache
def data():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N, D))
    return X, (X @ rng.normal(size=D) + 2 * rng.normal(size=N) > 5).astype(int)


@cache
def expected():
    return RankSVC(**OPTIONS).fit(*data()).objective_


def slowly(block, seconds):
    time.sleep(seconds)
    return block


class Killing:
    """Kills workers at a message, or some seconds after it; notes when the fit goes on.

    `moment` is "between" messages (and the scheduler has noticed), "before" one that nobody expects to fail, "amid" one
    (its work is under way), or "inference": amid one that counts, refines, ships or finishes.
    """

    def __init__(self, monkeypatch, client, moment, place, delay=0.0, n_killed=1):
        from rankhinge.dask.engine import DaskEngine

        self.client, self.moment, self.place, self.delay, self.n_killed = client, moment, place, delay, n_killed
        self.killed = self.went_on = None
        self.recomputing, self.over = 0.0, threading.Event()
        self.n_messages = 0
        call = DaskEngine.call

        def noted(engine, batch, shards=None):
            if self.moment != "inference" or INFERENCE & {operation.method for operation in batch}:
                self.n_messages += 1
                if self.n_messages == self.place:
                    self._strike()
            replies = call(engine, batch, shards)
            if self.killed is not None and self.went_on is None and shards is None:
                self.went_on = time.monotonic()
            return replies

        def watched(engine, client, futures):
            threading.Thread(target=self._watch, args=(list(futures),), daemon=True).start()
            begin(engine, client, futures)

        begin = DaskEngine.__init__
        monkeypatch.setattr(DaskEngine, "__init__", watched)
        monkeypatch.setattr(DaskEngine, "call", noted)

    def _watch(self, futures):
        """How long the futures of shards are not there: nothing else of going on is recomputation."""
        before = time.monotonic()
        while self.went_on is None and not self.over.wait(0.005):
            now = time.monotonic()
            if self.killed is not None and any(future.status != "finished" for future in futures):
                self.recomputing += now - max(before, self.killed)
            before = now

    def _strike(self):
        if self.moment in ("amid", "inference"):
            threading.Timer(self.delay, self.kill).start()
            return
        self.kill()
        alive = len(self.client.cluster.workers) - self.n_killed
        while self.moment == "between" and len(self.client.scheduler_info(-1)["workers"]) > alive:
            time.sleep(0.02)

    def kill(self):
        clusters.kill_workers(self.client, self.n_killed)
        self.killed = time.monotonic()


def fit_and_check(client, killing, n_workers=2, seconds_a_chunk=0.0):
    X, y = data()
    wanted = expected()
    client.wait_for_workers(n_workers, timeout=60)
    rows = da.from_array(X, chunks=(N // N_CHUNKS, D))
    if seconds_a_chunk:
        rows = rows.map_blocks(slowly, seconds_a_chunk, dtype=X.dtype, meta=X[:0])
    with clusters.no_longer_than(240):
        try:
            found = RankSVC(**OPTIONS).fit(rows, y)
        finally:
            killing.over.set()
    assert found.objective_ == pytest.approx(wanted, rel=1e-9)
    assert found.status_ == "converged"
    assert killing.killed is not None, f"there were only {killing.n_messages} messages"
    # A kill after the last message is nobody's business.
    if killing.went_on is not None:
        waited = killing.went_on - killing.killed
        print(f"went on after {waited:.2f} s, of which shards were made anew for {killing.recomputing:.2f} s")
        assert waited - killing.recomputing < SOON
        assert waited < HANGING


# Moments, drawn once: a fit has about 60 messages, half of them inference, each of some milliseconds.
_RNG = np.random.default_rng(0)
MOMENTS = [
    *(("between", int(place), 0.0) for place in _RNG.integers(1, 55, 4)),
    *(("before", int(place), 0.0) for place in _RNG.integers(1, 55, 4)),
    *(("amid", int(place), float(_RNG.uniform(0, 0.004))) for place in _RNG.integers(1, 55, 4)),
    *(("inference", int(place), float(_RNG.uniform(0, 0.004))) for place in _RNG.integers(1, 25, 4)),
]
BUILDING = _RNG.uniform(0.1, 1.5, 4).tolist()


def test_killed_between_messages(monkeypatch, client):
    fit_and_check(client, Killing(monkeypatch, client, "between", 12))


def test_killed_inside_an_inference(monkeypatch, client):
    fit_and_check(client, Killing(monkeypatch, client, "inference", 9, 0.001))


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "place", "delay"), MOMENTS)
def test_killed_at_any_moment(monkeypatch, client, moment, place, delay):
    fit_and_check(client, Killing(monkeypatch, client, moment, place, delay))


@pytest.mark.slow
@pytest.mark.parametrize("delay", BUILDING)
def test_killed_while_shards_are_built(monkeypatch, client, delay):
    killing = Killing(monkeypatch, client, "between", -1)
    threading.Timer(delay, killing.kill).start()
    fit_and_check(client, killing, seconds_a_chunk=0.3)


@pytest.mark.slow
@pytest.mark.parametrize(("moment", "place"), [("between", 20), ("inference", 12)])
def test_two_killed_at_once(monkeypatch, client, moment, place):
    """Both: their nannies start them again, which takes its time."""
    killing = Killing(monkeypatch, client, moment, place, 0.001, n_killed=2)
    fit_and_check(client, killing)


def test_the_only_worker(monkeypatch):
    with clusters.started(1) as client:
        killing = Killing(monkeypatch, client, "inference", 9, 0.001)
        fit_and_check(client, killing, n_workers=1)


@pytest.mark.slow
def test_killed_again_and_again(monkeypatch, client):
    """A worker that goes while the loss of another is being made good."""
    killing = Killing(monkeypatch, client, "inference", 5)
    for delay in (0.05, 0.4, 0.8):
        threading.Timer(delay + 1.0, killing.kill).start()
    fit_and_check(client, killing)
