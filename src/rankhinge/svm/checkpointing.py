"""The checkpoint of a linear fit: what tells it from others, and where it goes on."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge.objective import RankingObjective
from rankhinge.solvers import Checkpoint, Saved, Solver

__all__ = ["NO_FILE", "Keeper", "keeper_of"]

# Rows that are looked at, evenly spread: enough to tell one set from another, at no cost.
_SAMPLED_ROWS = 64
# What says how a fit runs and reports, not what it minimises: it may change between two runs.
_MAY_CHANGE = {"checkpoint", "max_iter", "max_time", "n_jobs", "tol", "verbose", "warm_start"}


class Keeper:
    """What a fit does with its file, or without one.

    Parameters
    ----------
    file : Checkpoint, optional
    """

    def __init__(self, file: Checkpoint | None = None) -> None:
        self._file = file
        self.saved: Saved | None = None if file is None else file.load()

    def note(self, solver: Solver, result: Any, chosen: dict[str, NDArray[np.float64]]) -> None:
        """Write now and then."""
        if self._file is not None:
            self._file.note(solver, result, chosen)

    def end(self, solver: Solver, result: Any, chosen: dict[str, NDArray[np.float64]]) -> None:
        """Write at the end."""
        if self._file is not None:
            self._file.write(solver, result, chosen)


NO_FILE = Keeper()


def keeper_of(machine: Any, objective: Any, given: Any) -> Keeper:
    """The keeper of a fit; raises if its file is that of another one.

    Parameters
    ----------
    machine : LinearRankingMachine
    objective : FitObjective
    given : Given
    """
    path = getattr(machine, "checkpoint", None)
    return NO_FILE if path is None else Keeper(Checkpoint(path, _fingerprint(machine, objective, given)))


def _fingerprint(machine: Any, objective: Any, given: Any) -> dict[str, str]:
    """Shape, type, parameters, and checksums of labels, queries and some rows."""
    marks = {
        "estimator": type(machine).__name__,
        "shape": f"{objective.n_samples} x {objective.n_features}",
        "type": str(getattr(given.X, "dtype", "")),
    }
    if isinstance(objective, RankingObjective):
        index = np.unique(np.linspace(0, objective.n_samples - 1, _SAMPLED_ROWS).astype(np.int64))
        # In the coordinates of the fit: its planes mean nothing in others.
        marks |= {"rows": _checksum(objective.features.rows(index)), "y": _checksum(given.y)}
        marks |= {name: _checksum(values) for name, values in given.metadata.items() if values is not None}
    else:
        marks["samples, positives, negatives"] = " ".join(str(part.tolist()) for part in objective.counts())
    for name, value in sorted(machine.get_params(deep=False).items()):
        if name not in _MAY_CHANGE:
            marks[name] = _checksum(value) if np.size(value) > 8 else repr(value)
    return marks


def _checksum(values: Any) -> str:
    array = np.ascontiguousarray(values)
    if array.dtype.kind not in "biufSU":
        # Objects have no bytes of their own.
        array = np.array([repr(value) for value in array.ravel().tolist()])
    return hashlib.sha256(f"{array.dtype.str} {array.shape} ".encode() + array.tobytes()).hexdigest()[:16]
