"""NumPy's npz files: parsed data for the next time, read without pickle and within a memory limit."""

from __future__ import annotations

import math
import os
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankhinge._validation import refuse_dask
from rankhinge.datasets.data import LetorData, Texts
from rankhinge.datasets.errors import DataError, clipped
from rankhinge.datasets.sources import MemoryBudget, written

__all__ = ["load_npz", "save_npz"]

_SPARSE = ("X_data", "X_indices", "X_indptr", "X_shape")
# NumPy's own bound for headers that are parsed.
_LONGEST_HEADER = 10_000


def save_npz(path: str | os.PathLike[str], data: LetorData) -> None:
    """Write data as an npz file without pickle. Equal data give equal bytes.

    The arrays are ``X`` (for a sparse X ``X_data``, ``X_indices``, ``X_indptr``, ``X_shape``), ``y`` and, if present,
    ``qid``, ``feature_names``, ``comments`` (all texts as UTF-8), ``comments_offsets`` and ``index_base``.

    Parameters
    ----------
    path : path
        An existing file is replaced only when the new one is complete.
    data : LetorData

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from rankhinge.datasets import LetorData, load_npz, save_npz
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.npz"
    ...     save_npz(path, LetorData(np.eye(2), np.array([0.0, 1.0]), qid=np.array([7, 7])))
    ...     load_npz(path).qid
    array([7, 7])
    """
    arrays: dict[str, NDArray[Any]] = {}
    for name in ("X", "y", "qid"):
        refuse_dask(getattr(data, name), name)
    if sparse.issparse(data.X):
        X = data.X.tocsr()
        parts = (X.data, X.indices, X.indptr, np.array(X.shape, np.int64))
        arrays |= dict(zip(_SPARSE, parts, strict=True))
    else:
        arrays["X"] = np.asarray(data.X)
    arrays["y"] = np.asarray(data.y)
    if data.qid is not None:
        arrays["qid"] = np.asarray(data.qid)
    if data.feature_names is not None:
        arrays["feature_names"] = np.array(data.feature_names, dtype=np.str_)
    if data.comments is not None:
        arrays |= {"comments": data.comments.content, "comments_offsets": data.comments.offsets}
    if data.index_base is not None:
        arrays["index_base"] = np.array(data.index_base, np.int64)
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise ValueError(f"{name} has dtype {array.dtype}, which only pickle could write: convert it to text")
    with written(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            # A fixed date: equal data give equal bytes.
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            with archive.open(entry, "w", force_zip64=True) as stream:
                np.lib.format.write_array(stream, array, allow_pickle=False)


def load_npz(path: str | os.PathLike[str], *, max_memory: int | str | None = "auto") -> LetorData:
    """Read an npz file written by `save_npz`, or any other with arrays ``X``, ``y`` and optionally ``qid``.

    Parameters
    ----------
    path : path
    max_memory : int, "auto" or None, default "auto"
        The bytes that the arrays may take. None: no limit. ``"auto"``: four times the file's size plus 350 MB, or more
        if the content compresses no better than text.

    Returns
    -------
    LetorData

    Raises
    ------
    DataError
        If the file is damaged, has no ``X`` or ``y``, shapes differ, or a value is not finite.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from rankhinge.datasets import load_npz
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.npz"
    ...     np.savez(path, X=np.eye(2), y=np.array([0.0, 1.0]))
    ...     data = load_npz(path)
    >>> data.y.tolist()
    [0.0, 1.0]
    """
    name = os.fspath(path)
    arrays = _arrays(name, MemoryBudget(name, max_memory) if os.path.exists(name) else None)
    try:
        return _data(name, arrays)
    except KeyError as error:
        found = ", ".join(sorted(arrays)) or "none"
        raise DataError(name, f"there is no array {error.args[0]!r}, only {clipped(found)}") from None


def _arrays(path: str, budget: MemoryBudget | None) -> dict[str, NDArray[Any]]:
    try:
        with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            total = sum(entry.file_size for entry in entries)
            if budget is not None:
                budget.check(total, total)
            return {entry.filename.removesuffix(".npy"): _array(path, archive, entry) for entry in entries}
    except FileNotFoundError:
        raise DataError(path, "there is no such file") from None
    except IsADirectoryError:
        raise DataError(path, "this is a folder, not a file") from None
    except PermissionError:
        raise DataError(path, "the file may not be read (permission denied)") from None
    except DataError:
        raise
    except Exception as error:
        # The parsers of headers and of archives raise all kinds of errors.
        raise DataError(path, f"the npz file is damaged: {clipped(error)}") from None


def _array(path: str, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> NDArray[Any]:
    """Read one array. Its header must agree with the size of its entry before anything is allocated."""
    with archive.open(entry) as stream:
        version = np.lib.format.read_magic(stream)
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
        if read is None:
            raise DataError(path, f"the array {entry.filename!r} has the unknown version {version}")
        shape, fortran, dtype = read(stream, max_header_size=_LONGEST_HEADER)
        if dtype.hasobject:
            raise DataError(path, f"the array {entry.filename!r} holds pickled objects, which are not loaded")
        n_bytes = math.prod(shape) * dtype.itemsize
        content = stream.read()
        if min(shape, default=0) < 0 or n_bytes != len(content):
            raise DataError(path, f"the array {entry.filename!r} has {len(content)} bytes, its header says {n_bytes}")
        flat = np.frombuffer(bytearray(content), dtype) if n_bytes else np.empty(0, dtype)
        return flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)


def _data(path: str, arrays: dict[str, NDArray[Any]]) -> LetorData:
    X = _sparse(path, arrays) if "X_data" in arrays else arrays["X"]
    y = arrays["y"]
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise DataError(path, f"X must be a matrix of numbers, got shape {X.shape} of {X.dtype}")
    if y.shape != (X.shape[0],) or y.dtype.kind not in "fiub":
        raise DataError(path, f"y must have one number for each of the {X.shape[0]} rows, got {y.shape} of {y.dtype}")
    if not X.shape[0]:
        raise DataError(path, "the file is empty: X has no rows")
    for name, values in (("X", np.asarray(X.data) if sparse.issparse(X) else X), ("y", y)):
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            place = tuple(np.argwhere(~np.isfinite(values))[0].tolist())
            raise DataError(path, f"{name}{list(place)} is not finite, {values[place]}")
    qid = arrays.get("qid")
    if qid is not None and (qid.shape != y.shape or qid.dtype.kind not in "iuUS"):
        raise DataError(path, f"qid must have an integer or a text for each row, got {qid.shape} of {qid.dtype}")
    names, base = arrays.get("feature_names"), arrays.get("index_base")
    if names is not None and (names.shape != (X.shape[1],) or names.dtype.kind != "U"):
        raise DataError(
            path, f"feature_names must have one text for each of the {X.shape[1]} columns, got {names.shape}"
        )
    return LetorData(
        X,
        y.astype(np.float64),
        qid,
        _comments(path, arrays, y.size),
        path,
        int(base) if base is not None and base.shape == () and base.dtype.kind in "iu" else None,
        None if names is None else names.tolist(),
    )


def _sparse(path: str, arrays: dict[str, NDArray[Any]]) -> Any:
    """A CSR matrix, checked: SciPy would trust its indices."""
    data, indices, indptr, shape = (arrays[name] for name in _SPARSE)
    fits = shape.shape == (2,) and all(array.dtype.kind in "iu" for array in (indices, indptr, shape))
    fits = fits and data.ndim == indices.ndim == indptr.ndim == 1 and data.size == indices.size
    fits = fits and indptr.size == int(shape[0]) + 1 and indptr.size > 0 and int(indptr[0]) == 0
    fits = fits and int(indptr[-1]) == data.size and bool(np.all(indptr[1:] >= indptr[:-1]))
    fits = fits and (not indices.size or (int(indices.min()) >= 0 and int(indices.max()) < int(shape[1])))
    if not fits:
        raise DataError(path, "the arrays of the sparse X do not fit together")
    return sparse.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))


def _comments(path: str, arrays: dict[str, NDArray[Any]], n_rows: int) -> Texts | None:
    if "comments" not in arrays:
        return None
    content, offsets = arrays["comments"], arrays["comments_offsets"]
    fits = (
        content.dtype == np.uint8 and content.ndim == 1 and offsets.dtype == np.int64 and offsets.shape == (n_rows + 1,)
    )
    if not (fits and offsets[0] == 0 and offsets[-1] == content.size and bool(np.all(np.diff(offsets) >= 0))):
        raise DataError(path, "the comments do not fit the rows")
    return Texts(content, offsets)
