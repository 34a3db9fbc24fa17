"""Maxima over segments of a vector: the best candidate of each bag."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge import _threads
from rankhinge._jit import kernel

__all__ = ["segment_best", "segment_maxima"]

# Candidates in a chunk of work: about 0.3 ms, below which a second thread does not pay.
_CHUNK = 1 << 18


@kernel
def _maxima(scores, start, stop, first, last, value, place):
    """The maximum of ``scores[start[b] : stop[b]]`` and its first place, for the segments first … last - 1."""
    for b in range(first, last):
        best, where = scores[start[b]], start[b]
        for c in range(start[b] + 1, stop[b]):
            if scores[c] > best:
                best, where = scores[c], c
        value[b], place[b] = best, where


@kernel
def _best(scores, start, stop, first, last, places, values):
    """The largest of the segments first … last - 1, best first; of equal ones the first comes first."""
    n_best = places.shape[1]
    for b in range(first, last):
        places[b, :], values[b, :] = -1, -np.inf
        for c in range(start[b], stop[b]):
            score = scores[c]
            if not score > values[b, n_best - 1]:
                continue
            r = n_best - 1
            while r > 0 and score > values[b, r - 1]:
                values[b, r], places[b, r] = values[b, r - 1], places[b, r - 1]
                r -= 1
            values[b, r], places[b, r] = score, c


def segment_best(
    scores: NDArray[np.float64],
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
    places: NDArray[np.int64],
    values: NDArray[np.float64],
) -> None:
    """Write the places and values of the largest scores of each segment, best first.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates,)
    start, stop : ndarray of shape (n_bags,)
    places, values : ndarray of shape (n_bags, n_best)
        Where to write; -1 and -inf where a segment has fewer finite scores.
    """
    _on_chunks(_best, scores, start, stop, places, values)


def segment_maxima(
    scores: NDArray[Any], start: NDArray[np.int64], stop: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Largest score of each segment, and its first place.

    Parameters
    ----------
    scores : ndarray of shape (n_candidates,)
    start, stop : ndarray of shape (n_bags,)
        Segment b is ``scores[start[b] : stop[b]]``, not empty; segments may overlap and come in any order.

    Returns
    -------
    value : ndarray of shape (n_bags,)
        ``value[b] = max(scores[start[b] : stop[b]])``.
    place : ndarray of shape (n_bags,)
        The smallest c in the segment with ``scores[c] == value[b]``: the same whatever the number of threads.

    Examples
    --------
    >>> value, place = segment_maxima(np.array([1.0, 3.0, 3.0, 0.5]), np.array([0, 3]), np.array([3, 4]))
    >>> value.tolist(), place.tolist()
    ([3.0, 0.5], [1, 3])
    """
    value, place = np.empty(start.size), np.empty(start.size, np.int64)
    _on_chunks(_maxima, scores, start, stop, value, place)
    return value, place


def _on_chunks(
    work: Callable[..., None],
    scores: NDArray[Any],
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
    *outputs: NDArray[Any],
) -> None:
    """Run a kernel over all segments, on the threads.

    Chunks are cut by the number of candidates, not by that of threads: a bag of a million is a chunk of its own.
    """
    n_bags = start.size
    if scores.size < _CHUNK:
        work(scores, start, stop, 0, n_bags, *outputs)
        return
    passed = np.cumsum(stop - start)
    n_chunks = 1 + int(passed[-1]) // _CHUNK if n_bags else 0
    bounds = np.searchsorted(passed, np.arange(1, n_chunks) * _CHUNK)
    bounds = np.unique(np.concatenate([[0], bounds, [n_bags]]))
    _threads.run([partial(work, scores, start, stop, int(a), int(b), *outputs) for a, b in pairwise(bounds)])
