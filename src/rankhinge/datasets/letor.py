"""`load_letor` and `load_letor_folds`: svmlight / LETOR files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from rankhinge.datasets.assembly import counted_from, join_comments, matrix, refuse_missing_values, with_missing_values
from rankhinge.datasets.blocks import parsed_blocks
from rankhinge.datasets.data import LetorData
from rankhinge.datasets.errors import DataError, clipped
from rankhinge.datasets.sources import MemoryBudget, text_lines

__all__ = ["load_letor", "load_letor_folds"]

_UNLABELLED = -1.0
_SIZES = (".query", ".group")
_FOLD_FILES = ("train", "vali", "test")


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
    """Read an svmlight / LETOR file, plain or gzip: ``label [qid:…] index:value … [# comment]``.

    Parameters
    ----------
    path : path
    dtype : dtype, default float64
        Of X: float32 or float64.
    sparse : bool or "auto", default "auto"
        Whether X is a `scipy.sparse.csr_array`. ``"auto"``: if the file has at most a third of X's entries.
    index_base : {0, 1, "auto"}, default "auto"
        The number of the first column in the file. ``"auto"``: 0 if an index 0 occurs, else 1.
    n_features : int, optional
        The number of columns of X. A larger index is an error. Default: as many as the largest index implies.
    missing_labels : {"error", "drop", "keep"}, default "error"
        What to do with unjudged rows. LETOR marks them by the label ``NULL``, or by −1 in files whose labels are not
        just ±1. Rows that are kept have the label −1.
    missing_values : {"error", "zero", "minimum", "nan"}, default "error"
        What replaces the values ``NULL`` and ``nan``. ``"minimum"`` is the smallest value of the feature in the query,
        as in LETOR's own normalised files.
    query_file : path, "auto" or None, default "auto"
        A file with the sizes of the queries, one number per line. ``"auto"``: the file of the same name with ``.query``
        (or ``.group``) appended, if it exists and lines have no ``qid``.
    comments : bool, default True
        Whether to keep the text after ``#``.
    max_memory : int, "auto" or None, default "auto"
        As for `load_npz`.

    Returns
    -------
    LetorData

    Raises
    ------
    DataError
        Names the file, the line, what is wrong and the value.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from rankhinge import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.txt"
    ...     _ = path.write_text("2 qid:1 1:0.5 2:1")
    ...     data = datasets.load_letor(path)
    >>> data.y.tolist(), data.qid.tolist()
    ([2.0], [1])
    """
    name = os.fspath(path)
    _check("missing_labels", missing_labels, ("error", "drop", "keep"))
    _check("missing_values", missing_values, ("error", "zero", "minimum", "nan"))
    _check("index_base", index_base, (0, 1, "auto"))
    _check("sparse", sparse, (True, False, "auto"))
    _check("dtype", np.dtype(dtype), (np.dtype(np.float32), np.dtype(np.float64)))
    if not os.path.isfile(name):
        raise DataError(name, "this is a folder, not a file" if os.path.isdir(name) else "there is no such file")
    budget = MemoryBudget(name, max_memory)
    blocks = []
    for block in parsed_blocks(name, np.dtype(dtype), comments, budget):
        if missing_values == "error":
            refuse_missing_values(name, block)
        blocks.append(block)
    if not blocks:
        raise DataError(name, "the file is empty: there is no line with a label")
    base = counted_from(name, blocks, index_base)
    labels = np.concatenate([block.labels for block in blocks])
    lines = np.concatenate([block.lines for block in blocks])
    qid = np.concatenate([block.queries for block in blocks]) if blocks[0].has_queries else None
    if qid is None:
        qid = _query_sizes(name, query_file, labels.size)
    texts = join_comments(blocks)
    X = matrix(name, blocks, base, n_features, sparse, budget)
    del blocks
    X = with_missing_values(X, qid, missing_values)
    kept = _labelled(name, labels, lines, missing_labels)
    if kept is not None:
        X, labels, qid = X[kept], labels[kept], None if qid is None else qid[kept]
        texts = None if texts is None else texts.take(kept)
    labels[np.isnan(labels)] = _UNLABELLED
    return LetorData(X, labels, qid, texts, name, base)


def _check(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    if value not in allowed or isinstance(value, bool) != any(value is entry for entry in (True, False)):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")


def _labelled(path: str, labels: NDArray[Any], lines: NDArray[Any], policy: str) -> NDArray[np.intp] | None:
    """The rows to keep. None: all."""
    missing = np.isnan(labels)
    if np.any((labels != _UNLABELLED) & (labels != 1) & ~missing):
        # Beside grades, −1 means unjudged. Beside 1 alone it is the other class.
        missing |= labels == _UNLABELLED
    if policy == "keep" or not missing.any():
        return None
    if policy == "error":
        row = int(np.argmax(missing))
        text = "NULL" if np.isnan(labels[row]) else "-1"
        remedy = "pass missing_labels='drop' or 'keep' (the command: --missing-labels drop)"
        raise DataError(path, f"the label is missing, '{text}': {remedy}", int(lines[row]))
    kept = np.flatnonzero(~missing)
    if not kept.size:
        raise DataError(path, "no line has a label")
    return kept


def _query_sizes(path: str, query_file: str | os.PathLike[str] | None, n_rows: int) -> NDArray[np.int64] | None:
    """Query ids 0, 1, … from a file with the sizes of the queries."""
    if query_file == "auto":
        stem = path.removesuffix(".gz")
        candidates = [stem + suffix for suffix in _SIZES]
        query_file = next((name for name in candidates if os.path.isfile(name)), None)
    if query_file is None:
        return None
    name, sizes = os.fspath(query_file), []
    for line, text in text_lines(name):
        words = text.split()
        if not words:
            continue
        if len(words) > 1 or not (words[0].isascii() and words[0].isdigit() and len(words[0]) <= 18):
            raise DataError(name, f"the size of a query is not a number, {clipped(text.strip())}", line)
        sizes.append(int(words[0]))
    total = sum(sizes)
    if total != n_rows:
        raise DataError(name, f"the sizes of the queries sum to {total}, but there are {n_rows} rows in {path}")
    return np.repeat(np.arange(len(sizes)), sizes)


def load_letor_folds(folder: str | os.PathLike[str], **options: Any) -> dict[str, Any]:
    """Read a fold, or all folds, of LETOR or MSLR: ``Fold1/train.txt``, ``vali.txt``, ``test.txt``.

    All files of a fold get the same columns, numbered from the same base.

    Parameters
    ----------
    folder : path
        A fold (with ``train.txt``), or the folder above the folds.
    **options
        As for `load_letor`.

    Returns
    -------
    dict
        For a fold: ``"train"``, ``"vali"`` and ``"test"`` (those that exist) → `LetorData`. For a folder of folds: each
        fold's name (``"Fold1"``, …), in order, → such a dict.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from rankhinge import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for part in ("train", "vali", "test"):
    ...         _ = (pathlib.Path(folder) / f"{part}.txt").write_text("2 qid:1 1:0.5 2:1")
    ...     fold = datasets.load_letor_folds(folder)
    >>> sorted(fold)
    ['test', 'train', 'vali']
    """
    name = os.fspath(folder)
    paths = {part: path for part in _FOLD_FILES if (path := _file(name, part)) is not None}
    if paths:
        return _fold(paths, options)
    inner = [os.path.join(name, entry) for entry in os.listdir(name)] if os.path.isdir(name) else []
    folds = sorted(path for path in inner if _file(path, "train") is not None)
    if not folds:
        raise DataError(name, "there is neither a train.txt nor a folder with one in this folder")
    return {os.path.basename(path): load_letor_folds(path, **options) for path in folds}


def _file(folder: str, part: str) -> str | None:
    """The file of a part of a fold, compressed or not."""
    candidates = [os.path.join(folder, f"{part}{suffix}") for suffix in (".txt", ".txt.gz")]
    return next((path for path in candidates if os.path.isfile(path)), None)


def _fold(paths: dict[str, str], options: dict[str, Any]) -> dict[str, LetorData]:
    """The parts. Those that differ in their columns are read again: one may lack the last column, or the first."""
    parts = {part: load_letor(path, **options) for part, path in paths.items()}
    bases = {part: data.index_base for part, data in parts.items()}
    if len(set(bases.values())) > 1:
        widths = {base: max(parts[part].n_features for part in parts if bases[part] == base) for base in (0, 1)}
        one_based = next(part for part, base in bases.items() if base == 1)
        if widths[0] == widths[1]:
            # Both have the same number of columns if each is counted from its own base: two programs wrote them.
            raise DataError(
                paths[one_based],
                f"the {widths[1]} columns are counted from 1, those of the other files from 0: pass index_base",
            )
    common = {"index_base": min(base for base in bases.values() if base is not None)}
    n_features = max(data.n_features + int(bases[part] or 0) - common["index_base"] for part, data in parts.items())
    settled = options | common | {"n_features": options.get("n_features") or n_features}
    return {
        part: data
        if (data.n_features, data.index_base) == (settled["n_features"], settled["index_base"])
        else load_letor(paths[part], **settled)
        for part, data in parts.items()
    }
