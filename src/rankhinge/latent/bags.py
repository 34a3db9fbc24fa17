"""Bags of candidates: the label of a bag is known, but not the candidate that it is about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from rankhinge._validation import QueryIds, encode_queries, in_native_order, refuse_masked
from rankhinge.features import ROW_BLOCK_ENTRIES

__all__ = ["Bags", "as_bags", "is_bags_like"]


class Bags:
    """Bags of candidates: a matrix of all candidates, and the rows of each bag.

    It behaves like a vector of bags: ``shape == (n_bags,)``, `len`, iteration, and the indices that scikit-learn's
    splitters produce. A selection ``bags[index]`` shares the matrix: nothing is copied.

    Parameters
    ----------
    candidates : sequence of 2-D arrays, or array or sparse matrix of shape (n_candidates, n_features)
        One array per bag, of shape (candidates of the bag, n_features), which are stacked. Or all candidates in one
        matrix of any real dtype, memory-mapped files and CSR matrices included, which is kept as it is.
    bag_ids : sequence of shape (n_candidates,), optional
        The bag of each row: any hashable values, rows in any order. Bags are numbered by first appearance, and
        candidates keep the order of their rows. Without `bag_ids` and `offsets`, every row is a bag.
    offsets : array of shape (n_bags + 1,), optional
        For rows that are grouped already: bag b has the rows ``offsets[b] … offsets[b + 1] - 1``.

    Attributes
    ----------
    shape : tuple
        ``(n_bags,)``.
    sizes : ndarray of shape (n_bags,)
        Candidates in each bag.
    n_candidates, n_features : int
    dtype : dtype
        Of the candidates.
    ids : ndarray of shape (n_bags,)
        The ids of the bags, or their numbers if none were given. A selection ``bags[index]`` keeps its ids.
    feature_names : ndarray of shape (n_features,) or None
        The columns of the frames, if the candidates came in frames.

    Raises
    ------
    ValueError
        If a bag is empty, a value is NaN or infinite (the message names bag and candidate), or numbers of features
        differ.

    Examples
    --------
    >>> import numpy as np
    >>> from rankhinge.latent import Bags
    >>> bags = Bags([[[1.0, 0.0], [0.0, 1.0]], [[2.0, 2.0]]])
    >>> bags.shape, bags.sizes.tolist(), bags[1]
    ((2,), [2, 1], array([[2., 2.]]))
    >>> bags = Bags(np.arange(8.0).reshape(4, 2), bag_ids=["a", "b", "a", "b"])
    >>> bags[0]
    array([[0., 1.],
           [4., 5.]])
    >>> bags[np.array([True, False])]
    Bags(1 bag, 2 candidates, 2 features, float64)
    """

    def __init__(self, candidates: Any, bag_ids: QueryIds | None = None, *, offsets: ArrayLike | None = None) -> None:
        if bag_ids is not None and offsets is not None:
            raise ValueError("give bag_ids or offsets, not both")
        if bag_ids is None and offsets is None and is_bags_like(candidates):
            X, sizes, names = _stacked(candidates)
            offsets = np.concatenate([[0], np.cumsum(sizes)])
        else:
            X, names = _matrix(candidates, "candidates"), _names_of(candidates)
        order, ids = None, None
        if bag_ids is not None:
            ids, order, offsets = _grouped(bag_ids, X.shape[0])
        elif offsets is None:
            offsets = np.arange(X.shape[0] + 1)
        bounds = _checked_offsets(offsets, X.shape[0], ids)
        if X.shape[1] == 0:
            raise ValueError(f"0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
        columns = None if names is None else np.array(names, dtype=object)
        self._set(X, order, bounds[:-1].copy(), bounds[1:].copy(), ids, columns)
        self._refuse_nan()

    def _set(
        self,
        X: Any,
        order: NDArray[np.int64] | None,
        start: NDArray[np.int64],
        stop: NDArray[np.int64],
        ids: NDArray[Any] | None,
        names: NDArray[Any] | None,
    ) -> None:
        self._X, self._order, self._start, self._stop = X, order, start, stop
        self._ids, self.feature_names = ids, names

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Refused, because a row-wise transformer would mistake a bag for a row."""
        raise TypeError(
            "Bags are not an array: wrap a transformer of features, for instance BagTransformer(StandardScaler()); the "
            "candidates themselves are in Bags.matrix"
        )

    @property
    def shape(self) -> tuple[int]:
        """``(n_bags,)``."""
        return (self._start.size,)

    @property
    def ndim(self) -> int:
        """1: a vector of bags."""
        return 1

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the candidates."""
        return self._X.dtype

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Candidates in each bag."""
        return self._stop - self._start

    @property
    def n_candidates(self) -> int:
        """Candidates in all bags."""
        return int(self.sizes.sum())

    @property
    def n_features(self) -> int:
        """Features of a candidate."""
        return int(self._X.shape[1])

    @property
    def ids(self) -> NDArray[Any]:
        """The bags' ids; their numbers if none were given."""
        return np.arange(len(self)) if self._ids is None else self._ids

    @property
    def matrix(self) -> Any:
        """The matrix that holds the candidates; `rows` says in which rows."""
        return self._X

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where each bag begins among the candidates of all bags, and where the last ends; shape (n_bags + 1,)."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    def rows(self) -> NDArray[np.int64] | None:
        """The row of `matrix` for each candidate, bag by bag. None: all rows, in order."""
        in_order = self._order is None and np.array_equal(self._start[1:], self._stop[:-1])
        if in_order and len(self) and self._start[0] == 0 and self._stop[-1] == self._X.shape[0]:
            return None
        offsets = self.offsets
        places = np.arange(offsets[-1]) + np.repeat(self._start - offsets[:-1], self.sizes)
        return places if self._order is None else self._order[places]

    def candidates(self) -> Any:
        """All candidates, bag by bag, of shape (n_candidates, n_features). Copied only for a selection of bags.

        ``bags.candidates()[bags.offsets[b] + h]`` is candidate h of bag b.
        """
        rows = self.rows()
        return self._X if rows is None else self._X[rows]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        # scikit-learn asks for `bags[index, ...]`.
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:
            key = key[0]
        if isinstance(key, int | np.integer):
            if not -len(self) <= key < len(self):
                raise IndexError(f"there is no bag {key}: there are {len(self)} bags")
            b = int(key) % len(self)
            rows: Any = slice(self._start[b], self._stop[b])
            return self._X[rows if self._order is None else self._order[rows]]
        if isinstance(key, tuple):
            raise IndexError(f"bags are a vector, but {len(key)} indices were given")
        if not isinstance(key, slice):
            key = _index(key, len(self))
        some = type(self).__new__(type(self))
        some._set(self._X, self._order, self._start[key], self._stop[key], self.ids[key], self.feature_names)
        return some

    def __iter__(self) -> Iterator[Any]:
        return (self[b] for b in range(len(self)))

    def __repr__(self) -> str:
        n = len(self)
        return (
            f"Bags({n} bag{'s' * (n != 1)}, {self.n_candidates} candidates, {self.n_features} features, "
            f"{'sparse ' * sparse.issparse(self._X)}{self.dtype})"
        )

    def _refuse_nan(self) -> None:
        if self.dtype.kind != "f":
            return
        if sparse.issparse(self._X):
            bad = np.flatnonzero(~np.isfinite(self._X.data))[:1]
            row = int(np.searchsorted(self._X.indptr, bad[0], side="right")) - 1 if bad.size else -1
        else:
            row = _first_bad_row(self._X)
        if row < 0:
            return
        # Only rows of X that belong to bags are there at this moment: all of them.
        place = row if self._order is None else int(np.flatnonzero(self._order == row)[0])
        b = int(np.searchsorted(self._stop, place, side="right"))
        values = self._X[[row]].toarray() if sparse.issparse(self._X) else self._X[row]
        wrong = "NaN" if np.isnan(values).any() else "infinity"
        raise ValueError(f"bag {_named(self._ids, b)} contains {wrong}, in candidate {place - int(self._start[b])}")


