r"""The lists of a problem: which samples belong to each, what is relevant at which level, and what each weighs.

**Graded labels.** Levels ``0 = γ(0) < γ(1) < …``. With IDCG_ℓ the best DCG at level ℓ (gain 1 for each sample at or
above it) and IDCG that of the graded list, ``ω_ℓ = (γ(ℓ) - γ(ℓ - 1)) · IDCG_ℓ / IDCG`` gives
``1 - NDCG(R) = Σ ω_ℓ (1 - NDCG_ℓ(R))`` for every ranking R: J bounds the graded loss, whatever the gains. A level
that the whole list reaches has no negative: its hinge is 0 (that of zero-one is not), its weight stays. Levels between
two labels of a list have the same samples above them, and are taken together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge._jit import kernel
from rankhinge.losses import RankingLoss

__all__ = ["MOST_LEVELS", "Level", "Lists", "graded_lists", "one_list", "one_list_of"]

# Each level is inferred on its own: time and memory grow with their number.
MOST_LEVELS = 1000

# From so many samples on it pays to let go of the GIL, so that problems in lockstep do not wait for each other; below,
# to get it back takes longer than the work.
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

    @property
    def n_lists(self) -> int:
        """How many lists have this level."""
        return self.weights.size

    @property
    def n_samples(self) -> int:
        """How many samples these lists have."""
        return self.relevant.size


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

    def most_changes(self, n_samples: int) -> NDArray[np.float64]:
        """How much J changes at most with the score of each sample, (n,): ``2 / P`` and ``2 / N`` in each level."""
        inside = np.zeros(int(self.offsets[-1]))
        for level in self.levels:
            offsets = self.offsets[: level.n_lists + 1]
            sizes, n_relevant = np.diff(offsets), np.add.reduceat(level.relevant.astype(np.int64), offsets[:-1])
            counts = np.where(level.relevant, np.repeat(n_relevant, sizes), np.repeat(sizes - n_relevant, sizes))
            inside[: level.n_samples] += np.repeat(2.0 * level.weights, sizes) / counts
        changes = np.zeros(n_samples)
        self.scatter(inside, changes)
        return changes

    def gather(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of the scores of all samples (n,) those in the lists, (m,)."""
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


def one_list(relevant: NDArray[np.bool_], mask: NDArray[np.bool_] | None = None) -> Lists:
    """A problem with a single list: all samples, or those under the mask."""
    return one_list_of(relevant, None if mask is None else np.flatnonzero(mask))


def one_list_of(relevant: NDArray[np.bool_], index: NDArray[np.int64] | None) -> Lists:
    """The same, with the samples that are in the list, ascending: an array that problems may share."""
    if index is not None and index.size == relevant.size:
        index = None
    if index is not None:
        relevant = relevant[index]
    offsets = np.array([0, relevant.size])
    return Lists(index, offsets, (Level(np.ascontiguousarray(relevant), np.ones(1)),), np.ones(1))


