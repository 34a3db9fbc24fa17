"""The results of `beyond.py`, and those of the accuracy benchmark that belong beside them, as a page."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
from _catboost_search import BUDGET
from _catboost_search import NAME as CATBOOST
from _run import ROOT, Run, compared, mean_and_spread, text_table

MEASURES = ("NDCG@10", "MAP")
RANKERS = ("SVMRankerCV()", "SVMRanker()", "LGBMRanker", "XGBRanker")
CLASSIFIERS = ("tight", "convex", "LogisticRegression", "LinearSVC", "LightGBM")
MACHINES = ("RankSVC, tight", "RankSVC, convex", "logistic regression", "RankHingeLoss")
PAIRS = (
    ("RankSVC, tight", "logistic regression"),
    ("RankSVC, convex", "logistic regression"),
    ("RankHingeLoss", "logistic regression"),
    ("RankSVC, convex", "RankHingeLoss"),
    ("RankSVC, tight", "RankHingeLoss"),
)

INTRODUCTION = """
What the papers did not ask. Does a linear ranker keep up with boosted trees? And if a network is there already, does it
pay to train its last layer by AP? Percent of the metric on unseen data, mean ± standard deviation over the outer folds
(of VOC action over the classes).
"""
LISTS = """
## Graded lists: NDCG and AP

From the results of the [accuracy benchmark](../accuracy.md), not run again. Outer folds of queries and the five inner
ones are the same for everybody, and each of the trees has eleven settings. MAP counts every grade above zero as
relevant.
"""
CATBOOST_TEXT = """
### CatBoost

Run by `beyond.py` on the same outer and inner folds; of `lightgbm_rank`, whose folds are cut three times over, on the
first five. YetiRank, leaf-wise trees, rate {rate}. Its budget is smaller than that of the other trees: {leaves} leaves
and {trees} trees. The others' figures here are those of the same outer folds.
"""
NO_CATBOOST = """
CatBoost was not run: the benchmark does not have it, and its search takes minutes of one core. `beyond.py` makes it
where `catboost` is installed.
"""
TABLES = """
## One label: AP

From the same benchmark: features standardised, the same folds, eleven settings for each rival, our defaults.
XGBoost and CatBoost were not run on these sets: LightGBM's searches alone took {minutes} minutes there. VOC action is
below; LightGBM was not run on it.
"""
LAYER = """
## The last layer of a network

Features of a network that somebody else has trained: MobileNetV2's of VOC action (1280 features, ten labels, the
papers' split) and ResNet-18's of CIFAR10_0 (512 features, 5 % positive, five outer folds). Both as square roots, rows
to norm 1, centred.

- *RankSVC*: `RankSVCCV("ap")`, tight bound with its defaults, and the convex one; all labels and folds in lockstep.
- *logistic regression*: scikit-learn's, with an intercept, a C for each label.
- *RankHingeLoss*: a linear layer in PyTorch by Adam (rate 0.03).

Three inner folds (seed 0), the same for everybody. Fifteen values of C, three a decade; RankSVC's tight bound has a
grid of its own; `RankHingeLoss` has 24 settings: four of λ, batches of 512 or of everything, 100, 200 or 300 steps.
Everybody chooses by AP, for each label.
"""


@cache
def records() -> list[dict[str, Any]]:
    """Of the accuracy benchmark."""
    text = (ROOT / "benchmarks" / "results" / "accuracy.json").read_text("utf-8")
    return list(json.loads(text)["records"])


def paired(of: list[dict[str, Any]], table: str, measure: str = "AP") -> dict[str, dict[str, Any]]:
    """By set and method, the outer folds' figures as the benchmark pairs them."""
    # Here, since `_run` has to put the benchmarks on the path first.
    from _accuracy_tables import paired as paired_percents

    percents = paired_percents(of, table, measure)
    return {name: {method: values / 100 for method, values in found.items()} for name, found in percents.items()}


def less_rivals(rows: dict[str, dict[str, np.ndarray]], measure: str, rivals: tuple[str, ...]) -> list[str]:
    return [
        f"- {name}, {measure}, {RANKERS[0]} minus {rival}: {compared(methods[RANKERS[0]], methods[rival])}"
        for name, methods in rows.items()
        for rival in rivals
        if rival in methods and methods[rival].size > 1
    ]


