"""How much the features vary within the lists: what a regularisation that suits them is measured by."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge._jit import kernel
from rankhinge.features import ROW_BLOCK_ENTRIES, FeatureMap
from rankhinge.problems import Lists

__all__ = ["ROUNDING_SQUARED", "variances_within"]

# Squares of distances to a mean that are less than this part of the squares themselves are rounding.
ROUNDING_SQUARED = 1e-26


def variances_within(features: FeatureMap, lists: Lists) -> NDArray[np.float64]:
    """``Σ_i (x_ij - mean of its list)² / n``: how much each feature varies within the lists, (d,). One pass over X.

    Parameters
    ----------
    features : FeatureMap
    lists : Lists

    Returns
    -------
    ndarray of shape (d,)
        0 for features that are constant within each list; inf or nan if their squares overflow.
    """
    factors = getattr(features, "factors", None)
    if factors is not None:
        # Columns with weights: those of a sparse X stay sparse.
        of_columns: NDArray[np.float64] = factors**2 * variances_within(features.inner, lists)  # type: ignore[attr-defined]
        return of_columns
    # Maps of other rooms need not have one: rows will do for all.
    matrix = getattr(features, "sparse_matrix", None)
    with np.errstate(over="ignore", invalid="ignore"):
        totals = _of_rows(features, lists) if matrix is None else _of_entries(matrix, lists)
        return totals / int(lists.offsets[-1])


def _of_rows(features: FeatureMap, lists: Lists) -> NDArray[np.float64]:
    """The sums over all samples, from the rows of X."""
    offsets, sizes, n = lists.offsets, np.diff(lists.offsets), int(lists.offsets[-1])
    step = max(1, ROW_BLOCK_ENTRIES // max(1, features.n_features))
    squares, between, unfinished = np.zeros((3, features.n_features))
    for start in range(0, n, step):
        stop = min(start + step, n)
        # The lists that this block has a part of; the first may have begun in an earlier one.
        first, last = (int(np.searchsorted(offsets, row, side="right")) for row in (start, stop - 1))
        begins = np.maximum(offsets[first - 1 : last], start)
        # As seen from the first row of its list: far from 0, squares would say little about differences.
        origins = features.rows(_samples(lists, offsets[first - 1 : last]))
        rows = features.rows(_samples(lists, np.arange(start, stop)))
        rows -= np.repeat(origins, np.diff(begins, append=stop), axis=0)
        squares += np.einsum("ij,ij->j", rows, rows)
        sums = np.add.reduceat(rows, begins - start, axis=0)
        sums[0] += unfinished
        ends = offsets[first : last + 1]
        between += (ends <= stop) / sizes[first - 1 : last] @ sums**2
        unfinished = sums[-1] if ends[-1] > stop else np.zeros_like(unfinished)
    return np.maximum(squares - between, 0.0)


def _samples(lists: Lists, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Which samples stand at these places of the lists."""
    return places if lists.index is None else lists.index[places]


def _of_entries(matrix: Any, lists: Lists) -> NDArray[np.float64]:
    """The same, from the entries of a sparse X alone."""
    if not matrix.has_canonical_format:
        # Products add up entries that are stored twice; squares have to know the sum.
        matrix = matrix.copy()
        matrix.sum_duplicates()
    sizes, samples = np.diff(lists.offsets), _samples(lists, np.arange(lists.offsets[-1]))
    entries = matrix.indptr, matrix.indices, matrix.data
    if matrix.format == "csr":
        totals, squares = _by_lists(*entries, samples, lists.offsets, matrix.shape[1])
    else:
        list_of = np.full(matrix.shape[0], -1)
        list_of[samples] = np.repeat(np.arange(sizes.size), sizes)
        totals, squares = _by_columns(*entries, list_of, sizes)
    return np.where(totals <= ROUNDING_SQUARED * squares, 0.0, totals)


@kernel
def _by_lists(indptr, indices, data, samples, offsets, n_features):
    """CSR, list by list: squares of the entries' distances to the means of their features, then of those not stored."""
    totals, squares = np.zeros(n_features), np.zeros(n_features)
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
                totals[indices[k]] += away * away
                squares[indices[k]] += value * value
        for i in mine:
            for k in range(indptr[i], indptr[i + 1]):
                mean = sums[indices[k]] / mine.size
                # Of each feature once; what the next list finds is 0 again.
                if counts[indices[k]] > 0:
                    totals[indices[k]] += (mine.size - counts[indices[k]]) * mean * mean
                sums[indices[k]], counts[indices[k]] = 0.0, 0
    return totals, squares


@kernel
def _by_columns(indptr, indices, data, list_of, sizes):
    """CSC, feature by feature: the same. Samples outside all lists have the list -1."""
    totals, squares = np.zeros(indptr.size - 1), np.zeros(indptr.size - 1)
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
                totals[column] += away * away
                squares[column] += value * value
        for k in mine:
            q = list_of[indices[k]]
            if q >= 0:
                mean = sums[q] / sizes[q]
                if counts[q] > 0:
                    totals[column] += (sizes[q] - counts[q]) * mean * mean
                sums[q], counts[q] = 0.0, 0
    return totals, squares
