"""The formulas: the value of each list, nan where it is undefined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rankhinge.metrics._lists import Lists
from rankhinge.metrics._policies import Depth, Floats, depths_of
from rankhinge.metrics._ranking import Ranking, ranked

_LARGE_EXPONENT = 900


def precisions_at_ranks(lists: Lists, ties: str) -> tuple[Ranking, Floats]:
    """The precision at the rank of each relevant sample, averaged over ties. 0 at other ranks."""
    r = ranked(lists, ties)
    if ties == "threshold":
        last_rank = r.rank - r.place + r.tied - 1
        precision = r.gain * (r.gain_above + r.tied_gain) / last_rank
    else:
        # The sample at this place is relevant with probability m/g (m of the g tied ones are), and
        # then each sample before it in the group is so with probability (m - 1) / (g - 1).
        before = r.place * (r.tied_gain - 1) / np.maximum(r.tied - 1, 1)
        precision = r.tied_gain / r.tied * (r.gain_above + 1 + before) / r.rank
    return r, precision


def reciprocal_ranks(lists: Lists, ties: str) -> Floats:
    r, probability = first_relevant(lists, ties)
    return r.sum(probability / r.rank)


def first_relevant(lists: Lists, ties: str) -> tuple[Ranking, Floats]:
    """The probability that the first relevant sample of the list stands at each place."""
    r = ranked(lists, ties)
    first = (r.gain_above == 0) & (r.tied_gain > 0)
    place, tied, relevant = r.place[first], r.tied[first], r.tied_gain[first]
    # P(the first of the group's relevant samples is at this place): none at the places before,
    # where a place after s irrelevant ones is irrelevant with probability (g - m - s) / (g - s).
    drawn = np.maximum(place - 1, 0)
    irrelevant_left = np.maximum(tied - relevant - drawn, 0)
    none_yet = np.where(place > 0, irrelevant_left / (tied - drawn), 1.0)
    probability = _product_within_groups(none_yet, place) * relevant / (tied - place)
    values = np.zeros_like(r.rank)
    values[first] = probability
    return r, values


def _product_within_groups(factors: Floats, place: Floats) -> Floats:
    """Cumulative product that restarts at each place 0, in log2(longest group) array passes."""
    product, shift = factors.copy(), 1
    while (rows := np.flatnonzero(place >= shift)).size:
        product[rows] *= product[rows - shift]
        shift *= 2
    return product


def aucs(lists: Lists, ties: str) -> Floats:
    r = ranked(lists, ties)
    n_positives, n_negatives = lists.count(lists.gains > 0), lists.count(lists.gains == 0)
    sizes = np.diff(r.starts, append=len(r.rank))
    negatives_above = r.rank - r.place - 1 - r.gain_above
    tied_negatives = r.tied - r.tied_gain
    negatives_below = np.repeat(n_negatives, sizes) - negatives_above - tied_negatives
    return ratio(r.sum(r.gain * (negatives_below + tied_negatives / 2)), n_positives * n_negatives)


def ndcgs(lists: Lists, ties: str, k: Depth | None) -> Floats:
    depths = None if k is None else depths_of(k, lists.sizes)
    return _discounted(lists, ties, lambda rank: 1 / np.log2(1 + rank), True, depths)


def rbps(lists: Lists, ties: str, persistence: float, normalize: bool) -> Floats:
    if not 0 <= persistence < 1:
        raise ValueError(f"persistence is {persistence}, it must be at least 0 and below 1")
    return _discounted(lists, ties, lambda rank: (1 - persistence) * persistence ** (rank - 1), normalize)


def _discounted(
    lists: Lists, ties: str, discount: Callable[[Floats], Floats], normalize: bool, depths: Floats | None = None
) -> Floats:
    """Sum of gain times discount(rank) over the first places. With `normalize`, divided by its largest value."""
    if normalize:
        lists = _within_range(lists)
    r = ranked(lists, ties)
    value = r.sum(
        r.tied_gain / r.tied * discount(r.rank) * _inside(r.rank, np.diff(r.starts, append=len(r.rank)), depths)
    )
    if not normalize:
        return value
    # The mean gain of a tied group can be an ulp above each of its gains.
    return np.minimum(ratio(value, _greatest(lists, discount, depths)), 1.0)


def _within_range(lists: Lists) -> Lists:
    """The same lists with gains scaled so that sums do not overflow and small gains do not vanish.

    Each list is scaled by a power of two, which keeps all digits.
    """
    largest = np.zeros(len(lists.queries))
    np.maximum.at(largest, lists.list_index, lists.gains)
    exponents = np.frexp(largest)[1]
    exponents[np.abs(exponents) < _LARGE_EXPONENT] = 0
    if not exponents.any():
        return lists
    return replace(lists, gains=np.ldexp(lists.gains, -exponents[lists.list_index]))


def _inside(rank: Floats, counts: NDArray[np.intp], depths: Floats | None) -> Floats:
    """1 for the ranks that count, given how many count in each list."""
    return np.ones_like(rank) if depths is None else (rank <= np.repeat(depths, counts)).astype(np.float64)


def _greatest(lists: Lists, discount: Callable[[Floats], Floats], depths: Floats | None) -> Floats:
    """Sum of gain times discount(rank) with the largest gains first. Rows without gain need no rank."""
    rows = np.flatnonzero(lists.gains)
    rows = rows[np.lexsort((-lists.gains[rows], lists.list_index[rows]))]
    list_index, n_lists = lists.list_index[rows], len(lists.queries)
    counts = np.bincount(list_index, minlength=n_lists)
    rank = (np.arange(rows.size) - np.repeat(np.cumsum(counts) - counts, counts) + 1).astype(np.float64)
    values: Floats = lists.gains[rows] * discount(rank) * _inside(rank, counts, depths)
    return np.bincount(list_index, values, n_lists).astype(np.float64)


def ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Divide, with nan where the denominator is 0."""
    undefined = np.full_like(numerator, np.nan)
    return np.divide(numerator, denominator, out=undefined, where=denominator > 0)
