"""Lists over the chunks of dask collections: the directory first, then shards, with scattered short lists moved."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge._validation import as_numbers, encode_queries
from rankhinge.dask.chunks import Rows, aligned
from rankhinge.dask.shuffle import Piece, exchanged
from rankhinge.dask.worker import Chunk, Held, checked
from rankhinge.losses import RankingLoss
from rankhinge.objective.sharded import Engine, forget
from rankhinge.objective.sharded.lists import ShardedLists
from rankhinge.objective.sharded.lists_shard import ListsShard, Outside, Rules
from rankhinge.objective.sharded.outline import Outline, counts_of, outside_of, parts_of
from rankhinge.problems.directory import Entries, directory_of, entries_of, levels_of, places_of
from rankhinge.problems.gains import grades_of
from rankhinge.problems.queries import NoUsableList, finite_gains, weights_of_levels, weights_of_rows
from rankhinge.problems.query_codes import codes_of_queries, salt_of

__all__ = ["LONGEST", "MOST_FETCHED", "OpenedLists", "Opening", "entries_of_chunk", "ids_of", "opening", "separated"]

Floats = NDArray[np.float64]
# Lists with more samples are counted where they lie. Of all shorter lists together, at most this many scores are
# fetched.
LONGEST, MOST_FETCHED = 1 << 16, 1 << 17


class _Reading(NamedTuple):
    """How the rows of a chunk are read: γ of labels, the grades that there are, what tells lists apart."""

    gains: Any
    grades: Floats
    salt: int
    unit: float
    n_chunks: int
    staying: NDArray[np.uint64]
    """Codes of lists whose rows stay where they are, when the others move."""


class Opening(NamedTuple):
    """Delayed shards, and what is known of them."""

    shards: list[Any]
    outline: Outline
    attributes: dict[str, Any]
    moves: bool


def opening(
    client: Any,
    rows: Rows,
    qid: Any,
    query_weight: Any,
    loss: RankingLoss,
    gains: Any,
    level_weights: Any,
) -> Opening:
    """The directory of all lists, by one pass over labels and queries, and shards that wait to be computed."""
    from dask import delayed

    n = len(rows.lengths)
    queries = [None] * n if qid is None else aligned(qid, "qid", rows)
    weights: Sequence[Any] = [query_weight if query_weight is None else delayed(query_weight, traverse=False)] * n
    if query_weight is not None and not isinstance(query_weight, Mapping):
        weights = aligned(query_weight, "query_weight", rows)
    elif query_weight is not None and qid is None:
        raise ValueError("query_weight is a mapping by query, but there is no qid")
    tasks = [
        delayed(entries_of_chunk, pure=False)(y, own, weight, number)
        for number, (y, own, weight) in enumerate(zip(rows.y, queries, weights, strict=True))
    ]
    directory = directory_of(client.gather(client.compute(tasks)))
    if isinstance(query_weight, Mapping):
        # Warns of a mapping that knows none of them.
        weights_of_rows(query_weight, directory.queries, directory.queries.size)
    finite_gains(directory.labels, gains)
    grades = grades_of(directory.labels, gains)
    grade_of_label = np.searchsorted(grades.gains, finite_gains(directory.labels, gains))
    of_levels = weights_of_levels(loss, grades.labels, level_weights)
    table = levels_of(directory, grade_of_label, grades, loss, of_levels)
    if not table.usable.any():
        weight = "" if query_weight is None else " and a positive weight"
        raise NoUsableList(
            f"none of the {directory.queries.size} queries has both a relevant and a less relevant sample{weight}"
        )
    places = places_of(directory, table.usable, LONGEST, MOST_FETCHED)
    salt = salt_of(directory.queries)
    codes = codes_of_queries(directory.queries, salt)
    rules = Rules(loss, grades.gains, of_levels, table.total)
    outside, moves = outside_of(directory, table, places, codes), bool(places.moved.any())
    outline = Outline(
        rows.n_samples, rows.n_features, rows.n_samples * rows.n_features, counts_of(directory, table), outside, rules
    )
    staying = np.sort(codes[places.spread])
    reading = delayed(_Reading(gains, grades.gains, salt, directory.unit, n, staying), traverse=False)
    pieces = [
        delayed(_read, pure=False)(X_, y, own, weight, chunk, reading)
        for X_, y, own, weight, chunk in zip(rows.X, rows.y, queries, weights, _chunks(rows), strict=True)
    ]
    shards = [
        # What a shard is told of thousands of lists is looked through by no one.
        delayed(_build, pure=False)(piece, delayed(mine, traverse=False), delayed(rules, traverse=False), number)
        for number, (piece, mine) in enumerate(
            zip(exchanged(pieces) if moves else pieces, parts_of(outside, directory), strict=True)
        )
    ]
    known = {"n_queries_": int(table.usable.sum()), "n_unusable_queries_": table.n_unusable}
    return Opening(shards, outline, known, moves)


def _chunks(rows: Rows) -> list[Chunk]:
    kind, firsts = "" if rows.is_sparse else rows.dtype.kind, np.cumsum([0, *rows.lengths]).tolist()
    return [
        Chunk(number, firsts[number], length, rows.n_features, kind, rows.is_sparse, 1)
        for number, length in enumerate(rows.lengths)
    ]


def entries_of_chunk(y: Any, qid: Any, weight: Any, number: int) -> Entries:
    """The lists of a chunk, which is named where something is wrong with them."""
    try:
        labels = as_numbers(y, "y")
        return entries_of(labels, None if qid is None else ids_of(qid), _weights(weight, qid, labels.size))
    except ValueError as error:
        raise ValueError(f"in chunk {number}: {error}") from None


def ids_of(qid: Any) -> NDArray[Any]:
    """Query ids of a chunk as an array."""
    values = qid.to_numpy() if hasattr(qid, "to_numpy") else np.asarray(qid)
    return np.asarray(values)


def _weights(weight: Any, qid: Any, n_rows: int) -> Floats | None:
    """The weight of each row. A mapping may lack the queries of a chunk, which is no reason to warn here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return weights_of_rows(weight, None if qid is None else ids_of(qid), n_rows) if n_rows else None