def is_bags_like(candidates: Any) -> bool:
    """Whether this is a sequence of 2-D arrays: one for each bag."""
    if isinstance(candidates, np.ndarray) and candidates.dtype != object:
        return candidates.ndim == 3
    if sparse.issparse(candidates) or hasattr(candidates, "iloc") or not isinstance(candidates, Sequence | np.ndarray):
        return False
    # The first that has an item decides: a list of rows has numbers in them, a list of bags has rows.
    for bag in candidates:
        if bag is None or sparse.issparse(bag) or hasattr(bag, "columns"):
            return True
        if hasattr(bag, "ndim"):
            return int(bag.ndim) == 2
        if isinstance(bag, Sequence) and len(bag):
            return np.ndim(bag[0]) == 1
        return isinstance(bag, Sequence)
    return True


def as_bags(X: Any) -> Bags:
    """Bags as they are, or made of a sequence of 2-D arrays or of one 2-D array (a bag for each row)."""
    return X if isinstance(X, Bags) else Bags(X)


def _index(key: Any, n: int) -> NDArray[np.int64]:
    index = np.asarray(key)
    if index.size == 0:
        return np.zeros(0, np.int64)
    if index.ndim != 1 or index.dtype.kind not in "iub":
        raise IndexError(f"bags are indexed by integers, slices, or vectors of integers or bools, not by {key!r}")
    if index.dtype == np.bool_:
        if index.size != n:
            raise IndexError(f"a bool index has {index.size} entries, but there are {n} bags")
        return np.flatnonzero(index)
    return index


