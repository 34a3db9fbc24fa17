"""Who watches a search: the display, the clock and Ctrl-C."""

from __future__ import annotations

from rankhinge._progress import Progress
from rankhinge.solvers import Deadline

__all__ = ["Watch"]

# Columns of the display.
POINT, OF = "point", "of at most"


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
        """Whether the search goes on with what it has."""
        if self.ended is None and self._deadline.passed:
            self.ended = self._deadline.status
        return self.ended is not None

    def interrupt(self) -> None:
        """Ctrl-C: what has been found is kept."""
        self.ended = "interrupted"

    def _show(self) -> None:
        # Paths that have begun to overfit are given up.
        self._progress.update(**{POINT: float(self.n_points), OF: float(self.n_expected)})
