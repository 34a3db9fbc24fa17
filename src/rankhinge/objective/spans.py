"""What arrays additionally offer the bundle solver: spans and random parts.

A span holds the scores of a few directions of each problem, so that any point between them is scored without a pass
over X.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge.objective.handles import Scores

__all__ = ["Span", "Spans", "random_parts"]

# Rows with a generator of their own, and the number of parts up to which a byte names them.
_BLOCK_ROWS, _MOST_PARTS = 1 << 16, 1 << 8


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


def random_parts(key: int, n_parts: int, n_samples: int) -> NDArray[np.int64]:
    """A part for each row, drawn by the key of a round and the number of the row's block.

    Nobody has to know the other blocks, so a block gets the same parts wherever it lies.
    """
    which = np.empty(n_samples, np.int64)
    dtype = np.uint8 if n_parts <= _MOST_PARTS else np.int64
    for block, first in enumerate(range(0, n_samples, _BLOCK_ROWS)):
        mine = which[first : first + _BLOCK_ROWS]
        generator = np.random.Generator(np.random.Philox(key=np.array([key, block], np.uint64)))
        mine[:] = generator.integers(n_parts, size=mine.size, dtype=dtype)
    return which


def _with_room(room: NDArray[np.float64], used: int, capacity: int) -> NDArray[np.float64]:
    """The same rows, in a larger array."""
    if capacity <= room.shape[0]:
        return room
    larger = np.empty((capacity, room.shape[1]))
    larger[:used] = room[:used]
    return larger


class Spans:
    """The part of `rankhinge.solvers.protocol.SpanObjective` that needs arrays; a mixin."""

    n_samples: int

    def span(self, scores: Scores, capacity: int) -> Span:
        """A span of one direction for each row, with room for `capacity` directions."""
        return Span.of(scores.values, scores.problems, capacity)

    def mix(self, span: Span, coordinates: NDArray[np.float64]) -> Scores:
        """Scores of a point of each problem, by its coordinates (m, T) in the span; no pass over X."""
        return Scores(span.mix(coordinates), span.problems)

    def slopes(self, coefficients: Scores, span: Span) -> NDArray[np.float64]:
        """``Σ u s`` of each problem with each of its directions in a span, (m, T); no pass over X."""
        return span.slopes(coefficients.values)

    def widen(self, span: Span, scores: Scores) -> Span:
        """The span with r more directions a problem, by their scores, problem by problem."""
        return span.widen(scores.values)

    def narrow(self, span: Span, weights: NDArray[np.float64]) -> Span:
        """The span with one combination, by weights (m, t), in place of its t oldest directions."""
        return span.narrow(weights)

    def split(self, coefficients: Scores, n_parts: int, generator: np.random.Generator) -> Scores:
        """Each problem's u as a sum of ``2 n_parts``: its negative and its positive entries, cut at random."""
        m = coefficients.problems.size
        parts = np.zeros((m, 2 * n_parts, self.n_samples))
        which = random_parts(int(generator.integers(1 << 63)), n_parts, self.n_samples)
        place = np.arange(self.n_samples)
        for part, u in zip(parts, coefficients.values, strict=True):
            part[which + n_parts * (u > 0), place] = u
        return Scores(parts.reshape(-1, self.n_samples), np.repeat(coefficients.problems, 2 * n_parts))
