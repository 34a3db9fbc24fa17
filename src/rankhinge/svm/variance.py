"""How much the features vary within the lists: what a regularisation that suits them is measured by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankhinge.features import FeatureMap
from rankhinge.objective import Lists

__all__ = ["variance_within"]

# Rows are looked at in blocks of about so many entries.
_BLOCK_ENTRIES = 1 << 18
# Below this part of the squares that it is a difference of, a variance is rounding.
_ROUNDING = 1e-12


def variance_within(features: FeatureMap, lists: Lists) -> float:
    """``Σ_i ‖x_i - mean of its list‖² / n``: the variances of all features within the lists, added up. One pass over X.

    Parameters
    ----------
    features : FeatureMap
    lists : Lists

    Returns
    -------
    float
        0 if features are constant within each list; inf or nan if their squares overflow.
    """
    offsets, n = lists.offsets, int(lists.offsets[-1])
    step = max(1, _BLOCK_ENTRIES // max(1, features.n_features))
    # As seen from a row of X: far from 0, squares would say little about differences.
    origin = features.rows(_index(lists, 0, 1))
    squares, between, unfinished = 0.0, 0.0, np.zeros(features.n_features)
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, n, step):
            stop = min(start + step, n)
            rows = features.rows(_index(lists, start, stop)) - origin
            squares += float(np.einsum("ij,ij->", rows, rows))
            # The lists that this block has a part of; the first may have begun in an earlier one.
            first, last = (int(np.searchsorted(offsets, row, side="right")) for row in (start, stop - 1))
            begins = np.maximum(offsets[first - 1 : last], start)
            sums = np.add.reduceat(rows, begins - start, axis=0)
            sums[0] += unfinished
            ends, sizes = offsets[first : last + 1], np.diff(offsets)[first - 1 : last]
            parts = np.einsum("ij,ij->i", sums, sums) / sizes
            between += float(parts[ends <= stop].sum())
            unfinished = sums[-1] if ends[-1] > stop else np.zeros_like(unfinished)
        left = squares - between
        return left / n if not left <= _ROUNDING * squares else 0.0


def _index(lists: Lists, start: int, stop: int) -> NDArray[np.int64]:
    """Which samples stand at these places of the lists."""
    return np.arange(start, stop) if lists.index is None else lists.index[start:stop]
