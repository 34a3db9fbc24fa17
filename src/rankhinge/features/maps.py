"""What a feature map is, and which one belongs to which container."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["ROW_BLOCK_ENTRIES", "FeatureMap", "feature_map", "register"]

# Those who read X by its rows do so in blocks of about this many entries.
ROW_BLOCK_ENTRIES = 1 << 18


class FeatureMap(Protocol):
    """The two products; scores and coefficients are rows, one for each problem, so that each is contiguous."""

    n_samples: int
    n_features: int
    n_entries: int
    """What a pass looks at: all numbers of X, or those that are stored."""

    def scores(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """``(X @ W)ᵀ`` for W of shape (n_features, m): shape (m, n_samples)."""

    def adjoint(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """``Xᵀ Uᵀ`` for U of shape (m, n_samples): shape (n_features, m)."""

    def rows(self, index: NDArray[np.int64]) -> NDArray[np.float64]:
        """A few rows of X, dense."""


_REGISTERED: list[tuple[Callable[[Any], bool], Callable[[Any], FeatureMap]]] = []


def register(accepts: Callable[[Any], bool], make: Callable[[Any], FeatureMap]) -> None:
    """Let `feature_map` use ``make(X)`` for every X with ``accepts(X)``; later ones are asked first."""
    _REGISTERED.insert(0, (accepts, make))


def feature_map(X: Any) -> FeatureMap:
    """The feature map for X: a dense array, a SciPy sparse array or matrix, or anything registered.

    Examples
    --------
    >>> import numpy as np
    >>> from rankhinge.features import feature_map
    >>> features = feature_map(np.array([[1, 2], [3, 4], [5, 6]], dtype=np.float32))
    >>> features.scores(np.array([[1.0], [0.5]]))
    array([[2., 5., 8.]])
    """
    for accepts, make in _REGISTERED:
        if accepts(X):
            return make(X)
    raise TypeError(f"there is no feature map for {type(X).__name__}")
