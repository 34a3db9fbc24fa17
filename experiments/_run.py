"""What the experiments share: results cell by cell, a progress bar, and a page from what is there.

A *cell* is one figure of an experiment, under a key such as ``ap/phoning``. It is written to
``results/<name>.json`` as soon as it is known, together with the commit of the code that made it, so that a run that
was stopped continues where it was. The page is made of the cells alone.

A cell keeps a fingerprint of its settings: one that was made with other settings is made anew. Cells without one are
older than that; they are kept, and the run and the page say so.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# Data sets and tables are read and written as the benchmarks do it; experiments take these names from here.
sys.path.insert(0, str(ROOT / "benchmarks"))

import numpy as np  # noqa: E402
from _datasets import VOC_UNIT, MissingData, data_file, standardised  # noqa: E402
from _harness import machine_facts, write_json  # noqa: E402
from _tables import text_table  # noqa: E402
from scipy import stats  # noqa: E402

__all__ = [
    "ROOT",
    "SCRATCH",
    "VOC_UNIT",
    "MissingData",
    "Run",
    "compared",
    "data_file",
    "main",
    "mean_and_spread",
    "save_figure",
    "standardised",
    "text_table",
]

# Trials write here: git ignores it, and nobody takes it for results.
SCRATCH = ROOT / ".make" / "experiments"
_BAR = 24
# Seconds between two lines where there is no terminal to rewrite one on.
_LOG_INTERVAL = 10.0


def commit_of_code() -> str:
    """The commit of the working tree, with a plus where its code differs from it."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    changed = "+" if git("status", "--porcelain", "--", "src", "experiments/*.py", "benchmarks/*.py") else ""
    return (git("rev-parse", "--short", "HEAD") or "unknown") + changed


@contextmanager
def locked(name: str) -> Iterator[None]:
    """One process at a time writes these results; a process that is killed lets go."""
    path = ROOT / ".make" / "experiments" / f"{name}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        if sys.platform != "win32":
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def fingerprint(settings: Mapping[str, Any], key: str) -> str:
    """Of the settings whose name begins this key; empty where there are none."""

    def plain(value: Any) -> Any:
        if is_dataclass(value) and not isinstance(value, type):
            return asdict(value)
        raise TypeError(f"settings are numbers, strings, lists, mappings and dataclasses; this is a {type(value)}")

    mine = {prefix: value for prefix, value in settings.items() if key.startswith(prefix)}
    text = json.dumps(mine, sort_keys=True, default=plain)
    return hashlib.sha256(text.encode()).hexdigest()[:8] if mine else ""


def core_seconds() -> float:
    """Time of the processor that this process and those it waited for have had."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


class Run:
    """The cells of one experiment.

    Parameters
    ----------
    name : str
    quick : bool
        A trial: cells go to `SCRATCH`, and experiments are asked to be small.
    anew : bool
        Forget the cells there are.
    only : sequence of str
        Keys that contain none of these are not computed.
    fetch : bool
        Whether an experiment may fetch what is published as a package.
    settings : mapping
        What cells depend on, by the beginnings of their keys; ``""`` is for all of them. A cell that was made with
        others is forgotten.
    """

    def __init__(
        self,
        name: str,
        *,
        quick: bool = False,
        anew: bool = False,
        only: Sequence[str] = (),
        fetch: bool = False,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.name, self.quick, self.only, self.fetch = name, quick, tuple(only), fetch
        self.settings = dict(settings or {})
        self.folder = SCRATCH if quick else ROOT / "experiments" / "results"
        self.path = self.folder / f"{name}.json"
        known = self._written()
        self._cells: dict[str, dict[str, Any]] = {
            key: cell for key, cell in known.get("cells", {}).items() if not anew and self._fits(key, cell)
        }
        # What is forgotten must not come back from the file, which other runs write too.
        self._forgotten = {key: cell for key, cell in known.get("cells", {}).items() if key not in self._cells}
        self.facts: dict[str, Any] = {} if anew else known.get("facts", {})
        self.machine: dict[str, Any] = {} if anew else known.get("machine", {})
        self._commit = commit_of_code()
        self._seconds, self._core_seconds = 0.0, 0.0
        self._expected, self._done, self._began, self._shown = 0, 0, time.perf_counter(), 0.0

    def _written(self) -> dict[str, Any]:
        """What the file holds; a trial begins with nothing."""
        if self.quick or not self.path.exists():
            return {}
        content: dict[str, Any] = json.loads(self.path.read_text("utf-8"))
        return content

    def _fits(self, key: str, cell: Mapping[str, Any]) -> bool:
        """Whether a cell has these settings, or is from before settings were kept."""
        wanted = fingerprint(self.settings, key)
        return not wanted or cell.get("settings", wanted) == wanted

    def _take_others(self) -> None:
        """The cells that other runs of the same script have written meanwhile."""
        for key, cell in self._written().get("cells", {}).items():
            if key not in self._cells and cell != self._forgotten.get(key) and self._fits(key, cell):
                self._cells[key] = cell

    def notices(self) -> list[str]:
        """What whoever starts a run should know of the cells there are."""
        old = sum(bool(fingerprint(self.settings, key)) and "settings" not in cell for key, cell in self._cells.items())
        lines = [f"{len(self._forgotten)} cells of other settings or of old are made anew"] if self._forgotten else []
        return lines + ([f"{old} cells are kept that do not say with which settings they were made"] if old else [])

    def expect(self, n_cells: int) -> None:
        """So many cells are still to come: for the bar."""
        self._expected += n_cells

    def cell(self, key: str, compute: Callable[[], Any]) -> Any:
        """The value under this key, computed and written unless it is known; None where `only` leaves it out."""
        self._done += 1
        if key not in self._cells:
            self._take_others()
        if key not in self._cells:
            if self.only and not any(part in key for part in self.only):
                return None
            self._show(key)
            start, others = time.perf_counter(), self._seconds
            core_start, core_others = core_seconds(), self._core_seconds
            value = compute()
            # A cell may be made of others, whose time is theirs.
            own = time.perf_counter() - start - (self._seconds - others)
            own_core = core_seconds() - core_start - (self._core_seconds - core_others)
            self._seconds += own
            self._core_seconds += own_core
            self._cells[key] = {
                "value": value,
                "commit": self._commit,
                "seconds": round(own, 3),
                "core_seconds": round(own_core, 3),
                "settings": fingerprint(self.settings, key),
            }
            self.write()
        return self[key]

    def __getitem__(self, key: str) -> Any:
        return self._cells[key]["value"]

    def __contains__(self, key: str) -> bool:
        return key in self._cells

    def keys(self, prefix: str = "") -> list[str]:
        return [key for key in self._cells if key.startswith(prefix)]

    def write(self) -> None:
        """Write the cells, with those that other runs have written; the file is whole at any time."""
        self.machine = machine_facts("rankhinge", "numpy", "scipy", "numba", "sklearn")
        with locked(self.name):
            self._take_others()
            draft = self.path.with_suffix(".tmp")
            write_json(draft, {"machine": self.machine, "facts": self.facts, "cells": self._cells})
            draft.replace(self.path)

    def _show(self, key: str) -> None:
        """One line on standard error: a bar, the cell at hand and the time so far."""
        now = time.perf_counter()
        terminal = sys.stderr.isatty()
        if not terminal and now - self._shown < _LOG_INTERVAL and self._shown:
            return
        self._shown = now
        total = max(self._expected, self._done)
        full = _BAR * (self._done - 1) // total
        line = f"[{'#' * full}{'.' * (_BAR - full)}] {self._done}/{total}  {now - self._began:.0f} s  {key}"
        print(("\r\033[K" if terminal else "") + line, end="" if terminal else "\n", file=sys.stderr, flush=True)

    def provenance(self) -> str:
        """What a page says about where its figures come from."""
        commits = Counter(cell["commit"] for cell in self._cells.values())
        made = " and ".join(f"`{commit}` ({n} cells)" for commit, n in commits.most_common())
        # Each cell has its own commit.
        machine = ", ".join(f"{key} {value}" for key, value in self.machine.items() if key != "commit")
        plus = " A plus: with changes that were not committed yet." if any("+" in name for name in commits) else ""
        return (
            f"Generated from `experiments/results/{self.name}.json` by `make experiments ONLY={self.name}`; do not "
            f"edit by hand.\nCode: commit {made}.{plus} {self._times()}\nMachine: {machine}.\n"
        )

    def _times(self) -> str:
        """Time of one core and by the clock; a page whose cells are all older says what they know."""
        cells = list(self._cells.values())
        minutes = sum(cell["seconds"] for cell in cells) / 60
        timed = [cell["core_seconds"] for cell in cells if "core_seconds" in cell]
        if not timed:
            return f"{minutes:.0f} minutes in all."
        if len(timed) == len(cells):
            return f"{sum(timed) / 60:.0f} minutes of one core; {minutes:.0f} by the clock."
        return (
            f"{minutes:.0f} minutes by the clock. {len(timed)} cells took {sum(timed) / 60:.0f} minutes of one core; "
            "the others are older, and know neither that nor their settings."
        )


def main(
    name: str,
    text: str,
    work: Callable[[Run], None],
    page: Callable[[Run], str],
    settings: Mapping[str, Any] | None = None,
) -> None:
    """The command line of an experiment: compute what is missing, then write the page.

    `settings` are what the cells depend on, as `Run` takes them. A page is redrawn from all the cells there are.
    """
    parser = argparse.ArgumentParser(description=text.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a trial of some seconds; results go to .make/experiments")
    parser.add_argument("--redraw", action="store_true", help="the page from the results there are")
    parser.add_argument("--anew", action="store_true", help="forget the results there are")
    parser.add_argument("--only", nargs="+", default=(), metavar="TEXT", help="compute cells whose key contains one")
    parser.add_argument("--fetch", action="store_true", help="fetch data published as a package, by its client")
    options = parser.parse_args()
    known = None if options.redraw else settings
    run = Run(name, quick=options.quick, anew=options.anew, only=options.only, fetch=options.fetch, settings=known)
    warnings.simplefilter("ignore")
    if not options.redraw:
        print(*run.notices(), sep="\n", end="\n" if run.notices() else "", file=sys.stderr)
        try:
            work(run)
        except MissingData as error:
            print(f"skipped, {error}")
        except KeyboardInterrupt:
            print("\ninterrupted: what is done is kept; the same command continues from there", file=sys.stderr)
    if run.keys():
        target = (SCRATCH if options.quick else ROOT / "docs" / "experiments") / f"{name}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page(run).rstrip("\n") + "\n", encoding="utf-8")
        print(f"written: {target.relative_to(ROOT)}")


def compared(first: Sequence[float], second: Sequence[float]) -> str:
    """Mean difference of paired figures, in points, its standard error, and two paired tests."""
    a, b = 100 * np.asarray(first, float), 100 * np.asarray(second, float)
    if a.size < 2 or np.allclose(a, b):
        return f"{np.mean(a - b):+.2f} points"
    error = float(np.std(a - b, ddof=1) / np.sqrt(a.size))
    t, w = stats.ttest_rel(a, b).pvalue, stats.wilcoxon(a, b).pvalue
    return (
        f"{np.mean(a - b):+.2f} ± {error:.2f} points over {a.size} pairs (paired t-test p = {t:.2g}, Wilcoxon {w:.2g})"
    )


def mean_and_spread(values: Sequence[float]) -> str:
    """Mean and standard deviation, in points."""
    points = 100 * np.asarray(values, float)
    return f"{points.mean():.1f} ± {points.std(ddof=1):.1f}" if points.size > 1 else f"{points.mean():.1f}"


def save_figure(run: Run, figure: Any, name: str) -> str:
    """Write a figure of matplotlib beside the results; the Markdown path to it from the page."""
    path = run.folder / f"{name}.svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without a date and with fixed names inside: the same figure is the same file.
    figure.savefig(path, metadata={"Date": None})
    return path.name if run.quick else f"../../experiments/results/{path.name}"
