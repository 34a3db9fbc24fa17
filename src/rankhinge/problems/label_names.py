"""Labels by the names of their columns, where a multilabel y is a frame."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["check_label_names", "label_names"]


def label_names(y: Any) -> NDArray[Any] | None:
    """The names of a frame's columns; None if y is no frame. Words are objects, as in `feature_names_in_`."""
    columns = getattr(y, "columns", None)
    if columns is None:
        return None
    names = list(columns)
    if all(isinstance(name, Integral) for name in names):
        return np.array(names, dtype=np.int64)
    return np.fromiter(names, dtype=object, count=len(names))


def check_label_names(y: Any, classes: NDArray[Any]) -> None:
    """Raise if y is a frame whose columns are not those of training, in their order.

    Where either of them has plain numbers for names, these need not mean anything.
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
