"""Rows of lists that are scattered over chunks are brought together: one exchange between all chunks, by tasks.

Each task cuts a chunk by where its rows go, or joins what has come. Shards keep their lineage by this. The number of
tasks does not depend on that of the queries. Many chunks exchange in two steps, first by the last digit of the target
and then by the first, so that there are about ``2 n^1.5`` pieces in place of n².
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import isqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

__all__ = ["Piece", "exchanged"]

# Up to this many chunks, every chunk exchanges with every other.
_MOST_AT_ONCE = 48


class Piece(NamedTuple):
    """Rows of X, their labels, the codes of their lists, the weights of these, and the chunk where each row goes."""

    X: Any
    labels: NDArray[Any]
    codes: NDArray[np.uint64]
    weights: NDArray[np.float64] | None
    target: NDArray[np.int32] | None = None


def exchanged(pieces: Sequence[Any]) -> list[Any]:
    """Delayed pieces, each with the rows that go there, in the order in which they come."""
    n = len(pieces)
    if n <= _MOST_AT_ONCE:
        return _exchange(pieces, 1, n)
    base = isqrt(n - 1) + 1
    groups = [_exchange(pieces[first : first + base], 1, base) for first in range(0, n, base)]
    # By number of the last digit, one of each group.
    columns = [_exchange([group[last] for group in groups], base, -(-n // base)) for last in range(base)]
    return [columns[target % base][target // base] for target in range(n)]


def _exchange(pieces: Sequence[Any], divisor: int, n_parts: int) -> list[Any]:
    from dask import delayed

    parts = [delayed(_cut, nout=n_parts, pure=False)(piece, divisor, n_parts) for piece in pieces]
    return [delayed(_joined, pure=False)([part[place] for part in parts]) for place in range(n_parts)]


def _cut(piece: Piece, divisor: int, n_parts: int) -> list[Piece]:
    """By ``target // divisor % n_parts``."""
    assert piece.target is not None
    which = piece.target // divisor % n_parts
    order = np.argsort(which, kind="stable")
    bounds = np.searchsorted(which[order], np.arange(n_parts + 1)).tolist()
    sorted_ = _map(lambda part: part[order], piece)
    return [_map(lambda part, rows=slice(*ends): part[rows], sorted_) for ends in pairwise(bounds)]


def _map(function: Any, piece: Piece) -> Piece:
    parts: list[Any] = [None if part is None else function(part) for part in piece]
    return Piece(*parts)


def _joined(pieces: Sequence[Piece]) -> Piece:
    def of(name: str) -> Any:
        parts = [getattr(piece, name) for piece in pieces]
        if parts[0] is None:
            return None
        return sparse.vstack(parts, format="csr") if sparse.issparse(parts[0]) else np.concatenate(parts)

    return Piece(*(of(name) for name in Piece._fields))
