"""The cells of an experiment: kept as they end, computed once, told apart by the commit."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def harness(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT / "experiments"))
    before = list(sys.path)
    module = importlib.import_module("_run")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "commit_of_code", lambda: "abc1234")
    yield module
    sys.path[:] = before


def test_what_is_done_is_not_done_again(harness):
    first = harness.Run("trial")
    assert first.cell("a", lambda: 1) == 1
    with pytest.raises(KeyboardInterrupt):
        first.cell("b", interrupted)
    again = harness.Run("trial")
    assert again.cell("a", lambda: pytest.fail("computed twice")) == 1
    assert again.cell("b", lambda: 2) == 2
    assert again.keys() == ["a", "b"]
    assert harness.Run("trial", anew=True).keys() == []


def interrupted():
    raise KeyboardInterrupt


def test_time_of_a_cell_within_a_cell_counts_once(harness, monkeypatch):
    clock = iter(range(1000))
    monkeypatch.setattr(harness.time, "perf_counter", lambda: float(next(clock)))
    run = harness.Run("trial")
    run.cell("outer", lambda: run.cell("inner", lambda: 1))
    cells = json.loads(run.path.read_text("utf-8"))["cells"]
    assert sum(cell["seconds"] for cell in cells.values()) == pytest.approx(cells["outer"]["seconds"] + 1)
    assert cells["inner"]["seconds"] == 1


def test_pages_name_the_commit_and_what_is_not_committed(harness, monkeypatch):
    run = harness.Run("trial")
    run.cell("a", lambda: 1)
    assert "commit `abc1234` (1 cells)" in run.provenance()
    monkeypatch.setattr(harness, "commit_of_code", lambda: "def5678+")
    again = harness.Run("trial")
    again.cell("b", lambda: 1)
    assert "`def5678+` (1 cells)" in again.provenance()
    assert "not committed" in again.provenance()


def test_only_some_cells(harness):
    run = harness.Run("trial", only=["b"])
    assert run.cell("a", lambda: 1) is None
    assert run.cell("b", lambda: 2) == 2


def test_paired_differences(harness):
    text = harness.compared([0.5, 0.6, 0.7], [0.4, 0.5, 0.65])
    assert text.startswith("+8.33 ± 1.67 points over 3 pairs")
    assert harness.compared([0.5, 0.6], [0.5, 0.6]) == "+0.00 points"
