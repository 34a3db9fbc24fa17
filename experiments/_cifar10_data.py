"""CIFAR-10 as tensors: 10,000 training images and 10,000 test images, from the folder of data sets."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
N_CLASSES = 10
N_VALIDATION = 1000


class MissingData(FileNotFoundError):
    """The data set is not where it should be."""


@dataclass(frozen=True)
class Part:
    """Images, (n, 3, 32, 32), and their classes."""

    X: torch.Tensor
    y: NDArray[np.int64]

    def __getitem__(self, rows: NDArray[np.int64]) -> Part:
        return Part(self.X[torch.from_numpy(rows)], self.y[rows])


def _file(name: str) -> Path:
    folder = os.environ.get("RANKHINGE_DATA")
    path = (Path(folder) if folder else ROOT.parent / "shared" / "data") / "cifar10" / name
    if not path.exists():
        place = "the folder named by RANKHINGE_DATA" + ("" if folder else ", or ../shared/data")
        raise MissingData(f"the data set cifar10 is missing: cifar10/{name} belongs into {place}")
    return path


def _read(images: str, labels: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    # One row of pixels is one image: the file is higher than Pillow takes for safe.
    Image.MAX_IMAGE_PIXELS = None
    with Image.open(_file(images)) as file:
        X = np.asarray(file).reshape(-1, 32, 32, 3)
    y = np.array(json.loads(_file(labels).read_text("utf-8")), dtype=np.int64)
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
