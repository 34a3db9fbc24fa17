r"""What a module of the chain does: to a tensor, with its choices frozen, and to a difference of convex parts.

A piecewise-linear network chooses (which units of a ReLU are active, which entry of a window a max-pool takes) and
is linear otherwise. Downstream of the layer that is being trained, a module therefore has three forms:

- `Link.plain`: what it computes, in evaluation mode;
- `Link.frozen`: the same with the choices that it made elsewhere (`Link.choose`), which is linear;
- `Link.split`: for an input :math:`z = q^+ - q^-` whose parts are convex in the weights being trained, convex parts
  of the output. Linear maps with weights V: :math:`q^{+\prime} = q^+ V^+ + q^- V^- + b`,
  :math:`q^{-\prime} = q^+ V^- + q^- V^+` with :math:`V^\pm = \max(\pm V, 0)`; ReLU:
  :math:`\max(z, 0) + q^-` and :math:`q^-`; max-pool: :math:`q^{-\prime} = \sum q^-` over the window, and
  :math:`\max(z) + q^{-\prime}`.

References
----------
Berrada, Zisserman, Kumar: Trusting SVM for piecewise linear CNNs, ICLR 2017.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

__all__ = ["LINKS", "Affine", "Convolution", "Dense", "Link", "Trainable"]

Parts = tuple[Tensor, Tensor]


class Link:
    """A module that makes no choice and whose output rises with its input: it maps both parts alike."""

    def __init__(self, path: str, module: nn.Module) -> None:
        self.path, self.module = path, module
        self._check()

    @property
    def name(self) -> str:
        """Where the module is and what it is, for messages."""
        return f"{self.path!r} ({type(self.module).__name__})"

    def _check(self) -> None:
        """Raise a ValueError if the module has an option that is not handled."""

    def plain(self, x: Tensor) -> Tensor:
        return self.module(x)

    def choose(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """The output, and the choices made for this input."""
        return self.plain(x), None

    def frozen(self, x: Tensor, choice: Tensor | None) -> Tensor:
        """The output with the choices given."""
        return self.plain(x)

    def split(self, plus: Tensor, minus: Tensor) -> Parts:
        """Parts of the output, convex and non-decreasing in the parts of the input."""
        return self.plain(plus), self.plain(minus)

    def sizes(self, x: Tensor) -> Tensor:
        """How large what is added up for the output may be, from the same of the input: neither part is larger."""
        return self.split(x, x)[1]


class Same(Link):
    """Identity, and dropout, which is the identity in evaluation mode."""

    def plain(self, x: Tensor) -> Tensor:
        return x


class Rectifier(Link):
    """ReLU; the choice is which units are active."""

    def plain(self, x: Tensor) -> Tensor:
        return functional.relu(x)

    def choose(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        return functional.relu(x), x > 0

    def frozen(self, x: Tensor, choice: Tensor | None) -> Tensor:
        # Measured with its gradient: a third of the time of `masked_fill`, and less than `where`.
        return x * choice

    def split(self, plus: Tensor, minus: Tensor) -> Parts:
        return functional.relu(plus - minus) + minus, minus


class MaxPool(Link):
    """Max-pool; the choice is which entry each window takes."""

    def _check(self) -> None:
        if self.module.dilation not in (1, (1, 1)):
            raise ValueError(f"layer {self.name} has dilation {self.module.dilation}: only 1 is handled")
        if self.module.return_indices:
            raise ValueError(f"layer {self.name} returns indices, which a chain cannot pass on")

    def choose(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        pool = self.module
        output, index = functional.max_pool2d(
            x, pool.kernel_size, pool.stride, pool.padding, ceil_mode=pool.ceil_mode, return_indices=True
        )
        # Half the memory: an index counts within one channel of one image.
        return output, index.to(torch.int32)

    def frozen(self, x: Tensor, choice: Tensor | None) -> Tensor:
        assert choice is not None
        return x.flatten(-2).gather(-1, choice.flatten(-2).long()).view(choice.shape)

    def split(self, plus: Tensor, minus: Tensor) -> Parts:
        pool = self.module
        total = functional.avg_pool2d(
            minus, pool.kernel_size, pool.stride, pool.padding, ceil_mode=pool.ceil_mode, divisor_override=1
        )
        return self.plain(plus - minus) + total, total


class Affine(Link):
    """A linear map and a shift, neither of them trained: `parameters` gives both, `apply` applies them."""

    def parameters(self) -> tuple[Tensor, Tensor | None]:
        raise NotImplementedError

    def apply(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The map with these weights, which need not be the module's own."""
        raise NotImplementedError

    def plain(self, x: Tensor) -> Tensor:
        return self.apply(x, *self.parameters())

    def split(self, plus: Tensor, minus: Tensor) -> Parts:
        weight, bias = (None if p is None else p.detach().to(plus.dtype) for p in self.parameters())
        assert weight is not None
        above, below = weight.clamp(min=0), (-weight).clamp(min=0)
        return (
            self.apply(plus, above, bias) + self.apply(minus, below, None),
            self.apply(plus, below, None) + self.apply(minus, above, None),
        )

    def sizes(self, x: Tensor) -> Tensor:
        weight, bias = (None if p is None else p.detach().to(x.dtype).abs() for p in self.parameters())
        assert weight is not None
        return self.apply(x, weight, bias)


