"""`retrieval_loss` is `rank_hinge` of each sample's similarities to the others."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch

from rankhinge import metrics, structured_hinge
from rankhinge.torch import RetrievalLoss, retrieval_loss
from rankhinge.torch.operators import evaluate
from tests.torch.cases import gradient_of


def batch(seed=0, n=23, d=4, dtype=torch.float64):
    """Classes of 1, 2, 3, … samples."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.repeat_interleave(torch.arange(n), torch.arange(1, n + 1))[:n]
    labels = labels[torch.randperm(n, generator=generator)]
    return torch.randn(n, d, generator=generator, dtype=dtype), labels


def by_hand(embeddings, labels, loss="ap", similarity="cosine", scale=1.0):
    """The values of the queries that count, one by one."""
    if similarity == "cosine":
        embeddings = torch.nn.functional.normalize(embeddings, dim=1)
    values = []
    for q in range(len(labels)):
        others = np.arange(len(labels)) != q
        relevant = (labels == labels[q]).numpy()[others]
        if relevant.any() and not relevant.all():
            scores = scale * (embeddings @ embeddings[q]).numpy()[others]
            values.append(structured_hinge(scores, relevant, loss))
    return values


@pytest.mark.parametrize("backend", ["compiled", "torch"])
@pytest.mark.parametrize("chunk_size", [None, 1, 5, 23, 100])
@pytest.mark.parametrize(("loss", "similarity", "scale"), [("ap", "cosine", 3.0), ("ndcg", "dot", 0.5)])
def test_value(backend, chunk_size, loss, similarity, scale):
    embeddings, labels = batch()
    options = {"loss": loss, "similarity": similarity, "scale": scale}
    values = by_hand(embeddings, labels, **options)
    assert 0 < len(values) < len(labels)
    options |= {"backend": backend, "chunk_size": chunk_size}
    assert retrieval_loss(embeddings, labels, **options).item() == pytest.approx(np.mean(values), rel=1e-12)
    total = retrieval_loss(embeddings, labels, **options, reduction="sum")
    assert total.item() == pytest.approx(np.sum(values), rel=1e-12)


@pytest.mark.parametrize("chunk_size", [None, 4])
@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_gradcheck(similarity, chunk_size):
    for seed in range(3):
        embeddings, labels = batch(seed, n=9, d=3)
        embeddings.requires_grad_()
        options = {"similarity": similarity, "scale": 2.0, "chunk_size": chunk_size}
        assert torch.autograd.gradcheck(
            lambda e, y=labels, o=options: retrieval_loss(e, y, **o), embeddings, eps=1e-8, atol=1e-5
        )


def test_bounds_mean_average_precision():
    embeddings, labels = batch(1, n=40)
    precisions = []
    for q in range(40):
        others = np.arange(40) != q
        relevant = (labels == labels[q]).numpy()[others]
        if relevant.any() and not relevant.all():
            precisions.append(metrics.average_precision(relevant, (embeddings @ embeddings[q]).numpy()[others]))
    for scale in (0.1, 1.0, 10.0):
        assert retrieval_loss(embeddings, labels, similarity="dot", scale=scale).item() >= 1 - np.mean(precisions)


@pytest.mark.parametrize("labels", [torch.arange(6), torch.zeros(6)])
def test_no_query_counts(labels):
    value, gradient = gradient_of(retrieval_loss, torch.randn(6, 2), labels)
    assert value == 0
    assert torch.equal(gradient, torch.zeros(6, 2))


def test_one_sample():
    assert retrieval_loss(torch.randn(1, 2), torch.zeros(1)) == 0


def test_permuting_samples_permutes_gradients():
    embeddings, labels = batch(2)
    order = torch.randperm(23, generator=torch.Generator().manual_seed(0))
    value, gradient = gradient_of(retrieval_loss, embeddings, labels)
    other, permuted = gradient_of(retrieval_loss, embeddings[order], labels[order], chunk_size=3)
    torch.testing.assert_close(value, other)
    torch.testing.assert_close(gradient[order], permuted)


def test_half_precision_and_autocast():
    embeddings, labels = batch(3, dtype=torch.float32)
    expected, gradient = gradient_of(retrieval_loss, embeddings, labels)
    assert expected.item() == pytest.approx(np.mean(by_hand(embeddings.double(), labels)), rel=1e-6)
    torch.testing.assert_close(gradient, gradient_of(retrieval_loss, embeddings.double(), labels)[1].float())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value, inside = gradient_of(retrieval_loss, embeddings, labels)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(inside, gradient)
    for dtype in (torch.float16, torch.bfloat16):
        value, rounded = gradient_of(retrieval_loss, embeddings.to(dtype), labels)
        assert rounded.dtype == dtype
        torch.testing.assert_close(value, retrieval_loss(embeddings.to(dtype).float(), labels))


