"""The writer of svmlight / LETOR files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from rankhinge._validation import refuse_dask
from rankhinge.datasets.sources import written

__all__ = ["dump_letor"]


def dump_letor(
    path: str | os.PathLike[str],
    X: Any,
    y: ArrayLike,
    *,
    qid: ArrayLike | None = None,
    comments: Sequence[str] | None = None,
    index_base: int = 1,
    zeros: bool | None = None,
) -> None:
    """Write an svmlight / LETOR file: ``label [qid:…] index:value … [# comment]``.

    Values have the fewest digits that give the same bits back. A sparse X may have any format, with indices of 32 or 64
    bits.

    Parameters
    ----------
    path : path
        Compressed if it ends in ``.gz``. An existing file is replaced only when the new one is complete.
    X : array or sparse matrix of shape (n, d)
    y : array of shape (n,)
    qid : array of int, shape (n,), optional
    comments : sequence of str, optional
        One comment for each row, without line breaks.
    index_base : {0, 1}, default 1
        The number of the first column.
    zeros : bool, optional
        Whether to write zeros. Default: yes for a dense X, as LETOR does; stored zeros only for a sparse X.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from rankhinge.datasets import dump_letor
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.txt"
    ...     dump_letor(path, [[0.5, 0.0], [1.0, 2.0]], [1, 0], qid=[7, 7], comments=["docid = a", "docid = b"])
    ...     print(path.read_text(), end="")
    1 qid:7 1:0.5 2:0 # docid = a
    0 qid:7 1:1 2:2 # docid = b
    """
    if index_base not in (0, 1):
        raise ValueError(f"index_base must be 0 or 1, got {index_base!r}")
    for name, given in (("X", X), ("y", y), ("qid", qid)):
        refuse_dask(given, name)
    rows: Any = X.tocsr() if sparse.issparse(X) else np.asarray(X)
    if rows.ndim != 2 or rows.dtype.kind not in "fiub":
        raise ValueError(f"X must be a matrix of numbers, got shape {rows.shape} of {rows.dtype}")
    if sparse.issparse(X) and not rows.has_sorted_indices:
        rows = rows.sorted_indices()
    n = rows.shape[0]
    labels = np.asarray(y)
    queries = None if qid is None else np.asarray(qid)
    if labels.shape != (n,) or labels.dtype.kind not in "fiub":
        raise ValueError(f"y must have one number for each of the {n} rows, got {labels.shape} of {labels.dtype}")
    if queries is not None and (queries.shape != (n,) or queries.dtype.kind not in "iu"):
        raise ValueError(f"qid must have one integer for each of the {n} rows, got {queries.shape} of {queries.dtype}")
    if comments is not None and len(comments) != n:
        raise ValueError(f"there are {len(comments)} comments for {n} rows")
    for name, values in (("X", rows.data if sparse.issparse(rows) else rows), ("y", labels)):
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise ValueError(f"{name} has a value that is not finite: {values[~np.isfinite(values)].flat[0]}")
    with written(path) as file:
        for k in range(n):
            parts = [_shortest(labels[k])]
            if queries is not None:
                parts.append(f"qid:{queries[k]}")
            columns, values = _row(rows, k)
            parts += [
                f"{column + index_base}:{_shortest(value)}"
                for column, value in zip(columns.tolist(), values, strict=True)
                if value != 0 or zeros or (zeros is None)
            ]
            if comments is not None:
                if "\n" in comments[k] or "\r" in comments[k]:
                    raise ValueError(f"comments[{k}] has a line break: {comments[k]!r}")
                parts.append(f"# {comments[k]}")
            file.write((" ".join(parts) + "\n").encode())


def _row(rows: Any, k: int) -> tuple[Any, Any]:
    if isinstance(rows, np.ndarray):
        return np.arange(rows.shape[1]), rows[k]
    part = slice(rows.indptr[k], rows.indptr[k + 1])
    return rows.indices[part], rows.data[part]


def _shortest(value: Any) -> str:
    """The fewest digits that give this number back in its own precision."""
    text = str(value) if isinstance(value, np.floating) else repr(int(value))
    return text.removesuffix(".0")
