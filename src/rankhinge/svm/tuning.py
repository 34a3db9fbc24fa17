"""The tunable settings of a fit, as a value, and the bound that each belongs to."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge._validation import as_numbers
from rankhinge.solvers import NEVER, Deadline
from rankhinge.svm.start import LARGEST, given_start

__all__ = ["Reached", "Tuning", "per_problem", "positive", "refuse_strangers"]

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


def positive(values: Any, name: str) -> NDArray[np.float64]:
    """Numbers that may be a C or a scale."""
    numbers = as_numbers(values, name)
    # Of numbers below the least normal one the inverse overflows.
    wrong = np.flatnonzero(~(np.isfinite(numbers) & (numbers >= np.finfo(np.float64).tiny)))
    if wrong.size:
        raise ValueError(f"{name} must be positive and finite, got {numbers.flat[wrong[0]]}")
    if numbers.max(initial=0.0) > LARGEST:
        raise ValueError(f"{name} is {numbers.max()}: beyond {LARGEST:g} its products with others would overflow")
    return numbers


def per_problem(values: Any, usable: NDArray[np.bool_], name: str = "C") -> NDArray[np.float64]:
    """A positive number for each usable problem, from one for all or one for each; `C_` of the others is nan."""
    if np.ndim(values) > 0:
        if np.shape(values) != usable.shape:
            raise ValueError(f"{name} has shape {np.shape(values)}, but there are {usable.size} problems")
        values = as_numbers(values, name)[usable]
    return np.broadcast_to(positive(values, name), int(usable.sum())).copy()


class Reached(NamedTuple):
    """Where an interrupt has left a search: coefficients of the best setting, if it has moved, and of its start.

    Both (d, K), in the coordinates of the fit.
    """

    coef: NDArray[np.float64] | None
    centre: NDArray[np.float64] | None

    def part(self, which: NDArray[Any]) -> Reached:
        """Those of some problems."""
        coef, centre = (None if values is None else values[:, which] for values in self)
        return Reached(coef, centre)


class Tuning(NamedTuple):
    """The tunable settings: each one number, or one for each problem; ``"auto"`` is the default.

    Also when the fit must end, how far an interrupted search has come, and the fitted attributes that tell of a search.
    """

    C: Any = "auto"
    reach: Any = "auto"
    scale: Any = "auto"
    init_C: Any = "auto"
    init: Any = "logistic"
    deadline: Deadline = NEVER
    reached: Reached | None = None
    found: dict[str, Any] | None = None

    def of(self, usable: NDArray[np.bool_], n_features: int) -> Tuning:
        """The part that belongs to the usable problems, checked."""
        C, reach, scale, init_C = (
            value if isinstance(value, str) else per_problem(value, usable, name)
            for name, value in zip(self._fields[:4], self[:4], strict=True)
        )
        init = self.init if isinstance(self.init, str) else given_start(self.init, usable.size, n_features)[usable]
        reached = None if self.reached is None else self.reached.part(usable)
        return self._replace(C=C, reach=reach, scale=scale, init_C=init_C, init=init, reached=reached)

    def part(self, group: NDArray[np.int64]) -> Tuning:
        """The part that belongs to some problems, once there is one value for each."""
        C, reach, scale, init_C, init = (value if isinstance(value, str) else value[group] for value in self[:5])
        reached = None if self.reached is None else self.reached.part(group)
        return self._replace(C=C, reach=reach, scale=scale, init_C=init_C, init=init, reached=reached)


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
