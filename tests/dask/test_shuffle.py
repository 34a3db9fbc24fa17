"""Rows are exchanged between chunks: each arrives where it is to go, in one step or in two."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

dask = pytest.importorskip("dask")

from rankhinge.dask.shuffle import Piece, exchanged  # noqa: E402


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("n_chunks", [1, 2, 5, 48, 49, 53, 70])
def test_every_row_arrives(n_chunks, kind):
    rng = np.random.default_rng(0)
    sizes = rng.integers(0, 9, n_chunks)
    target, number = rng.integers(0, n_chunks, sizes.sum()).astype(np.int32), np.arange(sizes.sum())
    X = np.column_stack([number, target]).astype(float)
    X = sparse.csr_array(X) if kind == "sparse" else X
    bounds = np.cumsum([0, *sizes])
    pieces = [
        dask.delayed(Piece(X[a:b], number[a:b], number[a:b].astype(np.uint64), None, target[a:b]), traverse=False)
        for a, b in pairwise(bounds)
    ]
    arrived = dask.compute(*exchanged(pieces), scheduler="synchronous")
    assert len(arrived) == n_chunks
    for place, piece in enumerate(arrived):
        np.testing.assert_array_equal(np.sort(piece.labels), np.flatnonzero(target == place))
        rows = piece.X.toarray() if kind == "sparse" else piece.X
        np.testing.assert_array_equal(rows[:, 0], piece.labels)
        np.testing.assert_array_equal(piece.codes, piece.labels.astype(np.uint64))
        assert piece.weights is None
