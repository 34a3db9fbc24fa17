"""Inference by PyTorch's own operators: stays on the device of the scores, whatever that is.

All lists are handled at once. Samples are sorted by list, class and score. Then the ranks of the negatives are found
level by level, as quicksort would: the ranks ascend with j, so the rank of negative j lies between those of ``j - s``
and ``j + s``, which the previous level has found.

A level adds up the differences ``f_j(i + 1) - f_j(i)`` over these ranges, P entries in all, and there are log₂ N
levels. So it takes O(n log n) time and O(n) memory. The device is waited for once, for the sizes of the lists.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from rankhinge.inference.passes import LARGEST_SCORE
from rankhinge.losses import RankingLoss
from rankhinge.losses.cut import CutLoss
from rankhinge.torch import on_device_cut
from rankhinge.torch.lists import count_within, working_dtype
from rankhinge.torch.tensor_losses import TensorLoss

__all__ = ["BadScore", "Found", "SortedLists", "infer", "infer_tight", "loss_of_counts", "tie_means", "unusable"]


class BadScore(ValueError):
    """A score that no ranking can use; `place` counts the gathered samples."""

    def __init__(self, place: int) -> None:
        super().__init__(f"scores[{place}] is not usable")
        self.place = place


def unusable(scores: Tensor) -> Tensor:
    """Which scores no ranking can use: those that are not finite, or whose differences may overflow."""
    # The limit in the scores' own dtype: in float32 it would be inf itself.
    return ~(scores.abs() <= min(LARGEST_SCORE, torch.finfo(scores.dtype).max))


class Found(NamedTuple):
    """What inference finds: a value for each list, u of each sample, and which lists have both classes."""

    values: Tensor
    coefficients: Tensor
    usable: Tensor


class SortedLists:
    """The lists, each with its positives first, best first, and then its negatives, best first.

    Attributes
    ----------
    scores : Tensor of shape (n,)
    order : Tensor of shape (n,)
        Which sample stands at each place.
    list_of, is_positive : Tensor of shape (n,)
    first, n_positives, n_negatives : Tensor of shape (n_lists,)
        Place of the list's first sample, and counts.
    total_positives, longest : int
    strides : list of (int, int)
        How many negatives are odd multiples of each power of two, the largest power first.
    """

    def __init__(self, scores: Tensor, relevant: Tensor, offsets: Tensor) -> None:
        device, n = scores.device, scores.shape[0]
        work = scores.to(working_dtype(device))
        sizes = offsets.diff()
        lists = torch.arange(sizes.shape[0], device=device)
        list_of = torch.repeat_interleave(lists, sizes, output_size=n)
        self.first = offsets[:-1]
        self.n_positives = count_within(relevant, offsets)
        self.n_negatives = sizes - self.n_positives
        bad = unusable(work)
        powers = [1 << k for k in reversed(range(n.bit_length()))]
        counts = [((self.n_negatives + s) // (2 * s)).sum() for s in powers]
        place = bad.to(torch.uint8).argmax()
        # The one wait for the device: sizes, which decide how much memory to ask for.
        facts = torch.stack([bad.any().long(), place, sizes.max(), self.n_positives.sum(), *counts]).tolist()
        if facts[0]:
            raise BadScore(facts[1])
        self.longest, self.total_positives = facts[2], facts[3]
        self.strides = [(s, number) for s, number in zip(powers, facts[4:], strict=True) if number]
        order = torch.sort(work, descending=True, stable=True).indices
        key = 2 * list_of[order] + ~relevant[order]
        order = order[torch.sort(key, stable=True).indices]
        self.order, self.scores, self.is_positive = order, work[order], relevant[order]
        self.list_of = list_of
        self.offsets = offsets

    @property
    def pairs(self) -> Tensor:
        """``P N`` of each list, as floats, at least 1."""
        return (self.n_positives.to(self.scores.dtype) * self.n_negatives).clamp(min=1)

    @property
    def usable(self) -> Tensor:
        return (self.n_positives > 0) & (self.n_negatives > 0)

    def sums(self, values: Tensor) -> Tensor:
        """Sum over the samples of each list; the same bits in every run."""
        if self.first.shape[0] == 1:
            return values.sum().reshape(1)
        return torch.segment_reduce(values, "sum", lengths=self.offsets.diff(), unsafe=True)

    def unsort(self, values: Tensor, dtype: torch.dtype) -> Tensor:
        """Values by place as values by sample."""
        result = torch.empty_like(values, dtype=dtype)
        result[self.order] = values.to(dtype)
        return result


def infer(scores: Tensor, relevant: Tensor, offsets: Tensor, loss: RankingLoss) -> Found:
    """J, u and usability of each list; ``J = Δ + Σ u s``, as `most_violating_rankings`."""
    lists = SortedLists(scores, relevant, offsets)
    losses, u = _most_violating(lists, loss)
    values = losses + lists.sums(u * _centred(lists))
    usable = lists.usable
    return Found(torch.where(usable, values, 0.0), lists.unsort(u, scores.dtype), usable)


def infer_tight(scores: Tensor, relevant: Tensor, offsets: Tensor, loss: RankingLoss) -> Found:
    """The tight bound, its slopes and usability of each list, as `rankhinge.tight_hinge`."""
    lists = SortedLists(scores, relevant, offsets)
    losses, u = _most_violating(lists, loss)
    slopes = u - _slopes_by_scores(lists)
    # No ranking has a higher score than that by the scores.
    values = losses + lists.sums(slopes * _centred(lists)).clamp(max=0.0)
    usable = lists.usable
    slopes = torch.where(usable[lists.list_of], slopes, 0.0)
    return Found(torch.where(usable, values, 0.0), lists.unsort(slopes, scores.dtype), usable)


def _most_violating(lists: SortedLists, loss: RankingLoss) -> tuple[Tensor, Tensor]:
    """Δ of each list's most violating ranking, and u by place."""
    ranks = best_ranks_of(lists, loss)
    above = counts_above(lists, ranks)
    below = lists.n_positives[lists.list_of] + 1 - ranks
    counts = torch.where(lists.is_positive, -above, below)
    u = 2.0 * tie_means(lists, counts) / lists.pairs[lists.list_of]
    return losses_of(lists, above, ranks, loss), u


