"""
Train a network for mean average precision
==========================================

Each of the ten digits is a label, and each label ranks the samples of a mini-batch: scores of shape (n, 10), lists
along ``dim=0``. No sampler is needed; a label without a positive in the batch does not count. Then a few epochs of
direct loss minimisation, whose value is the loss of the ranking itself.

Needs PyTorch and scikit-learn: ``pip install 'rankhinge[torch]'``; takes some seconds.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from rankhinge.metrics import average_precision
from rankhinge.torch import DirectLoss, RankHingeLoss


def network() -> nn.Module:
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 16, 10),
    )


def mean_average_precision(scores: torch.Tensor, y: torch.Tensor) -> float:
    return float(np.mean([average_precision((y == k).numpy(), scores[:, k].numpy()) for k in range(10)]))


def train(model: nn.Module, criterion: nn.Module, X: torch.Tensor, y: torch.Tensor, n_epochs: int, lr: float) -> float:
    """Returns the mean loss of the last epoch."""
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    losses = []
    for _ in range(n_epochs):
        losses.clear()
        for batch in torch.randperm(len(X)).split(128):
            optimizer.zero_grad()
            loss = criterion(model(X[batch]), nn.functional.one_hot(y[batch], 10))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return float(np.mean(losses))


def main() -> None:
    torch.manual_seed(0)
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = (
        torch.as_tensor(part, dtype=torch.float32 if part.ndim == 2 else torch.int64)
        for part in train_test_split(X / 16, y, test_size=0.5, random_state=0, stratify=y)
    )
    model = network()

    def quality() -> float:
        with torch.no_grad():
            return mean_average_precision(model(X_test), y_test)

    qualities = [quality()]
    print(f"untrained:                                       test mAP {qualities[-1]:.4f}")
    for epochs in (5, 10):
        loss = train(model, RankHingeLoss("ap", dim=0), X, y, epochs, 3e-3)
        qualities.append(quality())
        print(f"rank hinge, {epochs:2} epochs more, mean loss {loss:6.4f}:     test mAP {qualities[-1]:.4f}")
    loss = train(model, DirectLoss(epsilon=1.0, loss="ap", dim=0), X, y, 5, 3e-4)
    qualities.append(quality())
    print(f"direct loss, 5 epochs more, mean (1 - AP) {loss:6.4f}: test mAP {qualities[-1]:.4f}")
    _, ax = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
    ax.plot([0, 5, 15], qualities[:3], "o-", label="RankHingeLoss")
    ax.plot([15, 20], qualities[2:], "o-", label="DirectLoss")
    ax.set(xlabel="epochs", ylabel="mean average precision, test", xticks=[0, 5, 10, 15, 20])
    ax.legend()
    plt.show()


if __name__ == "__main__":
    main()
