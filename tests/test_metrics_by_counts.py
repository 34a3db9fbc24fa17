"""Metrics from counts against those from all scores."""

from __future__ import annotations

import numpy as np
import pytest

from rankhinge import metrics
from rankhinge.metrics import _by_counts
from rankhinge.metrics._by_counts import BY_COUNTS


def counted(scores, gains):
    positive = gains > 0
    others = np.sort(scores[~positive])
    own = scores[positive]
    n_equal = np.searchsorted(others, own, "right") - np.searchsorted(others, own, "left")
    return own, gains[positive], others.size - np.searchsorted(others, own, "right"), n_equal, others.size


@pytest.mark.parametrize("n_values", [1, 3, 50, 10**9])
@pytest.mark.parametrize("name", BY_COUNTS)
@pytest.mark.parametrize("block", [7, 1 << 20])
def test_as_from_all_scores(name, n_values, block, monkeypatch):
    monkeypatch.setattr(_by_counts, "_BLOCK", block)
    rng = np.random.default_rng(n_values)
    for n in (1, 2, 10, 300):
        for _ in range(20):
            scores = rng.integers(0, n_values, n).astype(float)
            labels = rng.integers(0, 4 if name == "ndcg" else 2, n) * (rng.random(n) < 0.5)
            gains = 2.0**labels - 1
            expected = getattr(metrics, name)(labels, scores, no_positives="nan")
            found = BY_COUNTS[name](*counted(scores, gains))
            np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_large_gains():
    scores, gains = np.array([3.0, 2.0, 1.0, 0.0]), np.array([1e308, 0.0, 1e308, 5e307])
    assert 0 < BY_COUNTS["ndcg"](*counted(scores, gains)) < 1
