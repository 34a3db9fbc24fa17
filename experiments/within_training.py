"""Time of inference within training: 003 Tables 2 and 3, 000 Tables 2, 3, 5, 6, 004 Tables 1 and 2, and the figures.

``make experiments ONLY=within_training`` computes what is missing in ``results/within_training.json`` and writes
``docs/experiments/within_training.md``. Times are only worth something on a quiet machine: ``--anew`` forgets older
ones, and the page tells how busy the machine was. It takes one thread, and some four minutes; ``--only table/`` leaves
out the figures.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import _within_training_page
import numpy as np
from _action_data import Actions, load_actions
from _run import ROOT, Run, main

from rankhinge.features import feature_map
from rankhinge.papers.machines.easy_samples import EasySamples
from rankhinge.papers.training import Trained, train_by

# The rows of the papers' tables: loss and method of inference. "auto" is the default of the library.
METHODS = {
    "0-1": ("zero-one", "auto"),
    "AP greedy": ("ap", "greedy"),
    "AP search": ("ap", "search"),
    "AP select": ("ap", "select"),
    "AP quicksort": ("ap", "quicksort"),
    "AP quicksort + search": ("ap", "quicksort-search"),
    "AP default": ("ap", "auto"),
    "NDCG greedy": ("ndcg", "greedy"),
    "NDCG quicksort": ("ndcg", "quicksort"),
    "NDCG default": ("ndcg", "auto"),
}
APPROXIMATE = {"AP APPX 50 %": "greedy", "AP all (APPX + select)": "select"}
KEEP_EASY = 0.5
TOL = 1e-3
# Of the figures: class phoning, as in the papers.
PHONING = 1
RATIO, FIXED_POSITIVES, FIXED_NEGATIVES = 10, 227, 200
TOTALS = (330, 660, 1100, 1650, 2200, 2475)
NEGATIVES = (200, 400, 800, 1600, 3120)
POSITIVES = (25, 50, 100, 150, 227)
IN_FIGURES = ("0-1", "AP greedy", "AP quicksort", "AP default", "NDCG greedy", "NDCG quicksort", "NDCG default")
# Enough times that the least is free of what else the machine does.
REPEATS = 3
# What holds all libraries to one thread; it has to be there before they are loaded.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RANKHINGE_NUM_THREADS"), "1")
# Columns and rows of the heat map, by averaging.
MAP_SIZE = (60, 120)


def chosen_C() -> dict[str, np.ndarray]:
    """C of each class and loss, as `actions.py` has chosen it."""
    path = ROOT / "experiments" / "results" / "actions.json"
    cells = json.loads(path.read_text("utf-8"))["cells"]
    column = {"ap": 0, "zero-one": 0, "ndcg": 1}
    return {loss: np.array(cells[f"choice/norm/{loss}"]["value"]["chosen"])[:, m] for loss, m in column.items()}


def settings() -> dict[str, Any]:
    """What the cells depend on: C, as another experiment has chosen it, among it."""
    return {
        "": [TOL, {loss: values.tolist() for loss, values in chosen_C().items()}],
        "table/": [REPEATS, KEEP_EASY],
        "figure/": [REPEATS, PHONING, RATIO, FIXED_POSITIVES, FIXED_NEGATIVES],
        "heat map": [PHONING, MAP_SIZE],
    }


def facts(trained: Trained) -> dict[str, Any]:
    result = trained.result
    return {
        "n_calls": trained.n_calls,
        "seconds": trained.seconds,
        "objective": float(result.objective[0]),
        "dual": float(result.dual_objective[0]),
        "gap": float(result.gap[0]),
        "passes": float(result.n_passes),
        "whole_seconds": float(result.history["time"][0, -1]),
    }


def timed(run: Run, method: str, X: Any, y: Any, loss: str, C: float, **options: Any) -> dict[str, Any]:
    """The quickest of some trainings, and whether inference alone or all of it is looked at."""
    found = [facts(train_by(method, X, y, loss, C, tol=TOL, **options)) for _ in range(1 if run.quick else REPEATS)]
    return min(found, key=lambda one: one["seconds"])


def class_table(run: Run, data: Actions, C: dict[str, np.ndarray]) -> None:
    """Every method on every class, by plain cutting planes; then the default solver."""
    for k, name in enumerate(data.classes):
        X, y, _ = data.problem(k)
        for label, (loss, method) in METHODS.items():
            run.cell(
                f"table/{label}/{name}",
                lambda loss=loss, method=method, X=X, y=y, k=k: timed(run, method, X, y == 1, loss, C[loss][k]),
            )
        for loss in ("ap", "ndcg"):
            run.cell(
                f"table/{loss} default solver/{name}",
                lambda loss=loss, X=X, y=y, k=k: timed(run, "auto", X, y == 1, loss, C[loss][k], solver="bundle"),
            )
        for label, method in APPROXIMATE.items():
            run.cell(
                f"table/{label}/{name}",
                lambda method=method, X=X, y=y, k=k: approximate(run, method, X, y == 1, C["ap"][k]),
            )


def approximate(run: Run, method: str, X: Any, y: np.ndarray, C: float) -> dict[str, Any]:
    """AP-SVM-APPX: the binary SVM first, then AP of the difficult samples, the easy ones held by constraints."""
    binary = train_by("auto", X, y, "zero-one", C, tol=TOL)
    w = binary.result.coef
    margins = np.where(y, 1, -1) * (X @ w[:, 0])
    signs = np.zeros((1, y.size), np.int8)
    for label in (True, False):
        mine = np.flatnonzero(y == label)
        easy = mine[margins[mine] >= 1.0 - 1e-6]
        easy = easy[np.argsort(-margins[easy])][: round(KEEP_EASY * easy.size)]
        signs[0, easy[: max(0, mine.size - 1)]] = 1 if label else -1
    constraints = EasySamples(feature_map(X), signs)
    options = {"rows": signs[0] == 0, "constraints": constraints, "start": w}
    found = timed(run, method, X, y, "ap", C, **options)
    first = facts(binary)
    return {**found, "n_difficult": int((signs == 0).sum()), "binary_seconds": first["seconds"]}


def subsets(data: Actions) -> dict[str, dict[int, np.ndarray]]:
    """Rows of phoning for each point of the figures: by total (1 : 10), by negatives, by positives; seed 0."""
    _, y, rows = data.problem(PHONING)
    generator = np.random.default_rng(0)
    positives, negatives = (generator.permutation(np.flatnonzero(y == label)) for label in (1, 0))

    def some(n_positives: int, n_negatives: int) -> np.ndarray:
        return rows[np.concatenate([positives[:n_positives], negatives[:n_negatives]])]

    return {
        "samples": {n: some(n // (RATIO + 1), n - n // (RATIO + 1)) for n in TOTALS},
        "negatives": {n: some(FIXED_POSITIVES, n) for n in NEGATIVES},
        "positives": {n: some(n, FIXED_NEGATIVES) for n in POSITIVES},
    }


def figures(run: Run, data: Actions, C: dict[str, np.ndarray]) -> None:
    """Time of all inferences of a training against the size of the list."""
    for what, points in subsets(data).items():
        for n, rows in list(points.items())[: 1 if run.quick else None]:
            X, y = data.X[rows], data.Y[rows, PHONING] > 0
            for label in IN_FIGURES:
                loss, method = METHODS[label]
                run.cell(
                    f"figure/{what}/{n}/{label}",
                    lambda X=X, y=y, loss=loss, method=method: timed(run, method, X, y, loss, C[loss][PHONING]),
                )


def heat_map(run: Run, data: Actions, C: dict[str, np.ndarray]) -> None:
    """Interleaving ranks of the negatives after each iteration (003 Figure 1), from one training of phoning."""
    X, y, _ = data.problem(PHONING)

    def ranks() -> dict[str, Any]:
        trained = train_by("auto", X, y == 1, "ap", C["ap"][PHONING], tol=TOL, keeps_ranks=True)
        every = np.array(trained.ranks, float)
        last = int((y == 1).sum()) + 1
        rows = np.array_split(np.arange(len(every)), min(MAP_SIZE[0], len(every)))
        columns = np.array_split(np.arange(every.shape[1]), MAP_SIZE[1])
        small = [[round(float(every[np.ix_(r, c)].mean()), 1) for c in columns] for r in rows]
        share = [round(float(np.mean(every[i] == last)), 4) for i in range(len(every))]
        return {
            "map": small,
            "last_rank": last,
            "n_iterations": len(every),
            "n_negatives": every.shape[1],
            "share": share,
        }

    run.cell("heat map", ranks)


def shortened(data: Actions) -> Actions:
    """Two classes and a few rows and features, for trials."""
    X, Y = data.X[::6, :100], data.Y[::6, :2]
    return Actions(X, Y, data.X_test[:2], data.Y_test[:2], data.classes[:2])


def check(run: Run) -> None:
    """All exact methods end at the same objective, within the tolerance: near-ties may fall either way."""
    for name in run.facts["classes"]:
        for loss in ("ap", "ndcg"):
            labels = [label for label, (own, _) in METHODS.items() if own == loss] + [f"{loss} default solver"]
            cells = [run[key] for label in labels if (key := f"table/{label}/{name}") in run]
            best = min(cell["objective"] for cell in cells)
            for cell in cells:
                assert cell["gap"] <= TOL, (name, cell)
                assert cell["objective"] <= best * (1 + 2 * TOL), (name, cell, best)


def work(run: Run) -> None:
    data = load_actions("norm", centred=True)
    C = chosen_C()
    data = shortened(data) if run.quick else data
    # A run that continues keeps the larger load: the page is not to look better than its worst part.
    load = max(round(os.getloadavg()[0], 1), run.facts.get("load", 0.0)) if hasattr(os, "getloadavg") else 0.0
    run.facts = {"classes": list(data.classes), "tol": TOL, "repeats": REPEATS, "load": load}
    run.expect(len(data.classes) * (len(METHODS) + len(APPROXIMATE) + 2) + 16 * len(IN_FIGURES) + 1)
    # Nothing below is to contain the time of compiling.
    warm = np.random.default_rng(0).normal(size=(60, 4))
    for loss, method in METHODS.values():
        train_by(method, warm, np.arange(60) % 4 == 0, loss, 1.0)
    class_table(run, data, C)
    if not run.only:
        check(run)
    heat_map(run, data, C)
    figures(run, data, C)


if __name__ == "__main__":
    if not ONE_THREAD.items() <= os.environ.items():
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ONE_THREAD})
    main("within_training", __doc__ or "", work, _within_training_page.page, settings())
