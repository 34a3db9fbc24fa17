"""Weakly supervised actions (002 Figures 1 and 2, Table 1): three latent machines with S % of the boxes known.

``make experiments ONLY=weak_actions`` computes what is missing in ``results/weak_actions.json`` and writes
``docs/experiments/weak_actions.md``. C has three values a decade for every machine, chosen at S = 0 by five folds of
the training bags, grown until the choice lies inside the grid; the weight J of positives and c, the confusing
candidates that are ignored, are chosen before, at a value of C a decade. The latent SSVM is trained on a fixed
subsample of each class, and so are the two others, to be compared with it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import _weak_actions_page
import numpy as np
from _bounds import traced
from _latent_choice import (
    FEW,
    MACHINES,
    N_FOLDS,
    PAIR,
    TRIO,
    Search,
    average_precision,
    chosen,
    coarse,
    fine,
    folds_of,
    subsample,
    trimmed,
)
from _run import Run, data_file, main

from rankhinge.latent import Bags

SUPERVISED = (0, 25, 50, 75, 100)
SEARCH = Search(powers=(-5, -4, -3))
# The subsample: the whole search for every machine, and starts as many as the paper's characters have.
FEW_SEARCH = Search(powers=(-4, -3, -2), most_values=9)
QUICK = Search(powers=(-4,), n_folds=1, most_values=1)
N_STARTS = 3
CURVE_ROUNDS = 8
TRIMS = (0.0, 1.0, 5.0)
TRIM_FOLDS = 2
SETTINGS = {
    "coarse/": SEARCH,
    "choice/": SEARCH,
    "validation/": SEARCH,
    "test/": [SEARCH, N_STARTS],
    "few choice/": [FEW_SEARCH, FEW],
    "few/": [FEW_SEARCH, FEW, N_STARTS],
    "curves/": [FEW_SEARCH, FEW, CURVE_ROUNDS],
    "trimmed/": [SEARCH, TRIM_FOLDS],
}


@cache
def loaded() -> tuple[Any, ...]:
    """Bags and right candidates; rows, labels and features of the boxes; which are for training; the classes."""
    with np.load(data_file("voc2011_action_candidates", "action_candidates.npz")) as file:
        bags, best, row = Bags(file["X"], bag_ids=file["sample_of_window"]), file["best"].astype(np.int64), file["row"]
    with np.load(data_file("voc2012_action", "action_mobilenetv2.npz")) as file:
        Y, X_box, inside = file["Y"].astype(np.int64), file["X_box"], file["in_voc2011"]
        classes = tuple(file["classes"].tolist())
    return bags, best, row, Y, X_box, inside, classes


def problem_of(k: int) -> dict[str, Any]:
    """The labelled bags of one class, the right candidates, and the boxes of the test."""
    bags, best, row, Y, X_box, inside, classes = loaded()
    labels = Y[row[bags.ids], k]
    known, judged = np.flatnonzero(labels), np.flatnonzero(~inside & (Y[:, k] != 0))
    order = np.random.default_rng(0).permutation(len(bags))
    return {
        "classes": classes,
        "bags": bags[known],
        "y": (labels[known] > 0).astype(np.int64),
        "best": best[bags.ids][known],
        # Place of each bag in a fixed random order: the first S % are supervised.
        "place": np.argsort(order)[known] / len(bags),
        "X_test": X_box[judged],
        "y_test": (Y[judged, k] > 0).astype(np.int64),
    }


def part_of(data: dict[str, Any], index: np.ndarray) -> dict[str, Any]:
    """Some of the bags of a class."""
    return data | {"bags": data["bags"][index], **{name: data[name][index] for name in ("y", "best", "place")}}


def known_of(data: dict[str, Any], percent: int) -> np.ndarray:
    """The right candidate of S % of the bags, -1 for the others."""
    return np.where(data["place"] < percent / 100, data["best"], -1)


def tested(kind: str, data: dict[str, Any], choice: dict[str, Any], percent: int, n_starts: int) -> dict[str, Any]:
    """Trained on all bags with S % of the right candidates known, judged on the boxes of the test."""
    model = MACHINES[kind](C=choice["C"], n_starts=n_starts, random_state=0, **choice["options"])
    model.fit(data["bags"], data["y"], chosen=known_of(data, percent))
    scores = model.decision_function(data["X_test"])
    right = model.predict_candidates(data["bags"]) == data["best"]
    return {
        "AP": average_precision(data["y_test"], scores),
        "objective": float(model.objective_),
        "right_candidates": float(np.mean(right[data["y"] == 1])),
    }


def validated(kind: str, data: dict[str, Any], choice: dict[str, Any], percent: int, n_folds: int) -> list[float]:
    """AP on each fold's part, trained on the rest with S % of its right candidates known."""
    bags, y, known, scores = data["bags"], data["y"], known_of(data, percent), []
    for train, test in folds_of(y, n_folds):
        model = MACHINES[kind](C=choice["C"], **dict(SEARCH.options), **choice["options"])
        model.fit(bags[train], y[train], chosen=known[train])
        scores.append(average_precision(y[test], model.decision_function(bags[test])))
    return scores


