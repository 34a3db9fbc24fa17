"""`kill -9` of the fitting process, at ten moments, with arrays in memory and on workers: what is left is taken up."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from rankhinge import RankSVC
from rankhinge.solvers import Checkpoint, CheckpointError
from tests.dask import clusters

da = pytest.importorskip("dask.array")
pytestmark = clusters.MARKS

HARD = {"bound": "convex", "C": 1e4, "tol": 1e-5}
TIGHT = {"bound": "tight", "reach": 3.0, "tol": 1e-4}
KINDS = {"convex": HARD, "tight": TIGHT}

CHILD = """
import sys
import dask.array as da
from distributed import Client
from rankhinge import RankSVC
from rankhinge.solvers import Checkpoint
from tests.dask.test_killed_fits import KINDS, data
if __name__ == "__main__":
    path, kind, address = sys.argv[1:]
    Checkpoint.interval = 0.0
    write = Checkpoint.write
    def told(self, *given):
        write(self, *given)
        print("written", flush=True)
    Checkpoint.write = told
    X, y = data()
    if address:
        client = Client(address)
        X, y = da.from_array(X, chunks=(1500, X.shape[1])), da.from_array(y, chunks=1500)
    RankSVC(checkpoint=path, **KINDS[kind]).fit(X, y)
"""


def data(n=6000, d=60):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=n) > 1.0).astype(int)


@pytest.fixture(scope="module")
def passes():
    """Of a fit from scratch, by kind and place."""
    return {}


def fitted(kind, on_workers, **options):
    X, y = data()
    if on_workers:
        X, y = da.from_array(X, chunks=(2000, X.shape[1])), da.from_array(y, chunks=2000)
    return RankSVC(**KINDS[kind], **options).fit(X, y)


def passes_of(path):
    file = Checkpoint(path, {})
    file._compare = lambda found: None
    return file.load().n_passes


# Drawn once: after how many writings, and how long after.
_RNG = np.random.default_rng(7)
MOMENTS = [(int(n), float(delay)) for n, delay in zip(_RNG.integers(1, 15, 10), _RNG.uniform(0, 0.03, 10))]


@pytest.mark.slow
@pytest.mark.parametrize("place", ["local", "dask"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n_writings", "delay"), MOMENTS)
def test_goes_on(tmp_path, client, passes, place, kind, n_writings, delay):
    path, on_workers = tmp_path / "fit.ckpt", place == "dask"
    if (kind, place) not in passes:
        passes[kind, place] = fitted(kind, on_workers).n_passes_
    address = client.scheduler.address if on_workers else ""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path), kind, address],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    lines = [child.stdout.readline() for _ in range(n_writings)]
    time.sleep(delay)
    child.send_signal(signal.SIGKILL)
    _, complaints = child.communicate()
    assert lines[0] == "written\n", complaints
    used = passes_of(path)
    # On chunks of another size.
    found = fitted(kind, on_workers, checkpoint=path)
    assert found.status_ == "converged"
    assert found.gap_ <= KINDS[kind]["tol"]
    assert found.n_passes_ - used < passes[kind, place]
    # Nothing of the process that was killed stays on the workers.
    assert not clusters.shards_left(client)


def test_a_foreign_file_on_workers(tmp_path, client):
    """Same shape and counts, other samples: what differs is named, and nothing of the file is believed."""
    X, y = data(600, 10)
    path = tmp_path / "fit.ckpt"

    def fit(X, y, n_rows=200, **options):
        X, y = da.from_array(X, chunks=(n_rows, 10)), da.from_array(y, chunks=n_rows)
        return RankSVC(bound="convex", C=10.0, checkpoint=path, **options).fit(X, y)

    first = fit(X, y)
    again = fit(X, y, n_rows=170)
    assert again.objective_ <= first.objective_ * (1 + 1e-12)
    for what, rows, labels, options in [
        ("rows", np.roll(X, 1, axis=1), y, {}),
        ("y", X, np.roll(y, 1), {}),
        ("type float64 there, float32 here", X.astype(np.float32), y, {}),
        ("loss 'ap' there, 'auc' here", X, y, {"loss": "auc"}),
    ]:
        with pytest.raises(CheckpointError, match=rf"of another fit: {what}"):
            fit(rows, labels, **options)
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(CheckpointError, match="damaged"):
        fit(X, y)
    assert not clusters.shards_left(client)


WRITER = """
import os, signal, sys
import numpy as np
from rankhinge import RankSVC
from rankhinge.solvers import Checkpoint
from tests.dask.test_killed_fits import HARD, data
Checkpoint.interval = 0.0
savez, count = np.savez, []
def half(file, **parts):
    count.append(1)
    if len(count) == 4:
        file.write(b"half of what was to be written")
        file.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    savez(file, **parts)
    if len(count) == 3:
        # The next one does not get as far as this.
        open(sys.argv[1] + ".third", "wb").write(open(file.name, "rb").read())
np.savez = half
RankSVC(checkpoint=sys.argv[1], **HARD).fit(*data())
"""


def test_the_older_file_survives_a_kill_while_writing(tmp_path):
    path = tmp_path / "fit.ckpt"
    child = subprocess.run([sys.executable, "-c", WRITER, str(path)], capture_output=True, text=True, check=False)
    assert child.returncode == -signal.SIGKILL, child.stderr
    assert (tmp_path / "fit.ckpt.partial").exists()
    assert path.read_bytes() == (tmp_path / "fit.ckpt.third").read_bytes()
    used = passes_of(path)
    found = fitted("convex", False, checkpoint=path)
    assert found.gap_ <= HARD["tol"]
    assert found.n_passes_ > used
    # What the killed one has left does not pile up.
    assert not (tmp_path / "fit.ckpt.partial").exists()
