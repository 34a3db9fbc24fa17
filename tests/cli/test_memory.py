"""What a file may take in memory: four times its size and 500 MB for the whole process, whatever it claims to hold."""

from __future__ import annotations

import gzip
import json
import os
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")

ALLOWED = 500_000_000
# Python's own peak: `getrusage` would go on from that of the parent process.
PROGRAM = """
import re, sys
from rankhinge.cli import main
code = main(sys.argv[2:])
with open(sys.argv[1], "w") as file:
    file.write(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
sys.exit(code)
"""


def peak_of(folder, *arguments):
    """Exit code, standard error, and the most memory in bytes that the command had."""
    note = folder / "peak"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(note), *map(str, arguments)], capture_output=True, text=True, timeout=120
    )
    return done.returncode, done.stderr, int(note.read_text()) * 1024


def packed(path, block, n_blocks=512):
    """A gzip file that holds a block of a mebibyte many times."""
    with gzip.open(path, "wb", 9) as file:
        for _ in range(n_blocks):
            file.write(block)


def repeated(text):
    return (text * (1 + (1 << 20) // len(text)))[: 1 << 20]


def npz(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", bytes(1 << 30))


def parquet(path):
    """A gigabyte of equal numbers, which takes a few kilobytes."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    same = pyarrow.array(np.zeros(1 << 23))
    table = pyarrow.table({"label": same} | {f"f{k}": same for k in range(15)})
    parquet.write_table(table, path, row_group_size=1 << 23)


def model(path):
    """A header that tells of a tensor of a terabyte."""
    entry = {"coef_": {"dtype": "F64", "shape": [1 << 37], "data_offsets": [0, 1 << 40]}}
    header = json.dumps(entry).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(1000))


def header(path):
    """A header that says it has a terabyte itself."""
    path.write_bytes(struct.pack("<Q", 1 << 40) + b"{" + bytes(1000))


BOMBS = {
    "zeros": ("bomb.txt.gz", lambda path: packed(path, bytes(1 << 20))),
    "rows": ("bomb.txt.gz", lambda path: packed(path, repeated(b"0\n"))),
    "entries": ("bomb.txt.gz", lambda path: packed(path, repeated(b"1 1:1\n"))),
    "blank lines": ("bomb.txt.gz", lambda path: packed(path, repeated(b"\n"))),
    "one line": ("bomb.txt.gz", lambda path: packed(path, repeated(b" 1:1"))),
    "comments": ("bomb.txt.gz", lambda path: packed(path, repeated(b"1 1:1 # docid = a\n"))),
    "wide rows": ("bomb.txt", lambda path: path.write_text("1 2147483646:1\n0 1:1\n" * 1000)),
    "csv": ("bomb.csv.gz", lambda path: packed(path, repeated(b"label,a\n") + repeated(b"1,1\n"))),
    "npz": ("bomb.npz", npz),
    "parquet": ("bomb.parquet", parquet),
    "run": ("bomb.run.gz", lambda path: packed(path, repeated(b"q Q0 d 1 1.0 t\n"))),
    "scores": ("bomb.scores.gz", lambda path: packed(path, repeated(b"1.0\n"))),
    "tensor": ("bomb.safetensors", model),
    "header": ("bomb.safetensors", header),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_bombs(files, tmp_path, kind):
    name, make = BOMBS[kind]
    path = tmp_path / name
    make(path)
    good = files / "fold" / "test.txt"
    command = {
        "run": ["evaluate", path, good],
        "scores": ["evaluate", path, good],
        "tensor": ["predict", path, good],
        "header": ["predict", path, good],
    }.get(kind, ["train", path, "--C", "1", "-o", tmp_path / "m.safetensors"])
    code, errors, peak = peak_of(tmp_path, *command)
    assert (code, errors.count("\n")) == (3, 1), errors
    assert errors.startswith(f"rankhinge: {path}")
    assert peak <= 4 * os.path.getsize(path) + ALLOWED, f"{peak / 1e6:.0f} MB"
