"""Binary, multiclass and multilabel targets as one-vs-rest problems."""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from rankhinge._validation import (
    check_mask,
    refuse_dask,
    refuse_missing,
    warn_user,
    without_objects,
    without_unlabelled,
)
from rankhinge.problems import Lists, one_list

__all__ = [
    "Targets",
    "as_targets",
    "check_label_names",
    "check_mask_names",
    "encode_targets",
    "label_names",
    "plain_targets",
    "refuse_flat",
    "warn_of_majority",
]


class Targets(NamedTuple):
    """One-vs-rest problems: which samples are relevant to each, and which are labelled."""

    classes: NDArray[Any]
    kind: str
    relevant: NDArray[np.bool_]
    labelled: NDArray[np.bool_] | None

    def lists(self, usable: NDArray[np.bool_] | None = None) -> list[Lists]:
        """One list a problem, or for some of the problems, without the samples that are not labelled for it."""
        chosen = range(len(self.relevant)) if usable is None else np.flatnonzero(usable)
        if self.labelled is None:
            return [one_list(self.relevant[k]) for k in chosen]
        indices = [np.flatnonzero(self.labelled[0])] * len(self.relevant)
        if not np.array_equal(self.labelled, np.broadcast_to(self.labelled[0], self.labelled.shape)):
            # Problems on the same samples share them; these do not.
            indices = [np.flatnonzero(mask) for mask in self.labelled]
        return [one_list(self.relevant[k], indices[k]) for k in chosen]

    def usable(self) -> NDArray[np.bool_]:
        """Which problems have both a positive and a negative."""
        if self.labelled is None:
            return np.any(self.relevant, axis=1) & ~np.all(self.relevant, axis=1)
        known = self.labelled
        return np.any(self.relevant & known, axis=1) & np.any(~self.relevant & known, axis=1)

    def known(self) -> NDArray[np.bool_]:
        """Which samples are labelled for each problem, (K, n)."""
        return np.ones_like(self.relevant) if self.labelled is None else self.labelled


def plain_targets(y: Any, mask: ArrayLike | None) -> Any:
    """Targets in the form that scikit-learn's checks accept: masked entries blanked, objects turned into numbers.

    Of object arrays, these checks accept only strings, and their errors name neither y nor the missing entry.
    """
    refuse_dask(y, "y")
    if mask is not None or getattr(y, "ndim", 0) != 1 or isinstance(y, np.ma.MaskedArray):
        y = without_unlabelled(y, mask)
    labels = None if mask is not None or sparse.issparse(y) else np.asarray(y)
    if labels is None or labels.ndim != 1 or labels.dtype != object:
        return y
    refuse_missing(labels, "y")
    plain = without_objects(labels)
    return y if plain.dtype == object else plain


def as_targets(y: Any, mask: ArrayLike | None) -> NDArray[Any]:
    """Validated targets, dense; a single column is a binary target, unless a mask says that it is one label of many."""
    y = y.toarray() if sparse.issparse(y) else y
    return column_or_1d(y, warn=True) if y.ndim == 2 and y.shape[1] == 1 and mask is None else y


def encode_targets(
    y: NDArray[Any], mask: ArrayLike | None = None, pos_label: Any = None, names: NDArray[Any] | None = None
) -> Targets:
    """Binary, multiclass or multilabel y as one-vs-rest problems; row k of the arrays belongs to problem k.

    With two classes, `pos_label` becomes the second one, whose samples are ranked first. `names` are the column names
    of a multilabel y.
    """
    kind = "multilabel"
    if mask is None:
        check_classification_targets(y)
        kind = str(type_of_target(y))
    if pos_label is not None and kind != "binary":
        raise ValueError(f"pos_label is {pos_label!r}, but y is {kind}: it says which of two classes is ranked first")
    if kind.startswith("multilabel"):
        targets = _encode_labels(y, mask)
        return targets if names is None else targets._replace(classes=names)
    if kind not in ("binary", "multiclass"):
        raise ValueError(f"y is of type {kind!r}: RankSVC takes binary, multiclass and multilabel targets")
    classes = np.unique(y)
    if classes.size < 2:
        raise ValueError(f"y has one class only, {classes[:1].tolist()[0]!r}: a ranking needs positives and negatives")
    if classes.size == 2:
        if pos_label is not None:
            classes = _second(classes, pos_label)
        relevant = y[None, :] == classes[1]
        if pos_label is None:
            warn_of_majority(classes, float(relevant.mean()))
        return Targets(classes, "binary", relevant, None)
    return Targets(classes, "multiclass", y[None, :] == classes[:, None], None)


