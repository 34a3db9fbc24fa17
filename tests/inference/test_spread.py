"""Inference by counts over simulated shards, against brute force and against the one in memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankhinge import losses
from rankhinge.inference import core
from rankhinge.inference.by_scores import subtract_ranking
from rankhinge.inference.callbacks import compile_loss
from rankhinge.inference.spread import BadScoreError, Count, Counts, infer_spread
from tests import brute_force
from tests.inference import small_lists
from tests.inference.cases import BY_NAME, LOSS_CASES, SHAPES, mixed
from tests.inference.spread_lists import spread_inference

MEGABYTE = 1_000_000


def positives_among(n, n_positives, rng):
    relevant = np.zeros(n, np.bool_)
    relevant[rng.choice(n, n_positives, replace=False)] = True
    return relevant


KINDS = {
    "overlapping": lambda rng, relevant: rng.normal(size=relevant.size) + relevant,
    "trained": lambda rng, relevant: relevant.size * (rng.normal(size=relevant.size) / 100 + relevant / 30),
    "tied": lambda rng, relevant: np.round(rng.normal(size=relevant.size) + relevant, 1),
    "float16": lambda rng, relevant: (rng.normal(size=relevant.size) + relevant).astype(np.float16).astype(np.float64),
    "Cauchy": lambda rng, relevant: rng.standard_cauchy(relevant.size) + relevant,
    "lognormal": lambda rng, relevant: np.exp(3 * rng.normal(size=relevant.size) + relevant),
    "clusters": lambda rng, relevant: rng.choice([0.0, 1.0], relevant.size) + 1e-9 * rng.normal(size=relevant.size),
    "constant": lambda rng, relevant: np.full(relevant.size, 3.0),
    "offset": lambda rng, relevant: 1e6 + rng.normal(size=relevant.size) + relevant,
}
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
LOSSES = {name: BY_NAME[name].loss for name in ("ap", "ndcg", "rr", "auc", "custom")}
EVERY_LOSS = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


def large_list(kind, n, n_positives):
    rng = np.random.default_rng(0)
    relevant = positives_among(n, n_positives, rng)
    return KINDS[kind](rng, relevant), relevant


@EVERY_KIND
@EVERY_LOSS
def test_exact(kind, loss):
    """Slack 0: J, and every bit of u, as in memory; few rounds, small messages."""
    scores, relevant = large_list(kind, 300_000, 1000)
    expected = core.infer_one(scores, relevant, losses.get_loss(loss))
    found = spread_inference(scores, relevant, loss, n_workers=2, most_shipped=1000)
    assert found.value == pytest.approx(expected.value, rel=1e-12)
    assert found.loss == expected.loss
    assert found.coefficients.tobytes() == expected.coefficients.tobytes()
    assert found.slack == 0.0
    assert found.n_rounds <= 8
    assert max(found.most_up, found.most_down) <= MEGABYTE


@EVERY_KIND
@EVERY_LOSS
def test_slack(kind, loss):
    """The value is less than J by no more than what is reported, which is no more than what was asked for."""
    scores, relevant = large_list(kind, 300_000, 1000)
    expected = core.infer_one(scores, relevant, losses.get_loss(loss)).value
    found = spread_inference(scores, relevant, loss, n_workers=2, slack=1e-6, most_shipped=1000)
    rounding = 1e-12 * abs(expected)
    assert -rounding <= expected - found.value <= found.slack + rounding
    assert found.slack <= 1e-6
    assert found.n_rounds <= (6 if kind in ("Cauchy", "lognormal", "trained") else 4)
    # The plane lies below J at other scores too.
    other = np.random.default_rng(1).normal(size=scores.size)
    plane = found.loss + float(found.coefficients @ (other - other.mean()))
    assert plane <= core.infer_one(other, relevant, losses.get_loss(loss)).value + 1e-9


@pytest.mark.parametrize("kind", ["overlapping", "tied", "Cauchy", "clusters"])
@pytest.mark.parametrize("slack", [0.0, 1e-6])
def test_workers_do_not_show(kind, slack):
    """The same bits of J and u for every number of workers on the same chunks; nearly so for other chunks."""
    scores, relevant = large_list(kind, 200_000, 500)
    first, *others = [
        spread_inference(scores, relevant, n_workers=w, slack=slack, most_shipped=500) for w in (1, 2, 4, 8)
    ]
    for other in others:
        assert other.value == first.value
        assert other.coefficients.tobytes() == first.coefficients.tobytes()
    bounds = np.sort(np.random.default_rng(0).integers(0, scores.size, 20))
    uneven = spread_inference(scores, relevant, bounds=[0, *bounds, scores.size], slack=slack, most_shipped=500)
    assert uneven.value == pytest.approx(first.value, rel=1e-12)
    assert uneven.coefficients.tobytes() == first.coefficients.tobytes()


@EVERY_KIND
@EVERY_LOSS
def test_tight_bound(kind, loss):
    """T and its u from the same counts, as in memory."""
    scores, relevant = large_list(kind, 100_000, 300)
    worst = core.infer_one(scores, relevant, losses.get_loss(loss))
    expected = worst.loss + subtract_ranking(scores, relevant, worst.coefficients)
    found = spread_inference(scores, relevant, loss, n_workers=2, tight=True, most_shipped=300)
    assert found.value == pytest.approx(expected, rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(found.coefficients, worst.coefficients, rtol=0, atol=1e-20)


@pytest.mark.parametrize(("n_positives", "n_negatives"), SHAPES)
def test_small_lists_against_brute_force(n_positives, n_negatives):
    """``V ≤ max over patterns ≤ V + ε`` on lists of every awkward kind, cut anywhere, with and without slack."""
    rng = np.random.default_rng([n_positives, n_negatives])
    for group in small_lists.groups(n_positives, n_negatives):
        rows = group.scores.astype(np.float64)
        positives, negatives = rows[:, :n_positives], rows[:, n_positives:]
        expected = {case.name: brute_force.hinges(positives, negatives, case.judge) for case in LOSS_CASES}
        for number, row in enumerate(rows[::2]):
            case = small_lists.loss_of(number)
            judged = expected[case.name][2 * number]
            scores, relevant = mixed(row, n_positives, rng)
            bounds = [0, *np.sort(rng.integers(0, scores.size + 1, 2)), scores.size]
            slack = float(rng.choice([0.0, 1e-3, 1.0, 1e300]))
            # Nothing is shipped where a slack is allowed: it has to be used.
            found = spread_inference(
                scores, relevant, case.loss, bounds=bounds, slack=slack, most_shipped=3 * int(slack == 0.0)
            )
            rounding = 1e-12 * (1 + abs(judged))
            where = f"{group.kind}, {case.name}, slack {slack}: {scores!r}, {relevant!r}"
            assert -rounding <= judged - found.value <= found.slack + rounding, where
            assert found.slack <= slack, where
            assert abs(found.coefficients.sum()) <= 1e-15, where


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.sampled_from([-2.0, 0.0, 1e-9, 0.5, 1.0, 1e6]), min_size=2, max_size=40),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 1e-9, 1e-2, 10.0]),
)
def test_ties(values, seed, slack):
    """Few values, many ties: bisection on j."""
    rng = np.random.default_rng(seed)
    scores = np.array(values)
    relevant = positives_among(scores.size, int(rng.integers(1, scores.size)), rng)
    expected = core.infer_one(scores, relevant, losses.get_loss("ap")).value
    found = spread_inference(scores, relevant, slack=slack, most_shipped=0)
    rounding = 1e-12 * (1 + abs(expected))
    assert -rounding <= expected - found.value <= found.slack + rounding
    assert found.slack <= slack


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e305])
def test_a_score_that_is_not_usable(bad):
    scores, relevant = large_list("overlapping", 10_000, 10)
    scores[np.flatnonzero(~relevant)[4321]] = bad
    with pytest.raises(BadScoreError):
        spread_inference(scores, relevant)


def test_empty_parts():
    scores, relevant = large_list("overlapping", 10_000, 100)
    bounds = [0, 0, 1, 1, 5000, 5000, 10_000, 10_000]
    found = spread_inference(scores, relevant, bounds=bounds, most_shipped=10)
    expected = core.infer_one(scores, relevant, losses.get_loss("ap"))
    assert found.coefficients.tobytes() == expected.coefficients.tobytes()


def test_only_counts_travel_first():
    """The first request holds no score but the ends of its grid; the parts know nothing of the loss."""
    loss = losses.get_loss("ap")
    requests = infer_spread(compile_loss(loss, 100), [np.array([1.0]), np.array([0.5])], 98, np.array([0.0, 1.0]))
    request = requests.send(None)
    assert isinstance(request, Count)
    assert request.positives is None
    reply = Counts(np.zeros(request.grid[0], np.int64), np.array([0.0]), np.array([0.0]), None, True)
    with pytest.raises(BadScoreError):
        requests.send(reply)


@pytest.mark.slow
@EVERY_KIND
@pytest.mark.parametrize("loss", ["ap", "ndcg"])
def test_ten_million(kind, loss):
    """The sizes that a cluster is for: rounds and bytes."""
    scores, relevant = large_list(kind, 10_000_000, 10_000)
    expected = core.infer_one(scores, relevant, losses.get_loss(loss))
    found = spread_inference(scores, relevant, loss, n_workers=2)
    assert found.value == pytest.approx(expected.value, rel=1e-12)
    assert found.coefficients.tobytes() == expected.coefficients.tobytes()
    assert found.n_rounds <= 8
    assert max(found.most_up, found.most_down) <= MEGABYTE
