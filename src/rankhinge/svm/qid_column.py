"""Query ids that travel as a column of X: whatever cuts, shuffles or copies rows takes them along.

scikit-learn's tools hand X and y to everybody, but other arrays only where metadata routing is enabled and each step
asks for them.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

__all__ = ["query_column", "without_query_column"]


def _names(X: Any) -> list[Any] | None:
    """The names of a frame's columns."""
    return list(X.columns) if hasattr(X, "columns") else None


def _place(X: Any, column: str | int) -> int | None:
    """Where the column is in X; None if X has no such column."""
    names = _names(X)
    if isinstance(column, Integral):
        n_columns = len(names) if names is not None else np.shape(X)[1]
        return int(column) % n_columns if -n_columns <= column < n_columns else None
    return names.index(column) if names is not None and column in names else None


def query_column(X: Any, column: str | int) -> NDArray[Any]:
    """The column of X with the query ids, one for each row."""
    place = _place(X, column)
    if place is None:
        names = _names(X)
        has = f"{np.shape(X)[1]} columns without names" if names is None else f"the columns {names[:10]}"
        raise ValueError(f"qid_column={column!r}: X has {has}")
    ids = _column(X, place)
    _refuse_rounded(ids, column)
    return ids


def _column(X: Any, place: int) -> NDArray[Any]:
    values = _safe_indexing(X if hasattr(X, "shape") else np.asarray(X), [place], axis=1)
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values)[:, 0]


def _refuse_rounded(ids: NDArray[Any], column: str | int) -> None:
    """Raise if there are numbers so large that different ids may have become equal."""
    if ids.dtype.kind != "f":
        return
    largest = 2.0 / np.finfo(ids.dtype).eps
    for row in np.flatnonzero(np.abs(ids) >= largest)[:1]:
        raise ValueError(
            f"qid_column={column!r} has the id {ids[row]:.0f} as {ids.dtype}, which rounds integers from {largest:.0f} "
            "on: different queries may have become one. Number the queries anew, or use a frame"
        )


def without_query_column(X: Any, column: str | int) -> Any:
    """X without that column."""
    place = _place(X, column)
    n_columns = np.shape(X)[1]
    others = [other for other in range(n_columns) if other != place]
    return _safe_indexing(X if hasattr(X, "shape") else np.asarray(X), others, axis=1)
