"""What does training with bags cost: against reading all candidates in every pass, and against the two baselines?

``make bench ONLY=latent`` measures on voc2012_windows and musk1, judges the targets, and writes
``results/latent.json`` and the page ``docs/benchmarks/latent.md``. A trial: ``make bench ONLY=latent ARGS=--quick``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import _latent_report as report
import numpy as np
from _datasets import MissingData
from _harness import ROOT, SCRATCH, in_fresh_process, machine_facts, seconds_of, write_json
from _latent_data import Windows, mil_set, voc_windows

from rankhinge import _threads
from rankhinge.latent import Bags, LatentRankSVC, LatentStructuralSVC, LatentSVC
from rankhinge.latent.candidates import CandidateFeatures
from rankhinge.latent.inner import NARROW
from rankhinge.latent.objective import LatentObjective
from rankhinge.latent.problem import latent_problem
from rankhinge.latent.starts import class_means
from rankhinge.losses import get_loss
from rankhinge.objective import ListsHinge
from rankhinge.papers.machines.latent_svc import BagsHinge
from rankhinge.papers.machines.structural import StructuralObjective
from rankhinge.solvers import make_solver

# The features are 8-bit numbers up to 255: useful values of C are small.
C = 1e-3
TOL = 1e-3
STRUCTURAL_SIZES = (10, 20, 40)


def ap_objective(features: CandidateFeatures, problems: list[Any]) -> LatentObjective:
    """The AP hinge over bags."""
    return LatentObjective(features, problems, ListsHinge([problem.lists for problem in problems], get_loss("ap")))


def naive_fit(bags: Bags, y: np.ndarray) -> dict[str, float]:
    """The paper's Algorithm 3 with our solver inside: each pass reads all candidates, each round starts afresh."""
    problem = latent_problem(bags, y, None, np.full(len(bags), -1))
    features = CandidateFeatures(bags.matrix, bags.rows(), skip_zeros=False)
    found = features.sweep(class_means(features, [problem]), bags.offsets, 1)
    w, value, n_rounds = None, np.inf, 0
    while True:
        fixed = problem.fixed(found.places[0, :, 0])
        objective = ap_objective(features, [problem.seen_among(None, fixed)])
        options = {} if w is None else {"start": w}
        w = make_solver("bundle", objective, C, tol=TOL, **NARROW, **options).run().coef
        n_rounds += 1
        found = features.sweep(w, bags.offsets, 1)
        before, value = value, 0.5 * float(w[:, 0] @ w[:, 0]) + C * objective.hinge(0, found.values[0, :, 0], None)[0]
        if np.array_equal(problem.fixed(found.places[0, :, 0]), fixed) or before - value <= TOL * value:
            break
    counter = features.counter
    return facts_of(counter.n_products, counter.n_rows, bags, value, n_rounds)


def facts_of(n_products: int, n_rows: int, bags: Bags, value: float, n_rounds: int) -> dict[str, float]:
    n = bags.n_candidates
    return {"products": n_products / n, "passes": n_rows / n, "objective": value, "rounds": n_rounds}


def our_fit(bags: Bags, y: np.ndarray, shrinking: bool) -> dict[str, float]:
    model = LatentRankSVC(C=C, tol=TOL, shrinking=shrinking).fit(bags, y)
    rows = model.n_passes_ * bags.n_candidates
    return facts_of(model.n_products_, rows, bags, model.objective_, model.n_outer_)


def compare_fits(data: Windows, classes: list[int]) -> list[dict[str, Any]]:
    """Each class's fit, three ways, in turn."""
    entries = []
    for k in classes:
        bags, y, _ = data.problem(k)
        rivals: dict[str, Callable[[], dict[str, float]]] = {
            "naive": partial(naive_fit, bags, y),
            "all candidates": partial(our_fit, bags, y, False),
            "working set": partial(our_fit, bags, y, True),
        }
        entry: dict[str, Any] = {"class": data.classes[k], "n_positives": int(y.sum())}
        for name, fit in rivals.items():
            start = time.perf_counter()
            facts = fit()
            entry[name] = {**facts, "seconds": time.perf_counter() - start}
        entries.append(entry)
        print(f"  fits: {data.classes[k]}", flush=True)
    return entries


def inference_times(data: Windows, repeats: int) -> dict[str, Any]:
    """Seconds of one inference, scores given: of the three machines."""
    bags, y, _ = data.problem(8)
    w = class_means(CandidateFeatures(bags.matrix, bags.rows()), [latent_problem(bags, y, None, np.full(y.size, -1))])
    result: dict[str, Any] = {"n_bags": y.size, "n_candidates": bags.n_candidates, "structural": []}

    def timed(some: Bags, labels: np.ndarray, kind: str, n: int) -> float:
        problem = latent_problem(some, labels, None, np.full(labels.size, -1))
        features = CandidateFeatures(some.matrix, some.rows())
        fixed = problem.fixed(features.sweep(w, some.offsets, 1).places[0, :, 0])
        seen = [problem.seen_among(None, fixed)]
        objectives = {
            "ap": lambda: ap_objective(features, seen),
            "svm": lambda: LatentObjective(features, seen, BagsHinge(seen, 1.0)),
            "ssvm": lambda: StructuralObjective(features, seen, get_loss("ap")),
        }
        objective = objectives[kind]()
        scores = objective.score(w, np.zeros(1, np.int64))
        objective.evaluate(scores)
        return min(seconds_of(lambda: objective.evaluate(scores)) for _ in range(n))

    result["ap"], result["svm"] = timed(bags, y, "ap", repeats), timed(bags, y, "svm", repeats)
    positives, negatives = np.flatnonzero(y), np.flatnonzero(~y)
    for size in STRUCTURAL_SIZES:
        index = np.sort(np.concatenate([positives[:size], negatives[:size]]))
        times = {kind: timed(bags[index], y[index], kind, 3 if kind == "ssvm" else repeats) for kind in ("ap", "ssvm")}
        result["structural"].append({"n_positives": size, "n_negatives": size, **times})
        print(f"  inference: {2 * size} bags", flush=True)
    return result


