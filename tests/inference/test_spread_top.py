"""Losses with a cut over simulated shards: against inference in memory, which brute force has checked."""

from __future__ import annotations

import numpy as np
import pytest

from rankhinge.inference import core
from rankhinge.inference.by_scores import subtract_ranking
from rankhinge.inference.spread import BadScoreError, compile_cut
from rankhinge.losses import get_loss
from tests.inference import small_lists
from tests.inference.cases import SHAPES, mixed
from tests.inference.spread_lists import spread_inference
from tests.inference.test_spread import EVERY_KIND, large_list

LOSSES = ("ap@10", "ndcg@20", "precision@1000", "recall@1%", "hit@1", "r-precision")
EVERY_LOSS = pytest.mark.parametrize("loss", LOSSES)


@EVERY_KIND
@EVERY_LOSS
def test_exact(kind, loss):
    """J, T, Δ and u as in memory, in two rounds; nobody sends much."""
    scores, relevant = large_list(kind, 80_000, 500)
    expected = core.infer_one(scores, relevant, get_loss(loss))
    found = spread_inference(scores, relevant, loss, n_workers=2)
    assert found.value == pytest.approx(expected.value, rel=1e-12)
    assert found.loss == pytest.approx(expected.loss, rel=1e-15)
    np.testing.assert_allclose(found.coefficients, expected.coefficients, rtol=1e-14, atol=0)
    assert found.n_rounds == 2
    assert max(found.most_up, found.most_down) <= 200_000
    other = spread_inference(scores, relevant, loss, bounds=[0, 0, 7, 50_000, 80_000], n_workers=3)
    assert other.coefficients.tobytes() == found.coefficients.tobytes()
    u = expected.coefficients.copy()
    subtract_ranking(scores, relevant, u)
    tight = spread_inference(scores, relevant, loss, tight=True)
    np.testing.assert_allclose(tight.coefficients, u, rtol=0, atol=1e-18)
    centre = np.median(scores)
    assert tight.value == pytest.approx(expected.loss + u @ (scores - centre), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("n_positives", "n_negatives"), SHAPES)
def test_small_lists(n_positives, n_negatives):
    """Lists of every awkward kind, cut anywhere; more places than there are negatives among them."""
    rng = np.random.default_rng([n_positives, n_negatives])
    cuts = ("ap@1", "ap@3", "ndcg@2", "precision@4", "recall@50%", "ndcg@100", "r-precision")
    number = 0
    for group in small_lists.groups(n_positives, n_negatives):
        for row in group.scores.astype(np.float64)[::8]:
            loss, number = cuts[number % len(cuts)], number + 1
            scores, relevant = mixed(row, n_positives, rng)
            expected = core.infer_one(scores, relevant, get_loss(loss))
            bounds = [0, *np.sort(rng.integers(0, scores.size + 1, 2)), scores.size]
            found = spread_inference(scores, relevant, loss, bounds=bounds)
            where = f"{group.kind}, {loss}: {scores!r}, {relevant!r}"
            assert abs(found.value - expected.value) <= 1e-12 * (1 + abs(expected.value)), where
            assert found.loss == pytest.approx(expected.loss, abs=1e-15), where
            np.testing.assert_allclose(found.coefficients, expected.coefficients, rtol=1e-13, atol=1e-18)


@pytest.mark.parametrize("sample", [np.zeros(0), np.full(50, 1e9), np.full(50, -1e9)], ids=["none", "high", "low"])
def test_a_misleading_sample(sample):
    scores, relevant = large_list("tied", 20_000, 200)
    expected = spread_inference(scores, relevant, "ap@50")
    found = spread_inference(scores, relevant, "ap@50", sample=sample)
    assert found.coefficients.tobytes() == expected.coefficients.tobytes()
    assert found.n_rounds == (3 if sample.max(initial=0.0) > 0 else 2)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e305])
def test_a_score_that_is_not_usable(bad):
    scores, relevant = large_list("overlapping", 1000, 30)
    scores[321] = bad
    with pytest.raises(BadScoreError, match="nan, infinite or too large"):
        spread_inference(scores, relevant, "ap@10")


def test_what_is_too_deep():
    compile_cut(get_loss("precision@32767"), 50_000, 10**6)
    with pytest.raises(ValueError, match=r"looks at the first 40000 places of a list, for which 80001 scores .*spool"):
        compile_cut(get_loss("precision@40000"), 50_000, 10**6)
    with pytest.raises(ValueError, match=r"steps\. Choose fewer places"):
        compile_cut(get_loss("ap@32000"), 50_000, 10**6)
