"""Intervals and tests: formulas by hand, symmetry, edges, and, in slow tests, how often intervals hold the truth."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from rankhinge import metrics


def many_queries(n_queries=40, seed=0):
    rng = np.random.default_rng(seed)
    y = np.tile([1, 1, 0, 0, 0], n_queries)
    first, second = (strength * y + rng.normal(size=y.size) for strength in (0.5, 1.5))
    return y, first, second, np.repeat(np.arange(n_queries), 5)


def test_interval_contains_the_value_and_shrinks():
    y, scores, _, qid = many_queries(400)
    wide = metrics.interval("ap", y[:200], scores[:200], qid=qid[:200])
    narrow = metrics.interval("ap", y, scores, qid=qid)
    assert wide.low < wide.value < wide.high
    assert narrow.high - narrow.low < wide.high - wide.low
    assert narrow.value == metrics.average_precision(y, scores, qid=qid)


def test_interval_is_near_the_normal_one():
    y, scores, _, qid = many_queries(2000)
    _, values = metrics.per_query("ap", y, scores, qid)
    error = values.std(ddof=1) / np.sqrt(values.size)
    found = metrics.interval("ap", y, scores, qid=qid)
    assert found.low == pytest.approx(values.mean() - 1.96 * error, abs=0.1 * error)
    assert found.high == pytest.approx(values.mean() + 1.96 * error, abs=0.1 * error)


def test_interval_of_rows_is_near_that_of_a_proportion():
    """Precision at all rows is the share of positives, whose standard error is known."""
    rng = np.random.default_rng(0)
    y, n = rng.random(400) < 0.3, 400
    found = metrics.interval("precision@400", y, rng.normal(size=n))
    error = np.sqrt(found.value * (1 - found.value) / n)
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.12)


def test_randomisation_is_exact_for_few_queries():
    y, first, second, qid = many_queries(6)
    _, before = metrics.per_query("ap", y, first, qid)
    _, after = metrics.per_query("ap", y, second, qid)
    differences = after - before
    flips = np.array(list(itertools.product([-1, 1], repeat=differences.size)))
    means = (flips * differences).mean(axis=1)
    one_sided = min(np.mean(means >= differences.mean() - 1e-12), np.mean(means <= differences.mean() + 1e-12))
    found = metrics.compare("ap", y, first, second, qid=qid)
    assert found.p_value == pytest.approx(min(1.0, 2 * one_sided))
    assert found.difference == pytest.approx(differences.mean())


@pytest.mark.parametrize("with_queries", [True, False])
def test_exchanged_models_change_the_sign(with_queries):
    y, first, second, qid = many_queries()
    qid = qid if with_queries else None
    there = metrics.compare("ap", y, first, second, qid=qid)
    back = metrics.compare("ap", y, second, first, qid=qid)
    assert there.difference == pytest.approx(-back.difference)
    assert there.p_value == pytest.approx(back.p_value, abs=0.02)
    assert there.p_value < 0.05
    assert there.low == pytest.approx(-back.high, abs=0.02)


@pytest.mark.parametrize("with_queries", [True, False])
def test_a_model_does_not_differ_from_itself(with_queries):
    y, first, _, qid = many_queries()
    found = metrics.compare("ap", y, first, 2 * first, qid=qid if with_queries else None)
    assert found == (0.0, 0.0, 0.0, 1.0)


def test_edges():
    perfect = metrics.interval("ap", [1, 0, 1, 0], [3, 1, 2, 0], qid=[0, 0, 1, 1])
    assert perfect == (1.0, 1.0, 1.0)
    assert metrics.interval("ap", [1, 0, 0], [3, 2, 1]) == (1.0, 1.0, 1.0)
    nothing = metrics.interval("ap", [0, 0], [1, 2], qid=[0, 0])
    assert np.isnan(nothing).all()
    one = metrics.interval("ap", [0, 1], [2, 1], qid=[5, 5])
    assert one == (0.5, 0.5, 0.5)
    assert np.isnan(metrics.compare("ap", [0, 0], [1, 2], [2, 1], qid=[0, 0])).all()


def test_the_same_seed_gives_the_same_interval():
    y, first, second, qid = many_queries()
    assert metrics.interval("ap", y, first, qid=qid) == metrics.interval("ap", y, first, qid=qid)
    assert metrics.compare("ap", y, first, second) == metrics.compare("ap", y, first, second)


def test_refusals():
    with pytest.raises(ValueError, match=r"confidence is 95: it must lie between 0 and 1, for example 0\.95"):
        metrics.interval("ap", [1, 0], [1, 0], confidence=95)
    with pytest.raises(ValueError, match=r"each have one entry per row, got the shapes \(2,\), \(3,\)"):
        metrics.interval("ap", [1, 0], [1, 0, 2])


def test_holm_by_hand():
    assert metrics.holm([]).tolist() == []
    assert metrics.holm([0.5]).tolist() == [0.5]
    # 4 × 0.01; 3 × 0.02; the larger of that and 2 × 0.02; never above 1.
    assert metrics.holm([0.02, 0.9, 0.01, 0.02]) == pytest.approx([0.06, 0.9, 0.04, 0.06])


def simulated(rng, n_queries):
    """Queries of ten documents, one to four of them relevant, and two models, the second one a little better."""
    n_relevant = rng.integers(1, 5, n_queries)
    y = (np.arange(10) < n_relevant[:, None]).astype(int)
    # Queries differ in how hard they are, for both models.
    ease = rng.normal(size=(n_queries, 1))
    noise = rng.normal(size=(n_queries, 10))
    first = (0.8 + ease) * y + noise + 0.7 * rng.normal(size=noise.shape)
    second = (1.0 + ease) * y + noise + 0.7 * rng.normal(size=noise.shape)
    return y.ravel(), first.ravel(), second.ravel(), np.repeat(np.arange(n_queries), 10)


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["ap", "ndcg@3"])
def test_coverage_of_intervals(metric):
    """Nominal 95 % intervals hold the truth in 93 to 97 % of 2,000 sets of 200 queries."""
    rng = np.random.default_rng(0)
    y, first, second, qid = simulated(rng, 400_000)
    _, before = metrics.per_query(metric, y, first, qid)
    _, after = metrics.per_query(metric, y, second, qid)
    truth, gain = after.mean(), (after - before).mean()
    held = np.zeros(2)
    n_sets = 2000
    for _ in range(n_sets):
        y, first, second, qid = simulated(rng, 200)
        value = metrics.interval(metric, y, second, qid=qid)
        difference = metrics.compare(metric, y, first, second, qid=qid)
        held += [value.low <= truth <= value.high, difference.low <= gain <= difference.high]
    print(
        f"\n{metric}: intervals of a model hold the truth in {held[0] / n_sets:.1%}, "
        f"of a difference in {held[1] / n_sets:.1%}"
    )
    assert np.all((held >= 0.93 * n_sets) & (held <= 0.97 * n_sets))