def all_bags(run: Run, name: str, data: dict[str, Any]) -> None:
    """Latent AP-SVM and latent SVM on all bags, for every S."""
    bags, y, search = data["bags"], data["y"], QUICK if run.quick else SEARCH
    for kind in PAIR:
        key = f"{kind}/{name}"
        begin = run.cell(f"coarse/{key}", lambda kind=kind: coarse(kind, bags, y, search))
        choice = run.cell(f"choice/{key}", lambda kind=kind, b=begin: fine(kind, bags, y, search, b))
        for percent in (0,) if run.quick else SUPERVISED:
            # With every candidate known all starts are the same.
            n_starts = 1 if run.quick or percent == 100 else N_STARTS
            run.cell(f"test/{percent}/{key}", lambda k=kind, c=choice, p=percent, n=n_starts: tested(k, data, c, p, n))
            run.cell(
                f"validation/{percent}/{key}",
                lambda k=kind, c=choice, p=percent: validated(k, data, c, p, 1 if run.quick else N_FOLDS),
            )


def few_bags(run: Run, name: str, data: dict[str, Any]) -> None:
    """All three machines on the subsample: C by folds at S = 0, then every S; and what training minimises, by round."""
    some = part_of(data, subsample(data["y"], (8, 16) if run.quick else FEW))
    for kind in TRIO:
        choice = run.cell(
            f"few choice/{kind}/{name}",
            lambda kind=kind: chosen(kind, some["bags"], some["y"], QUICK if run.quick else FEW_SEARCH),
        )
        for percent in (0,) if run.quick else SUPERVISED:
            run.cell(
                f"few/{percent}/{kind}/{name}",
                lambda k=kind, c=choice, p=percent: tested(k, some, c, p, 1 if run.quick else N_STARTS),
            )
        if kind != "latent SVM":
            run.cell(
                f"curves/{kind}/{name}",
                lambda k=kind, c=choice: traced(k, c["C"], some["bags"], some["y"], CURVE_ROUNDS),
            )


def trims(run: Run, name: str, data: dict[str, Any]) -> None:
    """Does latent AP-SVM gain where the most confusing candidates of negatives are left out?"""
    if f"choice/{PAIR[0]}/{name}" not in run:
        return
    C = run[f"choice/{PAIR[0]}/{name}"]["C"]
    n_folds = 1 if run.quick else TRIM_FOLDS
    for percent in TRIMS:
        run.cell(f"trimmed/{percent:g}/{name}", lambda p=percent: trimmed(p, C, data["bags"], data["y"], n_folds))


def work(run: Run) -> None:
    classes = problem_of(0)["classes"]
    run.facts = {"classes": list(classes), "n_folds": N_FOLDS, "few": list(FEW), "n_starts": N_STARTS}
    mine = [4] if run.quick else range(len(classes))
    run.expect(len(mine) * (len(PAIR) * (2 + 2 * len(SUPERVISED)) + len(TRIO) * (1 + len(SUPERVISED)) + 2 + len(TRIMS)))
    for part in (all_bags, few_bags, trims):
        for k in mine:
            data = problem_of(k)
            data = part_of(data, np.arange(0, len(data["y"]), 12)) if run.quick else data
            part(run, classes[k], data)


if __name__ == "__main__":
    main("weak_actions", __doc__ or "", work, _weak_actions_page.page, SETTINGS)
