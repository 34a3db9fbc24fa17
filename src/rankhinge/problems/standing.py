"""Where the relevant samples of a list stand among the others, by counts: what AP, NDCG and AUC need to know.

The samples may lie in parts. Of each part the relevant ones' scores come first; their union goes back, and each part
counts its other samples between them. No part sends the scores of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Standing", "count_between", "standing_of"]

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


class Standing(NamedTuple):
    """Scores and labels of m relevant samples, how many others have a higher score and the same, (m,); all others."""

    scores: Floats
    labels: Floats
    n_above: Counts
    n_equal: Counts
    n_others: int


def count_between(scores: Floats, marks: Floats) -> Counts:
    """How many of some irrelevant samples lie between the marks and at them: (2 m + 1,).

    Marks ascend and differ. Entry 2 i counts scores between mark i - 1 and mark i, entry 2 i + 1 those at mark i.
    """
    place = np.searchsorted(marks, scores, side="left") + np.searchsorted(marks, scores, side="right")
    return np.bincount(place, minlength=2 * marks.size + 1)


def standing_of(scores: Floats, labels: Floats, counts: Sequence[Counts]) -> Standing:
    """From the relevant samples of all parts, and the counts of each part between their different scores."""
    total = np.sum(counts, axis=0)
    marks, place = np.unique(scores, return_inverse=True)
    n_others = int(total.sum())
    n_below = np.concatenate([[0], np.cumsum(total)])
    return Standing(
        scores, labels, n_others - n_below[2 * place + 2], total[2 * place + 1] if marks.size else place, n_others
    )
