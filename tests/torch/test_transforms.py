"""`torch.func` of the retrieval loss, by itself and through a network."""

from __future__ import annotations

import pytest
import torch

from rankhinge.torch import retrieval_loss

EMBEDDINGS = torch.randn(3, 10, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
LABELS = torch.arange(30).reshape(3, 10) % 3


def _value(embeddings, labels):
    return retrieval_loss(embeddings, labels, scale=3.0)


def _by_autograd(embeddings, labels):
    embeddings = embeddings.clone().requires_grad_()
    _value(embeddings, labels).backward()
    return embeddings.grad


def test_gradients_and_batches():
    expected = torch.stack([_by_autograd(e, labels) for e, labels in zip(EMBEDDINGS, LABELS)])
    torch.testing.assert_close(torch.func.grad(_value)(EMBEDDINGS[0], LABELS[0]), expected[0])
    torch.testing.assert_close(torch.vmap(torch.func.grad(_value))(EMBEDDINGS, LABELS), expected)
    torch.testing.assert_close(torch.func.jacrev(_value)(EMBEDDINGS[0], LABELS[0]), expected[0])
    values = torch.stack([_value(e, labels) for e, labels in zip(EMBEDDINGS, LABELS)])
    torch.testing.assert_close(torch.vmap(_value)(EMBEDDINGS, LABELS), values)
    torch.testing.assert_close(torch.vmap(_value, in_dims=(None, 0))(EMBEDDINGS[0], LABELS[:1]), values[:1])


def test_gradient_in_the_weights_of_a_network():
    network = torch.nn.Linear(4, 3).double()
    weights = dict(network.named_parameters())

    def value(weights):
        return _value(torch.func.functional_call(network, weights, (EMBEDDINGS[0],)), LABELS[0])

    found = torch.func.grad(value)(weights)
    value(weights).backward()
    for name, parameter in network.named_parameters():
        torch.testing.assert_close(found[name], parameter.grad)


def test_batches_of_scales():
    scales = torch.tensor([1.0, 3.0], dtype=torch.float64)
    values = torch.vmap(lambda scale: retrieval_loss(EMBEDDINGS[0], LABELS[0], scale=scale))(scales)
    expected = [retrieval_loss(EMBEDDINGS[0], LABELS[0], scale=scale) for scale in scales.tolist()]
    torch.testing.assert_close(values, torch.stack(expected))


def test_second_derivatives_are_refused():
    with pytest.raises(RuntimeError, match="cannot be differentiated twice"):
        torch.func.jacrev(torch.func.grad(_value))(EMBEDDINGS[0], LABELS[0])
