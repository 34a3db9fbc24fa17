"""Losses with a cut: exact against all patterns, and what must hold of their bounds."""

from __future__ import annotations

import numpy as np
import pytest

from rankhinge import (
    losses,
    metrics,
    most_violating_ranking,
    most_violating_rankings,
    ranking_loss,
    structured_hinge,
    tight_hinge,
)
from rankhinge.inference.by_scores import subtract_rankings
from rankhinge.losses import check_suitable, get_loss
from rankhinge.losses.cut import parse_depth
from rankhinge.metrics._per_query import metric_named
from tests import brute_force
from tests.inference import small_lists
from tests.inference.cases import KINDS, SHAPES, large_list, random_list
from tests.losses import cuts

EVERY_CUT = pytest.mark.parametrize("kind", cuts.ALL)
# The full numbers are for `make test-full`.
SOME_OR_ALL = pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.slow)])
DEPTHS = range(1, 13)


def close(found, expected, scale):
    return np.abs(found - expected) <= 1e-12 * np.maximum(1.0, np.abs(expected)) + 1e-12 * scale


@SOME_OR_ALL
@EVERY_CUT
def test_generated_lists_against_all_patterns(kind, every):
    """25,000 lists for each loss: every k from 1 to beyond n, ties, P < k, N < k, every scale, float32."""
    n_cases = 0
    for place, (n_positives, n_negatives) in enumerate(SHAPES):
        for number, group in enumerate(small_lists.groups(n_positives, n_negatives)):
            k = None if kind == "r-precision" else DEPTHS[(place + number) % len(DEPTHS)]
            loss, judge = cuts.make(kind, k), cuts.judge(kind, k)
            scores = group.scores[::every]
            expected = brute_force.hinges(scores[:, :n_positives], scores[:, n_positives:], judge)
            n_lists, n = scores.shape
            relevant = np.tile(np.arange(n) < n_positives, n_lists)
            offsets = np.arange(n_lists + 1) * n
            batch = most_violating_rankings(scores.ravel(), relevant, offsets, loss)
            wide = scores.astype(np.float64)
            assert close(batch.values, expected, 0.0).all(), (group.kind, k)
            u = batch.coefficients.reshape(scores.shape).astype(np.float64)
            # J = loss + u·s, around the mean, which Σu = 0 allows; float32 rounds u.
            with np.errstate(over="ignore"):
                centred = wide - np.median(wide, axis=1)[:, None]
                size = np.abs(u * centred).sum(axis=1)
                value = batch.losses + (u * centred).sum(axis=1)
            rounding = 1e-13 if scores.dtype == np.float64 else 1e-6
            finite = np.isfinite(size)
            assert (np.abs(value - batch.values)[finite] <= 1e-12 + rounding * size[finite]).all(), (group.kind, k)
            n_cases += n_lists
    assert n_cases >= 20_000 / every


@EVERY_CUT
def test_every_depth_on_lists_where_ranks_are_contested(kind):
    """Scores of the size of ``P N / 2``, at which loss and score are of one order; one list at a time."""
    rng = np.random.default_rng(0)
    for n_positives, n_negatives in SHAPES[::2]:
        for k in DEPTHS if kind != "r-precision" else [None] * 3:
            scores, relevant = random_list(rng, n_positives, n_negatives, overlap=0.5)
            scores = np.round(scores, 1) * n_positives * n_negatives / rng.choice([2, 4, 8])
            loss = cuts.make(kind, k)
            ranking = most_violating_ranking(scores, relevant, loss)
            expected = brute_force.hinge(scores, relevant, cuts.judge(kind, k))
            assert ranking.value == pytest.approx(expected, rel=1e-12, abs=1e-13)
            value, delta = brute_force.value_of_order(scores, relevant, ranking.order, cuts.judge(kind, k))
            assert ranking.value == pytest.approx(value, rel=1e-12, abs=1e-13)
            assert ranking.loss == pytest.approx(delta, abs=1e-13)
            assert abs(ranking.coefficients.sum()) < 1e-13


