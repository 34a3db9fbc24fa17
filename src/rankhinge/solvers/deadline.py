"""When a fit must end, finished or not. The best point so far is kept."""

from __future__ import annotations

import time
from dataclasses import dataclass

from rankhinge.solvers.certificate import TIME

__all__ = ["NEVER", "Deadline"]


@dataclass(frozen=True)
class Deadline:
    """A moment of the monotonic clock, and what the status of a fit is that it has ended.

    It is looked at between two steps: a step, of a few passes over X, is never cut off, and one is always made.

    Examples
    --------
    >>> from rankhinge.solvers import Deadline
    >>> Deadline.after(None).passed, Deadline.after(1e-9).passed
    (False, True)
    """

    moment: float = float("inf")
    status: str = TIME

    @classmethod
    def after(cls, seconds: float | None) -> Deadline:
        """The deadline this many seconds from now. None: never."""
        return cls() if seconds is None else cls(time.monotonic() + float(seconds))

    @property
    def passed(self) -> bool:
        """Whether it is over."""
        # Without a moment there is no need for the clock.
        return self.moment < float("inf") and time.monotonic() >= self.moment

    def earlier(self, share: float) -> Deadline:
        """The moment at which this share of the time that is left has gone."""
        if self.moment == float("inf"):
            return self
        now = time.monotonic()
        return Deadline(now + share * max(0.0, self.moment - now), self.status)


NEVER = Deadline()
"""For fits without a limit."""
