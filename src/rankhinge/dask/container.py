"""Dask arrays and frames at the door (`rankhinge.problems.door`): X stays where it is, on the workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge.dask.chunks import Rows, numbers_of, rows_of
from rankhinge.dask.folds import Fold, folds_of
from rankhinge.dask.judging import standings_of_labels, values_of_lists
from rankhinge.dask.lists import OpenedLists, opening, separated
from rankhinge.dask.room import refuse_large
from rankhinge.dask.worker import Chunk, Coding, build, labels_of
from rankhinge.inference.spread import sample_stride
from rankhinge.losses import RankingLoss
from rankhinge.objective.sharded import Engine, Operation, ShardedObjective, forget
from rankhinge.objective.sharded.algebra import Sizes
from rankhinge.objective.sharded.handles import Shared, surviving
from rankhinge.objective.sharded.moments import variances_together
from rankhinge.problems.door import Opened
from rankhinge.problems.standing import Standing
from rankhinge.problems.targets import Targets, encode_targets, warn_of_majority

__all__ = ["DaskContainer", "accepts"]


def accepts(X: Any) -> bool:
    """Whether X is a dask collection."""
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr")


class DaskContainer:
    """How dask collections enter."""

    def classes(self, X: Any, y: Any, *, mask: Any, pos_label: Any) -> Opened:
        """One-vs-rest problems, one list each."""
        client, rows = _client(), rows_of(X, y, mask)
        # Imported here, because distributed may be missing, which `_client` reports.
        from rankhinge.dask.engine import DaskEngine

        refuse_large(client, rows)
        coding, targets = _coding(client, rows, pos_label)
        if coding.kind == "multiclass":
            # Which is known only now that y has been read.
            refuse_large(client, rows, n_problems=len(coding.classes))
        futures = _shards(client, rows, coding)
        try:
            opened = _Opened(DaskEngine(client.client, futures), rows, targets)
            if targets.kind == "binary" and pos_label is None:
                # From the labels alone it was not to be seen how frequent they are.
                warn_of_majority(targets.classes, opened.share)
            return opened
        except BaseException:
            # The traceback would hold them for as long as somebody looks at it.
            for future in futures:
                future.release()
            raise

    def queries(
        self,
        X: Any,
        y: Any,
        *,
        qid: Any,
        qid_column: Any,
        query_weight: Any,
        loss: RankingLoss,
        gains: Any,
        level_weights: Any,
    ) -> Opened:
        """Lists; those that are short and scattered over chunks are brought together."""
        client = _client()
        from rankhinge.dask.engine import DaskEngine

        X, qid = separated(X, qid_column, qid)
        rows = rows_of(X, y)
        if rows.n_columns is not None:
            raise ValueError(f"y must have one dimension, it has {rows.n_columns} columns")
        refuse_large(client, rows)
        found = opening(client, rows, qid, query_weight, loss, gains, level_weights)
        if found.moves:
            # While rows travel there are two of each.
            refuse_large(client, rows, copies=2)
        futures = client.compute(found.shards)
        try:
            return OpenedLists(DaskEngine(client.client, futures), rows, found)
        except BaseException:
            for future in futures:
                future.release()
            raise

    def folds(self, X: Any, y: Any, *, n_folds: int, seed: int, qid: Any = None, qid_column: Any = None) -> list[Fold]:
        """Training and test part of each fold, lazily."""
        client = _client()
        X, qid = separated(X, qid_column, qid)
        return folds_of(client, rows_of(X, y), qid, n_folds, seed)

    def standings(
        self, X: Any, y: Any, function: Callable[[Any], NDArray[Any]], *, kind: str, classes: NDArray[Any]
    ) -> list[Standing]:
        """The standing of the positives of each problem, from counts on the workers."""
        return standings_of_labels(_client(), self.each(X, function), y, kind, classes)

    def judged(
        self,
        X: Any,
        y: Any,
        function: Callable[[Any], NDArray[Any]],
        *,
        qid: Any,
        qid_column: Any,
        by_list: Callable[..., NDArray[np.float64]],
        of_standing: Callable[[Standing], float],
    ) -> NDArray[np.float64]:
        """The value of each list: on the workers, or by counts."""
        client, scores = _client(), self.each(X, function)
        if qid_column is not None and qid is None:
            _, qid = separated(X, qid_column, None)
        return values_of_lists(client, scores, y, qid, by_list, of_standing)

    def each(self, X: Any, function: Callable[[Any], NDArray[Any]]) -> Any:
        """``function(chunk)`` of each chunk, a lazy dask array."""
        machine = getattr(function, "__self__", None)
        column = getattr(machine, "qid_column", None)
        if column is not None and _has_column(X, column, machine):
            X, _ = separated(X, column, None)
        columns, known = getattr(X, "columns", None), getattr(machine, "feature_names_in_", None)
        if columns is not None and known is not None and list(columns) != list(known):
            raise ValueError(f"the columns {list(columns)[:5]} are not those of the fit, {list(known)[:5]}")
        rows = numbers_of(X, "X").to_dask_array() if hasattr(X, "to_dask_array") else X
        if rows.ndim != 2:
            raise ValueError(f"X has {rows.ndim} dimensions: a row for each sample and a column for each feature")
        rows = rows.rechunk({1: -1}) if rows.numblocks[1] > 1 else rows
        # One row tells what comes out, and complains if X is not what the machine was fitted to.
        one = _of_block(np.zeros((1, rows.shape[1]), rows.dtype), function)
        shape: dict[str, Any] = {"drop_axis": 1} if one.ndim == 1 else {"chunks": (rows.chunks[0], (one.shape[1],))}
        return rows.map_blocks(_of_block, function, dtype=one.dtype, meta=one[:0], **shape)


def _has_column(X: Any, column: Any, machine: Any) -> bool:
    """Whether X has the column of query ids. A column given by position is recognised by the number of columns."""
    if isinstance(column, str):
        return column in getattr(X, "columns", ())
    return int(X.shape[1]) == machine.n_features_in_ + 1


def _of_block(block: Any, function: Any) -> Any:
    import warnings

    if block.shape[0] == 0:
        # Validation refuses arrays without rows.
        return _of_block(np.zeros((1, block.shape[1]), block.dtype), function)[:0]
    with warnings.catch_warnings():
        # Blocks of a frame have lost their names, which were compared before.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return function(block)


class _Opened:
    """Shards on workers, and what is known of them; `share` is that of the positives, of the first problem."""

    def __init__(self, engine: Engine, rows: Rows, targets: Targets) -> None:
        self._engine, self.n_features, self.feature_names = engine, rows.n_features, rows.names
        self._shared = Shared(engine)
        layout = self._layout()
        n_positives, _, n_labelled = (np.sum(parts, axis=0) for parts in zip(*layout, strict=True))
        n_negatives = n_labelled - n_positives
        self.share = float(n_positives[0] / max(1, n_labelled[0]))
        self.usable: NDArray[np.bool_] = (n_positives > 0) & (n_negatives > 0)
        self.constant: NDArray[np.float64] = np.where(n_positives > 0, 1.0, -1.0)
        self.attributes: dict[str, Any] = {"classes_": targets.classes, "_kind": targets.kind}
        n_entries = rows.n_samples * rows.n_features
        self._sizes = Sizes(rows.n_samples, rows.n_features, n_entries, n_positives, n_negatives)

    @surviving
    def _layout(self) -> Any:
        return self._shared.call([Operation("layout", (), None, "each")])[0]

    def close(self) -> None:
        """Let go of the shards."""
        self._engine.release()

    def renew(self) -> None:
        """Forget what a fit has left on the shards."""
        forget(self._engine)

    @surviving
    def variances(self) -> NDArray[np.float64]:
        """Variances of the features over all samples, labelled or not, from the moments of the shards. One pass."""
        return variances_together(self._shared.call([Operation("variances", (None,), None, "each")])[0])

    def objective(self, loss: RankingLoss, scale: NDArray[np.float64] | None) -> Any:
        """Of the usable problems."""
        factors = None if scale is None else 1.0 / scale
        whole = ShardedObjective(self._engine, self._sizes, loss, factors=factors)
        return whole.part(np.flatnonzero(self.usable))


def _client() -> Any:
    """The client in force, with waits that end."""
    try:
        from distributed import get_client
    except ImportError as error:
        raise ImportError("fits on dask arrays need the package distributed: pip install 'rankhinge[dask]'") from error
    from rankhinge.dask.waiting import Waiting

    try:
        return Waiting(get_client())
    except ValueError:
        raise ValueError(
            "X is a dask collection, and there is no distributed.Client to compute it: start one, or write X to a file "
            "with rankhinge.spool and fit that"
        ) from None


def _coding(client: Any, rows: Rows, pos_label: Any) -> tuple[Coding, Targets]:
    """How labels become relevance, from the different labels of all chunks; complaints are those of arrays."""
    from dask import delayed

    pairs = enumerate(zip(rows.y, rows.mask, strict=True))
    found = client.gather(client.compute([delayed(labels_of)(block, mask, number) for number, (block, mask) in pairs]))
    labels = np.unique(np.concatenate(found))
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise ValueError("y has nan: every sample needs a label")
    # Several copies of each label: from single ones, scikit-learn would infer a regression target.
    few = np.tile(labels, 3) if labels.size else np.zeros(1)
    if rows.n_columns is not None:
        few = np.tile(few[:, None], (1, rows.n_columns))
    known = None if rows.mask[0] is None else np.full(few.shape, labels.size > 0)
    targets = encode_targets(few, known, pos_label, rows.label_names)
    return Coding(targets.kind, targets.classes), targets


def _shards(client: Any, rows: Rows, coding: Coding) -> list[Any]:
    """Futures of shards, computed where the scheduler likes; their lineage is X's own."""
    from dask import delayed

    first, stride, made = 0, sample_stride(rows.n_samples), []
    kind = "" if rows.is_sparse else rows.dtype.kind
    for number, (X, y, mask, length) in enumerate(zip(rows.X, rows.y, rows.mask, rows.lengths, strict=True)):
        chunk = Chunk(number, first, length, rows.n_features, kind, rows.is_sparse, stride)
        made.append(delayed(build, pure=False)(X, y, mask, chunk, coding))
        first += length
    futures: list[Any] = client.compute(made)
    return futures
