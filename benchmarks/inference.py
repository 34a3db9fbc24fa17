"""How long does the most violating ranking take, by each method, beside a 0-1 hinge pass over the same scores?

``make bench ONLY=inference`` measures all, prints ratios and verdicts, and writes ``results/inference.json``, the
figures beside it and the page ``docs/benchmarks/inference.md``. A trial: ``make bench ONLY=inference ARGS=--quick``.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import _inference_report as report
import numpy as np
from _harness import (
    ROOT,
    SCRATCH,
    cold_start,
    in_fresh_process,
    machine_facts,
    median,
    quartiles,
    race,
    ratio_to,
    write_json,
)
from _lists import Relevant, Scores, make_list, raised, settled_last, shift_of_kind
from _tables import number_text, time_text, verdicts_as_json
from numpy.typing import NDArray

from rankhinge import _threads, most_violating_ranking
from rankhinge.inference.long_list import LONG

SIZES = [(227, 3120), (10**3, 10**5), (10**3, 10**6), (10**4, 10**7)]
QUICK_SIZES = [(20, 500), (50, 200_000)]
METHODS = {
    "ap": ["auto", "histogram", "quicksort", "select", "search", "greedy"],
    "ndcg": ["auto", "histogram", "quicksort", "greedy"],
}
KINDS = list(report.KINDS)
# Above, one call of greedy takes minutes. Search and select stay: N log N + N log P + P² is seconds at 10⁴ × 10⁷.
MOST_GREEDY_STEPS = 10**9
# From here on the asides are measured: threads, and memory that is touched late.
ASIDES_FROM = 10**6
# Losses with a cut, beside AP on the same scores.
CUTS = ["ndcg@10", "ndcg@100", "ndcg@1000", "ap@100", "precision@100", "precision@1000", "r-precision"]
CUT_SIZES = [(10**3, 10**6), (10**4, 10**7)]
SWEPT = ["zero-one", "auto", "quicksort", "greedy"]


def read_once(scores: Scores) -> float:
    """The limit for anything that looks at every score: a sum, on as many threads as inference may use."""
    if scores.size < LONG:
        return float(scores.sum())
    return sum(_threads.run([part.sum for part in np.array_split(scores, _threads.n_threads())]))


def rivals_for(scores: Scores, relevant: Relevant, loss: str, sample_counts: tuple[int, int]) -> dict[str, Callable]:
    negatives = scores[~relevant]
    rivals: dict[str, Callable[[], Any]] = {"zero-one": partial(most_violating_ranking, scores, relevant, "zero-one")}
    for method in METHODS[loss]:
        if method != "greedy" or sample_counts[0] * sample_counts[1] <= MOST_GREEDY_STEPS:
            rivals[method] = partial(most_violating_ranking, scores, relevant, loss, method)
    rivals["sort"] = partial(np.sort, negatives)
    rivals["read"] = partial(read_once, scores)
    return rivals


@contextmanager
def one_thread() -> Iterator[None]:
    variable = "RANKHINGE_NUM_THREADS"
    before = os.environ.get(variable)
    os.environ[variable] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[variable]
        else:
            os.environ[variable] = before


def aside_rivals(scores: Scores, relevant: Relevant, loss: str) -> dict[str, Callable[[], Any]]:
    def read_too(loss: str) -> None:
        most_violating_ranking(scores, relevant, loss).coefficients.sum()

    def alone(loss: str) -> None:
        with one_thread():
            most_violating_ranking(scores, relevant, loss)

    return {
        "zero-one, read": partial(read_too, "zero-one"),
        "auto, read": partial(read_too, loss),
        "zero-one, alone": partial(alone, "zero-one"),
        "auto, alone": partial(alone, loss),
    }


def summary(values: list[float | None]) -> dict[str, float]:
    taken = [value for value in values if value is not None]
    low, high = quartiles(taken) if len(taken) > 1 else (taken[0], taken[0])
    return {"median": median(values), "low": low, "high": high, "rounds": len(taken)}


def steps_and_check(rivals: dict[str, Callable[[], Any]], methods: list[str]) -> dict[str, int]:
    """Steps evaluated by each method; all of them must find the same value."""
    found = {method: rivals[method]() for method in methods if method in rivals}
    expected = found["auto"].value
    for method, ranking in found.items():
        if not abs(ranking.value - expected) <= 1e-9 * max(1.0, abs(expected)):
            raise AssertionError(f"{method} finds the value {ranking.value!r}, auto {expected!r}")
    return {method: int(ranking.n_steps) for method, ranking in found.items()}


def measure_cell(
    sample_counts: tuple[int, int], kind: str, loss: str, dtype: str, rounds: int, budget: float
) -> report.Cell:
    scores, relevant = make_list(*sample_counts, dtype)
    shift = shift_of_kind(kind, scores, relevant, loss)
    scores = raised(scores, relevant, shift)
    rivals = rivals_for(scores, relevant, loss, sample_counts)
    steps = steps_and_check(rivals, METHODS[loss])
    has_asides = sample_counts[1] >= ASIDES_FROM
    extra = aside_rivals(scores, relevant, loss) if has_asides else {}
    seconds = race({**rivals, **extra}, rounds, budget)
    asides = {}
    if has_asides:
        asides = {
            "both, then reading u": ratio_to(seconds["auto, read"], seconds["zero-one, read"]),
            "both on one thread": ratio_to(seconds["auto, alone"], seconds["zero-one, alone"]),
            "quicksort to one thread": ratio_to(seconds["quicksort"], seconds["auto, alone"]),
        }
    return {
        "loss": loss,
        "kind": kind,
        "n_positives": sample_counts[0],
        "n_negatives": sample_counts[1],
        "dtype": dtype,
        "shift": shift,
        "settled_last": settled_last(scores, relevant, loss),
        "seconds": {rival: summary(values) for rival, values in seconds.items()},
        "to_zero_one": {rival: ratio_to(seconds[rival], seconds["zero-one"]) for rival in rivals},
        "asides": asides,
        "steps": steps,
    }


def measure_cells(sizes: list[tuple[int, int]], rounds: int, budget: float) -> list[report.Cell]:
    wanted = [(size, kind, loss, "float64") for size in sizes for loss in METHODS for kind in KINDS]
    # float32 in one place: the longest list but one, where memory begins to count.
    wanted.append((sizes[max(0, len(sizes) - 2)], "overlapping", "ap", "float32"))
    cells = []
    for size, kind, loss, dtype in wanted:
        cell = measure_cell(size, kind, loss, dtype, rounds, budget)
        cells.append(cell)
        print(
            f"{report.size_name(cell)}, {loss}, {kind}, {dtype}: 0-1 pass"
            f" {time_text(cell['seconds']['zero-one']['median'])}, default"
            f" {number_text(cell['to_zero_one']['auto']['ratio'])} times that;"
            f" {cell['settled_last']:.1%} settled last",
            flush=True,
        )
    return cells


def measure_cuts(quick: bool, rounds: int, budget: float) -> list[dict[str, Any]]:
    """Losses with a cut: time as a multiple of AP's on the same scores, and the memory of each on the longest list."""
    sizes = [QUICK_SIZES[-1]] if quick else CUT_SIZES
    rows = []
    for size in sizes:
        for kind in KINDS:
            scores, relevant = make_list(*size, "float64")
            shift = shift_of_kind(kind, scores, relevant, "ap")
            scores = raised(scores, relevant, shift)
            rivals = {loss: partial(most_violating_ranking, scores, relevant, loss) for loss in ["ap", *CUTS]}
            for rival in rivals.values():
                rival()
            seconds = race(rivals, rounds, budget)
            to_ap = {loss: ratio_to(seconds[loss], seconds["ap"]) for loss in CUTS}
            row = {"n_positives": size[0], "n_negatives": size[1], "kind": kind, "ap": summary(seconds["ap"])}
            peaks = {loss: peak_memory(loss, size, shift) for loss in ["ap", *CUTS]} if size == sizes[-1] else {}
            rows.append({**row, "to_ap": to_ap, "memory": {loss: peak for loss, peak in peaks.items() if peak}})
            print(
                f"cuts, {size[0]} x {size[1]}, {kind}: "
                + ", ".join(f"{loss} {number_text(entry['ratio'])}" for loss, entry in to_ap.items()),
                flush=True,
            )
    return rows


