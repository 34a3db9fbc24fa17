"""Weak supervision on real data: latent AP-SVM beside latent SVM and latent SSVM (Behl et al. 2015).

``make experiments ONLY=latent`` runs all of it; ``ARGS="--only mil"`` one part. It writes ``results/latent.json``
and ``docs/experiments/latent.md``. Parameters are chosen on the training part only.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path
from typing import Any

# Data sets and tables are read and written as the benchmarks do it: their folder has to be on the path first (E402).
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

import _latent_page  # noqa: E402
import numpy as np  # noqa: E402
from _characters import frequent_characters, words_of  # noqa: E402
from _datasets import MissingData, data_file  # noqa: E402
from _harness import machine_facts, write_json  # noqa: E402
from _latent_data import MIL_SETS, Windows, mil_set, voc_windows  # noqa: E402
from sklearn.model_selection import StratifiedKFold  # noqa: E402

from rankhinge import metrics  # noqa: E402
from rankhinge.latent import Bags, LatentRankSVC, LatentStructuralSVC, LatentSVC, detect  # noqa: E402

Options = dict[str, Any]
# The page says for how many classes an end was chosen.
WINDOW_CS = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
CHARACTER_CS = (1e-1, 1.0, 1e1, 1e2, 1e3)


def average_precision(y: Any, scores: Any) -> float:
    return float(metrics.average_precision(np.asarray(y).astype(np.int64), scores))


def grids(kind: str, y: np.ndarray, Cs: Iterable[float]) -> list[tuple[type, Options]]:
    """The parameters to choose from: C, and for the latent SVM the weight J of positives and c as well."""
    if kind == "latent AP-SVM":
        return [(LatentRankSVC, {"C": C}) for C in Cs]
    if kind == "latent SSVM":
        return [(LatentStructuralSVC, {"C": C, "tol": 0.02, "max_outer": 4, "max_iter": 60}) for C in Cs]
    balance = float((y == 0).sum() / (y == 1).sum())
    return [
        (LatentSVC, {"C": C, "positive_weight": J, "ignore_confusing": c})
        for C, J, c in product(Cs, (1.0, balance) if balance > 1.5 else (1.0,), (0.0, 1.0))
    ]


def choose(candidates: list[tuple[type, Options]], bags: Bags, y: np.ndarray, n_folds: int) -> tuple[type, Options]:
    """The parameters with the best mean AP over folds; with one fold a third is held out once."""
    splitter = StratifiedKFold(max(n_folds, 3), shuffle=True, random_state=0)
    folds = list(splitter.split(np.zeros(len(y)), y))[:n_folds]
    scores = [
        np.mean([kind(**options).fit(bags[a], y[a]).score(bags[b], y[b]) for a, b in folds])
        for kind, options in candidates
    ]
    return candidates[int(np.argmax(scores))]


def fitted(kind: str, bags: Bags, y: np.ndarray, Cs: Iterable[float], n_folds: int) -> tuple[Any, dict[str, Any]]:
    start = time.perf_counter()
    make, options = choose(grids(kind, y, list(Cs)), bags, y, n_folds)
    chosen_in = time.perf_counter() - start
    start = time.perf_counter()
    model = make(n_starts=1, **options).fit(bags, y)
    facts = {"chosen": options, "seconds": time.perf_counter() - start, "seconds_of_choice": chosen_in}
    return model, facts


def windows(quick: bool) -> dict[str, Any]:
    """voc2012_windows: image AP and detection AP on the validation images."""
    data, entries = voc_windows(), []
    for k in range(2 if quick else len(data.classes)):
        bags, y, _ = data.problem(k)
        test, y_test, index = data.problem(k, val=True)
        entry: dict[str, Any] = {"class": data.classes[k]}
        for kind in ("latent AP-SVM", "latent SVM"):
            model, facts = fitted(kind, bags, y.astype(np.int64), WINDOW_CS, 1)
            image_AP = average_precision(y_test, model.decision_function(test))
            entry[kind] = {**facts, "image_AP": image_AP, "detection_AP": detection_of(data, model, k, index)}
            # Window 0 is the whole image.
            entry[kind]["whole_image"] = float(np.mean(model.predict_candidates(test[y_test]) == 0))
        entries.append(entry)
        print(entry, flush=True)
    return {"entries": entries}


def detection_of(data: Windows, model: Any, k: int, index: np.ndarray) -> float:
    """Detection AP on some images; all objects of the class count there."""
    bags = data.bags[index]
    rows = np.concatenate([np.arange(*data.bags.offsets[b : b + 2]) for b in index])
    found = detect(model, bags, data.boxes[rows])
    column = {name: place for place, name in enumerate(data.object_columns)}
    objects = data.objects[(data.objects[:, column["class"]] == k) & np.isin(data.objects[:, column["image"]], index)]
    boxes = objects[:, [column[name] for name in ("xmin", "ymin", "xmax", "ymax")]]
    return found.average_precision(
        objects[:, column["image"]], boxes, difficult=objects[:, column["difficult"]] > 0, pixels=True
    )


def multiple_instance(quick: bool) -> dict[str, Any]:
    """The multiple-instance sets, five folds; C by three folds within."""
    entries = []
    for name in MIL_SETS[:1] if quick else MIL_SETS:
        bags, y = mil_set(name)
        kinds = ["latent AP-SVM", "latent SVM"] + (["latent SSVM"] if name == "musk1" else [])
        entry: dict[str, Any] = {"set": name, "n_bags": len(bags), "n_candidates": bags.n_candidates}
        entry.update({kind: {"AP": [], "seconds": [], "seconds_of_choice": []} for kind in kinds})
        for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(np.zeros(len(y)), y):
            for kind in kinds:
                n_folds = 1 if kind == "latent SSVM" else 3
                model, facts = fitted(kind, bags[train], y[train], (0.1, 1.0, 10.0, 100.0), n_folds)
                entry[kind]["AP"].append(average_precision(y[test], model.decision_function(bags[test])))
                for what in ("seconds", "seconds_of_choice"):
                    entry[kind][what].append(facts[what])
        entries.append(entry)
        print({kind: (name, np.mean(entry[kind]["AP"])) for kind in kinds}, flush=True)
    return {"entries": entries}


def characters(quick: bool) -> dict[str, Any]:
    """iiit5k: which words contain a character, whose box is not given; trained on 2000 words, judged on 3000."""
    train, test, entries = words_of("train"), words_of("test"), []
    for character in frequent_characters(train)[: 2 if quick else None]:
        y, y_test = train.contain(character), test.contain(character)
        entry: dict[str, Any] = {"class": character, "n_positives": int(y.sum())}
        for kind in ("latent AP-SVM", "latent SVM"):
            model, facts = fitted(kind, train.bags, y, CHARACTER_CS, 1)
            entry[kind] = {**facts, "AP": average_precision(y_test, model.decision_function(test.bags))}
        entries.append(entry)
        print(entry, flush=True)
    return {"entries": entries}


def curves(quick: bool) -> dict[str, Any]:
    """musk1, all bags: bound and loss by outer round of latent AP-SVM and latent SSVM (Figure 2 of the paper)."""
    bags, y = mil_set("musk1")
    some = np.arange(0, len(y), 4 if quick else 1)
    found = {}
    for C in (1.0, 10.0, 100.0):
        options = {"C": C, "max_outer": 10, "tol": 0.01}
        for kind, make in (("latent AP-SVM", LatentRankSVC), ("latent SSVM", LatentStructuralSVC)):
            history = make(**options).fit(bags[some], y[some]).outer_history_
            found[f"{kind}, C = {C:g}"] = {name: history[name].tolist() for name in ("bound", "loss", "time")}
            print(kind, C, found[f"{kind}, C = {C:g}"], flush=True)
    return {"curves": found}


def actions(quick: bool) -> dict[str, Any]:
    """voc2011_action_candidates: the right candidate is known for S % of the samples; test on the boxes of 2012."""
    with np.load(data_file("voc2011_action_candidates", "action_candidates.npz")) as file:
        bags, best, row = Bags(file["X"], bag_ids=file["sample_of_window"]), file["best"].astype(np.int64), file["row"]
    with np.load(data_file("voc2012_action", "action_mobilenetv2.npz")) as file:
        Y, X_box, inside = file["Y"].astype(np.int64), file["X_box"], file["in_voc2011"]
        classes = tuple(file["classes"].tolist())
    labels, test = Y[row[bags.ids]], np.flatnonzero(~inside)
    best = best[bags.ids]
    entries = []
    order = np.random.default_rng(0).permutation(len(bags))
    for k in range(1 if quick else len(classes)):
        known = np.flatnonzero(labels[:, k] != 0)
        y, some = (labels[known, k] > 0).astype(np.int64), bags[known]
        judged = test[Y[test, k] != 0]
        entry: dict[str, Any] = {"class": classes[k]}
        for kind in ("latent AP-SVM", "latent SVM"):
            make, options = choose(grids(kind, y, WINDOW_CS), some, y, 1)
            entry[kind] = {"chosen": options, "AP": {}}
            for percent in (0, 25, 50, 75, 100):
                supervised = np.isin(known, order[: len(bags) * percent // 100])
                model = make(**options).fit(some, y, chosen=np.where(supervised, best[known], -1))
                scores = model.decision_function(X_box[judged])
                entry[kind]["AP"][str(percent)] = average_precision(Y[judged, k] > 0, scores)
        entries.append(entry)
        print(entry, flush=True)
    return {"entries": entries}


PARTS: dict[str, Callable[[bool], dict[str, Any]]] = {
    "windows": windows,
    "mil": multiple_instance,
    "actions": actions,
    "characters": characters,
    "curves": curves,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a class or a set of each part: a trial")
    parser.add_argument("--only", choices=list(PARTS), nargs="+", help="some parts; the others' results stay")
    parser.add_argument("--redraw", action="store_true", help="the page anew, from the results there are")
    arguments = parser.parse_args()
    folder = ROOT / ".make" / "experiments" if arguments.quick else ROOT / "experiments" / "results"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "latent.json"
    results: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    warnings.simplefilter("ignore")
    for name in [] if arguments.redraw else arguments.only or list(PARTS):
        start = time.perf_counter()
        try:
            found = {**PARTS[name](arguments.quick), "minutes": (time.perf_counter() - start) / 60}
        except MissingData as error:
            sys.exit(str(error))
        # Another part may have ended in another process meanwhile.
        results = json.loads(path.read_text("utf-8")) if path.exists() else {}
        results[name] = found
        results["machine"] = machine_facts("rankhinge", "numpy", "scipy", "numba", "sklearn")
        write_json(path, results)
    page = folder / "latent.md" if arguments.quick else ROOT / "docs" / "experiments" / "latent.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    if "curves" in results:
        _latent_page.draw_curves(results["curves"], folder / "latent-curves.png")
    page.write_text(_latent_page.page(results), encoding="utf-8")
    print(page.read_text("utf-8"))


if __name__ == "__main__":
    main()
