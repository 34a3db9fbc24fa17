"""Checks at the edge: input is validated once, here, and errors name the offending value."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Hashable, Sequence
from copy import copy
from numbers import Integral, Number
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "QueryIds",
    "as_numbers",
    "check_mask",
    "check_offsets",
    "check_relevant",
    "check_scores",
    "describe_bad_score",
    "encode_queries",
    "refuse_dask",
    "refuse_masked",
    "refuse_missing",
    "warn_user",
    "without_objects",
    "without_unlabelled",
]

QueryIds: TypeAlias = ArrayLike | Sequence[Hashable]

# Packages that a warning skips when it looks for the user's line.
_INSIDE = ("rankhinge", "sklearn", "joblib", "torch", "contextlib")
_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
# Packages of collections that are computed when NumPy asks for their values.
_LAZY = ("dask", "dask_expr")


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside this package, scikit-learn, joblib and PyTorch that led here."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _INSIDE:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def refuse_dask(values: Any, name: str) -> None:
    """Raise if the values are a dask collection: NumPy would load it whole, and say nothing."""
    if type(values).__module__.partition(".")[0] in _LAZY:
        raise TypeError(
            f"{name} is a dask collection, which would be loaded whole here: call .compute() on it if it fits into "
            "memory, or write it to a file with rankhinge.spool; RankSVC, SVMRanker and their CV classes take X, and "
            "y beside it, as they are"
        )


def refuse_masked(values: Any, name: str) -> None:
    """Raise if values are masked, or if they are a dask collection that would have to be computed."""
    if type(values) is np.ndarray:
        return
    refuse_dask(values, name)
    if isinstance(values, np.ma.MaskedArray):
        for place in np.argwhere(np.ma.getmaskarray(values))[:1]:
            raise ValueError(f"{name}[{', '.join(map(str, place))}] is masked")


def in_native_order(X: Any) -> Any:
    """X itself, or a copy in native byte order of a sparse X in the other byte order, which kernels cannot read.

    Such matrices come from files: SciPy does not make them, but accepts their arrays.
    """
    for name in ("data", "indices", "indptr"):
        part = getattr(X, name, None) if hasattr(X, "tocsr") else None
        if isinstance(part, np.ndarray) and not part.dtype.isnative:
            X = copy(X)
            setattr(X, name, part.astype(part.dtype.newbyteorder("=")))
    return X


def as_numbers(values: Any, name: str) -> NDArray[np.float64]:
    """The values as an array of float64. An error names the first one that is no number."""
    refuse_masked(values, name)
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        pass
    entries = np.asarray(values, dtype=object)
    for place in np.ndindex(entries.shape if entries.ndim else (0,)):
        try:
            float(entries[place])
        except (TypeError, ValueError):
            where = ", ".join(map(str, place))
            raise ValueError(f"{name}[{where}] is {entries[place]!r}: it must be a number") from None
    raise ValueError(f"{name} must be made of numbers, got {values!r}")


def check_scores(scores: ArrayLike) -> NDArray[Any]:
    """Scores as a read-only, contiguous, aligned vector of float32 or float64; no copy if they are one.

    Whether they are finite is found out by the first pass that reads them.
    """
    refuse_masked(scores, "scores")
    array = np.asarray(scores)
    if array.ndim != 1:
        raise ValueError(f"scores must be one-dimensional, got shape {array.shape}")
    if array.dtype not in _FLOATS:
        if array.dtype.kind not in "iufb":
            raise ValueError(f"scores must be numbers, got dtype {array.dtype}")
        array = array.astype(np.float64)
    return _read_only(array)


def check_relevant(
    relevant: ArrayLike, n_samples: int, name: str = "relevant", counted: str = "scores"
) -> NDArray[np.bool_]:
    """Relevance as a read-only vector of bool; numbers must be 0 or 1. Also for other flags, with their `name`."""
    refuse_masked(relevant, name)
    array = np.asarray(relevant)
    if array.shape != (n_samples,):
        raise ValueError(f"{name} has shape {array.shape}, {counted} have shape ({n_samples},)")
    if array.dtype != np.bool_:
        if array.dtype.kind not in "iuf":
            raise ValueError(f"{name} must be bool or 0/1, got dtype {array.dtype}")
        as_bool = array == 1
        wrong = np.flatnonzero(~as_bool & (array != 0))
        if wrong.size:
            raise ValueError(f"{name}[{wrong[0]}] is {array[wrong[0]]}: it must be 0 or 1")
        array = as_bool
    return _read_only(array)


def check_offsets(offsets: ArrayLike, n_samples: int) -> NDArray[np.int64]:
    """Offsets ``0 = o_0 ≤ o_1 ≤ … ≤ o_Q = n_samples`` of consecutive lists."""
    array = np.asarray(offsets)
    if array.ndim != 1 or array.size < 1 or array.dtype.kind not in "iu":
        raise ValueError(f"offsets must be a vector of integers, got shape {array.shape}, dtype {array.dtype}")
    array = np.ascontiguousarray(array, dtype=np.int64)
    if array[0] != 0 or array[-1] != n_samples:
        raise ValueError(f"offsets run from {array[0]} to {array[-1]}, but must run from 0 to {n_samples}")
    falls = np.flatnonzero(np.diff(array) < 0)
    if falls.size:
        place = int(falls[0])
        raise ValueError(f"offsets[{place + 1}] = {array[place + 1]} is less than offsets[{place}] = {array[place]}")
    return array


def encode_queries(qid: QueryIds, n_samples: int, *, counted: str = "scores") -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The distinct queries in the order of their first appearance, and each row's index into them.

    Parameters
    ----------
    qid : sequence of shape (n_samples,)
        The query of each row: any hashable, rows in any order.
    n_samples : int
    counted : str, default "scores"
        What `n_samples` is the length of, for the message if `qid` has another.

    Returns
    -------
    queries : ndarray of shape (n_queries,)
        Of `qid`'s dtype if that was an array, else of dtype object.
    codes : ndarray of shape (n_samples,)
        ``queries[codes[i]]`` is the query of row i.

    Examples
    --------
    >>> queries, codes = encode_queries(["b", "a", "b"], 3)
    >>> queries.tolist(), codes.tolist()
    (['b', 'a'], [0, 1, 0])
    """
    refuse_masked(qid, "qid")
    if isinstance(qid, set | frozenset) or not hasattr(qid, "__iter__"):
        raise ValueError(f"qid must be a sequence with an entry for each row, got {qid!r}")
    # An array made of a list would merge 1 and "1", and split tuples into columns. (That it can be iterated was asked
    # above, which a type checker does not see.)
    rows: Any = np.asarray(qid) if hasattr(qid, "__array__") else list(qid)  # type: ignore[arg-type]
    if isinstance(rows, np.ndarray) and rows.ndim != 1:
        raise ValueError(f"qid must be one-dimensional, its shape is {rows.shape}")
    if callable(n_missing := getattr(qid, "null_count", None)) and n_missing():
        # A series of polars: in an array of objects its nulls would be None, which is a query like any other.
        raise ValueError(f"qid has {n_missing()} nulls")
    is_typed = isinstance(rows, np.ndarray) and rows.dtype != object
    queries, codes = _encode_array(rows) if is_typed else _encode_objects(rows)
    if len(codes) != n_samples:
        raise ValueError(f"qid has {len(codes)} entries, {counted} {n_samples}{_hint_at_sizes(rows, n_samples)}")
    return queries, codes


