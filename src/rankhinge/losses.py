r"""Ranking losses, each given by one function: its *step*.

One list has ``P`` relevant (positive) and ``N`` non-relevant (negative) samples. A ranking matters only
through its pattern of positives and negatives, given by the interleaving ranks ``1 ≤ r_1 ≤ … ≤ r_N ≤ P + 1``:
the j-th best negative stands directly before positive ``r_j``. A loss decomposes over the negatives,

.. math:: \Delta = \sum_j \delta_j(r_j), \qquad \delta_j(P + 1) = 0, \qquad
          t(j, i) = \delta_j(i + 1) - \delta_j(i) \le 0,

and the step ``t(j, i)`` is all that inference needs to know about it. The same loss by counts: with
``a_i`` = negatives above positive i, ``Δ = -Σ_i Σ_{j ≤ a_i} t(j, i)``.

References
----------
Mohapatra, Rolínek, Jawahar, Kolmogorov, Kumar: Efficient Optimization for Rank-based Loss Functions, CVPR 2018.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from copy import copy
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankhinge._public import publish
from rankhinge._suitability import SuitabilityReport, jit_functions, judge_compiled, judge_steps

__all__ = [
    "AUC",
    "DCG",
    "NDCG",
    "RBP",
    "AveragePrecision",
    "CustomLoss",
    "RankingLoss",
    "ReciprocalRank",
    "SoftNDCG",
    "SuitabilityReport",
    "ZeroOne",
    "check_suitable",
    "get_loss",
]

Step = Callable[[int, int, int, int], float]
# Numbers of pairs over discounts must not overflow.
_LEAST_DISCOUNT = 1e-250
_NO_TABLE = np.zeros(1)
_BLOCK = 1 << 16


class RankingLoss:
    """What every ranking loss offers; subclasses state the formula.

    Attributes
    ----------
    name : str
        Short name; the one accepted wherever a loss is expected, if the loss is built in.
    family : str
        Which compiled step the kernels run for this loss (``"ap"``, ``"discount"``, ``"rr"``, ``"auc"`` or
        ``"custom"``): losses of one family differ only in their ``table``.
    """

    name: str = "custom"
    family: str = "custom"

    def step(self, j: int, i: int, n_positives: int, n_negatives: int) -> float:
        """``t(j, i)``: the change of loss when the j-th negative moves from before positive i to after it."""
        raise NotImplementedError(f"{type(self).__name__} does not define a step")

    def from_counts(self, counts_above: ArrayLike, n_negatives: int) -> float:
        """Loss of the ranking in which ``counts_above[i - 1]`` negatives stand above the i-th best positive.

        The slow, literal sum of steps; the kernels have a faster twin for each family.
        """
        counts = np.asarray(counts_above)
        return -sum(
            self.step(j, i, counts.size, n_negatives)
            for i in range(1, counts.size + 1)
            for j in range(1, int(counts[i - 1]) + 1)
        )

    def table(self, length: int) -> NDArray[np.float64]:
        """Values at ranks ``0 … length - 1`` that the family's compiled step reads (none by default)."""
        return _NO_TABLE

    def require_suitable(self, n_samples: int) -> None:
        """Raise a ValueError with the witness if the fast methods would be wrong on lists of this length."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class AveragePrecision(RankingLoss):
    r"""``Δ = 1 - mean_i i / (i + a_i)``, one minus average precision.

    .. math:: t(j, i) = -\frac{1}{P} \frac{i}{(i + j)(i + j - 1)}

    Yue, Finley, Radlinski, Joachims: A support vector method for optimizing average precision, SIGIR 2007.

    Examples
    --------
    >>> from rankhinge.losses import AveragePrecision
    >>> round(AveragePrecision().from_counts([0, 1, 1, 2], n_negatives=4), 4)  # + - + + - + - -
    0.2292
    """

    name = "ap"
    family = "ap"

    def step(self, j: int, i: int, n_positives: int, n_negatives: int) -> float:
        return -i / ((i + j) * (i + j - 1)) / n_positives


class DCG(RankingLoss):
    r"""Discounted cumulative gain with any convex discount: ``Δ = 1 - Σ_i D(i + a_i) / Σ_{i ≤ P} D(i)``.

    .. math:: t(j, i) = \frac{D(i + j) - D(i + j - 1)}{\sum_{k \le P} D(k)}

    Parameters
    ----------
    discount : callable or array of shape (n,)
        ``discount(ranks)`` maps an array of ranks (from 1) to their discounts; an array holds ``D(1), D(2), …``
        and serves lists of at most that length. Suitable if it is convex and non-increasing with a positive sum;
        `check_suitable` tells.

    Examples
    --------
    >>> import numpy as np
    >>> from rankhinge.losses import DCG, check_suitable
    >>> check_suitable(DCG(lambda rank: 1.0 / rank), n_positives=3, n_negatives=5).suitable
    True
    """

    name = "dcg"
    family = "discount"

    def __init__(self, discount: Callable[[NDArray[Any]], ArrayLike] | ArrayLike) -> None:
        # An array of the user's may change, what is tabulated of it does not.
        self._discount = discount if callable(discount) else copy(discount)
        self._begin()

    def _begin(self) -> None:
        """Nothing is tabulated yet."""
        self._table = _NO_TABLE
        self._convex_up_to = 1

    @property
    def discount(self) -> Callable[[NDArray[Any]], ArrayLike] | ArrayLike:
        """D, as it was given."""
        return self._discount

    def table(self, length: int) -> NDArray[np.float64]:
        """``D(0) = 0, D(1), …``: at least `length` entries, kept for the next call."""
        table = self._table
        if table.size < length:
            try:
                # An eighth more than asked for: lists that grow a little do not build it anew each time.
                table = self._tabulate(max(64, length + length // 8) if callable(self.discount) else length)
            except Exception:
                # A discount need not make sense beyond the list.
                table = self._tabulate(length)
            self._table = table
        # Not the attribute: another thread may have stored a shorter table in the meantime.
        return table

    def _tabulate(self, size: int) -> NDArray[np.float64]:
        table = np.zeros(size)
        for start in range(1, size, _BLOCK):
            stop = min(start + _BLOCK, size)
            table[start:stop] = self._discounts(start, stop)
        return table

    def _discounts(self, start: int, stop: int) -> NDArray[np.float64]:
        """``D(start), …, D(stop - 1)``, checked; by blocks, because a table may be as long as a list."""
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
            raise ValueError(f"discount(1) is {values[0]}, so small that ratios overflow: multiply all by a factor")
        return values

    def require_suitable(self, n_samples: int) -> None:
        """Convexity and monotony of the discount on ``1 … n_samples``, checked once for each new length."""
        if n_samples <= self._convex_up_to:
            return
        table = self.table(n_samples + 1)
        # A discount may be a difference of numbers as large as the first.
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
                reason = check_suitable(self, 1, rank - 1).reason or reason
                raise ValueError(f"{self!r} is not suitable for lists of {n_samples} samples: {reason}")
        self._convex_up_to = n_samples

    def step(self, j: int, i: int, n_positives: int, n_negatives: int) -> float:
        discount = self.table(n_positives + n_negatives + 1)
        return float((discount[i + j] - discount[i + j - 1]) / discount[1 : n_positives + 1].sum())

    def __getstate__(self) -> dict[str, Any]:
        # The table may be as long as the longest list: a copy builds its own when it needs one.
        return {**self.__dict__, "_table": _NO_TABLE, "_convex_up_to": 1}

    def __repr__(self) -> str:
        size = 0 if callable(self.discount) else np.size(self.discount)
        return f"{type(self).__name__}({self.discount!r})" if size <= 8 else f"{type(self).__name__}({size} discounts)"


class NDCG(DCG):
    """Normalised DCG: ``D(i) = 1 / log2(1 + i)`` (Järvelin and Kekäläinen 2002)."""

    name = "ndcg"

    def __init__(self) -> None:
        super().__init__(_log_discount)

    def __repr__(self) -> str:
        return "NDCG()"


class SoftNDCG(DCG):
    """NDCG@k made convex: ``D(i) = max(1 / log2(1 + i) - 1 / log2(k + 2), 0)``.

    A metric of its own, neither above nor below NDCG@k with its hard cut, which no fast method can serve.

    Parameters
    ----------
    k : int
        Ranks beyond `k` do not count.
    """

    def __init__(self, k: int) -> None:
        if not isinstance(k, Integral) or k < 1:
            raise ValueError(f"k is {k!r}: it must be an integer of at least 1")
        self._k: int = int(k)
        self.name = f"ndcg@{self._k}"
        self._begin()

    @property
    def k(self) -> int:
        """Ranks beyond it do not count."""
        return self._k

    # Not kept as an attribute: a loss that refers to itself could not be written by skops.
    @property
    def discount(self) -> Callable[[NDArray[Any]], ArrayLike]:
        """D."""
        return self._soft_discount

    def _soft_discount(self, ranks: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.maximum(_log_discount(ranks) - 1.0 / math.log2(self._k + 2), 0.0)

    def __repr__(self) -> str:
        return f"SoftNDCG(k={self.k})"


class RBP(DCG):
    """Rank-biased precision, normalised: ``D(i) = ρ^(i - 1)`` (Moffat and Zobel 2008).

    Parameters
    ----------
    persistence : float, default 0.9
        ρ in (0, 1): the probability that a reader goes on to the next item. (`metrics.rbp` has another default, and is
        not normalised unless asked to: ``metrics.rbp(…, persistence=0.9, normalize=True)`` is the one of this loss.)
    """

    name = "rbp"

    def __init__(self, persistence: float = 0.9) -> None:
        if not 0.0 < persistence < 1.0:
            raise ValueError(f"persistence is {persistence}: it must lie strictly between 0 and 1")
        self._persistence = float(persistence)
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


class ReciprocalRank(RankingLoss):
    """``Δ = 1 - 1 / (1 + a_1)``; step ``-1 / (j (j + 1))`` at i = 1, else 0."""

    name = "rr"
    family = "rr"

    def step(self, j: int, i: int, n_positives: int, n_negatives: int) -> float:
        return -1.0 / (j * (j + 1)) if i == 1 else 0.0


class AUC(RankingLoss):
    """``Δ = mean_i a_i / N``, the share of wrongly ordered pairs; step ``-1 / (P N)``."""

    name = "auc"
    family = "auc"

    def step(self, j: int, i: int, n_positives: int, n_negatives: int) -> float:
        return -1.0 / (n_positives * n_negatives)


class CustomLoss(RankingLoss):
    """A loss given by one Python function, compiled into the kernels.

    Parameters
    ----------
    step : callable
        ``step(j, i, n_positives, n_negatives)``, both indices from 1, returning ``t(j, i) ≤ 0``. A plain function in
        the part of Python that numba compiles: its integers have 64 bits, and globals that it reads are taken as they
        are at the first use. Whether it is suitable is checked for each new greatest length of lists, at many of its
        places.
    partial_sum : callable, optional
        ``partial_sum(j, i, n_positives, n_negatives) = Σ_{k < i} step(j, k)`` in O(1). With it the loss of a
        ranking costs O(N) instead of O(P N). It is compared with the step where that is checked.
    name : str, default "custom"

    Examples
    --------
    >>> from rankhinge.losses import CustomLoss, check_suitable
    >>> def step(j, i, n_positives, n_negatives):
    ...     return -1.0 / (i + j) ** 2 / n_positives
    >>> check_suitable(CustomLoss(step), n_positives=4, n_negatives=6).suitable
    True
    """

    # Compiled functions, and the callbacks that inference has made of them with their addresses; what was pickled makes
    # its own.
    _jitted: Any = None
    _compiled: Any = None

    def __init__(self, step: Step, partial_sum: Step | None = None, name: str = "custom") -> None:
        for argument, function in (("step", step), ("partial_sum", partial_sum)):
            plain = inspect.isfunction(getattr(function, "py_func", function))
            if not plain and not (argument == "partial_sum" and function is None):
                raise TypeError(
                    f"{argument} must be a plain function of (j, i, n_positives, n_negatives), got {function!r}"
                )
        # What numba has compiled already is compiled anew, into the kernels.
        self.step_function: Step = getattr(step, "py_func", step)
        self.partial_sum: Step | None = getattr(partial_sum, "py_func", partial_sum)
        self.name = name
        self._checked_up_to = 0

    def jitted(self) -> tuple[Any, Any]:
        """The step and the partial sum (or None), compiled by numba."""
        if self._jitted is None:
            self._jitted = jit_functions(self.step_function, self.partial_sum)
        return self._jitted

    def step(self, j: int, i: int, n_positives: int, n_negatives: int) -> float:
        return float(self.step_function(j, i, n_positives, n_negatives))

    def require_suitable(self, n_samples: int) -> None:
        """Checked for each new greatest length, on samples: all of what may be any function cannot be looked at."""
        if n_samples <= self._checked_up_to:
            return
        if self._checked_up_to == 0:
            # In Python: its errors are the clearest.
            report = check_suitable(self, 6, 8)
            if not report:
                raise ValueError(f"{self!r} is not suitable: {report.reason}")
            self._compare_with_compiled(6, 8)
        reason = judge_compiled(*self.jitted(), n_samples)
        if reason:
            raise ValueError(f"{self!r} is not suitable for lists of {n_samples} samples: {reason}")
        self._checked_up_to = n_samples

    def _compare_with_compiled(self, n_positives: int, n_negatives: int) -> None:
        """Raise if the compiled step returns something else: whole numbers have no negative powers there."""
        compiled, _ = self.jitted()
        for j in range(1, n_negatives + 1):
            for i in range(1, n_positives + 1):
                place = (j, i, n_positives, n_negatives)
                expected, found = self.step(*place), float(compiled(*place))
                if not np.isclose(found, expected, rtol=1e-9, atol=0.0):
                    raise ValueError(
                        f"{self!r} is not suitable: step({j}, {i}, {n_positives}, {n_negatives}) is {expected:g} in "
                        f"Python but {found:g} when compiled. Calculate with floats: 1.0 / x**2, not x**-2"
                    )

    def __getstate__(self) -> dict[str, Any]:
        # Compiled code belongs to this process; another one compiles its own.
        return {key: value for key, value in self.__dict__.items() if key not in ("_compiled", "_jitted")}

    def __deepcopy__(self, memo: dict[int, Any]) -> CustomLoss:
        # Within this process a copy, such as scikit-learn makes for every fit of a search, shares what is compiled.
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __repr__(self) -> str:
        return f"CustomLoss({self.step_function!r}, name={self.name!r})"


class ZeroOne(RankingLoss):
    """The decomposable baseline: mean over samples of ``max(0, 1 - y s)``, y = ±1. It has no ranks."""

    name = "zero-one"
    family = "zero-one"


def _log_discount(ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    return 1.0 / np.log2(1.0 + ranks)


_BUILT_IN: dict[str, Callable[[], RankingLoss]] = {
    loss.name: loss for loss in (AveragePrecision, NDCG, ReciprocalRank, AUC, RBP, ZeroOne)
}
_INSTANCES: dict[str, RankingLoss] = {}


def get_loss(loss: str | RankingLoss) -> RankingLoss:
    """The loss object for a name, or the object itself.

    Parameters
    ----------
    loss : str or RankingLoss
        One of ``"ap"``, ``"ndcg"``, ``"rr"``, ``"auc"``, ``"rbp"``, ``"zero-one"``, or a loss object.

    Examples
    --------
    >>> from rankhinge.losses import get_loss
    >>> get_loss("ndcg")
    NDCG()
    """
    if isinstance(loss, RankingLoss):
        return loss
    if not isinstance(loss, str) or loss not in _INSTANCES:
        if not isinstance(loss, str) or loss not in _BUILT_IN:
            raise ValueError(f"unknown loss {loss!r}: choose one of {sorted(_BUILT_IN)} or give a loss object")
        # One instance a name: its table of discounts is built once, not once a call.
        _INSTANCES[loss] = _BUILT_IN[loss]()
    return _INSTANCES[loss]


def check_suitable(loss: str | RankingLoss, n_positives: int, n_negatives: int) -> SuitabilityReport:
    """Check on one list size that the fast methods are exact for a loss.

    The four conditions: the loss depends on the pattern only, decomposes over the negatives (both hold for
    anything given by a step), ``t(j, i) ≤ 0`` with ``Σ -t ≤ 1`` (so that the loss lies in [0, 1]), and
    ``t(j + 1, i) ≥ t(j, i)`` for all j, i. Costs O(P N) evaluations of the step.

    Parameters
    ----------
    loss : str or RankingLoss
    n_positives, n_negatives : int

    Returns
    -------
    SuitabilityReport

    Examples
    --------
    >>> import numpy as np
    >>> from rankhinge.losses import DCG, check_suitable
    >>> hard_cut = DCG(lambda rank: np.where(rank <= 3, 1 / np.log2(1.0 + rank), 0.0))
    >>> report = check_suitable(hard_cut, n_positives=2, n_negatives=4)
    >>> report.suitable, report.witness["j"], report.witness["i"]
    (False, 1, 2)
    """
    loss = get_loss(loss)
    if n_positives < 1 or n_negatives < 1:
        raise ValueError(f"n_positives={n_positives} and n_negatives={n_negatives} must both be at least 1")
    if isinstance(loss, ZeroOne):
        return SuitabilityReport(False, "the zero-one loss decomposes over samples and has no step")
    steps = np.array(
        [
            [loss.step(j, i, n_positives, n_negatives) for i in range(1, n_positives + 1)]
            for j in range(1, n_negatives + 1)
        ],
        dtype=np.float64,
    )
    return judge_steps(steps)


publish(__name__)
