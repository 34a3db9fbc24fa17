"""Inference on CPU tensors, by the compiled kernels; the tensors' memory is used as it is."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from rankhinge import _threads
from rankhinge.inference import core
from rankhinge.inference.by_scores import subtract_ranking, subtract_rankings
from rankhinge.inference.callbacks import compile_parts, compile_tabulated
from rankhinge.inference.long_list import equal_shares
from rankhinge.inference.passes import first_bad
from rankhinge.losses import RankingLoss, get_loss
from rankhinge.losses.base import BY_STEP
from rankhinge.torch import direct_kernels as kernels
from rankhinge.torch.on_device import BadScore, Found

__all__ = ["infer", "infer_direct", "infer_one", "infer_tight", "require_update"]


def infer_one(scores: Tensor, relevant: Tensor, loss: RankingLoss, bound: str = "convex") -> tuple[float, Tensor]:
    """The bound and its slopes for one list; a `ValueError` if it is not usable."""
    s, r = scores.numpy(), relevant.numpy()
    if bound == "convex":
        found = core.infer_one(s, r, loss)
        return found.value, torch.from_numpy(found.coefficients)
    # Rounded to float32 before the difference is taken, equal coefficients would not cancel.
    wide = s.astype(np.float64)
    found = core.infer_one(wide, r, loss)
    value = found.loss + min(subtract_ranking(wide, r, found.coefficients), 0.0)
    return value, torch.from_numpy(found.coefficients.astype(s.dtype, copy=False))


def infer(scores: Tensor, relevant: Tensor, offsets: Tensor, loss: RankingLoss) -> Found:
    """J, u and usability of each list."""
    s, r = scores.numpy(), relevant.numpy()
    found = core.infer_many(s, r, offsets.numpy(), loss)
    return Found(*map(torch.from_numpy, (found.values, found.coefficients, found.usable)))


def infer_tight(scores: Tensor, relevant: Tensor, offsets: Tensor, loss: RankingLoss) -> Found:
    """The tight bound, its slopes and usability of each list, as `rankhinge.tight_hinge`."""
    s, r, bounds = scores.numpy(), relevant.numpy(), offsets.numpy()
    wide = s.astype(np.float64)
    found = core.infer_many(wide, r, bounds, loss)
    values = found.losses + np.minimum(subtract_rankings(wide, r, bounds, found.coefficients), 0.0)
    slopes = found.coefficients.astype(s.dtype, copy=False)
    return Found(*map(torch.from_numpy, (values, slopes, found.usable)))


def require_update(loss: RankingLoss, epsilon: float) -> None:
    """Raise for an update that the loss does not have."""
    if epsilon < 0 and loss.way != BY_STEP:
        raise ValueError(
            f"the negative update needs the step of a loss, and {loss!r} has none: choose update='positive'"
        )


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
    require_update(loss, epsilon)
    # A loss with a cut has no step: u of the ranking by score is that of any loss, and its own Δ is found apart.
    compiled = compile_tabulated(loss if loss.way == BY_STEP else get_loss("ap"), int(np.diff(bounds).max(initial=0)))
    work = partial(kernels.rank_by_scores, wide, r, bounds, *compiled, losses, by_scores, usable)
    _threads.run([partial(work, a, b) for a, b in pairwise(equal_shares(bounds))])
    if loss.way != BY_STEP:
        for q in np.flatnonzero(usable):
            part = slice(int(bounds[q]), int(bounds[q + 1]))
            losses[q] = core.loss_by_scores(wide[part], r[part], loss)
    if epsilon > 0:
        u = core.infer_many(scaled, r, bounds, loss).coefficients
    else:
        u = np.zeros_like(wide)
        parts = compile_parts(loss)
        for q in np.flatnonzero(usable):
            part = slice(int(bounds[q]), int(bounds[q + 1]))
            arrays = compiled.addresses, parts.address, compiled.table, u[part]
            kernels.better_ranking(wide[part], r[part], -epsilon, *arrays)
    gradient = ((u - by_scores) / epsilon).astype(s.dtype)
    return Found(*map(torch.from_numpy, (losses, gradient, usable)))
