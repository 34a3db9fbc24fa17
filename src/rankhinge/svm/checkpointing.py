"""The checkpoint of a linear fit: what tells it from others, and where it continues."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from rankhinge.objective import RankingObjective
from rankhinge.objective.errors import EngineLostError
from rankhinge.solvers import Checkpoint

__all__ = ["checkpoint_of", "naming"]

# Rows that are looked at, evenly spread: enough to tell one set from another, at no cost.
_SAMPLED_ROWS = 64
# What says how a fit runs and reports, not what it minimises: it may change between two runs.
_MAY_CHANGE = {"checkpoint", "max_iter", "max_time", "n_jobs", "tol", "verbose", "warm_start"}


@contextmanager
def naming(path: str | os.PathLike[str] | None) -> Iterator[None]:
    """Inside, the error of a fit that has lost its samples says where the fit can be taken up, if it can."""
    try:
        yield
    except EngineLostError as error:
        if path is None or not os.path.exists(path):
            raise
        raise EngineLostError(
            f"{error}; the state so far is in {os.fspath(path)}: the same fit with this checkpoint continues from there"
        ) from error


def checkpoint_of(machine: Any, objective: Any, given: Any) -> Checkpoint:
    """The file that a fit is kept in.

    Parameters
    ----------
    machine : LinearRankingMachine
    objective : FitObjective
    given : Given
    """
    return Checkpoint(machine.checkpoint, _fingerprint(machine, objective, given))


def _fingerprint(machine: Any, objective: Any, given: Any) -> dict[str, str]:
    """Shape, type, parameters, and checksums of labels, queries and some rows."""
    marks = {
        "estimator": type(machine).__name__,
        "shape": f"{objective.n_samples} x {objective.n_features}",
        "type": str(getattr(given.X, "dtype", "")),
    }
    index = np.unique(np.linspace(0, objective.n_samples - 1, _SAMPLED_ROWS).astype(np.int64))
    if isinstance(objective, RankingObjective):
        # In the coordinates of the fit: its planes mean nothing in others.
        marks |= {"rows": _checksum(objective.features.rows(index)), "y": _checksum(given.y)}
        marks |= {name: _checksum(values) for name, values in given.metadata.items() if values is not None}
    elif not hasattr(objective, "marks"):
        raise TypeError(f"checkpoint=: nothing identifies the samples in a {type(objective).__name__}")
    else:
        # Weights are those of the columns as they are measured, which follows from rows and parameters.
        marks |= objective.marks(index)
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
