"""Lists too long for brute force: the methods against each other and against exact sums."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rankhinge import most_violating_ranking
from tests import brute_force
from tests.inference.cases import BY_NAME, KINDS, LOSS_CASES, large_list

EVERY_LOSS = pytest.mark.parametrize("case", LOSS_CASES, ids=lambda case: case.name)
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)

# J is a sum of N terms, each rounded once; that errors add up as N does is prevented by summing in blocks.
CLOSE = 1e-12


def scale(scores, relevant, ranking):
    """What rounding errors of J are relative to: 1 + Σ |u| |s − c|, with c the lowest positive."""
    distances = np.abs(scores - scores[relevant].min())
    return 1 + float(np.abs(ranking.coefficients) @ distances)


def check_ranking(ranking, scores, relevant, judge):
    """`value` and `loss` are those of the ranking that `order` tells, summed without rounding."""
    value, loss = brute_force.value_of_order(scores, relevant, ranking.order, judge)
    allowed = CLOSE * scale(scores, relevant, ranking)
    assert ranking.loss == pytest.approx(loss, rel=1e-11, abs=1e-14)
    assert ranking.value == pytest.approx(value, rel=0, abs=allowed)


def check_methods(kind, case, n_positives, n_negatives, methods):
    """All methods have the same J."""
    scores, relevant = large_list(kind, n_positives, n_negatives)
    rankings = [most_violating_ranking(scores, relevant, case.loss, m) for m in methods]
    allowed = CLOSE * scale(scores, relevant, rankings[0])
    for method, ranking in zip(methods, rankings):
        assert ranking.value == pytest.approx(rankings[0].value, rel=0, abs=allowed), method
    check_ranking(rankings[0], scores, relevant, case.judge)


@EVERY_LOSS
@EVERY_KIND
@pytest.mark.parametrize(("n_positives", "n_negatives"), [(7, 40), (40, 7), (30, 190), (5, 193), (60, 500), (500, 60)])
def test_short_lists(kind, case, n_positives, n_negatives):
    """The path for few negatives and the one that counts them in buckets (more than 192), by all methods."""
    check_methods(kind, case, n_positives, n_negatives, case.methods)


@EVERY_LOSS
@EVERY_KIND
def test_each_negative_for_itself(kind, case):
    """``J = Σ_j max_i f_j(i)`` and the ranks ascend: what makes the losses suitable."""
    scores, relevant = large_list(kind, 12, 300)
    ranks, values = brute_force.best_ranks(scores, relevant, case.judge)
    expected = math.fsum(values)
    assert (np.diff(ranks) >= 0).all()
    for method in case.methods:
        ranking = most_violating_ranking(scores, relevant, case.loss, method)
        allowed = CLOSE * scale(scores, relevant, ranking)
        assert ranking.value == pytest.approx(expected, rel=0, abs=allowed), method


def check_ties(ranking, scores, relevant):
    """Equal scores of one class share one coefficient."""
    for chosen in (relevant, ~relevant):
        _, tied = np.unique(scores[chosen], return_inverse=True)
        u = ranking.coefficients[chosen]
        first = np.zeros(tied.max() + 1)
        first[tied] = u
        np.testing.assert_array_equal(u, first[tied])


@pytest.mark.parametrize("name", ["ap", "ndcg", "rr", "auc", "rbp", "custom"])
@pytest.mark.parametrize(("n_positives", "n_negatives"), [(1, 300), (12, 200), (40, 3000), (900, 1000)])
@pytest.mark.parametrize("decimals", [0, 1, 15])
def test_from_overlapping_to_separated(name, n_positives, n_negatives, decimals):
    """From no negative with the last rank to all of them: each way of settling that rank, with ties and without."""
    case = BY_NAME[name]
    rng = np.random.default_rng(n_positives)
    relevant = np.zeros(n_positives + n_negatives, bool)
    relevant[rng.choice(relevant.size, n_positives, replace=False)] = True
    for shift in (-3.0, 0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 9.0, 13.0, 20.0, 40.0, 1000.0):
        scores = np.round(rng.normal(size=relevant.size) + shift * relevant, decimals)
        ranking, slow = (most_violating_ranking(scores, relevant, case.loss, m) for m in ("auto", "greedy"))
        assert ranking.value == pytest.approx(slow.value, rel=0, abs=CLOSE * scale(scores, relevant, slow))
        check_ranking(ranking, scores, relevant, case.judge)
        check_ties(ranking, scores, relevant)


@pytest.mark.parametrize("period", [1, 2, 7, 79])
def test_a_misleading_sample_of_a_short_list(period):
    """Scores that return with a period: those looked at first may all be high, or all low."""
    n = 5000
    rng = np.random.default_rng(0)
    for offset in range(0, period, 3):
        for high, low in ((3.0, -3.0), (-3.0, 3.0), (-3.0, -30.0)):
            scores = np.where(np.arange(n) % period == offset, high, low) + rng.normal(size=n)
            relevant = np.arange(n) % 83 == 1
            scores[relevant] = 2 + rng.normal(size=relevant.sum())
            one, other = (most_violating_ranking(scores, relevant, method=m) for m in ("auto", "quicksort"))
            assert one.value == pytest.approx(other.value, rel=CLOSE)


@EVERY_KIND
@pytest.mark.parametrize("name", ["ap", "ndcg"])
@pytest.mark.parametrize(("n_positives", "n_negatives"), [(300, 20_000), (1000, 100_000)])
def test_counted_lists(kind, name, n_positives, n_negatives):
    methods = ["auto", "quicksort"] + ["greedy"] * (n_negatives < 50_000)
    methods += ["search", "select", "quicksort-search"] * (name == "ap")
    check_methods(kind, BY_NAME[name], n_positives, n_negatives, methods)


@EVERY_KIND
@pytest.mark.parametrize(("name", "n_positives"), [("ap", 1000), ("ndcg", 10_000)])
def test_long_lists(kind, name, n_positives):
    """The path for long lists. None is quadratic in anything: 10^12 operations would not come to an end here."""
    check_methods(kind, BY_NAME[name], n_positives, 1_000_000, ["auto", "quicksort"])


@EVERY_KIND
def test_long_lists_by_the_methods_for_ap(kind):
    check_methods(kind, BY_NAME["ap"], 50, 300_000, ["auto", "search", "select", "quicksort", "quicksort-search"])


@EVERY_LOSS
@pytest.mark.parametrize("kind", ["overlapping", "trained", "separated", "two values", "Cauchy"])
def test_all_losses_on_long_lists(kind, case):
    """Both ways through a long list, collecting and counting, for every loss."""
    check_methods(kind, case, 200, 280_000, ["auto", "quicksort"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_negatives", [100, 5000, 280_000])
def test_float32(kind, n_negatives):
    """The same J from float32 scores as from these scores in float64."""
    scores, relevant = large_list(kind, 40, n_negatives)
    single = np.clip(scores, -1e30, 1e30).astype(np.float32)
    double = single.astype(np.float64)
    for method in ("auto", "quicksort"):
        one = most_violating_ranking(single, relevant, method=method)
        other = most_violating_ranking(double, relevant, method=method)
        assert one.coefficients.dtype == np.float32
        assert one.value == pytest.approx(other.value, rel=0, abs=CLOSE * scale(double, relevant, other))
        np.testing.assert_allclose(one.coefficients, other.coefficients, rtol=1e-6)


@pytest.mark.parametrize("n_negatives", [1, 2, 5, 8000])
def test_nearly_all_are_positive(n_negatives):
    """Long lists with few negatives: a sample of the list may hold none."""
    scores, relevant = large_list("overlapping", 270_000, n_negatives)
    check_methods("overlapping", BY_NAME["ndcg"], 270_000, n_negatives, ["auto", "quicksort"])
    assert most_violating_ranking(scores, ~relevant, "ndcg").value > 0


def test_a_misleading_sample():
    """Every stride-th score is low, all others high: what the sample promises does not hold, J does."""
    n = 1 << 18
    rng = np.random.default_rng(0)
    for period in (2, 4, 8, 16, 32):
        scores = np.where(np.arange(n) % period == 0, -5.0, 5.0) + rng.normal(size=n)
        relevant = np.arange(n) % 1021 == 1
        scores[relevant] = rng.normal(size=relevant.sum())
        rankings = [most_violating_ranking(scores, relevant, method=m) for m in ("auto", "quicksort")]
        assert rankings[0].value == pytest.approx(rankings[1].value, rel=CLOSE)


@pytest.mark.parametrize("n_positives", [1, 3])
def test_a_sample_of_the_best(n_positives):
    """Every score that the sample sees is high: it takes the cut for deep in the list, where it is not.

    At the cut's true place the loss still outweighs the scores, and negatives below it have ranks up to P.
    """
    n, stride = 1 << 18, 16
    scores = np.full(n, -1e3)
    sampled = np.arange(0, n, stride)
    scores[sampled] = -3 - 1e-3 * np.arange(sampled.size)
    relevant = np.zeros(n, bool)
    relevant[1 : n_positives + 1] = True
    scores[relevant] = 0.0
    one, other = (most_violating_ranking(scores, relevant, method=m) for m in ("auto", "quicksort"))
    assert one.value == pytest.approx(other.value, rel=CLOSE)
    # More negatives are out of order than the sample's margin would have let through.
    assert (one.coefficients > 0).sum() > 50


def test_scores_at_both_ends_of_the_range():
    """±1e300 and numbers below the smallest normal one on the long path."""
    rng = np.random.default_rng(0)
    n = 300_000
    relevant = rng.random(n) < 0.001
    for values in ([-1e300, 1e300], [5e-324, 1e-323, -5e-324, 0.0], [1e-310, 1.0, 1e300]):
        scores = rng.choice(values, n)
        rankings = [most_violating_ranking(scores, relevant, method=m) for m in ("auto", "quicksort")]
        assert rankings[0].value == pytest.approx(rankings[1].value, rel=CLOSE)
