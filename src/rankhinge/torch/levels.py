"""Graded relevance: which samples are relevant at each level, and what the levels weigh in each list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from rankhinge.losses import RankingLoss
from rankhinge.torch.lists import Lists, count_within, working_dtype
from rankhinge.torch.settings import Settings

__all__ = ["Level", "make_levels"]


class Level(NamedTuple):
    """One threshold."""

    relevant: Tensor  # bool, of each gathered sample
    weights: Tensor | None  # ω of each list; None: all 1


def make_levels(relevance: Tensor, lists: Lists, loss: RankingLoss, settings: Settings) -> list[Level]:
    """The thresholds of a batch (see `rankhinge.objective`); one of weight 1 if the relevance is 0/1.

    What a list's levels weigh depends on that list alone, not on what else is in the batch.
    """
    labels = lists.gather(relevance)
    if labels.numel() == 0:
        return []
    weighted = isinstance(settings.level_weights, tuple)
    if labels.dtype == torch.bool and not weighted:
        return [Level(labels, None)]
    is_binary = (labels == 0) | (labels == 1)
    if not weighted and bool(is_binary.all()):
        return [Level(labels != 0, None)]
    labels = labels.to(working_dtype(labels.device))
    _refuse(~(torch.isfinite(labels) & (labels >= 0)), labels, lists, "relevance must be finite and not negative")
    if settings.level_weights is not None:
        levels = list(_given(labels, lists, settings.level_weights))
    elif loss.family == "discount":
        levels = list(_by_gains(labels, lists, loss, settings.gains))
    else:
        reason = (
            f"the loss {loss.name!r} knows relevant (1) and not relevant (0) only: "
            "binarise it, or choose level_weights='uniform' or a number for each label from 1"
        )
        _refuse(~is_binary, labels, lists, reason)
    total = torch.stack([weight for _, weight in levels]).sum(dim=0) if levels else 0.0
    return [Level(relevant, torch.where(weight > 0, weight / total, 0.0)) for relevant, weight in levels]


def _refuse(wrong: Tensor, labels: Tensor, lists: Lists, reason: str) -> None:
    if bool(wrong.any()):
        k = int(wrong.to(torch.uint8).argmax())
        raise ValueError(f"relevance{lists.place(k)} is {labels[k].item():g}: {reason}")


def _by_gains(
    labels: Tensor, lists: Lists, loss: RankingLoss, gains: str | tuple[float, ...]
) -> Iterator[tuple[Tensor, Tensor]]:
    """``ω_ℓ ∝ (γ(ℓ) - γ(ℓ - 1)) · IDCG_ℓ``, which makes the weighted sum of the levels' losses the graded loss."""
    graded = _gains_of(labels, lists, gains)
    table = torch.as_tensor(loss.table(int(lists.sizes.max()) + 1)[1:]).to(labels)
    ideal = torch.cat([table.new_zeros(1), table.cumsum(0)])
    below = 0.0
    for gain in torch.unique(graded[graded > 0]).tolist():
        relevant = graded >= gain
        yield relevant, (gain - below) * ideal[count_within(relevant, lists.offsets)]
        below = gain


def _gains_of(labels: Tensor, lists: Lists, gains: str | tuple[float, ...]) -> Tensor:
    if isinstance(gains, str):
        graded = torch.exp2(labels) - 1.0 if gains == "exponential" else labels
        _refuse(~torch.isfinite(graded), labels, lists, "its gain is not finite")
        return graded
    wrong = (labels != labels.floor()) | (labels >= len(gains))
    _refuse(wrong, labels, lists, f"gains has entries for the labels 0 to {len(gains) - 1}")
    return labels.new_tensor(gains)[labels.long()]


def _given(labels: Tensor, lists: Lists, weights: str | tuple[float, ...]) -> Iterator[tuple[Tensor, Tensor]]:
    """The given weights, shared among the levels that a list reaches."""
    _refuse(labels != labels.floor(), labels, lists, "with level_weights, labels must be whole numbers")
    n_levels = int(labels.max()) if isinstance(weights, str) else len(weights)
    _refuse(labels > n_levels, labels, lists, f"level_weights has entries for the labels 1 to {n_levels}")
    for level in range(1, n_levels + 1):
        relevant = labels >= level
        weight = 1.0 if isinstance(weights, str) else weights[level - 1]
        yield relevant, weight * (count_within(relevant, lists.offsets) > 0).to(labels.dtype)
