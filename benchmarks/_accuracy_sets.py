"""The sets of `accuracy.py`, and how each of its tables cuts them.

A `Task` is one outer fold of one set, its features raw; the table ``"rivals"`` standardises them on the training part.
VOC action has a split of its own, MQ2008 its five folds; the others are cut into five folds, stratified or by query,
three times over where they are small; for ``"tuned"`` into three, once. The split of lightgbm_rank's own files is kept
beside them. Sets that had no part in any design are in `_accuracy_outside`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from _accuracy_outside import SOURCES, load_outside
from _datasets import MQ2008_FEATURES, VOC_UNIT, data_file, standardised
from numpy.typing import NDArray
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_svmlight_file
from sklearn.model_selection import GroupKFold, StratifiedKFold

N_FOLDS = 5
TUNED_FOLDS = 3
TABLES = ("untuned", "tuned", "rivals", "lists")


class Part(NamedTuple):
    """Samples: `y` of shape (n,), or (n, K) with a mask of the labelled entries; `qid` for lists."""

    X: Any
    y: NDArray[Any]
    mask: NDArray[np.bool_] | None = None
    qid: NDArray[Any] | None = None


class Task(NamedTuple):
    name: str
    repeat: int
    fold: int
    train: Part
    test: Part


class Raw(NamedTuple):
    """A set before it is cut."""

    X: Any
    y: NDArray[Any]


def _archive(file_name: str) -> Callable[[], Raw]:
    def load() -> Raw:
        with np.load(data_file("imbalanced", file_name)) as file:
            return Raw(file["X"].astype(np.float64), (file["y"] > 0).astype(np.int64))

    return load


def _w8a() -> Raw:
    X, y = load_svmlight_file(str(data_file("imbalanced", "w8a.gz")), n_features=300, zero_based=False)
    return Raw(X.tocsr(), (y > 0).astype(np.int64))


def _a9a() -> Raw:
    X, y = load_svmlight_file(str(data_file("imbalanced", "a9a.gz")), n_features=123, zero_based=True)
    return Raw(X.tocsr(), (y > 0).astype(np.int64))


def _hiv() -> Raw:
    with np.load(data_file("hiv_molecules", "hiv_ecfp4_1024.npz")) as file:
        X = sparse.csr_array(np.unpackbits(file["X"], axis=1).astype(np.float64))
        return Raw(X, (file["y"] > 0).astype(np.int64))


def _digits() -> Raw:
    X, y = load_digits(return_X_y=True)
    return Raw(X, y)


def _breast_cancer() -> Raw:
    X, y = load_breast_cancer(return_X_y=True)
    return Raw(X, y)


BINARY: dict[str, Callable[[], Raw]] = {
    "mammography": _archive("23_mammography.npz"),
    "celeba": _archive("8_celeba.npz"),
    "cover": _archive("10_cover.npz"),
    "CIFAR10_0": _archive("CIFAR10_0.npz"),
    "w8a": _w8a,
    "a9a": _a9a,
    "hiv_molecules": _hiv,
    "digits": _digits,
    "breast cancer": _breast_cancer,
}
OWN_SPLIT = "lightgbm_rank, its own split"
LISTS = ("mq2008", "lightgbm_rank", OWN_SPLIT)
OUTSIDE = tuple(SOURCES)
SETS = ("VOC action", *BINARY, *LISTS, *OUTSIDE)
SMALL = ("mammography", "CIFAR10_0", "digits", "breast cancer", "lightgbm_rank")
# Those whose searches take longest come last: a run that is stopped lacks them alone.
SLOW = ("a9a", "hiv_molecules", "digits", "w8a", "cover", "celeba", "VOC action")


def sets_of(table: str) -> tuple[str, ...]:
    """The sets of a table, the slow ones last."""
    if table == "lists":
        return LISTS
    own = ("VOC action", *BINARY)
    names = own if table == "rivals" else (*own, *OUTSIDE)
    return (*(name for name in names if name not in SLOW), *(name for name in SLOW if name in names))


def places(table: str, name: str) -> list[tuple[int, int]]:
    """Repeat and fold of each task of a set."""
    if name in ("VOC action", OWN_SPLIT):
        return [(0, 0)]
    if table == "tuned":
        return [(0, fold) for fold in range(TUNED_FOLDS)]
    n_repeats = 3 if name in SMALL else 1
    return [(repeat, fold) for repeat in range(n_repeats) for fold in range(N_FOLDS)]


def load(table: str, name: str, repeat: int, fold: int) -> Task:
    """One task."""
    if name in LISTS:
        parts = _lists(name, repeat, fold)
    elif name == "VOC action":
        parts = _voc(as_they_are=table != "rivals")
    else:
        raw = Raw(*load_outside(name)) if name in OUTSIDE else BINARY[name]()
        n_folds = TUNED_FOLDS if table == "tuned" else N_FOLDS
        cuts = list(StratifiedKFold(n_folds, shuffle=True, random_state=repeat).split(raw.y, raw.y))
        parts = tuple(Part(raw.X[rows], raw.y[rows]) for rows in cuts[fold])
    return Task(name, repeat, fold, *(_standardised(*parts) if table == "rivals" else parts))


def _lists(name: str, repeat: int, fold: int) -> tuple[Part, Part]:
    if name == "mq2008":
        return _mq2008(fold)
    return _lightgbm_rank(repeat, fold) if name == "lightgbm_rank" else _lightgbm_files()


def _standardised(train: Part, test: Part) -> tuple[Part, Part]:
    X, X_test = standardised(train.X, test.X)
    return train._replace(X=X), test._replace(X=X_test)


def _voc(*, as_they_are: bool) -> tuple[Part, Part]:
    """Person boxes: a network's activations, or their square roots with rows of norm 1."""
    with np.load(data_file("voc2012_action", "action_mobilenetv2.npz")) as file:
        X = VOC_UNIT * file["X_box"].astype(np.float64)
        Y, inside = file["Y"].astype(np.int64), file["in_voc2011"]
    if not as_they_are:
        X = np.sqrt(X)
        X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), np.finfo(float).tiny)
    return Part(X[inside], Y[inside], Y[inside] != 0), Part(X[~inside], Y[~inside], Y[~inside] != 0)