def _hint_at_sizes(rows: Any, n_samples: int) -> str:
    """A hint, if group sizes were given in place of query ids; else an empty text."""
    if not all(isinstance(row, Integral) and int(row) >= 0 for row in rows) or sum(map(int, rows)) != n_samples:
        return ""
    return ": if these are sizes of groups, np.repeat(np.arange(len(qid)), qid) turns them into query ids"


def _encode_array(rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    for row in np.flatnonzero(rows != rows)[:1]:
        raise ValueError(f"qid[{row}] is {rows[row]}")
    _, first_row, sorted_index = np.unique(rows, return_index=True, return_inverse=True)
    appearance = np.argsort(first_row)
    return rows[first_row[appearance]], np.argsort(appearance)[sorted_index]


def check_mask(mask: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """A mask as an array, if it is one of bool or of integers 0/1 and of this shape."""
    refuse_masked(mask, "mask")
    known = np.asarray(mask.toarray() if hasattr(mask, "toarray") else mask)
    if known.dtype == object and all(isinstance(flag, bool | np.bool_) for flag in known.flat):
        # Flags of pandas that may be missing, and are not.
        known = known.astype(np.bool_)
    if known.shape == shape and known.dtype.kind in "iu" and np.isin(known, (0, 1)).all():
        known = known.astype(np.bool_)
    if known.shape != shape or known.dtype != np.bool_:
        raise ValueError(f"mask must be bool or 0/1 of shape {shape}, got {known.dtype} of shape {known.shape}")
    return known


def without_unlabelled(y: Any, mask: ArrayLike | None) -> Any:
    """Labels with 0 where the mask says that an entry is not labelled, even if it is nan.

    Arrays that are not two-dimensional, or hold no numbers, are returned as they are: others refuse them.
    """
    refuse_masked(y, "y")
    if hasattr(y, "toarray"):
        return y
    labels = np.asarray(y)
    if mask is None:
        if labels.ndim == 2 and labels.dtype.kind in "fO":
            for row, column in np.argwhere(_missing(labels))[:1]:
                raise ValueError(
                    f"y[{row}, {column}] is {labels[row, column]}: mask= tells which entries are labelled "
                    "(~np.isnan(y), of a frame y.notna())"
                )
        return y
    if labels.ndim != 2 or labels.dtype.kind not in "biufO":
        return y
    known = check_mask(mask, labels.shape)
    _refuse_inverted(labels, known)
    filled = np.where(known, labels, 0)
    try:
        return filled.astype(np.float64) if filled.dtype == object else filled
    except (TypeError, ValueError):
        return y


def _refuse_inverted(labels: NDArray[Any], known: NDArray[np.bool_]) -> None:
    """Raise if what a mask calls labelled is missing, and what it calls unlabelled is not."""
    missing = _missing(labels)
    for row, column in np.argwhere(missing & known)[:1]:
        what = f"y[{row}, {column}] is {labels[row, column]}, where mask says that it is labelled"
        if not np.any(missing & ~known):
            what += ". The mask seems to be inverted, True means labelled: pass ~mask"
        raise ValueError(what)


def without_objects(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels as they are. Object arrays of numbers become numbers."""
    if labels.dtype != object or not all(isinstance(label, Number | np.bool_) for label in labels.ravel()):
        return labels
    return np.array(labels.tolist())


def refuse_missing(values: NDArray[Any], name: str) -> None:
    """Raise if an entry is nan, None or missing in one of the ways of pandas; among floats also if it is infinite."""
    missing = ~np.isfinite(values) if values.dtype.kind in "fc" else _missing(values)
    for place in np.argwhere(missing)[:1]:
        raise ValueError(f"{name}[{', '.join(map(str, place))}] is {values[tuple(place)]}")


def _missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which entries are nan, None or missing in one of the ways of pandas."""
    if values.dtype.kind in "fc":
        return np.isnan(values)
    if values.dtype != object:
        return np.zeros(values.shape, np.bool_)
    return np.frompyfunc(lambda value: value is None or _is_missing(value), 1, 1)(values).astype(np.bool_)


def _is_missing(query: Any) -> bool:
    """Whether the value differs from itself, as nan of any kind and NaT do.

    pandas' NA has no truth value and counts too. None does not.
    """
    try:
        return bool(query != query)
    except TypeError:
        return True
    except ValueError:
        # Compared entry by entry: an array, which is not hashable anyway.
        return False


def _encode_objects(rows: Sequence[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    index_of: dict[Any, int] = {}
    codes = np.empty(len(rows), dtype=np.intp)
    for row, query in enumerate(rows):
        if _is_missing(query):
            raise ValueError(f"qid[{row}] is {query}")
        try:
            codes[row] = index_of.setdefault(query, len(index_of))
        except TypeError:
            raise ValueError(f"qid[{row}] is {query!r}, which is not hashable") from None
    return np.fromiter(index_of, dtype=object, count=len(index_of)), codes


def describe_bad_score(scores: NDArray[Any], place: int) -> str:
    """The message for a score that no ranking can use."""
    value = scores[place]
    problem = "its differences to other scores would overflow" if np.isfinite(value) else "scores must be finite"
    return f"scores[{place}] is {value}: {problem}"


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view with one set of flags, whatever the input's: the kernels are compiled once, not once a flag."""
    flags = array.flags
    view = array.view() if flags.c_contiguous and flags.aligned else np.require(array, requirements=["C", "A"])
    view.flags.writeable = False
    return view
