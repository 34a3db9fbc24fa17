"""Parquet and CSV files as batches of columns, read by pyarrow."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any

from rankhinge.datasets.errors import DataError, clipped
from rankhinge.datasets.sources import GZIP, MemoryBudget, opened

__all__ = ["PARQUET", "csv_batches", "index_of_pandas", "parquet_batches", "reason"]

PARQUET = b"PAR1"
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
# What spreadsheets write where the comma separates decimals, and what a wrong suffix may hide.
_OTHER_SEPARATORS = (";", "\t")
_LONGEST_HEADER = 1 << 20
_CONVERSION = re.compile(r"In CSV column #(\d+): Row #(\d+): CSV conversion error to (\w+): (.*)", re.DOTALL)
_RAGGED = re.compile(r"CSV parse error: Row #(\d+): Expected (\d+) columns, got (\d+): (.*)", re.DOTALL)


def parquet_batches(path: str, budget: MemoryBudget) -> Iterator[Any]:
    """The schema, then batches of rows."""
    from pyarrow import parquet

    with open(path, "rb") as raw:
        if raw.read(2) == GZIP:
            raise DataError(path, "a Parquet file inside a gzip file: unpack it first")
    seen = 0
    with parquet.ParquetFile(path, memory_map=False) as file:
        yield file.schema_arrow
        for batch in file.iter_batches(batch_size=1 << 16, use_threads=False):
            seen += batch.nbytes
            # Once as columns, once as a matrix.
            budget.check(2 * seen, seen)
            yield batch


def csv_batches(path: str, budget: MemoryBudget, qid: str | None) -> Iterator[Any]:
    """The schema, then batches of rows. The column `qid` is read as text, whatever it looks like.

    pyarrow takes the types from the first megabyte, and refuses what comes later: a column that begins with integers
    could have no fractions. So the file is opened twice, the second time with floats for all columns of numbers.
    """
    import pyarrow
    from pyarrow import csv

    parse = csv.ParseOptions(delimiter=_separator(path))
    # In one thread pyarrow counts the rows, for its messages.
    read = csv.ReadOptions(use_threads=False)
    with opened(path) as file, csv.open_csv(file, parse_options=parse, read_options=read) as reader:
        schema = reader.schema
    floats = {
        field.name: pyarrow.float64()
        for field in schema
        if pyarrow.types.is_integer(field.type) or pyarrow.types.is_null(field.type)
    }
    types = floats | ({} if qid is None else {qid: pyarrow.string()})
    yield pyarrow.schema([field.with_type(types.get(field.name, field.type)) for field in schema])
    convert, seen = csv.ConvertOptions(column_types=types), 0
    with (
        opened(path) as file,
        csv.open_csv(file, parse_options=parse, read_options=read, convert_options=convert) as reader,
    ):
        for batch in reader:
            seen += batch.nbytes
            budget.check(2 * seen, seen)
            yield batch


def _separator(path: str) -> str:
    """By the name of the file; if the first line has none of these separators, by that line."""
    stem, suffix = os.path.splitext(path.lower())
    suffix = os.path.splitext(stem)[1] if suffix == ".gz" else suffix
    usual = _SEPARATORS.get(suffix, ",")
    with opened(path) as file:
        header = file.readline(_LONGEST_HEADER).decode("utf-8", "replace")
    others = [separator for separator in _OTHER_SEPARATORS if separator in header]
    return usual if usual in header or not others else others[0]


def index_of_pandas(schema: Any) -> list[str]:
    """The columns of a Parquet file that pandas wrote for a frame's index: they are no features."""
    noted = (schema.metadata or {}).get(b"pandas")
    try:
        columns = json.loads(noted).get("index_columns", []) if noted else []
    except (ValueError, AttributeError, RecursionError):
        return []
    return [name for name in columns if isinstance(name, str)] if isinstance(columns, list) else []


def reason(error: BaseException, names: list[str]) -> str:
    """Why pyarrow gave up, in one line."""
    text = str(error)
    if found := _RAGGED.match(text):
        row, expected, got, content = found.groups()
        return f"row {int(row) - 1} has {got} fields instead of {expected}, {clipped(content)}"
    if found := _CONVERSION.match(text):
        column, row, kind, what = found.groups()
        name = clipped(names[int(column)] if int(column) < len(names) else column)
        if "UTF8" in what:
            return f"row {int(row) - 1}, column {name} is not UTF-8 text"
        value = clipped(what.removeprefix("invalid value ").strip("'"))
        return f"row {int(row) - 1}, column {name} is {'not a number' if kind == 'double' else f'no {kind}'}, {value}"
    return clipped(text.splitlines()[0] if text else error, shown=200)
