"""Graded relevance: the objective of `SVMRanker`, and a bound on the graded metric."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rankhinge import losses, metrics
from rankhinge.features import feature_map
from rankhinge.losses import get_loss
from rankhinge.objective import RankingObjective
from rankhinge.problems.queries import ranking_lists
from rankhinge.torch import direct_loss, rank_hinge
from tests.torch.cases import hinge_and_gradient

BACKENDS = ("compiled", "torch")


def graded_batch(seed, n=60, n_queries=5, n_grades=4):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_grades, n)
    labels[:n_grades] = np.arange(n_grades)
    codes = rng.permutation(np.arange(n) % n_queries)
    labels[codes == 0] = 1  # unusable
    labels[codes == 1] = np.maximum(labels[codes == 1], 1)  # nobody at level 0
    labels[:4] = np.where(codes[:4] > 1, labels[:4], 1)
    return rng.normal(size=n), labels, codes


def objective_of_ranker(scores, labels, codes, loss, gains, level_weights):
    """J and u as `SVMRanker` has them: features are the scores, the weight is 1."""
    lists = ranking_lists(labels, codes, get_loss(loss), gains, level_weights, None)
    objective = RankingObjective(feature_map(scores[:, None]), [lists], get_loss(loss))
    found = objective.evaluate(objective.score(np.ones((1, 1)), np.zeros(1, np.int64)))
    return found.value[0], found.coefficients.values[0]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("loss", "gains", "level_weights"),
    [
        ("ndcg", "exponential", None),
        ("ndcg", "linear", None),
        ("ndcg", [0.0, 1.0, 1.5, 7.0], None),
        (losses.SoftNDCG(5), "exponential", None),
        ("ap", "exponential", "uniform"),
        ("ap", "exponential", [1.0, 0.0, 2.0]),
        ("rr", "linear", [0.5, 3.0, 2.0]),
        ("ndcg", "linear", [1.0, 2.0, 3.0]),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_equals_the_objective_of_the_ranker(loss, gains, level_weights, backend, seed):
    scores, labels, codes = graded_batch(seed)
    expected, u = objective_of_ranker(scores, labels, codes, loss, gains, level_weights)
    value, gradient = hinge_and_gradient(
        torch.tensor(scores),
        torch.tensor(labels),
        groups=torch.tensor(codes),
        loss=loss,
        gains=gains,
        level_weights=level_weights,
        backend=backend,
    )
    assert value.item() == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradient.numpy(), u, atol=1e-14)


@pytest.mark.parametrize("gains", ["linear", "exponential"])
def test_bounds_the_graded_metric(gains):
    """``1 - NDCG ≤ J``, and the direct loss is ``1 - NDCG`` itself: the decomposition is exact."""
    scores, labels, _ = graded_batch(3)
    ndcg = metrics.ndcg(labels, scores, gains=gains)
    tensors = torch.tensor(scores), torch.tensor(labels)
    assert rank_hinge(*tensors, loss="ndcg", gains=gains).item() >= 1 - ndcg
    assert direct_loss(*tensors, 0.1, loss="ndcg", gains=gains).item() == pytest.approx(1 - ndcg, abs=1e-12)


def test_a_list_does_not_depend_on_its_neighbours():
    scores = torch.randn(2, 6, dtype=torch.float64)
    labels = torch.tensor([[0, 1, 3, 0, 3, 1], [2, 0, 2, 0, 1, 4]])
    for options in ({"loss": "ndcg"}, {"loss": "ap", "level_weights": "uniform"}):
        together = rank_hinge(scores, labels, reduction="none", **options)
        alone = torch.stack([rank_hinge(s, y, **options) for s, y in zip(scores, labels, strict=True)])
        torch.testing.assert_close(together, alone)


def test_relevance_of_real_numbers():
    scores, labels, codes = graded_batch(4)
    labels = labels * 0.37
    expected, _ = objective_of_ranker(scores, labels, codes, "ndcg", "exponential", None)
    value = rank_hinge(torch.tensor(scores), torch.tensor(labels), groups=torch.tensor(codes), loss="ndcg")
    assert value.item() == pytest.approx(expected, rel=1e-12)


def test_weights_for_labels_that_are_all_0_or_1():
    scores, relevant = torch.randn(20), torch.arange(20) < 5
    expected = rank_hinge(scores, relevant)
    torch.testing.assert_close(rank_hinge(scores, relevant, level_weights=[2.0, 1.0]), expected)
    torch.testing.assert_close(rank_hinge(scores, relevant, level_weights="uniform"), expected)
    assert rank_hinge(scores, relevant, level_weights=[0.0, 1.0]) == 0


@pytest.mark.parametrize("backend", BACKENDS)
def test_lists_that_reach_weightless_levels_only_do_not_count(backend):
    scores, labels, codes = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0, 1, 0, 2]), np.array([0, 0, 1, 1])
    expected, u = objective_of_ranker(scores, labels, codes, "ap", "exponential", [0.0, 1.0])
    value, gradient = hinge_and_gradient(
        torch.tensor(scores),
        torch.tensor(labels),
        groups=torch.tensor(codes),
        level_weights=[0.0, 1.0],
        backend=backend,
    )
    assert value.item() == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradient.numpy(), u, atol=1e-14)


@pytest.mark.parametrize("level_weights", [None, "uniform"])
def test_lists_with_grades_of_their_own(level_weights):
    """As many levels as the longest list has grades, whatever the others have; the same value as one by one."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(7, 9, dtype=torch.float64, generator=generator)
    relevance = torch.randint(0, 500, (7, 9), generator=generator).double()
    relevance[0, 0], relevance[1] = 0, 3
    if level_weights is None:
        relevance /= 100
    mask = torch.rand(7, 9, generator=generator) < 0.8
    mask[2] = False
    options = {"loss": "ndcg", "level_weights": level_weights}
    together = rank_hinge(scores, relevance, mask=mask, reduction="none", **options)
    for value, s, r, m in zip(together, scores, relevance, mask):
        alone = rank_hinge(s[m], r[m], **options).item() if m.any() else 0.0
        assert value.item() == pytest.approx(alone, rel=1e-12)


def test_a_long_list_does_not_slow_down_short_ones():
    from rankhinge.torch.tensor_losses import TensorLoss

    loss = get_loss("ndcg")
    loss.table(5000)
    assert TensorLoss(loss, 20, torch.device("cpu"), torch.float64).ideal.numel() == 21


def test_gains_whose_sum_overflows():
    scores = torch.randn(6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([1023, 1023, 1023, 0, 1, 0])
    # Beside such gains those of the label 1 do not count.
    torch.testing.assert_close(rank_hinge(scores, labels, loss="ndcg"), rank_hinge(scores, labels > 1, loss="ndcg"))
