"""Inference by counts at the sizes that a cluster is for, on simulated shards: many positives, and other losses."""

from __future__ import annotations

import pytest

from rankhinge import losses
from rankhinge.inference import core
from tests.inference.spread_lists import spread_inference
from tests.inference.test_spread import LOSSES, MEGABYTE, large_list

pytestmark = pytest.mark.slow

# Rounds that a slack of 1e-6 takes.
ROUNDS = {"overlapping": 3, "tied": 3, "clusters": 3, "constant": 3, "offset": 3, "Cauchy": 6}


@pytest.mark.parametrize("kind", ROUNDS)
def test_slack_with_a_million_positives(kind):
    scores, relevant = large_list(kind, 4_000_000, 1_000_000)
    expected = core.infer_one(scores, relevant, losses.get_loss("ap")).value
    found = spread_inference(scores, relevant, n_workers=2, slack=1e-6)
    rounding = 1e-12 * abs(expected)
    assert -rounding <= expected - found.value <= found.slack + rounding
    assert found.slack <= 1e-6
    assert found.n_rounds <= ROUNDS[kind]


@pytest.mark.parametrize("kind", ["overlapping", "tied", "Cauchy"])
@pytest.mark.parametrize("loss", ["rr", "auc", "custom"])
def test_ten_million(kind, loss):
    """As for AP and NDCG. The steps of a custom loss are added up one by one, P N of them."""
    scores, relevant = large_list(kind, 10_000_000, 100 if loss == "custom" else 10_000)
    expected = core.infer_one(scores, relevant, losses.get_loss(LOSSES[loss]))
    found = spread_inference(scores, relevant, LOSSES[loss], n_workers=2)
    assert found.value == pytest.approx(expected.value, rel=1e-12)
    assert found.coefficients.tobytes() == expected.coefficients.tobytes()
    assert found.n_rounds <= 8
    assert max(found.most_up, found.most_down) <= MEGABYTE
