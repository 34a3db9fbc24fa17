"""The ranking by the scores against its definition, pair by pair."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankhinge.inference.by_scores import subtract_ranking, subtract_rankings
from rankhinge.inference.long_list import LONG
from tests.inference.cases import KINDS, large_list


def pair_by_pair(scores, relevant):
    """``H = 2 / (P N) Σ max(0, n - p)`` over all pairs, and its subgradient with 0 where they are equal."""
    scores = scores.astype(np.float64)
    n_pairs = relevant.sum() * (~relevant).sum()
    u = np.zeros(scores.size)
    if n_pairs == 0:
        return 0.0, u
    above = scores[~relevant][:, None] > scores[relevant][None, :]
    u[~relevant], u[relevant] = 2.0 * above.sum(axis=1) / n_pairs, -2.0 * above.sum(axis=0) / n_pairs
    differences = (scores[~relevant] / n_pairs)[:, None] - (scores[relevant] / n_pairs)[None, :]
    return 2.0 * float(differences[above].sum()), u


def check(scores, relevant):
    """From 0 it is -u and -H; from anything that adds up to 0, what is left, and its sum with the scores."""
    value, u = pair_by_pair(scores, relevant)
    eps, wide = np.finfo(scores.dtype).eps, scores.astype(np.float64)
    coefficients = np.zeros_like(scores)
    found = subtract_ranking(scores, relevant, coefficients)
    rounding = (1e-12 if scores.dtype == np.float64 else 4 * eps) * (1.0 + np.abs(u) @ np.abs(wide))
    assert found == pytest.approx(-value, rel=1e-11, abs=rounding)
    np.testing.assert_allclose(coefficients, -u, rtol=0, atol=4 * eps)
    before = np.zeros_like(scores)
    if u.any():
        before[0], before[-1] = 0.5, -0.5
    left = before.copy()
    found = subtract_ranking(scores, relevant, left)
    rounding += 8 * eps * (np.abs(wide[0]) + np.abs(wide[-1]))
    assert found == pytest.approx(0.5 * (wide[0] - wide[-1]) * u.any() - value, rel=1e-11, abs=rounding)
    np.testing.assert_allclose(left, before - u, rtol=0, atol=4 * eps)


def test_what_ranks_alike_cancels_however_large_the_scores():
    rng = np.random.default_rng(0)
    for scale in (1.0, 1e12, 1e20, 1e200):
        scores, relevant = scale * rng.normal(size=50), rng.random(50) < 0.3
        zeros = np.zeros(50)
        subtract_ranking(scores, relevant, zeros)
        coefficients = -zeros
        assert subtract_ranking(scores, relevant, coefficients) == 0.0
        assert not coefficients.any()


@given(
    values=st.lists(st.integers(-4, 4), min_size=1, max_size=40),
    seed=st.integers(0, 10**6),
    scale=st.sampled_from([1.0, 0.1, 1e-300, 1e280, 5e-324]),
    dtype=st.sampled_from([np.float64, np.float32]),
)
def test_ties_and_extremes(values, seed, scale, dtype):
    scores = (np.array(values, dtype=np.float64) * (scale if dtype is np.float64 else 1e-3)).astype(dtype)
    check(scores, np.random.default_rng(seed).random(scores.size) < 0.4)


@given(st.integers(0, 10**6), st.integers(1, 60), st.integers(1, 60))
def test_any_shares_of_the_classes(seed, n_positives, n_negatives):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=n_positives + n_negatives) ** rng.choice([1, 3, 9])
    check(scores, rng.permutation(scores.size) < n_positives)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n_positives", "n_negatives"), [(300, 5000), (5000, 300), (1, 9000), (20, LONG), (LONG, 20)])
def test_longer_lists(kind, n_positives, n_negatives):
    check(*large_list(kind, n_positives, n_negatives))


def test_one_positive_far_from_all_others():
    """The grid then has all others in one bucket: they are searched."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=4000)
    relevant = rng.random(4000) < 0.3
    scores[0], relevant[0] = 1e12, True
    check(scores, relevant)


def test_many_lists():
    rng = np.random.default_rng(0)
    sizes = [1, 5, 0, 300, 2, LONG + 10, 40]
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    scores, relevant = np.round(rng.normal(size=offsets[-1]), 3), rng.random(offsets[-1]) < 0.01
    relevant[offsets[1] : offsets[2]] = True
    together, one_by_one = np.zeros(scores.size), np.zeros(scores.size)
    values = subtract_rankings(scores, relevant, offsets, together)
    for q in range(len(sizes)):
        part = slice(offsets[q], offsets[q + 1])
        assert values[q] == subtract_ranking(scores[part], relevant[part], one_by_one[part])
    np.testing.assert_array_equal(together, one_by_one)


def test_threads_do_not_show(monkeypatch):
    scores, relevant = large_list("overlapping", 500, LONG)
    found = []
    for n_threads in (1, 2, 3, 8):
        monkeypatch.setenv("RANKHINGE_NUM_THREADS", str(n_threads))
        coefficients = np.zeros(scores.size)
        found.append((subtract_ranking(scores, relevant, coefficients), coefficients.tobytes()))
    assert len(set(found)) == 1
