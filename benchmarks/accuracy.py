"""What a newcomer's first call gives, and whether optimising the metric pays. Test average precision and NDCG.

    make bench ONLY=accuracy                                       # all tables: some hours
    make bench ONLY=accuracy ARGS="--table untuned"                # RankSVC() on raw features: a quarter of an hour
    make bench ONLY=accuracy ARGS="--table tuned"                  # RankSVCCV() on raw features: half an hour
    make bench ONLY=accuracy ARGS="--table rivals --sets w8a a9a"  # these sets; the others keep the results there are
    make bench ONLY=accuracy ARGS=--cost                           # what the searches cost: a quiet machine, minutes
    make bench ONLY=accuracy ARGS=--redraw                         # the page from the results there are

Every outer fold of every set is a task of its own, done in a process of its own; what is done is written at once, and a
run that was stopped continues where it was. ``--anew`` forgets what is there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from _harness import ROOT, SCRATCH, machine_facts

# Processes, not threads within: products of many small folds gain nothing from them.
ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "RANKHINGE_NUM_THREADS")
for variable in ONE_THREAD:
    os.environ.setdefault(variable, "1")

RESULTS = ROOT / "benchmarks" / "results" / "accuracy.json"
PAGE = ROOT / "docs" / "accuracy.md"


def methods_of(table: str, name: str) -> dict[str, Any]:
    from _accuracy_defaults import PLAIN, TUNED
    from _accuracy_methods import CLASSIFIERS, RANKERS

    if table != "rivals":
        return {"untuned": PLAIN, "tuned": TUNED, "lists": RANKERS}[table]
    # Boosted trees on 1280 dense features, ten times: hours, for a mark that linear models pass anyway.
    return {method: run for method, run in CLASSIFIERS.items() if not (name == "VOC action" and method == "LightGBM")}


def run_task(table: str, name: str, repeat: int, fold: int, methods: list[str]) -> list[dict[str, Any]]:
    """All methods on one outer fold."""
    from _accuracy_methods import evaluate
    from _accuracy_sets import load

    task, known = load(table, name, repeat, fold), methods_of(table, name)
    return [evaluate(task, table, method, known[method]) for method in methods]


def key(record: dict[str, Any]) -> tuple[Any, ...]:
    return record["table"], record["set"], record["repeat"], record["fold"], record["method"]


def wanted(
    tables: list[str], names: list[str], methods: list[str] | None, records: list[dict[str, Any]]
) -> list[tuple[str, str, int, int, list[str]]]:
    """What is still to be done: a table, a set, a place and the methods that lack a result."""
    from _accuracy_sets import places, sets_of

    done = {key(record) for record in records}
    tasks = []
    for table in tables:
        for name in [name for name in sets_of(table) if name in names]:
            for repeat, fold in places(table, name):
                asked = [method for method in methods_of(table, name) if methods is None or method in methods]
                missing = [method for method in asked if (table, name, repeat, fold, method) not in done]
                # A method at a time where folds are few and fits are long, so that the processes share them.
                parts = [[method] for method in missing] if len(places(table, name)) == 1 else [missing]
                tasks += [(table, name, repeat, fold, part) for part in parts if part]
    return tasks


def save(path: Path, records: list[dict[str, Any]], cost: dict[str, Any]) -> None:
    """A record a line: there are thousands of them."""
    facts = machine_facts("numpy", "scipy", "sklearn", "numba", "lightgbm", "xgboost")
    lines = ",\n".join(json.dumps(record, ensure_ascii=False) for record in sorted(records, key=key))
    head, tail = (json.dumps(part, ensure_ascii=False) for part in (facts, cost))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'{{"machine": {head},\n"records": [\n{lines}\n],\n"cost": {tail}}}\n', encoding="utf-8")


def search_cost(name: str) -> dict[str, list[float]]:
    """Seconds of both searches, in a process of its own that may use all threads."""
    environment = {variable: value for variable, value in os.environ.items() if variable not in ONE_THREAD}
    command = [sys.executable, "_accuracy_cost.py", name]
    done = subprocess.run(command, cwd=ROOT / "benchmarks", env=environment, capture_output=True, text=True, check=True)
    seconds: dict[str, list[float]] = json.loads(done.stdout)
    return seconds


def options() -> argparse.Namespace:
    """What the command line asks for."""
    from _accuracy_sets import OUTSIDE, SETS, TABLES

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", nargs="+", choices=TABLES, default=list(TABLES), dest="tables")
    parser.add_argument(
        "--sets", nargs="+", choices=[*SETS, "outside"], default=list(SETS), metavar="SET", help=", ".join(SETS)
    )
    parser.add_argument("--methods", nargs="+", metavar="METHOD", help="these columns only")
    parser.add_argument("--anew", action="store_true", help="forget the results of these tables, sets and methods")
    parser.add_argument("--cost", action="store_true", help="only measure what the searches cost")
    parser.add_argument("--redraw", action="store_true", help="only make the page")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--quick", action="store_true", help="one fold of breast cancer, written elsewhere")
    arguments = parser.parse_args()
    if "outside" in arguments.sets:
        arguments.sets = [*(name for name in arguments.sets if name != "outside"), *OUTSIDE]
    if arguments.quick:
        arguments.sets = ["breast cancer"]
    return arguments


def measure(arguments: argparse.Namespace, results: Path, records: list[dict[str, Any]], cost: dict[str, Any]) -> None:
    """Do what is missing; each result is written at once."""
    tasks = wanted(arguments.tables, arguments.sets, arguments.methods, records)
    if arguments.quick:
        tasks = [task for task in tasks if task[2:4] == (0, 0)]
    with ProcessPoolExecutor(arguments.jobs) as pool:
        running = {pool.submit(run_task, *task): task for task in tasks}
        for place, finished in enumerate(as_completed(running), 1):
            table, name, repeat, fold, _ = running[finished]
            new = finished.result()
            records += new
            save(results, records, cost)
            figures = "  ".join(
                f"{record['method']} {sum(record['AP']) / len(record['AP']):.4f}"
                if "AP" in record
                else f"{record['method']} {record['NDCG@10']:.4f}/{record['MAP']:.4f}"
                for record in new
            )
            print(f"{place}/{len(tasks)} {table} {name} {repeat}.{fold}: {figures}", flush=True)


def main() -> None:
    from _accuracy_report import page
    from _accuracy_sets import OUTSIDE

    arguments = options()
    results, output = (SCRATCH / "accuracy.json", SCRATCH / "accuracy.md") if arguments.quick else (RESULTS, PAGE)
    known = json.loads(results.read_text()) if results.exists() else {}
    records, cost = known.get("records", []), known.get("cost", {})
    if arguments.anew:
        records = [
            record
            for record in records
            if record["table"] not in arguments.tables
            or record["set"] not in arguments.sets
            or (arguments.methods and record["method"] not in arguments.methods)
        ]
    if arguments.cost:
        # Ten classes up to C = 100 000 take the convex path minutes; the ratio is far below 1.
        for name in [name for name in arguments.sets if name not in ("VOC action", *OUTSIDE)]:
            cost[name] = search_cost(name)
            print(name, cost[name], flush=True)
            save(results, records, cost)
    elif not arguments.redraw:
        measure(arguments, results, records, cost)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(page(json.loads(results.read_text())), encoding="utf-8")
    print(f"wrote {output.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
