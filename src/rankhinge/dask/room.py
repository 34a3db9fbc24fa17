"""Whether the workers have room for a fit."""

from __future__ import annotations

from typing import Any

from rankhinge.dask.chunks import Rows

__all__ = ["refuse_large"]

# Bytes of scores, coefficients and buckets that a fit keeps for each sample and problem.
_BYTES_A_SAMPLE = 49
# With a mask, the places of those that are labelled besides.
_BYTES_AN_INDEX = 8
# Of the workers' memory, what a fit may take: passes need room, too.
_PART_OF_MEMORY = 0.7


def refuse_large(client: Any, rows: Rows, copies: int = 1, n_problems: int | None = None) -> None:
    """Refuse what the workers have no room for.

    Parameters
    ----------
    client : Waiting
    rows : Rows
    copies : int
        Of X, at a time.
    n_problems : int, optional
        Default: the columns of y. Of y in one column the classes are not known before it has been read.
    """
    limits = client.memory_limits()
    if not limits or not all(limits):
        return
    a_label = _BYTES_A_SAMPLE + (0 if rows.mask[0] is None else _BYTES_AN_INDEX)
    a_row = a_label * (n_problems or rows.n_columns or 1)
    # Of sparse rows only a chunk tells what they take. Without them there may be no room already.
    need = rows.n_samples * a_row if rows.is_sparse else rows.n_samples * (copies * _dense_row(rows) + a_row)
    room = sum(limits)
    if rows.is_sparse and need <= _PART_OF_MEMORY * room:
        need += round(rows.n_samples * copies * _sparse_row(client, rows))
    if need > _PART_OF_MEMORY * room:
        raise ValueError(
            f"the fit needs about {need / 1e9:.3g} GB, and {_PART_OF_MEMORY:.0%} of the workers' memory are "
            f"{_PART_OF_MEMORY * room / 1e9:.3g} GB: add workers, or write X to files with rankhinge.spool, and fit it"
        )


def _dense_row(rows: Rows) -> int:
    return int(rows.n_features * rows.dtype.itemsize)


def _sparse_row(client: Any, rows: Rows) -> float:
    """Bytes of a row, by the largest chunk."""
    from dask import delayed

    length, X = max(zip(rows.lengths, rows.X, strict=True), key=lambda pair: pair[0])
    return float(client.gather(client.compute([delayed(_bytes_of)(X)]))[0]) / length


def _bytes_of(block: Any) -> int:
    # What is not sparse, against what was announced, is named when all chunks are looked at.
    parts = (getattr(block, name, None) for name in ("data", "indices", "indptr"))
    return sum(int(getattr(part, "nbytes", 0)) for part in parts)
