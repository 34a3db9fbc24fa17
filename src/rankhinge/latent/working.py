"""The candidates that matter: those that have been the best of their bag so far, or nearly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankhinge.latent.point import Point
from rankhinge.latent.whole import Whole

__all__ = ["WorkingSets"]

# How many of a bag's best candidates join the working set at a time.
_N_BEST = 2
# With fewer candidates in a bag there is little to leave out.
_WORTH_IT = 4


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
        self.in_use = wanted and n_candidates >= _WORTH_IT * n_bags
        whole.n_best = _N_BEST if self.in_use else 1
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
