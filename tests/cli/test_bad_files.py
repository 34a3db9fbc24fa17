"""Damaged files of every kind through the command: exit code 0 or 3, one line, no traceback, no hang, little memory.

The files are those of `tests.fuzz_files`. ``RANKHINGE_MUTATIONS`` says how many of each kind, ``RANKHINGE_FIRST_SEED``
where they begin. ``make test`` takes 500, ``make fuzz`` and ``make fuzz-files`` 10,000, and 100 more of each in
processes of their own. On a quiet machine none may take 5 s of wall-clock time, a process its start included. On a busy
one `tests.watchdog.patience` says how many times as long.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import resource
import subprocess
import sys
import time

import pytest

from rankhinge.cli import main
from tests import fuzz_files
from tests.watchdog import no_longer_than, patience

N_MUTATIONS = int(os.environ.get("RANKHINGE_MUTATIONS", "500"))
FIRST_SEED = int(os.environ.get("RANKHINGE_FIRST_SEED", "0"))
# Seeds of the files for processes of their own: far from the others.
FIRST_OF_PROCESSES, N_PROCESSES = 10**6, 100
NEEDS = {"parquet": "pyarrow", "csv": "pyarrow"}


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A model, and data for it."""
    pytest.importorskip("safetensors")
    folder = tmp_path_factory.mktemp("good")
    for name, kind in (("model.safetensors", "model"), ("data.txt", "svmlight")):
        (folder / name).write_bytes(fuzz_files.seed_file(kind))
    # Compiles what there is to compile.
    assert main(command("svmlight", folder, folder / "data.txt")) == 0
    return folder


def command(kind, good, path):
    """The command that reads a file of this kind."""
    if kind == "model":
        return ["predict", str(path), str(good / "data.txt")]
    if kind == "run":
        return ["evaluate", str(path), str(good / "data.txt"), "--metric", "ap"]
    return ["predict", str(good / "model.safetensors"), str(path)]


@pytest.mark.parametrize("kind", fuzz_files.FORMATS)
def test_what_is_damaged_was_good(good, tmp_path, kind):
    pytest.importorskip(NEEDS.get(kind, "rankhinge"))
    path = tmp_path / f"good{fuzz_files.SUFFIX.get(kind, '.txt')}"
    content = fuzz_files.seed_file(kind)
    path.write_bytes(gzip.compress(content) if kind == "gzip" else content)
    assert main(command(kind, good, path)) == 0


def judge(code, errors, what):
    assert code in (0, 3), f"{what}: exit code {code}, {errors}"
    assert "Traceback" not in errors
    # Warnings come before the error, a line each.
    assert all(line.startswith("rankhinge: ") for line in errors.splitlines()), f"{what}: {errors}"
    assert (code == 3) == any(not line.startswith("rankhinge: warning: ") for line in errors.splitlines()), errors


def peak():
    """The most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.parametrize("kind", fuzz_files.FORMATS)
def test_mutated_files(good, tmp_path, kind):
    pytest.importorskip(NEEDS.get(kind, "rankhinge"))
    path = tmp_path / f"mutated{fuzz_files.SUFFIX.get(kind, '.txt')}"
    before, n_refused, longest = None, 0, 0.0
    for seed in range(FIRST_SEED, FIRST_SEED + N_MUTATIONS):
        size = path.write_bytes(fuzz_files.case(kind, seed))
        errors = io.StringIO()
        began = time.perf_counter()
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(errors),
            no_longer_than(fuzz_files.LONGEST * patience(), f"{kind}, seed {seed}"),
        ):
            code = main(command(kind, good, path))
        longest = max(longest, time.perf_counter() - began)
        judge(code, errors.getvalue(), f"{kind}, seed {seed}")
        # The first one brings libraries with it.
        before = peak() if before is None else before
        assert peak() - before <= 4 * size + fuzz_files.MEMORY, f"{kind}, seed {seed}: {(peak() - before) / 1e6:.0f} MB"
        n_refused += code == 3
    print(f"{kind}: {N_MUTATIONS - n_refused} read, {n_refused} refused, the slowest took {longest:.2f} s")
    assert n_refused > N_MUTATIONS // 10


@pytest.mark.slow
@pytest.mark.parametrize("kind", fuzz_files.FORMATS)
def test_mutated_files_in_real_processes(good, tmp_path, kind):
    pytest.importorskip(NEEDS.get(kind, "rankhinge"))
    path = tmp_path / f"mutated{fuzz_files.SUFFIX.get(kind, '.txt')}"
    n_refused, longest, most = 0, 0.0, 1.0
    for seed in range(FIRST_OF_PROCESSES, FIRST_OF_PROCESSES + N_PROCESSES):
        path.write_bytes(fuzz_files.case(kind, seed))
        arguments = [sys.executable, "-m", "rankhinge", *command(kind, good, path)]
        began, times = time.perf_counter(), patience()
        # What takes longer is killed, and fails.
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=fuzz_files.LONGEST * times)
        longest, most = max(longest, time.perf_counter() - began), max(most, times)
        judge(done.returncode, done.stderr, f"{kind}, seed {seed}")
        n_refused += done.returncode == 3
    print(
        f"{kind}: {N_PROCESSES} processes, {n_refused} refused, the slowest took {longest:.2f} s "
        f"(allowed: up to {most:.1f} times 5 s)"
    )
    assert n_refused > N_PROCESSES // 10


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
    causes = {"pickle": "is a pickle", "text": "not a safetensors file", "folder": "folder", "empty": "is empty"}
    assert causes[kind] in done.err
