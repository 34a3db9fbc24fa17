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
from rankhinge.datasets.table_files import PARQUET, csv_batches, index_of_pandas, parquet_batches, reason

__all__ = ["load_table"]

_QID = "qid"


def load_table(
    path: str | os.PathLike[str],
    *,
    label: str = "label",
    qid: str | None = "auto",
    features: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    unlabelled: bool = False,
    dtype: DTypeLike = np.float64,
    max_memory: int | str | None = "auto",
) -> LetorData:
    r"""Read a Parquet file, or CSV with column names in its first line, plain or gzip.

    The fields of CSV are separated by commas (``.tsv``: by tabs), or by semicolons or tabs if the first line has no
    commas. Numbers have a decimal point.

    Parameters
    ----------
    path : path
    label : str, default "label"
        The column of the labels: numbers or booleans.
    qid : str or None, default "auto"
        The column of the query ids: integers or text. ``"auto"``: ``qid``, if it exists. None: no queries.
    features : sequence of str, optional
        The columns of X, in this order. Default: all others, in the order of the file, but neither columns without a
        name nor the index of a pandas frame.
    ignore : sequence of str, default ()
        Columns that are no features. For the default of `features`.
    unlabelled : bool, default False
        Whether the column of the labels may be missing. All of `y` is nan then.
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
    wanted = _Columns(name, label, qid, features, ignore, unlabelled)
    if magic == PARQUET:
        batches = parquet_batches(name, budget)
    else:
        batches = csv_batches(name, budget, _QID if qid == "auto" else qid)
    try:
        return _data(wanted, batches, np.dtype(dtype))
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError, OverflowError, MemoryError) as error:
        raise DataError(name, f"the table cannot be read: {reason(error, wanted.present)}") from None


class _Columns:
    """The columns that are asked for, and those of the file: `present`, known from its schema on."""

    def __init__(
        self,
        path: str,
        label: str,
        qid: str | None,
        features: Sequence[str] | None,
        ignore: Sequence[str],
        unlabelled: bool,
    ) -> None:
        self.path, self.qid, self.features, self.ignore = path, qid, features, list(ignore)
        self.label: str | None = label
        self.unlabelled, self.present = unlabelled, list[str]()

    def find(self, schema: Any) -> list[str]:
        """The features. Settles which columns hold labels and queries."""
        self.present = list(schema.names)
        if self.qid == "auto":
            self.qid = _QID if _QID in self.present else None
        if self.unlabelled and self.label not in self.present:
            self.label = None
        given = [name for name in (self.label, self.qid) if name is not None]
        others = [*given, *self.ignore, *index_of_pandas(schema)]
        names = (
            [name for name in self.present if name.strip() and name not in others]
            if self.features is None
            else list(self.features)
        )
        for column in [*given, *self.ignore, *names]:
            if self.present.count(column) != 1:
                self._refuse(column)
        if not names:
            raise DataError(self.path, f"there are no columns beside {' and '.join(others)}: features are missing")
        return names

    def _refuse(self, column: str) -> None:
        if column in self.present:
            raise DataError(self.path, f"there are several columns {clipped(column)}: give each a name of its own")
        found = clipped(", ".join(self.present), shown=200)
        remedy = ""
        if column == self.label:
            remedy = ": name the column of the labels by label= (the command: --label)"
        raise DataError(self.path, f"there is no column {clipped(column)}, found {found}{remedy}")


def _data(wanted: _Columns, batches: Iterator[Any], dtype: np.dtype[Any]) -> LetorData:
    path, schema = wanted.path, next(batches)
    names = wanted.find(schema)
    blocks, labels, queries, n_rows = [], [], _Ids(path, wanted.qid), 0
    for batch in batches:
        if not n_rows:
            _check_types(path, schema, batch, names, wanted.label, wanted.qid)
        block = np.empty((batch.num_rows, len(names)), dtype=dtype)
        for k, column in enumerate(names):
            block[:, k] = _numbers(path, batch, column, n_rows, dtype)
        blocks.append(block)
        if wanted.label is None:
            labels.append(np.full(batch.num_rows, np.nan))
        else:
            labels.append(_numbers(path, batch, wanted.label, n_rows, np.dtype(np.float64)))
        queries.append(batch, n_rows)
        n_rows += batch.num_rows
    if not n_rows:
        raise DataError(path, "the table is empty: it has no rows")
    return LetorData(np.concatenate(blocks), np.concatenate(labels), queries.joined(), None, path, None, names)


def _check_types(path: str, schema: Any, batch: Any, names: list[str], label: str | None, qid: str | None) -> None:
    from pyarrow import types

    for name in [*names, *([] if label is None else [label])]:
        kind = schema.field(name).type
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind)):
            remedy = "turn it into numbers"
            if name != label:
                remedy += f", or leave it out by ignore=[{clipped(name)}] (the command: --ignore)"
            raise DataError(
                path,
                f"the column {clipped(name)} must be made of numbers, got {_kind(kind)}"
                f"{_example(batch.column(name))}: {remedy}",
            )
    if qid is not None:
        kind = schema.field(qid).type
        if types.is_dictionary(kind):
            kind = kind.value_type
        if not (types.is_integer(kind) or types.is_string(kind) or types.is_large_string(kind)):
            raise DataError(
                path,
                f"the column {clipped(qid)} must be integers or text, got {_kind(kind)}{_example(batch.column(qid))}",
            )


def _kind(kind: Any) -> str:
    from pyarrow import types

    if types.is_dictionary(kind):
        return f"categories of {kind.value_type}"
    return "text that is not UTF-8" if types.is_binary(kind) or types.is_large_binary(kind) else str(kind)


def _example(column: Any) -> str:
    """The first value that is no number, for a message."""
    for row, value in enumerate(column.slice(0, 1000).to_pylist(), start=1):
        try:
            float(value)
        except (TypeError, ValueError):
            if value is not None:
                return f", {clipped(value)} in row {row}"
    return ""


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


class _Ids:
    """The query ids of all batches. Text becomes integers if that loses nothing: ``007`` is not 7."""

    def __init__(self, path: str, name: str | None) -> None:
        self.path, self.name = path, name
        self.parts: list[NDArray[Any]] = []

    def append(self, batch: Any, n_before: int) -> None:
        """Take those of a batch."""
        from pyarrow import types

        if self.name is None:
            return
        column = batch.column(self.name)
        _refuse_nulls(self.path, column, self.name, n_before)
        if types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if types.is_integer(column.type):
            self.parts.append(column.to_numpy(zero_copy_only=False))
            return
        texts = np.array(column.to_pylist(), dtype=np.str_)
        for row in np.flatnonzero(texts == "")[:1]:
            raise DataError(self.path, f"row {n_before + row + 1} has no value in the column {clipped(self.name)}")
        numbers = _integers(texts)
        self.parts.append(texts if numbers is None else numbers)

    def joined(self) -> NDArray[Any] | None:
        """All of them. Where some are words, all are."""
        if any(part.dtype.kind == "U" for part in self.parts):
            self.parts = [part.astype(np.str_) for part in self.parts]
        return np.concatenate(self.parts) if self.parts else None


def _integers(texts: NDArray[Any]) -> NDArray[np.int64] | None:
    """The same as integers; None if they are not, or are written otherwise."""
    try:
        numbers = texts.astype(np.int64)
    except (ValueError, OverflowError):
        return None
    return numbers if np.array_equal(numbers.astype(np.str_), texts) else None


def _refuse_nulls(path: str, column: Any, name: str, n_before: int) -> None:
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise DataError(path, f"row {n_before + row + 1} has no value in the column {clipped(name)}")
