"""CIFAR-10 layer by layer: 0-1, AP and NDCG losses after cross-entropy (004 §4.3).

``make experiments ONLY=cifar10 ARGS=--fetch`` gets all five batches by npm into the user's cache first; without them
the first batch is used. It computes what is missing in ``results/cifar10.json`` and writes
``docs/experiments/cifar10.md``. One thread, some twenty minutes of it. λ of each loss and the rates of the gradients
are chosen on validation images; test images are looked at once, by the machines that were chosen.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import _cifar10_page
import numpy as np
import torch
from _cifar10_data import Part, fetch, load, package, split
from _cifar10_training import (
    CONVOLUTIONS,
    GRADIENT_LOSSES,
    RANKING_LOSSES,
    Settings,
    by_gradients,
    by_layers,
    judge,
    make_network,
    pretrain,
    quality,
    scores_of,
)
from _run import SCRATCH, Run, main
from torch import nn

LAYERWISE_LOSSES = ("multiclass-hinge", *RANKING_LOSSES)
METHODS = ("greedy", "quicksort", "auto")
# What a search may try, falling: decades of λ, and two rates a decade.
LADDERS = {
    "layers": (10.0, 1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6),
    "gradients": (3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6),
}
QUICK = Settings(
    n_validation=200,
    n_seeds=1,
    pretrain_epochs=1,
    n_part=200,
    lams=(1e-3,),
    rates=(1e-3,),
    block_size=150,
    gradient_epochs=1,
    max_epochs=1,
    timing_block_sizes=(150,),
)
QUICK_IMAGES = 500


class Seed:
    """What the cells of one seed share: its images, and its pre-trained network, made when first asked for.

    Images are copied whenever they are asked for, and not kept: those of three seeds at once are gigabytes.
    """

    def __init__(self, run: Run, data: Part, settings: Settings, seed: int) -> None:
        self.settings, self.seed, self._data = settings, seed, data
        rows, self._validation_rows = split(len(data.y), seed, settings.n_validation)
        self._rows = rows[np.random.default_rng(seed).permutation(rows.size)[: settings.n_train]]
        self.n_train = self._rows.size
        self._file = SCRATCH / f"cifar10-{self.n_train}-{settings.pretrain_epochs}-{seed}.pt"
        self._network: nn.Sequential | None = None
        self._kept = not run.quick

    @property
    def train(self) -> Part:
        return self._data[self._rows]

    @property
    def part(self) -> Part:
        """The first of them, for what is done on some images only."""
        return self._data[self._rows[: self.settings.n_part]]

    @property
    def validation(self) -> Part:
        return self._data[self._validation_rows]

    def start(self) -> nn.Sequential:
        if self._network is None:
            if self._kept and self._file.exists():
                self._network = make_network(self.seed)
                self._network.load_state_dict(torch.load(self._file, weights_only=True))
            else:
                self._network = pretrain(self.train, self.settings, self.seed)
                if self._kept:
                    self._file.parent.mkdir(parents=True, exist_ok=True)
                    draft = self._file.with_suffix(f".{os.getpid()}")
                    torch.save(self._network.state_dict(), draft)
                    draft.replace(self._file)
        return self._network


def search(run: Run, first: Seed) -> None:
    """Cells ``search/<way>/<loss>/<value>``: validation figures of the first seed, trained on part of its images.

    While the best value is an end of those tried, the next one of the ladder is tried too.
    """
    train = {"layers": by_layers, "gradients": by_gradients}
    losses = {"layers": LAYERWISE_LOSSES, "gradients": tuple(GRADIENT_LOSSES)}
    starts = {"layers": first.settings.lams, "gradients": first.settings.rates}

    def found(way: str, loss: str, value: float) -> Any:
        network, _ = train[way](first.start(), loss, value, first.part, first.validation, first.settings, first.seed)
        return quality(network, first.validation)

    for way, ladder in LADDERS.items():
        for loss in losses[way]:
            top, bottom = ladder.index(starts[way][0]), ladder.index(starts[way][-1])
            while True:
                run.expect(bottom - top + 1)
                keys = [f"search/{way}/{loss}/{value:g}" for value in ladder[top : bottom + 1]]
                cells = [
                    run.cell(key, lambda value=value, way=way, loss=loss: found(way, loss, value))
                    for key, value in zip(keys, ladder[top : bottom + 1], strict=True)
                ]
                if run.quick or None in cells:
                    break
                best = int(np.argmax([cell[judge(loss)] for cell in cells]))
                higher, lower = best == 0 and top > 0, best == len(cells) - 1 and bottom < len(ladder) - 1
                if not higher and not lower:
                    break
                top, bottom = top - higher, bottom + lower


def chosen(run: Run, way: str, loss: str, metric: str = "") -> float:
    """The best value on validation images: by this metric, else by the loss's own, by mean AP where it has none."""
    best = max(run.keys(f"search/{way}/{loss}/"), key=lambda key: run[key][metric or judge(loss)])
    return float(best.rsplit("/", 1)[1])


def layers(run: Run, one: Seed, loss: str, test: Part, metric: str = "") -> Any:
    lam = chosen(run, "layers", loss, metric)
    network, facts = by_layers(one.start(), loss, lam, one.train, one.validation, one.settings, one.seed)
    return {**facts, "value": lam, "validation": quality(network, one.validation), "test": quality(network, test)}


