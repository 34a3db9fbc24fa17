"""Calibration of one class's scores: the likeliest sigmoid, whatever the scores look like."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from rankhinge import RankSVC, metrics
from rankhinge.svm.threshold import calibrate


def _loss(scores, relevant, slope, offset):
    n_relevant = relevant.sum()
    target = np.where(relevant, (n_relevant + 1) / (n_relevant + 2), 1 / ((~relevant).sum() + 2))
    odds = slope * scores + offset
    return np.sum(np.logaddexp(0.0, odds) - target * odds)


@given(
    seed=st.integers(0, 10**6),
    freedom=st.sampled_from([1, 2, 50]),
    apart=st.sampled_from([0.0, 2.0, 30.0]),
    share=st.sampled_from([0.03, 0.3, 0.9]),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
)
def test_no_sigmoid_is_likelier(seed, freedom, apart, share, scale):
    rng = np.random.default_rng(seed)
    relevant = rng.random(60) < share
    relevant[:2] = True, False
    z = rng.standard_t(freedom, size=60) + apart * relevant
    slope, offset = calibrate(scale * z, relevant)
    assert slope > 0
    mine = _loss(z, relevant, scale * slope, offset)
    starts = [(0.0, 0.0), (1.0, -1.0)]
    best = min(
        minimize(lambda p: _loss(z, relevant, max(p[0], 0.0), p[1]), x, method="Nelder-Mead").fun for x in starts
    )
    assert mine <= best + 1e-3


def test_a_rare_class_far_away_keeps_its_ranking():
    rng = np.random.default_rng(8)
    y = rng.choice(3, size=150, p=[0.05, 0.35, 0.6])
    X = rng.normal(size=(150, 3)) + 2 * np.eye(3)[y]
    X[:, 0] = np.exp(1.5 * X[:, 0])
    model = RankSVC(C=10.0, bound="convex").fit(X, y)
    by_weights = metrics.average_precision(y == 0, X @ model.coef_[0])
    assert metrics.average_precision(y == 0, model.decision_function(X)[:, 0]) == pytest.approx(by_weights, abs=1e-9)
    assert np.abs(model.intercept_).max() < 1e3 * np.abs(X @ model.coef_.T).max()
    assert np.mean(model.predict(X) == y) > 0.7
