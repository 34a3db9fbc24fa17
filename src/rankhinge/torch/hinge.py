"""The structured hinge as a loss for networks."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from rankhinge.losses import RankingLoss
from rankhinge.torch.lists import check_shapes
from rankhinge.torch.module import ListLoss
from rankhinge.torch.operators import rank_loss
from rankhinge.torch.settings import encode

__all__ = ["RankHingeLoss", "rank_hinge"]


def rank_hinge(
    scores: Tensor,
    relevance: Tensor,
    *,
    loss: str | RankingLoss = "ap",
    dim: int = -1,
    mask: Tensor | None = None,
    groups: Tensor | None = None,
    reduction: str = "mean",
    gains: str | Sequence[float] = "exponential",
    level_weights: str | Sequence[float] | None = None,
    backend: str = "auto",
    bound: str = "convex",
) -> Tensor:
    r"""Exact convex upper bound on one minus AP, NDCG or another metric: the mean structured hinge over the lists.

    .. math:: J(s) = \max_R \; \Delta(R) + \sum_k u_k(R) \, s_k \;\ge\; \Delta(\text{ranking by } s)

    The maximum over all rankings R is found exactly (`rankhinge.most_violating_ranking`), in O(n log n) time and O(n)
    memory. Its coefficients u are the gradient. J is convex and piecewise linear in the scores. The scale of the scores
    matters: the larger their differences, the smaller the margin in comparison.

    Parameters
    ----------
    scores : Tensor of shape (n,) or (…, n, …), any floating dtype
        Lists run along `dim`. Padded lists need ``dim=-1`` and `mask`. Scores of K labels for n samples, ranked label
        by label, have shape (n, K) and need ``dim=0``. Squeeze the last dimension of a head with one output, (n, 1).
    relevance : Tensor of the same shape
        Bool, 0/1, -1/1, or graded (0 = not relevant).
    loss : str or RankingLoss, default "ap"
        ``"ap"``, ``"ndcg"``, ``"rr"``, ``"auc"``, ``"rbp"``, with a cut ``"ndcg@10"``, ``"precision@1%"`` and others
        (see `rankhinge.losses.get_loss`), or an object of `rankhinge.losses`, `CustomLoss` included.
    dim : int, default -1
        The dimension along which the lists run. By default each *row* of a matrix is a list. Scores of K labels, (n,
        K), where each column ranks the samples, need ``dim=0``.
    mask : Tensor of the same shape, bool, optional
        True where an entry is valid. All others are ignored, whatever they hold, and get gradient 0.
    groups : Tensor of shape (n,), integers, optional
        The list of each sample, in any order.
    reduction : {"mean", "sum", "none"}, default "mean"
        Over the *usable* lists, which have samples of different relevance. Other lists have value 0 and gradient 0 and
        do not count in the mean. If no list is usable, the mean is 0, with a warning. ``"none"``: the value of every
        list, in the shape of the scores without `dim`, or by ascending group id.
    gains : {"exponential", "linear"} or sequence of float, default "exponential"
        Gain of graded relevance y for losses of the DCG family: ``2^y - 1``, ``y``, or ``gains[y]``. The graded loss is
        bounded by its exact decomposition into levels, as in `SVMRanker`.
    level_weights : "uniform" or sequence of float, optional
        Weights of the thresholds ``y ≥ 1``, ``y ≥ 2``, … for graded relevance and losses outside the DCG family.
        Without it, these losses take 0/1 only.
    backend : {"auto", "compiled", "torch"}, default "auto"
        ``"auto"``: compiled kernels for tensors on the CPU. Tensors elsewhere stay on their device and use PyTorch's
        own operators. Both are exact.
    bound : {"convex", "tight"}, default "convex"
        ``"tight"``: T, the hinge minus the score of the ranking by the scores (`rankhinge.tight_hinge`). It lies
        between the loss and J, is not convex, and does not shrink scores that overlap. Warm up with another loss.

    Returns
    -------
    Tensor
        Shape (), or one value per list. float64 for float64 scores, else float32.

    Raises
    ------
    ValueError
        If shapes do not fit, the input is empty, valid scores are not finite or not floating, or the loss does not
        support the relevance.

    References
    ----------
    Mohapatra, Rolínek, Jawahar, Kolmogorov, Kumar: Efficient Optimization for Rank-based Loss Functions, CVPR 2018.

    Examples
    --------
    >>> import torch
    >>> from rankhinge.torch import rank_hinge
    >>> scores = torch.tensor([2.0, 1.5, 1.0, 0.5], requires_grad=True)
    >>> value = rank_hinge(scores, torch.tensor([0, 1, 0, 1]))
    >>> value.backward()
    >>> value.item(), scores.grad.tolist()
    (1.75, [1.0, -0.5, 0.5, -1.0])
    >>> rank_hinge(scores, torch.tensor([0, 1, 0, 1]), bound="tight").item()
    0.5

    Two padded lists, the second of which has no positive and does not count:

    >>> scores = torch.tensor([[3.0, 1.0, 2.0], [1.0, 0.0, 9.0]])
    >>> relevant = torch.tensor([[True, False, True], [False, False, True]])
    >>> mask = torch.tensor([[True, True, True], [True, True, False]])
    >>> rank_hinge(scores, relevant, mask=mask, reduction="none")
    tensor([0., 0.])
    """
    dim = check_shapes(scores, relevance, mask, groups, dim)
    settings = encode(loss, reduction, backend, gains, level_weights, bound)
    return rank_loss(scores, relevance, mask, groups, dim, settings, 0.0)


class RankHingeLoss(ListLoss):
    """`rank_hinge` as a module. It works with any sampler and optimiser, and needs no dataset indices.

    Parameters
    ----------
    loss, dim, reduction, gains, level_weights, backend, bound
        As for `rank_hinge`.

    Examples
    --------
    >>> import torch
    >>> from rankhinge.torch import RankHingeLoss
    >>> criterion = RankHingeLoss("ndcg", dim=0)  # (n, K) scores: each label ranks the samples
    >>> scores, targets = torch.randn(8, 3, requires_grad=True), torch.eye(8, 3)
    >>> criterion(scores, targets).backward()
    >>> scores.grad.shape
    torch.Size([8, 3])
    """

    _chosen = ListLoss._chosen | {"bound"}

    def __init__(
        self,
        loss: str | RankingLoss = "ap",
        *,
        dim: int = -1,
        reduction: str = "mean",
        gains: str | Sequence[float] = "exponential",
        level_weights: str | Sequence[float] | None = None,
        backend: str = "auto",
        bound: str = "convex",
    ) -> None:
        super().__init__(loss, dim, reduction, gains, level_weights, backend)
        self.bound = bound
        self._encode()

    def extra_repr(self) -> str:
        """The text that `print` shows in parentheses."""
        bound = "" if self.bound == "convex" else f", bound={self.bound!r}"
        return f"{self.loss!r}, dim={self.dim}, reduction={self.reduction!r}{bound}"
