"""Disks that are full or mounted for reading, and folders and files that are closed: real ones, in a process apart."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

# CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, by which the superuser goes past the modes of files.
RIGHTS = (1, 2)
PAGE, N_PAGES = 4096, 16
PROGRAM = """
import contextlib, io, json, os, sys
from rankhinge.cli import main
for arguments in json.loads(sys.argv[1]):
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
        code = main(arguments)
    print(json.dumps([code, errors.getvalue()]))
"""


def mounted(folder, options):
    """A shell's words before a command, by which it finds a small disk of its own in the folder."""
    if sys.platform != "linux" or shutil.which("unshare") is None:
        pytest.skip("needs unshare")
    mount = f"mount -t tmpfs -o size={N_PAGES * PAGE} tmpfs {folder} && cp {folder}.before/* {folder}"
    remount = f"mount -o remount,{options} {folder}"
    words = ["unshare", "-m", "sh", "-c", f'{mount} && {remount} && "$@" && cat {folder}/*', "sh"]
    if subprocess.run([*words, "true"], capture_output=True).returncode:
        pytest.skip("disks cannot be mounted here")
    return words


def outcomes(words, commands):
    done = subprocess.run(
        [*words, sys.executable, "-c", PROGRAM, json.dumps([[str(word) for word in command] for command in commands])],
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=None if words else closed,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    return [json.loads(line) for line in lines[: len(commands)]], lines[len(commands) :]


def closed():
    """Let the modes of files hold for the superuser, too."""
    import ctypes

    if os.geteuid() == 0:
        drop_from_bounding_set = 24
        for right in RIGHTS:
            ctypes.CDLL(None).prctl(drop_from_bounding_set, right, 0, 0, 0)


def writers(files, folder):
    """A command for each kind of file that there is, and where it is written to."""
    rows, test, model = files / "rows.txt", files / "fold" / "test.txt", files / "ranker.safetensors"
    return {
        folder / "m.safetensors": ["train", rows, "--C", 1, "-o", folder / "m.safetensors"],
        folder / "rows.npz": ["train", rows, "--C", 1, "-o", folder.parent / "m", "--save-data", folder / "rows.npz"],
        folder / "scores.txt": ["predict", model, test, "-o", folder / "scores.txt"],
        folder / "scores.run": ["predict", model, test, "--run", "mine", "-o", folder / "scores.run"],
        folder / "each.csv": ["evaluate", model, test, "--per-query", folder / "each.csv"],
        folder / "report.html": ["report", model, test, "-o", folder / "report.html"],
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [("rw", "no space left on device"), ("ro", "read-only file system")],
    ids=["full", "read-only"],
)
def test_disks(files, tmp_path, options, message):
    pytest.importorskip("jinja2")
    folder, before = tmp_path / "disk", tmp_path / "disk.before"
    folder.mkdir()
    before.mkdir()
    commands = writers(files, folder)
    for path in commands:
        (before / path.name).write_text(f"{path.name} as it was\n")
    # Each of the others takes a page, and this one takes the rest.
    (before / "zz").write_bytes(b"." * PAGE * ((N_PAGES - len(commands)) if options == "rw" else 1))
    found, left = outcomes(mounted(folder, options), list(commands.values()))
    assert found == [[3, f"rankhinge: {path}: cannot be written, {message}\n"] for path in commands]
    # What was there before is there still, and nothing else is.
    assert left[:-1] == sorted(f"{path.name} as it was" for path in commands)
    assert set(left[-1]) == {"."}


@pytest.mark.skipif(sys.platform != "linux", reason="the superuser gives up its rights by a call of Linux")
def test_closed_folder(files, tmp_path):
    pytest.importorskip("jinja2")
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o500)
    commands = writers(files, folder)
    found, _ = outcomes([], list(commands.values()))
    assert found == [[3, f"rankhinge: {path}: cannot be written, permission denied\n"] for path in commands]
    assert os.listdir(folder) == []


@pytest.mark.skipif(sys.platform != "linux", reason="the superuser gives up its rights by a call of Linux")
def test_closed_files(files, tmp_path):
    """Readers tell what they may not read."""
    model, rows = files / "ranker.safetensors", files / "rows.txt"
    commands, messages = [], []
    for name in ("rows.txt", "rows.npz", "rows.csv", "rows.parquet", "m.safetensors", "scores.run"):
        path = tmp_path / name
        path.write_bytes(b"content")
        path.chmod(0)
        commands.append(
            {"m.safetensors": ["predict", path, rows], "scores.run": ["evaluate", path, rows]}.get(
                name, ["predict", model, path]
            )
        )
        messages.append(f"rankhinge: {path}: ")
    found, _ = outcomes([], commands)
    for (code, errors), start in zip(found, messages, strict=True):
        assert code == 3
        assert errors.startswith(start)
        assert "permission denied" in errors
        assert errors.count("\n") == 1
