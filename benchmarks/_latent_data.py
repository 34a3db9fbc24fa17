"""Bags for the benchmark and the experiments: windows of VOC 2012, and the multiple-instance sets."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from typing import Any

import numpy as np
from _datasets import data_file
from numpy.typing import NDArray

from rankhinge.latent import Bags

MIL_SETS = ("musk1", "musk2", "elephant", "birds_brown_creeper", "corel_dogs")


@dataclass(frozen=True)
class Windows:
    """Images as bags of windows; `Y` in {1, -1, 0 = difficult only}."""

    bags: Bags
    boxes: NDArray[Any]
    Y: NDArray[Any]
    is_val: NDArray[np.bool_]
    classes: tuple[str, ...]
    objects: NDArray[Any]
    object_columns: tuple[str, ...]

    def problem(self, k: int, val: bool = False) -> tuple[Bags, NDArray[np.bool_], NDArray[np.int64]]:
        """The images of a split that are labelled for class k, which of them are positive, and their numbers."""
        index = np.flatnonzero((self.is_val == val) & (self.Y[:, k] != 0))
        return self.bags[index], self.Y[index, k] > 0, index


def voc_windows() -> Windows:
    """The windows as they are: 8-bit features, not scaled."""
    with np.load(data_file("voc2012_windows", "windows_mobilenetv2.npz")) as file:
        return Windows(
            Bags(file["X"], bag_ids=file["image_of_window"]),
            file["window_xyxy"],
            file["Y"].astype(np.int64),
            file["is_val"],
            tuple(file["classes"].tolist()),
            file["gt"],
            tuple(file["gt_columns"].tolist()),
        )


def mil_set(name: str) -> tuple[Bags, NDArray[np.int64]]:
    """A multiple-instance set: bags and their labels, features standardised."""
    with gzip.open(data_file("mil", f"{name}.csv.gz"), "rt") as file:
        table = np.loadtxt(file, delimiter=",")
    X = table[:, 2:]
    X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    bags = Bags(X, bag_ids=table[:, 1].astype(np.int64))
    label_of = dict(zip(table[:, 1].astype(int).tolist(), table[:, 0].tolist(), strict=True))
    return bags, np.array([label_of[b] > 0 for b in bags.ids.tolist()]).astype(np.int64)
