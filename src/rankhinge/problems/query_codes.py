"""Numbers for queries that are the same in every process: what the shards of a cluster know lists by."""

from __future__ import annotations

from hashlib import blake2b
from numbers import Integral, Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["codes_of_queries", "salt_of"]

_MOST_SALTS = 16


def codes_of_queries(queries: NDArray[Any], salt: int = 0) -> NDArray[np.uint64]:
    """A number of 64 bits for each query; equal ones have equal numbers.

    Python's own hash of strings differs from process to process. Numbers that are equal, 1 and 1.0 say, are one query.
    """
    kind = queries.dtype.kind
    if kind in "mM":
        queries, kind = queries.view(np.int64), "i"
    if kind in "biu":
        return _mixed(queries.astype(np.uint64 if kind == "u" else np.int64), salt)
    return _mixed(np.array([_number_of(query) for query in queries.tolist()], dtype=np.uint64), salt)


def salt_of(queries: NDArray[Any]) -> int:
    """A salt with which all these queries, which are different, have different numbers."""
    for salt in range(_MOST_SALTS):
        # Sorted: to count different numbers by a hash table takes ten times as long.
        codes = np.sort(codes_of_queries(queries, salt))
        if np.all(codes[1:] != codes[:-1]):
            return salt
    raise ValueError(
        f"the {queries.size} queries cannot be told apart by 64 bits: are there ids that equal each other?"
    )


def _number_of(query: Any) -> int:
    text = repr(query)
    if isinstance(query, Number):
        # Python's hash is the same for -1 and -2, and for numbers that differ by 2⁶¹ - 1.
        try:
            part, whole = (int(query), 1) if isinstance(query, Integral) else query.as_integer_ratio()  # type: ignore[attr-defined]
        except (AttributeError, OverflowError):  # complex, infinite
            return hash(query) % 2**64
        if whole == 1 and -(2**63) <= part < 2**64:
            return int(part) % 2**64
        text = f"{part}/{whole}"
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def _mixed(numbers: NDArray[Any], salt: int) -> NDArray[np.uint64]:
    """Spread over all 64 bits (the finaliser of splitmix64, Steele, Lea and Flood 2014)."""
    mixed = numbers.view(np.uint64) + np.uint64((salt + 1) * 0x9E3779B97F4A7C15 % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    found: NDArray[np.uint64] = mixed ^ (mixed >> np.uint64(31))
    return found