class FrozenBatchNorm(Affine):
    """Batch normalisation by its running statistics: a factor and a shift for each channel."""

    def _check(self) -> None:
        if self.module.running_mean is None:
            raise ValueError(f"layer {self.name} tracks no running statistics: it cannot be frozen")

    def parameters(self) -> tuple[Tensor, Tensor | None]:
        norm = self.module
        scale = torch.rsqrt(norm.running_var + norm.eps)
        if norm.weight is not None:
            scale = norm.weight.detach() * scale
        shift = -norm.running_mean * scale
        return scale, shift if norm.bias is None else norm.bias.detach() + shift

    def plain(self, x: Tensor) -> Tensor:
        # A factor for each channel would be broadcast to whatever comes.
        self.module._check_input_dim(x)
        if x.shape[1] != self.module.num_features:
            raise ValueError(f"layer {self.name} has {self.module.num_features} channels, its input {x.shape[1]}")
        return super().plain(x)

    def apply(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        shape = (1, -1, *(1,) * (x.ndim - 2))
        product = x * weight.view(shape)
        return product if bias is None else product + bias.view(shape)


class Trainable(Affine):
    """A layer with weights of its own; the trainer handles weight and bias as one vector, without a frozen bias.

    Attributes
    ----------
    exact : bool
        Whether the layer is trained by the split of everything downstream, else by freezing downstream choices.
    """

    exact: bool

    def parameters(self) -> tuple[Tensor, Tensor | None]:
        return self.module.weight.detach(), None if self.module.bias is None else self.module.bias.detach()

    @property
    def _trains_bias(self) -> bool:
        return self.module.bias is not None and self.module.bias.requires_grad

    def vector(self) -> Tensor:
        """Weight and bias, flattened, in float64."""
        weight, bias = self.parameters()
        parts = [weight, bias] if bias is not None and self._trains_bias else [weight]
        return torch.cat([part.flatten() for part in parts]).double()

    def unpack(self, vector: Tensor) -> tuple[Tensor, Tensor | None]:
        """Weight and bias: views of a vector, or what is not trained."""
        weight, bias = self.parameters()
        first = vector[: weight.numel()].view(weight.shape)
        if self._trains_bias:
            return first, vector[weight.numel() :]
        return first, None if bias is None else bias.to(vector.dtype)

    @torch.no_grad()
    def load(self, vector: Tensor) -> None:
        """Write a vector into the module."""
        weight, bias = self.unpack(vector)
        self.module.weight.copy_(weight)
        if bias is not None and self._trains_bias:
            self.module.bias.copy_(bias)


class Dense(Trainable):
    """A fully connected layer."""

    exact = True

    def apply(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return functional.linear(x, weight, bias)


class Convolution(Trainable):
    """A convolution."""

    exact = False

    def _check(self) -> None:
        if self.module.padding_mode != "zeros":
            raise ValueError(
                f"layer {self.name} has padding_mode {self.module.padding_mode!r}: only 'zeros' is handled"
            )

    def apply(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        conv = self.module
        return functional.conv2d(x, weight, bias, conv.stride, conv.padding, conv.dilation, conv.groups)


# By the very class: a subclass may compute anything.
LINKS: dict[type[Any], Callable[[str, nn.Module], Link]] = {
    nn.Linear: Dense,
    nn.Conv2d: Convolution,
    nn.ReLU: Rectifier,
    nn.MaxPool2d: MaxPool,
    nn.AvgPool2d: Link,
    nn.AdaptiveAvgPool2d: Link,
    nn.BatchNorm1d: FrozenBatchNorm,
    nn.BatchNorm2d: FrozenBatchNorm,
    nn.Flatten: Link,
    nn.Unflatten: Link,
    nn.Identity: Same,
    nn.Dropout: Same,
    nn.Dropout1d: Same,
    nn.Dropout2d: Same,
}
