"""From a file to parsed blocks of whole lines, a few mebibytes each. Some are read while others are parsed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from rankhinge._threads import n_threads, run
from rankhinge.datasets import kernels
from rankhinge.datasets.data import Texts
from rankhinge.datasets.errors import DataError, clipped
from rankhinge.datasets.sources import MemoryBudget, opened

__all__ = ["Block", "parsed_blocks"]

# Bytes. Fixed, so that results do not depend on the number of threads. Long enough that Python's work for each block
# does not matter, short enough to stay in the processor's cache from the count to the parse.
_SIZE = 1 << 20
_LONGEST_LINE = 1 << 26
_BOM = b"\xef\xbb\xbf"


class Block:
    """The content of a block of lines.

    Attributes
    ----------
    labels, queries, ends, lines : ndarray of shape (n,)
        Of its rows; `queries` only counts if `has_queries`. `ends`: entries up to the end of the row, `lines`: its line
        in the file.
    indices, values : ndarray of shape (n_entries,)
    comments : Texts or None
    found : ndarray
        As `kernels.parse` leaves it.
    """

    def __init__(self, text: NDArray[np.uint8], dtype: np.dtype[Any], keep_comments: bool) -> None:
        n_lines, n_colons = kernels.count(text)
        labels, queries = np.empty(n_lines), np.empty(n_lines, np.int64)
        ends, lines, comments = (
            np.empty(n_lines, np.int32),
            np.empty(n_lines, np.int32),
            np.empty((n_lines, 2), np.int32),
        )
        indices, values = np.empty(n_colons, np.int32), np.empty(n_colons, dtype)
        hard, self.found = np.empty((0, 4), np.int64), np.zeros(kernels.N_FOUND, np.int64)
        kernels.parse(text, labels, queries, ends, lines, comments, indices, values, hard, self.found)
        if self.found[kernels.HARDS]:
            hard, self.found = np.empty((self.found[kernels.HARDS], 4), np.int64), np.zeros_like(self.found)
            kernels.parse(text, labels, queries, ends, lines, comments, indices, values, hard, self.found)
        n, size = int(self.found[kernels.ROWS]), int(self.found[kernels.ENTRIES])
        self.text: NDArray[np.uint8] | None = text
        self.labels, self.queries, self.ends, self.lines = labels[:n], queries[:n], ends[:n], lines[:n]
        self.indices, self.values = indices[:size], values[:size]
        self.has_queries = bool(self.found[kernels.QUERIES])
        self._read_hard(hard, text)
        self.comments = _gathered(text, comments[:n]) if keep_comments else None

    def _read_hard(self, hard: NDArray[np.int64], text: NDArray[np.uint8]) -> None:
        """Let Python read the numbers that the kernel could not. The first too large one is an error of its line."""
        with np.errstate(over="ignore"):
            for row, entry, begin, end in hard.tolist():
                value = float(text[begin:end].tobytes())
                if row >= 0:
                    if np.isinf(value):
                        line = int(self.lines[row]) if row < self.lines.size else int(self.found[kernels.LINE])
                        self.found[[kernels.ERROR, kernels.PLACE, kernels.LINE]] = kernels.BAD["label"], begin, line
                        return
                    self.labels[row : row + 1] = value
                elif entry < self.values.size:
                    self.values[entry] = value
                    if np.isinf(self.values[entry]):
                        row = int(np.searchsorted(self.ends, entry, side="right"))
                        line = int(self.lines[row]) if row < self.lines.size else int(self.found[kernels.LINE])
                        # Back from the value, over the colon, to where its index begins.
                        begin = len(text[: begin - 1].tobytes().rstrip(b"0123456789"))
                        self.found[[kernels.ERROR, kernels.PLACE, kernels.LINE]] = kernels.BAD["beyond"], begin, line
                        return

    @property
    def nbytes(self) -> int:
        """The memory that the block holds."""
        arrays: list[NDArray[Any]] = [self.labels, self.queries, self.ends, self.lines, self.indices, self.values]
        if self.comments is not None:
            arrays += [self.comments.content, self.comments.offsets]
        return sum(array.nbytes for array in arrays)

    def complaint(self, dtype: np.dtype[Any]) -> tuple[str, int] | None:
        """What is wrong, and in which line of the block. None if nothing is."""
        code = int(self.found[kernels.ERROR])
        if not code:
            return None
        assert self.text is not None
        content = self.text[int(self.found[kernels.PLACE]) :][:4096].tobytes().split(b"\n", 1)[0]
        token = (content.split(None, 1) or [b""])[0]
        index, _, value = token.partition(b":")
        feature = index[:20].decode("ascii", "backslashreplace")
        what = {
            "label": f"the label is not a finite number, {clipped(token)}",
            "entry": f"expected index:value, found {clipped(token)}",
            "query": f"the query id is not an integer of at most 18 digits, {clipped(value)}",
            "order": f"indices must ascend, {clipped(index)} follows '{self.found[kernels.DETAIL]}'",
            "value": f"the value of feature {feature} is not a number, {clipped(value)}",
            "index": f"the index is beyond 2147483646, {clipped(index)}",
            "beyond": f"the value of feature {feature} is beyond {dtype}, {clipped(value)}",
            "no query": "the line has no qid, but the lines before have one",
            "query after none": "the line has a qid, but the lines before have none",
            "byte": "the file is not text, byte 0x00",
        }
        name = next(name for name, known in kernels.BAD.items() if known == code)
        return what[name], int(self.found[kernels.LINE])


def _gathered(text: NDArray[np.uint8], places: NDArray[np.int32]) -> Texts | None:
    total = int((places[:, 1] - places[:, 0]).sum(dtype=np.int64))
    if not total:
        return None
    content, offsets = np.empty(total, np.uint8), np.zeros(places.shape[0] + 1, np.int64)
    kernels.gather(text, places, content, offsets[1:], 0)
    return Texts(content, offsets)


class _Reader:
    """Blocks of whole lines from a stream."""

    def __init__(self, path: str, stream: IO[bytes], budget: MemoryBudget) -> None:
        self.path, self.stream, self.budget = path, stream, budget
        self.rest, self.seen, self.done = b"", 0, False

    def some(self, n: int) -> list[NDArray[np.uint8]]:
        """The next n blocks, or fewer at the end."""
        found: list[NDArray[np.uint8]] = []
        while len(found) < n and not self.done:
            block = self._next()
            if block.size:
                found.append(block)
        return found

    def _next(self) -> NDArray[np.uint8]:
        parts, cut, size = [self.rest], -1, len(self.rest)
        while cut < 0:
            piece = self.stream.read(_SIZE)
            if not self.seen and piece.startswith(_BOM):
                piece = piece[len(_BOM) :]
            self.seen += len(piece)
            size += len(piece)
            if size > _LONGEST_LINE:
                raise DataError(self.path, f"a line is longer than {_LONGEST_LINE} bytes")
            if not piece:
                self.done = True
                cut = 0
            else:
                cut = piece.rfind(b"\n") + 1 or -1
            parts.append(piece)
        *before, last = parts
        self.rest = last[cut:]
        return np.frombuffer(b"".join([*before, last[:cut]]), np.uint8)


def parsed_blocks(path: str, dtype: np.dtype[Any], keep_comments: bool, budget: MemoryBudget) -> Iterator[Block]:
    """The blocks of a file in order, with lines counted from its beginning. Whatever is wrong is a `DataError`."""
    n_lines, kept, queries = 0, 0, None
    with opened(path) as stream:
        reader = _Reader(path, stream, budget)
        texts = reader.some(n_threads())
        while texts:
            tasks: list[Any] = [partial(Block, text, dtype, keep_comments) for text in texts]
            # Unpacking takes longer than parsing: it continues at the same time.
            *blocks, texts = run([*tasks, partial(reader.some, n_threads())])
            for block in blocks:
                wrong = block.complaint(dtype)
                if queries is not None and block.labels.size and block.has_queries != queries:
                    name = "query after none" if block.has_queries else "no query"
                    block.found[kernels.ERROR], block.found[kernels.LINE] = kernels.BAD[name], block.lines[0]
                    wrong = block.complaint(dtype)
                if wrong is not None:
                    raise DataError(path, wrong[0], n_lines + wrong[1])
                if block.labels.size:
                    queries = block.has_queries
                    block.lines += n_lines
                    n_lines_here = int(block.found[kernels.LINES])
                    block.found[[kernels.FROM_0, kernels.FROM_1]] += n_lines * (
                        block.found[[kernels.FROM_0, kernels.FROM_1]] > 0
                    )
                    kept += block.nbytes
                    # Once as blocks and once as arrays.
                    budget.check(2 * kept, reader.seen)
                    yield block
                    block.text = None
                else:
                    n_lines_here = int(block.found[kernels.LINES])
                n_lines += n_lines_here
