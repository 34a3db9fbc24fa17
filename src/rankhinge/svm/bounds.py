"""Which bound is in force, and what belongs to it."""

from __future__ import annotations

import inspect
from typing import Any

from rankhinge.losses import get_loss

__all__ = ["bound_in_force", "refuse_strangers"]

_BELONGS = {
    "convex": ("C", "Cs", "solver"),
    "tight": ("reach", "reaches", "scale", "scales", "init", "init_C", "init_Cs"),
}
_INSTEAD = {
    "C": "its strength is reach, a number without a unit: how far the fit may move from its start",
    "Cs": "its grid is reaches, numbers without a unit: how far the fit may move from its start",
    "reach": "its strength is C",
    "reaches": "its grid is Cs",
}


def bound_in_force(bound: str, loss: Any) -> str:
    """``"convex"`` or ``"tight"``; ``"auto"`` is the latter, unless the loss ranks nothing."""
    ranks = get_loss(loss).is_ranking
    if bound == "tight" and not ranks:
        raise ValueError("bound='tight' compares rankings: loss='zero-one' has none")
    return bound if bound != "auto" else "tight" if ranks else "convex"


def refuse_strangers(estimator: Any, bound: str) -> None:
    """Raise if a parameter was given that belongs to the other bound: it would be ignored, or mean something else."""
    defaults = inspect.signature(type(estimator).__init__).parameters
    other = "tight" if bound == "convex" else "convex"
    for name in _BELONGS[other]:
        if name not in defaults:
            continue
        value, default = getattr(estimator, name), defaults[name].default
        same = value is default or (isinstance(value, str | int | float) and value == default)
        if not same:
            instead = f" ({_INSTEAD[name]})" if name in _INSTEAD else ""
            raise ValueError(
                f"{name}={value!r} belongs to bound={other!r}, but the {bound} bound is in force{instead}: leave it "
                f"out, or choose bound={other!r}"
            )
