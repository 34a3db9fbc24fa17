"""Follow a path of models over C, scored on the test parts of folds, as long as that is worth its passes."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Followed", "Path", "along"]

Path: TypeAlias = Generator[NDArray[np.float64], NDArray[np.int64] | None, None]
"""Coefficients (d, m) along a path; it is sent the problems to go on with, the others stay where they are."""

# A path ends when the last two points are so much worse, in parts of the best score: it has begun to overfit.
_DECLINE = 0.02


class Followed(NamedTuple):
    """Coefficients (d, m) and scores (m, length) at each point of a path, and how many points each problem has seen.

    Beyond these a problem keeps its last coefficients and score.
    """

    coefs: list[NDArray[np.float64]]
    scores: NDArray[np.float64]
    reached: NDArray[np.int64]


def along(
    path: Path,
    quality: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    length: int,
    watch: Callable[[], None],
    together: NDArray[np.int64] | None = None,
) -> Followed:
    """Coefficients and scores along a path, which goes on with the problems that do not yet overfit.

    Parameters
    ----------
    path : Path
    quality : callable
        Scores (m,) of coefficients (d, m).
    length : int
        Points of the path.
    watch : callable
        Called after each point.
    together : ndarray of shape (m,), optional
        Problems of the same number are given up together, by their mean score; default: each for itself.
    """
    coefs = [next(path)]
    scores = [quality(coefs[0])]
    reached = np.ones(scores[0].size, np.int64)
    watch()
    while len(scores) < length:
        going = np.flatnonzero(~_overfits(_means(np.array(scores), together)))
        reached[going] += 1
        coefs.append(path.send(going) if going.size else coefs[-1])
        scores.append(scores[-1] if coefs[-1] is coefs[-2] else quality(coefs[-1]))
        watch()
    return Followed(coefs, np.array(scores).T, reached)


def _means(scores: NDArray[np.float64], together: NDArray[np.int64] | None) -> NDArray[np.float64]:
    """Each problem's score, or the mean of all that belong together and have one."""
    if together is None:
        return scores
    means = np.full_like(scores, np.nan)
    for number in np.unique(together):
        mine = np.flatnonzero(together == number)
        known = mine[np.isfinite(scores[:, mine]).all(axis=0)]
        if known.size:
            means[:, mine] = scores[:, known].mean(axis=1, keepdims=True)
    return means


def _overfits(scores: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which problems were much worse at the last two points of a path (length, m) than at best, or have no score."""
    last = scores[-2:]
    best = scores.max(axis=0)
    worse = (last < best - _DECLINE * np.abs(best)) | np.isnan(last)
    return worse.all(axis=0) & (len(scores) > 2)
