"""What is written: whole files under their names, and straight into what is no file."""

from __future__ import annotations

import os
import stat
import threading
from contextlib import suppress

import numpy as np
import pytest

import rankhinge
from rankhinge import datasets

pytestmark = pytest.mark.skipif(os.name != "posix", reason="devices, pipes and links are those of POSIX")


def test_a_pipe_is_written_to(tmp_path):
    pipe, found = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    with datasets.written(pipe) as file:
        file.write(b"1 1:2\n")
    reader.join(timeout=30)
    assert found == [b"1 1:2\n"]
    assert stat.S_ISFIFO(os.stat(pipe).st_mode)
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_device_is_not_replaced(tmp_path):
    """The superuser could replace a device. It tries one of its own, others the system's."""
    device = tmp_path / "null"
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.stat(os.devnull).st_rdev)
    except PermissionError:
        device = os.devnull
    try:
        with datasets.written(device) as file:
            file.write(b"nothing")
    except PermissionError:
        pytest.skip("there are no devices in this folder")
    assert stat.S_ISCHR(os.stat(device).st_mode)


def test_a_link_stays_a_link(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"before")
    link.symlink_to(target)
    with datasets.written(link) as file:
        file.write(b"after")
    assert link.is_symlink()
    assert target.read_bytes() == b"after"
    # A link to nothing makes the file that it names.
    target.unlink()
    with datasets.written(link) as file:
        file.write(b"again")
    assert target.read_bytes() == b"again"
    assert sorted(os.listdir(tmp_path)) == ["link", "target"]


def test_folders_are_refused(tmp_path):
    data = datasets.LetorData(np.eye(2), np.array([0.0, 1.0]))
    model = rankhinge.RankSVC(bound="convex").fit([[0.0], [1.0], [2.0]], [0, 0, 1])
    for write in (lambda path: datasets.save_npz(path, data), lambda path: rankhinge.save(model, path)):
        with pytest.raises(IsADirectoryError, match=str(tmp_path)):
            write(tmp_path)
    assert os.listdir(tmp_path) == []


def test_a_pipe_is_not_read(tmp_path):
    """Readers go over a file more than once."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def write():
        # Its reader is gone by then, or not yet.
        with suppress(BrokenPipeError):
            pipe.write_bytes(b"1 1:2\n")

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    with pytest.raises(datasets.DataError, match=r"this is a pipe, .*: write it to a file$"):
        datasets.load(pipe)
    writer.join(timeout=30)
