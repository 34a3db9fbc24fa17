"""A fit that survives its process: what a solver has reached, written now and then, and taken up again.

What counts is what cost passes over X: the best points, and the planes, which bound the minimum from below whatever
comes later. A solver that begins with both continues about where the other one was killed. The file is a plain ``.npz``
without pickle, whose parts carry checksums; it is written beside its name and renamed, so that a kill while writing
leaves the older one.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rankhinge.solvers.base import Solver
from rankhinge.solvers.protocol import Array, Planes, SolverResult

__all__ = ["Checkpoint", "CheckpointError", "Saved"]

_FORMAT = "rankhinge checkpoint 1"
_META = "meta"
_OF_PLANES = ("offsets", "slopes", "misses", "reaches")


class CheckpointError(ValueError):
    """A checkpoint that cannot be used, and why: damaged, foreign, or of another fit.

    Examples
    --------
    >>> raise CheckpointError("fit.ckpt: this is not a checkpoint")
    Traceback (most recent call last):
    rankhinge.solvers.checkpoint.CheckpointError: fit.ckpt: this is not a checkpoint
    """


@dataclass(frozen=True)
class Saved:
    """What an earlier run has left.

    Attributes
    ----------
    coef : (d, K)
        The best points.
    planes : list of Planes
        One set for each problem.
    chosen : dict of ndarray
        What was chosen before the solver began: C, the start.
    n_iter : (K,) int
    n_passes : float
    history : dict of (K, iterations)
    phase : dict of (K,)
        Where the method was; nan for problems that had not begun.
    generator : dict or None
        State of the solver's random generator, if it has one.
    """

    coef: Array
    planes: list[Planes]
    chosen: dict[str, Array]
    n_iter: np.ndarray
    n_passes: float
    history: dict[str, Array]
    phase: dict[str, Array] = field(default_factory=dict)
    generator: dict[str, Any] | None = None

    def resume(self, solver: Solver, group: np.ndarray | None = None) -> Solver:
        """The solver of the same problems or of some, whose method and random numbers resume where the others ended."""
        phase = {name: values if group is None else values[group] for name, values in self.phase.items()}
        if phase and not any(np.isnan(values).any() for values in phase.values()):
            solver.take_up(phase)
        if self.generator is not None and hasattr(solver, "generator"):
            solver.generator.bit_generator.state = self.generator
        return solver

    def and_then(self, result: SolverResult) -> SolverResult:
        """The result of the run that continues, with the counters and the history of both."""
        seconds = self.history["time"].max(initial=0.0)
        later = result.history | {
            "time": result.history["time"] + seconds,
            "passes": result.history["passes"] + self.n_passes,
        }
        return replace(
            result,
            n_iter=self.n_iter + result.n_iter,
            n_passes=self.n_passes + result.n_passes,
            history={name: np.concatenate([self.history[name], later[name]], axis=1) for name in later},
        )


class Checkpoint:
    """The file of one fit.

    Parameters
    ----------
    path : path
    fingerprint : mapping of str to str
        What tells this fit from others: shape, types, loss, parameters, checksums of labels and rows.
    """

    interval = 30.0
    """Seconds between two writings, at least: a fit that takes less than this has little to lose."""

    def __init__(self, path: str | os.PathLike[str], fingerprint: Mapping[str, str]) -> None:
        self.path, self.fingerprint = os.fspath(path), dict(fingerprint)
        # One name, not a random one: what a killed process has left is overwritten, and does not pile up.
        self._temporary = f"{self.path}.partial"
        self._written, self._broken = time.monotonic(), False
        folder = os.path.dirname(os.path.abspath(self.path))
        if not os.path.isdir(folder):
            raise CheckpointError(f"{self.path}: there is no folder {folder}")
        if not os.access(folder, os.W_OK):
            raise CheckpointError(f"{self.path}: nothing can be written to {folder}")

    def load(self) -> Saved | None:
        """What is in the file; None if there is none.

        Raises
        ------
        CheckpointError
            If it is damaged, or belongs to another fit: what differs.
        """
        if not os.path.exists(self.path):
            return None
        try:
            with open(self.path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
                parts = {name: file[name] for name in file.files}
            meta = json.loads(bytes(parts.pop(_META)))
        except Exception as error:  # A flipped bit makes archives raise nearly anything.
            raise CheckpointError(
                f"{self.path}: this is not a checkpoint, or it is damaged ({error}); remove it to begin anew"
            ) from None
        if not isinstance(meta, dict) or meta.get("format") != _FORMAT:
            found = meta.get("format") if isinstance(meta, dict) else meta
            raise CheckpointError(f"{self.path}: the format is {found!r}, and {_FORMAT!r} is read; remove it")
        self._compare(meta["fingerprint"])
        try:
            return _unpacked(parts, meta)
        except KeyError as error:
            raise CheckpointError(f"{self.path}: the checkpoint lacks {error}; remove it to begin anew") from None

    def _compare(self, found: Mapping[str, str]) -> None:
        names = dict.fromkeys([*found, *self.fingerprint])
        other = [name for name in names if found.get(name) != self.fingerprint.get(name)]
        if other:
            differences = ", ".join(
                f"{name} {found.get(name)} there, {self.fingerprint.get(name)} here" for name in other
            )
            raise CheckpointError(
                f"{self.path}: the checkpoint is of another fit: {differences}; remove it, or name another file"
            )

    def note(self, solver: Solver, result: Callable[[], SolverResult], chosen: Mapping[str, Array]) -> None:
        """Write what the solver has reached, if the last writing is long enough ago."""
        if time.monotonic() - self._written >= self.interval:
            self.write(solver, result(), chosen)

    def write(self, solver: Solver, result: SolverResult, chosen: Mapping[str, Array]) -> None:
        """Write the result, with what was chosen before, and the solver's planes.

        A full disk is no reason to lose a fit: it is a warning.
        """
        state = Saved(
            coef=result.coef,
            planes=solver.planes(),
            chosen=dict(chosen),
            n_iter=result.n_iter,
            n_passes=result.n_passes,
            history=result.history,
            phase=solver.phase(),
        )
        generator = getattr(solver, "generator", None)
        meta = {
            "format": _FORMAT,
            "fingerprint": self.fingerprint,
            "n_passes": state.n_passes,
            "generator": None if generator is None else generator.bit_generator.state,
        }
        try:
            with open(self._temporary, "wb") as file:
                np.savez(file, allow_pickle=False, **_packed(state, meta))
                file.flush()
                os.fsync(file.fileno())
            os.replace(self._temporary, self.path)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(self._temporary)
            if not self._broken:
                warnings.warn(f"{self.path}: the checkpoint was not written: {error}", RuntimeWarning, stacklevel=2)
            self._broken = True
        self._written = time.monotonic()


def _packed(state: Saved, meta: Mapping[str, Any]) -> dict[str, Any]:
    parts: dict[str, Any] = {"coef": state.coef, "n_iter": state.n_iter}
    for k, planes in enumerate(state.planes):
        known = {name: getattr(planes, name) for name in _OF_PLANES}
        parts |= {f"{name} {k}": values for name, values in known.items() if values is not None}
    parts |= {f"chosen {name}": values for name, values in state.chosen.items()}
    parts |= {f"history {name}": values for name, values in state.history.items()}
    parts |= {f"phase {name}": values for name, values in state.phase.items()}
    return parts | {_META: np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)}


def _unpacked(parts: dict[str, Any], meta: Mapping[str, Any]) -> Saved:
    def under(prefix: str) -> dict[str, Any]:
        return {name.removeprefix(f"{prefix} "): part for name, part in parts.items() if name.startswith(f"{prefix} ")}

    n_problems = parts["coef"].shape[1]
    return Saved(
        coef=parts["coef"],
        planes=[_planes_of(parts, k) for k in range(n_problems)],
        chosen=under("chosen"),
        n_iter=parts["n_iter"],
        n_passes=float(meta["n_passes"]),
        history=under("history"),
        phase=under("phase"),
        generator=meta["generator"],
    )


def _planes_of(parts: dict[str, Any], k: int) -> Planes:
    known: dict[str, Any] = {name: parts.get(f"{name} {k}") for name in _OF_PLANES}
    return Planes(**known)
