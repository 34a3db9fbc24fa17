"""The implementation by PyTorch's operators finds the values of the compiled kernels."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rankhinge import losses, structured_hinge
from rankhinge.torch import rank_hinge
from tests.inference.cases import BY_NAME, KINDS, large_list
from tests.torch.cases import ON_DEVICE, hinge_and_gradient, names, random_batch

# A value is a difference of sums as large as the scores: it has their rounding errors.
TOLERANCE = 1e-13


def assert_same(scores, relevant, case, **options):
    """Equal values; u of either is a subgradient at these scores, as large as the other on the scores."""
    scores, relevant = torch.as_tensor(scores), torch.as_tensor(relevant)
    value, u = hinge_and_gradient(scores, relevant, loss=case.loss, backend="compiled", **options)
    other_value, other = hinge_and_gradient(scores, relevant, loss=case.loss, backend="torch", **options)
    size = 1 + torch.nan_to_num(scores).double().abs().max().item()
    digits = TOLERANCE if scores.dtype == torch.float64 else 1e-6
    torch.testing.assert_close(other_value, value, rtol=10 * digits, atol=digits * size)
    assert abs(other.double().sum().item()) <= 1e-6
    return u, other


@settings(max_examples=300)
@given(
    case=st.sampled_from(ON_DEVICE),
    n_positives=st.integers(1, 9),
    n_negatives=st.integers(1, 20),
    exponent=st.integers(-30, 30),
    decimals=st.sampled_from([None, 0, 1]),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    seed=st.integers(0, 10**6),
)
def test_small_lists(case, n_positives, n_negatives, exponent, decimals, dtype, seed):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n_positives + n_negatives)
    if decimals is not None:
        scores = np.round(scores, decimals)  # ties, and constant lists among the shortest
    relevant = rng.permutation(np.arange(scores.size) < n_positives)
    assert_same(torch.tensor(scores * 10.0**exponent, dtype=dtype), relevant, case)


@pytest.mark.parametrize("case", ON_DEVICE, ids=names(ON_DEVICE))
@pytest.mark.parametrize("seed", range(3))
def test_batches(case, seed):
    scores, relevant, mask = random_batch(seed, n_lists=9, length=25)
    u, other = assert_same(scores, relevant, case, mask=mask, reduction="none")
    torch.testing.assert_close(u, other)
    assert_same(scores[mask], relevant[mask], case, groups=torch.arange(9)[:, None].expand_as(mask)[mask])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["ap", "ndcg", "auc", "rr"])
def test_large_lists(kind, name):
    for n_positives, n_negatives in ((37, 2500), (900, 400)):
        assert_same(*large_list(kind, n_positives, n_negatives), BY_NAME[name])


def test_constant_scores_straddle_ranks():
    """P = 1 at 0.02, 1000 negatives at 0: 157 have rank 1, and u is shared by all of them."""
    scores = torch.zeros(1001, dtype=torch.float64)
    scores[0] = 0.02
    relevant = torch.arange(1001) == 0
    u, other = assert_same(scores, relevant, BY_NAME["ap"])
    torch.testing.assert_close(other, u)
    assert round(-500 * other[0].item()) == 157


def test_outliers_do_not_spoil_the_rest():
    rng = np.random.default_rng(0)
    scores = torch.tensor(rng.normal(size=300))
    relevant = torch.tensor(rng.random(300) < 0.3)
    calm, _ = hinge_and_gradient(scores, relevant, backend="torch")
    scores[torch.nonzero(relevant)[0]] = 1e250  # a positive far above all: it decides nothing
    value, u = hinge_and_gradient(scores, relevant, backend="torch")
    expected, other = hinge_and_gradient(scores, relevant, backend="compiled")
    torch.testing.assert_close(value, expected, rtol=1e-12, atol=0.0)
    torch.testing.assert_close(u, other)
    assert 0 < value < calm


@pytest.fixture
def in_float32(monkeypatch):
    """As on a device without float64."""
    monkeypatch.setattr("rankhinge.torch.on_device.working_dtype", lambda device: torch.float32)


@pytest.mark.parametrize("name", ["ap", "ndcg", "auc"])
def test_an_offset_of_all_scores_costs_no_digits(in_float32, name):
    rng = np.random.default_rng(0)
    scores = rng.integers(-64, 64, size=400) / 64
    relevant = rng.random(400) < 0.3
    expected = structured_hinge(scores, relevant, loss=name)
    for offset in (0, 2**10, -(2**16)):
        shifted = torch.tensor(scores + offset, dtype=torch.float32)
        assert np.array_equal(shifted.double().numpy() - offset, scores)
        value = rank_hinge(shifted, torch.tensor(relevant), loss=name, backend="torch")
        assert value.item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", ["ap", "ndcg", "auc"])
def test_a_long_list_with_large_scores_does_not_spoil_short_ones(in_float32, name):
    rng = np.random.default_rng(0)
    sizes = [4000, 30, 30, 30]
    scores = torch.tensor(rng.normal(size=4090), dtype=torch.float32)
    relevant = torch.tensor(rng.random(4090) < 0.4)
    scores[:4000][relevant[:4000]] -= 1e5
    groups = torch.repeat_interleave(torch.arange(4), torch.tensor(sizes))
    values = rank_hinge(scores, relevant, groups=groups, loss=name, reduction="none", backend="torch")
    lists = zip(scores.double().split(sizes), relevant.split(sizes), strict=True)
    expected = [structured_hinge(s.numpy(), r.numpy(), loss=name) for s, r in lists]
    np.testing.assert_allclose(values[1:], expected[1:], rtol=1e-5)
    assert values[0].item() == pytest.approx(expected[0], rel=1e-4)


def test_ranges_of_uneven_lists_do_not_mix():
    """Lists of 1, 2, 3, … samples, with and without positives."""
    rng = np.random.default_rng(1)
    groups = torch.repeat_interleave(torch.arange(40), torch.arange(1, 41))
    scores = torch.tensor(rng.normal(size=groups.numel()))
    relevant = torch.tensor(rng.random(groups.numel()) < 0.3)
    for case in ON_DEVICE:
        u, other = assert_same(scores, relevant, case, groups=groups, reduction="none")
        torch.testing.assert_close(u, other)


def test_a_step_that_tensors_cannot_go_through_is_refused():
    def branching(j, i, n_positives, n_negatives):
        return -1.0 / (j * (j + 1)) if i == 1 else 0.0

    def counting(j, i, n_positives, n_negatives):
        return -1.0 / n_positives / n_negatives if isinstance(j, int) else -0.5 + 0 * j

    scores, relevant = torch.randn(10), torch.arange(10) < 3
    for step, complaint in ((branching, "ambiguous"), (counting, "other values for tensors")):
        loss = losses.CustomLoss(step)
        with pytest.raises(ValueError, match=complaint):
            rank_hinge(scores, relevant, loss=loss, backend="torch")
    assert rank_hinge(scores, relevant, loss=losses.CustomLoss(branching)) == rank_hinge(scores, relevant, loss="rr")


@pytest.mark.parametrize("case", ON_DEVICE, ids=names(ON_DEVICE))
@pytest.mark.parametrize("sizes", [(2, 2), (1, 1), (7, 3, 3), (3, 7, 3)])
def test_the_longest_list_has_no_positive(case, sizes):
    """Nobody asks for a step of such a list, but entries that fill up a range may look one up."""
    groups = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    relevant = torch.rand(groups.shape, generator=torch.Generator().manual_seed(0)) < 0.5
    relevant[groups == int(np.argmax(sizes))] = False
    scores = torch.randn(groups.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    assert_same(scores, relevant, case, groups=groups)


@pytest.mark.parametrize("seed", range(20))
def test_batches_with_few_positives(seed):
    rng = np.random.default_rng(seed)
    groups = torch.from_numpy(np.repeat(np.arange(8), rng.integers(2, 40, size=8)))
    relevant, scores = rng.random(groups.shape[0]) < 0.05, rng.normal(size=groups.shape[0])
    for name in ("ndcg", "rbp", "ap"):
        assert_same(scores, relevant, BY_NAME[name], groups=groups)
