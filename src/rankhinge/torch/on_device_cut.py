"""Losses with a cut by PyTorch's own operators (see `rankhinge.inference.cut_kernels` for the mathematics).

One list after the other, and within it one positive after the other, each a few operations on k numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from rankhinge.losses.cut import CutLoss
from rankhinge.torch.tensor_losses import on_tensors, table_of

__all__ = ["best_ranks", "losses_of_counts"]


class _TensorCut:
    """The formulas of a loss with a cut, on tensors."""

    def __init__(self, loss: CutLoss, lists: Any) -> None:
        loss.require_suitable(lists.longest)
        self.step, self.part, self.gain, self.norm = on_tensors(loss.cut_formulas())
        self.table = table_of(loss, lists.longest + 1, lists.scores.device, lists.scores.dtype)
        sizes = (lists.n_positives + lists.n_negatives).cpu().numpy()
        depths = torch.from_numpy(np.ascontiguousarray(loss.depths(sizes))).to(lists.first.device)
        self.depths = torch.where(depths > 0, depths, lists.n_positives)
        self.loss = loss

    def gains(self, most: int, like: Tensor) -> Tensor:
        """``g(1) … g(most)``."""
        return self.gain(torch.arange(1, most + 1, device=like.device).to(like), self.table)


def losses_of_counts(lists: Any, above: Tensor, loss: CutLoss) -> Tensor:
    """Δ of each list from the negatives above each positive; meaningless where it is not usable."""
    cut = _TensorCut(loss, lists)
    q, dtype = lists.list_of, lists.scores.dtype
    i = torch.where(lists.is_positive, torch.arange(1, q.shape[0] + 1, device=q.device) - lists.first[q], 1)
    depth = cut.depths[q]
    gains = cut.gains(max(int(cut.depths.max()), 1), lists.scores)
    ideals = torch.cat([gains.new_zeros(1), gains.cumsum(0)])
    most = torch.minimum(cut.depths, lists.n_positives)
    norm = cut.norm(lists.n_positives.to(dtype).clamp(min=1), cut.depths.to(dtype).clamp(min=1), ideals[most])
    lost = torch.where(i <= most[q], gains[(i - 1).clamp(max=gains.shape[0] - 1)], 0.0)
    inside = i + above <= depth
    kept: Any = 0.0
    if cut.part is not None:
        sizes = lists.n_positives[q].to(dtype), lists.n_negatives[q].to(dtype)
        kept = cut.part(i.to(dtype), above.to(dtype), *sizes, cut.table)
    parts = torch.where(lists.is_positive, torch.where(inside, kept, lost), 0.0)
    return lists.sums(parts) / torch.where(lists.usable, norm, torch.ones_like(lists.pairs))


def best_ranks(lists: Any, loss: CutLoss) -> Tensor:
    """The rank of the negative at each place, from 1 to P + 1; 1 at the places of positives."""
    cut = _TensorCut(loss, lists)
    ranks = torch.ones_like(lists.list_of)
    facts = torch.stack([lists.first, lists.n_positives, lists.n_negatives, cut.depths], dim=1)[lists.usable]
    for first, n_positives, n_negatives, depth in facts.tolist():
        loss.require_cheap(depth, n_positives)
        middle = first + n_positives
        negatives = slice(middle, middle + n_negatives)
        ranks[negatives] = _ranks_of_one(lists.scores[first:middle], lists.scores[negatives], depth, cut)
    return ranks


def _ranks_of_one(p: Tensor, n: Tensor, depth: int, cut: _TensorCut) -> Tensor:
    """The ranks of the negatives of one list, both classes best first."""
    unit = 2.0 / p.shape[0] / n.shape[0]
    higher = torch.searchsorted(-p, -n, right=True)  # positives with at least the negative's score
    places = torch.arange(1, p.shape[0] + 1, device=p.device) + torch.searchsorted(-n, -p)
    on_top = int((places <= depth).sum())
    forced = _forced(p, n, depth, on_top, unit)
    gains = cut.gains(min(depth, p.shape[0]), p)
    counts = [p.new_tensor(float(count)) for count in (p.shape[0], depth)]
    norm = cut.norm(*counts, gains.sum())
    lowest = on_top - (forced.shape[0] - 1)
    extra = torch.zeros(on_top + 1, dtype=p.dtype, device=p.device)
    if cut.step is not None:
        extra, _ = _advance(p, n, on_top, depth - lowest, depth, unit, norm, cut)
    rest = gains.flip(0).cumsum(0).flip(0)
    base = torch.cat([rest, rest.new_zeros(1)]) / norm
    numbers = torch.arange(on_top, lowest - 1, -1, device=p.device)
    values = torch.where(forced <= 1.0, base[numbers] + extra[numbers] - forced, -torch.inf)
    m = on_top - int(values.argmax())
    q = depth - m
    ranks = higher.clamp(min=m) + 1
    if cut.step is None:
        ranks[:q] = higher[:q].clamp(max=m) + 1
    else:
        _, block = _advance(p, n, m, q, depth, unit, norm, cut)
        ranks[:q] = block.cummax(0).values if q else block
    return ranks


def _forced(p: Tensor, n: Tensor, depth: int, on_top: int, unit: float) -> Tensor:
    """``c Σ_{j ≤ k - m, i > m} (p_i - n_j)₊`` for m = on_top, on_top - 1 and so on."""
    last = [scores[count - 1] for scores, count in ((p, on_top), (n, depth - on_top)) if count > 0]
    reference = torch.stack(last).min()
    # Beyond P N a difference costs more than any loss.
    limit = float(p.shape[0]) * n.shape[0]
    p, n = ((scores - reference).clamp(-limit, limit) for scores in (p, n))
    zero = p.new_zeros(1)
    sums_p, sums_n = (torch.cat([zero, scores.cumsum(0)]) for scores in (p, n))
    m = torch.arange(on_top, max(0, depth - n.shape[0]), -1, device=p.device)
    q = depth - m
    new, score = n[q], p[m - 1]
    end = torch.maximum(torch.searchsorted(-p, -new), m)
    column = (sums_p[end] - sums_p[m - 1]) - (end - m + 1) * new
    start = torch.minimum(torch.searchsorted(-n, -score, right=True), q)
    row = (q - start) * score - (sums_n[q] - sums_n[start])
    steps = unit * (column.clamp(min=0) + row.clamp(min=0))
    return torch.cat([zero, steps.cumsum(0)])


def _advance(
    p: Tensor, n: Tensor, m: int, size: int, depth: int, unit: float, norm: Tensor, cut: _TensorCut
) -> tuple[Tensor, Tensor]:
    """``Σ_{j ≤ k - i} E_j(i)`` for i = 0 … m, and the best ranks of the first negatives among m positives."""
    sums = p.new_zeros(m + 1)
    j = torch.arange(1, size + 1, device=p.device).to(p)
    extra, ranks = torch.zeros_like(j), torch.ones(size, dtype=torch.int64, device=p.device)
    n_positives, n_negatives = p.new_tensor(float(p.shape[0])), p.new_tensor(float(n.shape[0]))
    for i in range(1, m + 1):
        ahead = p[i - 1] - n[:size]
        step: Any = cut.step
        one = torch.full_like(j, float(i))
        steps = step(1.0 / norm, j, one, n_positives, n_negatives, cut.table)
        extra = (extra - steps - unit * ahead.clamp(min=0)).clamp(min=0)
        # A negative that scores more than a positive is never better off below it.
        ranks = torch.where((extra <= 0) & (ahead >= 0), i + 1, ranks)
        sums[i] = extra[: max(depth - i, 0)].sum()
    return sums, ranks
