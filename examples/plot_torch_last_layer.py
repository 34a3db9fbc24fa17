"""
A new last layer for a trained network
======================================

A network has learnt to tell the digits 0 … 7 apart. Its features are then used for a task it has not seen: find the 9s
among 8s and 9s and all others, where few 9s are labelled. Only the last layer is trained, once by cross-entropy and
once by the structured hinge of average precision. The features are computed once, so each step is a matrix product.

Needs PyTorch and scikit-learn: ``pip install 'rankhinge[torch]'``; takes some seconds.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

from rankhinge.metrics import average_precision
from rankhinge.torch import RankHingeLoss

DECAYS = (0.01, 0.1, 1.0)


def digits() -> tuple[torch.Tensor, ...]:
    X, y = load_digits(return_X_y=True)
    parts = train_test_split(X / 16, y, test_size=0.5, random_state=0, stratify=y)
    X_train, X_test, y_train, y_test = parts
    return tuple(
        torch.as_tensor(part, dtype=kind)
        for part, kind in zip((X_train, y_train, X_test, y_test), (torch.float32, torch.int64) * 2)
    )


def pre_train(X: torch.Tensor, y: torch.Tensor) -> nn.Module:
    """A network that has seen the digits 0 … 7 only; returns all but its last layer."""
    body, head = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU()), nn.Linear(32, 8)
    known = y < 8
    optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=1e-2)
    for _ in range(100):
        optimizer.zero_grad()
        nn.functional.cross_entropy(head(body(X[known])), y[known]).backward()
        optimizer.step()
    return body.requires_grad_(False)


def train_head(features: torch.Tensor, relevant: torch.Tensor, criterion: nn.Module, decay: float) -> nn.Module:
    head = nn.Linear(features.shape[1], 1)
    nn.init.zeros_(head.weight)
    optimizer = torch.optim.AdamW(head.parameters(), lr=3e-2, weight_decay=decay)
    for _ in range(400):
        optimizer.zero_grad()
        criterion(head(features).squeeze(1), relevant.float()).backward()
        optimizer.step()
    return head


def main() -> None:
    torch.manual_seed(0)
    X, y, X_test, y_test = digits()
    body = pre_train(X, y)
    # One 9 in three is labelled as such; the others are left out.
    nines = torch.nonzero(y == 9).squeeze(1)
    kept = torch.ones_like(y, dtype=torch.bool)
    kept[nines[len(nines) // 3 :]] = False
    features, relevant = body(X[kept]), y[kept] == 9
    print(f"{int(relevant.sum())} relevant samples among {len(relevant)}, {features.shape[1]} features")
    features_test = body(X_test)
    qualities: dict[str, list[float]] = {}
    for name, criterion in (("cross-entropy", nn.BCEWithLogitsLoss()), ("rank hinge, AP", RankHingeLoss("ap"))):
        for decay in DECAYS:
            head = train_head(features, relevant, criterion, decay)
            scores = head(features_test).squeeze(1).detach()
            quality = average_precision((y_test == 9).numpy(), scores.numpy())
            print(f"{name:14}  weight decay {decay:4}: test AP {quality:.3f}")
            qualities.setdefault(name, []).append(quality)
    _, ax = plt.subplots(figsize=(5.5, 3.6), layout="constrained")
    for name, values in qualities.items():
        ax.semilogx(DECAYS, values, "o-", label=name)
    ax.set(xlabel="weight decay", ylabel="average precision, test", title="9s among all digits")
    ax.legend()
    plt.show()


if __name__ == "__main__":
    main()
