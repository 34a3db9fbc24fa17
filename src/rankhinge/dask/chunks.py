"""Dask arrays and frames as chunks of rows, checked before anything is computed."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rankhinge._validation import refuse_masked, warn_user
from rankhinge.problems.targets import refuse_flat

__all__ = ["Rows", "aligned", "array_of", "blocks_of", "numbers_of", "rows_of"]


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
    meta: Any
    label_dtype: np.dtype[Any]
    mask: list[Any]
    """Which entries of y are labelled, in the same chunks; None for each if all are."""

    @property
    def n_samples(self) -> int:
        """In all chunks."""
        return int(sum(self.lengths))


def rows_of(X: Any, y: Any, mask: Any = None) -> Rows:
    """Chunks of X, y and mask, aligned."""
    names, label_names = _columns(X), _columns(y)
    X = array_of(X, "X")
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimensions: a row for each sample and a column for each feature are needed")
    if y is None:
        raise ValueError("y is None: every sample needs a label")
    y = array_of(y, "y", X.chunks[0])
    if y.ndim not in (1, 2):
        raise ValueError(f"y has {y.ndim} dimensions: a label for each row of X is needed, or a row of labels")
    if X.shape[1] == 0:
        raise ValueError("X has no columns: there is no feature to rank by")
    if X.numblocks[1] > 1:
        raise ValueError(f"X is cut into {X.numblocks[1]} blocks of columns: join them with X.rechunk({{1: -1}})")
    if X.shape[0] != y.shape[0]:
        raise ValueError(f"X has {X.shape[0]} rows, but y has {y.shape[0]}")
    if X.shape[0] < 2:
        raise ValueError(f"X has {X.shape[0]} rows: at least 2 are needed")
    masks = [None] * len(X.chunks[0]) if mask is None else _mask_of(mask, y.shape, X.chunks[0])
    if y.ndim == 2:
        # With a mask a single column is one label of many.
        y = y[:, 0] if y.shape[1] == 1 and mask is None else y.rechunk({1: -1})
    y = y.rechunk({0: X.chunks[0]})
    if not np.issubdtype(X.dtype, np.number) and X.dtype != np.bool_:
        raise ValueError(f"X has dtype {X.dtype}: numbers are needed")
    meta = getattr(X, "_meta", None)
    return Rows(
        blocks_of(X),
        blocks_of(y),
        [int(length) for length in X.chunks[0]],
        int(X.shape[1]),
        X.dtype,
        hasattr(meta, "tocsr"),
        names,
        label_names if y.ndim == 2 else None,
        int(y.shape[1]) if y.ndim == 2 else None,
        meta,
        y.dtype,
        masks,
    )


def _mask_of(mask: Any, shape: tuple[int, ...], lengths: tuple[int, ...]) -> list[Any]:
    """Delayed blocks of a mask for a y of this shape, in chunks of these numbers of rows."""
    refuse_flat(shape)
    if isinstance(mask, np.ma.MaskedArray):
        refuse_masked(mask, "mask")
    flags = array_of(mask.toarray() if sparse.issparse(mask) else mask, "mask", lengths)
    # What is flagged with objects or with other numbers than 0 and 1 is refused where it lies.
    if flags.shape != shape or flags.dtype.kind not in "biuO":
        raise ValueError(f"mask must be bool or 0/1 of shape {shape}, got {flags.dtype} of shape {flags.shape}")
    return blocks_of(flags.rechunk({0: lengths, 1: -1}))


def aligned(values: Any, name: str, rows: Rows) -> list[Any]:
    """Delayed blocks of one value for each row of X, in its chunks of rows."""
    array = array_of(values, name, tuple(rows.lengths))
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, its shape is {array.shape}")
    if array.shape[0] != rows.n_samples:
        raise ValueError(f"X has {rows.n_samples} rows, but {name} has {array.shape[0]}")
    return blocks_of(array.rechunk({0: tuple(rows.lengths)}))


def blocks_of(array: Any) -> list[Any]:
    """Delayed blocks of rows."""
    found: list[Any] = array.to_delayed().ravel().tolist()
    return found


def _columns(frame: Any) -> Any:
    """Names of a frame's columns, if they are words."""
    columns = getattr(frame, "columns", None)
    if columns is None or not all(isinstance(name, str) for name in columns):
        return None
    return np.asarray(columns, dtype=object)


def array_of(rows: Any, name: str, lengths: tuple[int, ...] | None = None) -> Any:
    """A dask array whose chunks have known lengths."""
    import dask.array as da
    from dask import delayed

    if hasattr(rows, "to_dask_array"):
        rows = numbers_of(rows, name) if name == "X" else rows
        warn_user(f"the lengths of the partitions of {name} are not known: they are computed, which reads it once")
        with warnings.catch_warnings():
            # Words become objects, which is what is wanted.
            warnings.filterwarnings("ignore", message="Dask currently has limited support for converting pandas")
            return rows.to_dask_array(lengths=_lengths([delayed(len)(part) for part in rows.to_delayed()]))
    if not isinstance(rows, da.Array):
        # A y in memory goes with an X on workers.
        values = np.asarray(rows)
        if lengths is None or values.ndim == 0 or len(values) != sum(lengths):
            return da.from_array(values, chunks=values.shape)
        return da.from_array(values, chunks=(lengths, *values.shape[1:]))
    if np.isnan(rows.shape[0]) or any(np.isnan(length) for length in rows.chunks[0]):
        warn_user(f"the lengths of the chunks of {name} are not known: they are computed, which reads it once")
        # Of the first of its blocks of columns, if it is cut by columns.
        first = rows.to_delayed().reshape(rows.numblocks[0], -1)[:, 0].tolist()
        chunks = (_lengths([delayed(_n_rows)(block) for block in first]), *rows.chunks[1:])
        rows = da.Array(rows.dask, rows.name, chunks, meta=rows._meta)
    return rows


def numbers_of(frame: Any, name: str) -> Any:
    """The frame, or one of float64 if its columns have no type in common, as scikit-learn has it in memory."""
    if frame._meta.to_numpy().dtype.kind != "O":
        return frame
    words = [
        f"{column!r} ({dtype})"
        for column, dtype in frame._meta.dtypes.items()
        # Types of pandas' own say what they are by the same letters.
        if getattr(dtype, "kind", "O") not in "biuf" or getattr(dtype, "categories", None) is not None
    ]
    if words:
        raise ValueError(f"{name} has columns that are not numbers: {', '.join(words[:5])}: encode them, or drop them")
    return frame.map_partitions(_in_float64, meta=_in_float64(frame._meta))


def _in_float64(part: Any) -> Any:
    # What is missing becomes nan, which is refused with its place.
    return type(part)(part.to_numpy(np.float64, na_value=np.nan), index=part.index, columns=part.columns)


def _n_rows(block: Any) -> int:
    return int(block.shape[0])


def _lengths(tasks: list[Any]) -> tuple[int, ...]:
    """What tasks find, on the workers: whoever asks has a client."""
    from distributed import get_client

    from rankhinge.dask.waiting import Waiting

    client = Waiting(get_client())
    return tuple(client.gather(client.compute(tasks)))
