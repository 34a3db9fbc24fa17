"""Direct loss minimisation by PyTorch's own operators: stays on the device of the scores."""

from __future__ import annotations

import torch
from torch import Tensor

from rankhinge.losses import RankingLoss
from rankhinge.torch.compiled import require_update
from rankhinge.torch.on_device import Found, SortedLists, counts_above, infer, losses_of, tie_means
from rankhinge.torch.tensor_losses import TensorLoss

__all__ = ["infer_direct"]


def infer_direct(scores: Tensor, relevant: Tensor, offsets: Tensor, loss: RankingLoss, epsilon: float) -> Found:
    """Δ of each list's ranking by score, and the gradient of direct loss minimisation; ε < 0: the negative update."""
    lists = SortedLists(scores, relevant, offsets)
    wide = lists.unsort(lists.scores, lists.scores.dtype)
    require_update(loss, epsilon)
    losses, by_scores = _rank_by_scores(lists, loss)
    if epsilon > 0:
        u = infer(wide / epsilon, relevant, offsets, loss).coefficients
    else:
        u = _better_rankings(lists, TensorLoss(loss, lists.longest, scores.device, wide.dtype), -epsilon)
    gradient = ((u - by_scores) / epsilon).to(scores.dtype)
    return Found(torch.where(lists.usable, losses, 0.0), gradient, lists.usable)


def _rank_by_scores(lists: SortedLists, loss: RankingLoss) -> tuple[Tensor, Tensor]:
    """Δ of each list (ties: the worst order) and u (ties: the mean over all orders) of the ranking by score."""
    # By list and score: where all samples of one score stand together, whatever their class.
    order = torch.sort(lists.scores, descending=True, stable=True).indices
    order = order[torch.sort(lists.list_of[order], stable=True).indices]
    scores, is_positive, n = lists.scores[order], lists.is_positive[order], order.shape[0]
    index = torch.arange(n, device=order.device)
    differs = (scores[1:] != scores[:-1]) | (lists.list_of[1:] != lists.list_of[:-1])
    yes = differs.new_ones(1)
    start = torch.where(torch.cat([yes, differs]), index, 0).cummax(0).values
    end = torch.where(torch.cat([differs, yes]), index + 1, n).flip(0).cummin(0).values.flip(0)
    positives = torch.cat([index.new_zeros(1), is_positive.cumsum(0)])
    negatives = torch.cat([index.new_zeros(1), (~is_positive).cumsum(0)])
    base = lists.first[lists.list_of]
    # Twice the number of the other class above, a tied sample counting once.
    above = negatives[start] + negatives[end] - 2 * negatives[base]
    not_below = positives[start] + positives[end] - 2 * positives[base]
    counts = torch.where(is_positive, -above, 2 * lists.n_positives[lists.list_of] - not_below)
    u = torch.empty_like(lists.scores)
    u[order] = counts.to(u.dtype) / lists.pairs[lists.list_of]
    worst_above, ranks = torch.empty_like(index), torch.empty_like(index)
    worst_above[order] = torch.where(is_positive, negatives[end] - negatives[base], 0)
    ranks[order] = positives[start] - positives[base] + 1
    return losses_of(lists, worst_above, ranks, loss), lists.unsort(u, u.dtype)


def _better_rankings(lists: SortedLists, loss: TensorLoss, epsilon: float) -> Tensor:
    """The u of the rankings that maximise ``F - εΔ``: one list after the other, a row of the programme a positive."""
    ranks = torch.ones_like(lists.list_of)
    facts = torch.stack([lists.first, lists.n_positives, lists.n_negatives], dim=1)[lists.usable].tolist()
    for first, n_positives, n_negatives in facts:
        middle = first + n_positives
        above = _best_counts(lists.scores[first:middle], lists.scores[middle : middle + n_negatives], loss, epsilon)
        numbers = torch.arange(1, n_negatives + 1, device=above.device)
        ranks[middle : middle + n_negatives] = torch.searchsorted(above, numbers) + 1
    above = counts_above(lists, ranks)
    below = lists.n_positives[lists.list_of] + 1 - ranks
    counts = torch.where(lists.is_positive, -above, below)
    u = 2.0 * tie_means(lists, counts) / lists.pairs[lists.list_of]
    return lists.unsort(torch.where(lists.usable[lists.list_of], u, 0.0), u.dtype)


def _best_counts(positives: Tensor, negatives: Tensor, loss: TensorLoss, epsilon: float) -> Tensor:
    """``a_1 ≤ … ≤ a_P`` that maximise ``F - εΔ``; ``h(i, j) = max_{a ≤ j} h(i - 1, a) + what a_i = a adds``."""
    n_positives, n_negatives = positives.shape[0], negatives.shape[0]
    centre = negatives[0]
    sums = torch.cat([negatives.new_zeros(1), (negatives - centre).cumsum(0)])
    a = torch.arange(n_negatives + 1, device=sums.device)
    sizes = [torch.full_like(sums, size) for size in (n_positives, n_negatives)]
    unit = 2.0 / n_positives / n_negatives
    best = torch.zeros_like(sums)
    choices = torch.empty((n_positives, n_negatives + 1), dtype=torch.int32, device=sums.device)
    for i in range(n_positives):
        parts = loss.part(torch.full_like(a, i + 1), a, *sizes)
        value = best + unit * (sums - a * (positives[i] - centre)) - epsilon * parts
        best = value.cummax(0).values
        rises = torch.cat([value.new_full((1,), -torch.inf), best[:-1]]) < value
        choices[i] = torch.where(rises, a, 0).cummax(0).values
    above = [a[-1]]
    for i in range(n_positives - 1, -1, -1):
        above.append(choices[i][above[-1]].long())
    return torch.stack(above[:0:-1])
