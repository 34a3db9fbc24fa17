"""Detection from image labels (002 Table 2 and Figure 9, 003 §4.2, 004 §4.2): windows of VOC 2012.

``make experiments ONLY=detection`` computes what is missing in ``results/detection.json`` and writes
``docs/experiments/detection.md``. Machines see the labels of whole images only; boxes serve to judge them. C, J and c
are chosen by the ranking of held-out training images.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import _detection_page
import numpy as np
from _latent_choice import MACHINES, PAIR, Search, average_precision, chosen
from _latent_data import Windows, voc_windows
from _run import Run, main

from rankhinge.detection import iou
from rankhinge.inference import core
from rankhinge.inference.methods import infer_by
from rankhinge.latent import Bags, LatentRankSVC, detect
from rankhinge.latent.objective import LatentObjective
from rankhinge.losses import get_loss
from rankhinge.objective import ListsHinge

SEARCH = Search(powers=(-5, -4, -3, -2), most_values=9)
QUICK = Search(powers=(-3,), n_folds=1, most_values=1)
MIN_IOU = 0.5
# The figure: so many training images of each class.
N_SHOWN = 4
METHODS = ("greedy", "quicksort", "auto")
# A call is timed so often, and the least counts: other work on the machine cannot make a call faster.
REPEATS = 3
# 004 §4.2: 5011 images with 2000 windows each.
SYNTHETIC = {"n_images": 5011, "n_windows": 2000, "n_features": 8, "n_positives": 250}

SETTINGS = {
    "choice/": SEARCH,
    "ceiling/": MIN_IOU,
    "test/": [SEARCH, MIN_IOU, N_SHOWN],
    "time/": [SEARCH, REPEATS],
    "synthetic": [SYNTHETIC, REPEATS],
}


def objects_of(data: Windows, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Image, box and difficulty of each object of a class."""
    column = {name: place for place, name in enumerate(data.object_columns)}
    mine = data.objects[data.objects[:, column["class"]] == k]
    boxes = mine[:, [column[name] for name in ("xmin", "ymin", "xmax", "ymax")]]
    return mine[:, column["image"]], boxes, mine[:, column["difficult"]] > 0


def windows_of(data: Windows, bags: Bags) -> np.ndarray:
    return np.asarray(data.boxes[bags.rows()] if bags.rows() is not None else data.boxes, float)


def overlaps(data: Windows, bags: Bags, k: int) -> list[np.ndarray]:
    """For each bag the largest IoU of each of its windows with an object of the class that is not difficult."""
    images, boxes, difficult = objects_of(data, k)
    windows, found = windows_of(data, bags), []
    for b, image in enumerate(bags.ids):
        mine = boxes[(images == image) & ~difficult]
        own = windows[bags.offsets[b] : bags.offsets[b + 1]]
        found.append(iou(own, mine, pixels=True).max(axis=1, initial=0.0))
    return found


def ceiling(data: Windows, k: int) -> dict[str, float]:
    """The share of the test objects that some window overlaps enough: no machine finds more."""
    bags, _, index = data.problem(k, val=True)
    images, boxes, difficult = objects_of(data, k)
    windows, place = windows_of(data, bags), {image: b for b, image in enumerate(index.tolist())}
    hits = [
        bool(iou(windows[bags.offsets[b] : bags.offsets[b + 1]], box[None], pixels=True).max() >= MIN_IOU)
        for image, box in zip(images[~difficult].tolist(), boxes[~difficult], strict=True)
        if (b := place.get(image)) is not None
    ]
    return {"recall": float(np.mean(hits)), "n_objects": len(hits)}


def tested(data: Windows, kind: str, k: int, choice: dict[str, Any]) -> dict[str, Any]:
    """Fitted to all training images; judged on the others, by image and by window."""
    bags, y, _ = data.problem(k)
    test, y_test, index = data.problem(k, val=True)
    start = time.perf_counter()
    model = MACHINES[kind](C=choice["C"], **choice["options"]).fit(bags, y.astype(np.int64))
    seconds = time.perf_counter() - start
    found = detect(model, test, windows_of(data, test))
    images, boxes, difficult = objects_of(data, k)
    counted = np.isin(images, index)
    objects = images[counted], boxes[counted]
    scores = {
        method: found.average_precision(*objects, difficult=difficult[counted], pixels=True, method=method)
        for method in ("area", "11-point")
    }
    best, enough = model.predict_candidates(test[y_test]), overlaps(data, test[y_test], k)
    hits = [shares[place] >= MIN_IOU for shares, place in zip(enough, best, strict=True)]
    history = model.chosen_history_[:, y]
    shares = overlaps(data, bags[y], k)
    rounds = [float(np.mean([own[c] >= MIN_IOU for own, c in zip(shares, row, strict=True)])) for row in history]
    return {
        "image_AP": average_precision(y_test, model.decision_function(test)),
        "area": float(scores["area"]),
        "11-point": float(scores["11-point"]),
        # Of the test images with the object: the best window overlaps it enough, or is the whole image.
        "located": float(np.mean(hits)),
        "whole_image": float(np.mean(best == 0)),
        # Of the training images with the object, by round.
        "located_in_training": rounds,
        "n_outer": int(model.n_outer_),
        "seconds": seconds,
        "shown": localisations(data, k, model.chosen_history_),
    }


