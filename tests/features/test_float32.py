"""Products of float32 rows against sums in extended precision."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankhinge.features import feature_map, float32


def errors(found, rows, factor):
    """Of each sum, relative to the sum of absolute values."""
    wide, factor = rows.astype(np.longdouble), factor.astype(np.longdouble)
    size = np.abs(wide) @ np.abs(factor)
    return np.abs(found - wide @ factor) / np.where(size > 0, size, 1)


@given(
    shape=st.tuples(st.integers(1, 90), st.integers(1, 40)),
    exponent=st.integers(-30, 30),
    seed=st.integers(0, 2**32 - 1),
    step=st.integers(1, 200),
)
def test_both_products(shape, exponent, seed, step):
    """Rows that do and do not come in fours, blocks of one row and of all, numbers of all sizes."""
    generator = np.random.default_rng(seed)
    scale = 10.0 ** generator.uniform(-8, 8, shape) if exponent % 2 else 10.0**exponent
    rows = (generator.normal(size=shape) * scale).astype(np.float32)
    w, u = generator.normal(size=shape[1]), generator.normal(size=shape[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(float32, "_BLOCK_ENTRIES", step)
        assert errors(float32.each_row(rows, w), rows, w).max() <= 1e-14
        assert errors(float32.sum_of_rows(rows, u), rows.T, u).max() <= 1e-14


@pytest.mark.parametrize("d", [1, 7, 300])
def test_long_sums_of_one_sign(d):
    """Where errors add up most: nothing cancels."""
    generator = np.random.default_rng(d)
    rows = generator.uniform(0.5, 1.0, (200_000 // d, d)).astype(np.float32)
    u = generator.uniform(0.5, 1.0, rows.shape[0])
    assert errors(float32.sum_of_rows(rows, u), rows.T, u).max() <= 1e-14


@pytest.mark.parametrize("order", ["C", "F"])
def test_same_bits_whatever_the_number_of_threads(monkeypatch, order):
    generator = np.random.default_rng(0)
    X = np.asarray(generator.normal(size=(90_000, 50)), np.float32, order=order)
    w, u = generator.normal(size=(50, 1)), generator.normal(size=(1, 90_000))
    bits = []
    for n_threads in ("1", "2", "8"):
        monkeypatch.setenv("RANKHINGE_NUM_THREADS", n_threads)
        features = feature_map(X)
        bits.append(features.scores(w).tobytes() + features.adjoint(u).tobytes())
    assert len(set(bits)) == 1


def test_what_the_kernels_cannot_read_goes_another_way(tmp_path):
    """Rows apart, bytes swapped, addresses that are not multiples of four: same products."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(60, 12)).astype(np.float32)
    unaligned = np.frombuffer(b"x" + X.tobytes(), np.uint8)[1:].view(np.float32).reshape(X.shape)
    np.save(tmp_path / "X.npy", X)
    wide = np.empty((60, 24), np.float32)
    wide[:, ::2] = X
    w, u = generator.normal(size=(12, 1)), generator.normal(size=(1, 60))
    for held in (X, np.load(tmp_path / "X.npy", mmap_mode="r"), wide[:, ::2], X.astype(">f4"), unaligned):
        features = feature_map(held)
        np.testing.assert_allclose(features.scores(w)[0], X @ w[:, 0], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(features.adjoint(u)[:, 0], u[0] @ X, rtol=1e-12, atol=1e-13)
