"""Scores of a few directions of each problem, kept so that any point in their span is scored without a pass over X."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Span"]


class Span(NamedTuple):
    """Scores of T directions for each of m problems.

    They take most of the memory of a fit, so they are widened and narrowed where they are: what these two return stands
    for the same memory as the span before, which is not to be used any more.

    Attributes
    ----------
    rows : tuple of ndarray of shape (capacity, n)
        For each problem; the first T rows are in use.
    width : int
        T.
    problems : ndarray of shape (m,)
    """

    rows: tuple[NDArray[np.float64], ...]
    width: int
    problems: NDArray[np.int64]

    @classmethod
    def of(cls, scores: NDArray[np.float64], problems: NDArray[np.int64], capacity: int) -> Span:
        """A span of one direction for each problem, with the given scores (m, n), and room for more."""
        rows = tuple(np.empty((max(capacity, 1), scores.shape[1])) for _ in scores)
        for room, row in zip(rows, scores, strict=True):
            room[0] = row
        return cls(rows, 1, problems)

    def select(self, places: NDArray[np.int64]) -> Span:
        """Some of the problems; nothing is copied."""
        return Span(tuple(self.rows[place] for place in places), self.width, self.problems[places])

    def mix(self, coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores (m, n) of one point of each problem, by its coordinates (m, T)."""
        mixed = np.empty((len(self.rows), self.rows[0].shape[1]))
        for weights, room, out in zip(coordinates, self.rows, mixed, strict=True):
            np.dot(weights, room[: self.width], out=out)
        return mixed

    def slopes(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """``Σ u s`` (m, T) of each problem's coefficients (m, n) with each of its rows."""
        return np.stack([room[: self.width] @ row for room, row in zip(self.rows, u, strict=True)])

    def widen(self, scores: NDArray[np.float64]) -> Span:
        """With r more directions a problem, by their scores (m r, n)."""
        new = scores.reshape(len(self.rows), -1, scores.shape[1])
        width = self.width + new.shape[1]
        grown = tuple(_with_room(room, self.width, width) for room in self.rows)
        for room, more in zip(grown, new, strict=True):
            room[self.width : width] = more
        return Span(grown, width, self.problems)

    def narrow(self, weights: NDArray[np.float64]) -> Span:
        """With a single combination, by weights (m, t), in place of the t oldest directions."""
        t = weights.shape[1]
        width = self.width - t + 1
        for weight, room in zip(weights, self.rows, strict=True):
            room[0] = weight @ room[:t]
            # Row by row: NumPy would copy all of them where the two places overlap.
            for place in range(1, width):
                room[place] = room[place + t - 1]
        return Span(self.rows, width, self.problems)


def _with_room(room: NDArray[np.float64], used: int, capacity: int) -> NDArray[np.float64]:
    """The same rows, in an array with room for so many."""
    if capacity <= room.shape[0]:
        return room
    larger = np.empty((capacity, room.shape[1]))
    larger[:used] = room[:used]
    return larger
