"""Nothing is loaded whole, and nothing of length n moves: a process with little memory, and a counter of bytes."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from rankhinge import RankSVC
from tests.dask import clusters

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")
pytestmark = clusters.MARKS

# 400 MB in chunks of 25 MB, and what the fitting process may have beside what it has when it begins.
N, D, N_CHUNKS, ROOM = 500_000, 100, 16, 200_000_000

CHILD = """
import resource, sys
import dask.array as da
import numpy as np
from distributed import Client
import rankhinge
from rankhinge import RankSVC
from tests.dask.test_size import D, N, ROOM, in_use, large

def limited():
    limit = in_use() + ROOM
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    try:
        np.ones((N, D))
    except MemoryError:
        return
    raise AssertionError("the limit is none")

def on_workers():
    with Client(sys.argv[2]):
        X, y = large(2000)
        # Libraries, kernels and threads are there before the limit is.
        RankSVC(bound="convex", C=1.0).fit(X, y).decision_function(X).sum().compute()
        limited()
        X, y = large(N)
        model = RankSVC(bound="convex", C=1.0, tol=1e-2).fit(X, y)
        scores = model.decision_function(X)
        assert isinstance(scores, da.Array) and scores.shape == (N,)
        print(model.status_, float(scores.sum().compute()), int(model.predict(X).sum().compute()))

def alone():
    import dask
    with dask.config.set(scheduler="synchronous"):
        X, y = large(2000)
        RankSVC(bound="convex", C=1.0).fit(rankhinge.spool(X, sys.argv[2] + "/small"), y.compute())
        limited()
        X, y = large(N)
        try:
            RankSVC().fit(X, y)
        except ValueError as error:
            assert "rankhinge.spool" in str(error), error
        else:
            raise AssertionError("fitted without a client")
        mapped = rankhinge.spool(X, sys.argv[2] + "/large")
        print(RankSVC(bound="convex", C=1.0, tol=1e-2).fit(mapped, y.compute()).status_)

if __name__ == "__main__":
    {"on_workers": on_workers, "alone": alone}[sys.argv[1]]()
"""


def in_use():
    """Bytes of data of this process, as the limit counts them."""
    with open("/proc/self/status") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmData"))


def large(n):
    X = da.random.default_rng(0).normal(size=(n, D), chunks=(-(-n // N_CHUNKS), D))
    return X, (X[:, 0] + X[:, 1] > 3).astype(int)


def run_child(*arguments):
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *arguments], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.split()


@pytest.mark.slow
def test_larger_than_the_memory_of_the_fitting_process(client):
    """It takes the positives' scores and counts, whatever the size of X."""
    status, total, n_called = run_child("on_workers", client.scheduler.address)
    assert status == "converged"
    assert np.isfinite(float(total))
    assert 0 < int(n_called) < N


@pytest.mark.slow
def test_without_a_client_it_is_spooled_in_chunks(tmp_path):
    assert run_child("alone", str(tmp_path)) == ["converged"]


class Counted:
    """Sizes of the messages of a fit, and of all that this process, the scheduler within, writes to any connection."""

    def __init__(self, monkeypatch):
        from distributed.comm.tcp import TCP

        from rankhinge.dask import calls

        self.out, self.back, self.written = [], [], 0
        packed, unpacked, write = calls._packed, calls._unpacked, TCP.write

        def noted_out(value):
            message = packed(value)
            self.out.append(len(message))
            return message

        def noted_back(message):
            self.back.append(len(message))
            return unpacked(message)

        async def noted_write(comm, *arguments, **options):
            n_bytes = await write(comm, *arguments, **options)
            self.written += n_bytes
            return n_bytes

        monkeypatch.setattr(calls, "_packed", noted_out)
        monkeypatch.setattr(calls, "_unpacked", noted_back)
        monkeypatch.setattr(TCP, "write", noted_write)


@pytest.mark.parametrize("bound", ["convex", pytest.param("tight", marks=pytest.mark.slow)])
def test_nothing_of_length_n_moves(monkeypatch, client, bound):
    n, d = 2_000_000, 2
    X = da.random.default_rng(0).normal(size=(n, d), chunks=(n // 4, d)).persist()
    y = (X[:, 0] + X[:, 1] > 5.2).astype(np.int8).persist()
    distributed.wait([X, y])
    between = sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())
    counted = Counted(monkeypatch)
    model = RankSVC(bound=bound, **({"C": 10.0} if bound == "convex" else {})).fit(X, y)
    assert model.status_ == "converged"
    # Not a byte for each sample in any message, and in all of them together less than one array of scores.
    assert max(counted.out) < n / 2
    assert max(counted.back) < n / 2
    assert sum(counted.out) + sum(counted.back) < 8 * n
    assert counted.written < 8 * n
    # Nor do workers send each other anything.
    now = sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())
    assert now - between < n / 2
