"""Precision and recall over thresholds, with the counts behind them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["confusion", "thresholds"]

# Positions of the slider: finer than a screen is wide.
_POSITIONS = 1000


def confusion(relevant: NDArray[np.bool_], scores: NDArray[np.float64], threshold: float) -> dict[str, int]:
    """The four counts if rows that score at least the threshold are called positive.

    Examples
    --------
    >>> import numpy as np
    >>> confusion(np.array([True, False, True]), np.array([3.0, 2.0, 1.0]), 2.0)
    {'tp': 1, 'fp': 1, 'fn': 1, 'tn': 0}
    """
    taken = scores >= threshold
    tp, fp = int(np.count_nonzero(taken & relevant)), int(np.count_nonzero(taken & ~relevant))
    n_relevant = int(np.count_nonzero(relevant))
    return {"tp": tp, "fp": fp, "fn": n_relevant - tp, "tn": relevant.size - n_relevant - fp}


def thresholds(relevant: NDArray[np.bool_], scores: NDArray[np.float64], own: float | None) -> dict[str, Any]:
    """Thresholds in descending order, the relevant and other rows that each takes, and where the slider begins.

    If there are more scores than positions of the slider, half of the positions are spaced evenly in recall and half in
    the logarithm of the number of rows taken. `own`, the model's threshold, is always among them. None: the slider
    begins at the largest F1.
    """
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    # The last row of each group of equal scores: they are taken together.
    ends = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))
    tp = np.cumsum(relevant[order])[ends]
    fp = ends + 1 - tp
    values = ranked[ends]
    chosen = np.arange(ends.size)
    if ends.size > _POSITIONS:
        half = _POSITIONS // 2
        by_recall = np.searchsorted(tp, np.linspace(0.0, tp[-1], half))
        by_rank = np.searchsorted(ends + 1, np.geomspace(1, ends[-1] + 1, half))
        chosen = np.unique(np.minimum(np.concatenate([by_recall, by_rank, [ends.size - 1]]), ends.size - 1))
    begin = 0
    if own is not None and np.any(values >= own):
        # The lowest score that the model itself calls positive.
        place = int(np.flatnonzero(values >= own)[-1])
        chosen = np.unique(np.append(chosen, place))
        begin = int(np.searchsorted(chosen, place))
    elif own is None:
        f1 = 2 * tp / (ends + 1 + max(int(tp[-1]), 1))
        best = int(np.argmax(f1))
        chosen = np.unique(np.append(chosen, best))
        begin = int(np.searchsorted(chosen, best))
    return {
        "threshold": values[chosen].tolist(),
        "tp": tp[chosen].tolist(),
        "fp": fp[chosen].tolist(),
        "positives": int(np.count_nonzero(relevant)),
        "rows": int(relevant.size),
        "begin": begin,
    }
