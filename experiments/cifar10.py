"""Layer-wise training and stochastic gradients on CIFAR-10: 0-1, AP and NDCG losses after cross-entropy.

    make experiments ONLY=cifar10                     # some twenty minutes with two cores
    make experiments ONLY=cifar10 ARGS=--quick        # a trial of a minute or two on a few images
    make experiments ONLY=cifar10 ARGS=--redraw       # page and figure from the results there are

The setting of Mohapatra, Rolínek, Jawahar, Kolmogorov, Kumar: Efficient Optimization for Rank-based Loss Functions,
CVPR 2018, section 4.3, at a smaller scale. Only a full run writes to `results/` and `docs/`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import _cifar10_report as report
import numpy as np
import torch
from _cifar10_data import ROOT, MissingData, Part, load, split
from _cifar10_training import (
    GRADIENT_LOSSES,
    Settings,
    by_gradients,
    by_layers,
    inference_times,
    pretrain,
    quality,
)

# What benchmarks share, experiments need too.
sys.path.append(str(ROOT / "benchmarks"))
harness = importlib.import_module("_harness")

LAYERWISE_LOSSES = ("multiclass-hinge", "ap", "ndcg")
MOST_SEEDS = 3
QUICK = Settings(pretrain_epochs=2, block_size=150, max_passes=1, max_epochs=2, timing_block_sizes=(150, 600))


def run_seed(data: Part, test: Part, settings: Settings, seed: int, n_validation: int) -> list[dict[str, Any]]:
    """All ways of training from one pre-trained network, one row each."""
    train, validation = split(data, seed, n_validation)
    began = time.perf_counter()
    start = pretrain(train, settings, seed)
    rows = [{"seed": seed, "way": "start", "loss": "cross-entropy", "seconds": time.perf_counter() - began}]
    rows[0]["test"] = quality(start, test)
    report.tell(rows[-1])
    # AP first: its time is what the others are given.
    for loss in sorted(LAYERWISE_LOSSES):
        network, facts = by_layers(start, loss, train, validation, settings, seed)
        rows.append({"seed": seed, "way": "layers", "loss": loss, **facts, "test": quality(network, test)})
        report.tell(rows[-1])
    seconds = rows[1]["seconds"]
    for loss in GRADIENT_LOSSES:
        network, facts = by_gradients(start, loss, train, validation, settings, seconds, seed)
        rows.append({"seed": seed, "way": "gradients", "loss": loss, **facts, "test": quality(network, test)})
        report.tell(rows[-1])
    if seed == 0:
        for loss in ("ap", "ndcg"):
            network, facts = by_layers(start, loss, train, validation, settings, seed, method="greedy")
            rows.append({"seed": seed, "way": "greedy", "loss": loss, **facts, "test": quality(network, test)})
            report.tell(rows[-1])
        rows.append({"seed": seed, "way": "timing", "entries": inference_times(start, train, settings, seed)})
    return rows


def run(settings: Settings, data: Part, test: Part, n_seeds: int, minutes: float, n_validation: int) -> dict[str, Any]:
    """As many seeds as there is time for."""
    began, rows, slowest = time.perf_counter(), [], 0.0
    warm_up()
    for seed in range(n_seeds):
        elapsed = time.perf_counter() - began
        if seed and elapsed + slowest > 60 * minutes:
            print(f"{elapsed / 60:.0f} of {minutes:g} minutes are over: no further seed", flush=True)
            break
        rows += run_seed(data, test, settings, seed, n_validation)
        slowest = max(slowest, time.perf_counter() - began - elapsed)
    return {
        "machine": {
            **harness.machine_facts("rankhinge", "numpy", "torch", "numba"),
            "torch threads": torch.get_num_threads(),
        },
        "settings": {**vars(settings), "n_train": len(data.y) - n_validation, "n_test": len(test.y)},
        "seconds": time.perf_counter() - began,
        "rows": rows,
    }


def warm_up() -> None:
    """Compile the kernels, so that no time below contains it."""
    from rankhinge import most_violating_ranking, most_violating_rankings

    scores, relevant = np.linspace(0.0, 1.0, 40), np.arange(40) % 3 == 0
    for loss in ("ap", "ndcg"):
        most_violating_ranking(scores, relevant, loss, "greedy")
        most_violating_rankings(scores, relevant, [0, 20, 40], loss)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a trial on a few images; results go to .make")
    parser.add_argument("--redraw", action="store_true", help="page and figure from the results there are")
    parser.add_argument("--minutes", type=float, default=24.0, help="begin no seed that would end later than this")
    options = parser.parse_args()
    scratch = ROOT / ".make" / "experiments"
    results_folder, page_folder = (
        (scratch, scratch) if options.quick else (ROOT / "experiments" / "results", ROOT / "docs" / "experiments")
    )
    path = results_folder / "cifar10.json"
    if not options.redraw:
        try:
            data, test = load()
        except MissingData as error:
            sys.exit(str(error))
        if options.quick:
            few, some = np.arange(900), np.arange(1000)
            results = run(QUICK, data[few], test[some], 2, options.minutes, 300)
        else:
            results = run(Settings(), data, test, MOST_SEEDS, options.minutes, 1000)
        harness.write_json(path, results)
    results = json.loads(path.read_text("utf-8"))
    figure = Path(path.with_suffix(".png"))
    report.draw(results, figure)
    page_folder.mkdir(parents=True, exist_ok=True)
    page = page_folder / "cifar10.md"
    page.write_text(report.page(results, figure, page), encoding="utf-8")
    print(report.table_of_quality(results))
    print(f"written: {path.relative_to(ROOT)}, {figure.relative_to(ROOT)}, {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
