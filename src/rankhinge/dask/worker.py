"""What runs on the workers: shards are built from chunks, held there, and answer batches of operations."""

from __future__ import annotations

import asyncio
import threading
import uuid
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankhinge import _threads
from rankhinge._validation import check_mask, refuse_masked, refuse_missing, without_objects, without_unlabelled
from rankhinge.objective.sharded import Operation, Shard, execute

__all__ = ["Chunk", "Coding", "Held", "answer", "build", "checked", "labels_of"]


_busy = threading.Lock()


class Coding(NamedTuple):
    """How labels become relevance: the kind of the target, and its classes."""

    kind: str
    classes: NDArray[Any]

    def relevant(self, y: NDArray[Any]) -> NDArray[np.bool_]:
        """Relevance of some labels, one row for each problem."""
        if self.kind == "binary":
            return np.ascontiguousarray((y == self.classes[1])[None, :])
        if self.kind == "multiclass":
            return np.ascontiguousarray(y[None, :] == self.classes[:, None])
        return np.ascontiguousarray(y.T == 1)


class Chunk(NamedTuple):
    """Which chunk it is, where its rows begin, how large X is, and of how many rows one is in the sample."""

    number: int
    first_row: int
    n_rows: int
    n_features: int
    dtype_kind: str
    is_sparse: bool
    stride: int


class Held:
    """A shard on a worker, with a mark that no other has: one that was made or moved anew has lost its scores."""

    def __init__(self, shard: Shard) -> None:
        self.shard, self.mark = shard, uuid.uuid4().hex

    def __getstate__(self) -> dict[str, Any]:
        # It may be moved to another worker: without scores, and not as the same.
        self.shard.forget()
        return {"shard": self.shard}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.shard, self.mark = state["shard"], uuid.uuid4().hex

    def __sizeof__(self) -> int:
        # Tells the scheduler how much memory the shard takes.
        return self.shard.n_bytes()


def labels_of(y: Any, mask: Any = None, number: int = 0) -> NDArray[Any]:
    """The different labels of a chunk; of several columns the different entries that are labelled."""
    labels, known = _labelled(y, mask, number)
    labels = without_objects(labels if known is None else labels[known])
    try:
        # Numbers are looked at all together, by whoever has asked.
        if labels.dtype == object:
            refuse_missing(labels, "y")
        return np.unique(labels)
    except ValueError as error:
        raise ValueError(f"in chunk {number}, {error}") from None
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels.ravel().tolist()})
        raise ValueError(f"in chunk {number}, y has labels of several types, {', '.join(kinds)}: choose one") from None


def build(X: Any, y: Any, mask: Any, chunk: Chunk, coding: Coding) -> Held:
    """A shard from a chunk of X, of y and of the mask, looked at once, where it lies."""
    block = checked(X, chunk)
    labels, known = _labelled(y, mask, chunk.number)
    labelled = None if known is None else np.ascontiguousarray(known.T)
    return Held(Shard(block, coding.relevant(labels), labelled, chunk.first_row, chunk.stride))


def _labelled(y: Any, mask: Any, number: int) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Labels of a chunk, 0 under a mask, and the mask."""
    try:
        refuse_masked(y, "y")
        labels = np.asarray(y)
        if mask is None:
            return labels, None
        known = check_mask(mask, labels.shape)
        return without_unlabelled(labels, known), known
    except ValueError as error:
        raise ValueError(f"in chunk {number}, {error}") from None


def checked(X: Any, chunk: Chunk) -> Any:
    """A chunk of X as it is kept, if it is what was announced and finite."""
    block = X.to_numpy() if hasattr(X, "to_numpy") else X
    where = f"chunk {chunk.number} of X"
    if sparse.issparse(block) != chunk.is_sparse:
        now, said = ("sparse", "dense") if sparse.issparse(block) else ("dense", "sparse")
        raise ValueError(
            f"{where} is {now}, but X says that it is {said} (X._meta): all chunks must be of one format, to which "
            "X.map_blocks(scipy.sparse.csr_matrix) or X.map_blocks(lambda block: block.toarray()) brings them"
        )
    try:
        refuse_masked(block, "X")
    except ValueError as error:
        raise ValueError(f"in chunk {chunk.number}, {error}") from None
    block = block.tocsr() if sparse.issparse(block) else np.asarray(block)
    if block.shape[1] != chunk.n_features:
        raise ValueError(f"{where} has {block.shape[1]} columns, but X has {chunk.n_features}")
    if block.shape[0] != chunk.n_rows:
        raise ValueError(f"{where} has {block.shape[0]} rows, but {chunk.n_rows} were announced")
    if block.dtype.kind not in "biuf":
        raise ValueError(f"{where} has dtype {block.dtype}: numbers are needed")
    if chunk.dtype_kind and (block.dtype.kind == "f") != (chunk.dtype_kind == "f"):
        raise ValueError(
            f"{where} has dtype {block.dtype}, of another kind than the first chunk's ({chunk.dtype_kind!r})"
        )
    _refuse_nan(block, where)
    if sparse.issparse(block):
        return block
    # Arrays that have travelled may be unaligned, which slows every pass.
    return np.require(block, requirements=["C", "A"])


def _refuse_nan(block: Any, where: str) -> None:
    values = block.data if sparse.issparse(block) else block
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return
    if sparse.issparse(block):
        place = int(np.flatnonzero(~np.isfinite(values))[0])
        row, column = int(np.searchsorted(block.indptr, place, side="right")) - 1, int(block.indices[place])
        value = values[place]
    else:
        row, column = (int(i) for i in np.argwhere(~np.isfinite(block))[0])
        value = block[row, column]
    raise ValueError(f"{where} has {value} in its row {row}, column {column}: all entries must be finite")


async def answer(keys: dict[int, tuple[str, str]], batch: list[Operation] | None, dask_worker: Any) -> Any:
    """Run a batch on the shards of a worker, on a thread; the numbers of those that are not the ones expected.

    Without a batch: the marks of the shards.
    """
    held = {number: dask_worker.data.get(key) for number, (key, _) in keys.items()}
    if batch is None:
        return {number: one.mark for number, one in held.items() if isinstance(one, Held)}
    lost = [number for number, (_, mark) in keys.items() if held[number] is None or held[number].mark != mark]
    if lost:
        return {"lost": lost}
    shards = {number: one.shard for number, one in held.items()}
    # Dask sets OMP_NUM_THREADS to 1, whatever the number of its threads; and a worker may have inherited variables.
    task = partial(_one_at_a_time, shards, batch, int(dask_worker.state.nthreads))
    return {"replies": await asyncio.get_running_loop().run_in_executor(None, task)}


def _one_at_a_time(shards: dict[int, Shard], batch: list[Operation], n_threads: int) -> list[Any]:
    """An abandoned call, for instance after an interrupt, must not overlap the next one."""
    with _busy, _threads.limited(n_threads):
        return execute(shards, batch)
