"""Damaged files of every kind through the command: exit code 0 or 3, one line, no traceback, no hang.

``RANKHINGE_MUTATIONS`` says how many of each kind; ``make test`` takes 500, ``make fuzz-files`` 10,000.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from rankhinge import datasets
from rankhinge.cli import main

N_MUTATIONS = int(os.environ.get("RANKHINGE_MUTATIONS", "500"))
# Text that is special to some reader.
WORDS = [
    b"nan",
    b"inf",
    b"NULL",
    b"1e400",
    b"-1",
    b":",
    b"qid:",
    b"#",
    b"\x00",
    b"\xff",
    b"\r\n",
    b"99999999999",
    b"{",
    b"PK",
]


def mutated(rng, content):
    """The content with some bytes changed, left out, doubled, replaced by special text, or cut off."""
    raw = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        at, until = sorted(rng.integers(0, len(raw) + 1, 2).tolist())
        match int(rng.integers(6)):
            case 0 if raw:
                raw[min(at, len(raw) - 1)] ^= 1 << int(rng.integers(8))
            case 1:
                raw[at : min(until, at + 20)] = b""
            case 2:
                raw[at:at] = raw[at : min(until, at + 40)]
            case 3:
                raw[at : at + 3] = WORDS[int(rng.integers(len(WORDS)))]
            case 4:
                raw[at:at] = rng.bytes(int(rng.integers(1, 9)))
            case _ if rng.random() < 0.3:
                del raw[at:]
    return bytes(raw)


@pytest.fixture(scope="module")
def originals(files, tmp_path_factory):
    """A small file of each kind, and the command that reads it."""
    folder = tmp_path_factory.mktemp("originals")
    lines = (files / "fold" / "test.txt").read_bytes().splitlines(keepends=True)
    small = folder / "small.txt"
    small.write_bytes(b"".join(lines[:24]))
    data = datasets.load(small)
    datasets.save_npz(folder / "small.npz", data)
    run = folder / "small.run"
    datasets.dump_run(run, qid=data.qid, scores=np.arange(24.0), document_ids=data.document_ids)
    model = files / "ranker.safetensors"
    found = {
        "svmlight": (small.read_bytes(), ".txt", lambda path: ["predict", model, path]),
        "gzip": (gzip.compress(small.read_bytes()), ".txt.gz", lambda path: ["predict", model, path]),
        "npz": ((folder / "small.npz").read_bytes(), ".npz", lambda path: ["predict", model, path]),
        "model": (model.read_bytes(), ".safetensors", lambda path: ["predict", path, small]),
        "run": (run.read_bytes(), ".run", lambda path: ["evaluate", path, small, "--metric", "ap"]),
    }
    with contextlib.suppress(ModuleNotFoundError):
        import pyarrow
        from pyarrow import parquet

        columns = {"label": data.y, "qid": data.qid, **{f"f{k}": np.asarray(data.X)[:, k] for k in range(4)}}
        parquet.write_table(pyarrow.table(columns), folder / "small.parquet")
        content = (folder / "small.parquet").read_bytes()
        found["parquet"] = (content, ".parquet", lambda path: ["predict", model, path])
    return found


KINDS = ["svmlight", "gzip", "npz", "model", "run", "parquet"]


def judge(code, errors, what):
    assert code in (0, 3), f"{what}: exit code {code}, {errors}"
    assert "Traceback" not in errors
    # Warnings come before the error, a line each.
    assert all(line.startswith("rankhinge: ") for line in errors.splitlines()), f"{what}: {errors}"
    assert (code == 3) == any(not line.startswith("rankhinge: warning: ") for line in errors.splitlines()), errors


@pytest.mark.parametrize("kind", KINDS)
def test_mutated_files(originals, tmp_path, kind):
    if kind not in originals:
        pytest.skip("pyarrow is not installed")
    content, ending, command = originals[kind]
    path = tmp_path / f"mutated{ending}"
    n_refused = 0
    for seed in range(N_MUTATIONS):
        path.write_bytes(mutated(np.random.default_rng(seed), content))
        out, errors = io.StringIO(), io.StringIO()
        began = time.monotonic()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            code = main([str(argument) for argument in command(path)])
        assert time.monotonic() - began < 5.0, f"seed {seed} hangs"
        judge(code, errors.getvalue(), f"{kind}, seed {seed}")
        n_refused += code == 3
    assert n_refused > N_MUTATIONS // 10


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_mutated_files_in_real_processes(originals, tmp_path, kind):
    if kind not in originals:
        pytest.skip("pyarrow is not installed")
    content, ending, command = originals[kind]
    path = tmp_path / f"mutated{ending}"
    for seed in range(100):
        path.write_bytes(mutated(np.random.default_rng(10**6 + seed), content))
        arguments = [sys.executable, "-m", "rankhinge", *map(str, command(path))]
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
        judge(done.returncode, done.stderr, f"{kind}, seed {seed}")


@pytest.mark.parametrize("kind", ["pickle", "text", "folder", "empty"])
def test_no_model_files(call, files, tmp_path, kind):
    path = tmp_path / "model.safetensors"
    if kind == "folder":
        path.mkdir()
    else:
        path.write_bytes({"pickle": b"\x80\x04N.", "text": b"1 qid:1 1:2\n", "empty": b""}[kind])
    done = call("predict", path, files / "rows.txt")
    assert done.code == 3
    assert done.err.startswith(f"rankhinge: {path}: ")
    expected = {"pickle": "is a pickle", "text": "no safetensors file", "folder": "folder", "empty": "is empty"}[kind]
    assert expected in done.err
