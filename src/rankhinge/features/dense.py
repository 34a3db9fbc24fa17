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
    """Rows of any real dtype, whose entries lie side by side where possible."""

    def __init__(self, X: NDArray[Any]) -> None:
        self.n_samples, self.n_features = X.shape
        self.n_entries, self.X = X.size, X
        # BLAS takes rows that lie apart, with their entries side by side; for anything else NumPy would copy all of X
        # at each product, or go without BLAS.
        ahead, beside = X.strides
        apart = beside == 8 and ahead % 8 == 0 and ahead >= 8 * X.shape[1]
        self._direct = X.dtype == np.float64 and X.flags.aligned and apart
        # A single column goes past BLAS; many columns are better off with it, block by block.
        self._side_by_side = X.flags.c_contiguous and X.flags.aligned and X.dtype.isnative
        self._kernels = X.dtype == np.float32 and self._side_by_side
        self._step = max(1, BLOCK_ENTRIES // max(1, X.shape[1]))

    def scores(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        factors = np.asarray(weights, dtype=np.float64).T
        if self._direct:
            return factors @ self.X.T
        if self._kernels and factors.shape[0] == 1:
            return float32.each_row(self.X, factors[0])[None, :]
        result = np.empty((factors.shape[0], self.n_samples))
        for part, block in self._blocks():
            result[:, part] = factors @ block.T
        return result

    def adjoint(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        factors = np.asarray(coefficients, dtype=np.float64)
        if self._direct:
            return (factors @ self.X).T
        if self._kernels and factors.shape[0] == 1:
            return float32.sum_of_rows(self.X, factors[0])[:, None]
        result = np.zeros((factors.shape[0], self.n_features))
        for part, block in self._blocks():
            result += factors[:, part] @ block
        return result.T

    def rows(self, index: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(self.X[index], dtype=np.float64)

    def pieces(self) -> Iterator[tuple[slice, slice, NDArray[np.float64]]]:
        """X in float64, some stored rows at a time: which rows, which columns, and their entries."""
        for part, block in self._blocks():
            yield part, slice(None), block

    def stored(self) -> tuple[NDArray[Any] | None, None]:
        """Rows that lie side by side, as the kernel of `audit` takes them, None for others; no factors."""
        return self.X if self._side_by_side and self.X.dtype in (np.float32, np.float64) else None, None

    def _blocks(self) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """The stored rows in float64, some at a time, always in the same memory."""
        n_rows, n_columns = self.X.shape
        room = np.empty((min(self._step, n_rows), n_columns))
        for start in range(0, n_rows, self._step):
            part = slice(start, min(start + self._step, n_rows))
            block = room[: part.stop - start]
            block[:] = self.X[part]
            yield part, block


class _Transposed:
    """F order is the transpose of C order, with the products swapped."""

    def __init__(self, X: NDArray[Any]) -> None:
        self._inner = _Dense(X.T)
        self.n_samples, self.n_features = X.shape
        self.n_entries = X.size

    def scores(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._inner.adjoint(weights.T).T

    def adjoint(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._inner.scores(coefficients.T).T

    def rows(self, index: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(self._inner.X[:, index].T, dtype=np.float64)

    def pieces(self) -> Iterator[tuple[slice, slice, NDArray[np.float64]]]:
        for columns, rows, block in self._inner.pieces():
            yield rows, columns, block.T

    def stored(self) -> tuple[None, None]:
        return None, None


register(lambda X: isinstance(X, np.ndarray) and X.ndim == 2, _Dense)
register(lambda X: isinstance(X, np.ndarray) and X.ndim == 2 and X.flags.fnc, _Transposed)
