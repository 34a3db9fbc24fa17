"""A loss defined by a function of the user."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from rankhinge.losses.base import Formulas, RankingLoss
from rankhinge.losses.suitability import jit_functions, judge_compiled, judge_loss

__all__ = ["CustomLoss"]

Step = Callable[[int, int, int, int], float]


class CustomLoss(RankingLoss):
    """A loss given by one Python function, compiled into the kernels.

    Parameters
    ----------
    step : callable
        ``step(j, i, n_positives, n_negatives)``, with both indices from 1, returns ``t(j, i) ≤ 0``. It must be a plain
        function that numba can compile. Integers have 64 bits, and globals keep the values that they have at the first
        use. The step is checked for suitability at many places, again for each list that is longer than all before.
    partial_sum : callable, optional
        ``partial_sum(j, i, n_positives, n_negatives) = Σ_{k < i} step(j, k)`` in O(1). It reduces the cost of a
        ranking's loss from O(P N) to O(N). The check compares it with the step.
    name : str, default "custom"

    Examples
    --------
    >>> from rankhinge.losses import CustomLoss, check_suitable
    >>> def step(j, i, n_positives, n_negatives):
    ...     return -1.0 / (i + j) ** 2 / n_positives
    >>> check_suitable(CustomLoss(step), n_positives=4, n_negatives=6).suitable
    True
    """

    is_checked = False
    # Compiled functions, and the callbacks that inference has made of them with their addresses; what was pickled makes
    # its own.
    _jitted: Any = None
    _compiled: Any = None

    def __init__(self, step: Step, partial_sum: Step | None = None, name: str = "custom") -> None:
        for argument, function in (("step", step), ("partial_sum", partial_sum)):
            plain = inspect.isfunction(getattr(function, "py_func", function))
            if not plain and not (argument == "partial_sum" and function is None):
                raise TypeError(
                    f"{argument} must be a plain function of (j, i, n_positives, n_negatives), got {function!r}"
                )
        # Functions that numba has already compiled are compiled again, into the kernels.
        self.step_function: Step = getattr(step, "py_func", step)
        self.partial_sum: Step | None = getattr(partial_sum, "py_func", partial_sum)
        self.name = name
        self._checked_up_to = 0

    def jitted(self) -> tuple[Any, Any]:
        """The step and the partial sum (or None), compiled by numba."""
        if self._jitted is None:
            self._jitted = jit_functions(self.step_function, self.partial_sum)
        return self._jitted

    def formulas(self, prepare: Callable[[Any], Any] = lambda function: function) -> Formulas:
        step, partial_sum = prepare(self.step_function), prepare(self.partial_sum)

        def step_formula(scale, j, i, n_positives, n_negatives, table):  # type: ignore[no-untyped-def]
            return scale * step(j, i, n_positives, n_negatives)

        return Formulas(step_formula, self.divisor_formula, None, partial_sum)

    def step(self, j: int, i: int, n_positives: int, n_negatives: int) -> float:
        return float(self.step_function(j, i, n_positives, n_negatives))

    def require_suitable(self, n_samples: int) -> None:
        """Check the step on lists of this length at a sample of places; all of them would be too many."""
        if n_samples <= self._checked_up_to:
            return
        if self._checked_up_to == 0:
            # In plain Python first: its errors are the clearest.
            report = judge_loss(self, 6, 8)
            if not report:
                raise ValueError(f"{self!r} is not suitable: {report.reason}")
            self._compare_with_compiled(6, 8)
        reason = judge_compiled(*self.jitted(), n_samples)
        if reason:
            raise ValueError(f"{self!r} is not suitable for lists of {n_samples} samples: {reason}")
        self._checked_up_to = n_samples

    def _compare_with_compiled(self, n_positives: int, n_negatives: int) -> None:
        """Raise if the compiled step differs: in compiled code, integers have no negative powers."""
        compiled, _ = self.jitted()
        for j in range(1, n_negatives + 1):
            for i in range(1, n_positives + 1):
                place = (j, i, n_positives, n_negatives)
                expected, found = self.step(*place), float(compiled(*place))
                if not np.isclose(found, expected, rtol=1e-9, atol=0.0):
                    raise ValueError(
                        f"{self!r} is not suitable: step({j}, {i}, {n_positives}, {n_negatives}) is {expected:g} in "
                        f"Python but {found:g} when compiled. Calculate with floats: 1.0 / x**2, not x**-2"
                    )

    def __getstate__(self) -> dict[str, Any]:
        # Compiled code belongs to this process. Another one compiles its own.
        return {key: value for key, value in self.__dict__.items() if key not in ("_compiled", "_jitted")}

    def _parts(self) -> Any:
        # The length checked so far is not part of the loss.
        return self.step_function, self.partial_sum, self.name

    def __deepcopy__(self, memo: dict[int, Any]) -> CustomLoss:
        # Copies in this process share compiled code: a search of scikit-learn copies the loss for every fit.
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __repr__(self) -> str:
        return f"CustomLoss({self.step_function!r}, name={self.name!r})"
