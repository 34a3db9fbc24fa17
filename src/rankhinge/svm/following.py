"""Follow a path of models, scored on the test parts of the folds, for as long as it is worth its passes."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from rankhinge._progress import Progress
from rankhinge.solvers import Deadline
from rankhinge.svm._fitting import interrupts, warn_user

__all__ = ["Followed", "Path", "Watch", "along", "overfits"]

# Columns of the display.
POINT, OF = "point", "of at most"

Path: TypeAlias = Generator[NDArray[np.float64], NDArray[np.int64] | None, None]
"""Coefficients (d, m) along a path; it is sent the problems to continue with, the others stay where they are."""


class Watch:
    """Shows how far a search is, and says when it is over.

    Parameters
    ----------
    progress : Progress
        With the columns `POINT` and `OF`.
    deadline : Deadline
    """

    def __init__(self, progress: Progress, deadline: Deadline) -> None:
        self._progress, self._deadline = progress, deadline
        self.n_points, self.n_expected = 0, 0
        # Why the search ends before its end, if it does: ``"time"`` or ``"interrupted"``.
        self.ended: str | None = None

    def stage(self, name: str) -> None:
        """What is being done from now on."""
        self._progress.title = name

    def point(self) -> None:
        """One more point of a path has been scored."""
        self.n_points += 1
        self._show()

    def step(self, *_: object) -> bool:
        """To be called after each step of a solver: whether it has to end."""
        self._show()
        return self.over

    @property
    def over(self) -> bool:
        """Whether the search continues with what it has."""
        if self.ended is None and self._deadline.passed:
            self.ended = self._deadline.status
        return self.ended is not None

    def warn(self, share: float, max_time: float | None) -> None:
        """Warn of a search that has ended with its share of `max_time`."""
        warn_user(
            f"the search ended with {share:.0%} of max_time = {max_time:g} s, after {self.n_points} of at most "
            f"{self.n_expected} points: the best so far is taken. Increase max_time, or give smaller grids or fewer "
            "folds",
            ConvergenceWarning,
        )

    def interrupt(self) -> None:
        """Ctrl-C: what has been found is kept."""
        self.ended = "interrupted"

    def _show(self) -> None:
        # Paths that have begun to overfit are given up.
        self._progress.update(**{POINT: float(self.n_points), OF: float(self.n_expected)})


class Followed(NamedTuple):
    """Coefficients (d, m) at each point that a path has reached, scores (m, length), and how many points count.

    A problem that was given up keeps its last coefficients and score; where the path itself has ended, by its own
    budget, by the clock or by Ctrl-C, scores are nan.
    """

    coefs: list[NDArray[np.float64]]
    scores: NDArray[np.float64]
    reached: NDArray[np.int64]


def along(
    path: Path,
    quality: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    length: int,
    watch: Watch,
    decline: float,
    together: NDArray[np.int64] | None = None,
) -> Followed:
    """Coefficients and scores along a path, which continues with the problems that do not yet overfit.

    Ctrl-C ends it: `watch` takes note, and what there is is returned.

    Parameters
    ----------
    path : Path
    quality : callable
        Scores (m,) of coefficients (d, m).
    length : int
        Points of the path.
    watch : Watch
        Told of each point.
    decline : float
        Two points in turn that are worse than the best by this part of it end a path.
    together : ndarray of shape (m,), optional
        Problems of the same number are given up together, by their mean score; default: each for itself.
    """
    # In one tuple: an interrupt cannot part coefficients from their score.
    points: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
    going: NDArray[np.int64] | None = None
    reached: NDArray[np.int64] | None = None
    try:
        with interrupts():
            while len(points) < length and not (points and watch.over):
                if points:
                    scores = np.array([score for _, score in points])
                    going = np.flatnonzero(~overfits(_means(scores, together), decline))
                if going is not None and going.size == 0:
                    points.append(points[-1])
                else:
                    coef = next(path, None) if going is None else _sent(path, going)
                    if coef is None:
                        break
                    points.append((coef, quality(coef)))
                if reached is None:
                    reached = np.zeros(points[0][1].size, np.int64)
                reached[slice(None) if going is None else going] += 1
                watch.point()
    except KeyboardInterrupt:
        watch.interrupt()
    m = points[0][1].size if points else 0
    scores = np.full((m, length), np.nan)
    for place, (_, score) in enumerate(points):
        scores[:, place] = score
    return Followed([coef for coef, _ in points], scores, np.zeros(m, np.int64) if reached is None else reached)


def _sent(path: Path, going: NDArray[np.int64]) -> NDArray[np.float64] | None:
    """The next point, of these problems; None if there is none."""
    try:
        return path.send(going)
    except StopIteration:
        return None


def _means(scores: NDArray[np.float64], together: NDArray[np.int64] | None) -> NDArray[np.float64]:
    """Each problem's score, or the mean of all that belong together and have one."""
    if together is None:
        return scores
    means = np.full_like(scores, np.nan)
    for number in np.unique(together):
        mine = np.flatnonzero(together == number)
        known = mine[np.isfinite(scores[:, mine]).all(axis=0)]
        if known.size:
            means[:, mine] = scores[:, known].mean(axis=1, keepdims=True)
    return means


def overfits(scores: NDArray[np.float64], decline: float) -> NDArray[np.bool_]:
    """Which problems were much worse at the last two points of a path (length, m) than at best, or have no score."""
    last = scores[-2:]
    best = scores.max(axis=0)
    worse = (last < best - decline * np.abs(best)) | np.isnan(last)
    return worse.all(axis=0) & (len(scores) > 2)
