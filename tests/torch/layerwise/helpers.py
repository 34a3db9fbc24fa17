"""Small networks, data with something to learn, and parts of the trainer on their own."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import nn

from rankhinge.torch.layerwise.blocks import Blocks
from rankhinge.torch.layerwise.chain import Chain
from rankhinge.torch.layerwise.criteria import make_criterion
from rankhinge.torch.layerwise.surrogate import make_surrogate

LOSSES = ("multiclass-hinge", "ap", "ndcg")


def blobs(n=90, d=6, n_classes=3, seed=0):
    """Classes that overlap; each has a centre of its own."""
    generator = np.random.default_rng(seed)
    y = generator.integers(n_classes, size=n)
    X = generator.normal(size=(n, d)) + 1.2 * generator.normal(size=(n_classes, d))[y]
    return torch.as_tensor(X, dtype=torch.float32), y


def images(n=48, n_classes=3, seed=0):
    X, y = blobs(n, 2 * 8 * 8, n_classes, seed)
    return X.view(n, 2, 8, 8), y


def dense(depth=2, width=7, d=6, n_classes=3, seed=0, dtype=torch.float32):
    """`depth` layers of weights."""
    torch.manual_seed(seed)
    sizes = [d, *[width] * (depth - 1), n_classes]
    layers = [layer for a, b in pairwise(sizes) for layer in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*layers[:-1]).to(dtype)


def convolutional(n_classes=3, seed=0, dtype=torch.float32):
    """Everything that is supported, batch norm with uneven statistics and factors of both signs."""
    torch.manual_seed(seed)
    network = nn.Sequential(
        nn.Sequential(nn.Conv2d(2, 5, 3, padding=1), nn.BatchNorm2d(5), nn.ReLU(inplace=True), nn.MaxPool2d(2)),
        nn.Dropout2d(0.5),
        nn.Conv2d(5, 4, 3, stride=1, bias=False),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(4, 6),
        nn.BatchNorm1d(6),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(6, n_classes),
    )
    for module in network.modules():
        if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2.0)
            nn.init.normal_(module.weight)
            nn.init.normal_(module.bias)
    return network.to(dtype)


def pooled(dtype=torch.float64):
    """A dense layer before a max-pool, which is unusual but allowed."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(8, 6), nn.ReLU(), nn.MaxPool2d(3, 2, padding=1, ceil_mode=True), nn.Conv2d(2, 3, 2), nn.ReLU(),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(12, 3),
    ).to(dtype)  # fmt: skip


def surrogate_of(network, X, y, loss="ap", layer=-1, block_size=10**6, cache_bytes=1 << 30, method="auto"):
    """The surrogate of the layer that is `layer` in the list of those to be trained."""
    chain, criterion = Chain(network), make_criterion(loss, method)
    n_outputs = chain.run(X[:1].to(chain.dtype)).shape[1]
    targets = criterion.prepare(y, len(X), n_outputs)
    blocks = Blocks(X, targets, criterion, block_size, np.random.default_rng(0))
    return make_surrogate(chain, chain.trainable[layer], blocks, criterion, cache_bytes)


def scores_of(network, X):
    was_training = network.training
    network.eval()
    with torch.no_grad():
        scores = network(X.to(next(network.parameters()).dtype)).double().numpy()
    network.train(was_training)
    return scores


def squares(network):
    """``Σ ‖W‖²`` over Linear and Conv2d."""
    layers = [m for m in network.modules() if isinstance(m, nn.Linear | nn.Conv2d)]
    return sum(float((p.detach().double() ** 2).sum()) for layer in layers for p in layer.parameters())
