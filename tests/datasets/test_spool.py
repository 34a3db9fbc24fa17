"""`spool`: the same numbers, whatever they come from; whole or not at all; never more than a block in memory."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import rankhinge
from rankhinge.datasets import DataError, open_spool, row_blocks, spool


def _dense(n: int = 137, d: int = 5, dtype: Any = np.float64) -> Any:
    return np.random.default_rng(0).normal(size=(n, d)).astype(dtype)


def _sparse(n: int = 137, d: int = 40) -> Any:
    return sp.random_array((n, d), density=0.1, rng=np.random.default_rng(1), format="csr")


def _parquet(path: Path, X: Any) -> str:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    names = [f"f{index}" for index in range(X.shape[1])]
    parquet.write_table(pa.table(dict(zip(names, X.T, strict=True))), path / "x.parquet", row_group_size=20)
    return str(path / "x.parquet")


def _hdf5(path: Path, X: Any) -> str:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path / "x.h5", "w") as file:
        file.create_dataset("features", data=X, chunks=(10, X.shape[1]), compression="gzip")
    return str(path / "x.h5")


def _zarr(path: Path, X: Any) -> str:
    zarr = pytest.importorskip("zarr")
    zarr.create_array(str(path / "x.zarr"), data=X, chunks=(10, 2))
    return str(path / "x.zarr")


def _npy(path: Path, X: Any) -> str:
    np.save(path / "x.npy", X)
    return str(path / "x.npy")


@pytest.mark.parametrize("make", [_parquet, _hdf5, _zarr, _npy])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_format_gives_the_same_rows(tmp_path: Path, make: Any, dtype: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(row_blocks, "_BLOCK_BYTES", 800)  # several blocks
    X = _dense(dtype=dtype)
    got = spool(make(tmp_path, X), tmp_path / "out.npy")
    assert isinstance(got, np.memmap)
    assert got.dtype == dtype
    assert not got.flags.writeable
    assert got.ctypes.data % 64 == 0
    np.testing.assert_array_equal(got, X)


@pytest.mark.parametrize("kind", ["scipy", "csc", "npz", "hdf5", "zarr", "blocks"])
def test_sparse_sources_stay_sparse_and_on_disk(tmp_path: Path, kind: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(row_blocks, "_BLOCK_BYTES", 12 * 30)
    X = _sparse()
    source: Any = X
    if kind == "csc":
        source = X.tocsc()
    elif kind == "npz":
        sp.save_npz(tmp_path / "x.npz", X)
        source = tmp_path / "x.npz"
    elif kind == "blocks":
        source = (X[start : start + 10] for start in range(0, 137, 10))
    elif kind in {"hdf5", "zarr"}:
        source = _anndata_like(tmp_path, X, kind)
    got = spool(source, tmp_path / "out")
    assert got.format == "csr"
    assert _is_mapped(got.data)
    assert _is_mapped(got.indices)
    assert (got != X).nnz == 0


def _anndata_like(path: Path, X: Any, kind: str) -> Any:
    parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr}
    if kind == "hdf5":
        h5py = pytest.importorskip("h5py")
        with h5py.File(path / "x.h5ad", "w") as file:
            group = file.create_group("X")
            for name, part in parts.items():
                group.create_dataset(name, data=part)
            group.attrs["shape"] = X.shape
        return path / "x.h5ad"
    zarr = pytest.importorskip("zarr")
    store = zarr.open_group(str(path / "x.zarr"), mode="w")
    group = store.create_group("X")
    for name, part in parts.items():
        group.create_array(name, data=part)
    group.attrs["shape"] = list(X.shape)
    return path / "x.zarr"


def _is_mapped(array: Any) -> bool:
    while array is not None:
        if isinstance(array, np.memmap):
            return True
        array = array.base if isinstance(array, np.ndarray) else None
    return False


@given(st.lists(st.integers(0, 7), min_size=1, max_size=6), st.sampled_from(["f4", "f8", "i2", "u1", "?"]))
@settings(max_examples=40, deadline=None)
def test_blocks_of_any_length(tmp_path_factory: Any, lengths: list[int], dtype: str) -> None:
    rng = np.random.default_rng(sum(lengths))
    blocks = [rng.integers(0, 2, size=(length, 3)).astype(dtype) for length in lengths]
    path = tmp_path_factory.mktemp("spool") / "x.npy"
    if not sum(lengths):
        with pytest.raises(DataError, match="no rows"):
            spool(iter(blocks), path)
        assert not path.exists()
        return
    got = spool(iter(blocks), path)
    assert got.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(got, np.concatenate(blocks))


@pytest.mark.parametrize("kind", ["array", "cut by columns", "unknown lengths", "sparse", "frame"])
def test_dask_is_computed_chunk_by_chunk(tmp_path: Path, kind: str) -> None:
    da = pytest.importorskip("dask.array")
    X = _sparse().toarray() if kind == "sparse" else _dense()
    source = da.from_array(X, chunks=(20, 2 if kind == "cut by columns" else X.shape[1]))
    if kind == "unknown lengths":
        source = source[source[:, 0] > 0]
        X = X[X[:, 0] > 0]
    elif kind == "sparse":
        source = source.map_blocks(sp.csr_array)
    elif kind == "frame":
        source = pytest.importorskip("dask.dataframe").from_dask_array(source)
    got = spool(source, tmp_path / "x.npy")
    np.testing.assert_array_equal(got.toarray() if kind == "sparse" else got, X)


def test_a_fit_on_the_spool_is_the_fit_in_memory(tmp_path: Path) -> None:
    for X in (_dense(dtype=np.float32), _sparse()):
        first = X[:, [0]]
        y = np.asarray(first.toarray() if sp.issparse(first) else first).ravel() > 0.3
        mapped = spool(X, tmp_path / f"{type(X).__name__}.npy")
        one, two = (rankhinge.RankSVC(bound="convex", C=1.0).fit(rows, y) for rows in (X, mapped))
        assert one.objective_ == two.objective_
        np.testing.assert_array_equal(one.coef_, two.coef_)


def test_columns_and_keys(tmp_path: Path) -> None:
    X = _dense()
    got = spool(_parquet(tmp_path, X), tmp_path / "a.npy", columns=["f3", "f0"])
    np.testing.assert_array_equal(got, X[:, [3, 0]])
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "two.h5", "w") as file:
        file["a"], file["b"] = X, X + 1
    np.testing.assert_array_equal(spool(tmp_path / "two.h5", tmp_path / "b.npy", key="b"), X + 1)
    with pytest.raises(DataError, match="several arrays: choose one with key=, of a, b"):
        spool(tmp_path / "two.h5", tmp_path / "c.npy")
    with pytest.raises(DataError, match="there is no 'z', only a, b"):
        spool(tmp_path / "two.h5", tmp_path / "c.npy", key="z")
    with pytest.raises(DataError, match="there is no column 'g'"):
        spool(tmp_path / "x.parquet", tmp_path / "c.npy", columns=["g"])
    with pytest.raises(TypeError, match="a key belongs to HDF5 and Zarr"):
        spool(tmp_path / "x.parquet", tmp_path / "c.npy", key="g")
    assert not (tmp_path / "c.npy").exists()


def test_text_columns_are_named(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table({"a": [1.0, 2.0], "name": ["x", "y"]}), tmp_path / "t.parquet")
    with pytest.raises(DataError, match="column 'name' is string, not a number: name the features in columns="):
        spool(tmp_path / "t.parquet", tmp_path / "t.npy")
    parquet.write_table(pa.table({"a": [1.0, None]}), tmp_path / "n.parquet")
    with pytest.raises(DataError, match="column 'a' has a missing value, in row 1"):
        spool(tmp_path / "n.parquet", tmp_path / "t.npy")


def test_values_that_are_not_finite_are_told_with_their_place(tmp_path: Path) -> None:
    X = _dense()
    X[100, 2] = np.nan
    with pytest.raises(DataError, match="row 100, column 2 is nan"):
        spool((X[start : start + 30] for start in range(0, 137, 30)), tmp_path / "x.npy")
    S = _sparse().tolil()
    S[77, 3] = np.inf
    with pytest.raises(DataError, match="row 77, column 3 is inf"):
        spool(sp.csr_array(S), tmp_path / "x")
    with pytest.raises(DataError, match="row 0, column 0 is inf as float32"):
        spool(np.full((2, 2), 1e300), tmp_path / "x", dtype=np.float32)
    assert list(tmp_path.iterdir()) == []


def test_blocks_that_do_not_fit_together(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="block 1 is dense with 4 columns, the first has 3"):
        spool(iter([np.ones((2, 3)), np.ones((2, 4))]), tmp_path / "x.npy")
    with pytest.raises(DataError, match="block 1 is sparse"):
        spool(iter([np.ones((2, 3)), sp.csr_array(np.ones((2, 3)))]), tmp_path / "x.npy")
    with pytest.raises(DataError, match=r"block 0 is <U1"):
        spool(iter([[["a"]]]), tmp_path / "x.npy")
    with pytest.raises(TypeError, match="cannot read rows from a int"):
        spool(3, tmp_path / "x.npy")
    with pytest.raises(ValueError, match="two dimensions"):
        spool(np.ones(3), tmp_path / "x.npy")
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_stays_unless_it_may_be_replaced(tmp_path: Path) -> None:
    path, X = tmp_path / "x.npy", _dense()
    spool(X, path)
    with pytest.raises(FileExistsError, match="overwrite=True"):
        spool(X + 1, path)

    def broken() -> Iterator[Any]:
        yield X
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        spool(broken(), path, overwrite=True)
    np.testing.assert_array_equal(open_spool(path), X)
    np.testing.assert_array_equal(spool(X + 1, path, overwrite=True), X + 1)
    assert os.listdir(tmp_path) == ["x.npy"]
    # A dense file gives way to a CSR folder and back.
    assert spool(_sparse(), path, overwrite=True).shape == (137, 40)
    assert spool(X, path, overwrite=True).shape == X.shape
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("all of it")
    with pytest.raises(FileExistsError, match="holds other files"):
        spool(X, tmp_path / "mine", overwrite=True)
    assert (tmp_path / "mine" / "thesis.txt").exists()


def test_free_space_is_asked_first(tmp_path: Path, monkeypatch: Any) -> None:
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    with pytest.raises(OSError, match="the rows take 5480 bytes and 1000 are free") as caught:
        spool(_dense(), tmp_path / "x.npy")
    assert caught.value.errno == errno.ENOSPC
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OSError, match="the rows take 2740 bytes"):
        spool(_dense(), tmp_path / "x.npy", dtype="float32")


def test_wide_indices_where_entries_are_many(tmp_path: Path, monkeypatch: Any) -> None:
    from rankhinge.datasets import spool as room

    module = sys.modules["rankhinge.datasets.spool"]
    assert room is spool
    wide = lambda largest: np.dtype(np.int32 if largest < 100 else np.int64)  # noqa: E731
    monkeypatch.setattr(module, "_narrowest", wide)
    X = _sparse()
    assert (spool(X, tmp_path / "x") != X).nnz == 0
    assert np.load(tmp_path / "x" / "indices.npy").dtype == np.int64


def test_a_foreign_file_is_no_spool(tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(b"hello")
    with pytest.raises(DataError, match="spool has not written this"):
        open_spool(tmp_path / "x.npy")
    with pytest.raises(DataError, match="spool has not written this"):
        open_spool(tmp_path)
    with pytest.raises(DataError, match="there is no such file"):
        spool(tmp_path / "none.parquet", tmp_path / "y.npy")
    with pytest.raises(DataError, match="spool does not know this format"):
        spool(_text(tmp_path), tmp_path / "y.npy")


def _text(path: Path) -> Path:
    (path / "x.txt").write_text("1 2")
    return path / "x.txt"


def test_only_a_block_is_in_memory(tmp_path: Path) -> None:
    """400 MB pass through a process that may have 100 MB more than it starts with."""
    code = """
import resource, sys
import numpy as np
from rankhinge.datasets import spool
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
X = spool((np.ones((10_000, 100)) for _ in range(50)), sys.argv[1])
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert X.shape == (500_000, 100)
print((after - before) // 1024)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "x.npy")], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 100
