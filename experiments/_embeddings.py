"""The last layer of a network on fixed features: four ways to train it, settings chosen on the same folds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from _action_data import load_actions
from _run import data_file
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from rankhinge import RankSVCCV, metrics
from rankhinge.torch import RankHingeLoss

__all__ = ["MACHINES", "N_OUTER", "Layer", "actions", "resnet"]

N_OUTER, N_INNER = 5, 3
# Fifteen values of C for the convex machines; RankHingeLoss has more settings, the tight bound its own.
CS = np.logspace(-1, 11 / 3, 15)
RANKING_CS = np.logspace(1, 17 / 3, 15)
LAMBDAS = (1e-2, 1e-3, 1e-4, 1e-5)
BATCHES = (512, None)
# Steps of Adam; validation looks at the weights after each of these, and the best is kept.
CHECKS, RATE = (100, 200, 300), 0.03
Scores = NDArray[np.float64]


class Layer(NamedTuple):
    """Features and labels in {1, -1, 0 = unlabelled}, of shape (n, K), of both parts."""

    X: NDArray[np.float64]
    Y: NDArray[np.int64]
    X_test: NDArray[np.float64]
    Y_test: NDArray[np.int64]

    def folds(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Three inner folds, stratified where there is one label only; seed 0."""
        strata = self.Y[:, 0] if self.Y.shape[1] == 1 else np.zeros(len(self.Y))
        return list(StratifiedKFold(N_INNER, shuffle=True, random_state=0).split(self.X, strata))


def actions() -> Layer:
    """MobileNetV2's penultimate layer of VOC's person boxes, ten labels, the papers' split."""
    data = load_actions("norm", centred=True)
    return Layer(data.X, data.Y, data.X_test, data.Y_test)


def resnet() -> Iterator[Layer]:
    """ResNet-18's features of CIFAR10_0, one label; five outer folds, prepared as VOC's features are."""
    with np.load(data_file("imbalanced", "CIFAR10_0.npz")) as file:
        X, y = np.sqrt(file["X"].astype(np.float64)), np.where(file["y"] > 0, 1, -1)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), np.finfo(float).tiny)
    for train, test in StratifiedKFold(N_OUTER, shuffle=True, random_state=0).split(X, y):
        mean = X[train].mean(axis=0)
        yield Layer(X[train] - mean, y[train, None], X[test] - mean, y[test, None])


def judged(Y: NDArray[np.int64], scores: Scores) -> list[float]:
    """AP of each label on its labelled rows."""
    return [
        float(metrics.average_precision(Y[Y[:, k] != 0, k] > 0, scores[Y[:, k] != 0, k])) for k in range(Y.shape[1])
    ]


def _rank_svc(layer: Layer, **options: Any) -> tuple[Scores, Any]:
    model = RankSVCCV("ap", cv=layer.folds(), **options)
    y: Any = (layer.Y > 0).astype(np.int64)
    if y.shape[1] == 1:
        model.fit(layer.X, y[:, 0])
    else:
        model.fit(layer.X, y, mask=layer.Y != 0)
    return layer.X_test @ model.coef_.T, np.atleast_1d(model.C_).tolist()


def tight(layer: Layer) -> tuple[Scores, Any]:
    """`RankSVCCV` with its defaults: all labels and folds in lockstep."""
    return _rank_svc(layer)


def convex(layer: Layer) -> tuple[Scores, Any]:
    return _rank_svc(layer, bound="convex", Cs=RANKING_CS)


def logistic(layer: Layer) -> tuple[Scores, Any]:
    """scikit-learn's logistic regression with an intercept, a C for each label."""
    scores, chosen = [], []
    for k in range(layer.Y.shape[1]):
        known = layer.Y[:, k] != 0
        found = np.zeros((CS.size, N_INNER))
        for place, (inside, outside) in enumerate(layer.folds()):
            inside, outside = inside[known[inside]], outside[known[outside]]
            model = LogisticRegression(max_iter=1000, warm_start=True)
            for j, C in enumerate(CS):
                model.set_params(C=C).fit(layer.X[inside], layer.Y[inside, k])
                found[j, place] = metrics.average_precision(
                    layer.Y[outside, k] > 0, model.decision_function(layer.X[outside])
                )
        C = float(CS[found.mean(axis=1).argmax()])
        model = LogisticRegression(C=C, max_iter=1000).fit(layer.X[known], layer.Y[known, k])
        scores.append(model.decision_function(layer.X_test))
        chosen.append(C)
    return np.array(scores).T, chosen


def _trained(X: Any, Y: Any, lam: float, batch: int | None, checks: tuple[int, ...]) -> Iterator[torch.Tensor]:
    """Weights (K, d) after so many steps of Adam on ``λ/2 ‖W‖² + Σ_k J_k`` of random batches."""
    generator = np.random.default_rng(0)
    inputs, relevant, known = torch.tensor(X), torch.tensor((Y > 0).astype(np.int64)), torch.tensor(Y != 0)
    weights = torch.zeros(Y.shape[1], X.shape[1], dtype=inputs.dtype, requires_grad=True)
    optimiser = torch.optim.Adam([weights], lr=RATE)
    criterion = RankHingeLoss("ap", dim=0, reduction="sum")
    for step in range(1, checks[-1] + 1):
        rows = slice(None) if batch is None else torch.from_numpy(generator.permutation(len(X))[:batch])
        loss = criterion(inputs[rows] @ weights.T, relevant[rows], known[rows]) + lam / 2 * (weights**2).sum()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if step in checks:
            yield weights.detach().clone()


def by_gradients(layer: Layer, checks: tuple[int, ...] = CHECKS) -> tuple[Scores, Any]:
    """A linear layer under `RankHingeLoss`: λ, the batch and the number of steps are chosen for each label."""
    X, X_test = layer.X.astype(np.float32), torch.tensor(layer.X_test.astype(np.float32))
    settings = [(lam, batch) for lam in LAMBDAS for batch in BATCHES]
    found = np.zeros((len(settings), len(checks), layer.Y.shape[1]))
    for inside, outside in layer.folds():
        judging = torch.tensor(X[outside])
        for s, (lam, batch) in enumerate(settings):
            for c, weights in enumerate(_trained(X[inside], layer.Y[inside], lam, batch, checks)):
                found[s, c] += judged(layer.Y[outside], (judging @ weights.T).double().numpy())
    best = found.reshape(-1, layer.Y.shape[1]).argmax(axis=0)
    scores = np.empty((len(layer.Y_test), layer.Y.shape[1]))
    chosen: list[Any] = [None] * layer.Y.shape[1]
    for place in np.unique(best):
        (lam, batch), check = settings[place // len(checks)], int(place % len(checks))
        *_, weights = _trained(X, layer.Y, lam, batch, checks[: check + 1])
        for k in np.flatnonzero(best == place):
            scores[:, k] = (X_test @ weights[k]).double().numpy()
            chosen[k] = [lam, batch, checks[check]]
    return scores, chosen


MACHINES: dict[str, Callable[..., tuple[Scores, Any]]] = {
    "RankSVC, tight": tight,
    "RankSVC, convex": convex,
    "logistic regression": logistic,
    "RankHingeLoss": by_gradients,
}


def evaluated(name: str, layer: Layer, **options: Any) -> dict[str, Any]:
    """Test AP of each label, what was chosen, and seconds of the processor."""
    began = time.process_time()
    scores, chosen = MACHINES[name](layer, **options)
    return {"ap": judged(layer.Y_test, scores), "chosen": chosen, "seconds": round(time.process_time() - began, 2)}