@SOME_OR_ALL
@EVERY_CUT
def test_u_is_the_finite_difference(kind, every):
    """Away from kinks: where u is the same on both sides."""
    rng = np.random.default_rng(1)
    step, n_lists, compared = 1e-6, 360 // every, 0
    for place, (n_positives, n_negatives) in enumerate(SHAPES):
        k = None if kind == "r-precision" else DEPTHS[place % len(DEPTHS)]
        n = n_positives + n_negatives
        relevant = np.arange(n) < n_positives
        scores = (rng.normal(size=(n_lists, n)) + 0.3 * relevant) * n_positives * n_negatives / 4
        # Of each list: itself, and with one score after the other a little higher and a little lower.
        moves = step * np.concatenate([np.zeros((1, n)), np.eye(n), -np.eye(n)])
        moved = scores[:, None, :] + moves
        offsets = np.arange(n_lists * len(moves) + 1) * n
        batch = most_violating_rankings(moved.ravel(), np.tile(relevant, offsets.size - 1), offsets, cuts.make(kind, k))
        u = batch.coefficients.reshape(moved.shape)
        values = batch.values.reshape(moved.shape[:2])
        is_smooth = (u == u[:, :1]).all(axis=2)
        is_smooth = is_smooth[:, 1 : n + 1] & is_smooth[:, n + 1 :]
        differences = (values[:, 1 : n + 1] - values[:, n + 1 :]) / (2 * step)
        assert np.abs(differences - u[:, 0])[is_smooth].max(initial=0.0) <= 1e-8
        compared += np.count_nonzero(is_smooth.any(axis=1))
    assert compared >= 10_000 / every


