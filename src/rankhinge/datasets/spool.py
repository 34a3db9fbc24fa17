"""Write any source of rows once as files that can be memory-mapped, because a fit reads them a dozen times or more."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from rankhinge._progress import Progress, is_terminal
from rankhinge.datasets.errors import DataError
from rankhinge.datasets.row_blocks import row_blocks

__all__ = ["open_spool", "spool"]

_PARTS = ("data", "indices", "indptr")
_SHAPE = "shape"


def spool(
    source: Any,
    path: str | os.PathLike[str],
    *,
    key: str | None = None,
    columns: Iterable[str] | None = None,
    dtype: DTypeLike | None = None,
    overwrite: bool = False,
    verbose: int | None = None,
) -> Any:
    """Write rows once to disk, so that a fit can map them into memory instead of loading them.

    A fit passes over X 14 to 28 times. In each pass, compressed or columnar formats reach a tenth to a third of the
    disk's speed. An aligned ``.npy`` file reaches all of it.

    Parameters
    ----------
    source : path, dask array or frame, sparse array, array, or iterable of blocks
        A path to Parquet (a file or a folder of them; extra ``tables``), Zarr or HDF5 (extra ``spool``), a CSR matrix
        written by `scipy.sparse.save_npz`, or ``.npy``. Groups of HDF5 and Zarr with ``data``, ``indices`` and
        ``indptr``, as AnnData writes them, are read as CSR. Any object with ``shape``, ``dtype`` and slices of rows
        works, and so does an iterable of two-dimensional blocks. Only one block is in memory at a time.
    path : path
        Dense rows become one ``.npy`` file, CSR rows a folder of this name. It appears when it is complete.
    key : str, optional
        The array to read from an HDF5 or Zarr file.
    columns : iterable of str, optional
        The columns to take from Parquet or a frame, in this order. Default: all.
    dtype : dtype, optional
        The type of the numbers on disk. Default: that of the source. float32 halves the file and the time of a pass.
    overwrite : bool, default False
        Replace an existing file or folder of this name once the new one is complete.
    verbose : int, optional
        1 shows a progress line, 0 none. Default: 1 on a terminal.

    Returns
    -------
    numpy.memmap or scipy.sparse.csr_array
        Shape (n_samples, n_features), read-only, with its numbers on disk. `open_spool` opens it again.

    Raises
    ------
    DataError
        If the source is damaged, or a value is missing or not finite. The message names its row and column.
    OSError
        If the disk is too small. If the size is known, this is raised before the first block.
    FileExistsError
        If the path exists and `overwrite` is False.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> import rankhinge
    >>> rng = np.random.default_rng(0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     blocks = (rng.normal(size=(100, 3)) for _ in range(5))
    ...     X = rankhinge.spool(blocks, pathlib.Path(folder) / "X.npy", dtype=np.float32)
    ...     model = rankhinge.RankSVC().fit(X, X[:, 0] > 1)
    ...     X.shape, X.dtype
    ((500, 3), dtype('float32'))
    """
    name = os.fspath(path)
    _check_name(name, overwrite)
    rows = row_blocks(source, key, columns)
    folder = os.path.dirname(os.path.abspath(name))
    _check_space(name, folder, _needed(rows.n_bytes, source, dtype))
    shows = is_terminal(sys.stderr) if verbose is None else verbose
    with Progress(int(shows), ("rows", "of rows"), left_by=("rows", "of rows")) as progress:
        blocks = _checked(rows.blocks, name, rows.n_rows, dtype, progress)
        first = next(blocks, None)
        if first is None:
            raise DataError(name, "the source has no rows")
        write = _write_sparse if sp.issparse(first) else _write_dense
        write(_with_first(first, blocks), name, folder)
    return open_spool(name)


def open_spool(path: str | os.PathLike[str]) -> Any:
    """Open what `spool` has written, memory-mapped and read-only.

    Parameters
    ----------
    path : path

    Returns
    -------
    numpy.memmap or scipy.sparse.csr_array

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import scipy.sparse as sp
    >>> from rankhinge.datasets import open_spool, spool
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "X"
    ...     _ = spool(sp.csr_array([[0.0, 2.0], [0.0, 0.0]]), path)
    ...     open_spool(path).toarray().tolist()
    [[0.0, 2.0], [0.0, 0.0]]
    """
    name = os.fspath(path)
    try:
        if not os.path.isdir(name):
            return np.load(name, mmap_mode="r", allow_pickle=False)
        data, indices, indptr = (_mapped(os.path.join(name, f"{part}.npy")) for part in _PARTS)
        shape = tuple(np.load(os.path.join(name, f"{_SHAPE}.npy"), allow_pickle=False).tolist())
        # SciPy would copy the indices, the longer of the two, if their types differed.
        return sp.csr_array((data, indices, indptr.astype(indices.dtype)), shape=shape, copy=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(name, f"spool has not written this: {error}") from None


def _mapped(path: str) -> NDArray[Any]:
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    # An empty file cannot be mapped; NumPy gives an ordinary array then.
    return np.asarray(array) if array.size == 0 else array


def _check_name(name: str, overwrite: bool) -> None:
    if os.path.lexists(name) and not overwrite:
        raise FileExistsError(errno.EEXIST, "this path exists already: pass overwrite=True to replace it", name)
    if os.path.isdir(name) and set(os.listdir(name)) != {f"{part}.npy" for part in (*_PARTS, _SHAPE)}:
        raise FileExistsError(errno.EEXIST, "this folder holds other files and is not replaced", name)


def _needed(n_bytes: int | None, source: Any, dtype: DTypeLike | None) -> int | None:
    if n_bytes is None or dtype is None or not hasattr(source, "dtype"):
        return n_bytes
    return n_bytes // np.dtype(source.dtype).itemsize * np.dtype(dtype).itemsize


def _check_space(name: str, folder: str, needed: int | None) -> None:
    free = shutil.disk_usage(folder).free
    if needed is not None and needed > free:
        raise OSError(
            errno.ENOSPC,
            f"the rows take {needed} bytes and {free} are free: choose another folder, or dtype='float32' if they "
            "come as float64",
            name,
        )


def _with_first(first: Any, others: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from others


def _checked(
    blocks: Iterator[Any], name: str, n_rows: int | None, dtype: DTypeLike | None, progress: Progress
) -> Iterator[Any]:
    """Blocks of the same kind and width, with finite numbers of one type."""
    n_done, n_columns, kind = 0, -1, None
    for index, block in enumerate(blocks):
        if hasattr(block, "to_numpy"):
            block = block.to_numpy()
        block = sp.csr_array(block) if sp.issparse(block) else np.atleast_2d(np.asarray(block))
        if block.ndim != 2 or block.dtype.kind not in "biuf":
            raise DataError(name, f"block {index} is {block.dtype} of shape {block.shape}, not rows of numbers")
        if kind is None:
            n_columns, kind = block.shape[1], type(block)
            dtype = np.dtype(block.dtype if dtype is None else dtype)
        if block.shape[1] != n_columns or type(block) is not kind:
            what = "sparse" if sp.issparse(block) else "dense"
            raise DataError(name, f"block {index} is {what} with {block.shape[1]} columns, the first has {n_columns}")
        with np.errstate(over="ignore"):
            block = block.astype(dtype, copy=False)
        _check_finite(block, name, n_done)
        n_done += block.shape[0]
        progress.update(rows=n_done, **({} if n_rows is None else {"of rows": n_rows}))
        if block.shape[0]:
            yield block


def _check_finite(block: Any, name: str, n_before: int) -> None:
    values = block.data if sp.issparse(block) else block
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return
    if sp.issparse(block):
        place = int(np.flatnonzero(~np.isfinite(values))[0])
        row, column = int(np.searchsorted(block.indptr, place, side="right")) - 1, int(block.indices[place])
        value = values[place]
    else:
        row, column = (int(index) for index in np.argwhere(~np.isfinite(values))[0])
        value = values[row, column]
    raise DataError(name, f"row {n_before + row}, column {column} is {value} as {values.dtype}: fill or drop it first")


class _NpyStream:
    """An ``.npy`` file written block by block. Its header has room for any length and is completed at the end."""

    def __init__(self, file: IO[bytes], dtype: np.dtype[Any], row: tuple[int, ...]) -> None:
        self._file, self._dtype, self._row, self.length = file, dtype, row, 0
        self._header()

    def _header(self) -> None:
        shape = (self.length, *self._row)
        description = {"descr": np.lib.format.dtype_to_descr(self._dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self._file, description)

    def append(self, block: NDArray[Any]) -> None:
        block = np.ascontiguousarray(block, dtype=self._dtype)
        self._file.write(block.data)
        self.length += block.shape[0]

    def close(self) -> None:
        self._file.seek(0)
        self._header()
        self._file.close()


def _write_dense(blocks: Iterator[NDArray[Any]], name: str, folder: str) -> None:
    handle, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(name)}.", dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            stream = None
            for block in blocks:
                stream = stream or _NpyStream(file, block.dtype, (block.shape[1],))
                stream.append(block)
            if stream is not None:
                stream.close()
        _publish(temporary, name)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _write_sparse(blocks: Iterator[Any], name: str, folder: str) -> None:
    temporary = tempfile.mkdtemp(prefix=f".{os.path.basename(name)}.", dir=folder)
    try:
        with contextlib.ExitStack() as stack:
            files = [stack.enter_context(open(os.path.join(temporary, f"{part}.npy"), "wb")) for part in _PARTS]
            _append_all(blocks, files, temporary)
        _publish(temporary, name)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _append_all(blocks: Iterator[Any], files: Sequence[IO[bytes]], folder: str) -> None:
    streams: list[_NpyStream] = []
    n_rows = n_entries = n_columns = 0
    for block in blocks:
        block.sum_duplicates()
        if not streams:
            n_columns = block.shape[1]
            kinds = (block.dtype, _narrowest(n_columns), np.dtype(np.int64))
            streams = [_NpyStream(file, kind, ()) for file, kind in zip(files, kinds, strict=True)]
            streams[2].append(np.zeros(1, np.int64))
        streams[0].append(block.data)
        streams[1].append(block.indices)
        streams[2].append(block.indptr[1:].astype(np.int64) + n_entries)
        n_rows, n_entries = n_rows + block.shape[0], n_entries + int(block.indptr[-1])
    for stream in streams:
        stream.close()
    if _narrowest(n_entries) != _narrowest(n_columns):
        _widen(os.path.join(folder, "indices.npy"))
    np.save(os.path.join(folder, f"{_SHAPE}.npy"), np.array([n_rows, n_columns], np.int64), allow_pickle=False)


def _narrowest(largest: int) -> np.dtype[Any]:
    return np.dtype(np.int32 if largest <= np.iinfo(np.int32).max else np.int64)


def _widen(path: str) -> None:
    """Indices of 32 bits, written anew with 64."""
    narrow = np.load(path, mmap_mode="r", allow_pickle=False)
    if narrow.dtype == np.int64:
        return
    with open(f"{path}.wide", "wb") as file:
        stream = _NpyStream(file, np.dtype(np.int64), ())
        for start in range(0, narrow.size, 1 << 22):
            stream.append(narrow[start : start + (1 << 22)])
        stream.close()
    os.replace(f"{path}.wide", path)


def _publish(temporary: str, name: str) -> None:
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(temporary, (0o777 if os.path.isdir(temporary) else 0o666) & ~mask)
    if os.path.isdir(name) or (os.path.lexists(name) and os.path.isdir(temporary)):
        # A folder cannot be replaced in one step: move the old one aside.
        old = f"{temporary}.old"
        os.replace(name, old)
        os.replace(temporary, name)
        shutil.rmtree(old) if os.path.isdir(old) else os.unlink(old)
    else:
        os.replace(temporary, name)
