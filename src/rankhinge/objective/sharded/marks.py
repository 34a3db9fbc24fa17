"""What tells the samples of one fit from those of another, wherever they are cut into shards."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["digests", "label_sums", "row_sum", "together"]

# The finaliser of the generator SplitMix64 (Steele, Lea and Flood, 2014): each bit of a row's number counts.
_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def digests(rows: NDArray[np.float64]) -> list[str]:
    """A checksum of each row."""
    # -0.0 and 0.0 are one number.
    return [hashlib.sha256((row + 0.0).tobytes()).hexdigest()[:16] for row in np.ascontiguousarray(rows)]


def label_sums(first_row: int, n_samples: int, groups: Sequence[Any]) -> NDArray[np.uint64]:
    """For each group of places, the sum of the hashed numbers of its rows in the whole, modulo 2⁶⁴.

    Sums over shards are those over the whole, in whatever order.
    """
    hashed = _mixed(np.arange(n_samples, dtype=np.uint64) + np.uint64(first_row))
    return np.array([hashed[places].sum(dtype=np.uint64) for places in groups], dtype=np.uint64)


def row_sum(X: Any, *columns: NDArray[Any]) -> np.uint64:
    """The sum over the rows of what each is, modulo 2⁶⁴: for rows that may have been brought to other shards.

    That is its entries in `columns`, and its first and last feature; of sparse rows the entries count by themselves.
    """
    own = columns if hasattr(X, "indptr") else (*columns, X[:, 0], X[:, -1])
    groups = [own] if own else []
    if hasattr(X, "indptr"):
        groups.append((X.data, X.indices))
    # Sums of arrays are modulo 2⁶⁴ without a warning.
    return np.array([_mixed_together(*group).sum(dtype=np.uint64) for group in groups], dtype=np.uint64).sum()


def _mixed_together(*columns: NDArray[Any]) -> NDArray[np.uint64]:
    hashed = np.zeros(columns[0].shape[0], np.uint64)
    for column in columns:
        whole = column.dtype.kind in "iub"
        bits = column.astype(np.uint64) if whole else (column.astype(np.float64) + 0.0).view(np.uint64)
        hashed = _mixed(hashed ^ bits)
    return hashed


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    hashed = (numbers + np.uint64(1)) * np.uint64(_STEP)
    hashed = (hashed ^ (hashed >> np.uint64(30))) * np.uint64(_FIRST)
    hashed = (hashed ^ (hashed >> np.uint64(27))) * np.uint64(_SECOND)
    return hashed ^ (hashed >> np.uint64(31))


def together(replies: Sequence[tuple[list[str], NDArray[np.uint64]]]) -> dict[str, str]:
    """Checksums of rows and of labels, from those of the shards in their order."""
    rows = hashlib.sha256("".join(digest for own, _ in replies for digest in own).encode())
    sums = np.sum(np.stack([own for _, own in replies]), axis=0, dtype=np.uint64)
    return {"rows": rows.hexdigest()[:16], "y": hashlib.sha256(sums.tobytes()).hexdigest()[:16]}