def gradients(run: Run, one: Seed, loss: str, test: Part) -> Any:
    rate = chosen(run, "gradients", loss)
    network, facts = by_gradients(one.start(), loss, rate, one.train, one.validation, one.settings, one.seed)
    return {**facts, "value": rate, "validation": quality(network, one.validation), "test": quality(network, test)}


def timed(run: Run, one: Seed, loss: str, method: str) -> Any:
    """The layers of the results, on all training images: for its time by one method of inference."""
    return by_layers(one.start(), loss, chosen(run, "layers", loss), one.train, None, one.settings, one.seed, method)[1]


def all_layers(run: Run, one: Seed, loss: str) -> Any:
    """What the turns of the layers cost and bring that otherwise stay as they are."""
    settings = replace(one.settings, n_kept=0)
    return by_layers(one.start(), loss, chosen(run, "layers", loss), one.part, None, settings, one.seed)[1]


def last_layer(one: Seed, loss: str, block_size: int) -> Any:
    """Only the last layer, on the features below it: by each method of inference, for blocks of one size."""
    network, part = one.start(), one.part
    features = Part(scores_of(network[:-1], part.X), part.y)
    settings = replace(one.settings, block_size=block_size, n_kept=0)
    lam = settings.lams[len(settings.lams) // 2]
    return {
        method: by_layers(network[-1:], loss, lam, features, None, settings, one.seed, method)[1] for method in METHODS
    }


def warm_up(settings: Settings) -> None:
    """Compile the kernels, so that no time below contains it."""
    generator = np.random.default_rng(0)
    few = Part(torch.from_numpy(generator.normal(size=(60, 4))).float(), np.arange(60) % 10)
    small = replace(settings, block_size=30, n_kept=0, gradient_epochs=1)
    for loss in LAYERWISE_LOSSES:
        for method in METHODS if loss in RANKING_LOSSES else ("auto",):
            by_layers(nn.Sequential(nn.Linear(4, 10)), loss, 1e-3, few, few, small, 0, method)
    for loss in GRADIENT_LOSSES:
        by_gradients(nn.Sequential(nn.Linear(4, 10)), loss, 1e-3, few, few, small, 0)


def plan(run: Run, seeds: list[Seed], test: Part) -> list[tuple[str, Callable[[], Any]]]:
    """All cells after the search, those that matter most first: a run that is stopped lacks the last."""
    cells: list[tuple[str, Callable[[], Any]]] = []
    for one in seeds:
        cells.append((f"start/{one.seed}", lambda one=one: {"test": quality(one.start(), test)}))
        cells += [
            (f"layers/{loss}/{one.seed}", lambda one=one, loss=loss: layers(run, one, loss, test))
            for loss in LAYERWISE_LOSSES
        ]
        # Ranked by probabilities, the 0-1 loss wants another λ than ranked by scores.
        metric = "ap by probability"
        key = f"layers/multiclass-hinge by probability/{one.seed}"
        cells.append((key, lambda one=one, metric=metric: layers(run, one, "multiclass-hinge", test, metric)))
    cells += [
        (f"time/{loss}/{method}", lambda loss=loss, method=method: timed(run, seeds[0], loss, method))
        for loss in RANKING_LOSSES
        for method in METHODS
    ]
    cells += [
        (f"gradients/{loss}/{one.seed}", lambda one=one, loss=loss: gradients(run, one, loss, test))
        for loss in GRADIENT_LOSSES
        for one in seeds
    ]
    cells.append(("all layers/ap", lambda: all_layers(run, seeds[0], "ap")))
    cells += [
        (f"size/{loss}/{size}", lambda loss=loss, size=size: last_layer(seeds[0], loss, size))
        for loss in RANKING_LOSSES
        for size in seeds[0].settings.timing_block_sizes
    ]
    return cells


def work(run: Run) -> None:
    torch.set_num_threads(1)
    os.environ["RANKHINGE_NUM_THREADS"] = "1"
    settings = QUICK if run.quick else Settings()
    data, test = load(whole=not run.quick)
    if run.quick:
        data, test = data[np.arange(QUICK_IMAGES)], test[np.arange(QUICK_IMAGES)]
    if len(data.y) <= 10_000 and not run.quick:
        settings = replace(settings, n_validation=1000)
    warm_up(settings)
    seeds = [Seed(run, data, settings, seed) for seed in range(settings.n_seeds)]
    sizes = {"n_train": seeds[0].n_train, "n_test": len(test.y), "n_known": len(data.y)}
    run.facts = {**vars(settings), **sizes, "torch": torch.__version__}
    cells = plan(run, seeds, test)
    run.expect(len(cells))
    search(run, seeds[0])
    for key, compute in cells:
        run.cell(key, compute)


def dependencies() -> dict[str, Any]:
    """What every cell depends on. One batch and five must not meet in one file of results."""
    settings = {key: value for key, value in asdict(Settings()).items() if key not in {"n_seeds", "timing_block_sizes"}}
    return {"": {**settings, "convolutions": CONVOLUTIONS, "all batches": package().exists()}}


if __name__ == "__main__":
    # Before the results there are are read: it decides which data these must have had.
    if "--fetch" in sys.argv:
        fetch()
    main("cifar10", __doc__ or "", work, _cifar10_page.page, dependencies())
