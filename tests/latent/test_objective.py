"""Inference with latent negatives, planes, and Proposition 1, against brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from rankhinge.latent.candidates import CandidateFeatures
from rankhinge.latent.objective import LatentObjective, PlaneBook
from rankhinge.latent.problem import latent_problem
from rankhinge.losses import get_loss
from rankhinge.solvers import Planes
from tests import brute_force
from tests.latent.helpers import bags_and_labels, choices

LOSSES = {"ap": brute_force.AP, "ndcg": brute_force.NDCG, "rr": brute_force.RR, "auc": brute_force.AUC}


def objective_of(bags, y, choice, loss="ap", places=None, known=None, books=None):
    known = np.full(len(bags), -1) if known is None else known
    problem = latent_problem(bags, y.astype(bool), None, known)
    fixed = problem.fixed(bags.offsets[:-1] + choice)
    features = CandidateFeatures(bags.matrix, bags.rows()).some(places)
    return LatentObjective(features, [problem.seen_among(places, fixed)], get_loss(loss), books)


def small(seed):
    """At most five bags with one to three candidates each."""
    return bags_and_labels(n=5, d=3, seed=seed, sizes=(1, 4), share=2)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(5))
def test_inference_is_brute_force_over_candidates_and_rankings(loss, seed):
    bags, y = small(seed)
    rng = np.random.default_rng(seed)
    choice = rng.integers(0, bags.sizes)
    objective = objective_of(bags, y, choice, loss)
    w = rng.normal(size=(3, 1))
    handle = objective.score(w, np.zeros(1, int))
    found = objective.evaluate(handle)
    scores = [bag @ w[:, 0] for bag in bags]
    best = -np.inf
    for some in choices(bags.sizes[y == 0]):
        negatives = [scores[b][h] for b, h in zip(np.flatnonzero(y == 0), some, strict=True)]
        positives = [scores[b][choice[b]] for b in np.flatnonzero(y)]
        own = np.array([*positives, *negatives])
        relevant = np.arange(own.size) < len(positives)
        best = max(best, brute_force.hinge(own, relevant, LOSSES[loss]))
    assert found.value[0] == pytest.approx(best, abs=1e-12)
    # u lives on candidates: at the fixed one of a positive, at one of a negative, and sums to 0.
    u = found.coefficients.values[0]
    assert found.value[0] == pytest.approx(found.loss[0] + u @ handle.values[0], abs=1e-12)
    assert u.sum() == pytest.approx(0, abs=1e-14)
    assert np.all(np.add.reduceat(u != 0, bags.offsets[:-1]) <= 1)
    np.testing.assert_allclose(objective.adjoint(found.coefficients)[:, 0], bags.candidates().T @ u, atol=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_some_candidates_give_less_and_their_planes_hold_for_all(seed):
    bags, y = bags_and_labels(seed=seed)
    rng = np.random.default_rng(seed)
    choice = rng.integers(0, bags.sizes)
    whole = objective_of(bags, y, choice)
    keep = rng.random(bags.n_candidates) < 0.4
    keep[bags.offsets[:-1] + choice] = True
    part = objective_of(bags, y, choice, places=np.flatnonzero(keep))
    for _ in range(20):
        w, v = rng.normal(size=(2, 4, 1))
        k = np.zeros(1, int)
        found = part.evaluate(part.score(w, k))
        slope = part.adjoint(found.coefficients)[:, 0]
        assert found.value[0] <= whole.evaluate(whole.score(w, k)).value[0] + 1e-12
        assert found.loss[0] + slope @ v[:, 0] <= whole.evaluate(whole.score(v, k)).value[0] + 1e-12


@pytest.mark.parametrize("seed", range(3))
def test_planes_move_with_the_choices(seed):
    bags, y = bags_and_labels(seed=seed)
    rng = np.random.default_rng(seed)
    old, new = rng.integers(0, bags.sizes), rng.integers(0, bags.sizes)
    book = PlaneBook()
    before, after = objective_of(bags, y, old, books=[book]), objective_of(bags, y, new)
    k = np.zeros(1, int)
    offsets, slopes, literal = [], [], []
    for _ in range(4):
        w = rng.normal(size=(4, 1))
        found = before.evaluate(before.score(w, k))
        offsets.append(found.loss[0])
        slopes.append(before.adjoint(found.coefficients)[:, 0])
        u = found.coefficients.values[0].copy()
        for b in np.flatnonzero(y):
            first, last = bags.offsets[b : b + 2]
            total = u[first:last].sum()
            u[first:last] = 0
            u[first + new[b]] = total
        literal.append(bags.candidates().T @ u)
    changed = np.flatnonzero((old != new) & (y == 1))
    change = np.stack([bags[int(b)][new[b]] - bags[int(b)][old[b]] for b in changed])
    which = np.searchsorted(np.flatnonzero(y), changed)
    unknown = Planes(np.append(offsets, 9.0), np.vstack([*slopes, np.ones(4)]))
    moved = book.moved(unknown, change, which)
    np.testing.assert_array_equal(moved.offsets, offsets)
    np.testing.assert_allclose(moved.slopes, literal, atol=1e-13)
    for _ in range(20):
        w = rng.normal(size=4)
        value = after.evaluate(after.score(w[:, None], k)).value[0]
        assert np.all(moved.offsets + moved.slopes @ w <= value + 1e-12)
    # Noted again: they can move once more.
    assert book.moved(moved, change, which).offsets.size == 4


def test_the_book_forgets_the_oldest(monkeypatch):
    monkeypatch.setattr("rankhinge.latent.objective._MOST_NOTED", 5)
    book = PlaneBook()
    slopes = np.arange(6.0).reshape(3, 2)
    for slope in slopes:
        book.note(slope[:, None], [np.ones(2)])
    kept = book.moved(Planes(np.zeros(3), slopes), np.zeros((1, 2)), np.array([0]))
    np.testing.assert_array_equal(kept.slopes, slopes[1:])
    assert book.moved(Planes(np.zeros(1), slopes[:1]), np.zeros((1, 2)), np.array([0])).offsets.size == 0


@pytest.mark.parametrize("seed", range(10))
def test_convex_along_lines(seed):
    bags, y = bags_and_labels(seed=seed)
    rng = np.random.default_rng(seed)
    objective = objective_of(bags, y, rng.integers(0, bags.sizes))
    a, b = rng.normal(size=(2, 4))
    values = [
        objective.evaluate(objective.score(((1 - t) * a + t * b)[:, None], np.zeros(1, int))).value[0]
        for t in np.linspace(0, 1, 21)
    ]
    assert np.all(np.diff(values, 2) >= -1e-12)


def test_best_choice_of_the_positives_gives_the_least_value():
    bags, y = small(3)
    w = np.random.default_rng(0).normal(size=(3, 1))
    best = np.array([np.argmax(bag @ w[:, 0]) for bag in bags])

    def value(choice):
        objective = objective_of(bags, y, np.asarray(choice))
        return objective.evaluate(objective.score(w, np.zeros(1, int))).value[0]

    assert value(best) <= min(itertools.starmap(lambda *c: value(c), choices(bags.sizes))) + 1e-12


def test_a_slope_of_two_planes_is_forgotten():
    """After a change of the choices they part ways, and nobody knows which plane had which coefficients."""
    book, slopes = PlaneBook(), np.array([[1.0, 2.0], [0.0, 5.0]])
    book.note(slopes, [np.array([-1.0, 0.0]), np.array([-0.5, -0.5])])
    planes = Planes(np.array([0.3, 0.2]), slopes.T)
    assert book.moved(planes, np.zeros((1, 2)), np.array([0])).offsets.tolist() == [0.3, 0.2]
    book.note(slopes[:, :1], [np.array([0.0, -1.0])])
    assert book.moved(planes, np.zeros((1, 2)), np.array([0])).offsets.tolist() == [0.2]
    # The same coefficients once more are no second plane.
    book.note(slopes[:, 1:], [np.array([-0.5, -0.5])])
    assert book.moved(planes, np.zeros((1, 2)), np.array([0])).offsets.tolist() == [0.2]
