"""Metrics of scores that lie on workers: of lists that lie in one chunk there, of others by counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge._validation import as_numbers, encode_queries, refuse_missing
from rankhinge.dask import lists
from rankhinge.dask.chunks import array_of, blocks_of
from rankhinge.dask.lists import entries_of_chunk, ids_of
from rankhinge.dask.shuffle import Piece, exchanged
from rankhinge.dask.worker import Coding, labels_of
from rankhinge.problems.directory import directory_of, places_of
from rankhinge.problems.query_codes import codes_of_queries, salt_of
from rankhinge.problems.standing import Standing, count_between, standing_of

__all__ = ["standings_of_labels", "values_of_lists"]

Floats = NDArray[np.float64]
ByList = Callable[[Floats, Floats, Any], Floats]
"""Of labels, scores and query ids: the value of each list, nan where it has none."""


def _aligned(client: Any, scores: Any, y: Any) -> tuple[Any, Any]:
    """Scores, computed on the workers, and labels in the same chunks of rows."""
    scores = array_of(client.persist(scores), "X")
    y = array_of(y, "y", scores.chunks[0])
    if y.shape[0] != scores.shape[0]:
        raise ValueError(f"X has {scores.shape[0]} rows, but y has {y.shape[0]}")
    if y.ndim == 2:
        y = y[:, 0] if y.shape[1] == 1 else y.rechunk({1: -1})
    return scores, y.rechunk({0: scores.chunks[0]})


def standings_of_labels(client: Any, scores: Any, y: Any, kind: str, classes: NDArray[Any]) -> list[Standing]:
    """For each of K one-vs-rest problems where its positives stand.

    Parameters
    ----------
    client : distributed.Client
    scores : dask array of shape (n,) or (n, K)
    y : dask collection or array of shape (n,) or (n, K)
    kind : {"binary", "multiclass", "multilabel"}
    classes : ndarray
        Those of training.
    """
    from dask import delayed

    scores, y = _aligned(client, scores, y)
    if (kind == "multilabel") != (y.ndim == 2) or (y.ndim == 2 and y.shape[1] != scores.shape[1]):
        raise ValueError(f"y has shape {y.shape}, which does not fit X and the labels of training")
    blocks = list(zip(blocks_of(scores), blocks_of(y), strict=True))
    known = client.gather(client.compute([delayed(labels_of)(own) for _, own in blocks]))
    labels = np.unique(np.concatenate([part for part in known if part.size]))
    refuse_missing(labels, "y")
    if kind == "multilabel" and not np.isin(labels, (-1, 0, 1)).all():
        raise ValueError(f"y has {labels[~np.isin(labels, (-1, 0, 1))][0]}: labels must be 0/1 or -1/1")
    if kind != "multilabel" and not np.isin(labels, classes).any():
        raise ValueError(f"y has none of the labels of training, {classes[:5].tolist()}; it has {labels[0]!r}")
    coding = Coding(kind, classes)
    found = client.gather(client.compute([delayed(_positives)(s, own, coding) for s, own in blocks]))
    positives = [np.concatenate(parts) for parts in zip(*found, strict=True)]
    marks = delayed([np.unique(part) for part in positives], traverse=False)
    counts = client.gather(client.compute([delayed(_between)(s, own, coding, marks) for s, own in blocks]))
    return [
        standing_of(own, np.ones(own.size), parts)
        for own, parts in zip(positives, zip(*counts, strict=True), strict=True)
    ]


def _rows_of(scores: Any, y: Any, coding: Coding) -> list[tuple[Floats, NDArray[np.bool_]]]:
    values = np.atleast_2d(np.asarray(scores, dtype=np.float64).T)
    if not np.isfinite(values).all():
        raise ValueError("a score is nan or infinite")
    return list(zip(values, coding.relevant(np.asarray(y)), strict=True))


def _positives(scores: Any, y: Any, coding: Coding) -> list[Floats]:
    return [row[mine] for row, mine in _rows_of(scores, y, coding)]


def _between(scores: Any, y: Any, coding: Coding, marks: list[Floats]) -> list[NDArray[np.int64]]:
    rows = _rows_of(scores, y, coding)
    return [count_between(row[~mine], own) for (row, mine), own in zip(rows, marks, strict=True)]


class _Judged(NamedTuple):
    """Of a chunk: values of the lists that lie in it, samples of lists that are fetched, relevant ones of long lists.

    Both are (codes, labels, scores).
    """

    values: Floats
    fetched: tuple[Any, ...]
    long: tuple[Any, ...]


def values_of_lists(
    client: Any, scores: Any, y: Any, qid: Any, by_list: ByList, of_standing: Callable[[Standing], float]
) -> Floats:
    """The value of each list, in no order; nan for those that have none.

    Lists that lie in one chunk are judged there; few short ones that lie in several are fetched, many are brought
    together, scores and labels alone; long ones are judged by counts.
    """
    from dask import delayed

    scores, y = _aligned(client, scores, y)
    n, lengths = scores.numblocks[0], scores.chunks[0]
    queries = [None] * n
    if qid is not None:
        ids = array_of(qid, "qid", lengths)
        if ids.shape[0] != scores.shape[0]:
            raise ValueError(f"X has {scores.shape[0]} rows, but qid has {ids.shape[0]}")
        queries = blocks_of(ids.rechunk({0: lengths}))
    blocks = list(zip(blocks_of(scores), blocks_of(y), queries, strict=True))
    tasks = [delayed(entries_of_chunk)(own, ids, None, number) for number, (_, own, ids) in enumerate(blocks)]
    directory = directory_of(client.gather(client.compute(tasks)))
    places = places_of(directory, np.ones(directory.sizes.size, np.bool_), lists.LONGEST, lists.MOST_FETCHED)
    salt = salt_of(directory.queries)
    codes = codes_of_queries(directory.queries, salt)
    fetched, long = np.sort(codes[places.fetched]), np.sort(codes[places.spread])
    pieces = client.persist(
        [delayed(_piece, pure=False)(s, own, ids, salt, long, number, n) for number, (s, own, ids) in enumerate(blocks)]
    )
    if places.moved.any():
        pieces = client.persist(exchanged(pieces))
    found = client.gather(client.compute([delayed(_judged)(piece, by_list, fetched, long) for piece in pieces]))
    values = [part.values for part in found]
    samples = [np.concatenate(parts) for parts in zip(*(part.fetched for part in found), strict=True)]
    if samples[0].size:
        values.append(by_list(samples[1], samples[2], samples[0]))
    relevant = [np.concatenate(parts) for parts in zip(*(part.long for part in found), strict=True)]
    mine = [relevant[0] == code for code in long]
    marks = delayed([np.unique(relevant[2][own]) for own in mine], traverse=False)
    counts = client.gather(client.compute([delayed(_between_of)(piece, long, marks) for piece in pieces]))
    for place, own in enumerate(mine):
        standing = standing_of(relevant[2][own], relevant[1][own], [part[place] for part in counts])
        values.append(np.array([of_standing(standing)]))
    return np.concatenate(values)


def _piece(scores: Any, y: Any, qid: Any, salt: int, long: NDArray[np.uint64], number: int, n_chunks: int) -> Piece:
    labels = as_numbers(y, "y")
    if qid is None:
        queries, numbers = np.zeros(1, np.int64), np.zeros(labels.size, np.intp)
    else:
        queries, numbers = encode_queries(ids_of(qid), labels.size)
    codes = codes_of_queries(queries, salt)[numbers] if labels.size else np.zeros(0, np.uint64)
    target = (codes % np.uint64(n_chunks)).astype(np.int32)
    target[np.isin(codes, long)] = number
    values = np.asarray(scores, dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError("a score is nan or infinite")
    return Piece(values, labels, codes, None, target)


def _judged(piece: Piece, by_list: ByList, fetched: NDArray[np.uint64], long: NDArray[np.uint64]) -> _Judged:
    away, spread = np.isin(piece.codes, fetched), np.isin(piece.codes, long)
    own, relevant = ~(away | spread), spread & (piece.labels > 0)
    whole: Sequence[Any] = (piece.codes, piece.labels, piece.X)
    values = by_list(piece.labels[own], piece.X[own], piece.codes[own]) if own.any() else np.zeros(0)
    return _Judged(values, tuple(part[away] for part in whole), tuple(part[relevant] for part in whole))


def _between_of(piece: Piece, long: NDArray[np.uint64], marks: list[Floats]) -> list[NDArray[np.int64]]:
    others = piece.labels == 0
    return [count_between(piece.X[others & (piece.codes == code)], own) for code, own in zip(long, marks, strict=True)]
