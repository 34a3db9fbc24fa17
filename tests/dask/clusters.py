"""Workers in processes of their own, on loopback, which tests start and kill."""

from __future__ import annotations

import signal
import threading
import time
from contextlib import contextmanager

import pytest

distributed = pytest.importorskip("distributed")

MARKS = [
    pytest.mark.dask,
    # Workers that are killed leave sockets behind.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:Sending large graph"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


@contextmanager
def started(n_workers, **options):
    """A client of so many workers, each with a nanny that starts it again."""
    own = {"processes": True, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with (
        distributed.LocalCluster(n_workers=n_workers, **own, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def kill_workers(client, n_killed=1):
    """`kill -9`, at once, of the processes of some workers."""
    for nanny in list(client.cluster.workers.values())[:n_killed]:
        nanny.process.process._process.kill()


# Of shards, and of what they are made of.
KEYS = ("build", "_build", "_cut", "_joined", "_read")


def shards_left(client):
    """Keys of shards on the workers."""
    return left(client, KEYS)


def left(client, names):
    """Keys on the workers that begin so; the scheduler lets go of futures a little later."""
    for _ in range(50):
        held = client.run(lambda dask_worker: [key for key in dask_worker.data if str(key).startswith(names)])
        if not any(held.values()):
            return []
        time.sleep(0.1)
    return held


@contextmanager
def no_longer_than(seconds):
    """What hangs is interrupted, and fails."""

    def stop(*_):
        raise AssertionError(f"still waiting after {seconds} seconds")

    assert threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
