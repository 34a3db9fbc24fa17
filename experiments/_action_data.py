"""VOC action classification as the experiments use it: the papers' training boxes, and the other ones for the test."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from _run import VOC_UNIT, data_file, standardised
from numpy.typing import NDArray

__all__ = ["PREPARATIONS", "Actions", "folds_of", "load_actions"]

N_FOLDS = 5
# What the two benchmark pages do: `benchmarks/training.py` ends after the first, `benchmarks/accuracy.py` continues.
PREPARATIONS = {
    "norm": "square root, rows to norm 1",
    "standard": "square root, rows to norm 1, columns standardised",
}


class Actions(NamedTuple):
    """Features and labels in {1, -1, 0 = unlabelled}, of shape (n, 10), of both parts."""

    X: NDArray[np.float64]
    Y: NDArray[np.int64]
    X_test: NDArray[np.float64]
    Y_test: NDArray[np.int64]
    classes: tuple[str, ...]

    def problem(self, k: int) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
        """The labelled rows of one class: features, labels 0/1, and which rows they are."""
        rows = np.flatnonzero(self.Y[:, k])
        return self.X[rows], (self.Y[rows, k] > 0).astype(np.int64), rows


def load_actions(preparation: str = "norm", *, centred: bool = False) -> Actions:
    """The boxes of `in_voc2011` for training, the others for the test.

    Centred features (by the training mean) serve machines without an intercept.
    """
    with np.load(data_file("voc2012_action", "action_mobilenetv2.npz")) as file:
        X = np.sqrt(VOC_UNIT * file["X_box"].astype(np.float64))
        Y, inside, classes = file["Y"].astype(np.int64), file["in_voc2011"], tuple(file["classes"].tolist())
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), np.finfo(float).tiny)
    train, test = X[inside], X[~inside]
    if preparation == "standard":
        train, test = standardised(train, test)
    elif centred:
        mean = train.mean(axis=0)
        train, test = train - mean, test - mean
    return Actions(train, Y[inside], test, Y[~inside], classes)


def folds_of(n: int) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Five folds of the training rows, the same for every class and method; seed 0."""
    part = np.random.default_rng(0).permutation(n) % N_FOLDS
    return [(np.flatnonzero(part != fold), np.flatnonzero(part == fold)) for fold in range(N_FOLDS)]