def test_four_million_similarities_at_a_time(monkeypatch):
    held = []

    def watched(scores, *arguments):
        held.append(scores.numel())
        return evaluate(scores, *arguments)

    monkeypatch.setattr("rankhinge.torch.retrieval.evaluate", watched)
    n = 2100
    embeddings = torch.randn(n, 2, generator=torch.Generator().manual_seed(0))
    retrieval_loss(embeddings, torch.arange(n) % 50)
    assert sum(held) == n * n
    assert 4_000_000 < max(held) <= 1 << 22


def test_the_module_is_the_function():
    embeddings, labels = batch(4)
    module = RetrievalLoss("ndcg", scale=4.0, chunk_size=7)
    expected = retrieval_loss(embeddings, labels, loss="ndcg", scale=4.0, chunk_size=7)
    assert module(embeddings, labels) == copy.deepcopy(module)(embeddings, labels) == expected
    assert "scale=4.0" in repr(module)


def test_descent_separates_classes():
    embeddings, labels = batch(5, n=30, d=8)
    embeddings.requires_grad_()
    optimizer = torch.optim.SGD([embeddings], lr=2.0)
    first = retrieval_loss(embeddings, labels, scale=8.0)
    for _ in range(100):
        optimizer.zero_grad()
        value = retrieval_loss(embeddings, labels, scale=8.0)
        value.backward()
        optimizer.step()
    assert value < 0.01 * first


@pytest.mark.parametrize("similarity", ["cosine", "dot"])
def test_a_scale_that_is_learnt(similarity):
    embeddings, labels = batch(2, n=12)
    scale = torch.nn.Parameter(torch.tensor(3.0, dtype=torch.float64))
    assert torch.autograd.gradcheck(
        lambda e, c: retrieval_loss(e, labels, similarity=similarity, scale=c),
        (embeddings.double().requires_grad_(), scale),
        eps=1e-7,
        atol=1e-5,
    )
    criterion = RetrievalLoss(similarity=similarity, scale=scale)
    assert dict(criterion.named_parameters()).keys() == {"scale"}
    value = criterion(embeddings, labels)
    expected = retrieval_loss(embeddings, labels, similarity=similarity, scale=3.0)
    torch.testing.assert_close(value, expected)
    value.backward()
    assert scale.grad != 0


def test_a_scale_that_training_has_led_astray():
    embeddings, labels = batch()
    criterion = RetrievalLoss(scale=torch.nn.Parameter(torch.tensor(2.0)))
    for value in (-1.0, 0.0, float("nan")):
        criterion.scale.data.fill_(value)
        with pytest.raises(ValueError, match=f"scale is {value}: it must be positive and finite"):
            criterion(embeddings, labels)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_cosine_does_not_depend_on_the_lengths(dtype):
    embeddings, labels = batch(dtype=dtype)
    expected, gradient = gradient_of(lambda e: retrieval_loss(e, labels), embeddings)
    for exponent in (-100, -60, 62, 100):
        factor = 2.0**exponent
        value, scaled = gradient_of(lambda e: retrieval_loss(e, labels), embeddings * factor)
        torch.testing.assert_close(value, expected)
        torch.testing.assert_close(scaled * factor, gradient)


def test_embeddings_of_zeros_have_no_direction():
    embeddings, labels = batch()
    embeddings[2] = 0.0
    value, gradient = gradient_of(lambda e: retrieval_loss(e, labels), embeddings)
    assert value.isfinite()
    assert not gradient[2].any()
    assert 0 < gradient.norm() < 1e3


def test_refused_settings_leave_the_module_as_it_was():
    embeddings, labels = batch()
    criterion = RetrievalLoss(scale=4.0)
    expected = criterion(embeddings, labels)
    with pytest.raises(ValueError, match=r"scale is -1\.0"):
        criterion.scale = torch.nn.Parameter(torch.tensor(-1.0))
    assert (criterion.scale, list(criterion.parameters())) == (4.0, [])
    assert criterion(embeddings, labels) == expected
    criterion.scale = torch.nn.Parameter(torch.tensor(4.0))
    assert len(list(criterion.parameters())) == 1
    torch.testing.assert_close(criterion(embeddings, labels), expected)
    criterion.scale = 2.0
    assert (criterion.scale, list(criterion.parameters())) == (2.0, [])
