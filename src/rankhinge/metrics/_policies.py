"""The choices that a metric offers, and the checks that one of them was made."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]
Ties: TypeAlias = Literal["average", "worst", "best", "index"]
TiesOfAP: TypeAlias = Literal["average", "worst", "best", "index", "threshold"]
NoPositives: TypeAlias = Literal["nan", "zero", "one", "raise", "skip"]
Gains: TypeAlias = Literal["linear", "exponential"] | ArrayLike | Callable[[Floats], ArrayLike]


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} is {value!r}, choose one of {', '.join(choices)}")


def check_k(k: int) -> int:
    if not isinstance(k, Integral) or k < 1:
        raise ValueError(f"k is {k}, it must be an integer of at least 1")
    return int(k)
