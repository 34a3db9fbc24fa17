"""What the commands write: tables, JSON, and files that appear completely or not at all."""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from rankhinge.cli.outcome import CommandError, one_line
from rankhinge.datasets import written

__all__ = ["naming", "output", "refuse_unwritable", "show", "table"]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of text, the first flush left and the others flush right.

    Examples
    --------
    >>> print(table(["metric", "value"], [["ndcg@10", "0.5"], ["ap", "0.25"]]))
    metric   value
    ndcg@10    0.5
    ap        0.25
    """
    lines = [list(header), *map(list, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(
        "  ".join(
            text.ljust(width) if column == 0 else text.rjust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def show(arguments: Any, text: str, facts: dict[str, Any]) -> None:
    """Write the result to standard output, as text or as JSON."""
    if arguments.json:
        # Letters that the terminal does not know are escaped as JSON does it.
        is_utf = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")
        text = json.dumps(_plain(facts), ensure_ascii=not is_utf, allow_nan=False)
    print(text, flush=True)


def _plain(value: Any) -> Any:
    """A value for JSON. nan and infinities, which JSON lacks, become null."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


@contextlib.contextmanager
def naming(path: str) -> Iterator[None]:
    """Errors of the system while this file is written name the file, and not a temporary one."""
    try:
        yield
    except OSError as error:
        what = error.strerror or one_line(error)
        raise CommandError(f"{path}: cannot be written, {what[:1].lower() + what[1:]}") from error


def refuse_unwritable(*paths: str | None) -> None:
    """Report before the work, not after it, that a file cannot be written. None: there is no such file."""
    for path in paths:
        if path is None or (os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))):
            # Devices and pipes need no place in a folder.
            continue
        with naming(path):
            if os.path.isdir(path):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            with tempfile.TemporaryFile(dir=os.path.dirname(os.path.abspath(path))):
                pass


@contextlib.contextmanager
def output(path: str | None) -> Iterator[Any]:
    """A file for bytes that appears when it is complete. None: standard output."""
    if path is None:
        stream = getattr(sys.stdout, "buffer", None)
        yield stream if stream is not None else _Text()
        sys.stdout.flush()
        return
    with naming(path), written(path) as file:
        yield file


class _Text:
    """A stand-in for standard output where that takes text only, as under a test or in a notebook."""

    def write(self, content: bytes) -> int:
        sys.stdout.write(content.decode("utf-8"))
        return len(content)