def graded_lists(
    labels: NDArray[Any],
    codes: NDArray[np.int64],
    loss: RankingLoss,
    gains: NDArray[np.float64],
    level_weights: NDArray[np.float64] | None = None,
    list_weights: NDArray[np.float64] | None = None,
) -> Lists:
    """Cut samples into lists, leave out the unusable ones, and weigh the levels.

    Parameters
    ----------
    labels : ndarray of shape (n,), int
        Level of each sample, an index into `gains`.
    codes : ndarray of shape (n,), int
        Number of the list of each sample, from 0 without gaps, rows in any order.
    loss : RankingLoss
        For losses of the DCG family the level weights follow from the gains.
    gains : ndarray of shape (n_levels,)
        γ, ascending from 0.
    level_weights : ndarray of shape (n_levels - 1,), optional
        ω of the levels 1, 2, … for the other losses, in any scale.
    list_weights : ndarray of shape (n_lists,), optional
        π in any scale; default: all equal.
    """
    n_lists = int(codes.max()) + 1
    least, most = np.full(n_lists, labels.max()), np.zeros(n_lists, labels.dtype)
    np.minimum.at(least, codes, labels)
    np.maximum.at(most, codes, labels)
    # A list tells something if a level that counts lies between its samples.
    counts = np.ones(gains.size - 1) if level_weights is None else np.asarray(level_weights) > 0
    n_up_to = np.concatenate([[0], np.cumsum(counts)])
    has_both = n_up_to[least] < n_up_to[most]
    # By the largest first: a sum of large weights may overflow.
    share = np.ones(n_lists) if list_weights is None else list_weights / max(np.max(list_weights), np.finfo(float).tiny)
    # A list of weight 0 has no part in the mean: it need not be evaluated.
    usable = has_both & (share > 0)
    index = np.argsort(codes, kind="stable")
    index = index[usable[codes[index]]]
    sizes = np.bincount(codes, minlength=n_lists)[usable]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    share = share[usable] / share[usable].sum()
    grades = _Grades.of(labels[index], offsets)
    n_grades = np.bincount(grades.list, minlength=sizes.size)
    if np.any(n_grades[1:] > n_grades[:-1]):
        # Those with most levels first: a level is a matter of the first lists then.
        order = np.argsort(-n_grades, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        index = index[np.argsort(np.repeat(place, sizes), kind="stable")]
        sizes, share, n_grades = sizes[order], share[order], n_grades[order]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        grades = _Grades.of(labels[index], offsets)
    n_levels = int(n_grades.max(initial=1))
    if n_levels > MOST_LEVELS:
        raise ValueError(
            f"y has {n_levels} different grades in one list, each of which is a ranking problem of its own: round it "
            f"to at most {MOST_LEVELS}"
        )
    weights = _grade_weights(grades, sizes, loss, gains, level_weights) * share[grades.list]
    # Rank by rank, and of each rank the lists that have it, in order.
    rows = np.split(weights[np.argsort(grades.rank, kind="stable")], np.cumsum(np.bincount(grades.rank))[:-1])
    # At the lowest grade of a list there is no negative: the hinge is 0, unless no ranking is asked for.
    lowest = 1 if loss.is_ranking else 0
    levels = tuple(
        Level(grades.of_samples[: offsets[row.size]] >= rank, row)
        for rank, row in enumerate(rows)
        if rank >= lowest and np.any(row > 0)
    )
    in_order = index.size == labels.size and bool(np.all(index[:-1] < index[1:]))
    return Lists(None if in_order else index, offsets, levels, share, int(n_lists - has_both.sum()))


class _Grades(NamedTuple):
    """The different labels of each list, list by list, ascending: of each its list, its rank there and the label.

    Thresholds between two labels of a list have the same samples above them. So a list has as many levels as it has
    labels, be there many more in others.

    Attributes
    ----------
    list, rank, label, label_below, n_reached : ndarray of shape (g,)
        `label_below` is the next lower label of the list, 0 for the lowest; `n_reached` are the samples of the list
        with the label or a higher one.
    of_samples : ndarray of shape (m,)
        The rank of each sample's label.
    """

    list: NDArray[np.int64]
    rank: NDArray[np.int64]
    label: NDArray[Any]
    label_below: NDArray[Any]
    n_reached: NDArray[np.int64]
    of_samples: NDArray[np.int64]

    @classmethod
    def of(cls, labels: NDArray[Any], offsets: NDArray[np.int64]) -> _Grades:
        """Of the labels of lists that lie one after the other."""
        list_of = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
        order = np.lexsort((labels, list_of))
        ascending = labels[order]
        is_first = np.ones(labels.size, np.bool_)
        is_first[1:] = (ascending[1:] != ascending[:-1]) | (list_of[1:] != list_of[:-1])
        first = np.flatnonzero(is_first)
        number, begins = np.cumsum(is_first) - 1, np.searchsorted(first, offsets[:-1])
        of_samples = np.empty(labels.size, np.int64)
        of_samples[order] = number - begins[list_of]
        own, label = list_of[first], ascending[first]
        rank = np.arange(first.size) - begins[own]
        below = np.where(rank > 0, np.roll(label, 1), 0)
        return cls(own, rank, label, below, offsets[own + 1] - first, of_samples)


def _grade_weights(
    grades: _Grades,
    sizes: NDArray[np.int64],
    loss: RankingLoss,
    gains: NDArray[np.float64],
    level_weights: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    """``ω`` of each list's labels, of shape (g,): what the levels from the next lower one up weigh together."""
    ideals = loss.ideals(grades.n_reached, sizes[grades.list]) if level_weights is None else None
    if ideals is not None:
        # By the largest gain: the products of large ones may overflow.
        height, factor = gains / max(gains[-1], np.finfo(float).tiny), ideals
    else:
        given = np.ones(gains.size - 1) if level_weights is None else np.asarray(level_weights, dtype=np.float64)
        height, factor = np.concatenate([[0.0], np.cumsum(given)]), np.ones(grades.label.size)
    weights = (height[grades.label] - height[grades.label_below]) * factor
    total = np.bincount(grades.list, weights)[grades.list]
    return np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
