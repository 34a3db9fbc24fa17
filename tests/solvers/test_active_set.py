"""The small quadratic programme: KKT conditions, degenerate planes, agreement with a library."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_wine

from rankhinge import RankSVC
from rankhinge.solvers import _active_set


def solve(vectors, linear, capped, total, x=None, tol=1e-12):
    if x is None:
        x = np.zeros(linear.size)
        x[np.flatnonzero(capped)[0]] = total
    gram = vectors @ vectors.T
    mu, residual, steps, status = _active_set.maximise(gram, linear, capped, total, x, tol, 20_000)
    return x, mu, residual, steps, status


def kkt(vectors, linear, capped, total, x, mu):
    """Largest violation of the conditions, by the size of the terms of which it is made."""
    violation = linear - vectors @ (vectors.T @ x) - mu * capped
    scale = np.abs(linear).max() + (np.abs(vectors @ vectors.T) @ x).max() + 1e-300
    inside = np.abs(violation[x > 0]).max(initial=0.0)
    return max(inside, violation.max(initial=0.0)) / scale, abs(x[capped].sum() - total) / total


def planes(rng, n, d, scale=1.0):
    """Planes, the first of which is 0 <= J."""
    vectors, linear = scale * rng.normal(size=(n, d)), rng.random(n)
    vectors[0], linear[0] = 0.0, 0.0
    return vectors, linear


@pytest.mark.parametrize("kind", ["general", "duplicates", "collinear", "low rank", "clustered"])
@pytest.mark.parametrize("total", [1e-3, 1.0, 1e3, 1e6])
def test_kkt(kind, total):
    rng = np.random.default_rng(3)
    for _ in range(10):
        n, d = int(rng.integers(2, 150)), int(rng.integers(1, 60))
        vectors, linear = planes(rng, n, d, 10.0 ** rng.uniform(-3, 1))
        if kind == "duplicates":
            half = n // 2
            vectors[n - half :], linear[n - half :] = vectors[:half], linear[:half]
        elif kind == "collinear":
            vectors = np.outer(rng.random(n), vectors[-1])
            vectors[0] = 0.0
        elif kind == "low rank":
            vectors = vectors[:, :2] @ rng.normal(size=(min(2, d), d))
        elif kind == "clustered":
            vectors[1:] = vectors[-1] + 1e-6 * vectors[1:]
        capped = np.ones(n, dtype=bool)
        x, mu, residual, _, status = solve(vectors, linear, capped, total)
        assert status == _active_set.OPTIMAL
        assert (x >= 0).all()
        assert max(kkt(vectors, linear, capped, total, x, mu)) < 1e-12
        assert residual < 1e-11


def test_hard_constraints_have_no_cap():
    rng = np.random.default_rng(0)
    vectors, linear = planes(rng, 30, 8)
    target = 5 * rng.normal(size=8)
    rows = rng.normal(size=(20, 8))
    vectors = np.concatenate([vectors, rows])
    linear = np.concatenate([linear, rows @ target - rng.random(20)])
    capped = np.arange(50) < 30
    x, mu, _, _, status = solve(vectors, linear, capped, 0.5)
    assert status == _active_set.OPTIMAL
    assert x[~capped].sum() > 0.5
    assert max(kkt(vectors, linear, capped, 0.5, x, mu)) < 1e-11


def test_contradicting_constraints_are_unbounded():
    # w >= 1 and -w >= 0
    vectors, linear = np.array([[0.0], [1.0], [-1.0]]), np.array([0.0, 1.0, 0.0])
    *_, status = solve(vectors, linear, np.array([True, False, False]), 1.0)
    assert status == _active_set.UNBOUNDED


def test_warm_start_gives_the_same_value_in_fewer_steps():
    rng = np.random.default_rng(5)
    vectors, linear = planes(rng, 200, 50, 0.3)
    capped = np.ones(200, dtype=bool)
    x, _, _, cold, _ = solve(vectors, linear, capped, 100.0)
    more = np.concatenate([vectors, vectors[-1:] + 0.1]), np.append(linear, linear[-1])
    warm_x, _, _, warm, _ = solve(*more, np.ones(201, dtype=bool), 100.0, np.append(x, 0.0))
    cold_x, _, _, again, _ = solve(*more, np.ones(201, dtype=bool), 100.0)

    def value(x):
        return more[1] @ x - 0.5 * np.sum((x @ more[0]) ** 2)

    assert warm < again <= cold + 20
    assert value(warm_x) == pytest.approx(value(cold_x), rel=1e-12)


def test_step_limit_is_told_and_leaves_a_feasible_point():
    rng = np.random.default_rng(1)
    vectors, linear = planes(rng, 100, 40, 0.3)
    x = np.zeros(100)
    x[0] = 50.0
    _, _, steps, status = _active_set.maximise(vectors @ vectors.T, linear, np.ones(100, dtype=bool), 50.0, x, 1e-12, 3)
    assert (status, steps) == (_active_set.STEP_LIMIT, 3)
    assert (x >= 0).all()
    assert x.sum() == pytest.approx(50.0)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 10), st.floats(-3, 5))
def test_kkt_of_integer_planes(seed, n, d, exponent):
    """Small integers: ties, dependencies and duplicates abound."""
    rng = np.random.default_rng(seed)
    vectors = rng.integers(-2, 3, size=(n + 1, d)).astype(float)
    linear = rng.integers(0, 4, size=n + 1).astype(float)
    vectors[0], linear[0] = 0.0, 0.0
    capped = np.ones(n + 1, dtype=bool)
    x, mu, _, _, status = solve(vectors, linear, capped, 10.0**exponent)
    assert status == _active_set.OPTIMAL
    assert max(kkt(vectors, linear, capped, 10.0**exponent, x, mu)) < 1e-10


@pytest.mark.parametrize("seed", range(6))
def test_agrees_with_a_library(seed):
    clarabel = pytest.importorskip("clarabel", reason="needs clarabel, of the extra `test`")
    from scipy import sparse

    rng = np.random.default_rng(seed)
    n, d, total = int(rng.integers(5, 120)), int(rng.integers(2, 50)), 10.0 ** rng.uniform(-1, 4)
    vectors, linear = planes(rng, n, d, 0.3)
    capped = np.arange(n) < max(2, n - n // 4)
    # Some w satisfies all hard constraints.
    linear[~capped] = vectors[~capped] @ rng.normal(size=d) - linear[~capped]
    x, *_ = solve(vectors, linear, capped, total)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solution = clarabel.DefaultSolver(
        sparse.triu(sparse.csc_matrix(vectors @ vectors.T)).tocsc(),
        -linear,
        sparse.vstack([sparse.csc_matrix(capped[None, :] * 1.0), -sparse.eye(n)]).tocsc(),
        np.append(total, np.zeros(n)),
        [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(n)],
        settings,
    ).solve()
    value = linear @ x - 0.5 * np.sum((x @ vectors) ** 2)
    assert value == pytest.approx(-solution.obj_val, rel=1e-6)
    assert value >= -solution.obj_val - 1e-6 * abs(value)


def test_nearly_dependent_planes_do_not_take_turns_for_ever(monkeypatch):
    """Features as they come, of very different size, and a large C: what is left to gain is rounding."""
    steps, original = [], _active_set.maximise

    def maximise(*arguments):
        found = original(*arguments)
        steps.append(found[2])
        return found

    monkeypatch.setattr(_active_set, "maximise", maximise)
    X, y = load_wine(return_X_y=True)
    for C in (1e4, 1e5):
        assert RankSVC("ndcg", C, bound="convex").fit(X, y != 1).status_ == "converged"
    assert max(steps) < 1000
