r"""Graded labels as levels of lists, each with a weight.

**Graded labels.** Levels ``0 = γ(0) < γ(1) < …``. With IDCG_ℓ the best DCG at level ℓ (gain 1 for each sample at or
above it) and IDCG that of the graded list, ``ω_ℓ = (γ(ℓ) - γ(ℓ - 1)) · IDCG_ℓ / IDCG`` gives
``1 - NDCG(R) = Σ ω_ℓ (1 - NDCG_ℓ(R))`` for every ranking R: J bounds the graded loss, whatever the gains.

A level that the whole list reaches has no negative: its hinge is 0 (except for zero-one), but its weight counts. Levels
between two labels of a list have the same samples above them and are merged.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge.losses import RankingLoss
from rankhinge.problems.lists import Level, Lists

__all__ = ["MOST_LEVELS", "ListGrades", "grade_weights", "graded_lists", "tells_something"]

# Each level is inferred on its own: time and memory grow with their number.
MOST_LEVELS = 1000


def graded_lists(
    labels: NDArray[Any],
    codes: NDArray[np.int64],
    loss: RankingLoss,
    gains: NDArray[np.float64],
    level_weights: NDArray[np.float64] | None = None,
    list_weights: NDArray[np.float64] | None = None,
    total: float | None = None,
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
    total : float, optional
        What π is divided by, if there are usable lists elsewhere; default: the sum over those here.
    """
    n_lists = int(codes.max()) + 1
    least, most = np.full(n_lists, labels.max()), np.zeros(n_lists, labels.dtype)
    np.minimum.at(least, codes, labels)
    np.maximum.at(most, codes, labels)
    has_both = tells_something(least, most, gains, level_weights)
    share = np.ones(n_lists) if list_weights is None else list_weights
    if total is None:
        # By the largest first: a sum of large weights may overflow.
        share = share / max(np.max(share), np.finfo(float).tiny)
    # A list of weight 0 has no part in the mean: it need not be evaluated.
    usable = has_both & (share > 0)
    index = np.argsort(codes, kind="stable")
    index = index[usable[codes[index]]]
    sizes = np.bincount(codes, minlength=n_lists)[usable]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    share = share[usable] / (share[usable].sum() if total is None else total)
    grades = ListGrades.of(labels[index], offsets)
    n_grades = np.bincount(grades.list, minlength=sizes.size)
    if np.any(n_grades[1:] > n_grades[:-1]):
        # Those with most levels first: a level is a matter of the first lists then.
        order = np.argsort(-n_grades, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        index = index[np.argsort(np.repeat(place, sizes), kind="stable")]
        sizes, share, n_grades = sizes[order], share[order], n_grades[order]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        grades = ListGrades.of(labels[index], offsets)
    n_levels = int(n_grades.max(initial=1))
    if n_levels > MOST_LEVELS:
        raise ValueError(
            f"y has {n_levels} different grades in one list, each of which is a ranking problem of its own: round it "
            f"to at most {MOST_LEVELS}"
        )
    weights = grade_weights(grades, sizes, loss, gains, level_weights) * share[grades.list]
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


def tells_something(
    least: NDArray[Any], most: NDArray[Any], gains: NDArray[np.float64], level_weights: NDArray[np.float64] | None
) -> NDArray[np.bool_]:
    """Whether a level that counts lies between the samples of a list, by the least and the highest level of each."""
    counts = np.ones(gains.size - 1) if level_weights is None else np.asarray(level_weights) > 0
    n_up_to = np.concatenate([[0], np.cumsum(counts)])
    found: NDArray[np.bool_] = n_up_to[least] < n_up_to[most]
    return found


class ListGrades(NamedTuple):
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
    def of(cls, labels: NDArray[Any], offsets: NDArray[np.int64]) -> ListGrades:
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


def grade_weights(
    grades: ListGrades,
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
