"""Read a network as a chain of known modules. An error names the first unknown one."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from rankhinge.torch.layerwise.links import LINKS, Link, Trainable

__all__ = ["Chain"]

_DTYPES = (torch.float32, torch.float64)


class Chain:
    """The modules of a network in the order in which they are applied.

    Parameters
    ----------
    network : nn.Sequential
        Possibly with others inside. Made of the classes of `links.LINKS`.

    Attributes
    ----------
    links : list of Link
    trainable : list of int
        Indices of the links to be trained: those whose weight requires a gradient.

    Examples
    --------
    >>> from torch import nn
    >>> chain = Chain(nn.Sequential(nn.Sequential(nn.Linear(4, 3), nn.ReLU()), nn.Linear(3, 2)))
    >>> [link.path for link in chain.links], chain.trainable
    (['0.0', '0.1', '1'], [0, 2])
    """

    def __init__(self, network: nn.Module) -> None:
        self.links = [_link(path, module) for path, module in _walk("", network)]
        self.trainable = [
            index
            for index, link in enumerate(self.links)
            if isinstance(link, Trainable) and link.module.weight.requires_grad
        ]
        if not self.trainable:
            raise ValueError("the network has no layer to train: no Linear or Conv2d whose weight requires a gradient")
        self._check_parameters()

    @property
    def dtype(self) -> torch.dtype:
        """Of the parameters."""
        return self._first_weight.dtype

    @property
    def device(self) -> torch.device:
        """Of the parameters."""
        return self._first_weight.device

    @property
    def _first_weight(self) -> Tensor:
        return self.layer(self.trainable[0]).module.weight

    def layer(self, index: int) -> Trainable:
        """The link of this index, which must be one of `trainable`."""
        link = self.links[index]
        assert isinstance(link, Trainable)
        return link

    def layers(self) -> list[Trainable]:
        """All links to be trained, first to last."""
        return [self.layer(index) for index in self.trainable]

    def run(self, x: Tensor, start: int = 0, stop: int | None = None) -> Tensor:
        """Apply the links ``start … stop - 1``, in evaluation mode."""
        for link in self.links[start:stop]:
            x = link.plain(x)
        return x

    def check_finite(self) -> None:
        """Raise a ValueError if a parameter or a running statistic is not finite."""
        for link in self.links:
            for name, value in link.module.state_dict().items():
                for found in torch.nonzero(~torch.isfinite(value))[:1]:
                    place = tuple(found.tolist())
                    raise ValueError(f"{name} of layer {link.name} is not finite: {value[place].item()} at {place}")

    def _check_parameters(self) -> None:
        owners: list[tuple[int, int, Link]] = []
        for link in self.links:
            for parameter in link.module.parameters():
                if parameter.dtype not in _DTYPES:
                    raise ValueError(f"layer {link.name} is {parameter.dtype}: float32 or float64 is needed")
                if (parameter.dtype, parameter.device) != (self.dtype, self.device):
                    raise ValueError(
                        f"layer {link.name} is {parameter.dtype} on {parameter.device}, "
                        f"but the first trained layer is {self.dtype} on {self.device}"
                    )
                first, last = _memory_of(parameter)
                for other_first, other_last, owner in owners:
                    if first < other_last and other_first < last:
                        # The scores would not be linear in weights that are used twice.
                        raise ValueError(f"layers {owner.name} and {link.name} share a parameter")
                owners.append((first, last, link))


def _memory_of(tensor: Tensor) -> tuple[int, int]:
    """Where its entries begin, and where they end."""
    reach = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    begin = tensor.data_ptr()
    return begin, begin + (reach * tensor.element_size() if tensor.numel() else 0)


def _walk(path: str, module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Leaves of nested Sequentials, with their paths."""
    if isinstance(module, nn.Sequential) and type(module).forward is nn.Sequential.forward:
        _check_hooks(path, module)
        # Not `named_children`, which leaves out a module that comes a second time.
        for name, child in module._modules.items():
            yield from _walk(f"{path}.{name}" if path else name, child)
    else:
        yield path, module


def _link(path: str, module: nn.Module) -> Link:
    make = LINKS.get(type(module))
    if make is None:
        known = ", ".join(kind.__name__ for kind in LINKS)
        raise ValueError(
            f"layer {path!r} is a {type(module).__name__}, which layer-wise training cannot handle: "
            f"the network must be an nn.Sequential of {known}"
        )
    _check_hooks(path, module)
    return make(path, module)


def _check_hooks(path: str, module: nn.Module) -> None:
    if module._forward_hooks or module._forward_pre_hooks:
        raise ValueError(
            f"layer {path!r} ({type(module).__name__}) has forward hooks, which may change what it does: remove them"
        )
    if "forward" in vars(module):
        raise ValueError(f"layer {path!r} ({type(module).__name__}) has a forward function of its own: remove it")
