"""`load_letor` and `load_letor_folds`: svmlight / LETOR files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse as scipy_sparse

from rankhinge.datasets.data import LetorData, Texts
from rankhinge.datasets.errors import DataError, clipped
from rankhinge.datasets.sources import text_lines

__all__ = ["load_letor", "load_letor_folds"]


def load_letor(
    path: str | os.PathLike[str],
    *,
    dtype: DTypeLike = np.float64,
    sparse: bool | str = "auto",
    index_base: int | str = "auto",
    n_features: int | None = None,
    missing_labels: str = "error",
    missing_values: str = "error",
    query_file: str | os.PathLike[str] | None = "auto",
    comments: bool = True,
    max_memory: int | str | None = "auto",
) -> LetorData:
    """Data from an svmlight / LETOR file, plain or gzip: ``label [qid:…] index:value … [# comment]``.

    Parameters
    ----------
    path : path
    dtype : dtype, default float64
        Of X: float32 or float64.
    sparse : bool or "auto", default "auto"
        Whether X is a `scipy.sparse.csr_array`. ``"auto"``: if at most a third of its entries are in the file.
    index_base : {0, 1, "auto"}, default "auto"
        From which the file counts columns. ``"auto"``: from 0 if an index 0 occurs, else from 1.
    n_features : int, optional
        Columns of X; a greater index is an error. None: as many as the greatest index says.
    missing_labels : {"error", "drop", "keep"}, default "error"
        What to do with rows whose label is −1 beside others than ±1, or ``NULL``: LETOR's mark for documents that
        nobody has judged. Those that are kept have the label −1.
    missing_values : {"error", "zero", "minimum", "nan"}, default "error"
        What stands for a value ``NULL`` or ``nan``; ``"minimum"``: the least value of the feature in the query, as in
        LETOR's own normalised files.
    query_file : path, "auto" or None, default "auto"
        A file with the sizes of the queries, a number a line. ``"auto"``: the file of the same name with ``.query``
        (or ``.group``) behind it, if there is one and lines have no ``qid``.
    comments : bool, default True
        Whether what follows ``#`` is kept.
    max_memory : int, "auto" or None, default "auto"
        As for `load_npz`.

    Returns
    -------
    LetorData

    Raises
    ------
    DataError
        With file, line, what is wrong and the value.
    """
    name = os.fspath(path)
    rows: list[Any] = []
    for line, text in text_lines(name):
        content, _, comment = text.partition("#")
        words = content.split()
        if not words:
            continue
        qid = None
        if len(words) > 1 and words[1].startswith("qid:"):
            qid = int(words.pop(1)[4:])
        try:
            pairs = [(int(i), float(v)) for i, _, v in (word.partition(":") for word in words[1:])]
            rows.append((float(words[0]), qid, pairs, comment.strip()))
        except ValueError:
            raise DataError(name, f"expected index:value, found {clipped(text)}", line) from None
    if not rows:
        raise DataError(name, "the file is empty: there is no line with a label")
    least = min((pair[0] for row in rows for pair in row[2]), default=1)
    base = (0 if least == 0 else 1) if index_base == "auto" else int(index_base)
    d = n_features or max((pair[0] for row in rows for pair in row[2]), default=0) + 1 - base
    X = scipy_sparse.lil_array((len(rows), d), dtype=dtype)
    for k, row in enumerate(rows):
        for i, v in row[2]:
            X[k, i - base] = v
    X = X.tocsr()
    dense = sparse is False or (sparse == "auto" and 3 * X.nnz > len(rows) * d)
    return LetorData(
        X.toarray() if dense else X,
        np.array([row[0] for row in rows]),
        None if rows[0][1] is None else np.array([row[1] for row in rows], np.int64),
        Texts.of([row[3] for row in rows]) if any(row[3] for row in rows) else None,
        name,
        base,
    )


def load_letor_folds(
    folder: str | os.PathLike[str], **options: Any
) -> dict[str, dict[str, LetorData]] | dict[str, LetorData]:
    """The files of a fold, or of all folds, of LETOR and MSLR: ``Fold1/train.txt``, ``vali.txt``, ``test.txt``.

    All files of a fold have the same columns, and count them from the same base.

    Parameters
    ----------
    folder : path
        A fold (with ``train.txt``), or the folder above the folds.
    **options
        As for `load_letor`.

    Returns
    -------
    dict
        Of a fold: ``"train"``, ``"vali"``, ``"test"`` → `LetorData`, those that there are. Of a folder of folds: the
        name of each, in order (``"Fold1"``, …), → such a dict.
    """
    name = os.fspath(folder)
    found = {
        part: load_letor(os.path.join(name, f"{part}.txt"), **options)
        for part in ("train", "vali", "test")
        if os.path.exists(os.path.join(name, f"{part}.txt"))
    }
    if found:
        return found
    folds = {
        inner: load_letor_folds(os.path.join(name, inner), **options)
        for inner in sorted(os.listdir(name))
        if inner.startswith("Fold")
    }
    if not folds:
        raise DataError(name, "there is neither a train.txt nor a folder Fold1 in this folder")
    return folds  # type: ignore[return-value]