def shown_images(data: Windows, k: int) -> np.ndarray:
    """Training images with one object, not most of the picture, that a window overlaps enough; seed 0."""
    bags, y, _ = data.problem(k)
    images, boxes, _ = objects_of(data, k)
    windows, enough, good = windows_of(data, bags), overlaps(data, bags, k), []
    for b in np.flatnonzero(y):
        mine = boxes[images == bags.ids[b]]
        whole = windows[bags.offsets[b]]
        if len(mine) == 1 and iou(whole[None], mine, pixels=True)[0, 0] < MIN_IOU <= enough[b].max():
            good.append(b)
    return np.sort(np.random.default_rng(0).permutation(good)[:N_SHOWN]).astype(int)


def localisations(data: Windows, k: int, history: np.ndarray) -> list[dict[str, Any]]:
    """For the figure: windows, the true box, and the window that each round was fixed to."""
    bags, _, _ = data.problem(k)
    images, boxes, _ = objects_of(data, k)
    windows = windows_of(data, bags)
    return [
        {
            "image": int(bags.ids[b]),
            "windows": windows[bags.offsets[b] : bags.offsets[b + 1]].astype(int).tolist(),
            "truth": boxes[images == bags.ids[b]].astype(int).tolist(),
            "rounds": history[:, b].tolist(),
        }
        for b in shown_images(data, k)
    ]


class Stopwatch:
    """Seconds of each method over the same calls of inference."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(METHODS, 0.0)
        self.n_calls = 0

    def measure(self, scores: np.ndarray, relevant: np.ndarray) -> None:
        self.n_calls += 1
        values = []
        for method in METHODS:
            least = np.inf
            for _ in range(REPEATS):
                start = time.perf_counter()
                if method == "auto":
                    found = core.infer_one(scores, relevant, get_loss("ap"))
                else:
                    found = infer_by(method, scores, relevant, get_loss("ap"))
                least = min(least, time.perf_counter() - start)
            values.append(found.value)
            self.seconds[method] += least
        assert np.ptp(values) <= 1e-9 * max(1.0, *values), values


class MeasuredHinge(ListsHinge):
    """`ListsHinge` that times every method on each list that a plane is cut for."""

    stopwatch: Stopwatch

    def __call__(self, k: int, scores: np.ndarray, u: np.ndarray | None) -> tuple[float, float]:
        if u is not None:
            lists = self.problems[k]
            self.stopwatch.measure(lists.gather(scores), lists.levels[0].relevant)
        return super().__call__(k, scores, u)


class MeasuredRankSVC(LatentRankSVC):
    """`LatentRankSVC` with a stopwatch."""

    stopwatch: Stopwatch

    def _make_objective(self, features: Any, problems: Sequence[Any]) -> LatentObjective:
        hinge = MeasuredHinge([problem.lists for problem in problems], get_loss(self.loss))
        hinge.stopwatch = self.stopwatch
        return LatentObjective(features, problems, hinge)


def times(bags: Bags, y: np.ndarray, C: float) -> dict[str, Any]:
    """Total seconds of inference within a training by plain cutting planes, by method, over the same calls."""
    model = MeasuredRankSVC(C=C, solver="cutting-plane")
    model.stopwatch = Stopwatch()
    start = time.perf_counter()
    model.fit(bags, y.astype(np.int64))
    whole, watch = time.perf_counter() - start, model.stopwatch
    spent = REPEATS * sum(watch.seconds.values())
    return {
        "seconds": watch.seconds,
        "n_calls": watch.n_calls,
        "whole_seconds": whole - spent,
        "n_positives": int(y.sum()),
        "n_bags": len(bags),
        "status": str(model.status_),
    }


def synthetic(quick: bool) -> dict[str, Any]:
    """Windows of random features, of which one of each positive image is shifted: for time alone."""
    size = {**SYNTHETIC, **({"n_images": 200, "n_windows": 20, "n_positives": 10} if quick else {})}
    n, m, d = size["n_images"], size["n_windows"], size["n_features"]
    generator = np.random.default_rng(0)
    X = generator.integers(0, 64, size=(n * m, d), dtype=np.uint8)
    y = np.arange(n) < size["n_positives"]
    X[np.flatnonzero(y) * m + generator.integers(0, m, size["n_positives"])] += 32
    found = times(Bags(X, offsets=np.arange(0, n * m + 1, m)), y, 1.0)
    return {**found, **size}


def work(run: Run) -> None:
    data = voc_windows()
    classes = [6] if run.quick else range(len(data.classes))
    run.facts = {"classes": list(data.classes)}
    run.expect(len(classes) * (2 * len(PAIR) + 2) + 1)
    # Nothing below is to contain the time of compiling.
    synthetic(quick=True)
    for k in classes:
        name = data.classes[k]
        bags, y, _ = data.problem(k)
        run.cell(f"ceiling/{name}", lambda k=k: ceiling(data, k))
        for kind in PAIR:
            search = QUICK if run.quick else SEARCH
            choice = run.cell(
                f"choice/{kind}/{name}",
                lambda kind=kind, bags=bags, y=y, s=search: chosen(kind, bags, y.astype(np.int64), s),
            )
            run.cell(f"test/{kind}/{name}", lambda kind=kind, k=k, c=choice: tested(data, kind, k, c))
        if f"choice/{PAIR[0]}/{name}" in run:
            C = run[f"choice/{PAIR[0]}/{name}"]["C"]
            run.cell(f"time/{name}", lambda bags=bags, y=y, C=C: times(bags, y, C))
    run.cell("synthetic", lambda: synthetic(run.quick))


if __name__ == "__main__":
    main("detection", __doc__ or "", work, _detection_page.page, SETTINGS)