def lists_table(found: dict[str, dict[str, dict[str, np.ndarray]]], rankers: tuple[str, ...]) -> str:
    """A row for each measure and set of `found`."""
    rows = [
        [
            f"{name}: {measure}",
            str(methods[RANKERS[0]].size),
            *(mean_and_spread(methods[m]) if m in methods else "–" for m in rankers),
        ]
        for measure, sets in found.items()
        for name, methods in sets.items()
    ]
    return text_table(["set and measure", "folds", *rankers], rows)


def lists_part() -> str:
    found = {measure: paired(records(), "lists", measure) for measure in MEASURES}
    tests = [line for measure, sets in found.items() for line in less_rivals(sets, measure, RANKERS[2:])]
    return "\n".join([LISTS, lists_table(found, RANKERS), "", *tests])


def with_catboost(run: Run, measure: str) -> dict[str, dict[str, np.ndarray]]:
    """Of the sets that CatBoost was run on, the folds that it was run on."""
    extra = [run[key] for key in run.keys("CatBoost/")]
    ran = {record["set"] for record in extra}
    return paired([*(record for record in records() if record["set"] in ran), *extra], "lists", measure)


def catboost_part(run: Run) -> str:
    """CatBoost on the folds that it was run on, with the others on these folds."""
    if not run.keys("CatBoost/"):
        return NO_CATBOOST
    found = {measure: with_catboost(run, measure) for measure in MEASURES}
    tests = [line for measure, sets in found.items() for line in less_rivals(sets, measure, (CATBOOST,))]
    budget = {key: " or ".join(map(str, values)) for key, values in BUDGET.items() if isinstance(values, tuple)}
    text = CATBOOST_TEXT.format(**budget, rate=BUDGET["rate"])
    return "\n".join([text, lists_table(found, (*RANKERS, CATBOOST)), "", *tests])


def tables_part() -> str:
    rows, tests = [], []
    for name, methods in paired(records(), "rivals").items():
        if "LightGBM" not in methods:
            continue
        rows.append([name, str(methods["tight"].size), *(mean_and_spread(methods[m]) for m in CLASSIFIERS)])
        for rival in ("LightGBM", "LogisticRegression"):
            tests.append(f"- {name}, tight minus {rival}: {compared(methods['tight'], methods[rival])}")
    header = ["set", "folds", "RankSVCCV, tight", "convex", *CLASSIFIERS[2:]]
    seconds = sum(r["seconds"] for r in records() if r["table"] == "rivals" and r["method"] == "LightGBM")
    return "\n".join([TABLES.format(minutes=f"{seconds / 60:.0f}"), text_table(header, rows), "", *tests])


def layer(run: Run, name: str) -> dict[str, list[float]]:
    """Of each machine the test APs: of VOC by class, of CIFAR10_0 by outer fold."""
    found = {}
    for machine in MACHINES:
        if name == "voc" and f"voc/{machine}" in run:
            found[machine] = run[f"voc/{machine}"]["ap"]
        elif cells := [run[key]["ap"][0] for key in run.keys(f"{name}/{machine}/")]:
            found[machine] = cells
    most = max((len(values) for values in found.values()), default=0)
    return {machine: values for machine, values in found.items() if len(values) == most}


def ends(run: Run) -> str:
    """How often an end of its grid was chosen."""
    grids = {"RankSVC, convex": (10.0, 10 ** (17 / 3)), "logistic regression": (0.1, 10 ** (11 / 3))}
    lines = []
    for machine, grid in grids.items():
        cells = [run[key]["chosen"] for name in ("voc", "CIFAR10_0") for key in run.keys(f"{name}/{machine}")]
        chosen = [C for cell in cells for C in cell]
        n = sum(bool(np.isclose(C, grid).any()) for C in chosen)
        lines.append(f"{machine} {n} of {len(chosen)} times")
    return f"An end of its grid of C was chosen by {' and by '.join(lines)}.\n"


def seconds(run: Run, name: str, machine: str) -> str:
    cells = [run[key]["seconds"] for key in run.keys(f"{name}/{machine}")]
    return f"{np.mean(cells):.0f} s" if cells else "–"


