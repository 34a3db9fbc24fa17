"""Inference on CPU tensors, by the compiled kernels; the tensors' memory is used as it is."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rankhinge import _threads
from rankhinge.inference import most_violating_ranking, most_violating_rankings
from rankhinge.inference.callbacks import compile_loss
from rankhinge.inference.long_list import equal_shares
from rankhinge.inference.passes import first_bad
from rankhinge.losses import CustomLoss, RankingLoss
from rankhinge.torch import direct_kernels as kernels
from rankhinge.torch.on_device import BadScore, Found

__all__ = ["infer", "infer_direct", "infer_one"]

_FAMILIES = {
    "ap": kernels.AP,
    "discount": kernels.DISCOUNT,
    "rr": kernels.RECIPROCAL_RANK,
    "auc": kernels.AUC,
}
# Compiled steps of losses that users have defined.
_parts: WeakKeyDictionary[RankingLoss, Any] = WeakKeyDictionary()


def infer_one(scores: Tensor, relevant: Tensor, loss: RankingLoss) -> tuple[float, Tensor]:
    """J and u of one list; a `ValueError` if it is not usable."""
    found = most_violating_ranking(scores.numpy(), relevant.numpy(), loss)
    return found.value, torch.from_numpy(found.coefficients)


def infer(scores: Tensor, relevant: Tensor, offsets: Tensor, loss: RankingLoss) -> Found:
    """J, u and usability of each list."""
    s, r = scores.numpy(), relevant.numpy()
    found = most_violating_rankings(s, r, offsets.numpy(), loss)
    return Found(*map(torch.from_numpy, (found.values, found.coefficients, found.usable)))


def infer_direct(scores: Tensor, relevant: Tensor, offsets: Tensor, loss: RankingLoss, epsilon: float) -> Found:
    """Δ of each list's ranking by score, and the gradient of direct loss minimisation; ε < 0: the negative update."""
    s, r, bounds = scores.numpy(), relevant.numpy(), offsets.numpy()
    # In float64: divided by a small ε, scores in float32 would overflow.
    wide = s.astype(np.float64)
    losses, by_scores, usable = np.zeros(bounds.size - 1), np.zeros(s.size), np.zeros(bounds.size - 1, np.bool_)
    # argmax F(s) + εΔ = argmax F(s / ε) + Δ
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = wide / epsilon if epsilon > 0 else wide
    place = max(first_bad(wide), first_bad(scaled))
    if place >= 0:
        raise BadScore(place)
    compiled = compile_loss(loss, int(np.diff(bounds).max(initial=0)))
    work = partial(kernels.rank_by_scores, wide, r, bounds, *compiled, losses, by_scores, usable)
    _threads.run([partial(work, a, b) for a, b in pairwise(equal_shares(bounds))])
    if epsilon > 0:
        u = most_violating_rankings(scaled, r, bounds, loss).coefficients
    else:
        u = np.zeros_like(wide)
        for q in np.flatnonzero(usable):
            part = slice(int(bounds[q]), int(bounds[q + 1]))
            _better_ranking(wide[part], r[part], loss, -epsilon, compiled.table, u[part])
    gradient = ((u - by_scores) / epsilon).astype(s.dtype)
    return Found(*map(torch.from_numpy, (losses, gradient, usable)))


def _better_ranking(
    scores: NDArray[np.float64],
    relevant: NDArray[np.bool_],
    loss: RankingLoss,
    epsilon: float,
    table: NDArray[np.float64],
    u: NDArray[Any],
) -> None:
    """Write u of the maximiser of ``F - εΔ``: O(P N) time, a bit of memory for each pair."""
    if not isinstance(loss, CustomLoss):
        kernels.better_ranking(scores, relevant, epsilon, _FAMILIES[loss.family], table, u)
        return
    if loss not in _parts:
        _parts[loss] = kernels.parts_by_steps(loss.step_function)  # type: ignore[no-untyped-call]
    positives, negatives, sums, positive_index, negative_index = kernels.centred(scores, relevant)
    n_positives, n_negatives = positives.size, negatives.size
    best = np.zeros(n_negatives + 1)
    is_taken = np.zeros((n_positives, n_negatives // 8 + 1), np.uint8)
    unit = 2.0 / n_positives / n_negatives
    for i in range(n_positives):
        parts = _parts[loss](i + 1, n_positives, n_negatives)
        kernels.advance(best, sums, positives[i], unit, epsilon, parts, is_taken[i])
    above = kernels.read_back(is_taken, n_negatives)
    kernels.write_coefficients(above, positives, negatives, positive_index, negative_index, u)
