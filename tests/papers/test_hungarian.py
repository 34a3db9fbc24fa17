"""Assignments that change, against SciPy's from scratch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment

from rankhinge.papers.machines.assignment import greedy_ranking
from rankhinge.papers.machines.hungarian import Assignment


def best_value(highest, lowest, coefficients):
    table = coefficients * np.where(coefficients >= 0, highest[:, None], lowest[:, None])
    return table[linear_sum_assignment(table, maximize=True)].sum()


@given(
    n=st.integers(1, 12),
    seed=st.integers(0, 2**32 - 1),
    tied=st.booleans(),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
)
def test_every_change_is_as_good_as_a_new_assignment(n, seed, tied, scale):
    generator = np.random.default_rng(seed)
    scores = generator.integers(-3, 4, (2, n)) if tied else generator.normal(size=(2, n))
    highest, lowest = np.maximum(*scores) * scale, np.minimum(*scores) * scale
    assignment = Assignment(highest, lowest, generator.normal())
    for _ in range(3 * n):
        coefficient = float(generator.integers(-2, 3)) if tied else generator.normal()
        assignment.change(int(generator.integers(n)), coefficient)
        expected = best_value(highest, lowest, assignment.coefficients)
        assert assignment.value() == pytest.approx(expected, rel=1e-10, abs=1e-10 * scale)
    of_bags = assignment.of_bags()
    assert sorted(of_bags) == sorted(assignment.coefficients)
    worth = of_bags * np.where(of_bags >= 0, highest, lowest)
    assert worth.sum() == pytest.approx(assignment.value(), rel=1e-12, abs=1e-12 * scale)


def test_a_copy_goes_its_own_way():
    first = Assignment(np.array([3.0, 5.0]), np.array([1.0, -2.0]), 1.0)
    second = first.copy()
    second.change(0, -1.0)
    assert first.value() == 8.0
    assert second.value() == 5.0


def greedy_from_scratch(positives, negatives, loss):
    """The search of appendix C with every assignment made anew: the value it ends with."""
    P, N = positives[0].size, negatives[0].size

    def value_of(ranks):
        above = np.searchsorted(ranks, np.arange(1, P + 1), side="right")
        own = best_value(*positives, (N - 2.0 * above) / (P * N))
        return loss(above, N) + own + best_value(*negatives, (2.0 * (P + 1 - ranks) - P) / (P * N))

    ranks = np.full(N, P + 1)
    best = value_of(ranks)
    for j in range(N):
        for rank in range(P, int(ranks[j - 1]) - 1 if j else 0, -1):
            trial = ranks.copy()
            trial[j] = rank
            found = value_of(trial)
            if found > best:
                best, chosen = found, rank
                ranks = np.concatenate([ranks[:j], [chosen], ranks[j + 1 :]])
    return best


@pytest.mark.parametrize("seed", range(20))
def test_the_greedy_search_ends_where_it_would_with_new_assignments(seed):
    generator = np.random.default_rng(seed)

    def scores(n):
        both = generator.normal(size=(2, n)) * 10.0 ** generator.uniform(-1, 2)
        return both.max(axis=0), both.min(axis=0)

    def loss(above, n_negatives):
        return float(np.mean(above / (np.arange(1, above.size + 1) + above)))

    P, N = generator.integers(1, 7, 2)
    positives, negatives = scores(P), scores(N)
    found = greedy_ranking(positives, negatives, loss)
    assert found.value == pytest.approx(greedy_from_scratch(positives, negatives, loss), rel=1e-10)
    c = found.positive_coefficients, found.negative_coefficients
    worth = [np.sum(k * np.where(k >= 0, *side)) for k, side in zip(c, (positives, negatives), strict=True)]
    assert found.value == pytest.approx(found.loss + sum(worth), rel=1e-10)
