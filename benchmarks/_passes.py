"""The time that a fit spends in its passes over X, measured from outside through the registry of feature maps."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge import features


class Stopwatch:
    """Seconds and number of passes since the watch was started."""

    def __init__(self) -> None:
        self.seconds, self.passes = 0.0, 0


class _Timed:
    """A feature map that notes how long its products take."""

    def __init__(self, inner: features.FeatureMap, watch: Stopwatch) -> None:
        self._inner, self._watch = inner, watch
        self.n_samples, self.n_features, self.n_entries = inner.n_samples, inner.n_features, inner.n_entries

    def scores(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._noted(self._inner.scores, weights)

    def adjoint(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        return self._noted(self._inner.adjoint, coefficients)

    def rows(self, index: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._inner.rows(index)

    def _noted(self, product: Any, factors: NDArray[np.float64]) -> NDArray[np.float64]:
        start = time.perf_counter()
        result = product(factors)
        self._watch.seconds += time.perf_counter() - start
        self._watch.passes += 1
        return result


# The watch that runs at present; with None the maps of the library are used as they are.
_running: list[Stopwatch | None] = [None]


def _make(X: Any) -> features.FeatureMap:
    watch, _running[0] = _running[0], None
    try:
        inner = features.feature_map(X)
    finally:
        _running[0] = watch
    assert watch is not None
    return _Timed(inner, watch)


features.register(lambda X: _running[0] is not None, _make)


@contextmanager
def timed_passes() -> Iterator[Stopwatch]:
    """Within the context all fits note the time of their passes."""
    watch = _running[0] = Stopwatch()
    try:
        yield watch
    finally:
        _running[0] = None