def _slopes_by_scores(lists: SortedLists) -> Tensor:
    """What `u` is, by place, of the ranking by the scores; of equal scores the positives come first."""
    # Positives stand first in a list: a stable sort by score, then by list, keeps them before equal negatives.
    order = torch.sort(lists.scores, descending=True, stable=True).indices
    order = order[torch.sort(lists.list_of[order], stable=True).indices]
    is_positive, q = lists.is_positive[order], lists.list_of[order]
    positives, negatives = (torch.cat([q.new_zeros(1), kind.long().cumsum(0)]) for kind in (is_positive, ~is_positive))
    first = lists.first[q]
    above = negatives[:-1] - negatives[first]
    below = lists.n_positives[q] - (positives[:-1] - positives[first])
    counts = torch.empty_like(above)
    counts[order] = torch.where(is_positive, -above, below)
    return 2.0 * counts.to(lists.scores.dtype) / lists.pairs[lists.list_of]


def best_ranks_of(lists: SortedLists, loss: RankingLoss) -> Tensor:
    """The rank of the negative at each place in the most violating rankings."""
    if isinstance(loss, CutLoss):
        return on_device_cut.best_ranks(lists, loss)
    return _best_ranks(lists, _on_device(lists, loss))


def losses_of(lists: SortedLists, above: Tensor, ranks: Tensor, loss: RankingLoss) -> Tensor:
    """Δ of each list, from the counts (and ranks, which say the same); meaningless where it is not usable."""
    if isinstance(loss, CutLoss):
        return on_device_cut.losses_of_counts(lists, above, loss)
    return loss_of_counts(lists, above, ranks, _on_device(lists, loss))


def _on_device(lists: SortedLists, loss: RankingLoss) -> TensorLoss:
    return TensorLoss(loss, lists.longest, lists.scores.device, lists.scores.dtype)


def _best_ranks(lists: SortedLists, loss: TensorLoss) -> Tensor:
    """The rank of the negative at each place, from 1 to P + 1; 1 at the places of positives."""
    n = lists.scores.shape[0]
    # A spare entry for places beyond the end, which are looked at and not used.
    ranks = torch.ones(n + 1, dtype=torch.int64, device=lists.scores.device)
    if lists.total_positives == 0:
        return ranks[:n]
    numbers = torch.arange(lists.first.shape[0], device=ranks.device)
    for s, number in lists.strides:
        per_list = (lists.n_negatives + s) // (2 * s)
        q = torch.repeat_interleave(numbers, per_list, output_size=number)
        before = (per_list.cumsum(0) - per_list)[q]
        j = s + 2 * s * (torch.arange(number, device=ranks.device) - before)
        place = (lists.first + lists.n_positives)[q] + j - 1
        low = torch.where(j > s, ranks[(place - s).clamp(min=0)], 1)
        high = torch.where(j + s <= lists.n_negatives[q], ranks[(place + s).clamp(max=n)], lists.n_positives[q] + 1)
        ranks[place] = _largest_maximisers(lists, loss, q, j, lists.scores[place], low, high)
    return ranks[:n]


