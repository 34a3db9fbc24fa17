"""The options of the metrics and their checks."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]
Ties: TypeAlias = Literal["average", "worst", "best", "index"]
TiesOfAP: TypeAlias = Literal["average", "worst", "best", "index", "threshold"]
NoPositives: TypeAlias = Literal["nan", "zero", "one", "raise", "skip"]
Depth: TypeAlias = int | float | str
Gains: TypeAlias = Literal["linear", "exponential"] | ArrayLike | Callable[[Floats], ArrayLike]


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} is {value!r}, choose one of {', '.join(choices)}")


def check_k(k: Depth) -> int | float:
    """A number of places as an int, a share of the list as a float in (0, 1]."""
    if isinstance(k, str) and k.strip().endswith("%"):
        try:
            k = float(k.strip()[:-1]) / 100
        except ValueError:
            k = float("nan")
    if isinstance(k, Integral) and not isinstance(k, bool) and k >= 1:
        return int(k)
    if isinstance(k, Real) and not isinstance(k, Integral) and 0 < k <= 1:
        return float(k)
    raise ValueError(
        f"k is {k}, it must be an integer of at least 1, or a share of the list: a float in (0, 1] or '1%'"
    )


def depths_of(k: Depth, sizes: Floats) -> Floats:
    """How many places of each list count: k, or a share of its samples, at least 1."""
    depth = check_k(k)
    if isinstance(depth, int):
        return np.full(len(sizes), float(depth))
    # 7 % of 100 must stay 7 although the product is rounded up.
    return np.maximum(1.0, np.ceil(depth * sizes * (1 - 4e-16)))
