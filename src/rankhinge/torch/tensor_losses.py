"""Losses as functions of tensors: what the implementation that stays on a device asks of them."""

from __future__ import annotations

from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from rankhinge.losses import CustomLoss, RankingLoss
from rankhinge.losses.base import Formulas
from rankhinge.losses.cut import CutFormulas

__all__ = ["AT_ONCE", "TensorLoss", "on_tensors", "table_of"]

# How many steps are looked at in one go where a loss can only be had by adding them all up.
AT_ONCE = 1 << 22
_tables: WeakKeyDictionary[RankingLoss, dict[tuple[torch.device, torch.dtype], Tensor]] = WeakKeyDictionary()
_tried: WeakKeyDictionary[RankingLoss, bool] = WeakKeyDictionary()


class TensorLoss:
    """A loss on lists of at most `longest` samples. All arguments and results are vectors, one entry a pair.

    Parameters
    ----------
    loss : RankingLoss
    longest : int
    device, dtype
        Where to compute, and in which dtype.
    """

    def __init__(self, loss: RankingLoss, longest: int, device: torch.device, dtype: torch.dtype) -> None:
        loss.require_suitable(longest)
        if isinstance(loss, CustomLoss):
            _try_on_tensors(loss)
        self._formulas = on_tensors(loss.formulas())
        self._table = table_of(loss, longest + 1, device, dtype)
        self.ideal = self._table.values.cumsum(0) if loss.has_discounts else None

    def scaled_step(self, j: Tensor, i: Tensor, n_positives: Tensor, n_negatives: Tensor) -> Tensor:
        """``P N / 2 · t(j, i)``."""
        half = 0.5 * n_positives * n_negatives / self._divisor(n_positives, n_negatives)
        return self._step(half, j, i, n_positives, n_negatives)

    def part(self, i: Tensor, above: Tensor, n_positives: Tensor, n_negatives: Tensor) -> Tensor:
        """What positive i adds to the loss when `above` negatives stand above it, without cancellation."""
        if self._formulas.part is None:
            undivided = self._added_up(i, above, n_positives, n_negatives)
        else:
            numbers = (i.to(n_negatives), above.to(n_negatives), n_positives, n_negatives)
            undivided = self._formulas.part(*numbers, self._table)
        return undivided / self._divisor(n_positives, n_negatives)

    @property
    def has_partial_sum(self) -> bool:
        """Whether `behind` is to be used in place of `part`."""
        return self._formulas.partial_sum is not None

    def behind(self, j: Tensor, rank: Tensor, n_positives: Tensor, n_negatives: Tensor) -> Tensor:
        """What the j-th best negative, standing before the positive of this rank, adds to the loss."""
        partial_sum: Any = self._formulas.partial_sum
        floats = j.to(n_negatives)
        ends = (rank.to(n_negatives), n_positives + 1)
        upper, lower = (partial_sum(floats, end, n_positives, n_negatives) for end in ends)
        return _expanded(upper - lower, n_negatives)

    def _divisor(self, n_positives: Tensor, n_negatives: Tensor) -> Any:
        ideal = None if self.ideal is None else self.ideal[n_positives.long()]
        return self._formulas.divisor(n_positives, n_negatives, ideal, self._table)

    def _step(self, scale: Any, j: Tensor, i: Tensor, n_positives: Tensor, n_negatives: Tensor) -> Tensor:
        """The step of floats: as Python divides, whatever the dtype of the indices."""
        floats = (j.to(n_negatives), i.to(n_negatives), n_positives, n_negatives)
        return _expanded(self._formulas.step(scale, *floats, self._table), n_negatives)

    def _added_up(self, i: Tensor, above: Tensor, n_positives: Tensor, n_negatives: Tensor) -> Tensor:
        """``-Σ_{j ≤ above} t(j, i)``, all steps added up, some at a time: O(P N), as on the CPU."""
        parts = torch.zeros_like(n_negatives)
        ends = above.cumsum(0)
        first = 0
        while first < above.shape[0]:
            base = ends[first] - above[first]
            last = max(first + 1, int(torch.searchsorted(ends, base + AT_ONCE, right=True)))
            here = slice(first, last)
            of = torch.repeat_interleave(torch.arange(last - first, device=above.device), above[here])
            j = torch.arange(1, of.shape[0] + 1, device=above.device) - (ends[here] - above[here] - base)[of]
            steps = self._step(1.0, j, i[here][of], n_positives[here][of], n_negatives[here][of])
            parts[here] = -torch.segment_reduce(steps, "sum", lengths=above[here], unsafe=True)
            first = last
        return parts


class _Table:
    """A loss's table as its formulas index it: by ranks that are floats here."""

    def __init__(self, values: Tensor) -> None:
        self.values, self._last = values, values.shape[0] - 1

    def __getitem__(self, place: Any) -> Tensor:
        if isinstance(place, int):
            return self.values[place]
        # Entries that only fill up the last range may name a place beyond the end: their steps are not used.
        return self.values[place.long().clamp(max=self._last)]


def on_tensors(formulas: Formulas | CutFormulas) -> Any:
    """The formulas with PyTorch's functions in the place of NumPy's."""
    return type(formulas)(*(_with_torch(formula) for formula in formulas))


def _with_torch(formula: Any) -> Any:
    if formula is None or "np" not in formula.__code__.co_names or formula.__closure__:
        return formula
    return FunctionType(formula.__code__, {**formula.__globals__, "np": torch}, formula.__name__)


def _expanded(values: Any, like: Tensor) -> Tensor:
    """What a function of a user's has returned, which may be one number for all."""
    return torch.as_tensor(values).to(like).expand(like.shape)


def table_of(loss: RankingLoss, length: int, device: torch.device, dtype: torch.dtype) -> _Table:
    """As much of the loss's table on a device; copied there once."""
    tables = _tables.setdefault(loss, {})
    found = tables.get((device, dtype))
    if found is None or found.shape[0] < length:
        found = tables[device, dtype] = torch.tensor(loss.table(length), device=device, dtype=dtype)
    return _Table(found[:length])


def _try_on_tensors(loss: CustomLoss) -> None:
    """A step that numba compiles need not work on tensors: compare it with itself on a small list, once."""
    if loss in _tried:
        return
    n_positives, n_negatives = 3, 4
    pairs = [(j, i) for j in range(1, n_negatives + 1) for i in range(1, n_positives + 1)]
    j, i = torch.tensor(pairs, dtype=torch.float64).unbind(1)
    for function in (loss.step_function, loss.partial_sum):
        if function is None:
            continue
        expected = j.new_tensor([float(function(*pair, n_positives, n_negatives)) for pair in pairs])
        try:
            found = function(j, i, torch.full_like(j, n_positives), torch.full_like(j, n_negatives))
            fits = torch.allclose(torch.as_tensor(found, dtype=j.dtype).expand(j.shape), expected)
        except Exception as error:
            raise ValueError(_complaint(loss, str(error))) from error
        if not fits:
            raise ValueError(_complaint(loss, "it returns other values for tensors than for numbers"))
    _tried[loss] = True


def _complaint(loss: CustomLoss, reason: str) -> str:
    return (
        f"{loss!r} runs on the CPU only: on other devices its step must work on tensors, element by element "
        f"(torch.where instead of if, no loops), but: {reason}"
    )
