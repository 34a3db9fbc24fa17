"""Graded relevance: which samples are relevant at each level, and what the levels weigh in each list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from rankhinge.losses import RankingLoss
from rankhinge.problems import MOST_LEVELS
from rankhinge.torch.lists import TensorLists, count_within, working_dtype
from rankhinge.torch.settings import Settings

__all__ = ["TensorLevel", "make_levels"]


class TensorLevel(NamedTuple):
    """One threshold."""

    relevant: Tensor  # bool, of each gathered sample
    weights: Tensor | None  # ω of each list; None: all 1


def make_levels(relevance: Tensor, lists: TensorLists, loss: RankingLoss, settings: Settings) -> list[TensorLevel]:
    """The thresholds of a batch (see `rankhinge.problems.grading`); one of weight 1 if the relevance is 0/1.

    What a list's levels weigh depends on that list alone, not on what else is in the batch.
    """
    labels = lists.gather(relevance)
    if labels.numel() == 0:
        return []
    weighted = isinstance(settings.level_weights, tuple)
    if labels.dtype == torch.bool and not weighted:
        return [TensorLevel(labels, None)]
    is_binary = (labels == 0) | (labels == 1)
    if not weighted and bool(is_binary.all()):
        return [TensorLevel(labels != 0, None)]
    if not weighted and bool(((labels == 1) | (labels == -1)).all()):
        # -1/1 is 0/1, as for `RankSVC`.
        return [TensorLevel(labels == 1, None)]
    labels = labels.to(working_dtype(labels.device))
    _refuse(~(torch.isfinite(labels) & (labels >= 0)), labels, lists, "relevance must be finite and not negative")
    if settings.level_weights is not None:
        worth, ideal = _cumulated(labels, lists, settings.level_weights), None
    elif loss.is_graded:
        worth, ideal = _gains_of(labels, lists, settings.gains), _ideals(loss, lists).to(labels)
    else:
        reason = (
            f"the loss {loss.name!r} takes relevant (1) and not relevant (0) only: "
            "binarise it, or choose level_weights='uniform' or a number for each label from 1"
        )
        _refuse(~is_binary, labels, lists, reason)
    # In any scale, since sums of large gains would overflow; by a power of two, which rounds nothing.
    worth = worth * torch.exp2(-torch.frexp(worth.max()).exponent.to(worth))
    levels = list(_thresholds(worth, lists, ideal, _depths(loss, lists)))
    total = torch.stack([weight for _, weight in levels]).sum(dim=0) if levels else 0.0
    return [TensorLevel(relevant, torch.where(weight > 0, weight / total, 0.0)) for relevant, weight in levels]


def _refuse(wrong: Tensor, labels: Tensor, lists: TensorLists, reason: str) -> None:
    if bool(wrong.any()):
        k = int(wrong.to(torch.uint8).argmax())
        raise ValueError(f"relevance{lists.place(k)} is {labels[k].item():g}: {reason}")


def _thresholds(
    worth: Tensor, lists: TensorLists, ideal: Tensor | None, deepest: Tensor
) -> Iterator[tuple[Tensor, Tensor]]:
    """Level ℓ of a list, ``worth ≥ v_ℓ`` for the ℓ-th of the values > 0 that occur in it, weighs ``v_ℓ - v_{ℓ-1}``.

    By gains γ with ideals, ``ω_ℓ ∝ (v_ℓ - v_{ℓ-1}) · IDCG_ℓ`` makes the weighted sum of the levels' losses the graded
    loss. Each list has its own levels, so that their number is that of the longest list's grades, not the batch's.
    """
    list_of = torch.repeat_interleave(
        torch.arange(lists.n_lists, device=worth.device), lists.sizes, output_size=worth.shape[0]
    )
    order = torch.argsort(worth)
    order = order[torch.argsort(list_of[order], stable=True)]
    value, q = worth[order], list_of[order]
    below = torch.cat([value.new_zeros(1), value[:-1]])
    below[lists.offsets[:-1][lists.sizes > 0]] = 0.0
    rises = value > below
    running = rises.cumsum(0)
    number = running - (running - rises.long())[lists.offsets[:-1].clamp(max=running.shape[0] - 1)][q]
    level_of = torch.empty_like(number)
    level_of[order] = number
    n_levels = int(number.max())
    if n_levels > MOST_LEVELS:
        raise ValueError(
            f"a list has {n_levels} different grades, each of which is a ranking problem of its own: round relevance "
            f"to at most {MOST_LEVELS}"
        )
    for level in range(1, n_levels + 1):
        relevant, here = level_of >= level, rises & (number == level)
        weight = worth.new_zeros(lists.n_lists)
        weight[q[here]] = (value - below)[here]
        if ideal is not None:
            weight = weight * ideal[count_within(relevant, lists.offsets).minimum(deepest)]
        yield relevant, weight


def _ideals(loss: RankingLoss, lists: TensorLists) -> Tensor:
    """``IDCG`` of 0, 1, … relevant samples."""
    # The table may be longer, because of some list before.
    longest = int(lists.sizes.max())
    # Not by `torch.tensor`: new tensors may go to another device by default.
    table = torch.from_numpy(np.array(loss.table(longest + 1)[1 : longest + 1]))
    return torch.cat([table.new_zeros(1), table.cumsum(0)])


def _depths(loss: RankingLoss, lists: TensorLists) -> Tensor:
    """How many places of each list count."""
    depths = loss.depths(lists.sizes.cpu().numpy())
    return torch.from_numpy(np.asarray(depths, np.int64)).to(lists.sizes.device)


def _gains_of(labels: Tensor, lists: TensorLists, gains: str | tuple[float, ...]) -> Tensor:
    if isinstance(gains, str):
        graded = torch.exp2(labels) - 1.0 if gains == "exponential" else labels
        _refuse(~torch.isfinite(graded), labels, lists, "its gain is not finite")
        return graded
    wrong = (labels != labels.floor()) | (labels >= len(gains))
    _refuse(wrong, labels, lists, f"gains has entries for the labels 0 to {len(gains) - 1}")
    return labels.new_tensor(gains)[labels.long()]


def _cumulated(labels: Tensor, lists: TensorLists, weights: str | tuple[float, ...]) -> Tensor:
    """What the levels up to each label weigh together."""
    _refuse(labels != labels.floor(), labels, lists, "with level_weights, labels must be whole numbers")
    if isinstance(weights, str):
        return labels
    _refuse(labels > len(weights), labels, lists, f"level_weights has entries for the labels 1 to {len(weights)}")
    return labels.new_tensor((0.0, *weights)).cumsum(0)[labels.long()]
