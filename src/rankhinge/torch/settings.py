"""The settings of a loss as one string.

Operators of PyTorch take tensors, numbers and strings, but no Python objects, and `torch.compile` treats a string as a
constant. Losses that are objects are held weakly in a register, and the string contains their number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count, pairwise
from typing import Any
from weakref import WeakValueDictionary, finalize

from rankhinge.losses import RankingLoss, ZeroOne, get_loss

__all__ = ["Settings", "encode", "loss_of", "settings_of"]

_REDUCTIONS = ("mean", "sum", "none")
_BACKENDS = ("auto", "compiled", "torch")
_BOUNDS = ("convex", "tight")
_GAINS = ("exponential", "linear")

_number = count(1)
# By identity: of two equal losses either may be gone first.
_keys: dict[int, str] = {}
_objects: WeakValueDictionary[str, RankingLoss] = WeakValueDictionary()


@dataclass(frozen=True)
class Settings:
    """The string, taken apart.

    Attributes
    ----------
    loss : str
        A name or a number in the register.
    reduction, backend : str
    gains : str or tuple of float
    level_weights : None, "uniform" or tuple of float
    bound : str
    """

    loss: str
    reduction: str
    backend: str
    gains: str | tuple[float, ...]
    level_weights: str | tuple[float, ...] | None
    bound: str


def encode(
    loss: str | RankingLoss,
    reduction: str,
    backend: str,
    gains: str | Sequence[float],
    level_weights: str | Sequence[float] | None,
    bound: str = "convex",
) -> str:
    """The settings as a string, after a check of each."""
    if reduction not in _REDUCTIONS:
        raise ValueError(f"reduction is {reduction!r}: choose one of {list(_REDUCTIONS)}")
    if backend not in _BACKENDS:
        raise ValueError(f"backend is {backend!r}: choose one of {list(_BACKENDS)}")
    if bound not in _BOUNDS:
        raise ValueError(f"bound is {bound!r}: choose one of {list(_BOUNDS)}")
    key = loss if isinstance(loss, str) else _key_of(loss)
    if key is loss and ("|" in key or key.startswith("#")):
        get_loss(key)  # no name: raises
    return "|".join([key, reduction, backend, _gains_text(gains), _weights_text(level_weights), bound])


@lru_cache(maxsize=256)
def settings_of(text: str) -> Settings:
    """The inverse of `encode`."""
    loss, reduction, backend, gains, weights, bound = text.split("|")
    return Settings(
        loss,
        reduction,
        backend,
        gains if gains in _GAINS else _floats(gains),
        None if not weights else weights if weights == "uniform" else _floats(weights),
        bound,
    )


def loss_of(settings: Settings) -> RankingLoss:
    """The loss object; one of the user's must still be alive."""
    if not settings.loss.startswith("#"):
        loss = get_loss(settings.loss)
    elif settings.loss in _objects:
        loss = _objects[settings.loss]
    else:
        raise ValueError("the loss object of this compiled graph is gone: keep a reference to it")
    if isinstance(loss, ZeroOne):
        raise ValueError("the loss 'zero-one' decomposes over samples and ranks nothing: use one of torch's own losses")
    return loss


def _key_of(loss: Any) -> str:
    if not isinstance(loss, RankingLoss):
        raise ValueError(f"loss must be a name or an object of rankhinge.losses, got {loss!r}")
    if id(loss) not in _keys:
        key = f"#{next(_number)}"
        _objects[key] = loss
        finalize(loss, _keys.pop, id(loss), None).atexit = False
        _keys[id(loss)] = key
    return _keys[id(loss)]


def _gains_text(gains: Any) -> str:
    if isinstance(gains, str):
        if gains not in _GAINS:
            raise ValueError(f"gains is {gains!r}: choose one of {list(_GAINS)} or give one number for each label")
        return gains
    table = _numbers("gains", gains)
    ascends = len(table) > 1 and table[0] == 0 and all(a < b for a, b in pairwise(table))
    if not (ascends and math.isfinite(table[-1])):
        raise ValueError(f"gains must ascend from 0, one for each label, got {gains!r}")
    return _join(table)


def _weights_text(weights: Any) -> str:
    if weights is None:
        return ""
    if isinstance(weights, str):
        if weights != "uniform":
            raise ValueError(f"level_weights is {weights!r}: choose 'uniform' or give one number for each label from 1")
        return weights
    table = _numbers("level_weights", weights)
    if not table or not all(math.isfinite(weight) and weight >= 0 for weight in table) or not any(table):
        raise ValueError(f"level_weights must be finite numbers ≥ 0, not all 0, got {weights!r}")
    return _join(table)


def _numbers(name: str, values: Any) -> list[float]:
    try:
        return [float(value) for value in values]
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a name or a sequence of numbers, got {values!r}") from None


def _join(numbers: list[float]) -> str:
    return ",".join([repr(number) for number in numbers])


def _floats(text: str) -> tuple[float, ...]:
    return tuple(float(number) for number in text.split(","))
