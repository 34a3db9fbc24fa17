"""The network of `cifar10.py`, and the ways in which it is trained: by gradients and layer by layer."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from _cifar10_data import N_CLASSES, Part
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from rankhinge.metrics import average_precision, ndcg
from rankhinge.torch import RankHingeLoss
from rankhinge.torch.layerwise import LayerwiseTrainer, criteria, trainer

SMALL_BATCH = 100
# Channels, size of the filter and stride of each convolution; 0 is a max-pool.
CONVOLUTIONS = ((16, 5, 2), (24, 3, 1), 0, (32, 3, 1), (32, 3, 1), 0, (48, 3, 1), (64, 3, 1))
KEPT_OF_A_TURN = ("layer", "surrogate", "taken", "gap", "objective", "validation", "seconds", "inference_seconds")


@dataclass(frozen=True)
class Settings:
    """What a run costs: full or as a trial. Values of λ and of learning rates are chosen among these by validation."""

    n_train: int = 45_000
    n_validation: int = 5000
    n_seeds: int = 3
    pretrain_epochs: int = 8
    # Images of the searches, of the run over all layers and of the times by size of the blocks.
    n_part: int = 10_000
    # Where the searches begin: they continue along their ladders while an end is the best.
    lams: tuple[float, ...] = (1e-2, 1e-3, 1e-4)
    rates: tuple[float, ...] = (1e-3, 3e-4, 1e-4)
    block_size: int = 500
    max_passes: int = 1
    max_epochs: int = 3
    # Modules that stay as they are, the first four convolutions: the page says what their turns cost and bring.
    n_kept: int = 10
    # They take about as long as the turns of the three layers do.
    gradient_epochs: int = 3
    timing_block_sizes: tuple[int, ...] = (500, 2000, 10_000)


def make_network(seed: int) -> nn.Sequential:
    """Six convolutions and a last layer, as the paper's, with fewer channels."""
    torch.manual_seed(seed)
    layers: list[nn.Module] = []
    n_channels = 3
    for shape in CONVOLUTIONS:
        if isinstance(shape, tuple):
            layers += [nn.Conv2d(n_channels, shape[0], shape[1], stride=shape[2], padding=shape[1] // 2), nn.ReLU()]
            n_channels = shape[0]
        else:
            layers.append(nn.MaxPool2d(2))
    network = nn.Sequential(*layers, nn.Flatten(), nn.Linear(n_channels * 4 * 4, N_CLASSES))
    # Twice as fast on a CPU.
    return network.to(memory_format=torch.channels_last)


@torch.no_grad()
def scores_of(network: nn.Module, X: Tensor) -> Tensor:
    return torch.cat([network(part) for part in X.split(1000)])


def _mean_over_classes(metric: Callable[..., float], scores: NDArray[Any], y: NDArray[np.int64]) -> float:
    return float(np.mean([metric(y == k, scores[:, k]) for k in range(N_CLASSES)]))


def quality(network: nn.Module, data: Part) -> dict[str, float]:
    """Accuracy, and mean AP and NDCG of each class against the rest: by its score, and by its probability."""
    scores = scores_of(network, data.X).double()
    found = {"accuracy": float(np.mean(scores.argmax(dim=1).numpy() == data.y))}
    for name, ranked in (("", scores), (" by probability", torch.log_softmax(scores, dim=1))):
        found["ap" + name] = _mean_over_classes(average_precision, ranked.numpy(), data.y)
        found["ndcg" + name] = _mean_over_classes(ndcg, ranked.numpy(), data.y)
    return found


def rank_hinge(loss: str) -> Callable[[Tensor, Tensor], Tensor]:
    criterion = RankHingeLoss(loss=loss, dim=0)
    return lambda scores, y: criterion(scores, functional.one_hot(y, N_CLASSES))


def multiclass_hinge(scores: Tensor, y: Tensor) -> Tensor:
    """The 0-1 loss of the layer-wise trainer."""
    augmented = scores + 1 - functional.one_hot(y, N_CLASSES)
    return torch.mean(augmented.max(dim=1).values - scores.gather(1, y[:, None])[:, 0])


GRADIENT_LOSSES: dict[str, Callable[[], Callable[[Tensor, Tensor], Tensor]]] = {
    "cross-entropy": lambda: functional.cross_entropy,
    "multiclass-hinge": lambda: multiclass_hinge,
    "ap": lambda: rank_hinge("ap"),
    "ndcg": lambda: rank_hinge("ndcg"),
}
RANKING_LOSSES = ("ap", "ndcg")


def judge(loss: str) -> str:
    """The metric by which its settings are chosen: its own, mean AP where it has none."""
    return "ndcg" if loss == "ndcg" else "ap"


def _epoch(
    network: nn.Module,
    optimiser: torch.optim.Optimizer,
    criterion: Callable[[Tensor, Tensor], Tensor],
    data: Part,
    batch_size: int,
    generator: np.random.Generator,
    flips: bool,
) -> None:
    y = torch.from_numpy(data.y)
    for rows in np.array_split(generator.permutation(len(y)), max(len(y) // batch_size, 1)):
        X = data.X[torch.from_numpy(rows)]
        if flips:
            mirrored = torch.from_numpy(generator.random(len(rows)) < 0.5)
            X = torch.where(mirrored[:, None, None, None], X.flip(3), X)
        loss = criterion(network(X), y[torch.from_numpy(rows)])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def pretrain(train: Part, settings: Settings, seed: int) -> nn.Sequential:
    """Cross-entropy by Adadelta with its usual values, images mirrored at random."""
    network, generator = make_network(seed), np.random.default_rng(seed)
    optimiser = torch.optim.Adadelta(network.parameters())
    for _ in range(settings.pretrain_epochs):
        _epoch(network, optimiser, functional.cross_entropy, train, SMALL_BATCH, generator, flips=True)
    return network


def by_gradients(
    start: nn.Sequential, loss: str, rate: float, train: Part, validation: Part, settings: Settings, seed: int
) -> tuple[nn.Sequential, dict[str, Any]]:
    """Fine-tune by Adam; the weights of the best epoch on validation images, the start included."""
    # A ranking is one of a batch, so that is as large as a block.
    criterion, batch_size = GRADIENT_LOSSES[loss](), settings.block_size if loss in RANKING_LOSSES else SMALL_BATCH
    network, generator = copy.deepcopy(start), np.random.default_rng(seed)
    optimiser = torch.optim.Adam(network.parameters(), lr=rate)
    best, best_network = quality(network, validation)[judge(loss)], copy.deepcopy(network)
    wall, processor = time.perf_counter(), time.process_time()
    for _ in range(settings.gradient_epochs):
        _epoch(network, optimiser, criterion, train, batch_size, generator, flips=False)
        found = quality(network, validation)[judge(loss)]
        if found > best:
            best, best_network = found, copy.deepcopy(network)
    return best_network, _clocks(wall, processor)


@contextmanager
def clock_of_the_processor() -> Iterator[None]:
    """The trainer's own times in seconds of the processor: its clock counts what other programs take as well."""
    with ExitStack() as stack:
        for module in (criteria, trainer):
            stack.enter_context(patch.object(module, "time", SimpleNamespace(perf_counter=time.process_time)))
        yield


def by_layers(
    start: nn.Sequential,
    loss: str,
    lam: float,
    train: Part,
    validation: Part | None,
    settings: Settings,
    seed: int,
    method: str = "auto",
) -> tuple[nn.Sequential, dict[str, Any]]:
    """Layer-wise training from a pre-trained network: the network and what its training took."""
    network = copy.deepcopy(start)
    for layer in network[: settings.n_kept]:
        layer.requires_grad_(False)
    machine = LayerwiseTrainer(
        network,
        loss,
        lam=lam,
        block_size=settings.block_size,
        max_passes=settings.max_passes,
        max_epochs=settings.max_epochs,
        method=method,
        random_state=seed,
    )
    wall, processor = time.perf_counter(), time.process_time()
    with clock_of_the_processor():
        machine.fit(train.X, train.y, validation=validation and (validation.X, validation.y))
    history = machine.history_
    return network, {
        **_clocks(wall, processor),
        "inference_seconds": round(sum(entry["inference_seconds"] for entry in history), 3),
        "objective_before": history[0]["objective"],
        "objective": history[-1]["objective"],
        "turns": [{key: entry[key] for key in KEPT_OF_A_TURN if key in entry} for entry in history[1:]],
    }


def _clocks(wall: float, processor: float) -> dict[str, float]:
    """Seconds since, by the clock and of the processor: on a busy machine the second is what counts."""
    return {
        "wall": round(time.perf_counter() - wall, 3),
        "seconds": round(time.process_time() - processor, 3),
    }
