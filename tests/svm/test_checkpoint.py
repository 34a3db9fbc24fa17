"""Fits that are killed and go on from their file."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from rankhinge import RankSVC, SVMRanker
from rankhinge.solvers import Checkpoint, CheckpointError
from rankhinge.svm import fit

CONVEX = {"bound": "convex", "C": 1e4, "tol": 1e-4}
TIGHT = {"bound": "tight", "reach": 3.0, "tol": 1e-4}


def data(n=600, d=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=n) > 1.0


class Stop(Exception):
    pass


def killed_after(monkeypatch, n_writings, machine, *arguments, **metadata):
    """A fit that dies once its file has been written so many times."""
    write, count = Checkpoint.write, []

    def counted(self, *given):
        write(self, *given)
        count.append(1)
        if len(count) == n_writings:
            raise Stop

    with monkeypatch.context() as patched:
        patched.setattr(Checkpoint, "interval", 0.0)
        patched.setattr(Checkpoint, "write", counted)
        with pytest.raises(Stop):
            machine.fit(*arguments, **metadata)


@pytest.mark.parametrize("options", [CONVEX, TIGHT], ids=["convex", "tight"])
@pytest.mark.parametrize("n_writings", [4, 12])
def test_a_fit_goes_on(monkeypatch, tmp_path, options, n_writings):
    X, y = data()
    whole = RankSVC(**options).fit(X, y)
    machine = RankSVC(checkpoint=tmp_path / "fit.ckpt", **options)
    killed_after(monkeypatch, n_writings, machine, X, y)
    assert not hasattr(machine, "coef_")
    used = _open(tmp_path / "fit.ckpt").load().n_passes
    machine.fit(X, y)
    assert machine.status_ == "converged"
    assert machine.gap_ <= options["tol"]
    # Both counters are those of the two runs together.
    assert machine.n_passes_ > used
    assert machine.n_passes_ - used < whole.n_passes_
    assert machine.n_iter_ == machine.history_["primal"].size
    if options is CONVEX:
        assert machine.dual_objective_ <= whole.objective_ * (1 + 1e-12)
        assert whole.dual_objective_ <= machine.objective_ * (1 + 1e-12)
    else:
        np.testing.assert_allclose(machine.init_coef_, whole.init_coef_, rtol=1e-12)
        assert machine.C_ == whole.C_


def _open(path):
    file = Checkpoint(path, {})
    file._compare = lambda found: None
    return file


def test_a_fit_that_has_ended_is_proved_again_in_few_passes(tmp_path):
    X, y = data()
    first = RankSVC(checkpoint=str(tmp_path / "fit.ckpt"), **CONVEX).fit(X, y)
    again = RankSVC(checkpoint=str(tmp_path / "fit.ckpt"), **CONVEX).fit(X, y)
    assert again.status_ == "converged"
    assert again.objective_ <= first.objective_
    assert again.n_passes_ - first.n_passes_ <= 6


def test_a_smaller_tol_and_more_time_go_on_from_the_same_file(tmp_path):
    X, y = data()
    options = CONVEX | {"tol": 1e-2}
    rough = RankSVC(checkpoint=tmp_path / "fit.ckpt", **options).fit(X, y)
    fine = RankSVC(checkpoint=tmp_path / "fit.ckpt", **(options | {"tol": 1e-5})).fit(X, y)
    assert fine.gap_ <= 1e-5
    assert fine.objective_ <= rough.objective_


def test_many_classes_and_lists(monkeypatch, tmp_path):
    X, _ = data()
    y = np.argmax(X[:, :3] + 0.5 * np.random.default_rng(1).normal(size=(600, 3)), axis=1)
    for number, (machine, metadata) in enumerate(
        [(RankSVC(**TIGHT), {}), (SVMRanker(**CONVEX), {"qid": np.repeat(np.arange(20), 30)})]
    ):
        machine.set_params(checkpoint=tmp_path / f"{number}.ckpt")
        killed_after(monkeypatch, 3, machine, X, y, **metadata)
        machine.fit(X, y, **metadata)
        assert (np.atleast_1d(machine.status_) == "converged").all()


@pytest.mark.parametrize("options", [CONVEX, TIGHT], ids=["convex", "tight"])
def test_problems_in_groups_keep_their_planes(monkeypatch, tmp_path, options):
    """One class after the other: those that had ended are proved again in a few passes."""
    monkeypatch.setattr(fit, "side_by_side", lambda objective, K: [np.array([k]) for k in range(K)])
    X, _ = data()
    y = np.argmax(X[:, :3] + 0.5 * np.random.default_rng(1).normal(size=(600, 3)), axis=1)
    machine = RankSVC(**options)
    whole = RankSVC(**options).fit(X, y)
    machine.set_params(checkpoint=tmp_path / "fit.ckpt")
    # Each step is written: this is in the middle of the last group.
    n_steps = int(np.sum(whole.n_iter_) - whole.n_iter_[-1] // 2)
    killed_after(monkeypatch, n_steps, machine, X, y)
    saved = _open(tmp_path / "fit.ckpt").load()
    assert all(planes.offsets.size for planes in saved.planes[:2])
    machine.fit(X, y)
    assert (machine.status_ == "converged").all()
    assert (machine.gap_ <= options["tol"]).all()
    assert machine.n_passes_ - saved.n_passes < 0.6 * whole.n_passes_
    if options is CONVEX:
        assert (machine.dual_objective_ <= whole.objective_ * (1 + 1e-12)).all()
        assert (whole.dual_objective_ <= machine.objective_ * (1 + 1e-12)).all()


def test_another_fit_is_refused_and_says_what_differs(tmp_path):
    X, y = data()
    RankSVC(checkpoint=tmp_path / "fit.ckpt", **CONVEX).fit(X, y)
    other = X.copy()
    other[0, 0] += 1
    for what, machine, rows, labels in [
        ("C 10000.0 there, 10.0 here", RankSVC(bound="convex", C=10.0, tol=1e-4), X, y),
        ("shape 600 x 40 there, 599 x 40 here", RankSVC(**CONVEX), X[1:], y[1:]),
        ("rows", RankSVC(**CONVEX), other, y),
        ("y ", RankSVC(**CONVEX), X, ~y),
        ("loss 'ap' there, 'ndcg' here", RankSVC(loss="ndcg", **CONVEX), X, y),
        ("type float64 there, float32 here", RankSVC(**CONVEX), X.astype(np.float32), y),
    ]:
        machine.set_params(checkpoint=tmp_path / "fit.ckpt")
        with pytest.raises(CheckpointError, match=what):
            machine.fit(rows, labels)
    (tmp_path / "fit.ckpt").write_bytes((tmp_path / "fit.ckpt").read_bytes()[:-100])
    with pytest.raises(CheckpointError, match="damaged"):
        RankSVC(checkpoint=tmp_path / "fit.ckpt", **CONVEX).fit(X, y)
    with pytest.raises(CheckpointError, match="there is no folder"):
        RankSVC(checkpoint=tmp_path / "none" / "fit.ckpt", **CONVEX).fit(X, y)


CHILD = """
import sys
import numpy as np
from rankhinge import RankSVC
from rankhinge.solvers import Checkpoint
from tests.svm.test_checkpoint import CONVEX, TIGHT, data
Checkpoint.interval = 0.0
write = Checkpoint.write
def told(self, *given):
    write(self, *given)
    print("written", flush=True)
Checkpoint.write = told
X, y = data(4000, 60)
RankSVC(checkpoint=sys.argv[1], **{"convex": CONVEX, "tight": TIGHT}[sys.argv[2]]).fit(X, y)
"""


@pytest.mark.parametrize("kind", ["convex", "tight"])
def test_a_process_that_is_killed(tmp_path, kind):
    """`kill -9` while the fit goes on, maybe while it writes."""
    path = tmp_path / "fit.ckpt"
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(path), kind], stdout=subprocess.PIPE, text=True)
    for _ in range(10):
        assert child.stdout.readline() == "written\n"
    time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    X, y = data(4000, 60)
    options = CONVEX if kind == "convex" else TIGHT
    machine = RankSVC(checkpoint=path, **options)
    before = _open(path).load().n_passes
    machine.fit(X, y)
    assert machine.status_ == "converged"
    assert machine.n_passes_ - before < RankSVC(**options).fit(X, y).n_passes_
