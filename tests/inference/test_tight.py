"""The tight bound: between the loss and the hinge, equal to brute force, tight for large scores."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankhinge import ranking_loss, structured_hinge, tight_hinge
from tests import brute_force

from .cases import LOSS_CASES

LOSSES = pytest.mark.parametrize("case", LOSS_CASES, ids=lambda case: case.name)


def random_list(seed, n=30, ties=False):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n) * 10.0 ** rng.uniform(-2, 3)
    if ties:
        scores = np.round(scores / scores.std())
    relevant = np.zeros(n, np.bool_)
    relevant[rng.permutation(n)[: rng.integers(1, n)]] = True
    return scores, relevant


@LOSSES
@given(seed=st.integers(0, 10**6), ties=st.booleans())
def test_it_lies_between_the_loss_and_the_hinge(case, seed, ties):
    scores, relevant = random_list(seed, ties=ties)
    value = tight_hinge(scores, relevant, case.loss).value
    rounding = 1e-12 * max(1.0, np.abs(scores).max())
    assert ranking_loss(scores, relevant, case.loss) <= value + rounding
    assert value <= structured_hinge(scores, relevant, case.loss) + rounding


@LOSSES
@given(seed=st.integers(0, 10**6))
def test_it_is_the_difference_of_two_maxima_over_all_rankings(case, seed):
    rng = np.random.default_rng(seed)
    n_positives, n_negatives = rng.integers(1, 4), rng.integers(1, 5)
    scores = np.round(rng.normal(size=n_positives + n_negatives), 1)
    relevant = np.arange(scores.size) < n_positives
    hinge = brute_force.hinge(scores, relevant, case.judge)
    # Pairs out of order are what the ranking by the scores gains over the perfect one.
    pairs = scores[~relevant][:, None] - scores[relevant][None, :]
    ranked = 2.0 * np.maximum(pairs, 0.0).mean()
    assert tight_hinge(scores, relevant, case.loss).value == pytest.approx(hinge - ranked, abs=1e-12)


@LOSSES
def test_coefficients_are_the_gradient(case):
    for seed in range(10):
        scores, relevant = random_list(seed)
        found = tight_hinge(scores, relevant, case.loss)
        assert found.coefficients.sum() == pytest.approx(0.0, abs=1e-12)
        direction = np.random.default_rng(seed).normal(size=scores.size)
        step = 1e-7 * np.abs(scores).max()
        ahead, behind = (tight_hinge(scores + sign * step * direction, relevant, case.loss).value for sign in (1, -1))
        # A kink within the step would spoil the difference; at random scores there is hardly ever one.
        slope = (ahead - behind) / (2 * step)
        assert slope == pytest.approx(found.coefficients @ direction, abs=1e-4 * np.abs(direction).max())


@LOSSES
def test_it_tends_to_the_loss_as_the_scores_grow(case):
    scores, relevant = random_list(3)
    scores = scores / scores.std()
    values = [
        tight_hinge(scale * scores, relevant, case.loss).value for scale in (1.0, 10.0, 1e3, 1e6, 1e14, 1e20, 1e200)
    ]
    for value in values[3:]:
        assert value == pytest.approx(ranking_loss(scores, relevant, case.loss), abs=1e-9)
    assert np.all(np.diff(values) <= 1e-9)


def test_an_outlier_costs_nothing():
    scores, relevant = random_list(5)
    expected = tight_hinge(np.append(scores, 100.0 + scores.max()), np.append(relevant, True)).value
    assert tight_hinge(np.append(scores, 1e15), np.append(relevant, True)).value == pytest.approx(expected, rel=1e-12)


def test_coefficients_in_float32_are_rounded_once():
    rng = np.random.default_rng(0)
    scores, relevant = (1e4 * rng.normal(size=20_000)).astype(np.float32), np.arange(20_000) < 500
    narrow, wide = tight_hinge(scores, relevant), tight_hinge(scores.astype(np.float64), relevant)
    assert narrow.coefficients.dtype == np.float32
    assert np.count_nonzero(narrow.coefficients) == np.count_nonzero(wide.coefficients)
    np.testing.assert_allclose(narrow.coefficients, wide.coefficients, rtol=1e-6)


def test_ties_count_as_in_their_worst_order():
    scores, relevant = np.zeros(6), np.array([1, 0, 1, 0, 0, 0])
    assert tight_hinge(scores, relevant).value == pytest.approx(ranking_loss(scores, relevant))
    assert ranking_loss(scores, relevant) == pytest.approx(brute_force.AP.of_ranks([5, 6], 4))


def test_zero_one_has_no_rankings_to_compare():
    with pytest.raises(ValueError, match="'zero-one' has none"):
        tight_hinge([1.0, 0.0], [1, 0], "zero-one")


@pytest.mark.parametrize("far", [1e3, 1e12, 1e17, 1e300])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_samples_that_are_far_from_all_others_change_nothing(far, side):
    """Positives far above and negatives far below have their places: the rest decides."""
    scores, relevant = np.array([0.1, 0.0, 0.05, 0.2, 0.15, -0.1]), np.array([1, 0, 0, 1, 0, 1])
    if side > 0:
        outer, kind = np.full(8, far), np.ones(8, int)
    else:
        outer, kind = np.full(8, -far), np.zeros(8, int)
    found = tight_hinge(np.append(scores, outer), np.append(relevant, kind))
    near = tight_hinge(np.append(scores, np.sign(outer) * 1e3), np.append(relevant, kind))
    assert found.value == pytest.approx(near.value, rel=1e-9)


def test_rounding_lifts_it_neither_above_the_hinge_nor_above_1():
    for far in (1e12, 1e17):
        scores, relevant = [far, far, 0.1, 0.0, 0.05], [1, 1, 1, 0, 0]
        assert tight_hinge(scores, relevant).value <= structured_hinge(scores, relevant) * (1 + 1e-12)
    rng = np.random.default_rng(0)
    for _ in range(200):
        scores, relevant = 1e16 * rng.integers(0, 2, size=6), np.array([1, 0, 1, 1, 0, 0])
        assert tight_hinge(scores, relevant).value <= 1.0