def sweep_sizes(quick: bool) -> dict[str, list[tuple[int, int]]]:
    """The three ways in which the papers let a list grow, further than they do."""
    n_points = 4 if quick else 11
    decades = 1 if quick else 2.5
    factors = np.logspace(0, decades, n_points)
    return {
        "total": [(round(10 * factor), round(100 * factor)) for factor in factors],
        "negative": [(227, round(200 * factor)) for factor in factors],
        "positive": [(round(20 * factor), 200) for factor in factors],
    }


def measure_sweeps(loss: str, quick: bool, rounds: int, budget: float) -> dict[str, list[dict[str, Any]]]:
    sweeps: dict[str, list[dict[str, Any]]] = {}
    for grown, sizes in sweep_sizes(quick).items():
        sweeps[grown] = []
        for size in sizes:
            scores, relevant = make_list(*size, "float64")
            scores = raised(scores, relevant, 0.5)
            rivals = rivals_for(scores, relevant, loss, size)
            seconds = race({rival: rivals[rival] for rival in SWEPT}, rounds, budget / 4)
            sweeps[grown].append(
                {
                    "n_positives": size[0],
                    "n_negatives": size[1],
                    "seconds": {rival: summary(values) for rival, values in seconds.items()},
                }
            )
    return sweeps


