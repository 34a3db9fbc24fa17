r"""Assignments that change one column at a time: the dynamic Hungarian method.

Bags are assigned to places with coefficients c; a bag with highest score h and lowest score l is worth
:math:`\max(c\,h, c\,l)` at a place. When the coefficient of one place changes, the assignment of all others is still
optimal with its dual variables, and one shortest augmenting path mends the rest: O(n²) where a new assignment takes
O(n³) (Mills-Tettey, Stentz, Dias 2007; Behl et al. 2015, appendix C).
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from rankhinge._jit import NONE, inner, kernel

__all__ = ["Assignment"]

# No place. Not a literal, which would be a type of its own.


@inner
def _worth(highest, lowest, coefficient):
    return coefficient * (highest if coefficient >= 0.0 else lowest)


@kernel
def _change(highest, lowest, coefficients, place, new, bag_at, of_bags, of_places):
    """Give a place another coefficient, and mend the assignment.

    The dual variables stay such that ``of_bags[b] + of_places[p] >= worth(b, p)``, with equality where b is at p.
    """
    n = highest.size
    coefficients[place] = new
    free = bag_at[place]
    of_places[place] = -np.inf
    for b in range(n):
        of_places[place] = max(of_places[place], _worth(highest[b], lowest[b], new) - of_bags[b])
    # Dijkstra from the bag that has lost its place to that place: distances are what the bounds leave between them.
    distance, before, done = np.full(n, np.inf), np.full(n, NONE), np.zeros(n, np.bool_)
    bag, at, reached = free, NONE, 0.0
    while at != place:
        nearest = NONE
        for p in range(n):
            if done[p]:
                continue
            worth = _worth(highest[bag], lowest[bag], coefficients[p])
            length = reached + (of_bags[bag] + of_places[p] - worth)
            if length < distance[p]:
                distance[p], before[p] = length, at
            if nearest < 0 or distance[p] < distance[nearest]:
                nearest = p
        at, reached = nearest, distance[nearest]
        done[at] = True
        bag = bag_at[at]
    for p in range(n):
        if done[p] and p != place:
            of_bags[bag_at[p]] -= reached - distance[p]
            of_places[p] += reached - distance[p]
    of_bags[free] -= reached
    while at >= 0:
        previous = before[at]
        bag_at[at] = free if previous < 0 else bag_at[previous]
        at = previous


class Assignment:
    """The best assignment of n bags to n places, kept while coefficients change.

    Parameters
    ----------
    highest, lowest : ndarray of shape (n,)
        The best and the worst score of each bag.
    coefficient : float
        Of all places, to begin with: any assignment is as good as another then.

    Examples
    --------
    >>> import numpy as np
    >>> found = Assignment(np.array([3.0, 5.0]), np.array([1.0, -2.0]), 1.0)
    >>> found.change(0, -1.0)
    >>> found.value()  # the second bag is worth 2 at the place with -1, the first 3 at the other
    5.0
    """

    def __init__(self, highest: NDArray[np.float64], lowest: NDArray[np.float64], coefficient: float) -> None:
        n = highest.size
        self._scores = np.ascontiguousarray(highest), np.ascontiguousarray(lowest)
        self.coefficients = np.full(n, float(coefficient))
        self._bag_at = np.arange(n)
        self._duals = self._worth(), np.zeros(n)

    def _worth(self) -> NDArray[np.float64]:
        """The worth of each place with its bag."""
        highest, lowest = self._scores
        c = self.coefficients
        return c * np.where(c >= 0, highest[self._bag_at], lowest[self._bag_at])

    def change(self, place: int, coefficient: float) -> None:
        """Give a place another coefficient."""
        _change(*self._scores, self.coefficients, place, float(coefficient), self._bag_at, *self._duals)

    def value(self) -> float:
        """What the bags are worth at their places together."""
        return float(self._worth().sum())

    def of_bags(self) -> NDArray[np.float64]:
        """The coefficient of each bag's place."""
        found = np.empty_like(self.coefficients)
        found[self._bag_at] = self.coefficients
        return found

    def copy(self) -> Self:
        """An assignment that changes on its own."""
        twin = type(self).__new__(type(self))
        twin._scores = self._scores
        twin.coefficients, twin._bag_at = self.coefficients.copy(), self._bag_at.copy()
        twin._duals = self._duals[0].copy(), self._duals[1].copy()
        return twin
