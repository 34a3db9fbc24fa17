"""
Metric learning: ``RetrievalLoss`` in place of SmoothAP
=======================================================

A small network maps digits to points of a sphere. Digits of one class should be close to each other. In a loop with
pytorch-metric-learning's SmoothAP, two things change::

    criterion = SmoothAPLoss()                   ->  criterion = RetrievalLoss("ap", scale=16.0)
    sampler = MPerClassSampler(y, m=…)           ->  none: any batch will do, classes may be of any size

If pytorch-metric-learning is installed, SmoothAP is run too, with the batches of equal classes that it needs.

Needs PyTorch and scikit-learn: ``pip install 'rankhinge[torch]'``; takes some seconds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import train_test_split
from torch import nn

from rankhinge.metrics import average_precision
from rankhinge.torch import RetrievalLoss

BATCH = 100


def mean_average_precision(embeddings: torch.Tensor, y: torch.Tensor) -> float:
    """Each sample queries all others."""
    embeddings = nn.functional.normalize(embeddings, dim=1)
    similarities = (embeddings @ embeddings.T).numpy()
    total = 0.0
    for q in range(len(y)):
        others = torch.arange(len(y)).numpy() != q
        total += average_precision((y == y[q]).numpy()[others], similarities[q][others])
    return total / len(y)


def any_batches(y: torch.Tensor) -> Iterator[torch.Tensor]:
    yield from torch.randperm(len(y)).split(BATCH)


def equal_batches(y: torch.Tensor) -> Iterator[torch.Tensor]:
    """As many samples of each of the ten classes, class by class."""
    classes = [torch.nonzero(y == k).squeeze(1) for k in range(10)]
    for _ in range(len(y) // BATCH):
        yield torch.cat([members[torch.randperm(len(members))[: BATCH // 10]] for members in classes])


def train(criterion: nn.Module, batches, X: torch.Tensor, y: torch.Tensor, n_epochs: int) -> tuple[nn.Module, float]:
    """The network, and the seconds spent in the loss and its backward pass."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 16))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    seconds = 0.0
    for _ in range(n_epochs):
        for batch in batches(y):
            optimizer.zero_grad()
            embeddings = model(X[batch])
            start = time.perf_counter()
            criterion(embeddings, y[batch]).backward()
            seconds += time.perf_counter() - start
            optimizer.step()
    return model, seconds


def draw(X: torch.Tensor, model: nn.Module, y: torch.Tensor) -> None:
    """The test images before and after, each on its two main axes."""
    with torch.no_grad():
        embeddings = nn.functional.normalize(model(X), dim=1)
    fig, axes = plt.subplots(1, 2, figsize=(8, 3.8), layout="constrained")
    for ax, points, title in zip(axes, (X, embeddings), ("pixels", "learnt embeddings")):
        plane = PCA(2).fit_transform(points.numpy())
        picture = ax.scatter(*plane.T, c=y.numpy(), cmap="tab10", s=6)
        ax.set(title=title, xticks=[], yticks=[])
    fig.colorbar(picture, ax=axes, ticks=range(10), label="digit")
    plt.show()


def main() -> None:
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = (
        torch.as_tensor(part, dtype=torch.float32 if part.ndim == 2 else torch.int64)
        for part in train_test_split(X / 16, y, test_size=0.5, random_state=0, stratify=y)
    )
    print(f"pixels:        test mAP {mean_average_precision(X_test, y_test):.3f}")
    rivals = {"RetrievalLoss": (RetrievalLoss("ap", scale=16.0), any_batches)}
    try:
        from pytorch_metric_learning.losses import SmoothAPLoss
    except ImportError:
        print("SmoothAP:      skipped, pytorch-metric-learning is not installed")
    else:
        rivals["SmoothAP"] = (SmoothAPLoss(), equal_batches)
    for name, (criterion, batches) in rivals.items():
        model, seconds = train(criterion, batches, X, y, 10)
        with torch.no_grad():
            quality = mean_average_precision(model(X_test), y_test)
        print(f"{name + ':':14} test mAP {quality:.3f}, {seconds:.2f} s in the loss and its gradient")
        if name == "RetrievalLoss":
            draw(X_test, model, y_test)


if __name__ == "__main__":
    main()
