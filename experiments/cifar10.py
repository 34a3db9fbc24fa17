"""CIFAR-10 layer by layer: 0-1, AP and NDCG losses after cross-entropy (004 §4.3).

``make experiments ONLY=cifar10 ARGS=--fetch`` gets all five batches by npm into the user's cache first; without them
the first batch is used. It computes what is missing in ``results/cifar10.json`` and writes
``docs/experiments/cifar10.md``. One thread, some twenty minutes. λ of each loss and the rates of the gradients are
chosen on validation images; test images are looked at once, by the machines that were chosen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import _cifar10_page
import numpy as np
import torch
from _cifar10_data import Part, fetch, load, split
from _cifar10_training import (
    GRADIENT_LOSSES,
    Settings,
    by_gradients,
    by_layers,
    pretrain,
    quality,
    scores_of,
)
from _run import SCRATCH, Run, main
from torch import nn

from rankhinge import most_violating_ranking, most_violating_rankings

LAYERWISE_LOSSES = ("multiclass-hinge", "ap", "ndcg")
METHODS = ("greedy", "quicksort", "auto")
QUICK = Settings(
    n_validation=200,
    n_seeds=1,
    pretrain_epochs=1,
    n_search=200,
    lams=(1e-3,),
    rates=(1e-3,),
    block_size=150,
    gradient_epochs=1,
    max_epochs=1,
    n_timed=200,
    timing_block_sizes=(150,),
)
QUICK_IMAGES = 500


class Seed:
    """What the cells of one seed share: its images, and its pre-trained network, made when first asked for."""

    def __init__(self, run: Run, data: Part, settings: Settings, seed: int) -> None:
        self.settings, self.seed = settings, seed
        train, self.validation = split(data, seed, settings.n_validation)
        self.train = train[np.random.default_rng(seed).permutation(len(train.y))[: settings.n_train]]
        self._file = SCRATCH / f"cifar10-{len(self.train.y)}-{settings.pretrain_epochs}-{seed}.pt"
        self._network: nn.Sequential | None = None
        self._kept = not run.quick

    def start(self) -> nn.Sequential:
        if self._network is None:
            if self._kept and self._file.exists():
                self._network = pretrain(self.train, replace(self.settings, pretrain_epochs=0), self.seed)
                self._network.load_state_dict(torch.load(self._file, weights_only=True))
            else:
                self._network = pretrain(self.train, self.settings, self.seed)
                if self._kept:
                    self._file.parent.mkdir(parents=True, exist_ok=True)
                    torch.save(self._network.state_dict(), self._file)
        return self._network


def search(run: Run, first: Seed) -> None:
    """Cells ``search/<way>/<loss>/<value>``: validation figures of the first seed, trained on part of its images."""
    settings = first.settings
    few = first.train[np.arange(settings.n_search)]
    # A block is the same share of the images as in the whole run: as many steps for a layer.
    small = replace(settings, block_size=min(settings.block_size, 250), n_kept=0)

    def layers(loss: str, lam: float) -> Any:
        network, _ = by_layers(first.start(), loss, lam, few, first.validation, small, first.seed)
        return quality(network, first.validation)

    def gradients(loss: str, rate: float) -> Any:
        network, _ = by_gradients(first.start(), loss, rate, few, first.validation, small, first.seed)
        return quality(network, first.validation)

    for loss in LAYERWISE_LOSSES:
        for lam in settings.lams:
            run.cell(f"search/layers/{loss}/{lam:g}", lambda loss=loss, lam=lam: layers(loss, lam))
    for loss in GRADIENT_LOSSES:
        for rate in settings.rates:
            run.cell(f"search/gradients/{loss}/{rate:g}", lambda loss=loss, rate=rate: gradients(loss, rate))


def chosen(run: Run, way: str, loss: str, values: tuple[float, ...]) -> float:
    """The best value by the loss's own metric on validation images, by mean AP where it has none."""
    metric = "ndcg" if loss == "ndcg" else "ap"
    return max(values, key=lambda value: run[f"search/{way}/{loss}/{value:g}"][metric])


