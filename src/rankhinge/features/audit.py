"""Scores with what is needed to bound their rounding: how large the terms of their sums are."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rankhinge import _threads
from rankhinge._jit import compiled
from rankhinge.features.dense import BLOCK_ENTRIES
from rankhinge.features.float32 import blocks_of
from rankhinge.features.maps import FeatureMap

__all__ = ["Audit", "HasPieces", "audit", "pieces_of", "row_lengths"]


# For more columns than these BLAS is faster than a loop.
_FEW = 4
# Sums of squares above this have lost nothing to underflow that could be seen.
_TINY = float(np.finfo(np.float64).tiny / np.finfo(np.float64).eps)


class Audit(NamedTuple):
    """``X W``, the sums of the terms' sizes ``|X| |W|``, each (m, n), and the lengths of the rows of X, (n,)."""

    scores: NDArray[np.float64]
    sizes: NDArray[np.float64]
    lengths: NDArray[np.float64]


def audit(features: FeatureMap, weights: NDArray[np.float64]) -> Audit:
    """Scores of the columns of `weights` (d, m), with the sizes of their terms; one pass over X.

    Examples
    --------
    >>> import numpy as np
    >>> from rankhinge.features import audit, feature_map
    >>> audit(feature_map(np.array([[3.0, -4.0]])), np.array([[1.0], [1.0]]))
    Audit(scores=array([[-1.]]), sizes=array([[7.]]), lengths=array([5.]))
    """
    m, n = weights.shape[1], features.n_samples
    if isinstance(features, HasStored):
        quick = _audit_stored(*features.stored(), weights)
        if quick is not None:
            return quick
    found = Audit(np.zeros((m, n)), np.zeros((m, n)), np.zeros(n))
    for rows, columns, piece in pieces_of(features):
        part = weights[columns]
        found.scores[:, rows] += (piece @ part).T
        sizes = abs(piece)
        found.sizes[:, rows] += (sizes @ np.abs(part)).T
        _lengthen(found.lengths, rows, sizes)
    return found


def row_lengths(features: FeatureMap) -> NDArray[np.float64]:
    """Lengths of the rows of X, (n,); one pass over X."""
    lengths = np.zeros(features.n_samples)
    for rows, _, piece in pieces_of(features):
        _lengthen(lengths, rows, abs(piece))
    return lengths


def _lengthen(lengths: NDArray[np.float64], rows: slice, sizes: Any) -> None:
    """Add a piece, by the sizes of its entries, which are used up, to the lengths of its rows."""
    # By the largest entry: squares of tiny and of huge ones are beyond the numbers.
    largest = float(sizes.max()) or 1.0
    sizes /= largest
    squares = sizes.power(2).sum(axis=1) if hasattr(sizes, "power") else np.einsum("ij,ij->i", sizes, sizes)
    lengths[rows] = np.hypot(lengths[rows], largest * np.sqrt(np.asarray(squares).ravel()))


@runtime_checkable
class HasStored(Protocol):
    """A map over one dense array, with factors for its columns."""

    def stored(self) -> tuple[NDArray[Any] | None, NDArray[np.float64] | None]:
        """Contiguous rows (n, d) of float32 or float64, None if X is not such, and the factors (d,), None for 1."""


@partial(compiled, nogil=True, error_model="numpy", no_rewrites=True, fastmath={"reassoc", "contract"})
def _audit_rows(rows, weights, factors, scores, sizes, squares, sums):
    """Scores, sizes, squared lengths and sums of sizes of some rows: each is read once."""
    for r in range(rows.shape[0]):
        square, whole = 0.0, 0.0
        for j in range(weights.shape[0]):
            score, size = 0.0, 0.0
            for c in range(rows.shape[1]):
                term = np.float64(rows[r, c]) * weights[j, c]
                score += term
                size += abs(term)
            scores[j, r], sizes[j, r] = score, size
        for c in range(rows.shape[1]):
            entry = np.float64(rows[r, c]) * factors[c]
            square += entry * entry
            whole += abs(entry)
        squares[r], sums[r] = square, whole


def _audit_stored(
    rows: NDArray[Any] | None, factors: NDArray[np.float64] | None, weights: NDArray[np.float64]
) -> Audit | None:
    """The audit of a dense array by one kernel; None where that is no good."""
    m = weights.shape[1]
    if rows is None or m > _FEW:
        return None
    n, d = rows.shape
    factors = np.ones(d) if factors is None else np.ascontiguousarray(factors)
    weights = np.ascontiguousarray((weights * factors[:, None]).T)
    found, squares, sums = Audit(np.empty((m, n)), np.empty((m, n)), np.empty(n)), np.empty(n), np.empty(n)
    _threads.run(
        [
            partial(
                _audit_rows,
                block,
                weights,
                factors,
                found.scores[:, part],
                found.sizes[:, part],
                squares[part],
                sums[part],
            )
            for part, block in blocks_of(rows)
        ]
    )
    # Squares of tiny and of huge entries are beyond the numbers.
    if not np.all((squares < np.inf) & ((squares > _TINY) | (sums == 0.0))):
        return None
    np.sqrt(squares, out=found.lengths)
    return found


@runtime_checkable
class HasPieces(Protocol):
    """A map that hands out X itself, piece by piece."""

    def pieces(self) -> Iterator[tuple[slice, slice, Any]]:
        """Rows, columns and entries of each, in float64."""


def pieces_of(features: FeatureMap) -> Iterator[tuple[slice, slice, Any]]:
    """Pieces of X in float64, with the rows and the columns that each has; maps of other rooms need not have any."""
    if isinstance(features, HasPieces):
        yield from features.pieces()
        return
    step = max(1, BLOCK_ENTRIES // max(1, features.n_features))
    for start in range(0, features.n_samples, step):
        stop = min(start + step, features.n_samples)
        yield slice(start, stop), slice(None), features.rows(np.arange(start, stop))