def _largest_maximisers(
    lists: SortedLists, loss: TensorLoss, q: Tensor, j: Tensor, score: Tensor, low: Tensor, high: Tensor
) -> Tensor:
    """The largest maximiser of f_j over ``low … high``, for negatives of given lists, numbers and scores."""
    lengths = high - low
    # One more range takes up what is left, so that the number of entries is known beforehand.
    rest = (lists.total_positives - lengths.sum()).reshape(1)
    lengths = torch.cat([lengths, rest])
    start = lengths.cumsum(0) - lengths
    n_ranges = lengths.shape[0]
    of = torch.repeat_interleave(torch.arange(n_ranges, device=q.device), lengths, output_size=lists.total_positives)
    extended = [torch.cat([tensor, tensor[:1]]) for tensor in (q, j, score, low)]
    q, j, score, low = (tensor[of] for tensor in extended)
    i = torch.arange(of.shape[0], device=of.device) - start[of] + low
    in_rest = of == n_ranges - 1
    i = torch.where(in_rest, 1, i)
    positive = lists.scores[lists.first[q] + i - 1]
    n_positives, n_negatives = (
        count[q].clamp(min=1).to(score.dtype) for count in (lists.n_positives, lists.n_negatives)
    )
    # Beyond P N the loss, P N / 2 at most, decides nothing: outliers need not spoil the sums.
    limit = n_positives * n_negatives
    differences = (positive - score).clamp(-limit, limit) + loss.scaled_step(j, i, n_positives, n_negatives)
    sums = _sums_within(torch.where(in_rest, 0.0, differences), of, start)
    best = sums.new_zeros(n_ranges).scatter_reduce(0, of, sums, "amax")
    candidates = torch.where(sums == best[of], i + 1, 0)
    return extended[3].scatter_reduce(0, of, candidates, "amax")[:-1]


def _sums_within(values: Tensor, of: Tensor, start: Tensor) -> Tensor:
    """Running sums that begin anew with each range.

    The difference of two running sums over everything would have the rounding errors of everything. So each range
    begins with what undoes the sum of the one before, up to rounding, and what is left of that is then subtracted.
    """
    running = torch.cat([values.new_zeros(1), values.cumsum(0)])
    ends = torch.cat([start[1:], start.new_full((1,), values.shape[0])])
    totals = running[ends] - running[start]
    before = torch.cat([of[:1], of[:-1]])
    undone = torch.where(of != before, totals[before], 0.0)
    sums = (values - undone).cumsum(0)
    first = start.clamp(max=max(values.shape[0] - 1, 0))
    return sums - (sums[first] - values[first])[of]


def counts_above(lists: SortedLists, ranks: Tensor) -> Tensor:
    """``a_i`` at the places of positives, 0 elsewhere, from the ranks of the negatives."""
    n = ranks.shape[0]
    inside = ~lists.is_positive & (ranks <= lists.n_positives[lists.list_of])
    place = torch.where(inside, lists.first[lists.list_of] + ranks - 1, n)
    starting = torch.zeros(n + 1, dtype=torch.int64, device=ranks.device)
    starting.scatter_add_(0, place, torch.ones_like(place))
    running = starting[:n].cumsum(0)
    base = torch.cat([running.new_zeros(1), running])[lists.first]
    return torch.where(lists.is_positive, running - base[lists.list_of], 0)


def loss_of_counts(lists: SortedLists, above: Tensor, ranks: Tensor, loss: TensorLoss) -> Tensor:
    """Δ of each list, from the counts (and ranks, which say the same); meaningless where it is not usable."""
    q = lists.list_of
    n_positives, n_negatives = (
        count.clamp(min=1).to(lists.scores.dtype)[q] for count in (lists.n_positives, lists.n_negatives)
    )
    number = torch.arange(1, q.shape[0] + 1, device=q.device) - lists.first[q]
    if loss.has_partial_sum:
        j = torch.where(lists.is_positive, 1, number - lists.n_positives[q])
        return lists.sums(torch.where(lists.is_positive, 0.0, loss.behind(j, ranks, n_positives, n_negatives)))
    i = torch.where(lists.is_positive, number, 1)
    return lists.sums(torch.where(lists.is_positive, loss.part(i, above, n_positives, n_negatives), 0.0))


def tie_means(lists: SortedLists, counts: Tensor) -> Tensor:
    """Integers by place, and in place of each its mean over the samples of equal list, class and score."""
    n = counts.shape[0]
    index = torch.arange(n, device=counts.device)
    key = 2 * lists.list_of + ~lists.is_positive
    differs = (lists.scores[1:] != lists.scores[:-1]) | (key[1:] != key[:-1])
    yes = differs.new_ones(1)
    start = torch.where(torch.cat([yes, differs]), index, 0).cummax(0).values
    end = torch.where(torch.cat([differs, yes]), index + 1, n).flip(0).cummin(0).values.flip(0)
    running = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    return (running[end] - running[start]).to(lists.scores.dtype) / (end - start)


def _centred(lists: SortedLists) -> Tensor:
    """Scores minus one amid those that matter: Σu = 0 allows it, and keeps u·s accurate whatever their offset."""
    last = lists.scores.shape[0] - 1
    middle = lists.scores[(lists.first + lists.n_positives // 2).clamp(max=last)]
    highest = lists.scores[(lists.first + lists.n_positives).clamp(max=last)]
    return lists.scores - torch.minimum(middle, highest)[lists.list_of]
