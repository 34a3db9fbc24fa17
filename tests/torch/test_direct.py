"""Direct loss minimisation: both updates against all ± patterns, and against a known expected loss."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from scipy.stats import norm

from rankhinge import ranking_loss
from rankhinge.torch import DirectLoss, direct_loss, rank_hinge
from tests import brute_force
from tests.torch.cases import ALL_LOSSES, ON_DEVICE, UPDATES, gradient_of, names, random_batch

CASES = [(case, "compiled") for case in ALL_LOSSES] + [(case, "torch") for case in ON_DEVICE]
IDS = [f"{case.name}-{backend}" for case, backend in CASES]


def all_rankings(scores, relevant, judge):
    """u and Δ of every pattern, each class sorted by score."""
    positives, negatives = np.flatnonzero(relevant), np.flatnonzero(~relevant)
    positives, negatives = positives[np.argsort(-scores[positives])], negatives[np.argsort(-scores[negatives])]
    coefficients, deltas = [], []
    for pattern in brute_force.patterns(positives.size, negatives.size):
        order, of_class = np.empty(len(pattern), int), np.array(pattern)
        order[of_class], order[~of_class] = positives, negatives
        coefficients.append(brute_force.coefficients_of_order(relevant, order))
        deltas.append(judge.of_ranks(brute_force.positive_ranks(pattern), negatives.size))
    return np.array(coefficients), np.array(deltas)


def small_lists(seed, count):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        n_positives, n_negatives = rng.integers(1, 5), rng.integers(1, 6)
        relevant = rng.permutation(np.arange(n_positives + n_negatives) < n_positives)
        yield rng.normal(size=relevant.size), relevant, 10.0 ** rng.uniform(-1.5, 1.5)


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize(("case", "backend"), CASES, ids=IDS)
def test_the_ranking_is_the_best_of_all(case, backend, update):
    """``ε g + u(R_s)`` must be u of a ranking that attains the maximum of ``F ± εΔ`` over all patterns."""
    sign = 1 if update == "positive" else -1
    for scores, relevant, epsilon in small_lists(0, 40 if backend == "compiled" else 15):
        value, gradient = gradient_of(
            direct_loss,
            torch.tensor(scores),
            torch.tensor(relevant),
            epsilon,
            update=update,
            loss=case.loss,
            backend=backend,
        )
        coefficients, deltas = all_rankings(scores, relevant, case.judge)
        by_scores = coefficients[np.argmax(coefficients @ scores)]
        found = sign * epsilon * gradient.numpy() + by_scores
        which = np.flatnonzero(np.abs(coefficients - found).max(axis=1) < 1e-9)
        assert which.size == 1
        objective = coefficients @ scores + sign * epsilon * deltas
        assert objective[which[0]] >= objective.max() - 1e-12
        assert value.item() == pytest.approx(deltas[np.argmax(coefficients @ scores)], abs=1e-12)
        assert value.item() == pytest.approx(ranking_loss(scores, relevant, case.loss), abs=1e-12)


@pytest.mark.parametrize("update", UPDATES)
def test_the_gradient_is_that_of_the_surrogate(update):
    """Central differences of ``(max F + εΔ - max F) / ε`` (and its mirror image), which bound Δ on either side."""
    sign = 1 if update == "positive" else -1
    for scores, relevant, epsilon in small_lists(1, 20):
        coefficients, deltas = all_rankings(scores, relevant, brute_force.AP)

        def surrogate(s, coefficients=coefficients, deltas=deltas, epsilon=epsilon):
            augmented = (coefficients @ s + sign * epsilon * deltas).max()
            return sign * (augmented - (coefficients @ s).max()) / epsilon

        value, gradient = gradient_of(direct_loss, torch.tensor(scores), torch.tensor(relevant), epsilon, update=update)
        assert sign * (surrogate(scores) - value.item()) >= -1e-12
        steps = 1e-7 * np.eye(scores.size)
        differences = [(surrogate(scores + step) - surrogate(scores - step)) / 2e-7 for step in steps]
        np.testing.assert_allclose(gradient.numpy(), differences, atol=1e-5 * max(1, 1 / epsilon))


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("backend", ["compiled", "torch"])
def test_tends_to_the_gradient_of_the_expected_loss(update, backend):
    """One positive at θ + z, z normal, negatives at 0 and 1: E = ½ Φ(1 − θ) + ⅙ Φ(−θ) for AP.

    z runs through its quantiles, so that means over the lists are integrals and not estimates.
    """
    n_lists = 20_000 if backend == "compiled" else 2_000
    z = torch.tensor(norm.ppf((np.arange(n_lists) + 0.5) / n_lists))
    relevant = torch.tensor([True, False, False]).expand(n_lists, 3)
    for theta in (-0.5, 0.3, 1.2):
        leaf = torch.tensor(theta, dtype=torch.float64, requires_grad=True)
        expected = -0.5 * norm.pdf(1 - theta) - norm.pdf(theta) / 6
        errors = []
        for epsilon in (2.0, 0.5, 0.125):
            leaf.grad = None
            scores = torch.stack([leaf + z, torch.zeros_like(z), torch.ones_like(z)], dim=1)
            value = direct_loss(scores, relevant, epsilon, update=update, backend=backend)
            value.backward()
            errors.append(abs(leaf.grad.item() - expected))
            assert value.item() == pytest.approx(norm.cdf(1 - theta) / 2 + norm.cdf(-theta) / 6, abs=1e-3)
        # Each step of ε to its quarter: so the error, until there are too few lists for the integral.
        assert errors[2] <= max(errors[0] / 8, 0.03)
        assert errors[2] < 0.03


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("case", ON_DEVICE, ids=names(ON_DEVICE))
def test_both_implementations_agree(case, update):
    for seed in range(2):
        scores, relevant, mask = random_batch(seed, n_lists=6, length=20)
        options = {"update": update, "loss": case.loss, "mask": mask, "reduction": "none"}
        found = [
            gradient_of(direct_loss, scores, relevant, 0.7, backend=backend, **options)
            for backend in ("compiled", "torch")
        ]
        torch.testing.assert_close(found[0][0], found[1][0])
        torch.testing.assert_close(found[0][1], found[1][1])


@pytest.mark.parametrize("backend", ["compiled", "torch"])
@pytest.mark.parametrize("update", UPDATES)
def test_equal_scores_still_have_a_direction(update, backend):
    """All scores 0, as from a last layer that begins with zeros: up with the positives, down with the others."""
    scores, relevant = torch.zeros(12), torch.arange(12) < 4
    value, gradient = gradient_of(direct_loss, scores, relevant, 1.0, update=update, backend=backend)
    assert value.item() == pytest.approx(ranking_loss(scores.numpy(), relevant.numpy()))
    assert (gradient[relevant] < 0).all()
    assert (gradient[~relevant] > 0).all()
    assert abs(gradient.sum().item()) < 1e-6


def test_scale_and_epsilon_are_one():
    scores, relevant, mask = random_batch(5)
    for update in UPDATES:
        _, of_scaled = gradient_of(direct_loss, scores / 0.25, relevant, 1.0, update=update, mask=mask)
        _, of_epsilon = gradient_of(direct_loss, scores, relevant, 0.25, update=update, mask=mask)
        torch.testing.assert_close(of_scaled / 0.25, of_epsilon)


def test_a_long_list_by_the_fast_method():
    """At ε = 1 the positive update is u of the hinge minus u of the ranking by score."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(300_000, generator=generator, dtype=torch.float64)
    relevant = torch.rand(300_000, generator=generator) < 0.01
    _, direct = gradient_of(direct_loss, scores, relevant, 1.0)
    _, hinge = gradient_of(rank_hinge, scores, relevant)
    by_scores = hinge - direct
    n_positives = int(relevant.sum())
    order = torch.argsort(scores, descending=True)
    above = torch.empty(300_000, dtype=torch.int64)
    above[order] = (~relevant[order]).cumsum(0)
    expected = -2.0 * above / (n_positives * (300_000 - n_positives))
    torch.testing.assert_close(by_scores[relevant], expected[relevant].to(torch.float64))


def test_module_and_bad_settings():
    scores, relevant, mask = random_batch(6)
    module = DirectLoss(0.5, "negative", "ndcg")
    expected = gradient_of(direct_loss, scores, relevant, 0.5, update="negative", loss="ndcg", mask=mask)
    for one in (module, copy.deepcopy(module)):
        found = gradient_of(one, scores, relevant, mask=mask)
        assert all(map(torch.equal, found, expected))
    assert "epsilon=0.5, 'negative', 'ndcg'" in repr(module)
    for epsilon in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="epsilon is"):
            DirectLoss(epsilon)
    with pytest.raises(ValueError, match="update is 'upward'"):
        DirectLoss(1.0, "upward")


@pytest.mark.parametrize("backend", ["compiled", "torch"])
def test_nan_is_named(backend):
    scores = torch.tensor([[0.0, 1.0], [2.0, torch.nan]])
    for update in UPDATES:
        with pytest.raises(ValueError, match=r"scores\[1, 1\] is nan"):
            direct_loss(scores, torch.eye(2), 1.0, update=update, backend=backend)
