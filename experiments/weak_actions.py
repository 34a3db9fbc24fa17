"""Weakly supervised actions (002 Figure 1 and Table 1): latent AP-SVM beside latent SVM, with S % of the boxes known.

``make experiments ONLY=weak_actions`` computes what is missing in ``results/weak_actions.json`` and writes
``docs/experiments/weak_actions.md``. C has three values a decade for both machines, chosen at S = 0 on folds of the
training bags, grown until the choice lies inside the grid; the weight J of positives and c, the confusing candidates
that are ignored, are chosen before, at a value of C a decade.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import _weak_actions_page
import numpy as np
from _run import Run, data_file, main
from sklearn.model_selection import StratifiedKFold

from rankhinge import metrics
from rankhinge.latent import Bags, LatentRankSVC, LatentSVC

MACHINES = {"latent AP-SVM": LatentRankSVC, "latent SVM": LatentSVC}
SUPERVISED = (0, 25, 50, 75, 100)
N_FOLDS = 5
PER_DECADE, MOST_VALUES = 3, 13
COARSE = (-5, -4, -3)


def problem_of(k: int) -> dict[str, Any]:
    """The labelled bags of one class, the right candidates, and the boxes of the test."""
    with np.load(data_file("voc2011_action_candidates", "action_candidates.npz")) as file:
        bags, best, row = Bags(file["X"], bag_ids=file["sample_of_window"]), file["best"].astype(np.int64), file["row"]
    with np.load(data_file("voc2012_action", "action_mobilenetv2.npz")) as file:
        Y, X_box, inside = file["Y"].astype(np.int64), file["X_box"], file["in_voc2011"]
        classes = tuple(file["classes"].tolist())
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


def folds_of(y: np.ndarray, n_folds: int) -> list[tuple[np.ndarray, np.ndarray]]:
    splitter = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0)
    return list(splitter.split(np.zeros(len(y)), y))[:n_folds]


def validation(make: type, options: dict[str, Any], Cs: list[float], bags: Bags, y: Any, n_folds: int) -> Any:
    """AP on each fold's part at each C, ascending, each fit started from the one before: (n_Cs, n_folds)."""
    scores = np.empty((len(Cs), n_folds))
    for fold, (train, test) in enumerate(folds_of(y, n_folds)):
        model, inside, outside = make(warm_start=True, **options), bags[train], bags[test]
        for place, C in enumerate(Cs):
            model.set_params(C=C).fit(inside, y[train])
            scores[place, fold] = metrics.average_precision(y[test], model.decision_function(outside))
    return scores


def settings(kind: str, y: np.ndarray, quick: bool) -> list[dict[str, Any]]:
    if kind == "latent AP-SVM" or quick:
        return [{}]
    balance = float((y == 0).sum() / (y == 1).sum())
    return [{"positive_weight": J, "ignore_confusing": c} for J, c in product((1.0, balance), (0.0, 1.0))]


def coarse(run: Run, kind: str, data: dict[str, Any]) -> dict[str, Any]:
    """J and c, and where the search for C begins: one fold, a value of C a decade."""
    Cs = [10.0**power for power in COARSE]
    tried = []
    for options in settings(kind, data["y"], run.quick):
        scores = validation(MACHINES[kind], options, Cs, data["bags"], data["y"], 1)[:, 0]
        tried.append((float(scores.max()), Cs[int(scores.argmax())], options))
    _, C, options = max(tried, key=lambda one: one[0])
    return {"C": C, "options": options}


def fine(run: Run, kind: str, data: dict[str, Any], begin: dict[str, Any]) -> dict[str, Any]:
    """C three a decade around the coarse one, grown by a value at a time until the choice lies inside."""
    n_folds = 1 if run.quick else N_FOLDS
    centre = round(PER_DECADE * np.log10(begin["C"]))
    found: dict[int, list[float]] = {}
    wanted = list(range(centre - 2, centre + 3))
    while wanted:
        Cs = [float(10 ** (place / PER_DECADE)) for place in wanted]
        scores = validation(MACHINES[kind], begin["options"], Cs, data["bags"], data["y"], n_folds)
        found |= {place: row.tolist() for place, row in zip(wanted, scores, strict=True)}
        best = max(found, key=lambda place: float(np.mean(found[place])))
        wanted = [best - 1] * (best == min(found)) + [best + 1] * (best == max(found))
        if run.quick or len(found) >= MOST_VALUES:
            break
    grid = {f"{10 ** (place / PER_DECADE):.4g}": row for place, row in sorted(found.items())}
    return {"C": float(10 ** (best / PER_DECADE)), "options": begin["options"], "grid": grid, "folds": found[best]}


def tested(kind: str, data: dict[str, Any], chosen: dict[str, Any], percent: int) -> dict[str, Any]:
    """Trained on all bags with S % of the right candidates known, judged on the boxes of the test."""
    supervised = data["place"] < percent / 100
    model = MACHINES[kind](C=chosen["C"], **chosen["options"])
    model.fit(data["bags"], data["y"], chosen=np.where(supervised, data["best"], -1))
    scores = model.decision_function(data["X_test"])
    right = model.predict_candidates(data["bags"]) == data["best"]
    return {
        "AP": float(metrics.average_precision(data["y_test"], scores)),
        "objective": float(model.objective_),
        "right_candidates": float(np.mean(right[data["y"] == 1])),
    }


def work(run: Run) -> None:
    classes = problem_of(0)["classes"]
    run.facts = {"classes": list(classes), "n_folds": N_FOLDS}
    run.expect(len(classes) * len(MACHINES) * (2 + len(SUPERVISED)))
    for k in [4] if run.quick else range(len(classes)):
        data = problem_of(k)
        if run.quick:
            some = np.arange(0, len(data["y"]), 12)
            data |= {"bags": data["bags"][some], **{name: data[name][some] for name in ("y", "best", "place")}}
        for kind in MACHINES:
            key = f"{kind}/{classes[k]}"
            begin = run.cell(f"coarse/{key}", lambda kind=kind, data=data: coarse(run, kind, data))
            chosen = run.cell(f"choice/{key}", lambda kind=kind, data=data, b=begin: fine(run, kind, data, b))
            for percent in (0,) if run.quick else SUPERVISED:
                run.cell(f"test/{percent}/{key}", lambda k=kind, d=data, c=chosen, p=percent: tested(k, d, c, p))


if __name__ == "__main__":
    main("weak_actions", __doc__ or "", work, _weak_actions_page.page)
