"""From parsed blocks to one matrix: the base of the indices, missing values, dense or sparse."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse as scipy_sparse

from rankhinge.datasets import kernels
from rankhinge.datasets.blocks import Block
from rankhinge.datasets.data import Texts
from rankhinge.datasets.errors import DataError
from rankhinge.datasets.sources import MemoryBudget

__all__ = ["Rows", "counted_from", "join_comments", "matrix", "refuse_missing_values", "with_missing_values"]

# Below this share of entries a row of indices and values takes less memory than one of all values.
_DENSE = 1 / 3


class Rows(NamedTuple):
    """Labels, queries (or None) and lines of all rows."""

    labels: NDArray[np.float64]
    queries: NDArray[np.int64] | None
    lines: NDArray[np.int32]


def counted_from(path: str, blocks: list[Block], index_base: int | str) -> int:
    """Whether the columns are counted from 0 or from 1."""
    found = np.array([block.found for block in blocks])
    least = int(found[:, kernels.LEAST].min())
    if index_base != "auto":
        if least < int(index_base):
            raise DataError(path, "the index is 0, but columns are counted from 1", _line_of(blocks, least))
        return int(index_base)
    if least > 0:
        return 1
    widths = found[:, kernels.WIDTH]
    from_0, from_1 = found[:, kernels.FROM_0], found[:, kernels.FROM_1]
    if not found[:, kernels.ODD_ROWS].any() and np.unique(widths).size == 1 and from_0.any() and from_1.any():
        lines = sorted([int(from_0[from_0 > 0].min()), int(from_1[from_1 > 0].min())])
        first, second = (0, 1) if from_0[from_0 > 0].min() == lines[0] else (1, 0)
        raise DataError(
            path,
            f"the {widths[0]} columns are counted from {second}, but in line {lines[0]} from {first}: "
            "pass index_base=0 if this is intended (the command: --index-base 0)",
            lines[1],
        )
    return 0


def _line_of(blocks: list[Block], index: int, beyond: bool = False) -> int | None:
    """The first line with this index, or with a larger one."""
    for block in blocks:
        places = np.flatnonzero(block.indices > index if beyond else block.indices == index)
        if places.size:
            return int(block.lines[np.searchsorted(block.ends, places[0], side="right")])
    return None


def refuse_missing_values(path: str, block: Block) -> None:
    """Raise if a value of the block is missing, while its text is still there to be quoted."""
    if not block.found[kernels.MISSES]:
        return
    assert block.text is not None
    entry = int(np.flatnonzero(np.isnan(block.values))[0])
    row = int(np.searchsorted(block.ends, entry, side="right"))
    first = int(block.lines[0])
    content = block.text.tobytes().split(b"\n")
    skipped = next(k for k, line in enumerate(content) if line.split(b"#")[0].strip())
    line = content[skipped + int(block.lines[row]) - first]
    key = b"%d:" % block.indices[entry]
    token = next(word for word in line.split() if word.startswith(key))[len(key) :].decode()
    raise DataError(
        path,
        f"the value of feature {block.indices[entry]} is missing, '{token}': pass missing_values='zero', 'minimum' or "
        "'nan' (the command: --missing-values zero)",
        int(block.lines[row]),
    )


def _shape(path: str, blocks: list[Block], base: int, n_features: int | None) -> tuple[int, int]:
    largest = max(int(block.found[kernels.LARGEST]) for block in blocks)
    if largest < 0 and n_features is None:
        raise DataError(path, "no line has a feature")
    if n_features is not None and largest - base >= n_features:
        line = _line_of(blocks, n_features - 1 + base, beyond=True)
        raise DataError(path, f"the index is beyond the {n_features} features, up to {largest}", line)
    return sum(block.labels.size for block in blocks), (largest + 1 - base if n_features is None else n_features)


def matrix(
    path: str, blocks: list[Block], base: int, n_features: int | None, sparse: bool | str, budget: MemoryBudget
) -> Any:
    """Assemble X. The blocks hand over their entries one after the other, so that memory holds them only once."""
    n, d = _shape(path, blocks, base, n_features)
    size, dtype = sum(block.indices.size for block in blocks), blocks[0].values.dtype
    is_sparse = size <= _DENSE * n * d if sparse == "auto" else bool(sparse)
    if is_sparse:
        return _csr(blocks, base, (n, d), size)
    if sparse is False:
        budget.check(n * d * dtype.itemsize, None)
    X, start = np.zeros((n, d), dtype), 0
    for block in blocks:
        stop = start + block.labels.size
        kernels.fill_dense(X[start:stop], block.ends, block.indices, block.values, base)
        block.indices, block.values, start = block.indices[:0], block.values[:0], stop
    return X


def _csr(blocks: list[Block], base: int, shape: tuple[int, int], size: int) -> Any:
    wide = np.int64 if size > np.iinfo(np.int32).max else np.int32
    data, indices = np.empty(size, blocks[0].values.dtype), np.empty(size, wide)
    indptr = np.zeros(shape[0] + 1, wide)
    row = entry = 0
    for block in blocks:
        n, stop = block.labels.size, entry + block.indices.size
        data[entry:stop] = block.values
        np.subtract(block.indices, base, out=indices[entry:stop], casting="unsafe")
        np.add(block.ends, entry, out=indptr[row + 1 : row + n + 1], casting="unsafe")
        block.indices, block.values, row, entry = block.indices[:0], block.values[:0], row + n, stop
    X = scipy_sparse.csr_array((data, indices, indptr), shape=shape)
    X.has_canonical_format = True
    return X


def with_missing_values(X: Any, queries: NDArray[np.int64] | None, policy: str) -> Any:
    """Fill missing values with 0, or with the smallest value of the feature in the query (0 if none is known)."""
    values = X.data if scipy_sparse.issparse(X) else X
    if policy == "zero":
        values[np.isnan(values)] = 0.0
    elif policy == "minimum":
        rows, columns = X.tocoo().coords if scipy_sparse.issparse(X) else np.indices(X.shape).reshape(2, -1)
        flat = values.reshape(-1)
        groups = np.zeros(X.shape[0], np.int64) if queries is None else np.unique(queries, return_inverse=True)[1]
        keys = groups[rows] * X.shape[1] + columns
        missing = np.isnan(flat)
        wanted, places = np.unique(keys[missing], return_inverse=True)
        least = np.full(wanted.size, np.inf)
        at = np.minimum(np.searchsorted(wanted, keys), wanted.size - 1)
        concerned = (wanted[at] == keys) & ~missing
        np.minimum.at(least, at[concerned], flat[concerned])
        flat[missing] = np.where(np.isinf(least), 0.0, least)[places]
    return X


def join_comments(blocks: list[Block]) -> Texts | None:
    """The comments of all rows, or None if no row has one."""
    if all(block.comments is None for block in blocks):
        return None
    contents, offsets, start = [], [np.zeros(1, np.int64)], 0
    for block in blocks:
        if block.comments is None:
            offsets.append(np.full(block.labels.size, start, np.int64))
        else:
            contents.append(block.comments.content)
            offsets.append(block.comments.offsets[1:] + start)
            start += block.comments.content.size
        block.comments = None
    return Texts(np.concatenate(contents), np.concatenate(offsets))
