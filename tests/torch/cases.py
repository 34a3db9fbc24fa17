"""Losses and lists that the tests of the torch room share."""

from __future__ import annotations

import numpy as np
import torch

from rankhinge import losses
from rankhinge.torch import rank_hinge
from tests import brute_force
from tests.inference.cases import LOSS_CASES, LossCase

UPDATES = ("positive", "negative")


def tensor_step(j, i, n_positives, n_negatives):
    """The step of mean inverse rank: for numbers and for tensors."""
    return (1 / (i + j) - 1 / (i + j - 1)) / n_positives


def tensor_partial_sum(j, i, n_positives, n_negatives):
    return (1 / (i + j - 1) - 1 / j) / n_positives


TENSOR_SUMS = LossCase(
    "tensor-sums",
    losses.CustomLoss(tensor_step, tensor_partial_sum),
    brute_force.by_steps(tensor_step),
)
# The step of "custom-sums" has a loop over the positives: numba compiles it, tensors cannot go through it.
ON_DEVICE = [*(case for case in LOSS_CASES if case.name != "custom-sums"), TENSOR_SUMS]
ALL_LOSSES = [*LOSS_CASES, TENSOR_SUMS]


def names(cases):
    return [case.name for case in cases]


def gradient_of(function, scores, *arguments, **options):
    """Value and gradient of a loss at some scores."""
    leaf = scores.detach().clone().requires_grad_()
    value = function(leaf, *arguments, **options)
    value.sum().backward()
    return value.detach(), leaf.grad


def hinge_and_gradient(scores, relevance, **options):
    return gradient_of(rank_hinge, scores, relevance, **options)


def random_batch(seed, n_lists=5, length=12, dtype=torch.float64):
    """Scores, relevance and mask of padded lists; padding is poisoned."""
    rng = np.random.default_rng(seed)
    scores = torch.tensor(rng.normal(size=(n_lists, length)), dtype=dtype)
    relevant = torch.tensor(rng.random((n_lists, length)) < 0.4)
    sizes = torch.tensor(rng.integers(2, length + 1, n_lists))
    mask = torch.arange(length) < sizes[:, None]
    scores[~mask] = torch.nan
    return scores, relevant, mask
