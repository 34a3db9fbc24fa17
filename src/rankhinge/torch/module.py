"""What the losses share as modules."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import torch
from torch import Tensor

from rankhinge.losses import RankingLoss
from rankhinge.torch.lists import check_shapes
from rankhinge.torch.operators import rank_loss
from rankhinge.torch.settings import encode, loss_of, settings_of

__all__ = ["ListLoss", "LossModule"]


class LossModule(torch.nn.Module):
    """A loss whose settings make one string: it is made when the module is, and anew when one of them is set.

    Not at every call: `torch.compile` takes the string for a constant.
    """

    _settings: str
    _chosen = frozenset({"loss", "reduction", "backend"})

    def _encode(self) -> None:
        """Check the settings and make `_settings` of them."""
        raise NotImplementedError

    def _keep(self, settings: str) -> None:
        loss_of(settings_of(settings))
        self._settings = settings

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._chosen or "_settings" not in self.__dict__:
            super().__setattr__(name, value)
            return
        before = getattr(self, name)
        self._replace(name, value)
        try:
            self._encode()
        except Exception:
            # Whichever check fails, the module stays as it was.
            self._replace(name, before)
            self._encode()
            raise

    def _replace(self, name: str, value: Any) -> None:
        """Set an attribute; `torch.nn.Module` refuses a number in place of a parameter unless that is gone."""
        self.__dict__.pop(name, None)
        self._parameters.pop(name, None)
        super().__setattr__(name, value)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # A copy has a loss object of its own.
        self._encode()


class ListLoss(LossModule):
    """A loss of lists as a module; parameters as for `rank_hinge`."""

    _chosen = LossModule._chosen | {"dim", "gains", "level_weights"}
    # ε with the sign of the update, for direct loss minimisation; 0: the structured hinge.
    _signed_epsilon = 0.0
    bound = "convex"

    def __init__(
        self,
        loss: str | RankingLoss,
        dim: int,
        reduction: str,
        gains: str | Sequence[float],
        level_weights: str | Sequence[float] | None,
        backend: str,
    ) -> None:
        super().__init__()
        self.loss = loss
        self.dim = dim
        self.reduction = reduction
        self.gains = gains
        self.level_weights = level_weights
        self.backend = backend

    def _encode(self) -> None:
        if not isinstance(self.dim, Integral):
            raise ValueError(f"dim is {self.dim!r}: it must be an integer")
        self._keep(encode(self.loss, self.reduction, self.backend, self.gains, self.level_weights, self.bound))

    def forward(
        self, scores: Tensor, relevance: Tensor, mask: Tensor | None = None, groups: Tensor | None = None
    ) -> Tensor:
        """The loss; see `rank_hinge` and `direct_loss`."""
        dim = check_shapes(scores, relevance, mask, groups, self.dim)
        return rank_loss(scores, relevance, mask, groups, dim, self._settings, self._signed_epsilon)
