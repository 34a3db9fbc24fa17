"""A fit taken up again from its file: fewer passes, the same minimum; and files that are refused."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from rankhinge.solvers import make_solver
from rankhinge.solvers.checkpoint import Checkpoint, CheckpointError

from .helpers import ListsObjective, random_problem

MARK = {"shape": "(400, 30)", "C": "1000.0"}


def problem(K=2):
    X, relevant = random_problem(3, n=150, d=20, K=K)
    return ListsObjective(X, relevant)


def solver_of(name, objective, saved=None, tol=1e-6):
    options = {} if saved is None else {"start": saved.coef, "planes": saved.planes}
    return make_solver(name, objective, np.full(2, 1e3), tol=tol, max_iter=2000, random_state=0, **options)


@pytest.mark.parametrize("name", ["bundle", "quasi-newton", "cutting-plane"])
@pytest.mark.parametrize("share", [0.3, 0.7, 1.0])
def test_goes_on_where_it_was(tmp_path, name, share):
    whole = solver_of(name, problem())
    result = whole.run()
    killed = solver_of(name, problem())
    file = Checkpoint(tmp_path / "fit.ckpt", MARK)
    file.interval = 0.0
    assert file.load() is None
    for _ in range(max(2, int(share * result.n_iter.max()))):
        killed.step()
        file.note(killed, killed.result, {"C_": killed.C})
    saved = Checkpoint(tmp_path / "fit.ckpt", MARK).load()
    np.testing.assert_array_equal(saved.coef, killed.result().coef)
    np.testing.assert_array_equal(saved.chosen["C_"], [1e3, 1e3])
    again = saved.resume(solver_of(name, problem(), saved))
    found = again.run()
    assert (found.status == "converged").all()
    assert found.n_passes < result.n_passes
    # Each bound below each value: the planes of the file are as good as those of the fit.
    assert (found.dual_objective <= result.objective * (1 + 1e-12)).all()
    assert (result.dual_objective <= found.objective * (1 + 1e-12)).all()
    both = saved.and_then(found)
    assert both.n_passes == killed.n_passes + found.n_passes
    assert both.history["primal"].shape[1] == killed.n_iter.max() + found.history["primal"].shape[1]
    assert (np.diff(both.history["passes"], axis=1) >= 0).all()


def test_written_only_now_and_then(tmp_path):
    solver, file = solver_of("bundle", problem()), Checkpoint(tmp_path / "a", MARK)
    solver.step()
    file.note(solver, solver.result, {})
    assert os.listdir(tmp_path) == []
    file.write(solver, solver.result(), {})
    assert os.listdir(tmp_path) == ["a"]


def written(tmp_path):
    solver = solver_of("bundle", problem())
    solver.step()
    file = Checkpoint(tmp_path / "fit.ckpt", MARK)
    file.write(solver, solver.result(), {"C_": solver.C})
    return tmp_path / "fit.ckpt"


def test_another_fit_is_named(tmp_path):
    path = written(tmp_path)
    with pytest.raises(CheckpointError, match=r"C 1000\.0 there, 1\.0 here"):
        Checkpoint(path, MARK | {"C": "1.0"}).load()
    with pytest.raises(CheckpointError, match=r"rows None there, abc here"):
        Checkpoint(path, MARK | {"rows": "abc"}).load()


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_truncated(tmp_path, share):
    path = written(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(CheckpointError, match="not a checkpoint, or it is damaged"):
        Checkpoint(path, MARK).load()


def test_flipped_bits_change_no_number(tmp_path):
    path = written(tmp_path)
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    original, n_seen = Checkpoint(path, MARK).load(), 0
    for place in rng.integers(0, len(whole), 300):
        spoilt = bytearray(whole)
        spoilt[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(spoilt)
        try:
            got = Checkpoint(path, MARK).load()
        except CheckpointError:
            n_seen += 1
            continue
        # What carries no numbers: dates, and sizes that the archive keeps twice.
        np.testing.assert_array_equal(got.coef, original.coef)
        for one, two in zip(got.planes, original.planes, strict=True):
            np.testing.assert_array_equal(one.slopes, two.slopes)
            np.testing.assert_array_equal(one.offsets, two.offsets)
    assert n_seen > 100


def test_foreign_files(tmp_path):
    path = tmp_path / "fit.ckpt"
    np.savez(path, a=np.ones(3))
    os.replace(f"{path}.npz", path)
    with pytest.raises(CheckpointError, match="not a checkpoint"):
        Checkpoint(path, MARK).load()
    with open(path, "wb") as file:
        np.savez(file, meta=np.frombuffer(json.dumps({"format": "other 7"}).encode(), np.uint8))
    with pytest.raises(CheckpointError, match="the format is 'other 7'"):
        Checkpoint(path, MARK).load()
    with open(path, "wb") as file:
        np.savez(file, meta=np.array([{"a": 1}], dtype=object))
    with pytest.raises(CheckpointError, match="not a checkpoint"):
        Checkpoint(path, MARK).load()
    with pytest.raises(CheckpointError, match="there is no folder"):
        Checkpoint(tmp_path / "none" / "fit.ckpt", MARK)


def test_a_full_disk_leaves_the_fit_and_the_older_file(tmp_path, monkeypatch):
    path = written(tmp_path)
    before = path.read_bytes()

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    solver, file = solver_of("bundle", problem()), Checkpoint(path, MARK)
    solver.step()
    with pytest.warns(RuntimeWarning, match="was not written: .*No space left"):
        file.write(solver, solver.result(), {})
    file.write(solver, solver.result(), {})  # once is enough
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["fit.ckpt"]
