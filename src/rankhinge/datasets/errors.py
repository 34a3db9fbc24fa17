"""The one error of the readers: the file, the line, what is wrong, and the value."""

from __future__ import annotations

import os

__all__ = ["DataError", "clipped", "need"]

# Characters of a value that a message quotes: lines of bad files may be as long as the file.
_SHOWN = 40


def clipped(value: object, *, shown: int = _SHOWN) -> str:
    """Quote a value for a message, in one short line: at most `shown` characters of it.

    Examples
    --------
    >>> clipped(b"1:x")
    "'1:x'"
    """
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
    return repr(text if len(text) <= shown else text[: shown - 1] + "…")


class DataError(ValueError):
    """A file cannot be read as data. The message is one line: ``file:line: what, value``.

    Attributes
    ----------
    path : str
        The path as given.
    line : int or None
        Counted from 1. None if the error belongs to no line.

    Examples
    --------
    >>> raise DataError("train.txt", "the label is not a number, 'x'", line=3)
    Traceback (most recent call last):
    rankhinge.datasets.DataError: train.txt:3: the label is not a number, 'x'
    """

    def __init__(self, path: str | os.PathLike[str], what: str, line: int | None = None) -> None:
        self.path, self.line, self.what = os.fspath(path), line, " ".join(what.split())
        place = self.path if line is None else f"{self.path}:{line}"
        super().__init__(f"{place}: {self.what}")

    def __reduce__(self) -> tuple[type[DataError], tuple[str, str, int | None]]:
        return type(self), (self.path, self.what, self.line)


def need(library: str, extra: str, purpose: str) -> ModuleNotFoundError:
    """The error for a missing library: one line that names the extra."""
    return ModuleNotFoundError(f"{purpose} needs {library}: pip install 'rankhinge[{extra}]'", name=library)
