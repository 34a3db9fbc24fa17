"""Folds of dask collections, by a hash of the row number or of the query, so that nothing has to be drawn."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankhinge._validation import encode_queries
from rankhinge.dask.chunks import Rows, aligned
from rankhinge.dask.lists import ids_of
from rankhinge.problems.query_codes import codes_of_queries

__all__ = ["Fold", "folds_of"]

Fold: TypeAlias = tuple[tuple[Any, Any, Any], tuple[Any, Any, Any]]


def folds_of(client: Any, rows: Rows, qid: Any, n_folds: int, seed: int) -> list[Fold]:
    """Training and test part (X, y, qid) of each fold, as lazy arrays with chunks of known lengths."""
    import dask.array as da
    from dask import delayed

    firsts = np.cumsum([0, *rows.lengths]).tolist()
    queries = [None] * len(rows.lengths) if qid is None else aligned(qid, "qid", rows)
    numbers = client.persist(
        [
            delayed(_numbers, pure=False)(first, length, own, n_folds, seed)
            for first, length, own in zip(firsts, rows.lengths, queries, strict=False)
        ]
    )
    counts = np.stack(client.gather(client.compute([delayed(_counted)(own, n_folds) for own in numbers])))
    totals = np.array(rows.lengths)

    def part(fold: int, inside: bool) -> tuple[Any, Any, Any]:
        lengths = counts[:, fold] if inside else totals - counts[:, fold]

        def of(blocks: list[Any], width: tuple[int, ...], like: Any) -> Any:
            arrays = [
                da.from_delayed(delayed(_taken)(block, own, fold, inside), (int(n), *width), meta=like)
                for block, own, n in zip(blocks, numbers, lengths, strict=True)
            ]
            return da.concatenate(arrays)

        y_width = () if rows.n_columns is None else (rows.n_columns,)
        y = of(rows.y, y_width, np.zeros((0, *y_width), rows.label_dtype))
        return (
            of(rows.X, (rows.n_features,), rows.meta),
            y,
            None if qid is None else of(queries, (), np.zeros(0, object)),
        )

    return [(part(fold, False), part(fold, True)) for fold in range(n_folds)]


def _numbers(first: int, length: int, qid: Any, n_folds: int, seed: int) -> NDArray[np.int16]:
    """The fold of each row of a chunk."""
    if qid is None:
        codes = codes_of_queries(np.arange(first, first + length), seed)
    elif length == 0:
        codes = np.zeros(0, np.uint64)
    else:
        queries, places = encode_queries(ids_of(qid), length)
        codes = codes_of_queries(queries, seed)[places]
    return (codes % np.uint64(n_folds)).astype(np.int16)


def _counted(numbers: NDArray[np.int16], n_folds: int) -> NDArray[np.int64]:
    return np.bincount(numbers, minlength=n_folds)


def _taken(block: Any, numbers: NDArray[np.int16], fold: int, inside: bool) -> Any:
    values = block.to_numpy() if hasattr(block, "to_numpy") else block
    values = values.tocsr() if hasattr(values, "tocsr") else np.asarray(values)
    return values[(numbers == fold) == inside]
