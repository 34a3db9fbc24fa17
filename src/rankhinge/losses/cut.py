r"""Losses of the first k places only: not suitable, but inference is exact all the same (see `inference.by_cut`).

With m positives among the first k places, ``M = min(k, P)`` and gains ``g(1), g(2), …``,

.. math:: \Delta = \frac{1}{Z} \Big[ \sum_{m < i \le M} g(i) + \sum_{i \le m} \mathrm{part}(i, a_i) \Big]

is the metric of a perfect ranking minus the metric of this ranking, and therefore 0 for a perfect one. Losses that only
count m have no parts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge.losses.base import BY_CUT, RankingLoss, decimal

__all__ = ["CutFormulas", "CutLoss", "parse_depth"]

# The most steps for one list. Beyond it, the soft loss is the better choice.
_MOST_STEPS = 10**9


class CutFormulas(NamedTuple):
    """A loss with a cut as plain functions of numbers, arrays or tensors.

    ``step`` and ``part`` are as in `RankingLoss` (None: the loss only counts positives). ``gain(i, table)`` is the
    value of the i-th positive when nothing stands above it, ``norm(n_positives, depth, ideal)`` is Z, and `ideal` is
    the sum of the gains up to M.
    """

    step: Callable[..., Any] | None
    part: Callable[..., Any] | None
    gain: Callable[..., Any]
    norm: Callable[..., Any]


class CutLoss(RankingLoss):
    """Base class of the losses with a cut.

    Parameters
    ----------
    k : int, float or str
        How many places count: a number, or a share of each list (a float in (0, 1], or ``"1%"``), which means
        ``max(1, ⌈share · n⌉)`` of n places. It never exceeds the length of the list. With a single list, prefer a
        share: unlike a number, it carries over to a test set of another size.
    """

    way = BY_CUT
    word = "cut"
    # The loss to recommend where a cut is too deep, as code.
    _soft = "SoftNDCG(k)"

    def __init__(self, k: int | float | str) -> None:
        self._k = parse_depth(k)
        self.name = self.metric = f"{self.word}@{_text(self._k)}"

    @property
    def k(self) -> int | float:
        """How many places count, as a number or as a share of the list."""
        return self._k

    @staticmethod
    def gain_formula(i: Any, table: Any) -> Any:
        return 1.0 + 0.0 * i

    @staticmethod
    def norm_formula(n_positives: Any, depth: Any, ideal: Any) -> Any:
        return ideal

    def cut_formulas(self) -> CutFormulas:
        """The formulas."""
        return CutFormulas(self.step_formula, self.part_formula, self.gain_formula, self.norm_formula)

    def formulas(self, prepare: Callable[[Any], Any] = lambda function: function) -> Any:
        raise TypeError(f"{self!r} depends on the first places only and has no step")

    def step(self, j: int, i: int, n_positives: int, n_negatives: int) -> float:
        raise NotImplementedError(f"{type(self).__name__} depends on the first places only and has no step")

    def depths(self, n_samples: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many places count in lists of these lengths (0: as many as there are positives)."""
        sizes = np.asarray(n_samples, np.int64)
        if isinstance(self._k, int):
            return np.minimum(sizes, min(self._k, np.iinfo(np.int64).max))
        # 0.07 of 100 must not become 8 by rounding.
        return np.minimum(sizes, np.maximum(1, np.ceil(self._k * sizes * (1 - 4e-16)).astype(np.int64)))

    def require_cheap(self, depth: int, n_positives: int) -> None:
        """Raise a ValueError if inference on a list would take too long."""
        if self.step_formula is not None and depth * min(depth, n_positives) > _MOST_STEPS:
            raise ValueError(
                f"{self!r} looks at {depth} places, {min(depth, n_positives)} of which may be positive: more than "
                f"{_MOST_STEPS:.0e} steps. Choose fewer places, or the soft cut: losses.{self._soft}"
            )

    def from_counts(self, counts_above: Any, n_negatives: int) -> float:
        """Loss of the ranking in which ``counts_above[i - 1]`` negatives stand above the i-th best positive."""
        above = np.asarray(counts_above)
        n_positives = above.size
        depth = int(self.depths(np.array([n_positives + n_negatives]))[0]) or n_positives
        inside, most = np.arange(1, n_positives + 1) + above <= depth, min(depth, n_positives)
        table, i = self.table(n_positives + n_negatives + 1), np.arange(1, most + 1)
        gains = np.asarray(self.gain_formula(i, table), np.float64)
        m = int(np.count_nonzero(inside))
        lost = float(gains[m:].sum())
        if self.part_formula is not None:
            lost += float(np.sum(self.part_formula(i[:m], above[:m], n_positives, n_negatives, table)))
        return lost / float(self.norm_formula(n_positives, depth, gains.sum()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._k!r})"


def parse_depth(k: Any) -> int | float:
    """A number of places as an int, a share as a float below 1; a ValueError for anything else."""
    given = k
    if isinstance(k, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*(%?)\s*", k)
        if found is None:
            raise ValueError(_complaint(given))
        number = float(found[1])
        k = number / 100 if found[2] else number if "." in found[1] else int(found[1])
    if isinstance(k, bool | np.bool_) or not isinstance(k, Real) or not math.isfinite(k):
        raise ValueError(_complaint(given))
    if isinstance(k, Integral):
        if k < 1:
            raise ValueError(_complaint(given))
        return int(k)
    share = float(k)
    if not 0 < share <= 1:
        raise ValueError(_complaint(given))
    return share


def _complaint(k: Any) -> str:
    return f"k is {k!r}: it must be a number of places, at least 1, or a share of the list: a float in (0, 1] or '1%'"


def _text(k: int | float) -> str:
    """How a depth is written in a name."""
    if isinstance(k, int):
        return str(k)
    percent = round(100 * k, 12)
    return f"{decimal(percent)}%" if percent / 100 == k else decimal(k)
