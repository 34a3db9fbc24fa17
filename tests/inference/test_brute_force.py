"""Every loss and method against all ± patterns of small lists, in value."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rankhinge import most_violating_ranking, most_violating_rankings, structured_hinge
from tests import brute_force
from tests.inference import small_lists
from tests.inference.cases import BY_NAME, LOSS_CASES, SHAPES, mixed

EVERY_LOSS = pytest.mark.parametrize("case", LOSS_CASES, ids=lambda case: case.name)


def close(value, expected, relative=1e-12):
    """Equal up to rounding of the quantities that J is a sum of, which are of the size of 1 + J."""
    return np.abs(np.asarray(value) - expected) <= relative * (1 + np.abs(expected))


def recomputed(ranking, scores, relevant):
    """``loss + u·s``, the scores taken from the lowest positive: Σu = 0 allows it."""
    s = np.asarray(scores, np.float64)
    u = np.asarray(ranking.coefficients, np.float64)
    return ranking.loss + float(u @ (s - s[relevant].min()))


@EVERY_LOSS
@pytest.mark.parametrize(("n_positives", "n_negatives"), [(1, 1), (2, 1), (1, 3), (2, 2), (3, 2)])
def test_the_judge_against_all_orders(case, n_positives, n_negatives):
    """The patterns suffice: within a class the better sample comes first."""
    rng = np.random.default_rng(0)
    for _ in range(4):
        scores, relevant = mixed(rng.normal(size=n_positives + n_negatives), n_positives, rng)
        by_orders = brute_force.hinge_of_all_orders(scores, relevant, case.judge)
        assert brute_force.hinge(scores, relevant, case.judge) == pytest.approx(by_orders, abs=1e-13)


@EVERY_LOSS
@pytest.mark.parametrize(("n_positives", "n_negatives"), SHAPES)
def test_the_judge_states_each_loss_twice(case, n_positives, n_negatives):
    """``Δ`` by the ranks of the positives equals ``Σ_i part(i, a_i)``."""
    for pattern in brute_force.patterns(n_positives, n_negatives):
        ranks = brute_force.positive_ranks(pattern)
        parts = [case.judge.part(i, rank - i, n_positives, n_negatives) for i, rank in enumerate(ranks, 1)]
        assert sum(parts) == pytest.approx(case.judge.of_ranks(ranks, n_negatives), abs=1e-14)


def test_there_are_enough_distinct_lists():
    """At least 20,000 lists, no two the same, are compared below, each for a loss and all its methods."""
    lists = {
        (group.n_positives, group.scores.dtype.str, row.tobytes())
        for group in small_lists.all_groups()
        for row in group.scores
    }
    assert len(lists) >= 20_000


@pytest.mark.parametrize(("n_positives", "n_negatives"), SHAPES)
def test_all_methods_on_generated_lists(n_positives, n_negatives):
    """``J = max over patterns``, and ``J = loss + u·s``, ``Σu = 0``, by every method."""
    rng = np.random.default_rng(0)
    for group in small_lists.groups(n_positives, n_negatives):
        positives, negatives = group.scores[:, :n_positives], group.scores[:, n_positives:]
        expected = {case.name: brute_force.hinges(positives, negatives, case.judge) for case in LOSS_CASES}
        single = group.scores.dtype == np.float32
        for number, row in enumerate(group.scores):
            case = small_lists.loss_of(number)
            scores, relevant = mixed(row, n_positives, rng)
            for method in case.methods:
                ranking = most_violating_ranking(scores, relevant, case.loss, method)
                where = f"{group.kind}, {case.name}, {method}: {scores!r}, {relevant!r}"
                assert close(ranking.value, expected[case.name][number]), where
                again = recomputed(ranking, scores, relevant)
                assert close(again, ranking.value, 1e-6 if single else 1e-12), where
                assert abs(ranking.coefficients.sum(dtype=np.float64)) <= (2e-7 if single else 1e-15)
                assert ranking.coefficients.dtype == scores.dtype


@EVERY_LOSS
def test_all_losses_on_all_generated_lists(case):
    """Every generated list for every loss, by the batched form."""
    for dtype in (np.float64, np.float32):
        chosen = [g for g in small_lists.all_groups() if g.scores.dtype == dtype]
        scores = np.concatenate([g.scores.ravel() for g in chosen])
        relevant = np.concatenate(
            [np.tile(np.arange(g.scores.shape[1]) < g.n_positives, len(g.scores)) for g in chosen]
        )
        sizes = np.concatenate([np.full(len(g.scores), g.scores.shape[1]) for g in chosen])
        expected = np.concatenate(
            [brute_force.hinges(g.scores[:, : g.n_positives], g.scores[:, g.n_positives :], case.judge) for g in chosen]
        )
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        batch = most_violating_rankings(scores, relevant, offsets, case.loss)
        assert batch.usable.all()
        wrong = np.flatnonzero(~close(batch.values, expected))
        assert not wrong.size, scores[offsets[wrong[0]] : offsets[wrong[0] + 1]]


@EVERY_LOSS
def test_at_the_smallest_scale_only_the_loss_counts(case):
    """``J → max Δ`` as the scores shrink to 1e-300."""
    scores = 1e-300 * np.array([3.0, 1.0, -2.0, 5.0, 4.0])
    relevant = np.array([True, False, True, False, False])
    worst = case.judge.of_ranks([4, 5], 3)
    for method in case.methods:
        ranking = most_violating_ranking(scores, relevant, case.loss, method)
        assert ranking.value == pytest.approx(worst, rel=1e-14)
        assert ranking.loss == pytest.approx(worst, rel=1e-14)


@EVERY_LOSS
def test_at_the_largest_scale_only_the_scores_count(case):
    """``J → 2 / (P N) Σ max(0, n_j − p_i)`` as the scores grow to 1e300."""
    scores = 1e300 * np.array([0.5, 0.1, -1.0, 1.0, 0.4])
    relevant = np.array([True, False, True, False, False])
    pairs = np.maximum(scores[~relevant][None, :] - scores[relevant][:, None], 0)
    for method in case.methods:
        value = most_violating_ranking(scores, relevant, case.loss, method).value
        assert value == pytest.approx(2 / 6 * pairs.sum(), rel=1e-14)


@pytest.mark.parametrize("method", BY_NAME["ap"].methods)
@pytest.mark.parametrize("far", [1e6, 1e10, 1e17, 1e300])
@pytest.mark.parametrize("size", [1, 2, 40])
def test_positives_far_above_decide_nothing(method, far, size):
    """J with positives far above the rest is as accurate as J with them near: they are never out of order."""
    relevant = np.array([True] * size + [True, False])
    value = most_violating_ranking([far] * size + [0.5, 0.4], relevant, method=method).value
    # Only the last pair can be out of order: AP falls to (size + 1) / (size + 2) for one positive.
    n = size + 1
    assert value == pytest.approx(max(0.0, 1 / (n * (n + 1)) - 2 / n * (0.5 - 0.4)), abs=1e-14)


finite = st.one_of(
    st.sampled_from([0.0, 1.0, -1.0, 0.5, 1e-300, -1e300, 1e300, 1e12]),
    st.floats(-4, 4, width=32),
    st.floats(-1e300, 1e300),
)


@st.composite
def small_list(draw):
    positives = draw(st.lists(finite, min_size=1, max_size=5))
    negatives = draw(st.lists(finite, min_size=1, max_size=6))
    return positives, negatives


@EVERY_LOSS
@settings(max_examples=60)
@given(small_list())
@example(([1e300, 1e300, 0.5], [0.4]))
@example(([0.0], [0.0]))
@example(([-0.0, 0.0], [0.0, -0.0]))
@example(([5e-324], [0.0, 1e-323]))
def test_any_list(case, positives_and_negatives):
    """``J = max over patterns``, on lists that are made smaller when they fail."""
    positives, negatives = positives_and_negatives
    scores = np.array(positives + negatives)
    relevant = np.arange(scores.size) < len(positives)
    expected = brute_force.hinge(scores, relevant, case.judge)
    for method in case.methods:
        ranking = most_violating_ranking(scores, relevant, case.loss, method)
        assert close(ranking.value, expected)
        assert close(recomputed(ranking, scores, relevant), expected)
    assert close(structured_hinge(scores, relevant, case.loss), expected)


@settings(max_examples=60)
@given(small_list())
def test_any_list_in_float32(positives_and_negatives):
    """float32 scores are used as they are: J is that of the same numbers in float64."""
    positives, negatives = positives_and_negatives
    with np.errstate(over="ignore", under="ignore"):
        scores = np.clip(np.array(positives + negatives), -1e38, 1e38).astype(np.float32)
    relevant = np.arange(scores.size) < len(positives)
    expected = brute_force.hinge(scores, relevant, brute_force.AP)
    ranking = most_violating_ranking(scores, relevant)
    assert close(ranking.value, expected)
    assert close(recomputed(ranking, scores, relevant), expected, 1e-6)
