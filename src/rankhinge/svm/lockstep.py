"""How many problems run in lockstep: they share each pass over X, and each takes memory of its own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankhinge.features import FeatureMap
from rankhinge.svm.protocol import FitObjective

__all__ = ["side_by_side"]

# Problems run side by side as long as an array of scores for all of them has so many entries at most, or is smaller
# than this part of X; solvers keep several. So they do with weights: as long as so many of these have no more entries,
# or are smaller than X.
_ENTRIES, _PART_OF_X, _WEIGHTS = 1 << 23, 1 / 8, 16


def side_by_side(features: FeatureMap | FitObjective, n_problems: int) -> list[NDArray[np.int64]]:
    """The numbers of the problems, in as few groups of about the same size as memory allows."""
    by_scores = max(_ENTRIES // features.n_samples, int(_PART_OF_X * features.n_features))
    by_weights = max(_ENTRIES, features.n_entries) // (_WEIGHTS * features.n_features)
    most = max(1, min(by_scores, by_weights))
    return np.array_split(np.arange(n_problems), max(1, -(-n_problems // most)))
