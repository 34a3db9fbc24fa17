"""TREC runs: one line ``query Q0 document rank score tag`` for each document, as trec_eval and similar tools use."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankhinge._validation import refuse_dask
from rankhinge.datasets.data import Texts
from rankhinge.datasets.errors import DataError, clipped
from rankhinge.datasets.sources import text_lines, written

__all__ = ["Run", "dump_run", "load_run"]

_FIELDS = "query Q0 document rank score tag"


@dataclass(frozen=True, eq=False)
class Run:
    """The lines of a run, in the order of the file.

    Attributes
    ----------
    qid : ndarray of shape (n,)
        Integers if all query ids are integers, else text.
    document_ids : Texts of length n
    rank : ndarray of int64, shape (n,)
        As in the file. Only the score counts: trec_eval ignores the rank, too.
    scores : ndarray of float64, shape (n,)
    tag : str
        The tag of the first line.
    path : str

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from rankhinge import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.run"
    ...     datasets.dump_run(path, qid=[7, 7], document_ids=["a", "b"], scores=[0.25, 0.5])
    ...     run = datasets.load_run(path)
    >>> run.scores.tolist()
    [0.5, 0.25]
    """

    qid: NDArray[Any]
    document_ids: Texts
    rank: NDArray[np.int64]
    scores: NDArray[np.float64]
    tag: str
    path: str = ""


def load_run(path: str | os.PathLike[str]) -> Run:
    """Read a TREC run, plain or gzip.

    Parameters
    ----------
    path : path

    Returns
    -------
    Run

    Raises
    ------
    DataError
        If a line does not have six fields, a rank is not an integer, a score is not a finite number, or a query has a
        document twice.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from rankhinge.datasets import dump_run, load_run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.run"
    ...     dump_run(path, qid=[7, 7], document_ids=["a", "b"], scores=[0.25, 0.5], tag="mine")
    ...     print(path.read_text(), end="")
    ...     load_run(path).scores
    7 Q0 b 1 0.5 mine
    7 Q0 a 2 0.25 mine
    array([0.5 , 0.25])
    """
    name = os.fspath(path)
    queries: list[str] = []
    documents: list[str] = []
    ranks, scores, tag = [], [], ""
    seen: set[tuple[str, str]] = set()
    for line, text in text_lines(name):
        fields = text.split()
        if not fields:
            continue
        if len(fields) != 6:
            raise DataError(
                name, f"a run has the six fields {_FIELDS!r}, this line has {len(fields)}: {clipped(text)}", line
            )
        query, _, document, rank, score, last = fields
        if (query, document) in seen:
            raise DataError(name, f"query {clipped(query)} has the document {clipped(document)} twice", line)
        seen.add((query, document))
        queries.append(query)
        documents.append(document)
        ranks.append(_integer(name, line, rank))
        scores.append(_number(name, line, score))
        tag = tag or last
    if not queries:
        raise DataError(name, "the file is empty: a run has at least one line")
    return Run(
        _queries(queries), Texts.of(documents), np.array(ranks, np.int64), np.array(scores, np.float64), tag, name
    )


def _queries(names: list[str]) -> NDArray[Any]:
    """Convert to integers if that loses nothing: ``007`` is not 7."""
    if all(name.isascii() and name.isdigit() and len(name) < 19 and str(int(name)) == name for name in names):
        return np.array(names, np.int64)
    return np.array(names)


def _integer(path: str, line: int, text: str) -> int:
    try:
        value = int(text) if len(text) < 19 else None
    except ValueError:
        value = None
    if value is None:
        raise DataError(path, f"the rank is not an integer, {clipped(text)}", line)
    return value


def _number(path: str, line: int, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise DataError(path, f"the score is not a number, {clipped(text)}", line) from None
    if not np.isfinite(value):
        raise DataError(path, f"the score is not finite, {clipped(text)}", line)
    return value


def dump_run(
    path: str | os.PathLike[str],
    *,
    qid: ArrayLike,
    scores: ArrayLike,
    document_ids: Sequence[Any] | None = None,
    tag: str = "rankhinge",
) -> None:
    """Write a TREC run: queries in the order of their first row, documents by score, best first.

    Documents with equal scores keep the order of the rows. Scores have the fewest digits that give the same float64
    back.

    Parameters
    ----------
    path : path
        Compressed if it ends in ``.gz``. An existing file is replaced only when the new one is complete.
    qid : array of shape (n,)
    scores : array of shape (n,)
    document_ids : sequence of length n, optional
        Ids without blanks. Default: ``row0``, ``row1``, …
    tag : str, default "rankhinge"
        The name of the run.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from rankhinge import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.run"
    ...     datasets.dump_run(path, qid=[7, 7], document_ids=["a", "b"], scores=[0.25, 0.5], tag="mine")
    ...     first = path.read_text().splitlines()[0]
    >>> first
    '7 Q0 b 1 0.5 mine'
    """
    for name, given in (("qid", qid), ("scores", scores)):
        refuse_dask(given, name)
    queries = np.asarray(qid)
    values = np.asarray(scores, dtype=np.float64)
    names = [f"row{k}" for k in range(values.size)] if document_ids is None else [str(name) for name in document_ids]
    if queries.shape != values.shape or values.ndim != 1 or len(names) != values.size:
        raise ValueError(
            f"qid, scores and document_ids must each have one entry per row, got "
            f"{queries.shape}, {values.shape}, {len(names)}"
        )
    wrong = np.flatnonzero(~np.isfinite(values))
    if wrong.size:
        raise ValueError(f"scores[{wrong[0]}] is {values[wrong[0]]}: it must be finite")
    for kind, texts in (("tag", [tag]), ("document id", names), ("qid", [str(q) for q in queries.tolist()])):
        for text in texts:
            if len(text.split()) != 1 or text != text.strip():
                raise ValueError(f"the {kind} {text!r} must be one word: blanks separate the fields of a run")
    _, first, place = np.unique(queries, return_index=True, return_inverse=True)
    order = np.lexsort((-values, first[place.ravel()]))
    start, before = 0, None
    with written(path) as file:
        for position, row in enumerate(order.tolist()):
            if queries[row] != before:
                start, before = position, queries[row]
            line = f"{queries[row]} Q0 {names[row]} {position - start + 1} {float(values[row])!r} {tag}\n"
            file.write(line.encode())
