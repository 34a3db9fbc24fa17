"""The number of threads does not show: the same bits with 1, 2, 5 and 16."""

from __future__ import annotations

import numpy as np
import pytest

from rankhinge import most_violating_ranking, most_violating_rankings
from tests.inference.cases import LOSS_CASES, large_list

THREADS = ("1", "2", "5", "16")
EVERY_LOSS = pytest.mark.parametrize("case", LOSS_CASES, ids=lambda case: case.name)


def with_threads(monkeypatch, call):
    """What `call` returns for each number of threads."""
    outcomes = []
    for number in THREADS:
        monkeypatch.setenv("RANKHINGE_NUM_THREADS", number)
        outcomes.append(call())
    return outcomes


def check_same(monkeypatch, scores, relevant, loss):
    first, *others = with_threads(monkeypatch, lambda: most_violating_ranking(scores, relevant, loss))
    for other in others:
        assert other.value == first.value
        assert other.loss == first.loss
        assert other.n_steps == first.n_steps
        assert other.coefficients.tobytes() == first.coefficients.tobytes()


@EVERY_LOSS
@pytest.mark.parametrize("kind", ["overlapping", "trained"])
def test_every_loss(monkeypatch, case, kind):
    check_same(monkeypatch, *large_list(kind, 100, 300_000), case.loss)


@pytest.mark.parametrize("kind", ["sorted", "reversed", "integers", "Cauchy", "exponentials", "clusters"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_kind(monkeypatch, kind, dtype):
    scores, relevant = large_list(kind, 1000, 600_000)
    check_same(monkeypatch, np.clip(scores, -1e30, 1e30).astype(dtype), relevant, "ap")


@pytest.mark.parametrize("n_above", [20_000, 40_000, 60_000, 80_000])
@pytest.mark.parametrize("is_sorted", [True, False])
def test_many_above_the_cut(monkeypatch, n_above, is_sorted):
    """Negatives that must be looked at may all lie in the stretch of one thread."""
    rng = np.random.default_rng(0)
    n, n_positives = 2_000_000, 200
    scores = np.concatenate([rng.random(n_positives), 0.5 * rng.random(n_above), -100 * np.ones(n)])
    scores[-n:] -= rng.random(n)
    relevant = np.arange(scores.size) < n_positives
    if not is_sorted:
        order = rng.permutation(scores.size)
        scores, relevant = scores[order], relevant[order]
    check_same(monkeypatch, scores, relevant, "ap")


def test_zero_one(monkeypatch):
    check_same(monkeypatch, *large_list("overlapping", 1000, 600_000), "zero-one")


@pytest.mark.parametrize("loss", ["ap", "ndcg", "zero-one"])
def test_batch(monkeypatch, loss):
    """Many lists of many sizes, two of them long."""
    rng = np.random.default_rng(0)
    sizes = np.concatenate([rng.integers(0, 300, 500), [280_000], rng.integers(0, 3000, 50), [270_000]])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    scores = rng.normal(size=offsets[-1])
    relevant = rng.random(offsets[-1]) < 0.05
    first, *others = with_threads(monkeypatch, lambda: most_violating_rankings(scores, relevant, offsets, loss))
    for other in others:
        for name in ("values", "losses", "coefficients", "usable"):
            assert getattr(other, name).tobytes() == getattr(first, name).tobytes()


def test_repeated_calls():
    """The same call gives the same bits, by every method."""
    scores, relevant = large_list("integers", 200, 30_000)
    for method in ("auto", "quicksort", "quicksort-search", "select", "search", "greedy"):
        one, other = (most_violating_ranking(scores, relevant, method=method) for _ in range(2))
        assert one.value == other.value
        assert one.coefficients.tobytes() == other.coefficients.tobytes()