def _read(X: Any, y: Any, qid: Any, weight: Any, chunk: Chunk, reading: _Reading) -> Piece:
    """The rows of a chunk, looked at once, where they lie; and where they go if lists are moved."""
    block, labels = checked(X, chunk), as_numbers(y, "y")
    grades = np.searchsorted(reading.grades, finite_gains(labels, reading.gains)).astype(np.int64)
    codes = np.zeros(labels.size, np.uint64)
    if qid is not None:
        queries, numbers = encode_queries(ids_of(qid), labels.size)
        codes = codes_of_queries(queries, reading.salt)[numbers]
    else:
        codes[:] = codes_of_queries(np.zeros(1, np.int64), reading.salt)
    weights = None if weight is None else np.zeros(0)
    if weight is not None and labels.size:
        weights = _weights(weight, qid, labels.size)
        weights = None if weights is None else weights / reading.unit
    target = (codes % np.uint64(reading.n_chunks)).astype(np.int32)
    target[np.isin(codes, reading.staying)] = chunk.number
    return Piece(block, grades, codes, weights, target)


def _build(piece: Piece, outside: tuple[Outside, ...], rules: Rules, number: int) -> Held:
    X = piece.X if hasattr(piece.X, "tocsr") else np.require(piece.X, requirements=["C", "A"])
    return Held(ListsShard(X, piece.labels, piece.codes, piece.weights, outside, rules, number))


class OpenedLists:
    """Shards with lists on workers, and what is known of them; `moves` is whether rows have been brought together."""

    def __init__(self, engine: Engine, rows: Rows, found: Opening) -> None:
        self._engine, self.n_features, self.feature_names = engine, rows.n_features, rows.names
        self.usable, self.constant = np.ones(1, np.bool_), np.zeros(1)
        self.attributes, self.moves = found.attributes, found.moves
        self._outline, self._whole = found.outline, ShardedLists(engine, found.outline)

    def close(self) -> None:
        """Let go of the shards."""
        self._engine.release()

    def renew(self) -> None:
        """Forget what a fit has left on the shards."""
        forget(self._engine)
        self._whole = ShardedLists(self._engine, self._outline)

    def variances(self) -> Floats:
        """Of the features within the lists. One pass."""
        return self._whole.variances(0)

    def objective(self, loss: RankingLoss, scale: Floats | None) -> Any:
        """The objective; its loss was chosen when the data were read."""
        return self._whole.weighted(None if scale is None else 1.0 / scale)


def separated(X: Any, column: Any, qid: Any) -> tuple[Any, Any]:
    """X without the column of query ids, and these."""
    if column is None:
        return X, qid
    if qid is not None:
        raise ValueError(f"there are a qid and qid_column={column!r}: on dask collections, leave out one of them")
    names = list(X.columns) if hasattr(X, "columns") else None
    if isinstance(column, str):
        if names is None or column not in names:
            has = f"{X.shape[1]} columns without names" if names is None else f"the columns {names[:10]}"
            raise ValueError(f"qid_column={column!r}: X has {has}")
        return X.drop(columns=[column]), X[column]
    n_columns = X.shape[1] if names is None else len(names)
    if not -n_columns <= column < n_columns:
        raise ValueError(f"qid_column={column!r}: X has {n_columns} columns")
    place = column % n_columns
    if names is not None:
        return X.drop(columns=[names[place]]), X[names[place]]
    return X[:, [other for other in range(n_columns) if other != place]], X[:, place]
