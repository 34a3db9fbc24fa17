"""The one error of the readers: where in which file, what is wrong, and the value."""

from __future__ import annotations

import os

__all__ = ["DataError", "clipped", "need"]

# Characters of a value that a message quotes: lines of bad files may be as long as the file.
_SHOWN = 40


def clipped(value: object) -> str:
    """The value as a message quotes it: in one line, and short.

    Examples
    --------
    >>> clipped(b"1:x")
    "'1:x'"
    """
    text = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")


class DataError(ValueError):
    """A file that cannot be read as data, told in one line: ``file:line: what, value``.

    Attributes
    ----------
    path : str
        As it was given.
    line : int or None
        Counted from 1; None where the fault has no line.

    Examples
    --------
    >>> raise DataError("train.txt", "the label is no number, 'x'", line=3)
    Traceback (most recent call last):
    rankhinge.datasets.DataError: train.txt:3: the label is no number, 'x'
    """

    def __init__(self, path: str | os.PathLike[str], what: str, line: int | None = None) -> None:
        self.path, self.line, self.what = os.fspath(path), line, " ".join(what.split())
        place = self.path if line is None else f"{self.path}:{line}"
        super().__init__(f"{place}: {self.what}")

    def __reduce__(self) -> tuple[type[DataError], tuple[str, str, int | None]]:
        return type(self), (self.path, self.what, self.line)


def need(library: str, extra: str, purpose: str) -> ModuleNotFoundError:
    """The error for a library that is not installed: one line that names the extra."""
    return ModuleNotFoundError(f"{purpose} needs {library}: pip install 'rankhinge[{extra}]'", name=library)
