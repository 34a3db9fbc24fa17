"""Losses with a cut in networks: both implementations, graded relevance, direct loss, layers."""

from __future__ import annotations

import numpy as np
import pytest

from rankhinge import most_violating_ranking, most_violating_rankings, ranking_loss
from tests.inference import small_lists
from tests.inference.cases import KINDS, large_list, random_list
from tests.losses import cuts

torch = pytest.importorskip("torch")
from rankhinge.torch import (  # noqa: E402
    DirectLoss,
    direct_loss,
    on_device,
    rank_hinge,
)

EVERY_CUT = pytest.mark.parametrize("kind", cuts.ALL)


@EVERY_CUT
def test_on_device_is_the_compiled_one_on_small_lists(kind):
    for number, (n_positives, n_negatives) in enumerate([(1, 1), (1, 5), (2, 3), (3, 3), (5, 2), (4, 6)]):
        for group in small_lists.groups(n_positives, n_negatives):
            if group.kind in ("many scales", "extremes", "one scale"):
                continue
            scores = group.scores[:4].astype(np.float64)
            loss = cuts.make(kind, None if kind == "r-precision" else 1 + number)
            relevant = np.tile(np.arange(scores.shape[1]) < n_positives, len(scores))
            offsets = np.arange(len(scores) + 1) * scores.shape[1]
            expected = most_violating_rankings(scores.ravel(), relevant, offsets, loss)
            found = on_device.infer(torch.tensor(scores.ravel()), torch.tensor(relevant), torch.tensor(offsets), loss)
            np.testing.assert_allclose(found.values.numpy(), expected.values, rtol=1e-10, atol=1e-11)


@EVERY_CUT
@pytest.mark.parametrize("scores_kind", sorted(set(KINDS) - {"signed powers", "exponentials"}))
def test_on_device_on_larger_lists(kind, scores_kind):
    scores, relevant = large_list(scores_kind, 40, 300)
    loss = cuts.make(kind, None if kind == "r-precision" else 25)
    expected = most_violating_ranking(scores, relevant, loss)
    tensor = torch.tensor(scores, requires_grad=True)
    value = rank_hinge(tensor, torch.tensor(relevant), loss=loss, backend="torch")
    assert value.item() == pytest.approx(expected.value, rel=1e-10, abs=1e-11)
    value.backward()
    u = tensor.grad.numpy()
    # Near-ties may be decided either way: u is a subgradient with the same value, Σu = 0.
    assert abs(u.sum()) < 1e-12
    other = np.random.default_rng(0).normal(size=scores.size) + scores
    there = most_violating_ranking(other, relevant, loss).value
    assert there >= expected.value + u @ (other - scores) - 1e-9 * max(1.0, abs(expected.value))


@pytest.mark.parametrize("backend", ["compiled", "torch"])
def test_graded_relevance_is_bounded_exactly(backend):
    """``Σ ω_ℓ J_ℓ`` bounds one minus graded NDCG@k, and meets it as the scores grow."""
    from rankhinge.metrics import ndcg

    rng = np.random.default_rng(1)
    for k in (1, 3, 10, "20%"):
        scores, labels = rng.normal(size=30), rng.integers(0, 4, 30)
        value = float(rank_hinge(torch.tensor(scores), torch.tensor(labels), loss=f"ndcg@{k}", backend=backend))
        assert value >= 1 - ndcg(labels, scores, k=k, gains="exponential") - 1e-12
        best = labels + 1e-3 * scores
        far = float(rank_hinge(torch.tensor(1e7 * best), torch.tensor(labels), loss=f"ndcg@{k}", backend=backend))
        assert far == pytest.approx(0.0, abs=1e-9)


@EVERY_CUT
def test_direct_loss(kind):
    rng = np.random.default_rng(2)
    scores, relevant = random_list(rng, 8, 30)
    loss = cuts.make(kind, None if kind == "r-precision" else 5)
    gradients = []
    for backend in ("compiled", "torch"):
        tensor = torch.tensor(scores, requires_grad=True)
        value = direct_loss(tensor, torch.tensor(relevant), 0.5, loss=loss, backend=backend)
        assert value.item() == pytest.approx(ranking_loss(scores, relevant, loss), abs=1e-13)
        value.backward()
        gradients.append(tensor.grad.numpy())
    np.testing.assert_allclose(gradients[0], gradients[1], atol=1e-10)
    for backend in ("compiled", "torch"):
        with pytest.raises(ValueError, match="choose update='positive'"):
            DirectLoss(0.5, "negative", loss, backend=backend)(torch.tensor(scores), torch.tensor(relevant))


def test_layerwise():
    from rankhinge.torch import LayerwiseTrainer

    torch.manual_seed(0)
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 4))
    y = (X[:, 0] + 0.3 * rng.normal(size=60) > 0.8).astype(int)
    network = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 1))
    trainer = LayerwiseTrainer(network, loss="precision@10", max_passes=1)
    trainer.fit(torch.tensor(X, dtype=torch.float32), torch.tensor(y))
