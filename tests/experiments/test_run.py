"""The cells of an experiment: kept as they end, computed once, told apart by the commit."""

from __future__ import annotations

import importlib
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Search:
    powers: tuple[int, ...]


def test_a_cell_of_other_settings_is_made_anew(harness):
    first = harness.Run("trial", settings={"": 1, "choice/": Search((1, 2))})
    first.cell("choice/a", lambda: "old")
    first.cell("test/a", lambda: "old")
    again = harness.Run("trial", settings={"": 1, "choice/": Search((1, 3))})
    assert again.keys() == ["test/a"]
    assert again.notices() == ["1 cells of other settings or of old are made anew"]
    assert again.cell("test/a", lambda: pytest.fail("its settings are the same")) == "old"
    # Writing does not bring back what was forgotten.
    again.cell("test/b", lambda: "new")
    assert harness.Run("trial").keys() == ["test/a", "test/b"]
    assert again.cell("choice/a", lambda: "new") == "new"
    same = harness.Run("trial", settings={"choice/": Search((1, 3)), "": 1})
    assert same.keys() == ["test/a", "test/b", "choice/a"]
    assert same.notices() == []


def test_cells_from_before_settings_were_kept(harness):
    path = harness.ROOT / "experiments" / "results" / "trial.json"
    path.parent.mkdir(parents=True)
    old = {"value": 1, "commit": "old1234", "seconds": 120.0}
    path.write_text(json.dumps({"machine": {}, "facts": {}, "cells": {"a": old}}))
    run = harness.Run("trial", settings={"": 1})
    assert run.cell("a", lambda: pytest.fail("it is kept")) == 1
    assert run.notices() == ["1 cells are kept that do not say with which settings they were made"]
    assert "2 minutes in all." in run.provenance()
    run.cell("b", lambda: 2)
    assert "2 minutes by the clock. 1 cells took 0 minutes of one core; the others are older" in run.provenance()


def test_settings_must_be_plain(harness):
    with pytest.raises(TypeError, match="settings are numbers"):
        harness.Run("trial", settings={"": object()}).cell("a", lambda: 1)


def test_both_clocks(harness, monkeypatch):
    clock = iter(range(0, 6000, 60))
    monkeypatch.setattr(harness, "core_seconds", lambda: float(next(clock)))
    run = harness.Run("trial")
    run.cell("outer", lambda: run.cell("inner", lambda: 1))
    cells = json.loads(run.path.read_text("utf-8"))["cells"]
    assert (cells["inner"]["core_seconds"], cells["outer"]["core_seconds"]) == (60, 120)
    assert "3 minutes of one core; 0 by the clock." in run.provenance()


def test_two_runs_at_once_lose_nothing(harness):
    first, second = harness.Run("trial"), harness.Run("trial")
    first.cell("a", lambda: 1)
    second.cell("b", lambda: 2)
    assert second.cell("a", lambda: pytest.fail("the other run has it")) == 1
    first.cell("c", lambda: 3)
    assert harness.Run("trial").keys() == ["a", "b", "c"]


def test_forgetting_all_keeps_what_another_run_makes_meanwhile(harness):
    harness.Run("trial").cell("a", lambda: "old")
    anew = harness.Run("trial", anew=True)
    harness.Run("trial").cell("b", lambda: "new")
    anew.cell("c", lambda: "new")
    assert sorted(harness.Run("trial").keys()) == ["b", "c"]


@pytest.mark.skipif(sys.platform == "win32", reason="locks of files are those of POSIX")
def test_writing_at_once(harness):
    n_cells = 20

    def write_many(name):
        run = harness.Run("trial")
        for number in range(n_cells):
            run.cell(f"{name}/{number}", lambda: name)

    with ThreadPoolExecutor() as pool:
        list(pool.map(write_many, "abc"))
    assert len(harness.Run("trial").keys()) == 3 * n_cells


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