def peak_memory(loss: str, sample_counts: tuple[int, int], shift: float) -> dict[str, float] | None:
    """Peaks of a call in a process of its own, in arrays of N float64; None where the system does not tell."""
    if not Path("/proc/self/clear_refs").exists():
        return None
    arguments = [loss, *map(str, sample_counts), repr(shift)]
    _, printed = in_fresh_process(str(Path(__file__).with_name("_peak_memory.py")), *arguments)
    peaks: dict[str, float] = json.loads(printed)
    return peaks


def measure_memory(cells: list[report.Cell]) -> list[dict[str, Any]]:
    """On the longest lists."""
    longest = max(cell["n_negatives"] for cell in cells)
    entries = []
    for cell in report.select(cells, n_negatives=longest):
        peaks = peak_memory(cell["loss"], (cell["n_positives"], longest), cell["shift"])
        if peaks is None:
            print("peak memory: skipped, this system has no /proc/self/clear_refs")
            return []
        where = {key: cell[key] for key in ("loss", "kind", "n_positives", "n_negatives")}
        entries.append({**where, **peaks})
    return entries


def measure_cold_starts(repeats: int) -> dict[str, dict[str, float]]:
    short = "import rankhinge; rankhinge.most_violating_ranking([2.0, 1.0, 0.5], [True, False, True], {loss!r})"
    long = (
        "import numpy as np, rankhinge; s = np.random.default_rng(0).normal(size=200_000);"
        " rankhinge.most_violating_ranking(s, np.arange(s.size) % 1000 == 0)"
    )
    return {
        "AP, 3 samples": cold_start(short.format(loss="ap"), repeats),
        "NDCG, 3 samples": cold_start(short.format(loss="ndcg"), repeats),
        "AP, 200 000 samples": cold_start(long, repeats),
    }


def measure_first_fits() -> dict[str, dict[str, float]]:
    program = (
        "from rankhinge import RankSVC; from sklearn.datasets import load_breast_cancer as load;"
        " from sklearn.preprocessing import scale; X, y = load(return_X_y=True); RankSVC({options}).fit(scale(X), y)"
    )
    variants = {"`RankSVC(bound='convex')`": "bound='convex'", "tight bound": "bound='tight'"}
    return {name: cold_start(program.format(options=options), 3) for name, options in variants.items()}


