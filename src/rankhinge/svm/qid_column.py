"""Query ids that travel as a column of X: whatever cuts, shuffles or copies rows takes them along.

scikit-learn's tools hand X and y to everybody, but other arrays only where metadata routing is enabled and each step
asks for them. A level of a pandas index travels as well, and no tool takes it for a feature.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from rankhinge._validation import QueryIds, encode_queries
from rankhinge.svm._fitting import warn_user

__all__ = ["QueryColumn", "query_column", "without_query_column"]


def _names(X: Any) -> list[Any] | None:
    """The names of a frame's columns."""
    return list(X.columns) if hasattr(X, "columns") else None


def _level(X: Any, column: str | int) -> NDArray[Any] | None:
    """The level of a frame's index that has this name, for each row; a column of the same name goes first."""
    if isinstance(column, Integral) or _place(X, column) is not None or not hasattr(X, "iloc"):
        return None
    names = list(X.index.names)
    return np.asarray(X.index.get_level_values(names.index(column))) if column in names else None


def _place(X: Any, column: str | int) -> int | None:
    """Where the column is in X; None if X has no such column."""
    names = _names(X)
    if isinstance(column, Integral):
        n_columns = len(names) if names is not None else np.shape(X)[1]
        return int(column) % n_columns if -n_columns <= column < n_columns else None
    return names.index(column) if names is not None and column in names else None


def query_column(X: Any, column: str | int) -> NDArray[Any]:
    """The column of X, or the level of its index, with the query ids, one for each row."""
    level = _level(X, column)
    if level is not None:
        return level
    place = _place(X, column)
    if place is None:
        names = _names(X)
        has = f"{np.shape(X)[1]} columns without names" if names is None else f"the columns {names[:10]}"
        raise ValueError(f"qid_column={column!r}: X has {has}")
    if callable(getattr(X, "null_count", None)) and (n_missing := X.to_series(place).null_count()):
        # A frame of polars: in an array of objects its nulls would be None, which is a query like any other.
        raise ValueError(f"qid_column={column!r}: the column has {n_missing} nulls")
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
    if place is None:
        # The index is no column.
        return X
    n_columns = np.shape(X)[1]
    others = [other for other in range(n_columns) if other != place]
    return _safe_indexing(X if hasattr(X, "shape") else np.asarray(X), others, axis=1)


class QueryColumn(BaseEstimator):
    """A machine whose parameter `qid_column` may name a column of X with the query ids."""

    qid_column: str | int | None
    n_features_in_: int
    # How many rows each query had in training. It does not leave this process: nobody wants queries in a model file.
    _query_sizes_: dict[Any, int]

    def _separated(self, X: Any, qid: QueryIds | None) -> tuple[Any, QueryIds | None]:
        """The features and the query ids of training data; notes what `_warn_if_cut` wants to know."""
        if self.qid_column is None:
            return X, qid
        ids = self._agreed(query_column(X, self.qid_column), qid)
        self._query_sizes_ = _sizes(ids)
        return without_query_column(X, self.qid_column), ids

    def _separated_again(self, X: Any, qid: QueryIds | None = None) -> tuple[Any, QueryIds | None]:
        """The same of other data, which may come without the column."""
        check_is_fitted(self)
        if self.qid_column is None or not self._has_column(X):
            return X, qid
        return without_query_column(X, self.qid_column), self._agreed(query_column(X, self.qid_column), qid)

    def _has_column(self, X: Any) -> bool:
        assert self.qid_column is not None
        if isinstance(self.qid_column, str):
            return _place(X, self.qid_column) is not None or _level(X, self.qid_column) is not None
        # By its place alone a column cannot be told from a feature, but by how many there are.
        return np.shape(X)[1:] == (self.n_features_in_ + 1,)

    def _agreed(self, ids: NDArray[Any], qid: QueryIds | None) -> NDArray[Any]:
        """The ids of the column, unless others were passed that make other lists."""
        if qid is None:
            return ids
        passed, own = encode_queries(qid, ids.size, counted="X")[1], encode_queries(ids, ids.size, counted="X")[1]
        for row in np.flatnonzero(passed != own)[:1]:
            raise ValueError(
                f"qid differs from the column {self.qid_column!r} of X, first in row {row}: leave out one of them"
            )
        return ids

    def _queries_of(self, X: Any) -> QueryIds | None:
        """The query ids in X, for scorers; None if it has none."""
        _, ids = self._separated_again(X)
        self._warn_if_cut(ids)
        return ids

    def _warn_if_cut(self, ids: QueryIds | None) -> None:
        """Warn if some queries were seen in training with another number of rows: a fold has cut them."""
        trained = getattr(self, "_query_sizes_", None)
        if ids is None or not trained:
            return
        cut = [query for query, size in _sizes(ids).items() if trained.get(query, size) != size]
        if cut:
            warn_user(
                f"{len(cut)} queries, {cut[0]!r} among them, were in the fit with another number of rows. Where folds "
                f"cut queries, scores mislead: cv=QueryKFold(qid_column={self.qid_column!r}) keeps them whole"
            )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_query_sizes_"}


def _sizes(ids: QueryIds) -> dict[Any, int]:
    """How many rows each query has."""
    queries, codes = encode_queries(ids, len(ids))  # type: ignore[arg-type]
    return dict(zip(queries.tolist(), np.bincount(codes).tolist(), strict=True))
