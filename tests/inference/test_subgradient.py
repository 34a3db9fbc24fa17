"""J as a function of the scores: its identities, its subgradient, its convexity, its symmetries."""

from __future__ import annotations

import numpy as np
import pytest

from rankhinge import most_violating_ranking, structured_hinge
from tests import brute_force
from tests.inference.cases import BY_NAME, LOSS_CASES, large_list, random_list

EVERY_LOSS = pytest.mark.parametrize("case", LOSS_CASES, ids=lambda case: case.name)
# The path for few negatives, the one that counts, and the one for long lists.
SIZES = pytest.mark.parametrize(("n_positives", "n_negatives"), [(1, 1), (3, 4), (20, 60), (15, 400), (30, 270_000)])


def ranked_by_score(scores, relevant):
    return np.argsort(-scores, kind="stable")


@EVERY_LOSS
@SIZES
def test_identities(case, n_positives, n_negatives):
    """``J = loss + u·s``, ``Σu = 0``, ``J ≥ Δ(ranking by s) ≥ 0``; u has the signs of its definition."""
    rng = np.random.default_rng(0)
    for overlap in (-1.0, 0.5, 3.0):
        scores, relevant = random_list(rng, n_positives, n_negatives, overlap)
        ranking = most_violating_ranking(scores, relevant, case.loss)
        u = ranking.coefficients
        assert ranking.value == pytest.approx(ranking.loss + u @ scores, abs=1e-12)
        assert u.sum() == pytest.approx(0, abs=1e-14)
        order = ranked_by_score(scores, relevant)
        _, loss = brute_force.value_of_order(scores, relevant, order, case.judge)
        assert ranking.value >= loss - 1e-14
        assert loss >= 0
        assert ranking.value == structured_hinge(scores, relevant, case.loss)
        assert 0 <= ranking.loss <= 1
        assert (u[relevant] <= 0).all()
        assert (u[~relevant] >= 0).all()
        assert np.abs(u[relevant]).max() <= 2 / n_positives * (1 + 1e-15)
        assert u[~relevant].max() <= 2 / n_negatives * (1 + 1e-15)


@EVERY_LOSS
@SIZES
def test_finite_differences(case, n_positives, n_negatives):
    """``(J(s + h d) − J(s − h d)) / 2h = u·d`` where J has no kink between the two points."""
    rng = np.random.default_rng(1)
    h = 1e-6
    n_smooth = 0
    for _ in range(12):
        scores, relevant = random_list(rng, n_positives, n_negatives, rng.uniform(-1, 2))
        direction = rng.normal(size=scores.size)
        ranking = most_violating_ranking(scores, relevant, case.loss)
        above = structured_hinge(scores + h * direction, relevant, case.loss)
        below = structured_hinge(scores - h * direction, relevant, case.loss)
        # J is convex: where its second difference is zero it is linear in between.
        if above + below - 2 * ranking.value <= 4e-15:
            n_smooth += 1
            slope = (above - below) / (2 * h)
            assert slope == pytest.approx(ranking.coefficients @ direction, abs=1e-8)
    assert n_smooth >= (6 if n_negatives < 100_000 else 0)


@EVERY_LOSS
def test_each_coefficient_is_a_partial_derivative(case):
    """``u_k = ∂J / ∂s_k``, one sample at a time."""
    rng = np.random.default_rng(2)
    scores, relevant = random_list(rng, 5, 9, 0.5)
    u = most_violating_ranking(scores, relevant, case.loss).coefficients
    for k, shift in enumerate(1e-6 * np.eye(scores.size)):
        slope = (
            structured_hinge(scores + shift, relevant, case.loss)
            - structured_hinge(scores - shift, relevant, case.loss)
        ) / 2e-6
        assert slope == pytest.approx(u[k], abs=1e-8)


@EVERY_LOSS
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(("n_positives", "n_negatives"), [(2, 3), (20, 60), (15, 400)])
def test_subgradient_inequality(case, tied, n_positives, n_negatives):
    """``J(s') ≥ J(s) + u·(s' − s)`` for all s', near and far, with and without ties in s."""
    rng = np.random.default_rng(3)
    for scale in (1e-3, 0.1, 1.0, 30.0):
        scores, relevant = random_list(rng, n_positives, n_negatives)
        if tied:
            scores = np.round(2 * scores) / 2
        ranking = most_violating_ranking(scores, relevant, case.loss)
        for _ in range(10):
            shift = scale * rng.normal(size=scores.size)
            value = structured_hinge(scores + shift, relevant, case.loss)
            assert value >= ranking.value + ranking.coefficients @ shift - 1e-12


