"""Discounted cumulative gain with any convex discount, and the usual ones by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankhinge.losses.base import NO_TABLE, Formulas, RankingLoss
from rankhinge.losses.suitability import judge_loss

__all__ = ["DCG", "NDCG", "RBP", "SoftNDCG"]

# Numbers of pairs divided by discounts must not overflow.
_LEAST_DISCOUNT = 1e-250
_BLOCK = 1 << 16
# Beyond this rank kernels compute a discount that has a formula. A table of all ranks would take as much memory as the
# scores; this one stays in the cache, so that to compute the others costs no more time than to read them.
TABULATED = 1 << 20


class DCG(RankingLoss):
    r"""Discounted cumulative gain with any convex discount: ``Δ = 1 - Σ_i D(i + a_i) / Σ_{i ≤ P} D(i)``.

    .. math:: t(j, i) = \frac{D(i + j) - D(i + j - 1)}{\sum_{k \le P} D(k)}

    Parameters
    ----------
    discount : callable or array of shape (n,)
        ``discount(ranks)`` maps an array of ranks (from 1) to their discounts. An array holds ``D(1), D(2), …``, for
        lists of at most that length. The loss is suitable if the discount is convex and non-increasing with a positive
        sum (see `check_suitable`).

    Examples
    --------
    >>> import numpy as np
    >>> from rankhinge.losses import DCG, check_suitable
    >>> check_suitable(DCG(lambda rank: 1.0 / rank), n_positives=3, n_negatives=5).suitable
    True
    """

    name = "dcg"
    has_discounts = True
    is_graded = True
    # Of a formula for discounts beyond the table, which it reads at TABULATED.
    _constant = 0.0
    _near: NDArray[np.float64] = NO_TABLE

    @staticmethod
    def step_formula(scale: Any, j: Any, i: Any, n_positives: Any, n_negatives: Any, table: Any) -> Any:
        return scale * (table[i + j] - table[i + j - 1])

    @staticmethod
    def part_formula(i: Any, above: Any, n_positives: Any, n_negatives: Any, table: Any) -> Any:
        return table[i] - table[i + above]

    @staticmethod
    def divisor_formula(n_positives: Any, n_negatives: Any, ideal: Any, table: Any) -> Any:
        return ideal

    def __init__(self, discount: Callable[[NDArray[Any]], ArrayLike] | ArrayLike) -> None:
        # The user's array may change later. The table must not.
        self._discount = discount if callable(discount) else copy(discount)
        self._begin()

    def _begin(self) -> None:
        """Nothing is tabulated yet."""
        self._table = self._near = NO_TABLE
        self._convex_up_to = 1

    @property
    def discount(self) -> Callable[[NDArray[Any]], ArrayLike] | ArrayLike:
        """D, as given."""
        return self._discount

    def table(self, length: int) -> NDArray[np.float64]:
        """``D(0) = 0, D(1), …``: at least `length` entries. They are kept for the next call."""
        table = self._table
        if table.size < length:
            try:
                # An eighth more than needed, so that slowly growing lists do not rebuild the table each time.
                table = self._tabulate(max(64, length + length // 8) if callable(self.discount) else length)
            except Exception:
                # A discount need not make sense beyond the list.
                table = self._tabulate(length)
            self._table = table
        # Not the attribute: another thread may have stored a shorter table in the meantime.
        return table

    def far(self, n_samples: int) -> tuple[Formulas, NDArray[np.float64]] | None:
        """Formulas that compute the discounts beyond the first ones, if there are such."""
        # A subclass may have another discount.
        found = _FAR.get(type(self))
        if found is None or n_samples < TABULATED:
            return None
        near = self._near
        if near.size <= TABULATED:
            near = self._near = np.append(self._tabulate(TABULATED), self._constant)
        return found, near

    def _tabulate(self, size: int) -> NDArray[np.float64]:
        table = np.zeros(size)
        for start in range(1, size, _BLOCK):
            stop = min(start + _BLOCK, size)
            table[start:stop] = self._discounts(start, stop)
        return table

    def _discounts(self, start: int, stop: int) -> NDArray[np.float64]:
        """``D(start), …, D(stop - 1)``, checked. Computed by blocks, because a table may be as long as a list."""
        if callable(self.discount):
            values = np.asarray(self.discount(np.arange(start, stop)), dtype=np.float64)
            if values.shape != (stop - start,):
                raise ValueError(f"the discount of {stop - start} ranks has shape {values.shape}")
        else:
            given = np.asarray(self.discount, dtype=np.float64)
            if given.ndim != 1 or given.size < stop - 1:
                raise ValueError(
                    f"the discount has {given.size} entries, but a list of {stop - 1} samples needs one for each rank"
                )
            values = given[start - 1 : stop - 1]
        wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
        if wrong.size:
            rank = start + int(wrong[0])
            raise ValueError(f"discount({rank}) is {values[wrong[0]]}: it must be finite and not negative")
        if start == 1 and not values[0] > 0:
            raise ValueError(f"discount(1) is {values[0]}: it must be positive")
        if start == 1 and values[0] < _LEAST_DISCOUNT:
            raise ValueError(
                f"discount(1) is {values[0]}, so small that ratios overflow: multiply all discounts by a constant"
            )
        return values

    def require_suitable(self, n_samples: int) -> None:
        """Whether the discount is convex and non-increasing on ``1 … n_samples``, checked once for each new length."""
        if type(self) in _FAR:
            # What has a formula is known to be convex and falling; its table is looked at all the same.
            n_samples = min(n_samples, TABULATED - 1)
        if n_samples <= self._convex_up_to:
            return
        table = self.table(n_samples + 1)
        # A discount may be a difference of numbers as large as the first discount.
        rounding = 8 * np.finfo(np.float64).eps * float(table[1])
        for start in range(2, n_samples + 1, _BLOCK):
            stop = min(start + _BLOCK, n_samples + 1)
            before, here = table[start - 1 : stop - 1], table[start:stop]
            bent = np.zeros(here.size, np.bool_)
            bent[1 if start == 2 else 0 :] = (here - 2 * before + table[start - 2 : stop - 2] < -2 * rounding)[
                1 if start == 2 else 0 :
            ]
            wrong = np.flatnonzero((here - before > rounding) | bent)
            if wrong.size:
                rank = start + int(wrong[0])
                reason = f"the discount is not convex and falling about rank {rank}"
                reason = judge_loss(self, 1, rank - 1).reason or reason
                raise ValueError(f"{self!r} is not suitable for lists of {n_samples} samples: {reason}")
        self._convex_up_to = n_samples

    def discounts(self, ranks: NDArray[np.int64], n_samples: NDArray[np.int64]) -> NDArray[np.float64]:
        """``D(rank)``."""
        return self.table(int(np.max(ranks, initial=0)) + 1)[ranks]

    def ideals(self, n_relevant: NDArray[np.int64], n_samples: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """``Σ_{i ≤ P} D(i)``."""
        most = int(np.max(n_relevant, initial=0))
        return np.concatenate([[0.0], np.cumsum(self.table(most + 1)[1 : most + 1])])[n_relevant]

    def __getstate__(self) -> dict[str, Any]:
        # The table may be as long as the longest list: a copy builds its own when it needs one.
        return {**self.__dict__, "_table": NO_TABLE, "_near": NO_TABLE, "_convex_up_to": 1}

    def __repr__(self) -> str:
        size = 0 if callable(self.discount) else np.size(self.discount)
        return f"{type(self).__name__}({self.discount!r})" if size <= 8 else f"{type(self).__name__}({size} discounts)"


class NDCG(DCG):
    """Normalised DCG: ``D(i) = 1 / log2(1 + i)`` (Järvelin and Kekäläinen 2002).

    Examples
    --------
    >>> from rankhinge import losses, ranking_loss
    >>> round(ranking_loss([5, 4, 3, 2, 1], [0, 1, 0, 1, 1], losses.NDCG()), 4)
    0.3203
    """

    name = "ndcg"

    def __init__(self) -> None:
        super().__init__(_log_discount)

    def __repr__(self) -> str:
        return "NDCG()"


class SoftNDCG(DCG):
    """A convex version of NDCG@k: ``D(i) = max(1 / log2(1 + i) - 1 / log2(k + 2), 0)``.

    This is a metric of its own. It bounds the usual NDCG@k (`NDCGAt`, with its hard cut) on neither side.

    Parameters
    ----------
    k : int
        Ranks beyond `k` do not count.

    Examples
    --------
    >>> from rankhinge import losses, ranking_loss
    >>> round(ranking_loss([5, 4, 3, 2, 1], [0, 1, 0, 1, 1], losses.SoftNDCG(3)), 4)
    0.7613
    """

    def __init__(self, k: int) -> None:
        if not isinstance(k, Integral) or k < 1:
            raise ValueError(f"k is {k!r}: it must be an integer of at least 1")
        self._k: int = int(k)
        self.name = f"soft-ndcg@{self._k}"
        self._constant = 1.0 / math.log2(self._k + 2)
        self._begin()

    @property
    def k(self) -> int:
        """Ranks beyond k do not count."""
        return self._k

    # Not an attribute: skops could not write a loss that refers to itself.
    @property
    def discount(self) -> Callable[[NDArray[Any]], ArrayLike]:
        """D."""
        return self._soft_discount

    def _soft_discount(self, ranks: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.maximum(_log_discount(ranks) - self._constant, 0.0)

    def __repr__(self) -> str:
        return f"SoftNDCG(k={self.k})"


class RBP(DCG):
    """Rank-biased precision, normalised: ``D(i) = ρ^(i - 1)`` (Moffat and Zobel 2008).

    Parameters
    ----------
    persistence : float, default 0.9
        ρ in (0, 1): the probability that a reader continues to the next item. The metric of this loss is
        ``metrics.rbp(…, persistence=0.9, normalize=True)``; by default `metrics.rbp` is not normalised and has another
        persistence.

    Examples
    --------
    >>> from rankhinge import losses, ranking_loss
    >>> round(ranking_loss([5, 4, 3, 2, 1], [0, 1, 0, 1, 1], losses.RBP(0.9)), 4)
    0.1568
    """

    name = "rbp"

    def __init__(self, persistence: float = 0.9) -> None:
        if not 0.0 < persistence < 1.0:
            raise ValueError(f"persistence is {persistence}: it must lie strictly between 0 and 1")
        self._persistence = self._constant = float(persistence)
        self._begin()

    @property
    def persistence(self) -> float:
        """ρ."""
        return self._persistence

    @property
    def discount(self) -> Callable[[NDArray[Any]], ArrayLike]:
        """D."""
        return self._geometric_discount

    def _geometric_discount(self, ranks: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.power(self._persistence, ranks - 1.0)

    def __repr__(self) -> str:
        return f"RBP(persistence={self.persistence})"


def _log_discount(ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    return 1.0 / np.log2(1.0 + ranks)


def _step_by_log(scale: Any, j: Any, i: Any, n_positives: Any, n_negatives: Any, table: Any) -> Any:
    rank = i + j
    if rank < TABULATED:
        return scale * (table[rank] - table[rank - 1])
    least = table[TABULATED]
    return scale * (max(1.0 / math.log2(1.0 + rank) - least, 0.0) - max(1.0 / math.log2(rank) - least, 0.0))


def _part_by_log(i: Any, above: Any, n_positives: Any, n_negatives: Any, table: Any) -> Any:
    rank, least = i + above, table[TABULATED]
    upper = table[i] if i < TABULATED else max(1.0 / math.log2(1.0 + i) - least, 0.0)
    return upper - (table[rank] if rank < TABULATED else max(1.0 / math.log2(1.0 + rank) - least, 0.0))


def _discount_by_log(rank: Any, table: Any) -> Any:
    return table[rank] if rank < TABULATED else max(1.0 / math.log2(1.0 + rank) - table[TABULATED], 0.0)


def _step_by_power(scale: Any, j: Any, i: Any, n_positives: Any, n_negatives: Any, table: Any) -> Any:
    rank = i + j
    if rank < TABULATED:
        return scale * (table[rank] - table[rank - 1])
    return scale * ((table[TABULATED] - 1.0) * table[TABULATED] ** (rank - 2.0))


def _part_by_power(i: Any, above: Any, n_positives: Any, n_negatives: Any, table: Any) -> Any:
    rank, ratio = i + above, table[TABULATED]
    upper = table[i] if i < TABULATED else ratio ** (i - 1.0)
    return upper - (table[rank] if rank < TABULATED else ratio ** (rank - 1.0))


def _discount_by_power(rank: Any, table: Any) -> Any:
    return table[rank] if rank < TABULATED else table[TABULATED] ** (rank - 1.0)


_BY_LOG = Formulas(_step_by_log, DCG.divisor_formula, _part_by_log, None, _discount_by_log)
_BY_POWER = Formulas(_step_by_power, DCG.divisor_formula, _part_by_power, None, _discount_by_power)
_FAR: dict[type, Formulas] = {NDCG: _BY_LOG, SoftNDCG: _BY_LOG, RBP: _BY_POWER}
