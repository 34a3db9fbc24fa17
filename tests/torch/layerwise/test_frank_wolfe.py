"""The dual of one layer's problem: formulas against literal ones, the step against a search over all steps."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rankhinge.torch.layerwise.frank_wolfe import FrankWolfe, proximal_term


def literal_dual(start, lam, mu, offsets, slopes):
    """``min_W λ/2 ‖W‖² + μ/2 ‖W - W_t‖² + (1/n) Σ (c_i + ⟨G_i, W⟩)``, with the minimiser."""
    mean_slope = slopes.mean(axis=0)
    W = (mu * start - mean_slope) / (lam + mu)
    value = 0.5 * lam * W @ W + 0.5 * mu * (W - start) @ (W - start) + offsets.mean() + mean_slope @ W
    return value, W


@given(seed=st.integers(0, 10**6), n_blocks=st.integers(1, 4), mu=st.sampled_from([0.0, 0.3, 5.0]))
def test_against_a_search_over_steps(seed, n_blocks, mu):
    generator = np.random.default_rng(seed)
    d, lam = 3, 0.4
    start = generator.normal(size=d)
    solver = FrankWolfe(torch.as_tensor(start), n_blocks, lam, mu)
    # The literal twin keeps the combinations themselves.
    offsets, slopes = np.zeros(n_blocks), np.zeros((n_blocks, d))
    average, dual = None, literal_dual(start, lam, mu, offsets, slopes)[0]
    assert solver.dual == pytest.approx(dual, abs=1e-12)
    for k in range(8):
        block = int(generator.integers(n_blocks))
        c, G = float(generator.normal()), generator.normal(size=d)
        step = solver.visit(block, c, torch.as_tensor(G))

        new = np.eye(n_blocks)[block]
        ends = new * (c - offsets), new[:, None] * (G - slopes)
        tried = [
            literal_dual(start, lam, mu, offsets + gamma * ends[0], slopes + gamma * ends[1])[0]
            for gamma in np.linspace(0, 1, 101)
        ]
        assert 0.0 <= step <= 1.0
        offsets, slopes = offsets + step * ends[0], slopes + step * ends[1]
        value, W = literal_dual(start, lam, mu, offsets, slopes)
        assert solver.dual == pytest.approx(value, abs=1e-10)
        assert value >= max(tried) - 1e-10
        assert value >= dual - 1e-10
        dual = value
        np.testing.assert_allclose(solver.point.numpy(), W, atol=1e-10)
        average = W if average is None else k / (k + 2) * average + 2 / (k + 2) * W
        np.testing.assert_allclose(solver.average.numpy(), average, atol=1e-10)
    solver.refresh()
    np.testing.assert_allclose(solver.point.numpy(), W, atol=1e-12)


@pytest.mark.parametrize(("offset", "expected"), [(0.5, 1.0), (0.0, 0.0), (-0.5, 0.0)])
def test_no_change_of_slope(offset, expected):
    solver = FrankWolfe(torch.ones(2, dtype=torch.float64), 2, 1.0, 1.0)
    before = solver.dual
    assert solver.visit(1, offset, torch.zeros(2, dtype=torch.float64)) == expected
    assert solver.dual == pytest.approx(before + max(offset, 0.0) / 2)


def test_proximal_term():
    W, start = torch.tensor([1.0, 2.0]).double(), torch.tensor([0.0, -1.0]).double()
    assert proximal_term(W, start, 0.5, 3.0) == pytest.approx(0.25 * 5 + 1.5 * 10)
