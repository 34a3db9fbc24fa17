"""What the objective on arrays hands out: scores and coefficients, a row for each column that a solver asked for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Evaluation", "Scores"]


class Scores(NamedTuple):
    """Scores of some problems: row c of `values` belongs to problem ``problems[c]``."""

    values: NDArray[np.float64]
    problems: NDArray[np.int64]

    def select(self, places: NDArray[np.int64]) -> Scores:
        """Some of the rows."""
        return Scores(self.values[places], self.problems[places])


class Evaluation(NamedTuple):
    """``J``, the loss of the most violating rankings, and u: ``value = loss + Σ u s``, each by problem."""

    value: NDArray[np.float64]
    loss: NDArray[np.float64]
    coefficients: Scores | None
