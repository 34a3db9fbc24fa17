"""Dense arrays of any real dtype."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge.features import float32
from rankhinge.features.maps import register

__all__ = ["BLOCK_ENTRIES"]

# Rows are converted in blocks of about this many entries: small enough for the cache, large enough for BLAS.
BLOCK_ENTRIES = 1 << 15


class _Dense:
    """C- or F-ordered arrays of any real dtype; F order is the transpose of C order, with the products swapped."""

    def __init__(self, X: NDArray[Any]) -> None:
        self.n_samples, self.n_features = X.shape
        self.n_entries = X.size
        self._transposed = X.flags.f_contiguous and not X.flags.c_contiguous
        self._rows = X.T if self._transposed else X
        # BLAS takes rows that lie apart, with their entries side by side; for anything else NumPy would copy all of X
        # at each product, or go without BLAS.
        ahead, beside = self._rows.strides
        apart = beside == 8 and ahead % 8 == 0 and ahead >= 8 * self._rows.shape[1]
        self._direct = X.dtype == np.float64 and X.flags.aligned and apart
        # A single column goes past BLAS; many columns are better off with it, block by block.
        side_by_side = self._rows.flags.c_contiguous and X.flags.aligned
        self._kernels = X.dtype == np.dtype(np.float32) and X.dtype.isnative and side_by_side
        self._step = max(1, BLOCK_ENTRIES // max(1, self._rows.shape[1]))

    def scores(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        weights = np.asarray(weights, dtype=np.float64)
        return self._sum_of_rows(weights.T) if self._transposed else self._each_row(weights.T)

    def adjoint(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        coefficients = np.asarray(coefficients, dtype=np.float64)
        return (self._each_row(coefficients) if self._transposed else self._sum_of_rows(coefficients)).T

    def rows(self, index: NDArray[np.int64]) -> NDArray[np.float64]:
        rows = self._rows[:, index].T if self._transposed else self._rows[index]
        return np.asarray(rows, dtype=np.float64)

    def pieces(self) -> Iterator[tuple[slice, slice, NDArray[np.float64]]]:
        """X in float64, some stored rows at a time: which rows, which columns, and their entries."""
        for part, block in self._blocks():
            yield (slice(None), part, block.T) if self._transposed else (part, slice(None), block)

    def stored(self) -> tuple[NDArray[Any] | None, None]:
        """Rows that lie side by side, as the kernel of `audit` takes them, None for others; no factors."""
        simple = self._rows.dtype in (np.float32, np.float64) and self._rows.dtype.isnative
        lies_so = not self._transposed and self._rows.flags.c_contiguous and self._rows.flags.aligned
        return self._rows if simple and lies_so else None, None

    def _each_row(self, factors: NDArray[np.float64]) -> NDArray[np.float64]:
        """``factors @ rowsᵀ``: one result for each stored row."""
        if self._direct:
            return factors @ self._rows.T
        if self._kernels and factors.shape[0] == 1:
            return float32.each_row(self._rows, factors[0])[None, :]
        result = np.empty((factors.shape[0], self._rows.shape[0]))
        for part, block in self._blocks():
            result[:, part] = factors @ block.T
        return result

    def _sum_of_rows(self, factors: NDArray[np.float64]) -> NDArray[np.float64]:
        """``factors @ rows``: a combination of the stored rows."""
        if self._direct:
            return factors @ self._rows
        if self._kernels and factors.shape[0] == 1:
            return float32.sum_of_rows(self._rows, factors[0])[None, :]
        result = np.zeros((factors.shape[0], self._rows.shape[1]))
        for part, block in self._blocks():
            result += factors[:, part] @ block
        return result

    def _blocks(self) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """The stored rows in float64, some at a time, always in the same memory."""
        n_rows, n_columns = self._rows.shape
        room = np.empty((min(self._step, n_rows), n_columns))
        for start in range(0, n_rows, self._step):
            part = slice(start, min(start + self._step, n_rows))
            block = room[: part.stop - start]
            block[:] = self._rows[part]
            yield part, block


register(lambda X: isinstance(X, np.ndarray) and X.ndim == 2, _Dense)
