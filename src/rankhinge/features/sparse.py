"""SciPy's sparse arrays and matrices."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankhinge import _threads
from rankhinge._jit import kernel
from rankhinge.features.maps import register

_SPARSE_SHARES = 8
# Sums of sparse rows are made share by share as long as these have so many entries together; else in two shares.
_SUMS = 1 << 23


@kernel
def _each_row(indptr, indices, data, first, last, factors, result):
    """``result[:, r] = Σ data · factors[column]`` for the stored rows ``first … last - 1``.

    Numbers without a sign count columns and entries: signed ones might count from the end, which would be looked into.
    """
    n_problems = factors.shape[1]
    if n_problems == 1:
        for r in range(first, last):
            # Two sums: a single one would wait for itself at every entry.
            even, odd = 0.0, 0.0
            at, end = np.uint64(indptr[r]), np.uint64(indptr[r + 1])
            while at + np.uint64(1) < end:
                even += np.float64(data[at]) * factors[np.uint64(indices[at]), 0]
                odd += np.float64(data[at + np.uint64(1)]) * factors[np.uint64(indices[at + np.uint64(1)]), 0]
                at += np.uint64(2)
            if at < end:
                even += np.float64(data[at]) * factors[np.uint64(indices[at]), 0]
            result[0, r] = even + odd
        return
    sums = np.empty(n_problems)
    for r in range(first, last):
        for problem in range(n_problems):
            sums[problem] = 0.0
        for k in range(np.uint64(indptr[r]), np.uint64(indptr[r + 1])):
            value, column = np.float64(data[k]), np.uint64(indices[k])
            for problem in range(n_problems):
                sums[problem] += value * factors[column, problem]
        for problem in range(n_problems):
            result[problem, r] = sums[problem]


@kernel
def _sum_of_rows(indptr, indices, data, first, last, factors, result):
    """``result[column] += Σ_r data · factors[:, r]`` over the stored rows ``first … last - 1``.

    Many samples are ranked where they belong: their coefficients are 0, and their rows are left out.
    """
    n_problems = factors.shape[0]
    if n_problems == 1:
        for r in range(first, last):
            factor = factors[0, r]
            if factor != 0.0:
                for k in range(np.uint64(indptr[r]), np.uint64(indptr[r + 1])):
                    result[np.uint64(indices[k]), 0] += np.float64(data[k]) * factor
        return
    own = np.empty(n_problems)
    for r in range(first, last):
        counts = False
        for problem in range(n_problems):
            own[problem] = factors[problem, r]
            counts |= own[problem] != 0.0
        if counts:
            for k in range(np.uint64(indptr[r]), np.uint64(indptr[r + 1])):
                value, column = np.float64(data[k]), np.uint64(indices[k])
                for problem in range(n_problems):
                    result[column, problem] += value * own[problem]


class _Sparse:
    """CSR and CSC of any real dtype; CSC is the transpose of CSR, with the products swapped.

    SciPy's own products use one thread and widen float32 data at every call; these use all threads and do not. Rows
    are cut into shares by their number of entries, never by the number of threads: the bits stay the same.
    """

    def __init__(self, X: Any) -> None:
        if X.format not in ("csr", "csc"):
            X = X.tocsr()
        if X.dtype.kind == "f" and X.dtype.itemsize not in (4, 8):
            # Kernels know no half and no extended precision.
            X = X.astype(np.float64)
        self.n_samples, self.n_features = X.shape
        self.n_entries = X.nnz
        self.sparse_matrix = X
        self._by_rows: Any = None
        self._transposed = X.format == "csc"
        self._parts = X.indptr, X.indices, X.data
        n_rows = X.indptr.size - 1
        entries = np.linspace(0, X.indptr[-1], _SPARSE_SHARES + 1)
        bounds = np.searchsorted(X.indptr, entries[1:-1]).clip(0, n_rows)
        self._shares = np.concatenate([[0], np.maximum.accumulate(bounds), [n_rows]])

    def scores(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        weights = np.ascontiguousarray(weights, dtype=np.float64)
        if self._transposed:
            return np.ascontiguousarray(self._sum_of_rows(weights.T, self.n_samples).T)
        return self._each_row(weights, self.n_samples)

    def adjoint(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        coefficients = np.asarray(coefficients, dtype=np.float64)
        if self._transposed:
            return self._each_row(np.ascontiguousarray(coefficients.T), self.n_features).T
        # As from the other maps, the entries of a slope lie side by side.
        return np.asfortranarray(self._sum_of_rows(coefficients, self.n_features))

    def rows(self, index: NDArray[np.int64]) -> NDArray[np.float64]:
        # With CSC, a few rows cost a look at all entries, and more rows will be asked for later.
        if self._by_rows is None:
            self._by_rows = self.sparse_matrix.tocsr()
        return np.asarray(self._by_rows[index].toarray(), dtype=np.float64)

    def pieces(self) -> Iterator[tuple[slice, slice, Any]]:
        """X in float64, some stored rows at a time: which rows, which columns, and their entries."""
        for first, last in itertools.pairwise(self._shares.tolist()):
            part = slice(first, last)
            if last > first and self._transposed:
                yield slice(None), part, self.sparse_matrix[:, part].astype(np.float64)
            elif last > first:
                yield part, slice(None), self.sparse_matrix[part].astype(np.float64)

    def _each_row(self, factors: NDArray[np.float64], n_rows: int) -> NDArray[np.float64]:
        result = np.empty((factors.shape[1], n_rows))

        def work(share: int) -> None:
            _each_row(*self._parts, int(self._shares[share]), int(self._shares[share + 1]), factors, result)

        _threads.run([partial(work, share) for share in range(_SPARSE_SHARES)])
        return result

    def _sum_of_rows(self, factors: NDArray[np.float64], n_columns: int) -> NDArray[np.float64]:
        factors = np.ascontiguousarray(factors)
        # A sum for each share, but where there are few entries a column, these sums would be most of the work.
        n_sums = int(np.clip(self._parts[0][-1] // max(1, n_columns), 1, _SPARSE_SHARES))
        n_sums = min(n_sums, max(2, _SUMS // max(1, n_columns * factors.shape[0])))
        sums = np.zeros((n_sums, n_columns, factors.shape[0]))
        bounds = self._shares[np.linspace(0, _SPARSE_SHARES, n_sums + 1).astype(np.intp)]

        def work(place: int) -> None:
            _sum_of_rows(*self._parts, int(bounds[place]), int(bounds[place + 1]), factors, sums[place])

        _threads.run([partial(work, place) for place in range(n_sums)])
        for place in range(1, n_sums):
            sums[0] += sums[place]
        return sums[0]


register(lambda X: sparse.issparse(X) and X.ndim == 2, _Sparse)
