"""Dask arrays and frames as chunks of rows, checked before anything is computed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankhinge._validation import warn_user

__all__ = ["Rows", "rows_of"]


class Rows(NamedTuple):
    """X and y in the same chunks of rows, each a delayed block, with the numbers of their rows."""

    X: list[Any]
    y: list[Any]
    lengths: list[int]
    n_features: int
    dtype: np.dtype[Any]
    is_sparse: bool
    names: Any
    label_names: Any
    n_columns: int | None
    """Of y, None if it has one dimension."""

    @property
    def n_samples(self) -> int:
        """In all chunks."""
        return int(sum(self.lengths))


def rows_of(X: Any, y: Any) -> Rows:
    """Chunks of X and y, aligned."""
    names, label_names = _columns(X), _columns(y)
    X, y = _array(X, "X"), _array(y, "y", X)
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimensions: a row for each sample and a column for each feature are needed")
    if X.numblocks[1] > 1:
        raise ValueError(f"X is cut into {X.numblocks[1]} blocks of columns: join them with X.rechunk({{1: -1}})")
    if X.shape[0] != y.shape[0]:
        raise ValueError(f"X has {X.shape[0]} rows, but y has {y.shape[0]}")
    if X.shape[0] < 2:
        raise ValueError(f"X has {X.shape[0]} rows: at least 2 are needed")
    if y.ndim == 2:
        y = y[:, 0] if y.shape[1] == 1 else y.rechunk({1: -1})
    y = y.rechunk({0: X.chunks[0]})
    if not np.issubdtype(X.dtype, np.number) and X.dtype != np.bool_:
        raise ValueError(f"X has dtype {X.dtype}: numbers are needed")
    meta = getattr(X, "_meta", None)
    return Rows(
        X.to_delayed().ravel().tolist(),
        y.to_delayed().ravel().tolist(),
        [int(length) for length in X.chunks[0]],
        int(X.shape[1]),
        X.dtype,
        hasattr(meta, "tocsr"),
        names,
        label_names if y.ndim == 2 else None,
        int(y.shape[1]) if y.ndim == 2 else None,
    )


def _columns(frame: Any) -> Any:
    """Names of a frame's columns, if they are words."""
    columns = getattr(frame, "columns", None)
    if columns is None or not all(isinstance(name, str) for name in columns):
        return None
    return np.asarray(columns, dtype=object)


def _array(rows: Any, name: str, like: Any = None) -> Any:
    """A dask array whose chunks have known lengths."""
    import dask.array as da

    if hasattr(rows, "to_dask_array"):
        warn_user(f"the lengths of the partitions of {name} are not known: they are computed, which reads it once")
        return rows.to_dask_array(lengths=True)
    if not isinstance(rows, da.Array):
        # A y in memory goes with an X on workers.
        values = np.asarray(rows)
        return da.from_array(values, chunks=(like.chunks[0], *values.shape[1:]) if like is not None else "auto")
    if np.isnan(rows.shape[0]) or any(np.isnan(length) for length in rows.chunks[0]):
        warn_user(f"the lengths of the chunks of {name} are not known: they are computed, which reads it once")
        rows = rows.compute_chunk_sizes()
    return rows