@EVERY_CUT
def test_bounds_in_order_and_convex(kind):
    """``Δ ≤ T ≤ J``, and J is convex along lines with u as a subgradient."""
    rng = np.random.default_rng(2)
    for size in (12, 60):
        for _ in range(40):
            loss = cuts.make(kind, None if kind == "r-precision" else int(rng.integers(1, 20)))
            (a, relevant), b = random_list(rng, size // 4, size), rng.normal(size=size + size // 4)
            a, b = a * rng.choice([0.1, 10.0, 100.0]), b * 30
            first, second = (most_violating_ranking(s, relevant, loss) for s in (a, b))
            assert ranking_loss(a, relevant, loss) <= tight_hinge(a, relevant, loss).value + 1e-13
            assert tight_hinge(a, relevant, loss).value <= first.value + 1e-12
            share = rng.uniform()
            between = structured_hinge(share * a + (1 - share) * b, relevant, loss)
            assert between <= share * first.value + (1 - share) * second.value + 1e-10
            assert second.value >= first.value + first.coefficients @ (b - a) - 1e-10


def slow_twin(scores, relevant, kind, k):
    """``T`` in O(k n), by the formulas: each m, each negative of the block for itself."""
    p, n = np.sort(scores[relevant])[::-1], np.sort(scores[~relevant])[::-1]
    unit, depth = 2.0 / p.size / n.size, min(k or p.size, scores.size)
    most = min(depth, p.size)
    places = np.arange(1, scores.size + 2)
    discount = {"ndcg": 1 / np.log2(1.0 + places), "dcg": 1.0 / places}.get(kind, np.ones(places.size))
    if kind == "hit":
        discount = (places == 1) * 1.0
    ideal = discount[:most].sum()
    norm = {"precision": depth, "recall": p.size, "r-precision": p.size, "f1": (depth + p.size) / 2}.get(kind, ideal)
    best = -np.inf
    extra = np.zeros(depth)
    for m in range(most + 1):
        q = depth - m
        if m > 0 and kind in cuts.ORDERED and q > 0:
            j = np.arange(1, depth + 1)
            step = m / ((m + j) * (m + j - 1.0)) if kind == "ap" else discount[m + j - 2] - discount[m + j - 1]
            ahead = np.maximum(0.0, p[m - 1] - np.pad(n, (0, max(0, depth - n.size)))[:depth])
            extra = np.maximum(0.0, extra + step / norm - unit * ahead)
        if q > n.size:
            continue
        above = np.maximum(0.0, p[m:, None] - n[None, :q]).sum() if p[m:].size * q < 3e7 else np.inf
        below = np.maximum(0.0, n[None, q : q + depth] - p[:m, None]).sum()
        best = max(best, discount[m:most].sum() / norm + extra[:q].sum() - unit * (above + below))
    return best


@pytest.mark.parametrize("kind", ["ndcg", "ap", "precision", "recall", "r-precision"])
@pytest.mark.parametrize(
    "scores_kind", ["overlapping", "trained", "integers", "two values", "wrong way round", "Cauchy"]
)
@pytest.mark.parametrize(
    ("n_negatives", "k"), [(5_000, 10), (300_000, 60), pytest.param(1_000_000, 100, marks=pytest.mark.slow)]
)
def test_long_lists_against_the_slow_twin(kind, scores_kind, n_negatives, k):
    n_positives = 60 if kind == "r-precision" else 300
    for dtype in (np.float64, np.float32):
        given, relevant = large_list(scores_kind, n_positives, n_negatives)
        given = given.astype(dtype)
        scores = given.astype(np.float64)
        loss = cuts.make(kind, None if kind == "r-precision" else k)
        expected = slow_twin(scores, relevant, kind, None if kind == "r-precision" else k)
        found = tight_hinge(scores, relevant, loss).value
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-11)
        ranking = most_violating_ranking(given, relevant, loss)
        assert ranking.coefficients.dtype == dtype
        u = np.zeros_like(scores)
        by_scores = -subtract_rankings(scores, relevant, np.array([0, scores.size]), u)[0]
        assert ranking.value == pytest.approx(by_scores + expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("kind", ["ndcg", "precision", "r-precision"])
@pytest.mark.parametrize("scores_kind", ["overlapping", "integers", "constant"])
def test_same_bits_whatever_the_threads(kind, scores_kind, monkeypatch):
    scores, relevant = large_list(scores_kind, 500, 400_000)
    loss = cuts.make(kind, None if kind == "r-precision" else 50)
    found = []
    for n_threads in (1, 2, 5):
        monkeypatch.setattr("rankhinge._threads.n_threads", lambda n=n_threads: n)
        found.append(most_violating_ranking(scores, relevant, loss))
    for other in found[1:]:
        assert other.value == found[0].value
        np.testing.assert_array_equal(other.coefficients, found[0].coefficients)


@pytest.mark.parametrize("kind", ["ndcg", "precision", "r-precision"])
@pytest.mark.parametrize("raise_by", [0.0, 3.0, 9.0])
@pytest.mark.parametrize("share", [1, 3])
def test_a_sample_that_misleads(kind, raise_by, share):
    """The best negatives lie where the sample looks, or where it does not: the result is that of any other order."""
    n_samples = 300_000
    rng = np.random.default_rng(5)
    scores = rng.normal(size=n_samples)
    # Every 73rd is looked at.
    looked_at = np.arange(n_samples) % (n_samples >> 12) == 0
    order = np.argsort(-scores)
    in_front = order[: np.count_nonzero(looked_at) // share]
    rest = np.setdiff1d(order, in_front)
    seen, unseen = (np.empty(n_samples) for _ in range(2))
    for arranged, places in ((seen, looked_at), (unseen, ~looked_at)):
        first, others = np.flatnonzero(places)[: in_front.size], np.ones(n_samples, bool)
        others[first] = False
        arranged[first], arranged[others] = scores[in_front], scores[rest]
    loss = cuts.make(kind, None if kind == "r-precision" else 40)
    for arranged in (seen, unseen):
        relevant = rng.permutation(n_samples) < 60
        arranged[relevant] += raise_by
        mixed = rng.permutation(n_samples)
        one, other = (most_violating_ranking(arranged[o], relevant[o], loss) for o in (np.arange(n_samples), mixed))
        assert one.value == pytest.approx(other.value, rel=1e-12)
        np.testing.assert_allclose(one.coefficients[mixed], other.coefficients, rtol=1e-12, atol=1e-18)


def test_a_bad_score_in_a_long_list():
    scores, relevant = large_list("trained", 60, 300_000)
    for place in (0, int(np.flatnonzero(relevant)[3]), scores.size - 1):
        spoilt = scores.copy()
        spoilt[place] = np.nan
        with pytest.raises(ValueError, match=rf"scores\[{place}\] is nan"):
            most_violating_ranking(spoilt, relevant, "precision@5")


@EVERY_CUT
def test_the_loss_is_what_the_metric_lacks(kind):
    """``Δ = metric of the perfect ranking − metric``, in lists shorter than k, too."""
    rng = np.random.default_rng(6)
    for n_positives, n_negatives in SHAPES[::3]:
        scores, relevant = random_list(rng, n_positives, n_negatives)
        for k in range(1, scores.size + 4):
            loss = cuts.make(kind, None if kind == "r-precision" else k)
            if loss.metric is None:
                return
            best, found = (
                metrics.per_query(loss.metric, relevant, s, np.zeros(scores.size))[1][0] for s in (relevant, scores)
            )
            assert ranking_loss(scores, relevant, loss) == pytest.approx(best - found, abs=1e-12)


@EVERY_CUT
@pytest.mark.parametrize("scores_kind", KINDS)
def test_the_order_of_the_samples_does_not_matter(kind, scores_kind):
    scores, relevant = large_list(scores_kind, 30, 400)
    loss = cuts.make(kind, None if kind == "r-precision" else 12)
    order = np.random.default_rng(3).permutation(scores.size)
    one, other = (most_violating_ranking(scores[o], relevant[o], loss) for o in (np.arange(scores.size), order))
    assert other.value == pytest.approx(one.value, rel=1e-13)
    np.testing.assert_allclose(other.coefficients, one.coefficients[order], rtol=1e-13, atol=1e-18)


@pytest.mark.parametrize("k", [0, -1, 1.5, float("nan"), "x", "", "0", "-3", "1.5", "150%", "0%", None, True, [3]])
def test_wrong_depths(k):
    with pytest.raises(ValueError, match="it must be a number of places, at least 1, or a share"):
        losses.NDCGAt(k)


def test_depths():
    """A share of each list, at least one place and no more than there are."""
    assert losses.PrecisionAt("1%").depths(np.array([1, 99, 100, 101, 1000])).tolist() == [1, 1, 1, 2, 10]
    assert losses.PrecisionAt(0.07).depths(np.array([100, 1000])).tolist() == [7, 70]
    assert losses.PrecisionAt(5).depths(np.array([3, 5, 7])).tolist() == [3, 5, 5]
    assert losses.PrecisionAt(1.0).depths(np.array([3, 5])).tolist() == [3, 5]


def test_a_share_is_that_of_each_list():
    rng = np.random.default_rng(4)
    scores, relevant = random_list(rng, 30, 90)
    offsets = np.array([0, 20, 120])
    batch = most_violating_rankings(scores, relevant, offsets, "ndcg@10%")
    for q, k in enumerate((2, 10)):
        part = slice(*offsets[q : q + 2])
        assert batch.values[q] == most_violating_ranking(scores[part], relevant[part], losses.NDCGAt(k)).value


def test_too_deep_a_cut_names_the_soft_loss():
    relevant = np.arange(100_000) % 2 == 0
    with pytest.raises(ValueError, match=r"more than 1e\+09 steps.*losses\.SoftNDCG"):
        most_violating_ranking(np.zeros(relevant.size), relevant, losses.NDCGAt(50_000))
    # What only counts is cheap at any depth.
    assert most_violating_ranking(np.zeros(relevant.size), relevant, losses.PrecisionAt(50_000)).value == 1.0


def test_no_step():
    assert not check_suitable("ndcg@3", 2, 4)
    with pytest.raises(ValueError, match="first places only and has no step: method must be 'auto', not 'greedy'"):
        most_violating_ranking([1.0, 0.0], [1, 0], "precision@1", "greedy")


@pytest.mark.parametrize(
    ("name", "kind", "k"),
    [
        ("ndcg@10", losses.NDCGAt, 10),
        ("NDCG@10", losses.NDCGAt, 10),
        ("ap@10", losses.APAt, 10),
        ("map@10", losses.APAt, 10),
        ("precision@100", losses.PrecisionAt, 100),
        ("p@100", losses.PrecisionAt, 100),
        ("recall@1%", losses.RecallAt, 0.01),
        ("hit@1", losses.HitAt, 1),
        ("f1@50", losses.F1At, 50),
        ("soft-ndcg@10", losses.SoftNDCG, 10),
    ],
)
def test_names(name, kind, k):
    loss = get_loss(name)
    assert type(loss) is kind
    assert loss.k == k
    assert get_loss(name) is loss
    assert get_loss(loss.name).k == k


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("nddcg", "'ndcg'"),
        ("precission@5", "'precision@5'"),
        ("avg_precision", "'average-precision'"),
        ("bedrok", "'bedroc'"),
    ],
)
def test_did_you_mean(wrong, right):
    with pytest.raises(ValueError, match=rf"unknown loss '{wrong}' \(did you mean .*{right}"):
        get_loss(wrong)


