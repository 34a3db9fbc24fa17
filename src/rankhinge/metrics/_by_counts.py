"""Average precision, NDCG and AUC of a list from its relevant samples and counts of the others: no other score is seen.

The formulas are those of `_values`, averaged over the orders of tied samples. Only groups of equal scores with a
relevant sample count, and of each of them how many others stand above it and in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from rankhinge.metrics._policies import Floats

__all__ = ["BY_COUNTS", "discounted"]

_BLOCK = 1 << 20
Counts = NDArray[np.int64]


class _Groups:
    """Groups of equal scores, best first: gain and number of the relevant samples in each, and of the others.

    `above` and `gain_above` are all samples, and all gains, of better scores.
    """

    def __init__(self, scores: Floats, gains: Floats, n_above: Counts, n_equal: Counts) -> None:
        order = np.argsort(-scores, kind="stable")
        scores, gains = scores[order], gains[order]
        first = np.flatnonzero(np.append(True, scores[1:] != scores[:-1]))
        self.gain = np.add.reduceat(gains, first)
        self.relevant = np.diff(first, append=scores.size)
        self.others = n_equal[order][first]
        self.others_above = n_above[order][first]
        self.above = self.others_above + np.cumsum(self.relevant) - self.relevant
        self.gain_above = np.cumsum(self.gain) - self.gain
        self.sizes = self.relevant + self.others

    def places(self) -> Iterator[tuple[NDArray[np.intp], Floats, Floats]]:
        """Block by block the group, the place in it from 0, and the rank, of each sample in a group."""
        ends = np.cumsum(self.sizes)
        for start in range(0, int(ends[-1]), _BLOCK):
            rows = np.arange(start, min(start + _BLOCK, int(ends[-1])))
            group = np.searchsorted(ends, rows, side="right")
            place = (rows - (ends - self.sizes)[group]).astype(np.float64)
            yield group, place, self.above[group] + place + 1.0


def _average_precision(groups: _Groups, gains: Floats, n_others: int) -> float:
    total = 0.0
    for group, place, rank in groups.places():
        relevant, tied = groups.relevant[group], groups.sizes[group]
        before = place * (relevant - 1) / np.maximum(tied - 1, 1)
        above = groups.above[group] - groups.others_above[group]
        total += float(np.sum(relevant / tied * (above + 1 + before) / rank))
    return total / gains.size


def _auc(groups: _Groups, gains: Floats, n_others: int) -> float:
    below = n_others - groups.others_above - groups.others
    return (
        float(np.sum(groups.relevant * (below + groups.others / 2.0))) / gains.size / n_others if n_others else np.nan
    )


def discounted(discount: Callable[[Floats], Floats]) -> Callable[..., float]:
    """The sum of gain times discount(rank), over its largest value: NDCG with any discount."""

    def formula(groups: _Groups, gains: Floats, n_others: int) -> float:
        total = 0.0
        for group, _, rank in groups.places():
            total += float(np.sum(groups.gain[group] / groups.sizes[group] * discount(rank)))
        ideal = float(np.sort(gains)[::-1] @ discount(np.arange(1.0, gains.size + 1)))
        # The mean gain of a tied group can be an ulp above each of its gains.
        return min(total / ideal, 1.0) if ideal > 0 else float("nan")

    return _of(formula)


def _of(formula: Callable[[_Groups, Floats, int], float]) -> Callable[..., float]:
    def value(scores: Floats, gains: Floats, n_above: Counts, n_equal: Counts, n_others: int) -> float:
        """The metric of a list.

        Parameters
        ----------
        scores, gains : ndarray of shape (m,)
            Of the relevant samples.
        n_above, n_equal : ndarray of shape (m,), int
            How many of the other samples have a higher score than each of these, and the same.
        n_others : int
        """
        if gains.size == 0:
            return float("nan")
        # By a power of two, which keeps all digits: sums of large gains would overflow.
        gains = np.ldexp(gains, -int(np.frexp(gains.max())[1]))
        return formula(_Groups(scores, gains, n_above, n_equal), gains, n_others)

    return value


BY_COUNTS = {
    "average_precision": _of(_average_precision),
    "ndcg": discounted(lambda rank: 1 / np.log2(1 + rank)),
    "auc": _of(_auc),
}
"""By the name of the metric."""
