"""What an iterative solver shows while it runs: iteration, primal, dual, gap, time.

Written without a library: all it takes is one line of text, rewritten in place on a terminal and
printed now and then elsewhere, so that a log file stays short.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Protocol

__all__ = ["Progress", "is_terminal", "is_watched"]

# Seconds between two displays: as often as the eye can follow, and as often as a log can bear.
_TERMINAL_INTERVAL = 0.1
_LOG_INTERVAL = 5.0
# How many displays are open in this process.
_n_open = 0
_lock = threading.Lock()


def _count(change: int) -> None:
    global _n_open
    with _lock:
        _n_open += change


class _Stream(Protocol):
    def write(self, text: str, /) -> object: ...

    def flush(self) -> object: ...


class Progress:
    """A line of text on standard error that follows a solver.

    Parameters
    ----------
    verbose : int
        0 shows nothing; 1 shows one line, updated in place on a terminal, and elsewhere a line at
        the start, one every few seconds and one at the end; 2 or more shows every update.
    columns : sequence of str
        The names of the values shown, in this order. The time since the start comes last.
    left_by : pair of str
        The columns that tell how much is done and of how much: their quotient gives the time left.
    patience : float, optional
        With ``verbose=0``: seconds after which a terminal shows the line all the same; default: never.
    stream : file-like, optional
        Where to write; by default what `sys.stderr` is when the ``with`` block is entered.

    Notes
    -----
    A display is no reason to lose a fit: if the stream is closed or broken, nothing more is shown.

    Examples
    --------
    >>> import sys
    >>> with Progress(2, ("iteration", "gap"), stream=sys.stdout) as progress:
    ...     progress.update(iteration=1, gap=0.5)  # doctest: +ELLIPSIS
    iteration 1  gap 5.00e-01  time ... s
    """

    def __init__(
        self,
        verbose: int,
        columns: Sequence[str] = ("iteration", "primal", "dual", "gap"),
        *,
        left_by: tuple[str, str] = ("point", "of at most"),
        patience: float | None = None,
        stream: _Stream | None = None,
    ) -> None:
        self._verbose = int(verbose)
        self._patience = 0.0 if self._verbose else patience
        # The text before the values; it may change.
        self.title = ""
        self._left_by = left_by
        self._columns = tuple(columns)
        self._destination = stream
        # Open within the ``with`` block only; None: show nothing.
        self._stream: _Stream | None = None
        self._rewrites = False
        self._interval = _LOG_INTERVAL
        self._began = self._last_shown = time.monotonic()
        # The latest update if it has not been shown, and the length of the line that stands.
        self._waiting: dict[str, float] | None = None
        self._n_shown = 0
        self._n_standing = 0

    def __enter__(self) -> Progress:
        self._began = self._last_shown = time.monotonic()
        self._waiting, self._n_shown, self._n_standing = None, 0, 0
        if self._verbose > 0:
            _count(1)
        stream = sys.stderr if self._destination is None else self._destination
        if self._verbose > 0 or (self._patience is not None and is_terminal(stream)):
            self._stream = stream
        self._rewrites = self._verbose <= 1 and is_terminal(self._stream)
        self._interval = _TERMINAL_INTERVAL if self._rewrites else _LOG_INTERVAL
        if self._verbose > 1:
            self._interval = 0.0
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._waiting is not None and (self._verbose > 0 or self._n_shown):
            self._show(self._waiting)
        if self._n_standing:
            self._write("\n")
        if self._verbose > 0:
            _count(-1)
        self._stream = None

    @property
    def is_shown(self) -> bool:
        """Whether an update would be shown. If not, the caller need not compute it."""
        return self._stream is not None

    def update(self, **values: float) -> None:
        """Show these values, by the names of the columns, unless the last were shown just now.

        Names that are no column are ignored, and columns without a value left out. The last
        update is always shown, at the latest when the ``with`` block is left.
        """
        if self._stream is None:
            return
        if time.monotonic() - self._began < (self._patience or 0.0):
            return
        self._waiting = values
        if self._n_shown == 0 or time.monotonic() - self._last_shown >= self._interval:
            self._show(values)

    def _show(self, values: dict[str, float]) -> None:
        now = time.monotonic()
        fields = [_field(name, values[name]) for name in self._columns if name in values]
        fields.append(f"time {now - self._began:.1f} s")
        done, of = (values.get(name, 0) for name in self._left_by)
        if done > 0 and of > 0:
            # Later points may take longer, or be left out: a rough figure, without decimals.
            left = (now - self._began) * (of - done) / done
            fields.append(f"left {max(0.0, left):.0f} s")
        line = "  ".join([self.title, *fields] if self.title else fields)
        if self._rewrites:
            # A line that wraps cannot be rewritten: keep it within the window.
            line = line[: shutil.get_terminal_size().columns - 1]
            self._write("\r" + line.ljust(self._n_standing))
            self._n_standing = len(line)
        else:
            self._write(line + "\n")
        self._waiting = None
        self._last_shown = now
        self._n_shown += 1

    def _write(self, text: str) -> None:
        if self._stream is None:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError, AttributeError):
            # The stream is closed, a broken pipe, or no stream at all.
            self._stream = None


def is_watched() -> bool:
    """Whether any display is open, so that somebody is waiting."""
    return _n_open > 0


def is_terminal(stream: _Stream | None) -> bool:
    """Whether a stream is a terminal; False for None and closed streams."""
    try:
        return bool(stream.isatty())  # type: ignore[union-attr]
    except (OSError, ValueError, AttributeError):
        return False


def _field(name: str, value: float) -> str:
    if name == "gap":
        return f"{name} {value:.2e}"
    # `%g` shows whole numbers, counts and iterations, as such.
    return f"{name} {value:.7g}"