@pytest.mark.parametrize(
    "loss",
    [
        losses.PrecisionAt(0.1234567),
        losses.RecallAt(1 / 3),
        losses.NDCGAt(1e-7),
        losses.HitAt(1.0),
        losses.APAt(10**30),
        losses.BEDROC(20.1234567),
        losses.BEDROC(1e6),
        losses.PNormPush(1.00000001),
        losses.PartialAUC(0.12345678),
        losses.PartialAUC(1e-7),
    ],
    ids=repr,
)
def test_a_name_has_all_digits(loss):
    (number,) = [getattr(loss, word) for word in ("k", "alpha", "p", "max_fpr") if hasattr(loss, word)]
    assert repr(get_loss(loss.name)) == repr(loss)
    ((option, value),) = metric_named(loss.metric)[1].items()
    assert (parse_depth(value) if option == "k" else value) == number
    assert eval(repr(loss), vars(losses)).name == loss.name


def test_more_places_than_any_list_has():
    scores, relevant = [3.0, 1.0, 2.0, 0.0], [1, 1, 0, 0]
    for word in ("ndcg", "ap", "precision", "recall", "f1", "hit"):
        assert structured_hinge(scores, relevant, f"{word}@{10**30}") == structured_hinge(scores, relevant, f"{word}@4")


def test_blanks_in_a_name():
    assert get_loss(" P @ 3 ").name == "precision@3"
    with pytest.raises(ValueError, match="k is '1_0'"):
        get_loss("p@1_0")


@pytest.mark.parametrize("kind", [losses.BEDROC, losses.PNormPush, losses.PartialAUC])
@pytest.mark.parametrize("wrong", ["1", None, -1.0, float("nan")])
def test_a_parameter_that_is_no_number(kind, wrong):
    with pytest.raises(ValueError, match=r" is .*: it must be a number"):
        kind(wrong)
