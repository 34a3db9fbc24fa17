"""The network of `cifar10.py`, and the ways in which it is trained: by gradients and layer by layer."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from _cifar10_data import N_CLASSES, Part
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from rankhinge.metrics import average_precision, ndcg
from rankhinge.torch.layerwise import LayerwiseTrainer

SMALL_BATCH = 100
# The index from which on the network is dense.
HEAD = 9


@dataclass(frozen=True)
class Settings:
    """What a run costs: full or as a trial."""

    pretrain_epochs: int = 16
    learning_rate: float = 1e-3
    fine_learning_rate: float = 5e-4
    block_size: int = 500
    lam: float = 1e-3
    max_passes: int = 2
    max_epochs: int = 5
    timing_block_sizes: tuple[int, ...] = (500, 3000, 9000)


def make_network(seed: int) -> nn.Sequential:
    torch.manual_seed(seed)
    network = nn.Sequential(
        nn.Conv2d(3, 24, 5, stride=2, padding=2),
        nn.ReLU(),
        nn.Conv2d(24, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 4 * 4, 128),
        nn.ReLU(),
        nn.Linear(128, N_CLASSES),
    )
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


def multiclass_hinge(scores: Tensor, y: Tensor) -> Tensor:
    """Mean of ``max_k ([k ≠ y] + s_k) - s_y``."""
    margin = torch.ones_like(scores).scatter_(1, y[:, None], 0.0)
    return ((scores + margin).amax(dim=1) - scores.gather(1, y[:, None])[:, 0]).mean()


def rank_hinge(loss: str) -> Callable[[Tensor, Tensor], Tensor]:
    from rankhinge.torch import RankHingeLoss

    criterion = RankHingeLoss(loss=loss, dim=0)
    return lambda scores, y: criterion(scores, functional.one_hot(y, N_CLASSES))


# Loss, size of a batch, and what validation looks at. A ranking is one of a batch, so these are large.
GRADIENT_LOSSES: dict[str, tuple[Callable[[], Callable[[Tensor, Tensor], Tensor]], int | None, str]] = {
    "cross-entropy": (lambda: functional.cross_entropy, SMALL_BATCH, "accuracy"),
    "multiclass-hinge": (lambda: multiclass_hinge, SMALL_BATCH, "accuracy"),
    "ap": (lambda: rank_hinge("ap"), None, "ap"),
    "ndcg": (lambda: rank_hinge("ndcg"), None, "ndcg"),
}


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
    """Cross-entropy, with mirrored images."""
    network, generator = make_network(seed), np.random.default_rng(seed)
    optimiser = torch.optim.Adam(network.parameters(), lr=settings.learning_rate)
    for _ in range(settings.pretrain_epochs):
        _epoch(network, optimiser, functional.cross_entropy, train, SMALL_BATCH, generator, flips=True)
    return network


def by_gradients(
    start: nn.Sequential, loss: str, train: Part, validation: Part, settings: Settings, seconds: float, seed: int
) -> tuple[nn.Sequential, dict[str, Any]]:
    """Fine-tune for about so many seconds; the weights of the best epoch by validation, the start included."""
    make_criterion, batch_size, watched = GRADIENT_LOSSES[loss]
    criterion = make_criterion()
    network, generator = copy.deepcopy(start), np.random.default_rng(seed)
    optimiser = torch.optim.Adam(network.parameters(), lr=settings.fine_learning_rate)
    best, best_network, n_epochs = quality(network, validation)[watched], copy.deepcopy(network), 0
    began = time.perf_counter()
    while n_epochs == 0 or time.perf_counter() - began < seconds:
        _epoch(network, optimiser, criterion, train, batch_size or settings.block_size, generator, flips=False)
        n_epochs += 1
        found = quality(network, validation)[watched]
        if found > best:
            best, best_network = found, copy.deepcopy(network)
    return best_network, {"seconds": time.perf_counter() - began, "epochs": n_epochs, "validation": best}


def by_layers(
    start: nn.Sequential, loss: str, train: Part, validation: Part, settings: Settings, seed: int, method: str = "auto"
) -> tuple[nn.Sequential, dict[str, Any]]:
    network = copy.deepcopy(start)
    trainer = LayerwiseTrainer(
        network,
        loss,
        lam=settings.lam,
        block_size=settings.block_size,
        max_passes=settings.max_passes,
        max_epochs=settings.max_epochs,
        method=method,
        random_state=seed,
    )
    began = time.perf_counter()
    trainer.fit(train.X, train.y, validation=(validation.X, validation.y))
    history = trainer.history_
    return network, {
        "seconds": time.perf_counter() - began,
        "inference_seconds": sum(entry["inference_seconds"] for entry in history),
        "validation": trainer.best_["validation"],
        "status": trainer.status_,
        "objective": history[-1]["objective"],
        "history": history,
    }


def inference_times(start: nn.Sequential, train: Part, settings: Settings, seed: int) -> list[dict[str, Any]]:
    """Only the dense layers, one pass: the time in inference by both methods, for blocks of different sizes."""
    features = scores_of(start[:HEAD], train.X)
    entries = []
    for loss in ("ap", "ndcg"):
        for block_size in settings.timing_block_sizes:
            entry: dict[str, Any] = {"loss": loss, "block_size": min(block_size, len(train.y))}
            for method in ("auto", "greedy"):
                trainer = LayerwiseTrainer(
                    copy.deepcopy(start[HEAD:]),
                    loss,
                    lam=settings.lam,
                    block_size=block_size,
                    max_passes=1,
                    max_epochs=settings.max_epochs,
                    method=method,
                    random_state=seed,
                )
                began = time.perf_counter()
                history = trainer.fit(features, train.y).history_
                entry[method] = {
                    "seconds": time.perf_counter() - began,
                    "inference_seconds": sum(turn["inference_seconds"] for turn in history),
                    "objective": history[-1]["objective"],
                }
            entries.append(entry)
    return entries
