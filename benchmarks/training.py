"""How fast and how well do the linear ranking machines train, beside each other and beside what people use today?

``make bench ONLY=training`` measures all on real data (see `_datasets.py`), judges the targets, and writes
``results/training.json``, the figures beside it and the page ``docs/benchmarks/training.md``. A trial:
``make bench ONLY=training ARGS=--quick``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import _training_report as report
import numpy as np
from _datasets import LOADERS, Dataset, MissingData, shortened
from _harness import ROOT, SCRATCH, in_fresh_process, machine_facts, median, seconds_of, write_json
from _passes import timed_passes
from _tables import verdicts_as_json
from _training_rivals import MOST_ITERATIONS, Fit, choose_C, grid_of, quality, quietly, rivals_for

from rankhinge import RankSVC, _threads, rank_svm_path
from rankhinge.features import feature_map
from rankhinge.losses import get_loss
from rankhinge.objective import RankingObjective
from rankhinge.problems import one_list
from rankhinge.solvers import make_solver

PASSES_CS = (1e2, 1e3, 1e4, 1e5)
PATH_CS = np.logspace(-1, 5, 8)
PATH_SETS = ("VOC action", "w8a", "celeba", "mammography")
WIDE_SETS = ("VOC action", "hiv_molecules", "CIFAR10_0", "w8a")
# Which fits have their memory measured: rival, set, how X is held.
MEMORY_CELLS = [
    *((rival, "celeba", "as is") for rival in ("bundle", "cutting-plane", "LinearSVC", "LogisticRegression")),
    *((rival, "VOC action", "as is") for rival in ("bundle", "cutting-plane", "LinearSVC", "LogisticRegression")),
    ("bundle", "w8a", "as is"),
    ("LinearSVC", "w8a", "as is"),
    ("bundle", "hiv_molecules", "float32"),
    ("bundle", "hiv_molecules", "mapped"),
]


def take_turns(
    rivals: Mapping[str, Callable[[], Any]], rounds: int, budget: float
) -> tuple[dict[str, list[float]], dict[str, Any]]:
    """Seconds of each call, and the first result of each rival.

    As `_harness.race`, but for calls of seconds: the first counts, and a rival that would take more than `budget`
    seconds in all takes part in fewer rounds, down to one.
    """
    seconds: dict[str, list[float]] = {name: [] for name in rivals}
    results: dict[str, Any] = {}
    shuffle = random.Random(0)
    for turn in range(rounds):
        for name in shuffle.sample(list(rivals), len(rivals)):
            if turn and (turn + 1) * median(seconds[name]) > budget:
                continue
            start = time.perf_counter()
            result = rivals[name]()
            seconds[name].append(time.perf_counter() - start)
            results.setdefault(name, result)
    return seconds, results


def as_text(C: Any) -> Any:
    return C.tolist() if isinstance(C, np.ndarray) else C


def measure_set(data: Dataset, C: Any, rounds: int, budget: float) -> list[report.Cell]:
    seconds, fits = take_turns(rivals_for(data, C), rounds, budget)
    cells = []
    for rival, fit in fits.items():
        assert isinstance(fit, Fit)
        cells.append(
            {
                "set": data.name,
                "rival": rival,
                "seconds": median(seconds[rival]),
                "rounds": len(seconds[rival]),
                **fit.facts,
                "train": quality(data, fit, "train"),
                "test": quality(data, fit, "test"),
            }
        )
    return sorted(cells, key=lambda cell: list(report.RIVALS).index(cell["rival"]))


def class_problem(data: Dataset, k: int) -> tuple[Any, Any]:
    """The rows that are labelled for class k, and which of them are relevant."""
    assert data.mask is not None
    known = data.mask[:, k]
    return (data.X if known.all() else data.X[known]), data.y[known, k] > 0


def compare_passes(data: Dataset, classes: range) -> list[dict[str, Any]]:
    """Both cutting-plane solvers, from nothing to a gap of 1e-3, for every class and C."""
    entries = []
    for k in classes:
        X, relevant = class_problem(data, k)
        for C in PASSES_CS:
            entry: dict[str, Any] = {"class": data.classes[k], "C": C}
            for name in ("bundle", "cutting-plane"):
                objective = RankingObjective(feature_map(X), [one_list(relevant)], get_loss("ap"))
                start = time.perf_counter()
                result = make_solver(name, objective, C, max_iter=MOST_ITERATIONS).run()
                entry[name] = {
                    "seconds": time.perf_counter() - start,
                    "passes": result.n_passes,
                    "objective": float(result.objective[0]),
                    "gap": float(result.gap[0]),
                    "converged": bool(result.status[0] == "converged"),
                    "history": {key: result.history[key][0].tolist() for key in ("passes", "gap", "time")},
                }
            entries.append(entry)
        print(f"  passes: {data.classes[k]}", flush=True)
    # Two curves for each C are drawn; the histories of the other classes would only fill the file.
    for entry in entries:
        if entry["class"] != data.classes[classes[min(1, len(classes) - 1)]]:
            for name in ("bundle", "cutting-plane"):
                del entry[name]["history"]
    return entries


# How the classes of VOC action are fitted one after the other.
ALONE = {"each class alone": "bundle", "each class alone, quasi-Newton": "quasi-newton"}


def fit_binary(X: Any, y: Any, C: float, solver: str = "bundle") -> RankSVC:
    return quietly(lambda: RankSVC(C=C, max_iter=MOST_ITERATIONS, solver=solver, bound="convex").fit(X, y))[0]


def share_of_passes(data: Dataset, C: Any, rounds: int) -> dict[str, dict[str, Any]]:
    """Wall time of fits beside the time of their own passes over X; for VOC in lockstep, and the ten classes alone."""
    fits: dict[str, Callable[[], Any]] = {}
    if data.mask is None:
        fits[data.name] = lambda: fit_binary(data.X, data.y, C)
    else:
        problems = [class_problem(data, k) for k in range(data.y.shape[1])]
        mask = data.mask
        fits[f"{data.name}, lockstep"] = lambda: quietly(
            lambda: RankSVC(C=C, max_iter=MOST_ITERATIONS, bound="convex").fit(data.X, data.y, mask=mask)
        )
        for name, solver in ALONE.items():
            fits[f"{data.name}, {name}"] = lambda solver=solver: [
                fit_binary(X, y, c, solver) for (X, y), c in zip(problems, C, strict=True)
            ]
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in fits}
    for _ in range(rounds):
        for name, fit in fits.items():
            with timed_passes() as watch:
                found[name].append((seconds_of(fit), watch.seconds))
    return {
        name: {
            "n_features": data.X.shape[1],
            "seconds": median([total for total, _ in pairs]),
            "in_passes": median([inside for _, inside in pairs]),
            "ratio": median([total / inside for total, inside in pairs]),
        }
        for name, pairs in found.items()
    }


def measure_lockstep(shares: dict[str, dict[str, Any]], data: Dataset, rounds: int) -> dict[str, Any]:
    """Ten classes at once against one after the other, and what one product with ten columns gains over ten.

    The default opens with quasi-Newton steps in lockstep, but not for a single class: so these are fitted by both.
    """
    features, n_problems = feature_map(data.X), data.y.shape[1]
    rng = np.random.default_rng(0)
    W, U = rng.normal(size=(data.X.shape[1], n_problems)), rng.normal(size=(n_problems, data.X.shape[0]))

    def together() -> None:
        features.scores(W)
        features.adjoint(U)

    def singly() -> None:
        for k in range(n_problems):
            features.scores(W[:, k : k + 1])
            features.adjoint(U[k : k + 1])

    together(), singly()
    seconds, _ = take_turns({"together": together, "singly": singly}, max(5, 3 * rounds), 10.0)
    gain = median(seconds["singly"]) / median(seconds["together"])
    lockstep = shares[f"{data.name}, lockstep"]["seconds"]
    alone = {solver: shares[f"{data.name}, {name}"] for name, solver in ALONE.items()}
    return {
        "gain_of_gemm": gain,
        "seconds": lockstep,
        "alone": {
            solver: {
                "seconds": share["seconds"],
                "speedup": share["seconds"] / lockstep,
                # Only the passes can gain by it: Amdahl's law.
                "allowed": share["seconds"] / (share["seconds"] - share["in_passes"] * (1 - 1 / gain)),
            }
            for solver, share in alone.items()
        },
    }


def measure_path(data: Dataset, rounds: int) -> dict[str, Any]:
    """A path of eight values of C against the dearest single fit by the same function."""
    X, y = class_problem(data, 1) if data.mask is not None else (data.X, data.y)

    def path(Cs: Any) -> Callable[[], Any]:
        return lambda: quietly(lambda: rank_svm_path(X, y, Cs, max_iter=MOST_ITERATIONS))[0]

    rivals = {"path": path(PATH_CS), **{f"{C:.3g}": path([C]) for C in PATH_CS}}
    seconds, found = take_turns(rivals, rounds, 8.0)
    single = {C: median(values) for C, values in seconds.items() if C != "path"}
    dearest = max(single, key=single.__getitem__)
    return {
        "path": median(seconds["path"]),
        "single": single,
        "dearest": dearest,
        "ratio": median(seconds["path"]) / single[dearest],
        "passes": float(np.sum(found["path"].n_passes)),
        "passes_of_singles": float(sum(np.sum(found[C].n_passes) for C in single)),
        "largest_gap": float(found["path"].gaps.max()),
    }


def measure_memory(chosen: Mapping[str, Any], n_rows: int) -> list[dict[str, Any]]:
    if not Path("/proc/self/clear_refs").exists():
        print("peak memory: skipped, this system has no /proc/self/clear_refs")
        return []
    script = str(Path(__file__).with_name("_training_memory.py"))
    entries = []
    for rival, name, storage in MEMORY_CELLS:
        if name not in chosen:
            continue
        C = np.ravel(chosen[name])
        arguments = script, rival, name, storage, repr(float(C[min(1, C.size - 1)])), str(n_rows)
        # Pages of code that happen to be loaded meanwhile count as resident: the median of three.
        found = [json.loads(in_fresh_process(*arguments)[1]) for _ in range(3)]
        facts = {key: int(median([one[key] for one in found])) for key in found[0]}
        entries.append({"rival": rival, "set": name, "storage": storage, **facts})
        print(f"  memory: {rival}, {name}, {storage}", flush=True)
    return entries


def load_all(names: list[str], n_rows: int) -> tuple[dict[str, Dataset], list[str]]:
    sets, missing = {}, []
    for name in names:
        try:
            sets[name] = shortened(LOADERS[name](), n_rows) if n_rows else LOADERS[name]()
        except MissingData as error:
            print(error)
            missing.append(str(error))
    if not sets:
        raise SystemExit("none of the data sets is there")
    return sets, missing


def compile_all() -> None:
    """Every kernel that is going to be timed: short and long lists, dense and sparse, one list and many."""
    from scipy import sparse

    rng = np.random.default_rng(0)
    for n_rows in (400, 150_000):
        X, y = rng.normal(size=(n_rows, 3)), np.arange(n_rows) % 50 == 0
        for rows in (X, sparse.csr_array(X)):
            quietly(lambda rows=rows, y=y: RankSVC(max_iter=3, bound="convex").fit(rows, y))
    sets = Dataset("compiled", X[:400], y[:400] * 1.0, X[:400], y[:400] * 1.0, qid=np.arange(400) // 100)
    for rival in rivals_for(sets, 1.0).values():
        rival()


def measure_all(arguments: argparse.Namespace) -> dict[str, Any]:
    quick = arguments.quick
    rounds, budget, n_rows = (1, 1.0, 1500) if quick else (5, 6.0, 0)
    sets, missing = load_all(arguments.sets or list(LOADERS), n_rows)
    compile_all()
    results: dict[str, Any] = {
        "machine": machine_facts("rankhinge", "numpy", "scipy", "numba", "sklearn", "lightgbm", "xgboost"),
        "threads": _threads.n_threads(),
        "quick": quick,
        "missing": missing,
        "sets": {name: data.describe() for name, data in sets.items()},
        "chosen": {},
        "cells": [],
        "shares": {},
        "paths": {},
    }
    chosen = {}
    for name, data in sets.items():
        start = time.perf_counter()
        chosen[name] = choose_C(data)
        grid = grid_of(data)
        results["chosen"][name] = {
            "C": as_text(chosen[name]),
            "seconds": time.perf_counter() - start,
            "grid": [grid[0], grid[-1], grid.size],
        }
        print(f"{name}: C = {as_text(chosen[name])}", flush=True)
        # Where a target is judged by these times, twice as long.
        longer = 2 if name in report.LINEAR_SVC_SETS else 1
        results["cells"] += measure_set(data, chosen[name], rounds, longer * budget)
        if name in WIDE_SETS:
            results["shares"].update(share_of_passes(data, chosen[name], rounds))
        if name in PATH_SETS:
            results["paths"][name] = measure_path(data, min(rounds, 3))
    action = sets.get("VOC action")
    if action is not None:
        results["lockstep"] = measure_lockstep(results["shares"], action, rounds)
        results["passes"] = compare_passes(action, range(2) if quick else range(action.y.shape[1]))
    results["memory"] = measure_memory(chosen, n_rows)
    return results


def draw(results: dict[str, Any], folder: Path) -> dict[str, Path]:
    """All figures into `folder`; what each shows, and where it is."""
    from _training_figures import draw_gaps, draw_times

    drawn = {}
    if results.get("passes"):
        path = folder / "training-gaps.png"
        name = draw_gaps(results["passes"], path)
        drawn[f"Relative gap against passes over X, VOC action, {name}, for four values of C"] = path
    path = folder / "training-times.png"
    draw_times(results["cells"], path)
    drawn["Time of a fit and test metric (AP; mq2008: NDCG; VOC action: mean AP); hollow: had not converged"] = path
    return drawn


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rows, one round: a trial")
    parser.add_argument("--sets", nargs="+", choices=list(LOADERS), metavar="SET", help="data sets: w8a celeba …")
    parser.add_argument("--output", type=Path, help="folder for all files, the page included")
    parser.add_argument("--redraw", action="store_true", help="page and figures anew, from the results there are")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    is_published = not (arguments.quick or arguments.sets or arguments.output)
    folder = arguments.output or (ROOT / "benchmarks" / "results" if is_published else SCRATCH)
    page = ROOT / "docs" / "benchmarks" / "training.md" if is_published else folder / "training.md"
    folder.mkdir(parents=True, exist_ok=True)
    page.parent.mkdir(parents=True, exist_ok=True)
    results_file = folder / "training.json"
    if arguments.redraw:
        results = json.loads(results_file.read_text("utf-8"))
    else:
        start = time.perf_counter()
        results = measure_all(arguments)
        results["seconds_in_all"] = time.perf_counter() - start
        # At once: a figure that fails must not cost the measurements.
        write_json(results_file, results)
    figures = draw(results, folder)
    verdicts = report.judge(results)
    write_json(results_file, {**results, "verdicts": verdicts_as_json(verdicts)})
    links = {caption: os.path.relpath(path, page.parent) for caption, path in figures.items()}
    text = report.page(results, verdicts, links)
    page.write_text(text, encoding="utf-8")
    print("\n" + text.partition("## Figures")[0])
    print(f"written: {results_file.name} and figures in {folder.name}, {page.name} in {page.parent.name}")


if __name__ == "__main__":
    main()
