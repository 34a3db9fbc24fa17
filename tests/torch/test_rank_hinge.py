"""Values and gradients of `rank_hinge` are those of `rankhinge.inference`, whatever the shape of the batch."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch

from rankhinge import most_violating_ranking, ranking_loss, structured_hinge
from rankhinge.losses import SoftNDCG
from rankhinge.torch import RankHingeLoss, rank_hinge
from tests.inference.cases import large_list, random_list
from tests.torch.cases import ALL_LOSSES, hinge_and_gradient, names, random_batch


@pytest.mark.parametrize("case", ALL_LOSSES, ids=names(ALL_LOSSES))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_one_list(case, dtype):
    rng = np.random.default_rng(1)
    for n_positives, n_negatives in ((1, 1), (1, 9), (7, 1), (5, 40), (60, 300)):
        scores, relevant = random_list(rng, n_positives, n_negatives)
        scores = torch.tensor(scores, dtype=dtype)
        value, gradient = hinge_and_gradient(scores, torch.tensor(relevant), loss=case.loss)
        expected = most_violating_ranking(scores.numpy(), relevant, case.loss)
        assert value.dtype == gradient.dtype == dtype
        assert value.item() == pytest.approx(structured_hinge(scores.numpy(), relevant, case.loss), rel=1e-6)
        np.testing.assert_array_equal(gradient.numpy(), expected.coefficients)
        assert value.item() >= ranking_loss(scores.numpy(), relevant, case.loss) - 1e-6


@pytest.mark.parametrize("case", ALL_LOSSES, ids=names(ALL_LOSSES))
def test_gradcheck_away_from_kinks(case):
    rng = np.random.default_rng(2)
    for _ in range(5):
        scores, relevant = random_list(rng, 3, 5)
        leaf = torch.tensor(scores, requires_grad=True)
        assert torch.autograd.gradcheck(
            lambda s, r=relevant: rank_hinge(s, torch.tensor(r), loss=case.loss), leaf, eps=1e-8, atol=1e-5
        )


def test_a_long_list():
    scores, relevant = large_list("overlapping", 3000, 300_000)
    value, gradient = hinge_and_gradient(torch.tensor(scores), torch.tensor(relevant))
    expected = most_violating_ranking(scores, relevant)
    assert value.item() == expected.value
    np.testing.assert_array_equal(gradient.numpy(), expected.coefficients)


def test_permuting_samples_permutes_gradients():
    rng = np.random.default_rng(3)
    scores, relevant = (torch.tensor(part) for part in random_list(rng, 10, 50))
    scores[::3] = 0.25  # ties too
    order = torch.tensor(rng.permutation(60))
    value, gradient = hinge_and_gradient(scores, relevant, loss="ndcg")
    other_value, other = hinge_and_gradient(scores[order], relevant[order], loss="ndcg")
    assert value == other_value
    assert torch.equal(gradient[order], other)


def lists_one_by_one(scores, relevant, mask, **options):
    found = [hinge_and_gradient(s[m], r[m], **options) for s, r, m in zip(scores, relevant, mask, strict=True)]
    return torch.stack([value for value, _ in found]), [gradient for _, gradient in found]


@pytest.mark.parametrize("seed", range(5))
def test_padded_lists_are_the_lists(seed):
    scores, relevant, mask = random_batch(seed)
    values, gradients = lists_one_by_one(scores, relevant, mask)
    for dim, turn in ((-1, lambda t: t), (0, lambda t: t.T)):
        value, gradient = hinge_and_gradient(turn(scores), turn(relevant), mask=turn(mask), dim=dim, reduction="none")
        torch.testing.assert_close(value, values)
        assert not gradient[~turn(mask)].any()
        torch.testing.assert_close(turn(gradient)[mask], torch.cat(gradients))


@pytest.mark.parametrize("seed", range(5))
def test_groups_are_the_lists(seed):
    scores, relevant, mask = random_batch(seed)
    values, gradients = lists_one_by_one(scores, relevant, mask)
    ids = torch.tensor([7, -3, 100, 8, 0], dtype=torch.int32)
    groups = ids[:, None].expand_as(mask)[mask]
    order = torch.randperm(groups.numel(), generator=torch.Generator().manual_seed(seed))
    flat, flat_relevant = scores[mask][order], relevant[mask][order]
    value, gradient = hinge_and_gradient(flat, flat_relevant, groups=groups[order], reduction="none")
    torch.testing.assert_close(value, values[ids.argsort()])
    torch.testing.assert_close(gradient, torch.cat(gradients)[order])
    mean, _ = hinge_and_gradient(flat, flat_relevant, groups=groups[order])
    usable = [r[m].any() and not r[m].all() for r, m in zip(relevant, mask, strict=True)]
    torch.testing.assert_close(mean, values.sum() / sum(usable))


def test_multilabel_scores_are_ranked_label_by_label():
    rng = np.random.default_rng(4)
    scores, relevant = torch.tensor(rng.normal(size=(30, 4))), torch.tensor(rng.random((30, 4)) < 0.3)
    value, gradient = hinge_and_gradient(scores, relevant, dim=0, loss="ndcg")
    rankings = [most_violating_ranking(scores[:, k].numpy(), relevant[:, k].numpy(), "ndcg") for k in range(4)]
    assert value.item() == pytest.approx(np.mean([ranking.value for ranking in rankings]))
    np.testing.assert_allclose(gradient.numpy(), np.stack([r.coefficients for r in rankings], axis=1) / 4)


def test_more_dimensions():
    rng = np.random.default_rng(5)
    scores, relevant = torch.tensor(rng.normal(size=(2, 9, 3))), torch.tensor(rng.random((2, 9, 3)) < 0.5)
    value, gradient = hinge_and_gradient(scores, relevant, dim=1, reduction="none")
    assert value.shape == (2, 3)
    for a in range(2):
        for b in range(3):
            one, its_gradient = hinge_and_gradient(scores[a, :, b], relevant[a, :, b])
            torch.testing.assert_close(value[a, b], one)
            torch.testing.assert_close(gradient[a, :, b], its_gradient)


@pytest.mark.parametrize("backend", ["compiled", "torch"])
def test_reductions_and_lists_that_do_not_count(backend):
    scores = torch.tensor([[1.0, 2.0, 0.0], [3.0, 1.0, 2.0], [5.0, 4.0, 6.0], [0.3, 0.2, 0.1]])
    relevant = torch.tensor([[1, 0, 0], [0, 0, 0], [1, 1, 1], [0, 1, 1]])
    values, _ = hinge_and_gradient(scores, relevant, reduction="none", backend=backend)
    total, of_sum = hinge_and_gradient(scores, relevant, reduction="sum", backend=backend)
    mean, of_mean = hinge_and_gradient(scores, relevant, backend=backend)
    assert values[1] == values[2] == 0
    assert values[0] > 0
    assert total == pytest.approx(values.sum().item())
    assert mean == pytest.approx(total.item() / 2)
    torch.testing.assert_close(of_mean, of_sum / 2)
    assert not of_sum[1:3].any()


@pytest.mark.parametrize("backend", ["compiled", "torch"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_nothing_usable_is_zero_and_part_of_the_graph(backend, reduction):
    scores = torch.randn(3, 4)
    options = {"backend": backend, "reduction": reduction}
    nothing_valid = {"mask": torch.zeros(3, 4, dtype=torch.bool)}
    for relevant, extra in ((torch.zeros(3, 4), {}), (torch.ones(3, 4), {}), (torch.eye(3, 4), nothing_valid)):
        value, gradient = hinge_and_gradient(scores, relevant, **options, **extra)
        assert not value.any()
        assert torch.equal(gradient, torch.zeros_like(scores))


def test_gradients_of_single_lists_are_weighed():
    scores, relevant, mask = random_batch(0)
    weights = torch.tensor([1.0, 0.0, -2.0, 3.0, 0.5], dtype=torch.float64)
    leaf = scores.clone().requires_grad_()
    (weights * rank_hinge(leaf, relevant, mask=mask, reduction="none")).sum().backward()
    _, each = hinge_and_gradient(scores, relevant, mask=mask, reduction="none")
    torch.testing.assert_close(leaf.grad, weights[:, None] * each)


def test_scores_that_are_not_contiguous():
    scores, relevant = torch.randn(40)[::2], (torch.rand(40) < 0.5)[1::2]
    torch.testing.assert_close(rank_hinge(scores, relevant), rank_hinge(scores.clone(), relevant.clone()))


def test_relevance_of_any_dtype():
    scores, relevant = torch.randn(20), torch.rand(20) < 0.4
    expected = rank_hinge(scores, relevant)
    for dtype in (torch.uint8, torch.int64, torch.float32, torch.bfloat16):
        assert rank_hinge(scores, relevant.to(dtype)) == expected


def test_the_module_is_the_function():
    scores, relevant, mask = random_batch(1)
    module = RankHingeLoss(SoftNDCG(3), reduction="sum")
    expected = rank_hinge(scores, relevant, mask=mask, loss=SoftNDCG(3), reduction="sum")
    assert module(scores, relevant, mask) == expected
    assert "SoftNDCG(k=3)" in repr(module)
    for copied in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert copied.loss is not module.loss
        assert copied(scores, relevant, mask=mask) == expected


def test_a_copy_outlives_the_loss_it_was_made_of():
    """As in another process: the loss object of the module that was pickled is gone."""
    scores, relevant, _ = random_batch(1)
    scores = torch.nan_to_num(scores)
    text = pickle.dumps(RankHingeLoss(SoftNDCG(3), reduction="none"))
    gc.collect()
    values = pickle.loads(text)(scores, relevant)
    expected = [structured_hinge(s, r, SoftNDCG(3)) for s, r in zip(scores.numpy(), relevant.numpy(), strict=True)]
    np.testing.assert_allclose(values.numpy(), expected, rtol=1e-12)


def test_a_step_of_descent_lowers_it():
    """J is convex: a small step along the negative subgradient must not raise it."""
    scores, relevant, mask = random_batch(2, n_lists=8, length=30)
    value, gradient = hinge_and_gradient(scores, relevant, mask=mask)
    lower = rank_hinge(scores - 1e-3 * gradient, relevant, mask=mask)
    assert lower < value
    assert lower >= value - 1e-3 * gradient[mask].square().sum() - 1e-12


def test_the_room_opens_when_it_is_named():
    code = "import rankhinge, sys; assert 'torch' not in sys.modules; print(rankhinge.torch.RankHingeLoss.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "RankHingeLoss"


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32])
def test_groups_of_any_integers(dtype):
    scores, relevant, groups = torch.randn(6), torch.arange(6) % 2 == 0, torch.arange(6) // 3
    expected = rank_hinge(scores, relevant, groups=groups)
    assert rank_hinge(scores, relevant, groups=groups.to(dtype), dim=np.int64(0)) == expected
