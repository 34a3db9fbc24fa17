"""Fitted attributes, of what a solver has proved."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge.solvers import SolverResult

__all__ = ["attributes_of"]


def attributes_of(
    result: SolverResult, chosen: dict[str, NDArray[np.float64]], usable: NDArray[np.bool_]
) -> dict[str, Any]:
    """What the solver proved, and with which values; scalars for one problem, arrays of length K for K.

    Problems that are not usable have the objective ½‖w‖², whose minimum is 0.
    """

    def spread(values: NDArray[Any], missing: Any = 0) -> Any:
        everywhere = np.full((usable.size, *values.shape[1:]), missing, dtype=values.dtype)
        everywhere[usable] = values
        return everywhere[0] if usable.size == 1 else everywhere

    fitted: dict[str, Any] = {}
    for name in ("objective", "dual_objective", "gap", "n_iter"):
        value = spread(np.asarray(getattr(result, name)))
        fitted[f"{name}_"] = value.item() if usable.size == 1 else value
    status = spread(np.asarray(result.status, dtype="<U16"), "constant")
    fitted["status_"] = str(status) if usable.size == 1 else status
    for name, values in chosen.items():
        value = spread(values, np.nan)
        fitted[name] = float(value) if usable.size == 1 and values.ndim == 1 else value
    fitted["n_passes_"] = int(np.ceil(result.n_passes))
    fitted["history_"] = {key: spread(values) for key, values in result.history.items()}
    return fitted
