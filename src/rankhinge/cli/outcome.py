"""Exit codes and errors of one line."""

from __future__ import annotations

import sys

__all__ = [
    "BAD_INPUT",
    "DONE",
    "INTERNAL",
    "INTERRUPTED",
    "MISSING_EXTRA",
    "NOT_CONVERGED",
    "USAGE",
    "CommandError",
    "complain",
    "one_line",
]

DONE, NOT_CONVERGED, USAGE, BAD_INPUT, MISSING_EXTRA = range(5)
# By the conventions of sysexits.h and of shells.
INTERNAL, INTERRUPTED = 70, 130


class CommandError(Exception):
    """An error that ends a command with a message and an exit code."""

    def __init__(self, message: str, code: int = BAD_INPUT) -> None:
        super().__init__(message)
        self.message, self.code = message, code


def one_line(error: object) -> str:
    r"""The message of an error, without line breaks.

    Examples
    --------
    >>> one_line(ValueError("first\n  second"))
    'first second'
    """
    text = " ".join(str(error).split())
    return text or type(error).__name__


def complain(message: str, code: int) -> int:
    """Write the message to standard error and return the code."""
    print(f"rankhinge: {one_line(message)}", file=sys.stderr)
    return code