def machine_times(data: Windows, quick: bool) -> dict[str, dict[str, float]]:
    """Whole fits of the three machines."""
    found: dict[str, dict[str, float]] = {}

    def note(name: str, model: Any, bags: Bags, y: Any) -> None:
        start = time.perf_counter()
        model.fit(bags, y)
        found[name] = {"seconds": time.perf_counter() - start, "AP": model.score(bags, y), "rounds": model.n_outer_}
        print(f"  machines: {name}", flush=True)

    bags, y, _ = data.problem(8)
    note("chair, latent AP-SVM", LatentRankSVC(C=C), bags, y)
    note("chair, latent SVM", LatentSVC(C=C, positive_weight=float((~y).sum() / y.sum())), bags, y)
    small, labels = mil_set("musk1")
    if quick:
        small, labels = small[::4], labels[::4]
    note("musk1, latent AP-SVM", LatentRankSVC(C=1.0), small, labels)
    note("musk1, latent SSVM", LatentStructuralSVC(C=1.0, tol=0.01, max_outer=5, max_iter=100), small, labels)
    return found


def what_a_bound_would_save(data: Windows, classes: list[int]) -> list[dict[str, Any]]:
    """Of the candidates that a sweep scores, how many ``|w - w'| |x|`` proves not to be the best of their bag."""
    entries: list[dict[str, Any]] = []
    original = CandidateFeatures.sweep
    for k in classes:
        bags, y, _ = data.problem(k)
        X = bags.candidates().astype(np.float64)
        offsets, bag_of = bags.offsets, np.repeat(np.arange(len(bags)), bags.sizes)
        lengths = {"plain": np.linalg.norm(X, axis=1)}
        centre = np.add.reduceat(X, offsets[:-1], axis=0) / bags.sizes[:, None]
        lengths["centred in the bag"] = np.linalg.norm(X - centre[bag_of], axis=1)
        centres = {"plain": np.zeros_like(centre), "centred in the bag": centre}
        points: list[np.ndarray] = []
        shares: list[dict[str, float]] = []

        def sweep(self: Any, weights: Any, *rest: Any, **options: Any) -> Any:
            result = original(self, weights, *rest, **options)
            # Called within this turn of the loop only, while `points` is the one of this turn.
            points.append(weights[:, 0])  # noqa: B023
            return result

        # To look on at a fit without a hook in the library that nobody else needs.
        CandidateFeatures.sweep = sweep  # type: ignore[method-assign]
        try:
            model = LatentRankSVC(C=C, tol=TOL).fit(bags, y)
        finally:
            CandidateFeatures.sweep = original  # type: ignore[method-assign]
        for old, new in pairwise(points):
            before, after = X @ old, X @ new
            best = np.array([offsets[b] + np.argmax(before[offsets[b] : offsets[b + 1]]) for b in range(len(bags))])
            share = {}
            for name, length in lengths.items():
                shift = centres[name] @ np.column_stack([old, new])
                bound = before - shift[bag_of, 0] + np.linalg.norm(new - old) * length
                share[name] = float(np.mean(bound < (after[best] - shift[:, 1])[bag_of]))
            shares.append(share)
        saved = {name: float(np.mean([share[name] for share in shares])) for name in lengths}
        part = len(points) / (model.n_products_ / bags.n_candidates)
        entries.append({"class": data.classes[k], "sweeps": len(points), "part_of_products": part, "skipped": saved})
    return entries


def measure_all(quick: bool) -> dict[str, Any]:
    data = voc_windows()
    warnings.simplefilter("ignore")
    bags, y, _ = data.problem(8)
    for model in (LatentRankSVC(C=C, max_outer=2), LatentRankSVC(C=C, max_outer=2, shrinking=False), LatentSVC(C=C)):
        model.fit(bags[:100], y[:100])
    naive_fit(bags[:100], y[:100])
    classes = [0, 8] if quick else list(range(len(data.classes)))
    results: dict[str, Any] = {
        "machine": machine_facts("rankhinge", "numpy", "scipy", "numba", "sklearn"),
        "threads": _threads.n_threads(),
        "quick": quick,
        "C": C,
        "tol": TOL,
        "n_bags": len(bags),
        "n_candidates": bags.n_candidates,
        "n_features": bags.n_features,
        "fits": compare_fits(data, classes),
        "inference": inference_times(data, 5 if quick else 30),
        "machines": machine_times(data, quick),
        "bound": what_a_bound_would_save(data, classes[:3]),
    }
    _, printed = in_fresh_process(str(Path(__file__).with_name("_latent_memory.py")))
    results["memory"] = json.loads(printed)
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two classes: a trial")
    parser.add_argument("--redraw", action="store_true", help="the page anew, from the results there are")
    arguments = parser.parse_args()
    folder = SCRATCH if arguments.quick else ROOT / "benchmarks" / "results"
    page = folder / "latent.md" if arguments.quick else ROOT / "docs" / "benchmarks" / "latent.md"
    if not arguments.redraw:
        try:
            measured = measure_all(arguments.quick)
        except MissingData as error:
            sys.exit(str(error))
        write_json(folder / "latent.json", measured)
    results = json.loads((folder / "latent.json").read_text("utf-8"))
    text = report.page(results)
    page.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
