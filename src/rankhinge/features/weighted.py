"""Columns with weights: a feature map whose X is never written down."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankhinge.features.audit import HasStored, pieces_of
from rankhinge.features.maps import feature_map, register

__all__ = ["WeightedColumns"]


class WeightedColumns:
    """``X · diag(factors)``, as X and the factors: X is not copied, and a sparse one stays sparse.

    Parameters
    ----------
    X : array or sparse array of shape (n, d)
    factors : ndarray of shape (d,)

    Examples
    --------
    >>> import numpy as np
    >>> from rankhinge.features import WeightedColumns, feature_map
    >>> features = feature_map(WeightedColumns(np.array([[1, 2], [3, 4]]), np.array([1.0, 10.0])))
    >>> features.scores(np.array([[1.0], [1.0]]))
    array([[21., 43.]])
    """

    def __init__(self, X: Any, factors: NDArray[np.float64]) -> None:
        self.X, self.factors = X, factors
        self.shape = X.shape


class _Weighted:
    """The weights go to the coefficients, not to the features."""

    def __init__(self, columns: WeightedColumns) -> None:
        self.inner, self.factors = feature_map(columns.X), columns.factors
        self.n_samples, self.n_features = self.inner.n_samples, self.inner.n_features
        self.n_entries = self.inner.n_entries

    def scores(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        return self.inner.scores(self.factors[:, None] * weights)

    def adjoint(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        slopes: NDArray[np.float64] = self.factors[:, None] * self.inner.adjoint(coefficients)
        return slopes

    def pieces(self) -> Iterator[tuple[slice, slice, Any]]:
        """Pieces of X in float64, for `audit`."""
        for rows, columns, piece in pieces_of(self.inner):
            factors = self.factors[columns]
            yield rows, columns, piece @ sparse.diags_array(factors) if sparse.issparse(piece) else piece * factors

    def stored(self) -> tuple[NDArray[Any] | None, NDArray[np.float64] | None]:
        """As for X, with the factors applied."""
        if not isinstance(self.inner, HasStored):
            return None, None
        rows, factors = self.inner.stored()
        return rows, self.factors if factors is None else factors * self.factors

    def rows(self, index: NDArray[np.int64]) -> NDArray[np.float64]:
        rows: NDArray[np.float64] = self.inner.rows(index) * self.factors
        return rows


register(lambda X: isinstance(X, WeightedColumns), _Weighted)
