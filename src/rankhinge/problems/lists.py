"""The lists of a problem: which samples belong to each, what is relevant at which level, and what each weighs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge._jit import kernel

__all__ = ["Level", "Lists", "one_list"]

# From this many samples on it pays to release the GIL, so that problems in lockstep do not wait for each other. Below,
# taking it back costs more than the work.
_LARGE = 1 << 14


@kernel
def _gather(values, index):
    gathered = np.empty(index.size)
    for k in range(index.size):
        gathered[k] = values[index[k]]
    return gathered


@kernel
def _scatter(values, index, out):
    for k in range(out.size):
        out[k] = 0.0
    for k in range(index.size):
        out[index[k]] = values[k]


@dataclass(frozen=True)
class Level:
    """A threshold in each of the first lists: which of their samples are relevant, and what each list's hinge weighs.

    That is ``π_q ω_qℓ``. Lists with fewer labels have fewer levels, and stand behind those that have more.
    """

    relevant: NDArray[np.bool_]
    weights: NDArray[np.float64]


@dataclass(frozen=True)
class Lists:
    """The lists of one problem.

    Attributes
    ----------
    index : ndarray of shape (m,) or None
        The samples that belong to usable lists, list by list; None: all samples, in order.
    offsets : ndarray of shape (n_lists + 1,)
        Where each list begins in `index`.
    levels : tuple of Level
        With arrays over `index` and over the lists, as far as these have the level.
    weights : ndarray of shape (n_lists,)
        π.
    n_unusable : int
        Lists left out because they have no positive or no negative at any level (those of weight 0 are left out too,
        but are not counted).
    """

    index: NDArray[np.int64] | None
    offsets: NDArray[np.int64]
    levels: tuple[Level, ...]
    weights: NDArray[np.float64]
    n_unusable: int = 0

    @property
    def n_lists(self) -> int:
        """How many usable lists there are."""
        return self.offsets.size - 1

    def n_positives(self) -> int:
        """Samples that are relevant at all, in all lists."""
        return max(int(np.count_nonzero(level.relevant)) for level in self.levels)

    def n_negatives(self) -> float:
        """Negatives of a list, averaged with the weights of lists and levels."""
        total = weights = 0.0
        for level in self.levels:
            counts = np.add.reduceat((~level.relevant).astype(np.float64), self.offsets[: level.weights.size])
            total, weights = total + float(level.weights @ counts), weights + float(level.weights.sum())
        return total / weights

    def most_changes(self, n_samples: int) -> NDArray[np.float64]:
        """How much J changes at most with the score of each sample, (n,): ``2 / P`` and ``2 / N`` in each level."""
        inside = np.zeros(int(self.offsets[-1]))
        for level in self.levels:
            offsets = self.offsets[: level.weights.size + 1]
            sizes, n_relevant = np.diff(offsets), np.add.reduceat(level.relevant.astype(np.int64), offsets[:-1])
            counts = np.where(level.relevant, np.repeat(n_relevant, sizes), np.repeat(sizes - n_relevant, sizes))
            inside[: level.relevant.size] += np.repeat(2.0 * level.weights, sizes) / counts
        if self.index is None:
            return inside
        changes = np.zeros(n_samples)
        self.scatter(inside, changes)
        return changes

    def gather(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """The scores of the samples in the lists, (m,), from those of all samples, (n,)."""
        if self.index is None:
            return scores
        inside: NDArray[np.float64] = scores[self.index] if self.index.size < _LARGE else _gather(scores, self.index)
        return inside

    def scatter(self, coefficients: NDArray[np.float64], u: NDArray[np.float64]) -> None:
        """Write the coefficients (m,) into u (n,), and 0 for the other samples."""
        if self.index is None:
            u[:] = coefficients
        elif self.index.size < _LARGE:
            u[:] = 0.0
            u[self.index] = coefficients
        else:
            _scatter(coefficients, self.index, u)


def one_list(relevant: NDArray[np.bool_], known: NDArray[Any] | None = None) -> Lists:
    """A problem with a single list: all samples, or those under a mask.

    Or those of an index, ascending: an array that problems may share.
    """
    index = np.flatnonzero(known) if known is not None and known.dtype == np.bool_ else known
    if index is not None and index.size == relevant.size:
        index = None
    if index is not None:
        relevant = relevant[index]
    offsets = np.array([0, relevant.size])
    return Lists(index, offsets, (Level(np.ascontiguousarray(relevant), np.ones(1)),), np.ones(1))
