"""The folder for compiled kernels belongs to the source as it stands."""

from __future__ import annotations

import os
import runpy
import time
from pathlib import Path

import pytest

TOOL = runpy.run_path(str(Path(__file__).resolve().parent.parent / "tools" / "numba_cache.py"))


@pytest.fixture
def folder_now(tmp_path):
    package = tmp_path / "package"
    (package / "room").mkdir(parents=True)
    (package / "kernel.py").write_text("from .room.step import step\n")
    (package / "room" / "step.py").write_text("step = 1\n")
    return lambda: TOOL["folder_of_source"](package, tmp_path / "caches"), package


def test_any_edit_changes_it(folder_now):
    now, package = folder_now
    first = now()
    assert now() == first
    (package / "room" / "step.py").write_text("step = 2\n")
    second = now()
    (package / "room" / "step.py").rename(package / "room" / "other.py")
    third = now()
    assert len({first, second, third}) == 3
    (package / "room" / "other.py").unlink()
    (package / "room" / "step.py").write_text("step = 1\n")
    assert now() == first


def test_only_those_unused_for_long_are_removed(folder_now):
    now, package = folder_now
    first = now()
    TOOL["prepare"](first)
    (package / "kernel.py").write_text("")
    second = now()
    TOOL["prepare"](second)
    assert first.is_dir()
    long_ago = time.time() - 2 * TOOL["KEEP_SECONDS"]
    os.utime(first, (long_ago, long_ago))
    os.utime(second, (long_ago, long_ago))
    TOOL["prepare"](second)
    assert second.is_dir()
    assert not first.exists()
