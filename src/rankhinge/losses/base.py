r"""What a ranking loss is.

One list has ``P`` relevant (positive) and ``N`` non-relevant (negative) samples. A ranking matters only
through its pattern of positives and negatives, given by the interleaving ranks ``1 ≤ r_1 ≤ … ≤ r_N ≤ P + 1``:
the j-th best negative stands directly before positive ``r_j``. A suitable loss decomposes over the negatives,

.. math:: \Delta = \sum_j \delta_j(r_j), \qquad \delta_j(P + 1) = 0, \qquad
          t(j, i) = \delta_j(i + 1) - \delta_j(i) \le 0,

and inference needs nothing but the step ``t(j, i)``. Written with counts, where ``a_i`` is the number of negatives
above positive i, the loss is ``Δ = -Σ_i Σ_{j ≤ a_i} t(j, i)``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["NO_TABLE", "Formulas", "RankingLoss", "decimal"]

NO_TABLE = np.zeros(1)
# Whether a loss is inferred by its step, by its cut, or sample by sample.
BY_STEP, BY_CUT, BY_SAMPLE = "step", "cut", "sample"


def decimal(number: float) -> str:
    """A number in full, without an exponent, so that the name leads back to the same loss and metric."""
    return np.format_float_positional(number, trim="-")


class Formulas(NamedTuple):
    """A loss as plain functions of numbers, arrays or tensors alike (see `RankingLoss`).

    Attributes
    ----------
    step, divisor : callable
    part : callable or None
        None: the steps are added up one by one.
    partial_sum : callable or None
        ``partial_sum(j, i, n_positives, n_negatives) = Σ_{k < i} step(j, k)``, used instead of `part`.
    discount : callable or None
        ``discount(rank, table)``, where the table does not reach as far as the ranks.
    """

    step: Callable[..., Any]
    divisor: Callable[..., Any]
    part: Callable[..., Any] | None
    partial_sum: Callable[..., Any] | None = None
    discount: Callable[..., Any] | None = None


class RankingLoss:
    """Base class of all ranking losses. A subclass states its formulas once, for kernels, arrays and tensors.

    A formula is a static method. Its arguments are numbers (in compiled kernels), arrays or tensors, taken element by
    element. Write comparisons as factors, not as ``if``, and call functions such as ``np.exp`` by that name: on tensors
    PyTorch's is used. Constants of the loss come from its `table`.

    ``step_formula(scale, j, i, n_positives, n_negatives, table)``
        ``t(j, i)`` times `scale` and the divisor: the j-th negative moves from before positive i to after it.
        Multiplying before dividing keeps fractions, and therefore ties, exact where possible.
    ``part_formula(i, above, n_positives, n_negatives, table)``
        ``-Σ_{j ≤ above} t(j, i)`` times the divisor, written without cancellation: what positive i adds to the loss
        when `above` negatives stand above it. Optional. Without it, all steps are added up in O(P N).
    ``divisor_formula(n_positives, n_negatives, ideal, table)``
        The divisor of both. The default is 1.

    Attributes
    ----------
    name : str
        Short name. Built-in losses can be given by this name wherever a loss is expected.
    metric : str or None
        Name of the metric ``1 - Δ`` in `rankhinge.metrics`, if it has one.
    way : str
        How inference works: ``"step"`` for suitable losses, ``"cut"`` for losses of the first places only, ``"sample"``
        for a loss that ranks nothing.
    is_ranking : bool
        Whether the loss depends on the order of the samples.
    is_concave : bool
        Whether ``f_j`` is concave on the ranks ``1 … j + 1``, as the papers' search and select need it.
    has_discounts : bool
        Whether the table holds a discount for each rank. Their sum over the first P is the `ideal` of the divisor.
    is_graded : bool
        Whether the loss is defined for graded labels, by their gains: as a weighted sum over their levels.
    is_checked : bool
        Whether the loss is known to lie in [0, 1] wherever it is suitable. If not, results are checked.

    Losses are values: two losses of the same class with the same parameters are equal.

    Examples
    --------
    >>> from rankhinge import losses
    >>> isinstance(losses.get_loss("ap"), losses.RankingLoss)
    True
    >>> losses.NDCGAt(10) == losses.get_loss("ndcg@10")
    True
    """

    name: str = "custom"
    metric: str | None = None
    way: str = BY_STEP
    is_ranking: bool = True
    is_concave: bool = False
    has_discounts: bool = False
    is_graded: bool = False
    is_checked: bool = True

    step_formula: Callable[..., Any] | None = None
    part_formula: Callable[..., Any] | None = None

    @staticmethod
    def divisor_formula(n_positives: Any, n_negatives: Any, ideal: Any, table: Any) -> Any:
        return 1.0

    def formulas(self, prepare: Callable[[Any], Any] = lambda function: function) -> Formulas:
        """The formulas. `prepare` is applied to any user function that they call."""
        # Kernels would not see a `step` that a subclass overrides.
        if self.step_formula is None or type(self).step is not RankingLoss.step:
            raise TypeError(f"{self!r} has no compiled step: define step_formula, or use CustomLoss")
        return Formulas(self.step_formula, self.divisor_formula, self.part_formula)

    def step(self, j: int, i: int, n_positives: int, n_negatives: int) -> float:
        """``t(j, i)``: the change of loss when the j-th negative moves from before positive i to after it."""
        if self.step_formula is None:
            raise NotImplementedError(f"{type(self).__name__} does not define a step")
        table = self.table(n_positives + n_negatives + 1)
        ideal = float(table[1 : n_positives + 1].sum()) if self.has_discounts else 0.0
        step = self.step_formula(1.0, j, i, n_positives, n_negatives, table)
        return float(step / self.divisor_formula(n_positives, n_negatives, ideal, table))

    def from_counts(self, counts_above: ArrayLike, n_negatives: int) -> float:
        """Loss of the ranking in which ``counts_above[i - 1]`` negatives stand above the i-th best positive.

        The slow, literal sum of steps; `ranking_loss` has a faster twin.
        """
        counts = np.asarray(counts_above)
        return -sum(
            self.step(j, i, counts.size, n_negatives)
            for i in range(1, counts.size + 1)
            for j in range(1, int(counts[i - 1]) + 1)
        )

    def table(self, length: int) -> NDArray[np.float64]:
        """Constants that the formulas read: the discounts of the ranks ``0 … length - 1`` (at least), if it has any."""
        return NO_TABLE

    def far(self, n_samples: int) -> tuple[Formulas, NDArray[np.float64]] | None:
        """Formulas for kernels and their table, where lists are so long that discounts are better computed than read.

        None: what `formulas` and `table` say holds for lists of this length, too.
        """
        return None

    def depths(self, n_samples: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many places count in lists of these lengths: all of them, unless the loss has a cut."""
        return n_samples

    def discounts(self, ranks: NDArray[np.int64], n_samples: NDArray[np.int64]) -> NDArray[np.float64]:
        """The discounts at these ranks, in lists of these lengths, for a graded loss."""
        raise NotImplementedError(f"{type(self).__name__} has no discounts")

    def ideals(self, n_relevant: NDArray[np.int64], n_samples: NDArray[np.int64]) -> NDArray[np.float64] | None:
        """The best possible gain of lists with these numbers of relevant samples.

        It weighs the levels of graded labels. None if the loss is binary only.
        """
        return None

    def require_suitable(self, n_samples: int) -> None:
        """Raise a ValueError, with the witness, if fast inference would be wrong on lists of this length."""

    def _parts(self) -> Any:
        """The state that tells this loss from others of its class, as pickle would store it."""
        return self.__getstate__()

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return self is other or _is_same(self._parts(), other._parts())

    def __hash__(self) -> int:
        return hash((type(self), self.name))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _is_same(one: Any, other: Any) -> bool:
    """Equality by value, including arrays in attributes."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_is_same(one[key], other[key]) for key in one)
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return bool(one == other)
