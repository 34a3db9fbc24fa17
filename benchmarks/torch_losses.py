"""How long do ranking losses for PyTorch take, forward and backward, and how much memory?

``make bench ONLY=torch_losses`` measures all, prints ratios and verdicts, and writes ``results/torch_losses.json`` and
the page ``docs/benchmarks/torch_losses.md``. A trial: ``make bench ONLY=torch_losses ARGS=--quick``.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _torch_report as report
import torch
from _harness import ROOT, SCRATCH, machine_facts, median, race, ratio_to, write_json
from _tables import number_text, time_text, verdicts_as_json
from _torch_rivals import RIVALS, YARDSTICKS, call_of, yardstick
from _torch_trial import LONG, TOO_LARGE

SIZES = [384, 4096, 16_384, 262_144, 10**6]
QUICK_SIZES = [384, 4096]
LIMITS = {"seconds": 60, "gigabytes": 8.0}
# A call that takes longer is not repeated: the trial's own time is its figure.
ONCE = 20.0


def try_once(name: str, n: int) -> dict[str, Any]:
    """Seconds and peak memory of one call in a process of its own, or why there are none."""
    if not RIVALS[name].is_there:
        return {"failed": "missing"}
    arguments = [name, str(n), str(LIMITS["seconds"]), str(int(LIMITS["gigabytes"] * 1e9))]
    script = str(Path(__file__).with_name("_torch_trial.py"))
    done = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, check=False)
    if done.returncode == -signal.SIGALRM:
        return {"failed": "time"}
    # SIGKILL: the system itself ran out of memory.
    if done.returncode in (TOO_LARGE, -signal.SIGKILL):
        return {"failed": "memory"}
    if done.returncode:
        raise RuntimeError(f"{name} failed at n = {n}:\n{done.stderr}")
    return json.loads(done.stdout)


def tried(names: list[str], n: int, earlier: dict[str, str]) -> dict[str, dict[str, Any]]:
    """One trial each, three of long lists; who has failed at a smaller size is not tried again."""
    found = {}
    for name in names:
        found[name] = {"failed": earlier[name]} if name in earlier else try_once(name, n)
        if "failed" in found[name]:
            earlier[name] = found[name]["failed"]
        elif n >= LONG:
            # How much of what is freed the allocator returns at once is a matter of luck: a median, of three processes.
            found[name]["peak"] = median([found[name]["peak"], *(try_once(name, n).get("peak") for _ in range(2))])
    return found


def measure(over: str, n: int, rounds: int, budget: float, earlier: dict[str, str]) -> list[report.Cell]:
    names = [name for name, rival in RIVALS.items() if rival.over == over]
    trials = tried(names, n, earlier)
    yard = YARDSTICKS[over]
    short = [name for name in names if trials[name].get("seconds", ONCE) < ONCE]
    calls: dict[str, Callable[[], Any]] = {name: call_of(name, n) for name in short}
    calls[yard] = yardstick(over, n)
    for call in calls.values():  # what is compiled or loaded late
        call()
    seconds = race(calls, rounds, budget)
    cells: list[report.Cell] = []
    for name in [yard, *names]:
        cell: report.Cell = {"rival": name, "over": over, "n": n, **trials.get(name, {})}
        if name in seconds:
            cell["median"] = median(seconds[name])
            cell["to_yardstick"] = ratio_to(seconds[name], seconds[yard])
        elif "seconds" in cell:
            cell["median"] = cell["seconds"]
            cell["to_yardstick"] = {"ratio": cell["seconds"] / median(seconds[yard])}
        cells.append(cell)
        print_cell(cell)
    return cells


def print_cell(cell: report.Cell) -> None:
    text = report.outcome(cell, LIMITS) or time_text(cell["median"])
    ratio = f", {number_text(cell['to_yardstick']['ratio'])} times the yardstick" if "to_yardstick" in cell else ""
    memory = f", peak {report.megabytes(cell['peak'])}" if "peak" in cell else ""
    print(f"n = {cell['n']}, {cell['rival']}: {text}{ratio}{memory}", flush=True)


def measure_all(quick: bool, sizes: list[int]) -> dict[str, Any]:
    rounds, budget = (3, 0.3) if quick else (15, 6.0)
    cells: list[report.Cell] = []
    earlier: dict[str, str] = {}
    for n in sizes:
        for over in YARDSTICKS:
            # Pairs of a quarter of a million embeddings are out of reach for everyone.
            if over == "list" or n <= 100_000:
                cells += measure(over, n, rounds, budget, earlier)
    return {
        "machine": machine_facts("rankhinge", "torch", "numpy", "numba"),
        "threads": torch.get_num_threads(),
        "quick": quick,
        "limits": LIMITS,
        "cells": cells,
    }


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="short lists and few rounds: a trial")
    parser.add_argument("--sizes", nargs="+", type=int, metavar="N", help="lengths to measure: 384 4096 …")
    parser.add_argument("--output", type=Path, help="folder for all files, the page included")
    parser.add_argument("--redraw", action="store_true", help="the page anew, from the results there are")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    is_published = not (arguments.quick or arguments.sizes or arguments.output)
    folder = arguments.output or (ROOT / "benchmarks" / "results" if is_published else SCRATCH)
    page = ROOT / "docs" / "benchmarks" / "torch_losses.md" if is_published else folder / "torch_losses.md"
    folder.mkdir(parents=True, exist_ok=True)
    page.parent.mkdir(parents=True, exist_ok=True)
    results_file = folder / "torch_losses.json"
    if arguments.redraw:
        results = json.loads(results_file.read_text("utf-8"))
    else:
        results = measure_all(arguments.quick, arguments.sizes or (QUICK_SIZES if arguments.quick else SIZES))
    verdicts = report.judge(results)
    write_json(results_file, {**results, "verdicts": verdicts_as_json(verdicts)})
    text = report.page(results, verdicts)
    page.write_text(text, encoding="utf-8")
    print("\n" + text.partition("## Remarks")[0])
    print(f"written: {results_file.name} in {folder.name}, {page.name} in {page.parent.name}")


if __name__ == "__main__":
    main()
