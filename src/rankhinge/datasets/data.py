"""What the readers return: features, labels, queries and comments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

__all__ = ["LetorData", "Texts"]

_DOCUMENT = re.compile(r"docid\s*=\s*(\S+)")


class Texts(Sequence[str]):
    """Many short texts in one array of bytes. A list of a million strings would take 20 times the memory.

    Parameters
    ----------
    content : ndarray of uint8
        All texts, one after the other, in UTF-8.
    offsets : ndarray of int64, shape (n + 1,)
        Text k is ``content[offsets[k]:offsets[k + 1]]``.

    Examples
    --------
    >>> Texts.of(["GX001", "", "GX002"])[2]
    'GX002'
    """

    def __init__(self, content: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        self.content, self.offsets = content, offsets

    @classmethod
    def of(cls, texts: Sequence[str]) -> Texts:
        """The same texts, packed."""
        packed = [str(text).encode("utf-8", "surrogateescape") for text in texts]
        offsets = np.concatenate([[0], np.cumsum([len(text) for text in packed], dtype=np.int64)]).astype(np.int64)
        return cls(np.frombuffer(b"".join(packed), np.uint8), offsets)

    def __len__(self) -> int:
        return self.offsets.size - 1

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> Texts: ...

    def __getitem__(self, index: int | slice) -> str | Texts:
        if isinstance(index, slice):
            return Texts.of([self[k] for k in range(*index.indices(len(self)))])
        k = range(len(self))[index]
        return self.content[self.offsets[k] : self.offsets[k + 1]].tobytes().decode("utf-8", "backslashreplace")

    def __iter__(self) -> Iterator[str]:
        return (self[k] for k in range(len(self)))

    def take(self, rows: NDArray[Any]) -> Texts:
        """The texts of some rows."""
        return Texts.of([self[k] for k in np.arange(len(self))[rows]])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Texts):
            return NotImplemented
        return np.array_equal(self.offsets, other.offsets) and np.array_equal(self.content, other.content)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{len(self)} texts>"


@dataclass(frozen=True, eq=False)
class LetorData:
    """Features, labels and queries of one file.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n, d)
    y : ndarray of shape (n,)
        Labels, float64.
    qid : ndarray of shape (n,) or None
        The query of each row. None if the file has no queries.
    comments : Texts or None
        The text after ``#`` in each line, without surrounding blanks. None if no line has a comment.
    path : str
        The file that the data came from.
    index_base : int or None
        Whether the file counts columns from 0 or from 1. None if its format does not number them.
    feature_names : list of str or None

    Examples
    --------
    >>> import numpy as np
    >>> from rankhinge.datasets import LetorData
    >>> LetorData(np.eye(2), np.array([0.0, 1.0]), qid=np.array([7, 7])).y.tolist()
    [0.0, 1.0]
    """

    X: Any
    y: NDArray[np.float64]
    qid: NDArray[Any] | None = None
    comments: Texts | None = None
    path: str = ""
    index_base: int | None = None
    feature_names: list[str] | None = None

    @property
    def n_samples(self) -> int:
        """Rows."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Columns."""
        return int(self.X.shape[1])

    @property
    def n_queries(self) -> int | None:
        """The number of different query ids. None without queries."""
        return None if self.qid is None else int(np.unique(self.qid).size)

    @property
    def document_ids(self) -> list[str] | None:
        """The document id of each row: the text after ``docid =`` in its comment, else the comment's first word.

        None if any row has no comment.
        """
        if self.comments is None:
            return None
        found = []
        for text in self.comments:
            named = _DOCUMENT.search(text)
            words = text.split(maxsplit=1)
            if named is None and not words:
                return None
            found.append(named[1] if named else words[0])
        return found

    def __repr__(self) -> str:
        kind = type(self.X).__name__ + " of " + str(self.X.dtype)
        queries = "no queries" if self.qid is None else f"{self.n_queries} queries"
        return f"LetorData({self.path!r}: {self.n_samples} × {self.n_features}, {kind}, {queries})"