def layer_part(run: Run) -> str:
    parts = [LAYER]
    sets = {"voc": "VOC action, mean over the classes", "CIFAR10_0": "CIFAR10_0, mean over the folds"}
    found = {name: layer(run, name) for name in sets}
    machines = [machine for machine in MACHINES if any(machine in columns for columns in found.values())]
    rows = [
        [title, *(mean_and_spread(found[name][m]) if m in found[name] else "–" for m in machines)]
        for name, title in sets.items()
    ]
    rows += [
        [f"{title.split(',')[0]}, time", *(seconds(run, name, m) for m in machines)] for name, title in sets.items()
    ]
    parts += [
        text_table(["", *machines], rows),
        f"\nTime is a search with its last fit, of one processor.\n{ends(run)}",
    ]
    for name, title in sets.items():
        parts += [
            f"- {title.split(',')[0]}, {a} minus {b}: {compared(found[name][a], found[name][b])}"
            for a, b in PAIRS
            if a in found[name] and b in found[name]
        ]
    columns = found["voc"]
    by_class = [
        [label, *(f"{100 * values[k]:.1f}" for values in columns.values())]
        for k, label in enumerate(run.facts.get("classes", []))
        if all(len(values) > k for values in columns.values())
    ]
    if columns and by_class:
        parts += ["\nVOC action by class:\n", text_table(["class", *columns], by_class)]
    return "\n".join(parts)


def findings(run: Run) -> str:
    """Sentences whose every figure comes from the results."""
    graded, tables = paired(records(), "lists", MEASURES[0]), paired(records(), "rivals")

    def less(methods: dict[str, Any], a: str, b: str, scale: float = 100.0) -> str:
        return f"{scale * (np.mean(methods[a]) - np.mean(methods[b])):+.1f}" if {a, b} <= set(methods) else "(not run)"

    shared = with_catboost(run, MEASURES[0])
    boosted = [
        f"{name} {less(methods, RANKERS[0], CATBOOST)}" for name, methods in sorted(shared.items(), reverse=True)
    ]
    catboost = f"\n  Less CatBoost, which had fewer settings: {', '.join(boosted)}." if boosted else ""
    trees = {name: methods for name, methods in tables.items() if "LightGBM" in methods}
    ahead = [name for name, methods in trees.items() if methods["tight"].mean() >= methods["LightGBM"].mean()]
    voc, cifar = layer(run, "voc"), layer(run, "CIFAR10_0")
    ours = MACHINES[0]
    return f"""## In plain words

- **A few hundred queries:** the linear ranker minus LightGBM is {less(graded["mq2008"], RANKERS[0], "LGBMRanker")}
  points of NDCG@10 on mq2008, minus XGBoost {less(graded["mq2008"], RANKERS[0], "XGBRanker")}. On lightgbm_rank it is
  {less(graded["lightgbm_rank"], RANKERS[0], "LGBMRanker")} and
  {less(graded["lightgbm_rank"], RANKERS[0], "XGBRanker")}.{catboost}
- **Tables:** the linear ranker is ahead of LightGBM on {len(ahead)} of {len(trees)} sets ({", ".join(ahead)}). No loss
  makes a linear model bend.
- **A last layer:** `RankSVCCV` minus a tuned logistic regression is {less(voc, ours, MACHINES[2])} points on VOC action
  and {less(cifar, ours, MACHINES[2])} on CIFAR10_0; with the convex bound {less(voc, MACHINES[1], MACHINES[2])} and
  {less(cifar, MACHINES[1], MACHINES[2])}.
- **The same loss by gradients:** `RankHingeLoss` minus `RankSVC` with the convex bound is
  {less(voc, MACHINES[3], MACHINES[1])} and {less(cifar, MACHINES[3], MACHINES[1])} points.
  `RankSVC` needs no rate, no batch and no number of steps."""


CUT = """
Seeds: outer and inner folds 0; batches 0. Folds of one set share rows, and `lightgbm_rank` and the small sets above are
cut three times: their tests are more confident than they should be. A plain t-test knows nothing of that.
"""


def page(run: Run) -> str:
    parts = ["# Experiment: beyond the papers\n", run.provenance(), INTRODUCTION]
    return "\n".join([*parts, findings(run), lists_part(), catboost_part(run), tables_part(), layer_part(run), CUT])
