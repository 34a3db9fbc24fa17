"""Losses as functions of tensors: what the implementation that stays on a device asks of them."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from rankhinge.losses import CustomLoss, RankingLoss

__all__ = ["TensorLoss"]

# How many steps are looked at in one go where a loss can only be had by adding them all up.
_AT_ONCE = 1 << 22
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
        if loss.family not in ("ap", "discount", "rr", "auc", "custom"):
            raise TypeError(f"{loss!r} has no step that works on tensors: use CustomLoss for a step of your own")
        if isinstance(loss, CustomLoss):
            _try_on_tensors(loss)
        self.family = loss.family
        self.step_function = getattr(loss, "step_function", None)
        self.partial_sum = getattr(loss, "partial_sum", None)
        if self.family == "discount":
            self.discount = _table_of(loss, longest + 1, device, dtype)
            self.ideal = self.discount.cumsum(0)

    def scaled_step(self, j: Tensor, i: Tensor, n_positives: Tensor, n_negatives: Tensor) -> Tensor:
        """``P N / 2 · t(j, i)``."""
        if self.family == "ap":
            place = (i + j).to(n_negatives.dtype)
            return -0.5 * n_negatives * i / (place * (place - 1))
        if self.family == "discount":
            half = 0.5 * n_positives * n_negatives / self.ideal[n_positives.long()]
            # Entries that only fill up the last range may name a place beyond the end: their steps are not used.
            place = (i + j).clamp(max=self.discount.shape[0] - 1)
            return half * (self.discount[place] - self.discount[place - 1])
        pairs = 0.5 * n_positives * n_negatives
        if self.family == "rr":
            return torch.where(i == 1, -pairs / (j * (j + 1).to(pairs.dtype)), 0.0)
        if self.family == "auc":
            return torch.full_like(pairs, -0.5)
        return pairs * self._custom(self.step_function, j, i, n_positives, n_negatives)

    def part(self, i: Tensor, above: Tensor, n_positives: Tensor, n_negatives: Tensor) -> Tensor:
        """What the i-th best positive with so many negatives above it adds to the loss, without cancellation."""
        above_ = above.to(n_negatives.dtype)
        if self.family == "ap":
            return above_ / (i + above_) / n_positives
        if self.family == "discount":
            return (self.discount[i] - self.discount[i + above]) / self.ideal[n_positives.long()]
        if self.family == "rr":
            return torch.where(i == 1, above_ / (1 + above_), 0.0)
        if self.family == "auc":
            return above_ / n_positives / n_negatives
        return self._custom_part(i, above, n_positives, n_negatives)

    @property
    def has_partial_sum(self) -> bool:
        """Whether `behind` is to be used in place of `part`."""
        return self.partial_sum is not None

    def behind(self, j: Tensor, rank: Tensor, n_positives: Tensor, n_negatives: Tensor) -> Tensor:
        """What the j-th best negative, standing before the positive of this rank, adds to the loss."""
        ends = (rank, n_positives + 1)
        upper, lower = (self._custom(self.partial_sum, j, end, n_positives, n_negatives) for end in ends)
        return upper - lower

    def _custom(self, function: Any, j: Tensor, i: Tensor, n_positives: Tensor, n_negatives: Tensor) -> Tensor:
        """A function of the user's, on floats: as Python divides, whatever the dtype of the indices."""
        floats = [tensor.to(n_negatives.dtype) for tensor in (j, i, n_positives, n_negatives)]
        return torch.as_tensor(function(*floats)).to(n_negatives).expand(j.shape)

    def _custom_part(self, i: Tensor, above: Tensor, n_positives: Tensor, n_negatives: Tensor) -> Tensor:
        """``-Σ_{j ≤ above} t(j, i)``, all steps added up, some at a time: O(P N), as on the CPU."""
        parts = torch.zeros_like(n_negatives)
        ends = above.cumsum(0)
        first = 0
        while first < above.shape[0]:
            base = ends[first] - above[first]
            last = max(first + 1, int(torch.searchsorted(ends, base + _AT_ONCE, right=True)))
            here = slice(first, last)
            of = torch.repeat_interleave(torch.arange(last - first, device=above.device), above[here])
            j = torch.arange(1, of.shape[0] + 1, device=above.device) - (ends[here] - above[here] - base)[of]
            steps = self._custom(self.step_function, j, i[here][of], n_positives[here][of], n_negatives[here][of])
            parts[here] = -torch.segment_reduce(steps, "sum", lengths=above[here], unsafe=True)
            first = last
        return parts


def _table_of(loss: RankingLoss, length: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    """As much of the loss's table on a device; copied there once."""
    tables = _tables.setdefault(loss, {})
    found = tables.get((device, dtype))
    if found is None or found.shape[0] < length:
        found = tables[device, dtype] = torch.tensor(loss.table(length), device=device, dtype=dtype)
    return found[:length]


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
