"""Lists of scores, of the three kinds that a training meets on its way."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge import most_violating_ranking

Scores = NDArray[Any]
Relevant = NDArray[np.bool_]

SETTLED_SHARE = 0.99


def make_list(n_positives: int, n_negatives: int, dtype: str) -> tuple[Scores, Relevant]:
    """Scores without a difference between the classes, positives and negatives in random order."""
    rng = np.random.default_rng([n_positives, n_negatives])
    relevant = np.zeros(n_positives + n_negatives, np.bool_)
    relevant[rng.choice(relevant.size, n_positives, replace=False)] = True
    return rng.standard_normal(relevant.size).astype(dtype, copy=False), relevant


def raised(scores: Scores, relevant: Relevant, shift: float) -> Scores:
    result = scores.copy()
    result[relevant] += scores.dtype.type(shift)
    return result


def settled_last(scores: Scores, relevant: Relevant, loss: str) -> float:
    """Share of the negatives with interleaving rank P + 1: those with coefficient 0."""
    u = most_violating_ranking(scores, relevant, loss).coefficients
    return 1 - np.count_nonzero(u[~relevant]) / np.count_nonzero(~relevant)


def shift_of_kind(kind: str, scores: Scores, relevant: Relevant, loss: str) -> float:
    """By how much the positives must be raised for a list of this kind."""
    if kind == "overlapping":
        return 0.5

    def share(shift: float) -> float:
        return settled_last(raised(scores, relevant, shift), relevant, loss)

    wanted = SETTLED_SHARE if kind == "trained" else 1.0
    low, high = 0.0, 1.0
    while share(high) < wanted:
        low, high = high, 2 * high
    if kind == "separated":
        return high
    # The share rises with the shift, in jumps: the least shift that reaches it.
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if share(middle) >= wanted else (middle, high)
    return high
