"""Sums of squares of the features of a shard, and how those of several shards belong together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rankhinge.features import FeatureMap
from rankhinge.features.audit import pieces_of
from rankhinge.objective.variance import ROUNDING_SQUARED

__all__ = ["squares_about", "variances_together"]

Floats = NDArray[np.float64]


def squares_about(features: FeatureMap, means: Floats, index: NDArray[np.int64] | None) -> Floats:
    """``Σ_i (x_ij - mean_j)²`` over some rows, (d,); of a sparse X from its entries alone."""
    chosen = np.ones(features.n_samples, np.bool_)
    if index is not None:
        chosen[:] = False
        chosen[index] = True
    totals = np.zeros(features.n_features)
    for rows, columns, piece in pieces_of(features):
        mine, mean = piece[np.flatnonzero(chosen[rows])], means[columns]
        if hasattr(mine, "tocsc"):
            mine = mine.tocsr()
            mine.sum_duplicates()
            away = mine.data - mean[mine.indices]
            squares = np.bincount(mine.indices, away**2, minlength=mean.size)
            n_missing = mine.shape[0] - np.bincount(mine.indices, minlength=mean.size)
            totals[columns] += squares + n_missing * mean**2
        else:
            away = mine - mean
            totals[columns] += np.einsum("ij,ij->j", away, away)
    return totals


def variances_together(parts: Sequence[tuple[int, Floats, Floats]]) -> Floats:
    """Variances of all rows, from number, means and sums of squares of each part (Chan, Golub and LeVeque 1983)."""
    n, means, squares = parts[0]
    means, squares = means.copy(), squares.copy()
    for more, other, theirs in parts[1:]:
        if more:
            apart = other - means
            squares += theirs + apart**2 * (n * more / (n + more))
            means += apart * (more / (n + more))
            n += more
    # What rounding leaves of features that do not vary.
    squares[squares <= ROUNDING_SQUARED * n * means**2] = 0.0
    return squares / max(n, 1)