def _matrix(X: Any, name: str) -> Any:
    """A 2-D array of numbers or a CSR matrix, not copied if it is one."""
    if sparse.issparse(X):
        matrix: Any = in_native_order(X).tocsr()
    else:
        refuse_masked(X, name)
        try:
            # Other subclasses of arrays multiply in other ways.
            matrix = X if type(X) in (np.ndarray, np.memmap) else np.asarray(X)
            if matrix.dtype == object:
                matrix = matrix.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must be a matrix of numbers: {error}") from None
        if matrix.ndim != 2:
            raise ValueError(f"{name} must have two dimensions, got shape {matrix.shape}")
    if matrix.dtype.kind not in "iufb":
        raise ValueError(f"{name} must be real numbers, got dtype {matrix.dtype}")
    if matrix.dtype.kind == "b":
        matrix = matrix.astype(np.uint8)
    return matrix


def _names_of(frame: Any) -> list[str] | None:
    """The names of a frame's columns, if they are strings."""
    columns = getattr(frame, "columns", None)
    if columns is None or sparse.issparse(frame) or not all(isinstance(name, str) for name in columns):
        return None
    return list(columns)


def _stacked(bags: Any) -> tuple[Any, NDArray[np.int64], list[str] | None]:
    """The bags' arrays, one below the other, how many rows each has, and the names of the features."""
    if len(bags) == 0:
        raise ValueError("there are no bags")
    parts, names = [], _names_of(bags[0])
    for b, bag in enumerate(bags):
        if _names_of(bag) != names:
            raise ValueError(f"bag {b} has other feature names than bag 0, or another order of them")
        if isinstance(bag, Sequence | np.ndarray) and len(bag) == 0 and getattr(bag, "ndim", 1) < 2:
            raise ValueError(f"bag {b} is empty: it has no candidates")
        parts.append(_matrix(bag, f"bag {b}"))
        if parts[b].shape[1] != parts[0].shape[1]:
            raise ValueError(f"bag {b} has {parts[b].shape[1]} features, bag 0 has {parts[0].shape[1]}")
    sizes = np.array([part.shape[0] for part in parts])
    some = any(sparse.issparse(part) for part in parts)
    return (sparse.vstack(parts, format="csr") if some else np.concatenate(parts)), sizes, names


def _grouped(bag_ids: QueryIds, n: int) -> tuple[NDArray[Any], NDArray[np.int64] | None, NDArray[np.int64]]:
    """The ids by first appearance, the rows bag by bag (None if they are so already), and the offsets."""
    try:
        ids, codes = encode_queries(bag_ids, n, counted="candidates")
    except (TypeError, ValueError) as error:
        raise type(error)(str(error).replace("qid", "bag_ids", 1)) from None
    offsets = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=ids.size))])
    if np.all(np.diff(codes) >= 0):
        return ids, None, offsets
    return ids, np.argsort(codes, kind="stable"), offsets


def _checked_offsets(offsets: Any, n: int, ids: NDArray[Any] | None) -> NDArray[np.int64]:
    bounds = np.asarray(offsets)
    if bounds.ndim != 1 or bounds.size == 0 or bounds.dtype.kind not in "iu":
        raise ValueError(f"offsets must be a vector of integers, got shape {bounds.shape}, dtype {bounds.dtype}")
    bounds = bounds.astype(np.int64)
    if bounds[0] != 0 or bounds[-1] != n:
        raise ValueError(f"offsets run from {bounds[0]} to {bounds[-1]}, but must run from 0 to {n}")
    falls = np.flatnonzero(np.diff(bounds) <= 0)
    if falls.size:
        b = int(falls[0])
        if bounds[b + 1] < bounds[b]:
            raise ValueError(f"offsets[{b + 1}] = {bounds[b + 1]} is less than offsets[{b}] = {bounds[b]}")
        raise ValueError(f"bag {_named(ids, b)} is empty: it has no candidates")
    return bounds


def _named(ids: NDArray[Any] | None, b: int) -> str:
    """The bag's id, or its number, for a message."""
    return str(b) if ids is None else repr(ids[b : b + 1].tolist()[0])


def _first_bad_row(X: NDArray[Any]) -> int:
    """The first row with NaN or infinity, or -1; block by block, so that a memory-mapped X is never loaded whole."""
    step = max(1, ROW_BLOCK_ENTRIES // max(1, X.shape[1]))
    for first in range(0, X.shape[0], step):
        block = X[first : first + step]
        # A sum costs a tenth of a look at each entry, and is finite for almost every block without a bad one.
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.sum(block, dtype=np.float64)
        if not np.isfinite(total):
            bad = np.flatnonzero(~np.isfinite(block).all(axis=1))
            if bad.size:
                return first + int(bad[0])
    return -1
