"""From tensors of any shape to lists, one after the other, and back."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import torch
from torch import Tensor

__all__ = ["TensorLists", "check_shapes", "count_within", "make_lists", "working_dtype"]

_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32)


def check_shapes(scores: Any, relevance: Any, mask: Any, groups: Any, dim: int) -> int:
    """Whatever can be told without reading the data; returns `dim` counted from the front."""
    for name, tensor in (("scores", scores), ("relevance", relevance), ("mask", mask), ("groups", groups)):
        optional = name in ("mask", "groups")
        if not isinstance(tensor, Tensor) and not (optional and tensor is None):
            raise ValueError(f"{name} must be a tensor, got {type(tensor).__name__}")
        if isinstance(tensor, Tensor) and (tensor.is_nested or tensor.layout != torch.strided):
            raise ValueError(
                f"{name} must be a dense tensor: give lists of different lengths one after the other, with groups, or "
                "padded, with mask"
            )
        if isinstance(tensor, Tensor) and tensor.device != scores.device:
            raise ValueError(f"{name} is on {tensor.device}, scores are on {scores.device}")
    if not scores.is_floating_point():
        raise ValueError(f"scores must be of a floating-point dtype, got {scores.dtype}")
    if scores.ndim == 0 or scores.numel() == 0:
        raise ValueError(f"scores are empty or a single number: their shape is {tuple(scores.shape)}")
    dim = _dimension(scores, dim)
    if relevance.shape != scores.shape:
        raise ValueError(f"relevance has shape {tuple(relevance.shape)}, scores {tuple(scores.shape)}")
    if relevance.is_complex():
        raise ValueError(f"relevance must be real, got {relevance.dtype}")
    if mask is not None and groups is not None:
        raise ValueError("give mask (padded lists) or groups (flat lists), not both")
    if mask is not None and (mask.shape != scores.shape or mask.dtype != torch.bool):
        raise ValueError(
            f"mask must be bool and of the scores' shape {tuple(scores.shape)}, "
            f"got {mask.dtype} of shape {tuple(mask.shape)}"
        )
    if groups is not None:
        if scores.ndim != 1:
            raise ValueError(f"with groups, scores must be one-dimensional, got shape {tuple(scores.shape)}")
        if groups.shape != scores.shape or groups.dtype not in _INTEGERS:
            raise ValueError(
                f"groups must be integers of the scores' shape {tuple(scores.shape)}, "
                f"got {groups.dtype} of shape {tuple(groups.shape)}"
            )
    return dim


def _dimension(scores: Tensor, dim: int) -> int:
    """Along which the lists run, counted from the front; many lists of one sample are refused."""
    shape = tuple(scores.shape)
    if not (isinstance(dim, Integral) and -scores.ndim <= dim < scores.ndim):
        raise ValueError(f"dim is {dim!r}, but scores have {scores.ndim} dimensions")
    if shape[dim] == 1 and scores.numel() > 1:
        raise ValueError(
            f"scores have shape {shape}, and with dim={dim} that is {scores.numel()} lists of one sample, which rank "
            "nothing: squeeze the scores and the relevance, or choose dim=0"
        )
    return int(dim) % scores.ndim


@dataclass(frozen=True)
class TensorLists:
    """Where the lists lie.

    Attributes
    ----------
    shape : torch.Size
        Of the scores.
    dim : int
        Along which the lists run.
    offsets : Tensor of shape (n_lists + 1,), int64
        List q takes the places ``offsets[q]:offsets[q + 1]`` of what `gather` returns.
    index : Tensor of shape (m,), int64, or None
        Which of the samples (with `dim` moved to the end, flattened) these are; None: all, in order.
    list_of : Tensor of shape (n,) or None
        With groups: the list of each sample.
    """

    shape: torch.Size
    dim: int
    offsets: Tensor
    index: Tensor | None = None
    list_of: Tensor | None = None

    @property
    def n_lists(self) -> int:
        """How many there are, usable or not."""
        return int(self.offsets.shape[0] - 1)

    @property
    def sizes(self) -> Tensor:
        """Number of samples of each list."""
        return self.offsets.diff()

    def gather(self, tensor: Tensor) -> Tensor:
        """A tensor of the scores' shape as one contiguous vector, list by list."""
        flat = (tensor if self._runs_last else tensor.movedim(self.dim, -1)).reshape(-1)
        # A tensor that is minus what lies in memory has to be written out.
        return (flat if self.index is None else flat[self.index]).contiguous().resolve_neg()

    def scatter(self, flat: Tensor) -> Tensor:
        """The inverse of `gather`; samples outside all lists get 0."""
        if self.index is not None:
            whole = flat.new_zeros(self.shape.numel())
            whole[self.index] = flat
            flat = whole
        if self._runs_last:
            return flat.reshape(self.shape)
        moved = [size for axis, size in enumerate(self.shape) if axis != self.dim] + [self.shape[self.dim]]
        return flat.reshape(moved).movedim(-1, self.dim).contiguous()

    @property
    def _runs_last(self) -> bool:
        """Whether the lists lie one after the other as they are."""
        return self.dim == len(self.shape) - 1

    def per_list(self, values: Tensor) -> Tensor:
        """One value a list, in the shape of the scores without `dim` (with groups: by ascending id)."""
        if self.list_of is not None:
            return values
        return values.reshape([size for axis, size in enumerate(self.shape) if axis != self.dim])

    def place(self, k: int) -> str:
        """Where the k-th gathered sample stands in the scores, as an index in text."""
        place = k if self.index is None else int(self.index[k])
        moved = [size for axis, size in enumerate(self.shape) if axis != self.dim] + [self.shape[self.dim]]
        found = []
        for size in reversed(moved):
            place, rest = divmod(place, size)
            found.append(rest)
        along, *others = found
        others.reverse()
        others.insert(self.dim, along)
        return "[" + ", ".join(map(str, others)) + "]"


def make_lists(scores: Tensor, mask: Tensor | None, groups: Tensor | None, dim: int) -> TensorLists:
    """The lists of tensors that `check_shapes` has let in."""
    length = scores.shape[dim]
    if groups is not None:
        _, list_of, sizes = torch.unique(groups.long(), return_inverse=True, return_counts=True)
        index = torch.argsort(list_of, stable=True)
        return TensorLists(scores.shape, 0, _running_sum(sizes), index, list_of)
    n_lists = scores.numel() // length
    if mask is not None:
        rows = mask.movedim(dim, -1).reshape(n_lists, length)
        index = torch.nonzero(rows.reshape(-1)).squeeze(1)
        return TensorLists(scores.shape, dim, _running_sum(rows.sum(dim=1)), index)
    return TensorLists(scores.shape, dim, torch.arange(0, scores.numel() + 1, length, device=scores.device))


def count_within(flags: Tensor, offsets: Tensor) -> Tensor:
    """How many of the flags of each list are set."""
    return _running_sum(flags.long())[offsets].diff()


def working_dtype(device: torch.device) -> torch.dtype:
    """float64, except where a device does not have it."""
    return torch.float32 if device.type == "mps" else torch.float64


def _running_sum(sizes: Tensor) -> Tensor:
    return torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
