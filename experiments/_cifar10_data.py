"""CIFAR-10 as tensors: 10,000 training images and 10,000 test images, from the folder of data sets."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

# Data sets are read as the benchmarks do it: their folder has to be on the path first (E402).
ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "benchmarks"))

import numpy as np  # noqa: E402
import torch  # noqa: E402
from _datasets import MissingData, data_file  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from PIL import Image  # noqa: E402

__all__ = ["N_CLASSES", "N_VALIDATION", "ROOT", "MissingData", "Part", "load", "split"]

N_CLASSES = 10
N_VALIDATION = 1000


@dataclass(frozen=True)
class Part:
    """Images, (n, 3, 32, 32), and their classes."""

    X: torch.Tensor
    y: NDArray[np.int64]

    def __getitem__(self, rows: NDArray[np.int64]) -> Part:
        return Part(self.X[torch.from_numpy(rows)], self.y[rows])


def _read(images: str, labels: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    # One row of pixels is one image: the file is higher than Pillow takes for safe.
    Image.MAX_IMAGE_PIXELS = None
    with Image.open(data_file("cifar10", images)) as file:
        X = np.asarray(file).reshape(-1, 32, 32, 3)
    y = np.array(json.loads(data_file("cifar10", labels).read_text("utf-8")), dtype=np.int64)
    return X, y[: len(X)]


def load() -> tuple[Part, Part]:
    """Training and test images, centred and scaled by the training images' channels."""
    (X, y), (X_test, y_test) = (
        _read("data_batch_1.png", "train_lables.json"),
        _read("test_batch.png", "test_lables.json"),
    )
    mean, deviation = X.mean(axis=(0, 1, 2)), X.std(axis=(0, 1, 2))

    def as_tensor(images: NDArray[np.uint8]) -> torch.Tensor:
        scaled = ((images - mean) / deviation).astype(np.float32)
        return torch.from_numpy(np.ascontiguousarray(scaled.transpose(0, 3, 1, 2)))

    return Part(as_tensor(X), y), Part(as_tensor(X_test), y_test)


def split(data: Part, seed: int, n_validation: int = N_VALIDATION) -> tuple[Part, Part]:
    """A part to train on and one for validation."""
    order = np.random.default_rng(seed).permutation(len(data.y))
    return data[np.sort(order[n_validation:])], data[np.sort(order[:n_validation])]