def layers(run: Run, one: Seed, loss: str, test: Part) -> Any:
    lam = chosen(run, "layers", loss, one.settings.lams)
    network, facts = by_layers(one.start(), loss, lam, one.train, one.validation, one.settings, one.seed)
    return {**facts, "value": lam, "validation": quality(network, one.validation), "test": quality(network, test)}


def gradients(run: Run, one: Seed, loss: str, test: Part) -> Any:
    rate = chosen(run, "gradients", loss, one.settings.rates)
    network, facts = by_gradients(one.start(), loss, rate, one.train, one.validation, one.settings, one.seed)
    return {**facts, "value": rate, "validation": quality(network, one.validation), "test": quality(network, test)}


def whole_run(run: Run, one: Seed, loss: str, method: str) -> Any:
    """Layer by layer on a part of the images: for its time by one method of inference."""
    few = one.train[np.arange(one.settings.n_timed)]
    lam = chosen(run, "layers", loss, one.settings.lams)
    return by_layers(one.start(), loss, lam, few, None, one.settings, one.seed, method)[1]


def last_layer(one: Seed, loss: str, block_size: int) -> Any:
    """Only the last layer, on the features below it: by each method of inference, for blocks of one size."""
    network = one.start()
    features = Part(scores_of(network[:-1], one.train.X), one.train.y)
    settings = replace(one.settings, block_size=block_size, n_kept=0)
    lam = settings.lams[len(settings.lams) // 2]
    return {
        method: by_layers(network[-1:], loss, lam, features, None, settings, one.seed, method)[1] for method in METHODS
    }


def warm_up() -> None:
    """Compile the kernels, so that no time below contains it."""
    scores, relevant = np.linspace(0.0, 1.0, 40), np.arange(40) % 3 == 0
    for loss in ("ap", "ndcg"):
        for method in METHODS:
            most_violating_ranking(scores, relevant, loss, method)
        most_violating_rankings(scores, relevant, [0, 20, 40], loss)


def plan(run: Run, seeds: list[Seed], test: Part) -> list[tuple[str, Callable[[], Any]]]:
    """All cells after the search, those that matter most first: a run that is stopped lacks the last."""
    cells: list[tuple[str, Callable[[], Any]]] = []
    for one in seeds:
        cells.append((f"start/{one.seed}", lambda one=one: {"test": quality(one.start(), test)}))
        cells += [
            (f"layers/{loss}/{one.seed}", lambda one=one, loss=loss: layers(run, one, loss, test))
            for loss in LAYERWISE_LOSSES
        ]
    cells += [
        (f"time/{loss}/{method}", lambda loss=loss, method=method: whole_run(run, seeds[0], loss, method))
        for loss in ("ap", "ndcg")
        for method in METHODS
    ]
    cells += [
        (f"size/{loss}/{size}", lambda loss=loss, size=size: last_layer(seeds[0], loss, size))
        for loss in ("ap", "ndcg")
        for size in seeds[0].settings.timing_block_sizes
    ]
    cells += [
        (f"gradients/{loss}/{one.seed}", lambda one=one, loss=loss: gradients(run, one, loss, test))
        for loss in GRADIENT_LOSSES
        for one in seeds
    ]
    return cells


def work(run: Run) -> None:
    torch.set_num_threads(1)
    if run.fetch:
        fetch()
    settings = QUICK if run.quick else Settings()
    data, test = load(whole=not run.quick)
    if run.quick:
        data, test = data[np.arange(QUICK_IMAGES)], test[np.arange(QUICK_IMAGES)]
    if len(data.y) <= 10_000 and not run.quick:
        settings = replace(settings, n_validation=1000)
    warm_up()
    seeds = [Seed(run, data, settings, seed) for seed in range(settings.n_seeds)]
    sizes = {"n_train": len(seeds[0].train.y), "n_test": len(test.y), "n_known": len(data.y)}
    run.facts = {**vars(settings), **sizes, "torch": torch.__version__}
    cells = plan(run, seeds, test)
    run.expect(len(cells) + len(settings.lams) * len(LAYERWISE_LOSSES) + len(settings.rates) * len(GRADIENT_LOSSES))
    search(run, seeds[0])
    for key, compute in cells:
        run.cell(key, compute)


if __name__ == "__main__":
    main("cifar10", __doc__ or "", work, _cifar10_page.page)
