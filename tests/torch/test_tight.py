"""The tight bound as a loss: NumPy's value and gradient on both paths, finite differences, and every door."""

from __future__ import annotations

import copy
from functools import partial

import numpy as np
import pytest

from rankhinge import losses, ranking_loss, tight_hinge
from tests.inference.cases import random_list

torch = pytest.importorskip("torch")
from rankhinge.torch import RankHingeLoss, RetrievalLoss, rank_hinge, retrieval_loss  # noqa: E402

LOSSES = ["ap", "ndcg", "auc", "rr", "ndcg@5", "precision@20%", "r-precision", losses.BEDROC(5.0)]
EVERY_LOSS = pytest.mark.parametrize("loss", LOSSES, ids=str)
BOTH = pytest.mark.parametrize("backend", ["compiled", "torch"])


def gradient_of(function, scores):
    tensor = torch.tensor(scores, requires_grad=True)
    value = function(tensor)
    value.backward()
    return value.item(), tensor.grad.numpy()


@EVERY_LOSS
@BOTH
def test_one_list_is_that_of_numpy(loss, backend):
    rng = np.random.default_rng(0)
    for n_positives, n_negatives, scale in [(1, 1, 1.0), (2, 9, 5.0), (7, 30, 40.0), (12, 5, 1e-3), (20, 200, 1e4)]:
        scores, relevant = random_list(rng, n_positives, n_negatives, overlap=0.5)
        for given in (scale * scores, np.round(scores), np.zeros_like(scores)):
            expected = tight_hinge(given, relevant, loss)
            bound = partial(rank_hinge, relevance=torch.tensor(relevant), loss=loss, bound="tight", backend=backend)
            value, u = gradient_of(bound, given)
            assert value == pytest.approx(expected.value, rel=1e-11, abs=1e-12)
            assert value >= ranking_loss(given, relevant, loss) - 1e-12
            if np.unique(given).size == given.size:
                np.testing.assert_allclose(u, expected.coefficients, atol=1e-13)
            else:
                # With ties several rankings are the most violating: what is left of u adds up to 0.
                assert abs(u.sum()) < 1e-12


@EVERY_LOSS
@BOTH
def test_the_gradient_is_the_finite_difference(loss, backend):
    """Away from kinks: where the gradient is the same on both sides."""
    rng = np.random.default_rng(1)
    step, compared = 1e-6, 0

    def bound(s):
        return rank_hinge(s, relevant, loss=loss, bound="tight", backend=backend)

    for _ in range(12):
        scores, given = random_list(rng, 4, 9, overlap=0.5)
        scores, relevant = 9 * scores, torch.tensor(given)
        _, u = gradient_of(bound, scores)
        for place in range(scores.size):
            ends = [gradient_of(bound, scores + sign * step * (np.arange(scores.size) == place)) for sign in (1, -1)]
            if all(np.array_equal(end[1], u) for end in ends):
                assert (ends[0][0] - ends[1][0]) / (2 * step) == pytest.approx(u[place], abs=1e-8)
                compared += 1
    assert compared > 100


@BOTH
def test_many_lists(backend):
    """Padding, lists of one class, float32, each value and the mean."""
    rng = np.random.default_rng(2)
    scores, relevant, mask = rng.normal(size=(6, 12)), rng.random((6, 12)) < 0.3, rng.random((6, 12)) < 0.8
    relevant[2] = False
    for dtype, close in ((torch.float64, 1e-12), (torch.float32, 1e-6)):
        tensor = torch.tensor(5 * scores, dtype=dtype, requires_grad=True)
        arguments = tensor, torch.tensor(relevant)
        options = {"mask": torch.tensor(mask), "bound": "tight", "backend": backend}
        values = rank_hinge(*arguments, reduction="none", **options)
        rank_hinge(*arguments, **options).backward()
        usable = [q for q in range(6) if 0 < relevant[q, mask[q]].sum() < mask[q].sum()]
        assert 2 not in usable
        for q in range(6):
            given = tensor.detach().numpy()[q, mask[q]].astype(np.float64)
            slopes = tensor.grad.numpy()[q]
            assert (slopes[~mask[q]] == 0).all()
            if q in usable:
                expected = tight_hinge(given, relevant[q, mask[q]])
                assert values[q].item() == pytest.approx(expected.value, abs=close)
                np.testing.assert_allclose(slopes[mask[q]], expected.coefficients / len(usable), atol=close)
            else:
                assert values[q].item() == 0
                assert (slopes == 0).all()


@BOTH
def test_graded_relevance_lies_between_the_loss_and_the_convex_bound(backend):
    rng = np.random.default_rng(3)
    scores, labels = torch.tensor(4 * rng.normal(size=30)), torch.tensor(rng.integers(0, 4, 30))
    tight, convex = (rank_hinge(scores, labels, loss="ndcg", bound=b, backend=backend) for b in ("tight", "convex"))
    far = rank_hinge(1e9 * scores, labels, loss="ndcg", bound="tight", backend=backend)
    assert far - 1e-9 <= tight <= convex


def test_modules_and_retrieval():
    rng = np.random.default_rng(4)
    scores, relevant = random_list(rng, 5, 20)
    tensor, targets = torch.tensor(scores), torch.tensor(relevant)
    module = RankHingeLoss("ndcg", bound="tight")
    assert "bound='tight'" in repr(module)
    expected = tight_hinge(scores, relevant, "ndcg").value
    for one in (module, copy.deepcopy(module)):
        assert one(tensor, targets).item() == pytest.approx(expected, abs=1e-12)
    module.bound = "convex"
    assert module(tensor, targets).item() > expected
    embeddings, labels = torch.tensor(rng.normal(size=(12, 4))), torch.arange(12) % 3
    found = retrieval_loss(embeddings, labels, scale=8.0, bound="tight").item()
    rows = torch.nn.functional.normalize(embeddings, dim=1)
    others = ~torch.eye(12, dtype=torch.bool)
    by_hand = [
        tight_hinge((8 * rows @ rows[q])[others[q]].numpy(), (labels == labels[q])[others[q]].numpy()).value
        for q in range(12)
    ]
    assert found == pytest.approx(np.mean(by_hand), abs=1e-12)
    assert RetrievalLoss(scale=8.0, bound="tight")(embeddings, labels).item() == pytest.approx(found, abs=1e-14)


def test_compiled_graph():
    scores = torch.randn(3, 10, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    relevant = torch.arange(10).expand(3, 10) % 3 == 0
    module = RankHingeLoss(bound="tight")
    compiled = torch.compile(module, fullgraph=True, backend="eager")
    assert compiled(scores, relevant).item() == module(scores, relevant).item()


def test_an_unknown_bound():
    with pytest.raises(ValueError, match=r"bound is 'loose': choose one of \['convex', 'tight'\]"):
        rank_hinge(torch.zeros(3), torch.tensor([1, 0, 0]), bound="loose")
    module = RankHingeLoss()
    with pytest.raises(ValueError, match="bound is 'loose'"):
        module.bound = "loose"
    assert module.bound == "convex"
