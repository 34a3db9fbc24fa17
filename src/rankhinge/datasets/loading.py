"""`load`: any data file, recognised by its first bytes and its name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from rankhinge.datasets.data import LetorData
from rankhinge.datasets.letor import load_letor
from rankhinge.datasets.npz import load_npz
from rankhinge.datasets.sources import opened
from rankhinge.datasets.table_files import PARQUET
from rankhinge.datasets.tables import load_table

__all__ = ["load"]

_TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")
_ZIP = b"PK\x03\x04"


def load(
    path: str | os.PathLike[str],
    *,
    label: str = "label",
    qid: str | None = "auto",
    features: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    unlabelled: bool = False,
    dtype: DTypeLike = np.float64,
    max_memory: int | str | None = "auto",
    **letor: Any,
) -> LetorData:
    r"""Read a data file of any supported format.

    npz and Parquet are recognised by their first bytes, CSV by its name (``.csv``, ``.tsv``, also with ``.gz``).
    Everything else is read as svmlight / LETOR.

    Parameters
    ----------
    path : path
    label, qid, features, ignore, unlabelled
        Columns of a table, see `load_table`. Ignored for other files.
    dtype : dtype, default float64
        The type of X. The X of an npz file keeps its own.
    max_memory : int, "auto" or None, default "auto"
        As for `load_npz`.
    **letor
        Further arguments of `load_letor`. Ignored for other files.

    Returns
    -------
    LetorData

    Raises
    ------
    DataError
        If the file cannot be read.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from rankhinge import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.txt"
    ...     _ = path.write_text("2 qid:1 1:0.5 2:1\n0 qid:1 1:0.25\n")
    ...     datasets.load(path).y
    array([2., 0.])
    """
    name = os.fspath(path)
    with opened(name) as file:
        magic = file.read(4)
    if magic == PARQUET or name.lower().endswith(_TABLES):
        return load_table(
            name,
            label=label,
            qid=qid,
            features=features,
            ignore=ignore,
            unlabelled=unlabelled,
            dtype=dtype,
            max_memory=max_memory,
        )
    if magic == _ZIP or name.lower().endswith(".npz"):
        return load_npz(name, max_memory=max_memory)
    return load_letor(name, dtype=dtype, max_memory=max_memory, **letor)
