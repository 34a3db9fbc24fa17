"""The candidates that matter: those that have been the best of their bag so far, or nearly."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge.latent.point import Point
from rankhinge.latent.whole import Whole

__all__ = ["WORKING", "WorkingSets"]


class WorkingPolicy(NamedTuple):
    """The numbers of working sets: when they are worth it, how they grow, and how far they are solved.

    Attributes
    ----------
    candidates_a_bag : int
        With fewer candidates in a bag there is little to leave out.
    n_best : int
        How many of a bag's best candidates join the set at a time.
    few, part, last : float
        While a sweep finds more than `few` of the bags with a new best candidate, the set is solved to `part` of the
        gap that the sweep found; after that to `last` of the tolerance.
    first_tol : float
        To which gap the first set is solved, if nothing is known of the problem.
    sweeps : int
        The most sweeps of a problem.
    """

    candidates_a_bag: int = 4
    n_best: int = 2
    few: float = 0.02
    part: float = 0.3
    last: float = 0.8
    first_tol: float = 0.1
    sweeps: int = 50


WORKING = WorkingPolicy()


class WorkingSets:
    """A working set for each problem, if sets are wanted and bags have enough candidates; else all see all.

    Parameters
    ----------
    whole : Whole
    wanted : bool

    Attributes
    ----------
    in_use : bool
    """

    def __init__(self, whole: Whole, wanted: bool) -> None:
        self.whole = whole
        n_candidates, n_bags = whole.features.n_samples, whole.offsets.size - 1
        self.in_use = wanted and n_candidates >= WORKING.candidates_a_bag * n_bags
        whole.n_best = WORKING.n_best if self.in_use else 1
        self._sets = np.zeros((len(whole.problems) if self.in_use else 1, n_candidates), np.bool_)

    def begin(self, k: int, fixed: NDArray[np.int64], start: Point | None) -> None:
        """Add the best candidates at the start, or the first of each bag."""
        if not self.in_use:
            return
        free = fixed < 0
        if start is not None and start.best is not None:
            places = start.best[free].ravel()
            self._sets[k, places[places >= 0]] = True
        else:
            self._sets[k, self.whole.problems[k].start[free]] = True

    def join(self, k: int, point: Point, fixed: NDArray[np.int64]) -> int:
        """Add the best candidates of free members; how many best ones were not in it."""
        assert point.best is not None
        if not self.in_use:
            return 0
        free = point.best[fixed < 0]
        n_new = int((~self._sets[k, free[:, 0]]).sum())
        places = free.ravel()
        self._sets[k, places[places >= 0]] = True
        return n_new

    def seen(self, fixed: dict[int, NDArray[np.int64]]) -> NDArray[np.int64] | None:
        """The candidates that some problems see, by what each has fixed; None: all."""
        whole = self.whole
        if whole.sees_all:
            return None
        seen = np.zeros(whole.features.n_samples, np.bool_)
        for k, places in fixed.items():
            wanted = self._sets[k] if self.in_use else np.ones_like(seen)
            if whole.allowed is not None:
                wanted = wanted & whole.allowed
            seen |= whole.problems[k].needed(places, wanted)
        return None if seen.all() else np.flatnonzero(seen)
