"""The basis of a span: how it grows and shrinks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankhinge.solvers.subspace import extension, narrowing

from .helpers import ListsObjective, make_solver, random_problem
from .test_solvers import primal


def _orthonormal(rng, d, T):
    return np.linalg.qr(rng.normal(size=(d, T)))[0]


@given(st.integers(1, 12), st.integers(0, 6), st.integers(1, 9), st.integers(-30, 30), st.integers(0, 10**6))
@settings(deadline=None)
def test_an_extension_is_orthonormal_and_loses_nothing(d, T, r, exponent, seed):
    """Some directions are 0, repeated or nearly so, or in the span already; there may be more than dimensions."""
    rng = np.random.default_rng(seed)
    basis = _orthonormal(rng, d, min(T, d))
    directions = rng.normal(size=(d, r)) * 10.0 ** rng.integers(-3, 4, size=r)
    directions[:, rng.random(r) < 0.2] = 0.0
    twins = np.flatnonzero(rng.random(r) < 0.3)
    apart = rng.normal(size=(d, twins.size)) * 10.0 ** -rng.integers(1, 12, size=twins.size)
    directions[:, twins] = 2.0 * directions[:, rng.integers(r, size=twins.size)] + apart
    inside = np.flatnonzero(rng.random(r) < 0.2)
    directions[:, inside] = basis @ rng.normal(size=(basis.shape[1], inside.size))
    directions *= 10.0**exponent
    new = extension(basis, directions)
    both = np.column_stack([basis, new])
    lengths = np.linalg.norm(new, axis=0)
    assert np.all((lengths == 0.0) | (np.abs(lengths - 1.0) < 1e-12))
    np.testing.assert_allclose(both.T @ both, np.diag(np.linalg.norm(both, axis=0)), atol=1e-11)
    # Nothing is lost: what is left of the directions outside is short beside them.
    left = np.linalg.norm(directions - both @ (both.T @ directions), axis=0)
    assert np.all(left <= 1e-4 * np.linalg.norm(directions, axis=0))


def test_what_follows_a_dependent_direction_is_kept():
    """A repeated direction must not hide the one after it."""
    e = np.eye(4)
    directions = np.column_stack([e[1], e[1], e[2], e[3]])
    new = extension(e[:, :1], directions)
    np.testing.assert_allclose(np.abs(new), np.column_stack([e[1], 0 * e[1], e[2], e[3]]), atol=1e-15)


@pytest.mark.parametrize("T", [1, 2, 4])
def test_a_narrower_span_holds_the_anchor(T):
    rng = np.random.default_rng(T)
    basis, anchor = _orthonormal(rng, 9, 5), rng.normal(size=5)
    direction, kept = narrowing(anchor, T)
    assert kept.size == T
    narrow = np.column_stack([basis[:, : direction.size] @ direction, basis[:, direction.size :]])
    np.testing.assert_allclose(narrow.T @ narrow, np.eye(T), atol=1e-14)
    np.testing.assert_allclose(narrow @ kept, basis @ anchor, rtol=1e-13)
    np.testing.assert_array_equal(narrow[:, 1:], basis[:, 5 - T + 1 :])


def test_an_anchor_without_old_coordinates():
    direction, kept = narrowing(np.array([0.0, 0.0, 3.0]), 2)
    np.testing.assert_array_equal(direction, [0.0, 0.0])
    np.testing.assert_array_equal(kept, [0.0, 3.0])


@pytest.mark.parametrize("seed", range(3))
def test_a_far_centre_does_not_blur_the_value(seed):
    """Tiny features carry a centre so far away that of its square nothing but rounding would be left."""
    X, labels = random_problem(seed)
    rng = np.random.default_rng(seed)
    objective = ListsObjective(np.column_stack([X, 1e-9 * rng.normal(size=(len(X), 3))]), labels)
    centre = np.concatenate([np.zeros(X.shape[1]), 1e8 * rng.normal(size=3)])
    result = make_solver("bundle", objective, 5.0, centre=centre[:, None], opening=False).run()
    assert result.status[0] == "converged"
    assert result.n_iter[0] > 1
    assert result.objective[0] == pytest.approx(primal(objective, 5.0, result.coef[:, 0], centre=centre), rel=1e-9)
