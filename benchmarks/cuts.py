"""Does it pay to optimise the metric at its cut? NDCG@10 on lists, precision at a cut and BEDROC on rare positives.

    make bench ONLY=cuts                                 # all of it: some hours
    make bench ONLY=cuts ARGS="--folds 2"                # the first two outer folds of each set
    make bench ONLY=cuts ARGS=--quick                    # one fold of the small sets: a trial
    make bench ONLY=cuts ARGS="--sets mammography"       # these sets; the others keep the results there are
    make bench ONLY=cuts ARGS=--redraw                   # the page from the results there are

Nested cross-validation as in `accuracy.py`, on its folds and with its budget for all; each method is chosen by the
metric that it is judged by. The first fold of every set comes first, then the second, and so on. What is done is
written at once, and a run that was stopped continues where it was.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _accuracy_methods import CONVEX_CS, CS, RANKERS, columns, inner_folds
from _accuracy_sets import BINARY, LISTS, SMALL, Task, load, places
from _harness import ROOT, SCRATCH, machine_facts
from sklearn.linear_model import LogisticRegression

from rankhinge import RankSVCCV, SVMRankerCV, metrics
from rankhinge.losses import SoftNDCG

RARE = tuple(name for name in BINARY if name not in ("digits", "breast cancer"))
# What a set is judged by, and the losses that compete for it.
TARGETS = {"precision@1%": ["ap", "precision@1%"], "r-precision": ["ap", "r-precision"]}
BEDROC_SETS = ("hiv_molecules",)
LIST_LOSSES: dict[str, Any] = {"ndcg": "ndcg", "soft cut": SoftNDCG(10), "ndcg@10": "ndcg@10", "ap": "ap"}
BOUNDS = ("convex", "tight")
LISTS_USED = tuple(name for name in LISTS if "own split" not in name)


def targets_of(name: str) -> dict[str, list[str]]:
    return TARGETS | ({"bedroc@20": ["ap", "bedroc@20"]} if name in BEDROC_SETS else {})


def methods_of(name: str) -> list[str]:
    if name in LISTS_USED:
        return [f"{loss}, {bound}" for loss in LIST_LOSSES for bound in BOUNDS] + ["LGBMRanker", "XGBRanker"]
    return [
        f"{target}: {method}"
        for target, losses in targets_of(name).items()
        for method in [*(f"{loss}, {bound}" for loss in losses for bound in BOUNDS), "LogisticRegression"]
    ]


def value(target: str, relevant: Any, scores: Any) -> float:
    return float(metrics.per_query(target, relevant, scores, np.zeros(len(scores)))[1][0])


def of_lists(task: Task, method: str) -> float:
    if method in RANKERS:
        scores = RANKERS[method](task.train, task.test.X, task.repeat)[0]
    else:
        loss, bound = method.rsplit(", ", 1)
        # AP knows relevant and not relevant only; as in `accuracy.py`, all thresholds weigh the same.
        options: dict[str, Any] = {"level_weights": "uniform"} if loss == "ap" else {}
        if bound == "convex":
            options["tol"] = 1e-2
        model = SVMRankerCV(
            loss=LIST_LOSSES[loss], bound=bound, cv=5, scoring="ndcg@10", random_state=task.repeat, **options
        )
        scores = model.fit(task.train.X, task.train.y, qid=task.train.qid).predict(task.test.X)
    how = {"k": 10, "gains": "exponential", "no_positives": "skip"}
    return float(metrics.ndcg(task.test.y, scores, qid=task.test.qid, **how))


_LOGISTIC: dict[tuple[str, int, int], list[list[Any]]] = {}


def logistic_scores(task: Task, folds: list[Any], relevant: Any) -> list[list[Any]]:
    """What logistic regression gives the left-out part of each inner fold, for each C: all targets choose from it."""
    place = task.name, task.repeat, task.fold
    if place not in _LOGISTIC:
        X = task.train.X
        _LOGISTIC.clear()
        _LOGISTIC[place] = [
            [
                LogisticRegression(C=C, max_iter=300).fit(X[inside], relevant[inside]).decision_function(X[outside])
                for inside, outside in folds
            ]
            for C in CS
        ]
    return _LOGISTIC[place]


def of_samples(task: Task, name: str) -> float:
    target, method = name.split(": ", 1)
    ((relevant, _),), ((test, _),) = columns(task.train), columns(task.test)
    folds = inner_folds(task.train, task.repeat)
    if method == "LogisticRegression":
        found = [
            sum(value(target, relevant[outside], row) for (_, outside), row in zip(folds, rows, strict=True))
            for rows in logistic_scores(task, folds, relevant)
        ]
        model = LogisticRegression(C=CS[np.argmax(found)], max_iter=300).fit(task.train.X, relevant)
    else:
        loss, bound = method.rsplit(", ", 1)
        # As in `accuracy.py`.
        options: dict[str, Any] = {"Cs": CONVEX_CS, "tol": 1e-2} if bound == "convex" else {}
        model = RankSVCCV(loss=loss, bound=bound, cv=folds, scoring=target, random_state=task.repeat, **options)
        model.fit(task.train.X, relevant)
    return value(target, test, model.decision_function(task.test.X))


def run(names: list[str], path: Path, n_folds: int | None) -> None:
    records: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))["records"] if path.exists() else []
    done = {(r["set"], r["repeat"], r["fold"], r["method"]) for r in records}
    warnings.simplefilter("ignore")
    wanted = [(n, name, *place) for name in names for n, place in enumerate(places(name)[:n_folds])]
    for _, name, repeat, fold in sorted(wanted, key=lambda one: one[0]):
        missing = [method for method in methods_of(name) if (name, repeat, fold, method) not in done]
        task = load(name, repeat, fold) if missing else None
        for method in missing:
            assert task is not None
            began = time.perf_counter()
            found = of_lists(task, method) if name in LISTS_USED else of_samples(task, method)
            seconds = round(time.perf_counter() - began, 2)
            place = {"set": name, "repeat": repeat, "fold": fold, "method": method}
            records.append({**place, "value": found, "seconds": seconds})
            facts = machine_facts("numpy", "sklearn", "numba", "lightgbm", "xgboost")
            lines = ",\n".join(json.dumps(record) for record in records)
            path.write_text(f'{{"machine": {json.dumps(facts)}, "records": [\n{lines}\n]}}\n', encoding="utf-8")
            print(f"{name}, {repeat}.{fold}, {method}: {found:.4f} in {seconds} s", flush=True)


Values = dict[tuple[int, int], float]
SAMPLES_TEXT = (
    "If a fixed share of the list is acted on, optimise precision at that share, with the tight bound, which is the "
    "default: it is ahead of AP on average, and never far behind. For R-precision, AP is as good: it learns from all "
    "positives. Do not take the convex bound for a loss that counts the positives among the first places: on most of "
    "these sets it has its minimum at w = 0, all scores are equal, and what is left is the share of positives."
)
LISTS_TEXT = (
    'No linear loss is ahead of another by more than the errors: take `"ndcg"`, the default, unless only the first '
    "places may count. What the hard cut changes is less than what boosted trees gain on lightgbm_rank."
)


def by_method(records: list[dict[str, Any]], name: str) -> dict[str, Values]:
    """The values of a set, by method and fold."""
    found: dict[str, Values] = {}
    for record in records:
        if record["set"] == name:
            found.setdefault(record["method"], {})[record["repeat"], record["fold"]] = record["value"]
    return found


def difference(values: Values, base: Values) -> tuple[float, float]:
    """Mean and standard error over the folds that both have, in points."""
    both = [100 * (values[key] - base[key]) for key in values if key in base]
    error = float(np.std(both, ddof=1) / np.sqrt(len(both))) if len(both) > 1 else float("nan")
    return float(np.mean(both)), error


def set_table(methods: dict[str, Values]) -> str:
    """Mean over the folds in percent, ± one standard error of the difference to the first method of its metric."""
    lines = ["| method | percent | to the first of its metric |", "|---|---|---|"]
    first: dict[str, Values] = {}
    for method, values in methods.items():
        base = first.setdefault(method.partition(": ")[0] if ": " in method else "NDCG@10", values)
        mean, error = difference(values, base)
        change = "–" if base is values else f"{mean:+.2f} ± {error:.2f}"
        lines.append(f"| {method} | {100 * np.mean(list(values.values())):.2f} | {change} |")
    return "\n".join(lines)


def summary_table(records: list[dict[str, Any]], names: list[str]) -> str:
    """The cut by the tight bound against AP by the tight bound, and logistic regression: each set, and the mean."""
    lines = ["| metric | set | cut − AP, tight | cut, tight − logistic regression |", "|---|---|---|---|"]
    for target in [*TARGETS, "bedroc@20"]:
        rows = []
        for name in names:
            methods = by_method(records, name)
            needed = [f"{target}: {target}, tight", f"{target}: ap, tight", f"{target}: LogisticRegression"]
            if all(method in methods for method in needed):
                cut, plain, rival = (methods[method] for method in needed)
                rows.append((name, difference(cut, plain), difference(cut, rival)))
        for name, *found in rows:
            lines.append(f"| {target} | {name} | " + " | ".join(f"{m:+.2f} ± {e:.2f}" for m, e in found) + " |")
        if len(rows) > 1:
            means = [np.array([row[place][0] for row in rows]) for place in (1, 2)]
            texts = [f"{one.mean():+.2f} ± {one.std(ddof=1) / np.sqrt(one.size):.2f}" for one in means]
            lines.append(f"| {target} | **mean of {len(rows)} sets** | " + " | ".join(texts) + " |")
    return "\n".join(lines)


def page(results: dict[str, Any], quick: bool) -> str:
    """What came out: advice, a summary, and a table a set."""
    records = results["records"]
    names = list(dict.fromkeys(record["set"] for record in records))
    n_folds = {name: len({(r["repeat"], r["fold"]) for r in records if r["set"] == name}) for name in names}
    parts = [
        "# Benchmark: does it pay to optimise the metric at its cut?",
        "Generated by `make bench ONLY=cuts` (`benchmarks/cuts.py`); do not edit by hand.",
        "Nested cross-validation: each method is chosen by the metric that it is judged by, on the inner folds and "
        "with the budget of [accuracy](../accuracy.md). Percent, means over the outer folds, ± one standard "
        "error of the difference over these folds. Outer folds that were run, of five (of fifteen for small sets): "
        + ", ".join(f"{name} {n}" for name, n in n_folds.items())
        + ". So few folds tell large differences only.",
    ]
    if quick:
        parts.append("**A quick trial, not a measurement.**")
    rare = [name for name in names if name not in LISTS_USED]
    if rare:
        parts += ["## Rare positives", SAMPLES_TEXT, summary_table(records, rare)]
        parts += [text for name in rare for text in (f"### {name}", set_table(by_method(records, name)))]
    lists = [name for name in names if name in LISTS_USED]
    if lists:
        parts += ["## Lists: NDCG@10", LISTS_TEXT]
        parts += [text for name in lists for text in (f"### {name}", set_table(by_method(records, name)))]
    parts.append(", ".join(f"{name} {fact}" for name, fact in results["machine"].items()))
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one fold of the small sets")
    parser.add_argument("--sets", nargs="+", choices=[*LISTS_USED, *RARE])
    parser.add_argument("--folds", type=int, help="the first so many outer folds of each set")
    parser.add_argument("--redraw", action="store_true")
    arguments = parser.parse_args()
    folder = SCRATCH if arguments.quick else ROOT / "benchmarks" / "results"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "cuts.json"
    small = [name for name in (*LISTS_USED, *RARE) if name in SMALL]
    names = arguments.sets or (small if arguments.quick else [*LISTS_USED, *RARE])
    run([] if arguments.redraw else names, path, 1 if arguments.quick else arguments.folds)
    text = page(json.loads(path.read_text("utf-8")), arguments.quick)
    target = folder / "cuts.md" if arguments.quick else ROOT / "docs" / "benchmarks" / "cuts.md"
    target.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
