"""The losses that `torch_losses.py` compares, each as a call of forward and backward pass.

Losses over *one list* take n scores, 5 % of them relevant. Losses over a *batch of embeddings* take n embeddings in
which every sample queries the others, 16 classes of equal size (which SmoothAP needs): about 6 % relevant.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import torch
from torch import Tensor
from torch.nn import functional as F

from rankhinge.torch import rank_hinge, retrieval_loss

POSITIVE_SHARE = 0.05
DIMENSIONS = 64
CLASSES = 16
TEMPERATURE = 0.1
Criterion = Callable[[Tensor, Tensor], Tensor]


def approx_ndcg(scores: Tensor, relevant: Tensor, rows: Tensor | None = None) -> Tensor:
    """Qin, Liu, Li: A general approximation framework for direct optimization of IR measures, 2010, eq. 16 and 22.

    ``rank_i ≈ 1 + Σ_{j ≠ i} σ((s_j - s_i) / T)``, for all samples or for the given rows only.
    """
    chosen = scores if rows is None else scores[rows]
    ranks = 0.5 + torch.sigmoid((scores - chosen[:, None]) / TEMPERATURE).sum(dim=1)
    gains = relevant.to(scores.dtype) if rows is None else relevant[rows].to(scores.dtype)
    n_positives = int(relevant.sum())
    ideal = (1 / torch.log2(torch.arange(2, n_positives + 2, dtype=scores.dtype))).sum()
    return 1 - (gains / torch.log2(1 + ranks)).sum() / ideal


def approx_ndcg_of_relevant(scores: Tensor, relevant: Tensor) -> Tensor:
    """The same value: with binary relevance only the relevant samples' ranks count."""
    return approx_ndcg(scores, relevant, torch.nonzero(relevant).squeeze(1))


class _BlackboxRank(torch.autograd.Function):
    """Rolínek, Musil, Paulus, Vlastelica, Michaelis, Martius: Optimizing rank-based metrics with blackbox
    differentiation, CVPR 2020: the backward pass ranks once more, at scores moved along the incoming gradient."""

    @staticmethod
    def forward(ctx, scores, strength):
        ranks = _ranks(scores)
        ctx.save_for_backward(scores, ranks)
        ctx.strength = strength
        return ranks

    @staticmethod
    def backward(ctx, gradient):
        scores, ranks = ctx.saved_tensors
        moved = _ranks(scores + ctx.strength * gradient)
        return (moved - ranks) / (ctx.strength + 1e-8), None


def _ranks(scores: Tensor) -> Tensor:
    ranks = torch.empty_like(scores)
    ranks[torch.argsort(scores, descending=True)] = torch.arange(1, len(scores) + 1, dtype=scores.dtype)
    return ranks


def blackbox_ap(scores: Tensor, relevant: Tensor) -> Tensor:
    among_all = _BlackboxRank.apply(scores, 4.0)[relevant]
    among_relevant = _BlackboxRank.apply(scores[relevant], 4.0)
    return 1 - (among_relevant / among_all).mean()


def libauc_ap(n: int) -> Criterion:
    from libauc.losses import APLoss

    criterion, index = APLoss(data_len=n), torch.arange(n)
    return lambda scores, relevant: criterion(scores, relevant.long(), index)


def of_library(name: str) -> Criterion:
    from pytorch_metric_learning import losses

    return getattr(losses, name)()


@dataclass(frozen=True)
class Rival:
    """A loss: over a list of scores or a batch of embeddings, made for a size."""

    text: str
    over: str  # "list" or "batch"
    make: Callable[[int], Criterion]
    is_relaxation: bool = False
    library: str | None = None

    @property
    def is_there(self) -> bool:
        return self.library is None or find_spec(self.library) is not None


RIVALS = {
    "ap": Rival("`rank_hinge`, AP", "list", lambda n: rank_hinge),
    "ndcg": Rival("`rank_hinge`, NDCG", "list", lambda n: lambda s, r: rank_hinge(s, r, loss="ndcg")),
    "on device": Rival(
        '`rank_hinge`, AP, `backend="torch"`', "list", lambda n: lambda s, r: rank_hinge(s, r, backend="torch")
    ),
    "bce": Rival(
        "binary cross-entropy",
        "list",
        lambda n: lambda s, r: F.binary_cross_entropy_with_logits(s, r.to(s.dtype)),
    ),
    "blackbox": Rival("blackbox ranking, AP", "list", lambda n: blackbox_ap),
    "libauc": Rival("LibAUC's APLoss", "list", libauc_ap, True, "libauc"),
    "approx": Rival("ApproxNDCG, all pairs", "list", lambda n: approx_ndcg, True),
    "approx relevant": Rival("ApproxNDCG, relevant × all", "list", lambda n: approx_ndcg_of_relevant, True),
    "retrieval": Rival("`retrieval_loss`, AP", "batch", lambda n: lambda e, y: retrieval_loss(e, y, scale=16.0)),
    "fast": Rival(
        "FastAP (pytorch-metric-learning)",
        "batch",
        lambda n: of_library("FastAPLoss"),
        True,
        "pytorch_metric_learning",
    ),
    "smooth": Rival(
        "SmoothAP (pytorch-metric-learning)",
        "batch",
        lambda n: of_library("SmoothAPLoss"),
        True,
        "pytorch_metric_learning",
    ),
}
# No losses, but what any of them would have to do: sort the scores; compare the embeddings.
YARDSTICKS = {"list": "torch.sort", "batch": "similarities"}


def make_input(over: str, n: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(n)
    if over == "list":
        relevant = torch.zeros(n, dtype=torch.bool)
        relevant[torch.randperm(n, generator=generator)[: math.ceil(POSITIVE_SHARE * n)]] = True
        scores = torch.randn(n, generator=generator)
        return scores + 0.5 * relevant, relevant
    labels = torch.arange(n) // math.ceil(n / CLASSES)
    centres = torch.randn(CLASSES, DIMENSIONS, generator=generator)
    return centres[labels] + 2 * torch.randn(n, DIMENSIONS, generator=generator), labels


def call_of(name: str, n: int) -> Callable[[], None]:
    """Forward and backward pass of a rival; gradients are written anew each time."""
    over = RIVALS[name].over
    leaf, target = make_input(over, n)
    leaf.requires_grad_()
    criterion = RIVALS[name].make(n)

    def call() -> None:
        leaf.grad = None
        criterion(leaf, target).backward()

    return call


def yardstick(over: str, n: int) -> Callable[[], None]:
    leaf, _ = make_input(over, n)
    if over == "list":
        return lambda: torch.sort(leaf)
    rows = max(1, (1 << 22) // n)

    def similarities() -> None:
        for first in range(0, n, rows):
            leaf[first : first + rows] @ leaf.T

    return similarities
