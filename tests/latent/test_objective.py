"""Inference with latent negatives, planes, and Proposition 1, against brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from rankhinge.latent.candidates import CandidateFeatures
from rankhinge.latent.objective import LatentObjective, moved_planes
from rankhinge.latent.problem import latent_problem
from rankhinge.losses import get_loss
from rankhinge.objective import ListsHinge
from rankhinge.solvers import make_solver
from tests import brute_force
from tests.latent.helpers import bags_and_labels, choices

LOSSES = {"ap": brute_force.AP, "ndcg": brute_force.NDCG, "rr": brute_force.RR, "auc": brute_force.AUC}


def objective_of(bags, y, choice, loss="ap", places=None, known=None):
    known = np.full(len(bags), -1) if known is None else known
    problem = latent_problem(bags, y.astype(bool), None, known)
    fixed = problem.fixed(bags.offsets[:-1] + choice)
    features = CandidateFeatures(bags.matrix, bags.rows()).some(places)
    seen = problem.seen_among(places, fixed)
    return LatentObjective(features, [seen], ListsHinge([seen.lists], get_loss(loss)))


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


@pytest.mark.parametrize("solver", ["cutting-plane", "bundle", "quasi-newton"])
@pytest.mark.parametrize("seed", range(3))
def test_planes_move_with_the_choices(seed, solver):
    """Whichever way a solver has cut them: as if each had been cut with the new candidates."""
    bags, y = bags_and_labels(seed=seed)
    rng = np.random.default_rng(seed)
    old, new = rng.integers(0, bags.sizes), rng.integers(0, bags.sizes)
    before, after = objective_of(bags, y, old), objective_of(bags, y, new)
    running = make_solver(solver, before, 50.0, tol=1e-6)
    for _ in range(4):
        running.step()
    (planes,) = running.planes()
    candidates, positives, first = bags.candidates(), np.flatnonzero(y), bags.offsets[:-1]
    assert planes.payloads.shape == (planes.offsets.size, positives.size)
    # The part of each slope that comes from the positives is what the payload says.
    rest = planes.slopes - planes.payloads @ candidates[first[positives] + old[positives]]
    literal = rest + planes.payloads @ candidates[first[positives] + new[positives]]
    changed = np.flatnonzero((old != new) & (y == 1))
    change = np.stack([bags[int(b)][new[b]] - bags[int(b)][old[b]] for b in changed])
    which = np.searchsorted(positives, changed)
    moved = moved_planes(planes, change, which)
    np.testing.assert_array_equal(moved.offsets, planes.offsets)
    np.testing.assert_allclose(moved.slopes, literal, atol=1e-13)
    for _ in range(20):
        w = rng.normal(size=4)
        value = after.evaluate(after.score(w[:, None], np.zeros(1, int))).value[0]
        assert np.all(moved.offsets + moved.slopes @ w <= value + 1e-12)
    # They can move back, and another solver begins with them.
    np.testing.assert_allclose(moved_planes(moved, -change, which).slopes, planes.slopes, atol=1e-13)
    again = make_solver(solver, after, 50.0, tol=1e-6, planes=[moved])
    assert again.dual[0] > 0.0
    np.testing.assert_array_equal(again.planes()[0].payloads, moved.payloads)


def test_the_payload_is_the_coefficients_of_the_positives():
    bags, y = bags_and_labels()
    objective = objective_of(bags, y, np.zeros(len(bags), int))
    w = np.random.default_rng(1).normal(size=(4, 1))
    u = objective.evaluate(objective.score(w, np.zeros(1, int))).coefficients
    (payload,) = objective.payloads(u)
    np.testing.assert_array_equal(payload, u.values[0][bags.offsets[:-1][y == 1]])
    assert (payload <= 0.0).all()
    assert payload.size == objective.payload_width(0)


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