def _second(classes: NDArray[Any], pos_label: Any) -> NDArray[Any]:
    """The two classes in the order that puts the positive one second."""
    known = [bool(label == pos_label) for label in classes.tolist()]
    if not any(known):
        raise ValueError(f"pos_label is {pos_label!r}, but y has the labels {classes.tolist()}")
    return classes if known[1] else classes[::-1].copy()


def warn_of_majority(classes: NDArray[Any], share: float) -> None:
    """Warn if the positive class is the more frequent one, unless the labels are 0/1 or -1/1."""
    plain = classes.dtype.kind in "biuf" and classes.tolist() in ([0, 1], [-1, 1])
    if share > 0.5 and not plain:
        other, first = classes.tolist()
        warn_user(
            f"the label {first!r} is ranked first, and {100 * share:.3g} % of the samples have it. If you look for "
            f"{other!r}, train on y == {other!r}; RankSVC also takes pos_label={other!r}"
        )


def refuse_flat(shape: tuple[int, ...]) -> None:
    """Raise if a y of this shape has no columns that a mask could be for."""
    if len(shape) != 2:
        raise ValueError(
            f"a mask goes with a multilabel y of shape (n, K), got shape {shape}; should these be sample "
            "weights: a ranking has none"
        )


def _encode_labels(y: NDArray[Any], mask: ArrayLike | None) -> Targets:
    refuse_flat(y.shape)
    mask = None if mask is None else check_mask(mask, y.shape)
    if mask is not None and not mask.any():
        raise ValueError("mask is False everywhere, so that nothing is labelled: True means labelled")
    values = np.unique(y if mask is None else y[mask])
    if not np.isin(values, (-1, 0, 1)).all() or {-1, 0} <= set(values.tolist()):
        raise ValueError(f"labelled entries of y must be 0/1 or -1/1, got {values[:5]}")
    labelled = None if mask is None else np.ascontiguousarray(mask.T)
    return Targets(np.arange(y.shape[1]), "multilabel", np.ascontiguousarray(y.T == 1), labelled)


def label_names(y: Any) -> NDArray[Any] | None:
    """The names of a frame's columns; None if y is no frame. Words are objects, as in `feature_names_in_`."""
    columns = getattr(y, "columns", None)
    if columns is None:
        return None
    names = list(columns)
    if all(isinstance(name, Integral) for name in names):
        return np.array(names, dtype=np.int64)
    return np.fromiter(names, dtype=object, count=len(names))


def check_mask_names(mask: Any, names: NDArray[Any] | None) -> None:
    """Raise if y and its mask are frames whose columns are not the same, in the same order.

    Plain numbers as names are not compared, as by `check_label_names`.
    """
    own = label_names(mask)
    if own is not None and names is not None and own.dtype == names.dtype == object:
        first = next((k for k, pair in enumerate(zip(own.tolist(), names.tolist())) if pair[0] != pair[1]), None)
        if first is not None:
            raise ValueError(
                f"column {first} of mask is {own[first]!r}, but that of y is {names[first]!r}: mask[y.columns] has "
                "the order of y"
            )


def check_label_names(y: Any, classes: NDArray[Any]) -> None:
    """Raise if y is a frame whose columns are not those of training, in their order.

    Plain numbers as names are not compared: they may mean nothing.
    """
    names = label_names(y)
    if names is None or names.dtype != object or classes.dtype != object or names.tolist() == classes.tolist():
        return
    first = next((k for k, pair in enumerate(zip(names.tolist(), classes.tolist())) if pair[0] != pair[1]), None)
    if first is not None:
        raise ValueError(
            f"column {first} of y is {names[first]!r}, but label {first} of training is {classes[first]!r}: "
            "y[model.classes_] has the labels in that order"
        )
