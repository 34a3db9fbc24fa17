"""Direct loss minimisation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real

from torch import Tensor

from rankhinge.losses import RankingLoss
from rankhinge.torch.lists import check_shapes
from rankhinge.torch.module import ListLoss
from rankhinge.torch.operators import rank_loss
from rankhinge.torch.settings import encode

__all__ = ["DirectLoss", "direct_loss"]

_SIGNS = {"positive": 1.0, "negative": -1.0}


def direct_loss(
    scores: Tensor,
    relevance: Tensor,
    epsilon: float = 1.0,
    *,
    update: str = "positive",
    loss: str | RankingLoss = "ap",
    dim: int = -1,
    mask: Tensor | None = None,
    groups: Tensor | None = None,
    reduction: str = "mean",
    gains: str | Sequence[float] = "exponential",
    level_weights: str | Sequence[float] | None = None,
    backend: str = "auto",
) -> Tensor:
    r"""The loss of the ranking by score, with the gradient of direct loss minimisation.

    The value is Δ of the ranking by score, for instance one minus its average precision. Equal scores take the worst
    order. The derivative of Δ is 0 almost everywhere. It is replaced, with ``F(R) = Σ u_k(R) s_k``, by

    .. math:: \pm \frac1\varepsilon \left[ u(R_{\pm\varepsilon}) - u(R_s) \right], \qquad
              R_{\pm\varepsilon} = \arg\max_R F(R) \pm \varepsilon \Delta(R), \quad R_s = \arg\max_R F(R),

    which in expectation over the data tends to the gradient of the expected loss as ε → 0 (theorem 1 of the paper).
    For the positive update (away from worse rankings) it is the gradient of
    :math:`\frac1\varepsilon[\max_R (F + \varepsilon\Delta) - \max_R F] \ge \Delta`, for the negative one (towards
    better rankings) that of :math:`\frac1\varepsilon[\max_R F - \max_R (F - \varepsilon\Delta)] \le \Delta`: the value
    lies between the two.

    Parameters
    ----------
    scores, relevance
        As for `rank_hinge`.
    epsilon : float, default 1.0
        ε > 0, in units of score differences: ``epsilon=e`` for scores s equals ``epsilon=1`` for s / e. With 1, the
        positive update has the margins of `rank_hinge`.
    update : {"positive", "negative"}, default "positive"
        The positive update takes two to three times as long as `rank_hinge`. The negative one is a dynamic program
        with O(P N) time and one bit of memory for each pair on the CPU. On other devices it takes 4 bytes for each
        pair, and goes list by list.
    loss, dim, mask, groups, reduction, gains, level_weights, backend
        As for `rank_hinge`.

    Returns
    -------
    Tensor
        As for `rank_hinge`.

    References
    ----------
    Song, Schwing, Zemel, Urtasun: Training Deep Neural Networks via Direct Loss Minimization, ICML 2016.

    Examples
    --------
    >>> import torch
    >>> from rankhinge.torch import direct_loss
    >>> scores = torch.tensor([2.0, 1.5, 1.0, 0.5], requires_grad=True)
    >>> value = direct_loss(scores, torch.tensor([0, 1, 0, 1]), epsilon=4.0)
    >>> value.backward()
    >>> value.item(), scores.grad.tolist()
    (0.5, [0.0, -0.125, 0.125, 0.0])
    """
    dim = check_shapes(scores, relevance, mask, groups, dim)
    settings = encode(loss, reduction, backend, gains, level_weights)
    return rank_loss(scores, relevance, mask, groups, dim, settings, _signed(epsilon, update))


def _signed(epsilon: float, update: str) -> float:
    if update not in _SIGNS:
        raise ValueError(f"update is {update!r}: choose one of {list(_SIGNS)}")
    # Written as a comparison, which `torch.compile` can trace for an ε that changes.
    if not (isinstance(epsilon, Real) and 0 < epsilon < math.inf):
        raise ValueError(f"epsilon is {epsilon!r}: it must be a positive and finite number")
    return _SIGNS[update] * epsilon


class DirectLoss(ListLoss):
    """`direct_loss` as a module.

    Parameters
    ----------
    epsilon, update, loss, dim, reduction, gains, level_weights, backend
        As for `direct_loss`. Set the attribute `epsilon` to lower ε during training.

    Examples
    --------
    >>> import torch
    >>> from rankhinge.torch import DirectLoss
    >>> scores = torch.tensor([0.3, 0.2, 0.1], requires_grad=True)
    >>> DirectLoss(epsilon=0.5)(scores, torch.tensor([1, 0, 0])).backward()
    >>> scores.grad
    tensor([-2.,  2.,  0.])
    """

    _chosen = ListLoss._chosen | {"epsilon", "update"}

    def __init__(
        self,
        epsilon: float = 1.0,
        update: str = "positive",
        loss: str | RankingLoss = "ap",
        *,
        dim: int = -1,
        reduction: str = "mean",
        gains: str | Sequence[float] = "exponential",
        level_weights: str | Sequence[float] | None = None,
        backend: str = "auto",
    ) -> None:
        super().__init__(loss, dim, reduction, gains, level_weights, backend)
        self.epsilon = epsilon
        self.update = update
        self._encode()

    def _encode(self) -> None:
        self._signed_epsilon = _signed(self.epsilon, self.update)
        super()._encode()

    def extra_repr(self) -> str:
        """The text that `print` shows in parentheses."""
        return f"epsilon={self.epsilon}, {self.update!r}, {self.loss!r}, dim={self.dim}, reduction={self.reduction!r}"
