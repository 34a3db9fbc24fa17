"""How much the features vary within the lists: what a regularisation that suits them is measured by."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge._jit import kernel
from rankhinge.features import FeatureMap
from rankhinge.objective import Lists

__all__ = ["variance_within"]

# Rows are looked at in blocks of about so many entries.
_BLOCK_ENTRIES = 1 << 18
# Squares of distances to a mean that are less than this part of the squares themselves are rounding.
_ROUNDING_SQUARED = 1e-26


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
    # Maps of other rooms need not have one: rows will do for all.
    matrix = getattr(features, "sparse_matrix", None)
    with np.errstate(over="ignore", invalid="ignore"):
        total = _of_rows(features, lists) if matrix is None else _of_entries(matrix, lists)
        return total / int(lists.offsets[-1])


def _of_rows(features: FeatureMap, lists: Lists) -> float:
    """The sum over all samples, from the rows of X."""
    offsets, sizes, n = lists.offsets, np.diff(lists.offsets), int(lists.offsets[-1])
    step = max(1, _BLOCK_ENTRIES // max(1, features.n_features))
    squares, between, unfinished = 0.0, 0.0, np.zeros(features.n_features)
    for start in range(0, n, step):
        stop = min(start + step, n)
        # The lists that this block has a part of; the first may have begun in an earlier one.
        first, last = (int(np.searchsorted(offsets, row, side="right")) for row in (start, stop - 1))
        begins = np.maximum(offsets[first - 1 : last], start)
        # As seen from the first row of its list: far from 0, squares would say little about differences.
        origins = features.rows(_samples(lists, offsets[first - 1 : last]))
        rows = features.rows(_samples(lists, np.arange(start, stop)))
        rows -= np.repeat(origins, np.diff(begins, append=stop), axis=0)
        squares += float(np.einsum("ij,ij->", rows, rows))
        sums = np.add.reduceat(rows, begins - start, axis=0)
        sums[0] += unfinished
        ends = offsets[first : last + 1]
        parts = np.einsum("ij,ij->i", sums, sums) / sizes[first - 1 : last]
        between += float(parts[ends <= stop].sum())
        unfinished = sums[-1] if ends[-1] > stop else np.zeros_like(unfinished)
    return max(squares - between, 0.0)


def _samples(lists: Lists, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Which samples stand at these places of the lists."""
    return places if lists.index is None else lists.index[places]


def _of_entries(matrix: Any, lists: Lists) -> float:
    """The same, from the entries of a sparse X alone."""
    if not matrix.has_canonical_format:
        # Products add up entries that are stored twice; squares have to know the sum.
        matrix = matrix.copy()
        matrix.sum_duplicates()
    sizes, samples = np.diff(lists.offsets), _samples(lists, np.arange(lists.offsets[-1]))
    entries = matrix.indptr, matrix.indices, matrix.data
    if matrix.format == "csr":
        total, squares = _by_lists(*entries, samples, lists.offsets, matrix.shape[1])
    else:
        list_of = np.full(matrix.shape[0], -1)
        list_of[samples] = np.repeat(np.arange(sizes.size), sizes)
        total, squares = _by_columns(*entries, list_of, sizes)
    return 0.0 if total <= _ROUNDING_SQUARED * squares else float(total)


@kernel
def _by_lists(indptr, indices, data, samples, offsets, n_features):
    """CSR, list by list: squares of the entries' distances to the means of their features, then of those not stored."""
    total, squares = 0.0, 0.0
    sums, counts = np.zeros(n_features), np.zeros(n_features, np.int64)
    for q in range(offsets.size - 1):
        mine = samples[offsets[q] : offsets[q + 1]]
        for i in mine:
            for k in range(indptr[i], indptr[i + 1]):
                sums[indices[k]] += np.float64(data[k])
                counts[indices[k]] += 1
        for i in mine:
            for k in range(indptr[i], indptr[i + 1]):
                value = np.float64(data[k])
                away = value - sums[indices[k]] / mine.size
                total += away * away
                squares += value * value
        for i in mine:
            for k in range(indptr[i], indptr[i + 1]):
                mean = sums[indices[k]] / mine.size
                # Of each feature once; what the next list finds is 0 again.
                if counts[indices[k]] > 0:
                    total += (mine.size - counts[indices[k]]) * mean * mean
                sums[indices[k]], counts[indices[k]] = 0.0, 0
    return total, squares


@kernel
def _by_columns(indptr, indices, data, list_of, sizes):
    """CSC, feature by feature: the same. Samples outside all lists have the list -1."""
    total, squares = 0.0, 0.0
    sums, counts = np.zeros(sizes.size), np.zeros(sizes.size, np.int64)
    for column in range(indptr.size - 1):
        mine = range(indptr[column], indptr[column + 1])
        for k in mine:
            q = list_of[indices[k]]
            if q >= 0:
                sums[q] += np.float64(data[k])
                counts[q] += 1
        for k in mine:
            q = list_of[indices[k]]
            if q >= 0:
                value = np.float64(data[k])
                away = value - sums[q] / sizes[q]
                total += away * away
                squares += value * value
        for k in mine:
            q = list_of[indices[k]]
            if q >= 0:
                mean = sums[q] / sizes[q]
                if counts[q] > 0:
                    total += (sizes[q] - counts[q]) * mean * mean
                sums[q], counts[q] = 0.0, 0
    return total, squares
