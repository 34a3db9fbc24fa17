"""Parquet and CSV through pyarrow (extra ``tables``), by column names and batch by batch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankhinge.datasets.data import LetorData
from rankhinge.datasets.errors import DataError, clipped, need
from rankhinge.datasets.sources import MemoryBudget, opened

__all__ = ["PARQUET", "load_table"]

PARQUET = b"PAR1"
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_QID = "qid"


def load_table(
    path: str | os.PathLike[str],
    *,
    label: str = "label",
    qid: str | None = "auto",
    features: Sequence[str] | None = None,
    dtype: DTypeLike = np.float64,
    max_memory: int | str | None = "auto",
) -> LetorData:
    r"""Read a Parquet file, or CSV with column names in its first line (``.tsv``: with tabs), plain or gzip.

    Parameters
    ----------
    path : path
    label : str, default "label"
        The column of the labels: numbers or booleans.
    qid : str or None, default "auto"
        The column of the query ids: integers or text. ``"auto"``: ``qid``, if it exists. None: no queries.
    features : sequence of str, optional
        The columns of X, in this order. Default: all others, in the order of the file.
    dtype : dtype, default float64
        The type of X: float32 or float64.
    max_memory : int, "auto" or None, default "auto"
        As for `load_npz`.

    Returns
    -------
    LetorData

    Raises
    ------
    DataError
        If the file is damaged, a column is missing or not numeric, or a value is missing or not finite.
    ModuleNotFoundError
        Without pyarrow.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from rankhinge.datasets import load_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.csv"
    ...     _ = path.write_text("clicked,qid,bm25,length\n1,q7,2.5,100\n0,q7,1.0,80\n")
    ...     data = load_table(path, label="clicked")
    >>> data.X.tolist(), data.y.tolist(), data.qid.tolist(), data.feature_names
    ([[2.5, 100.0], [1.0, 80.0]], [1.0, 0.0], ['q7', 'q7'], ['bm25', 'length'])
    """
    name = os.fspath(path)
    try:
        import pyarrow
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        raise need("pyarrow", "tables", "reading Parquet and CSV") from None
    with opened(name) as file:
        magic = file.read(4)
    budget = MemoryBudget(name, max_memory)
    batches = _parquet(name, budget) if magic == PARQUET else _csv(name, budget)
    try:
        return _data(name, batches, label, qid, features, np.dtype(dtype))
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError, OverflowError, MemoryError) as error:
        raise DataError(
            name, f"the table cannot be read: {clipped(str(error).splitlines()[0] if str(error) else error)}"
        ) from None


def _parquet(path: str, budget: MemoryBudget) -> Iterator[Any]:
    from pyarrow import parquet

    seen = 0
    with parquet.ParquetFile(path, memory_map=False) as file:
        yield file.schema_arrow
        for batch in file.iter_batches(batch_size=1 << 16, use_threads=False):
            seen += batch.nbytes
            # Once as columns, once as a matrix.
            budget.check(2 * seen, seen)
            yield batch


def _csv(path: str, budget: MemoryBudget) -> Iterator[Any]:
    from pyarrow import csv

    stem, suffix = os.path.splitext(path)
    suffix = os.path.splitext(stem)[1] if suffix == ".gz" else suffix
    parse = csv.ParseOptions(delimiter=_SEPARATORS.get(suffix, ","))
    seen = 0
    with opened(path) as file, csv.open_csv(file, parse_options=parse) as reader:
        yield reader.schema
        for batch in reader:
            seen += batch.nbytes
            budget.check(2 * seen, seen)
            yield batch


def _data(
    path: str, batches: Iterator[Any], label: str, qid: str | None, features: Sequence[str] | None, dtype: np.dtype[Any]
) -> LetorData:
    schema = next(batches)
    present = list(schema.names)
    if qid == "auto":
        qid = _QID if _QID in present else None
    given = [label] if qid is None else [label, qid]
    names = [name for name in present if name not in given] if features is None else list(features)
    for column in [*given, *names]:
        if present.count(column) != 1:
            what = "there is no column" if column not in present else "there are several columns"
            raise DataError(path, f"{what} {clipped(column)}, found {clipped(', '.join(present))}")
    if not names:
        raise DataError(path, f"there are no columns beside {' and '.join(given)}: features are missing")
    _check_types(path, schema, [label, *names], qid)
    blocks, labels, queries, n_rows = [], [], [], 0
    for batch in batches:
        block = np.empty((batch.num_rows, len(names)), dtype=dtype)
        for k, column in enumerate(names):
            block[:, k] = _numbers(path, batch, column, n_rows, dtype)
        blocks.append(block)
        labels.append(_numbers(path, batch, label, n_rows, np.dtype(np.float64)))
        if qid is not None:
            queries.append(_ids(path, batch.column(qid), qid, n_rows))
        n_rows += batch.num_rows
    if not n_rows:
        raise DataError(path, "the table is empty: it has no rows")
    found = np.concatenate(queries) if queries else None
    return LetorData(np.concatenate(blocks), np.concatenate(labels), found, None, path, None, names)


def _check_types(path: str, schema: Any, numbers: Sequence[str], qid: str | None) -> None:
    from pyarrow import types

    for name in numbers:
        kind = schema.field(name).type
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind)):
            raise DataError(path, f"the column {clipped(name)} must be made of numbers, got {kind}")
    if qid is not None:
        kind = schema.field(qid).type
        if types.is_dictionary(kind):
            kind = kind.value_type
        if not (types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind)):
            raise DataError(path, f"the column {clipped(qid)} must be integers or text, got {kind}")


def _numbers(path: str, batch: Any, name: str, n_before: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    import pyarrow

    column = batch.column(name)
    _refuse_nulls(path, column, name, n_before)
    if pyarrow.types.is_decimal(column.type) or pyarrow.types.is_boolean(column.type):
        column = column.cast(pyarrow.float64() if pyarrow.types.is_decimal(column.type) else pyarrow.uint8())
    values = column.to_numpy(zero_copy_only=False).astype(np.float64)
    with np.errstate(over="ignore"):
        narrow = values.astype(dtype)
    wrong = np.flatnonzero(~np.isfinite(narrow))
    if wrong.size:
        row = int(wrong[0])
        reason = f"is beyond {dtype}" if np.isfinite(values[row]) else "is not finite"
        raise DataError(path, f"row {n_before + row + 1}, column {clipped(name)} {reason}, {values[row]}")
    return narrow


def _ids(path: str, column: Any, name: str, n_before: int) -> NDArray[Any]:
    import pyarrow

    _refuse_nulls(path, column, name, n_before)
    if pyarrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pyarrow.types.is_integer(column.type):
        return column.to_numpy(zero_copy_only=False)
    return np.array(column.to_pylist(), dtype=np.str_)


def _refuse_nulls(path: str, column: Any, name: str, n_before: int) -> None:
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise DataError(path, f"row {n_before + row + 1} has no value in the column {clipped(name)}")