def record_training(most_iterations: int) -> tuple[list[NDArray[Any]], int] | None:
    """Interleaving ranks after 1, 2, … iterations of training on digits, and P; None while there is no training.

    A fit for each number of iterations, by the plain cutting planes of the paper's figure.
    """
    try:
        from rankhinge import RankSVC
    except ImportError:
        return None
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    relevant = y == 8
    rank_vectors = []
    for n_iterations in range(1, most_iterations + 1):
        with warnings.catch_warnings():
            # That it has not converged is the point.
            warnings.simplefilter("ignore")
            model = RankSVC(C=1e3, solver="cutting-plane", max_iter=n_iterations, bound="convex").fit(X / 16, relevant)
        ranking = most_violating_ranking(model.decision_function(X / 16), relevant)
        rank_vectors.append(ranking.interleaving_ranks)
        if np.max(model.n_iter_) < n_iterations:
            break
    return rank_vectors, int(relevant.sum())


def draw(results: dict[str, Any], folder: Path) -> dict[str, Path]:
    """All figures into `folder`; what each shows, and where it is."""
    from _inference_figures import draw_heat_map, draw_scaling

    drawn = {}
    for loss, sweeps in results["sweeps"].items():
        name = report.LOSS_NAMES[loss]
        path = folder / f"inference-scaling-{loss}.png"
        draw_scaling(sweeps, loss, path)
        drawn[f"Time of one call for {name} as the list grows, overlapping scores; shaded: quartiles"] = path
    recorded = record_training(40)
    if recorded is None:
        print("interleaving ranks over a training: skipped, there is no RankSVC")
    else:
        path = folder / "inference-ranks.png"
        draw_heat_map(*recorded, path)
        drawn["Interleaving ranks of the negatives over the iterations of a training, digit 8 against the rest"] = path
    return drawn


def _effort(quick: bool) -> tuple[int, float, int]:
    """Rounds, seconds for each rival, and how often a program is started anew."""
    return (3, 0.3, 1) if quick else (15, 6.0, 5)


def measure_all(arguments: argparse.Namespace) -> dict[str, Any]:
    rounds, budget, repeats = _effort(arguments.quick)
    sizes = arguments.cells or (QUICK_SIZES if arguments.quick else SIZES)
    for dtype in ("float64", "float32"):  # compile everything first
        for loss in METHODS:
            for size in QUICK_SIZES:
                measure_cell(size, "trained", loss, dtype, 1, 0.0)
    cells = measure_cells(sizes, rounds, budget)
    print("sweeps", flush=True)
    sweeps = {loss: measure_sweeps(loss, arguments.quick, rounds, budget) for loss in METHODS}
    print("memory and cold start", flush=True)
    return {
        "machine": machine_facts("rankhinge", "numpy", "numba"),
        "threads": _threads.n_threads(),
        "quick": arguments.quick,
        "cells": cells,
        "sweeps": sweeps,
        "cuts": measure_cuts(arguments.quick, rounds, budget),
        "memory": measure_memory(cells),
        "cold_start": measure_cold_starts(repeats),
        "first_fit": measure_first_fits(),
    }


def parsed_size(text: str) -> tuple[int, int]:
    n_positives, _, n_negatives = text.partition("x")
    return int(n_positives), int(n_negatives)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small lists and few rounds: a trial")
    parser.add_argument("--cells", nargs="+", type=parsed_size, metavar="PxN", help="sizes to measure: 227x3120 …")
    parser.add_argument("--cuts", action="store_true", help="losses with a cut alone; the rest stays as it is")
    parser.add_argument("--output", type=Path, help="folder for all files, the page included")
    parser.add_argument("--redraw", action="store_true", help="page and figures anew, from the results there are")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    is_published = not (arguments.quick or arguments.cells or arguments.output)
    folder = arguments.output or (ROOT / "benchmarks" / "results" if is_published else SCRATCH)
    page = ROOT / "docs" / "benchmarks" / "inference.md" if is_published else folder / "inference.md"
    folder.mkdir(parents=True, exist_ok=True)
    page.parent.mkdir(parents=True, exist_ok=True)
    results_file = folder / "inference.json"
    if arguments.redraw or arguments.cuts:
        results = json.loads(results_file.read_text("utf-8"))
        if arguments.cuts:
            results["cuts"] = measure_cuts(arguments.quick, *_effort(arguments.quick)[:2])
            results["cuts_machine"] = machine_facts("rankhinge", "numpy", "numba")
            write_json(results_file, results)
    else:
        results = measure_all(arguments)
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
