"""The sources of `spool`: any container of rows, turned into dense or CSR blocks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from rankhinge.datasets.errors import DataError, need

__all__ = ["RowBlocks", "row_blocks"]

# Bytes of a block: large beside the cost of asking for one, small beside any memory.
_BLOCK_BYTES = 1 << 26
_HDF5 = (".h5", ".hdf5", ".h5ad")


class RowBlocks(NamedTuple):
    """Consecutive rows of one matrix."""

    blocks: Iterator[Any]
    """Arrays of two dimensions, or CSR, in the order of the rows."""
    n_rows: int | None
    """None: known when the last block has come."""
    n_bytes: int | None
    """What the numbers take, as they come; None: not known."""


def row_blocks(source: Any, key: str | None = None, columns: Iterable[str] | None = None) -> RowBlocks:
    """The rows of `source`. `spool` says what it may be."""
    if isinstance(source, str | os.PathLike):
        return _from_path(os.fspath(source), key, columns)
    if key is not None or (columns is not None and not hasattr(source, "columns")):
        raise TypeError(f"key and columns are for files, not for a {type(source).__name__}")
    if type(source).__module__.partition(".")[0] in {"dask", "dask_expr"}:
        return _from_dask(source, columns)
    if sp.issparse(source):
        return _from_sparse(source)
    if _is_sparse_group(source):
        return _from_sparse_group(source)
    if hasattr(source, "shape") and hasattr(source, "dtype"):
        return _from_array(source)
    if hasattr(source, "columns") and hasattr(source, "to_numpy"):
        return _from_array(np.asarray((source[list(columns)] if columns is not None else source).to_numpy()))
    if isinstance(source, Iterable):
        return RowBlocks(iter(source), None, None)
    raise TypeError(
        f"cannot read rows from a {type(source).__name__}: give a path, a dask array or frame, a sparse array, "
        "an array with shape and dtype (Zarr, HDF5, memory-mapped), or an iterable of blocks"
    )


def _from_path(path: str, key: str | None, columns: Iterable[str] | None) -> RowBlocks:
    if not os.path.exists(path):
        raise DataError(path, "there is no such file")
    lower = path.rstrip("/").lower()
    is_table = lower.endswith((".parquet", ".pq")) or (os.path.isdir(path) and not lower.endswith(".zarr"))
    if columns is not None and not is_table:
        raise TypeError(f"columns belong to Parquet, not to {path}")
    if key is not None and not lower.endswith((*_HDF5, ".zarr")):
        raise TypeError(f"a key belongs to HDF5 and Zarr, not to {path}")
    if is_table:
        return _from_parquet(path, columns)
    if lower.endswith(".zarr"):
        return _from_zarr(path, key)
    if lower.endswith(_HDF5):
        return _from_hdf5(path, key)
    if lower.endswith(".npz"):
        return _from_scipy_npz(path)
    if lower.endswith(".npy"):
        return _from_array(np.load(path, mmap_mode="r", allow_pickle=False))
    raise DataError(path, "spool does not know this format: use .parquet, .zarr, .h5, .hdf5, .h5ad, .npz (CSR) or .npy")


def _from_array(array: Any) -> RowBlocks:
    """Anything with slices of rows. Blocks consist of whole chunks, so that each compressed chunk is unpacked once."""
    if len(array.shape) != 2:
        raise ValueError(f"the source has shape {tuple(array.shape)}: rows of features have two dimensions")
    n_rows, n_columns = (int(length) for length in array.shape)
    itemsize = np.dtype(array.dtype).itemsize
    n_each = max(1, _BLOCK_BYTES // max(1, n_columns * itemsize))
    chunks = getattr(array, "chunks", None)
    if chunks:
        n_each = max(1, n_each // int(chunks[0])) * int(chunks[0])
    parts = (np.asarray(array[start : start + n_each]) for start in range(0, n_rows, n_each))
    return RowBlocks(parts, n_rows, n_rows * n_columns * itemsize)


def _from_sparse(matrix: Any) -> RowBlocks:
    rows = matrix if matrix.format == "csr" else matrix.tocsr()
    n_bytes = rows.data.nbytes + rows.indices.nbytes + rows.indptr.nbytes
    return RowBlocks(iter([rows]), rows.shape[0], n_bytes)


def _is_sparse_group(source: Any) -> bool:
    """A group of HDF5 or Zarr with the three arrays of a CSR matrix, as AnnData writes it."""
    try:
        return {"data", "indices", "indptr"} <= set(source.keys())
    except (AttributeError, TypeError):
        return False


def _from_sparse_group(group: Any) -> RowBlocks:
    shape = group.attrs.get("shape", group.attrs.get("h5sparse_shape"))
    kind = str(group.attrs.get("encoding-type", group.attrs.get("h5sparse_format", "csr")))
    if shape is None or not kind.startswith("csr"):
        raise ValueError(f"the group holds {kind} with shape {shape}: spool reads CSR whose shape is in its attributes")
    indptr = np.asarray(group["indptr"][:], dtype=np.int64)
    n_columns, n_rows = int(shape[1]), indptr.size - 1

    def blocks() -> Iterator[Any]:
        n_each = max(1, _BLOCK_BYTES // 12)
        start = 0
        while start < n_rows:
            # As many rows as the block has room for, at least one.
            end = int(np.searchsorted(indptr, indptr[start] + n_each, side="right")) - 1
            end = min(max(end, start + 1), n_rows)
            here = slice(int(indptr[start]), int(indptr[end]))
            parts = (group["data"][here], group["indices"][here], indptr[start : end + 1] - indptr[start])
            yield sp.csr_array(tuple(np.asarray(part) for part in parts), shape=(end - start, n_columns))
            start = end

    n_bytes = int(indptr[-1]) * (np.dtype(group["data"].dtype).itemsize + 4) + indptr.nbytes
    return RowBlocks(blocks(), n_rows, n_bytes)


def _from_parquet(path: str, columns: Iterable[str] | None) -> RowBlocks:
    try:
        from pyarrow import dataset
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        raise need("pyarrow", "tables", "spooling Parquet") from None
    try:
        table = dataset.dataset(path, format="parquet")
        names = list(table.schema.names) if columns is None else list(columns)
        missing = [name for name in names if name not in table.schema.names]
        if missing:
            raise DataError(path, f"there is no column {missing[0]!r}, only {', '.join(table.schema.names[:20])}")
        dtype = np.result_type(*[_numeric(path, table.schema.field(name)) for name in names])
        n_rows = table.count_rows()
    except (OSError, ValueError) as error:
        raise (
            error if isinstance(error, DataError) else DataError(path, f"not a readable Parquet file: {error}")
        ) from None

    def blocks() -> Iterator[Any]:
        n_each = max(1, _BLOCK_BYTES // max(1, len(names) * dtype.itemsize))
        for batch in table.to_batches(columns=names, batch_size=n_each):
            block = np.empty((batch.num_rows, len(names)), dtype)
            for place, name in enumerate(names):
                column = batch.column(name)
                if column.null_count:
                    row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
                    raise DataError(
                        path, f"column {name!r} has a missing value, in row {row} of a batch: fill it first"
                    )
                block[:, place] = column.to_numpy(zero_copy_only=False)
            yield block

    return RowBlocks(blocks(), n_rows, n_rows * len(names) * dtype.itemsize)


def _numeric(path: str, field: Any) -> np.dtype[Any]:
    try:
        dtype = np.dtype(field.type.to_pandas_dtype())
    except (NotImplementedError, TypeError):
        dtype = np.dtype(object)
    if dtype.kind not in "biuf":
        raise DataError(path, f"column {field.name!r} is {field.type}, not a number: name the features in columns=")
    return dtype


def _from_hdf5(path: str, key: str | None) -> RowBlocks:
    try:
        import h5py
    except ModuleNotFoundError:
        raise need("h5py", "spool", "spooling HDF5") from None
    try:
        return _from_store(path, h5py.File(path, "r"), key)
    except OSError as error:
        raise DataError(path, f"not a readable HDF5 file: {error}") from None


def _from_zarr(path: str, key: str | None) -> RowBlocks:
    try:
        import zarr
    except ModuleNotFoundError:
        raise need("zarr", "spool", "spooling Zarr") from None
    try:
        return _from_store(path, zarr.open(path, mode="r"), key)
    except (OSError, ValueError) as error:
        raise (
            error if isinstance(error, DataError) else DataError(path, f"not a readable Zarr array: {error}")
        ) from None


def _from_store(path: str, store: Any, key: str | None) -> RowBlocks:
    """The array or CSR group under a key. Without a key, the only one in the file."""
    if key is None and not (hasattr(store, "dtype") or _is_sparse_group(store)):
        names = sorted(store.keys())
        if len(names) != 1:
            raise DataError(path, f"there are several arrays: choose one with key=, of {', '.join(names) or '(none)'}")
        key = names[0]
    try:
        found = store if key is None else store[key]
    except KeyError:
        raise DataError(path, f"there is no {key!r}, only {', '.join(sorted(store.keys()))}") from None
    return _from_sparse_group(found) if _is_sparse_group(found) else _from_array(found)


def _from_scipy_npz(path: str) -> RowBlocks:
    try:
        return _from_sparse(sp.load_npz(path))
    except (ValueError, KeyError, OSError, EOFError) as error:
        raise DataError(path, f"not a sparse matrix written by scipy.sparse.save_npz: {error}") from None


def _from_dask(source: Any, columns: Iterable[str] | None) -> RowBlocks:
    """One chunk of rows after the other, each computed once. The whole array is never in memory."""
    if hasattr(source, "partitions") and hasattr(source, "columns"):
        frame = source[list(columns)] if columns is not None else source
        parts = (frame.partitions[index].compute().to_numpy() for index in range(frame.npartitions))
        return RowBlocks(parts, None, None)
    if source.ndim != 2:
        raise ValueError(f"the dask array has {source.ndim} dimensions: rows of features have two")
    if source.numblocks[1] > 1:
        source = source.rechunk({1: -1})
    parts = (source.blocks[index].compute() for index in range(source.numblocks[0]))
    n_rows = None if np.isnan(source.shape[0]) else int(source.shape[0])
    # Chunks may be sparse: what they take is then not known before.
    is_dense = isinstance(source._meta, np.ndarray)
    return RowBlocks(parts, n_rows, int(source.nbytes) if is_dense and n_rows is not None else None)
