"""Plain and gzip files: read within a memory limit, and written completely or not at all."""

from __future__ import annotations

import contextlib
import errno
import gzip
import os
import stat
import tempfile
import zlib
from collections.abc import Iterator
from typing import IO, Any

from rankhinge.datasets.errors import DataError

__all__ = ["GZIP", "MemoryBudget", "opened", "text_lines", "written"]

GZIP = b"\x1f\x8b"
# First bytes of text that is not UTF-8, and of packers that no reader here knows.
_FOREIGN = {
    b"\xff\xfe": "text in UTF-16: save it as UTF-8",
    b"\xfe\xff": "text in UTF-16: save it as UTF-8",
    b"BZh": "packed by bzip2: unpack it first, or use gzip",
    b"\xfd7zXZ": "packed by xz: unpack it first, or use gzip",
    b"\x28\xb5\x2f\xfd": "packed by zstd: unpack it first, or use gzip",
}
# The memory that any file may take: see `MemoryBudget`.
_TIMES_ITS_SIZE, _AND_BYTES = 4, 350_000_000
# Text compresses to a fifth or a tenth. A file that expands more than this was made to fill the memory.
_PLAUSIBLE_EXPANSION = 20


class MemoryBudget:
    """The memory that a compressed file may take: four times its size plus 350 MB, or more if it expands like text.

    Parameters
    ----------
    path : str
    limit : int, "auto" or None
        Bytes. None: no limit. ``"auto"``: as above.
    """

    def __init__(self, path: str, limit: int | str | None) -> None:
        self.path, self._is_given = path, limit != "auto"
        self.size = os.path.getsize(path)
        self.limit = _TIMES_ITS_SIZE * self.size + _AND_BYTES if limit == "auto" else limit

    def check(self, needed: int, expanded: int | None = None) -> None:
        """Raise if this is too many bytes for a content of `expanded` bytes (None: for any content)."""
        if self.limit is None or needed <= int(self.limit):
            return
        if not self._is_given and expanded is not None and expanded <= _PLAUSIBLE_EXPANSION * self.size:
            return
        raise DataError(
            self.path,
            f"{self.size} bytes on disk would take more than {int(self.limit)} in memory: "
            "if you trust the file, pass max_memory=None (the command: --any-size)",
        )


@contextlib.contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked if it is gzip. Whatever is wrong with the file is a `DataError`."""
    try:
        with open(path, "rb") as raw:
            if not raw.seekable():
                raise DataError(path, "this is a pipe, but readers go over a file more than once: write it to a file")
            start = raw.read(6)
            raw.seek(0)
            for magic, what in _FOREIGN.items():
                if start.startswith(magic):
                    raise DataError(path, f"the file is {what}")
            is_packed = start.startswith(GZIP)
            with gzip.open(raw) if is_packed else contextlib.nullcontext(raw) as file:
                yield file  # type: ignore[misc]
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(path, f"the gzip file is damaged: {error}") from None
    except FileNotFoundError:
        raise DataError(path, "there is no such file") from None
    except IsADirectoryError:
        raise DataError(path, "this is a folder, not a file") from None
    except PermissionError:
        raise DataError(path, "the file may not be read (permission denied)") from None


def text_lines(path: str) -> Iterator[tuple[int, str]]:
    """The lines of a text with their numbers from 1. Undecodable bytes and endless lines are errors."""
    with opened(path) as file:
        budget, seen = MemoryBudget(path, "auto"), 0
        for line, raw in enumerate(iter(lambda: file.readline(1 << 20), b""), start=1):
            seen += len(raw)
            # Python's strings and lists take some ten times the bytes of the text.
            budget.check(10 * seen, seen)
            try:
                text = raw.decode("utf-8-sig" if line == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise DataError(path, f"the line is not UTF-8 text, byte {raw[error.start]:#04x}", line) from None
            if "\0" in text:
                raise DataError(path, "the file is not text, byte 0x00", line)
            if len(raw) == 1 << 20 and not raw.endswith(b"\n"):
                raise DataError(path, "the line is longer than a mebibyte", line)
            yield line, text


@contextlib.contextmanager
def written(path: str | os.PathLike[str], compress: bool = True) -> Iterator[IO[bytes]]:
    """Open a file for writing that appears under its name only when it is complete.

    It is compressed if its name ends in ``.gz``, unless this is switched off. If writing stops, by an interrupt or a
    full disk, an earlier file of that name stays as it was. Devices and pipes are written to directly.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from rankhinge import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.txt"
    ...     with datasets.written(path) as file:
    ...         _ = file.write(b"1 1:0.5")
    ...     text = path.read_text()
    >>> text
    '1 1:0.5'
    """
    name = _target(os.fspath(path))
    temporary = None
    try:
        if os.path.isdir(name):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if _is_no_file(name):
            handle = os.open(name, os.O_WRONLY)
        else:
            folder, base = os.path.split(os.path.abspath(name))
            handle, temporary = tempfile.mkstemp(prefix=f".{base}.", dir=folder)
        with os.fdopen(handle, "wb") as raw:
            # Neither name nor time inside: equal data give equal bytes.
            packed: Any = gzip.GzipFile("", "wb", 6, raw, mtime=0) if compress and name.endswith(".gz") else None
            with packed or contextlib.nullcontext(raw) as file:
                yield file
        if temporary is not None:
            mask = os.umask(0)
            os.umask(mask)
            os.chmod(temporary, 0o666 & ~mask)
            os.replace(temporary, name)
    except BaseException as error:
        if temporary is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
        if isinstance(error, OSError) and error.errno is not None:
            # The system's message names the temporary file, or no file.
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise


def _target(name: str) -> str:
    """Where a link to a file leads: the file is replaced, not the link."""
    return os.path.realpath(name) if os.path.islink(name) and not _is_no_file(name) else name


def _is_no_file(name: str) -> bool:
    """Whether there is a device or a pipe of this name, which nothing may replace: it is written to directly.

    The links of the system to open files, ``/dev/stdout`` among them, count as such whatever is behind them.
    """
    try:
        mode = os.stat(name).st_mode
    except OSError:
        return False
    is_of_system = os.path.abspath(name).startswith(("/dev/", "/proc/"))
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) or (is_of_system and os.path.islink(name))