def _mq2008(fold: int) -> tuple[Part, Part]:
    """LETOR's folds: fold k is tested on one part; the other four are for training and choices."""
    parts = []
    for number in range(1, 6):
        path = str(data_file("mq2008", f"S{number}.txt.gz"))
        X, y, qid = load_svmlight_file(path, n_features=MQ2008_FEATURES, query_id=True)
        parts.append((X.toarray(), y, qid))
    # Fold 1 of LETOR is tested on S5, fold 2 on S1, and so on.
    tested = (fold + 4) % 5
    rest = [part for place, part in enumerate(parts) if place != tested]
    X, y, qid = (np.concatenate([part[i] for part in rest]) for i in range(3))
    X_test, y_test, qid_test = parts[tested]
    return Part(X, y, qid=qid), Part(X_test, y_test, qid=qid_test)


def _lightgbm_rank(repeat: int, fold: int) -> tuple[Part, Part]:
    """The queries of both files, cut into folds."""
    train, test = _lightgbm_files()
    X, y = np.concatenate([train.X, test.X]), np.concatenate([train.y, test.y])
    qid = np.concatenate([train.qid, test.qid + train.qid.max() + 1])
    cuts = list(GroupKFold(N_FOLDS, shuffle=True, random_state=repeat).split(X, groups=qid))
    inside, outside = cuts[fold]
    return Part(X[inside], y[inside], qid=qid[inside]), Part(X[outside], y[outside], qid=qid[outside])


def _lightgbm_files() -> tuple[Part, Part]:
    """The files for training and for the test, raw."""
    parts = []
    for part in ("train", "test"):
        X, y = load_svmlight_file(str(data_file("lightgbm_rank", f"rank.{part}")), n_features=301, zero_based=False)
        sizes = np.loadtxt(data_file("lightgbm_rank", f"rank.{part}.query"), dtype=int)
        parts.append(Part(X.toarray(), y, qid=np.repeat(np.arange(sizes.size), sizes)))
    return parts[0], parts[1]
