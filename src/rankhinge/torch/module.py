"""What the losses of lists share as modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from rankhinge.losses import RankingLoss
from rankhinge.torch.lists import check_shapes
from rankhinge.torch.operators import rank_loss
from rankhinge.torch.settings import encode, loss_of, settings_of

__all__ = ["ListLoss"]


class ListLoss(torch.nn.Module):
    """A loss of lists as a module; parameters as for `rank_hinge`.

    `signed_epsilon` is ε with the sign of the update, for direct loss minimisation; 0: the structured hinge.
    """

    def __init__(
        self,
        loss: str | RankingLoss,
        dim: int,
        reduction: str,
        gains: str | Sequence[float],
        level_weights: str | Sequence[float] | None,
        backend: str,
        signed_epsilon: float = 0.0,
    ) -> None:
        super().__init__()
        self.loss = loss
        self.dim = dim
        self.reduction = reduction
        self.gains = gains
        self.level_weights = level_weights
        self.backend = backend
        self._signed_epsilon = signed_epsilon
        self._encode()

    def _encode(self) -> None:
        self._settings = encode(
            self.loss, self.reduction, self.backend, self.gains, self.level_weights, self._signed_epsilon
        )
        loss_of(settings_of(self._settings))

    def forward(
        self, scores: Tensor, relevance: Tensor, mask: Tensor | None = None, groups: Tensor | None = None
    ) -> Tensor:
        """The loss; see `rank_hinge` and `direct_loss`."""
        dim = check_shapes(scores, relevance, mask, groups, self.dim)
        return rank_loss(scores, relevance, mask, groups, dim, self._settings)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # A copy has a loss object of its own.
        self._encode()
