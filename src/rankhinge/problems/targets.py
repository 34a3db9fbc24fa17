"""Binary, multiclass and multilabel targets as one-vs-rest problems."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from rankhinge._validation import check_mask, refuse_missing, warn_user, without_objects, without_unlabelled
from rankhinge.problems import Lists, one_list, one_list_of

__all__ = ["Targets", "as_targets", "encode_targets", "plain_targets"]


class Targets(NamedTuple):
    """One-vs-rest problems: which samples are relevant to each, and which are labelled."""

    classes: NDArray[Any]
    kind: str
    relevant: NDArray[np.bool_]
    labelled: NDArray[np.bool_] | None

    def lists(self) -> list[Lists]:
        """One list a problem, without the samples that are not labelled for it."""
        if self.labelled is None:
            return [one_list(relevant) for relevant in self.relevant]
        indices = [np.flatnonzero(self.labelled[0])] * len(self.relevant)
        if not np.array_equal(self.labelled, np.broadcast_to(self.labelled[0], self.labelled.shape)):
            # Problems on the same samples share them; these do not.
            indices = [np.flatnonzero(mask) for mask in self.labelled]
        return [one_list_of(relevant, index) for relevant, index in zip(self.relevant, indices, strict=True)]

    def named(self, names: NDArray[Any] | None) -> Targets:
        """With the names of a frame's columns for the labels, if these are the columns."""
        return self if names is None or self.kind != "multilabel" else self._replace(classes=names)

    def lists_of(self, usable: NDArray[np.bool_]) -> list[Lists]:
        """Those of some of the problems."""
        return [lists for lists, use in zip(self.lists(), usable, strict=True) if use]

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
    """Targets as scikit-learn's checks take them: nothing under a mask, and no objects in place of numbers.

    Of objects these checks know words only, and would name neither y nor the entry that is missing.
    """
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


def encode_targets(y: NDArray[Any], mask: ArrayLike | None = None, pos_label: Any = None) -> Targets:
    """Binary, multiclass or multilabel y as one-vs-rest problems; row k of the arrays belongs to problem k.

    Of two classes `pos_label` comes second: it is the one whose samples are to be ranked first.
    """
    kind = "multilabel" if mask is not None else _kind_of(y)
    if pos_label is not None and kind != "binary":
        raise ValueError(f"pos_label is {pos_label!r}, but y is {kind}: it says which of two classes is ranked first")
    if kind.startswith("multilabel"):
        return _encode_labels(y, mask)
    if kind not in ("binary", "multiclass"):
        raise ValueError(f"y is of type {kind!r}: RankSVC takes binary, multiclass and multilabel targets")
    classes = np.unique(y)
    if classes.size < 2:
        raise ValueError(f"y has one class only, {classes[:1].tolist()[0]!r}: a ranking needs positives and negatives")
    if classes.size == 2:
        classes = _second(classes, pos_label)
        relevant = y[None, :] == classes[1]
        if pos_label is None:
            _warn_of_majority(classes, float(relevant.mean()))
        return Targets(classes, "binary", relevant, None)
    return Targets(classes, "multiclass", y[None, :] == classes[:, None], None)


def _kind_of(y: NDArray[Any]) -> str:
    check_classification_targets(y)
    return str(type_of_target(y))


def _second(classes: NDArray[Any], pos_label: Any) -> NDArray[Any]:
    """Two classes, with the one that is to be ranked first as the second; by default the greater one."""
    if pos_label is None:
        return classes
    known = [bool(label == pos_label) for label in classes.tolist()]
    if not any(known):
        raise ValueError(f"pos_label is {pos_label!r}, but y has the labels {classes.tolist()}")
    return classes if known[1] else classes[::-1].copy()


def _warn_of_majority(classes: NDArray[Any], share: float) -> None:
    """Warn where words stand for classes and the later one, which is ranked first, is not the rare one."""
    plain = classes.dtype.kind in "biuf" and classes.tolist() in ([0, 1], [-1, 1])
    if not plain and share > 0.5:
        other, first = classes.tolist()
        warn_user(
            f"of the labels {other!r} and {first!r} the second is ranked first, and {100 * share:.3g} % of the samples "
            f"have it. If {other!r} is what you look for: pos_label={other!r}, or train on y == {other!r}"
        )


def _encode_labels(y: NDArray[Any], mask: ArrayLike | None) -> Targets:
    if y.ndim != 2:
        raise ValueError(
            f"a mask goes with a multilabel y of shape (n, K), got shape {y.shape}; should these be sample "
            "weights: a ranking has none"
        )
    mask = None if mask is None else check_mask(mask, y.shape)
    if mask is not None and not mask.any():
        raise ValueError("mask is False everywhere, so that nothing is labelled: True means labelled")
    values = np.unique(y if mask is None else y[mask])
    if not np.isin(values, (-1, 0, 1)).all() or {-1, 0} <= set(values.tolist()):
        raise ValueError(f"labelled entries of y must be 0/1 or -1/1, got {values[:5]}")
    labelled = None if mask is None else np.ascontiguousarray(mask.T)
    return Targets(np.arange(y.shape[1]), "multilabel", np.ascontiguousarray(y.T == 1), labelled)
