"""Logistic regression through the same handles, as a start for the tight bound (see `objective.logistic`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge.solvers import Descent, look
from rankhinge.svm._fitting import interrupts
from rankhinge.svm.protocol import FitObjective

__all__ = ["InterruptedStart", "Start", "fit_logistic"]


class Start(NamedTuple):
    """Coefficients (d, K), the passes over X that they took, and how many of the problems have not converged."""

    coef: NDArray[np.float64]
    n_passes: float
    n_unfinished: int = 0


class InterruptedStart(KeyboardInterrupt):
    """Ctrl-C while a start is being found; `start` is what was reached."""

    def __init__(self, start: Start) -> None:
        super().__init__()
        self.start = start


def fit_logistic(
    objective: FitObjective,
    C: NDArray[Any],
    start: NDArray[np.float64] | None = None,
    problems: NDArray[np.int64] | None = None,
    tol: float = 1e-5,
    window: int = 5,
    max_iter: int = 200,
    stop: Callable[[], bool] | None = None,
) -> Start:
    """Coefficients of logistic regressions of an objective's problems, and the passes over X that they took.

    Parameters
    ----------
    objective : FitObjective
    C : ndarray of shape (K,)
    start : ndarray of shape (d, K), optional
    problems : ndarray of shape (m,), optional
        Those to be fitted, ascending; the others stay at the start.
    tol, window
        A fit ends when `window` iterations have lowered its objective by less than `tol` of it.
    max_iter : int
        Most regressions take a few dozen iterations.
    stop : callable, optional
        Called after each iteration: whether the fit ends where it is.

    Returns
    -------
    Start

    Raises
    ------
    InterruptedStart
        After Ctrl-C, with what was reached.
    """
    K = objective.n_problems
    centre = np.zeros((objective.n_features, K))
    coef = centre.copy() if start is None else start.copy()
    problems = np.arange(K) if problems is None else problems
    loss = objective.logistic()
    begun = look(objective, loss, coef[:, problems], problems)
    descent, n_passes = Descent(objective, loss, C, centre, begun, tol=tol, window=window), begun.n_passes
    # Its scores are those of the first point alone.
    del begun

    def reached() -> Start:
        for k in problems.tolist():
            coef[:, k] = descent.states[k].w
        return Start(coef, n_passes + descent.n_passes, descent.active.size)

    try:
        with interrupts():
            for _ in range(max_iter):
                if descent.active.size == 0:
                    break
                descent.step()
                if stop is not None and stop():
                    break
    except KeyboardInterrupt as error:
        raise InterruptedStart(reached()) from error
    return reached()
