"""Lists in ranked order, with equal scores ordered by the policy for ties."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankhinge.metrics._lists import Lists
from rankhinge.metrics._policies import Floats


@dataclass(frozen=True)
class Ranking:
    """Rows list by list, ranked within each list. All arrays except `starts` have the same length.

    Rows whose order is left open form a tied group. Where ties are broken, every row is its own group. One formula for
    groups therefore serves all policies. Groups without any gain, which no metric counts, may be missing.
    """

    starts: NDArray[np.intp]  # (n_lists,), the first row of each list
    gain: Floats
    rank: Floats  # from 1 in each list
    place: Floats  # from 0 in each tied group
    tied: Floats  # size of the row's tied group
    tied_gain: Floats  # sum of the gains of the row's tied group
    gain_above: Floats  # sum of the gains of the groups above in the same list

    def sum(self, values: Floats) -> Floats:
        """Sum over the rows of each list."""
        return np.add.reduceat(values, self.starts)


def ranked(lists: Lists, ties: str) -> Ranking:
    """Sort by (list, descending score), ties as the policy says."""
    if len(lists.queries) == 1:
        ranking = _untied(lists)
        if ranking is not None:
            return ranking
    tie_break = {"worst": (lists.gains,), "best": (-lists.gains,)}.get(ties, ())
    order = np.lexsort((*tie_break, -lists.scores, lists.list_index))
    list_index, scores, gain = lists.list_index[order], lists.scores[order], lists.gains[order]
    begins_list = np.append(True, list_index[1:] != list_index[:-1])
    begins_group = np.ones(len(order), dtype=bool)
    if ties in ("average", "threshold"):
        begins_group = begins_list | np.append(True, scores[1:] != scores[:-1])

    rows = np.arange(len(order))
    starts, group_starts = np.flatnonzero(begins_list), np.flatnonzero(begins_group)
    group = np.cumsum(begins_group) - 1
    first_in_group = group_starts[group]
    gain_before = np.cumsum(gain) - gain
    return Ranking(
        starts=starts,
        gain=gain,
        rank=(rows - starts[list_index] + 1).astype(np.float64),
        place=(rows - first_in_group).astype(np.float64),
        tied=np.bincount(group)[group].astype(np.float64),
        tied_gain=np.add.reduceat(gain, group_starts)[group],
        gain_above=gain_before[first_in_group] - gain_before[starts[list_index]],
    )


def _untied(lists: Lists) -> Ranking | None:
    """The rows of one list that have a gain, or None if there are none or some are tied with others.

    This is much faster than sorting all rows with their gains: it sorts plain values and looks up only few rows.
    """
    rows = np.flatnonzero(lists.gains)
    rows = rows[np.argsort(-lists.scores[rows])]
    scores, gain = lists.scores[rows], lists.gains[rows]
    others = lists.scores.copy()
    others[rows] = -np.inf
    others.sort()
    above = others.size - np.searchsorted(others, scores, side="right")
    untied = np.array_equal(above, others.size - np.searchsorted(others, scores, side="left"))
    if rows.size == 0 or not untied or np.any(scores[1:] == scores[:-1]):
        return None
    place = np.arange(rows.size, dtype=np.float64)
    ones = np.ones_like(place)
    return Ranking(
        starts=np.zeros(1, dtype=np.intp),
        gain=gain,
        rank=above + place + 1.0,
        place=np.zeros_like(place),
        tied=ones,
        tied_gain=gain,
        gain_above=np.cumsum(gain) - gain,
    )
