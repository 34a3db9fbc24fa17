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
    r"""Exact convex upper bound on one minus average precision, NDCG, …: mean over lists of the structured hinge.

    .. math:: J(s) = \max_R \; \Delta(R) + \sum_k u_k(R) \, s_k \;\ge\; \Delta(\text{ranking by } s)

    The maximum over all rankings R is found exactly (`rankhinge.most_violating_ranking`), in O(n log n) time and O(n)
    memory, and its coefficients u are the gradient. J is convex and piecewise linear in the scores; scale matters: the
    larger the scores' differences, the less the margin.

    Parameters
    ----------
    scores : Tensor of shape (n,) or (…, n, …), any floating dtype
        Lists run along `dim`. Padded lists: ``dim=-1`` and `mask`. Scores of K labels for n samples, ranked label by
        label: shape (n, K), ``dim=0``. Of a head with one output, (n, 1), squeeze the last dimension.
    relevance : Tensor of the same shape
        Bool, 0/1, -1/1, or graded (0 = not relevant).
    loss : str or RankingLoss, default "ap"
        ``"ap"``, ``"ndcg"``, ``"rr"``, ``"auc"``, ``"rbp"``, with a cut ``"ndcg@10"``, ``"precision@1%"`` and others
        (see `rankhinge.losses.get_loss`), or an object of `rankhinge.losses`, `CustomLoss` included.
    dim : int, default -1
        Along which the lists run. A matrix can be read in two ways: by default each *row* is a list. Scores of K
        labels, (n, K), in which each column ranks the samples, need ``dim=0``.
    mask : Tensor of the same shape, bool, optional
        True: the entry is valid. The others are ignored, whatever is in them, and get gradient 0.
    groups : Tensor of shape (n,), integers, optional
        The list of each sample, in any order.
    reduction : {"mean", "sum", "none"}, default "mean"
        Over the *usable* lists, those with samples of different relevance. Others have value 0 and gradient 0 and do
        not count in the mean; it is 0, with a warning, if there are none. ``"none"``: the value of every list, in the
        shape of the scores without `dim`, or by ascending group id.
    gains : {"exponential", "linear"} or sequence of float, default "exponential"
        Gain of graded relevance y for losses of the DCG family: ``2^y - 1``, ``y``, or ``gains[y]``. The graded loss is
        bounded by its exact decomposition into levels, as in `SVMRanker`.
    level_weights : "uniform" or sequence of float, optional
        What the thresholds ``y ≥ 1``, ``y ≥ 2``, … weigh, for graded relevance and other losses; without it these
        take 0/1 only.
    backend : {"auto", "compiled", "torch"}, default "auto"
        ``"auto"``: compiled kernels for tensors on the CPU, PyTorch's own operators, which leave the data on its
        device, for others. Both are exact.
    bound : {"convex", "tight"}, default "convex"
        ``"tight"``: T, the hinge less the score of the ranking by the scores (`rankhinge.tight_hinge`), which lies
        between the loss and J, is not convex, and does not shrink scores that overlap. Warm up with another loss.

    Returns
    -------
    Tensor
        Of shape () or one value a list; float64 for scores in float64, else float32.

    Raises
    ------
    ValueError
        For shapes that do not fit, empty input, scores that are not finite (valid entries only) or not floating, and
        relevance that the loss does not know.

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
    """`rank_hinge` as a module, which needs no sampler, no dataset indices and no optimiser of its own.

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
        """What `print` shows between the brackets."""
        bound = "" if self.bound == "convex" else f", bound={self.bound!r}"
        return f"{self.loss!r}, dim={self.dim}, reduction={self.reduction!r}{bound}"
