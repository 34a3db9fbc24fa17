"""The data sets of `training.py`: where they are, how they are scaled and split.

They are read from the folder named by the environment variable RANKHINGE_DATA, or from ``../shared/data`` beside
the repository. A set that is missing raises `MissingData`, which says where it goes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from _harness import ROOT
from numpy.typing import NDArray
from scipy import sparse
from sklearn.datasets import load_svmlight_file, load_svmlight_files
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

VOC_UNIT = 0.0235285
MQ2008_FEATURES = 46


class MissingData(FileNotFoundError):
    """A data set is not where it should be."""


@dataclass(frozen=True)
class Dataset:
    """A training and a test part.

    `y` is binary (n,), for VOC (n, K) in {1, -1} with a mask of the labelled entries, and for lists graded with the
    query of each row in `qid`.
    """

    name: str
    X: Any
    y: NDArray[Any]
    X_test: Any
    y_test: NDArray[Any]
    mask: NDArray[np.bool_] | None = None
    mask_test: NDArray[np.bool_] | None = None
    qid: NDArray[Any] | None = None
    qid_test: NDArray[Any] | None = None
    classes: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        return "lists" if self.qid is not None else "binary" if self.mask is None else "multilabel"

    def describe(self) -> dict[str, Any]:
        """What the page says about it."""
        n_positives = int((self.y > 0).sum()) if self.y.ndim == 1 else int(np.median((self.y > 0).sum(axis=0)))
        return {
            "kind": self.kind,
            "n_train": self.X.shape[0],
            "n_test": self.X_test.shape[0],
            "n_features": self.X.shape[1],
            "n_positives": n_positives,
            "sparse": bool(sparse.issparse(self.X)),
        }


def data_file(*parts: str) -> Path:
    """The path of a file of the data folder; `MissingData` if it is not there."""
    folder = os.environ.get("RANKHINGE_DATA")
    root = Path(folder) if folder else ROOT.parent / "shared" / "data"
    path = root.joinpath(*parts)
    if not path.exists():
        place = "the folder named by RANKHINGE_DATA"
        if not folder:
            place = f"../shared/data, or {place}"
        raise MissingData(f"a data set is missing: {'/'.join(parts)} belongs into {place}")
    return path


def standardised(X: Any, X_test: Any) -> tuple[Any, Any]:
    """Standard deviation 1 on the training part and, where X is dense, mean 0; sparse X stays sparse."""
    scaler = StandardScaler(with_mean=not sparse.issparse(X))
    return scaler.fit_transform(X), scaler.transform(X_test)


def halves(name: str, X: Any, y: NDArray[Any]) -> Dataset:
    """A stratified half for the test, features standardised on the other."""
    X, X_test, y, y_test = train_test_split(X, (y > 0).astype(np.int64), test_size=0.5, stratify=y, random_state=0)
    X, X_test = standardised(X, X_test)
    return Dataset(name, X, y, X_test, y_test)


def voc_action() -> Dataset:
    """Person boxes of VOC action classification; square root, then rows to norm 1, so that C has a meaning."""
    with np.load(data_file("voc2012_action", "action_mobilenetv2.npz")) as file:
        X = np.sqrt(VOC_UNIT * file["X_box"].astype(np.float64))
        Y, inside, classes = file["Y"].astype(np.int64), file["in_voc2011"], tuple(file["classes"].tolist())
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), np.finfo(float).tiny)
    return Dataset(
        "VOC action",
        X[inside],
        Y[inside],
        X[~inside],
        Y[~inside],
        mask=Y[inside] != 0,
        mask_test=Y[~inside] != 0,
        classes=classes,
    )


def mq2008() -> Dataset:
    """Fold 1: trained on S1 to S3, tested on S5; S4 is for validation and is not used."""
    files = [str(data_file("mq2008", f"S{part}.txt.gz")) for part in (1, 2, 3, 5)]
    loaded = load_svmlight_files(files, n_features=MQ2008_FEATURES, query_id=True)
    X = [part.toarray() for part in loaded[0::3]]
    y, qid = loaded[1::3], loaded[2::3]
    train, test = standardised(np.concatenate(X[:3]), X[3])
    return Dataset("mq2008", train, np.concatenate(y[:3]), test, y[3], qid=np.concatenate(qid[:3]), qid_test=qid[3])


def a9a() -> Dataset:
    # The two files count columns differently, from 0 and from 1: read in one call, with the base guessed for both
    # together, the test part would be shifted by a column, and every model would rank it worse than at random.
    X, y = load_svmlight_file(str(data_file("imbalanced", "a9a.gz")), n_features=123, zero_based=True)
    X_test, y_test = load_svmlight_file(str(data_file("imbalanced", "a9a.t.gz")), n_features=123, zero_based=False)
    X, X_test = standardised(X.tocsr(), X_test.tocsr())
    return Dataset("a9a", X, (y > 0).astype(np.int64), X_test, (y_test > 0).astype(np.int64))


def w8a() -> Dataset:
    X, y = load_svmlight_file(str(data_file("imbalanced", "w8a.gz")), n_features=300, zero_based=False)
    return halves("w8a", X.tocsr(), y)


def hiv_molecules() -> Dataset:
    with np.load(data_file("hiv_molecules", "hiv_ecfp4_1024.npz")) as file:
        return halves("hiv_molecules", np.unpackbits(file["X"], axis=1).astype(np.float64), file["y"])


def _archive(name: str, file_name: str) -> Callable[[], Dataset]:
    def load() -> Dataset:
        with np.load(data_file("imbalanced", file_name)) as file:
            return halves(name, file["X"].astype(np.float64), file["y"])

    return load


LOADERS: dict[str, Callable[[], Dataset]] = {
    "VOC action": voc_action,
    "mq2008": mq2008,
    "w8a": w8a,
    "a9a": a9a,
    "celeba": _archive("celeba", "8_celeba.npz"),
    "cover": _archive("cover", "10_cover.npz"),
    "mammography": _archive("mammography", "23_mammography.npz"),
    "hiv_molecules": hiv_molecules,
    "CIFAR10_0": _archive("CIFAR10_0", "CIFAR10_0.npz"),
}


def shortened(data: Dataset, n_rows: int) -> Dataset:
    """A part of the training rows, for trials: whole queries, or rows drawn at random."""
    if data.X.shape[0] <= n_rows:
        return data
    if data.qid is not None:
        queries, codes = np.unique(data.qid, return_inverse=True)
        rows = np.flatnonzero(codes < queries.size * n_rows // codes.size)
    else:
        rows = np.sort(np.random.default_rng(0).permutation(data.X.shape[0])[:n_rows])
    return replace(
        data,
        X=data.X[rows],
        y=data.y[rows],
        mask=None if data.mask is None else data.mask[rows],
        qid=None if data.qid is None else data.qid[rows],
    )
