"""The formulas of metrics of the first places, or of the best negatives: one value for each list."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge.metrics._lists import Lists
from rankhinge.metrics._policies import Depth, Floats, check_choice, depths_of
from rankhinge.metrics._ranking import Ranking, ranked
from rankhinge.metrics._values import first_relevant, precisions_at_ranks, ratio


def found_at(lists: Lists, ties: str, depths: Floats) -> Floats:
    """The number of relevant samples among the first places of each list, averaged over ties."""
    r = ranked(lists, ties)
    return r.sum(r.tied_gain / r.tied * (r.rank <= _of_rows(r, depths)))


def precisions_at_k(lists: Lists, ties: str, k: Depth) -> Floats:
    depths = depths_of(k, lists.sizes)
    return found_at(lists, ties, depths) / depths


def recalls_at_k(lists: Lists, ties: str, k: Depth) -> Floats:
    return ratio(found_at(lists, ties, depths_of(k, lists.sizes)), lists.count(lists.gains > 0))


def f1s_at_k(lists: Lists, ties: str, k: Depth) -> Floats:
    depths = depths_of(k, lists.sizes)
    return 2 * found_at(lists, ties, depths) / (depths + lists.count(lists.gains > 0))


def hits_at_k(lists: Lists, ties: str, k: Depth) -> Floats:
    r, probability = first_relevant(lists, ties)
    return r.sum(probability * (r.rank <= _of_rows(r, depths_of(k, lists.sizes))))


def r_precisions(lists: Lists, ties: str) -> Floats:
    n_positives = lists.count(lists.gains > 0)
    return ratio(found_at(lists, ties, n_positives), n_positives)


def average_precisions(lists: Lists, ties: str, k: Depth | None, divide_by: str) -> Floats:
    r, precision = precisions_at_ranks(lists, ties)
    n_positives = lists.count(lists.gains > 0)
    if k is None:
        return ratio(r.sum(precision), n_positives)
    check_choice("divide_by", divide_by, ("best", "positives"))
    depths = depths_of(k, lists.sizes)
    value = r.sum(precision * (r.rank <= _of_rows(r, depths)))
    return ratio(value, np.minimum(depths, n_positives) if divide_by == "best" else n_positives)


def bedrocs(lists: Lists, ties: str, alpha: float) -> Floats:
    if not 0 < alpha < np.inf:
        raise ValueError(f"alpha is {alpha}, it must be positive and finite")
    n, n_positives = lists.sizes, lists.count(lists.gains > 0)
    r = ranked(lists, ties)
    reached = r.sum(r.tied_gain / r.tied * np.exp(-alpha * r.rank / _of_rows(r, n)))
    # Sums of a geometric series: over the first P ranks, and over the last P.
    first = -np.expm1(-alpha * n_positives / n) / np.expm1(alpha / n)
    last = first * np.exp(-alpha * (n - n_positives) / n)
    return np.clip(ratio(reached - last, first - last), 0.0, 1.0)


def partial_aucs(lists: Lists, ties: str, max_fpr: float) -> Floats:
    if not 0 < max_fpr <= 1:
        raise ValueError(f"max_fpr is {max_fpr}, it must be above 0 and at most 1")
    each = _each_negative(lists, ties)
    n_positives, n_negatives = lists.count(lists.gains > 0), lists.count(lists.gains == 0)
    bound = max_fpr * n_negatives
    weight = np.clip(bound[each.list_index] - each.number + 1, 0.0, 1.0)
    return ratio(each.sum(weight * each.positives_above, lists), n_positives * bound)


def top_pushes(lists: Lists, ties: str) -> Floats:
    each = _each_negative(lists, ties)
    n_positives, n_negatives = lists.count(lists.gains > 0), lists.count(lists.gains == 0)
    above = each.sum((each.number == 1) * each.positives_above, lists)
    return ratio(np.where(n_negatives > 0, above, np.nan), n_positives)


def p_norm_pushes(lists: Lists, ties: str, p: float) -> Floats:
    if not 1 <= p < np.inf:
        raise ValueError(f"p is {p}, it must be at least 1 and finite")
    check_choice("ties", ties, ("worst", "best", "index"))
    each = _each_negative(lists, ties)
    n_positives, n_negatives = lists.count(lists.gains > 0), lists.count(lists.gains == 0)
    below = 1.0 - each.positives_above / np.maximum(n_positives[each.list_index], 1)
    pushed: Floats = 1.0 - ratio(each.sum(below**p, lists), n_negatives)
    return pushed


class _Negatives(NamedTuple):
    """The irrelevant samples, best first in each list: their places, and how many relevant ones are above each."""

    list_index: NDArray[np.intp]
    number: Floats
    positives_above: Floats

    def sum(self, values: Floats, lists: Lists) -> Floats:
        return np.bincount(self.list_index, values, len(lists.queries)).astype(np.float64)


def _each_negative(lists: Lists, ties: str) -> _Negatives:
    relevant = lists.gains > 0
    tie_break = {"worst": (relevant,), "best": (~relevant,)}.get(ties, ())
    order = np.lexsort((*tie_break, -lists.scores, lists.list_index))
    index, scores, positive = lists.list_index[order], lists.scores[order], relevant[order]
    new_list = np.append(True, index[1:] != index[:-1])
    new_group = new_list | np.append(True, scores[1:] != scores[:-1]) if ties == "average" else np.ones_like(new_list)
    list_start, group_start = np.flatnonzero(new_list)[np.cumsum(new_list) - 1], np.flatnonzero(new_group)
    group = np.cumsum(new_group) - 1
    before: NDArray[np.int64] = np.cumsum(positive) - positive
    above = before[group_start[group]] - before[list_start]
    tied_positives = np.add.reduceat(positive.astype(np.float64), group_start)[group]
    tied_negatives = np.bincount(group)[group] - tied_positives
    negatives_before: NDArray[np.int64] = np.cumsum(~positive) - ~positive
    place = negatives_before - negatives_before[group_start[group]] + 1
    # In a random order, the tied positives fall evenly into the gaps between the tied negatives.
    expected = above + tied_positives * place / (tied_negatives + 1)
    rows = ~positive
    number = (negatives_before - negatives_before[list_start] + 1).astype(np.float64)
    return _Negatives(index[rows], number[rows], expected[rows])


def _of_rows(r: Ranking, values: Floats) -> Floats:
    """A value of each list, for each of its rows."""
    return np.repeat(values, np.diff(r.starts, append=len(r.rank)))
