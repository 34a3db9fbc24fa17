"""How many problems run in lockstep: they share each pass over X, and each takes memory of its own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge.features import FeatureMap
from rankhinge.svm.protocol import FitObjective

__all__ = ["side_by_side"]


class MemoryPolicy(NamedTuple):
    """How much memory problems that run side by side may take.

    An array of scores for all of them has at most `entries` entries, or is smaller than `part_of_X`: solvers keep
    several. Of weights, `weights` arrays have no more entries than that, or are smaller than X.
    """

    entries: int = 1 << 23
    part_of_X: float = 1 / 8
    weights: int = 16


MEMORY = MemoryPolicy()


def side_by_side(features: FeatureMap | FitObjective, n_problems: int) -> list[NDArray[np.int64]]:
    """The numbers of the problems, in as few groups of about the same size as memory allows."""
    by_scores = max(MEMORY.entries // features.n_samples, int(MEMORY.part_of_X * features.n_features))
    by_weights = max(MEMORY.entries, features.n_entries) // (MEMORY.weights * features.n_features)
    most = max(1, min(by_scores, by_weights))
    return np.array_split(np.arange(n_problems), max(1, -(-n_problems // most)))