@EVERY_LOSS
@pytest.mark.parametrize(("n_positives", "n_negatives"), [(2, 3), (20, 60), (15, 400)])
def test_convex_along_lines(case, n_positives, n_negatives):
    """``J((1 − λ) s + λ s') ≤ (1 − λ) J(s) + λ J(s')``."""
    rng = np.random.default_rng(4)
    for _ in range(10):
        one, relevant = random_list(rng, n_positives, n_negatives)
        other = rng.choice([0.1, 1.0, 10.0]) * rng.normal(size=one.size)
        ends = [structured_hinge(s, relevant, case.loss) for s in (one, other)]
        for part in rng.random(4):
            value = structured_hinge((1 - part) * one + part * other, relevant, case.loss)
            assert value <= (1 - part) * ends[0] + part * ends[1] + 1e-12


@EVERY_LOSS
@pytest.mark.parametrize("tied", [False, True])
@SIZES
def test_the_order_of_the_samples_does_not_matter(case, tied, n_positives, n_negatives):
    """``J(s[π]) = J(s)`` and ``u(s[π]) = u(s)[π]``."""
    rng = np.random.default_rng(5)
    scores, relevant = random_list(rng, n_positives, n_negatives)
    if tied:
        scores = np.round(3 * scores) / 3
    ranking = most_violating_ranking(scores, relevant, case.loss)
    order = rng.permutation(scores.size)
    for method in case.methods if scores.size < 1000 else ("auto", "quicksort"):
        other = most_violating_ranking(scores[order], relevant[order], case.loss, method)
        assert other.value == pytest.approx(ranking.value, rel=1e-13)
        if tied and case.name == "rbp":
            # Deep in the list 0.9^j is lost beside any score: equal scores are as good on either side.
            continue
        np.testing.assert_allclose(other.coefficients, ranking.coefficients[order], rtol=1e-14, atol=1e-18)


@EVERY_LOSS
@SIZES
@pytest.mark.parametrize("offset", [2.0**20, -(2.0**32)])
def test_an_offset_changes_nothing(case, n_positives, n_negatives, offset):
    """``J(s + c) = J(s)`` and the same u, for scores to which c can be added without rounding."""
    rng = np.random.default_rng(6)
    scores, relevant = random_list(rng, n_positives, n_negatives)
    scores = np.round(scores * 2**20) / 2**20
    one = most_violating_ranking(scores, relevant, case.loss)
    other = most_violating_ranking(scores + offset, relevant, case.loss)
    assert other.value == pytest.approx(one.value, rel=1e-13)
    assert other.loss == pytest.approx(one.loss, rel=1e-13)
    np.testing.assert_allclose(other.coefficients, one.coefficients, rtol=1e-14, atol=1e-18)


@pytest.mark.parametrize("method", BY_NAME["ap"].methods)
@pytest.mark.parametrize("kind", ["two values", "integers", "constant"])
@pytest.mark.parametrize("n_negatives", [50, 3000, 270_000])
def test_tied_samples_share_the_mean(method, kind, n_negatives):
    """Within a class equal scores have equal u: the mean of what the index-wise ranks would give them."""
    if method == "greedy" and n_negatives > 100_000:
        pytest.skip("O(P N)")
    scores, relevant = large_list(kind, 40, n_negatives)
    ranking = most_violating_ranking(scores, relevant, method=method)
    by_index = brute_force.coefficients_of_order(relevant, ranking.order)
    for score in np.unique(scores):
        for group in (relevant & (scores == score), ~relevant & (scores == score)):
            if group.any():
                shared = np.unique(ranking.coefficients[group])
                assert shared.size == 1
                assert shared[0] == pytest.approx(by_index[group].mean(), rel=1e-12, abs=1e-18)


@pytest.mark.parametrize("method", BY_NAME["ap"].methods)
def test_a_tied_group_straddles_ranks(method):
    """One positive at 0.02, 1000 negatives at 0: 157 of them get rank 1 and 843 rank 2."""
    scores = np.concatenate([[0.02], np.zeros(1000)])
    relevant = np.arange(1001) == 0
    ranking = most_violating_ranking(scores, relevant, method=method)
    ranks, how_many = np.unique(ranking.interleaving_ranks, return_counts=True)
    assert ranks.tolist() == [1, 2]
    assert how_many.tolist() == [157, 843]
    np.testing.assert_array_equal(ranking.interleaving_ranks, np.sort(ranking.interleaving_ranks))
    np.testing.assert_allclose(ranking.coefficients[1:], 2 / 1000 * 0.157, rtol=1e-14)
    assert ranking.coefficients[0] == pytest.approx(-2 * 0.157, rel=1e-14)
    assert ranking.loss == pytest.approx(157 / 158, rel=1e-14)
    assert ranking.value == pytest.approx(157 / 158 - 2 * 0.157 * 0.02, rel=1e-14)


@EVERY_LOSS
def test_constant_scores(case):
    """All scores equal: J is the largest loss, and u is the mean over each class."""
    scores, relevant = large_list("constant", 6, 300)
    ranking = most_violating_ranking(scores, relevant, case.loss)
    worst = case.judge.of_ranks(np.arange(301, 307), 300)
    assert ranking.value == pytest.approx(worst, rel=1e-12)
    assert np.unique(ranking.coefficients).size == 2
