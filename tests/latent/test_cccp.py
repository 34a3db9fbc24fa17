"""What a round of the concave-convex procedure hands to the next."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from rankhinge import structured_hinge
from rankhinge.latent import LatentRankSVC
from rankhinge.latent.cccp import ConcaveConvex
from rankhinge.latent.working import WORKING
from tests.convex_judge import quadratic_minimum
from tests.latent.helpers import bags_and_labels

C = 500.0


def hinge_of_choices(w, bags, y, places):
    """J with the positives at these places among all candidates, and the negatives at their best."""
    scores = bags.candidates() @ w
    best = [
        scores[place] if positive else scores[first:last].max()
        for positive, place, first, last in zip(y, places, bags.offsets[:-1], bags.offsets[1:], strict=True)
    ]
    return structured_hinge(np.array(best), y.astype(bool))


def least_bound(planes):
    """``min ½ ‖w‖² + C max(0, offset + slope @ w)`` over w and the maximum."""
    d = planes.slopes.shape[1]
    lines = np.column_stack([-planes.slopes, np.ones(planes.offsets.size)])
    lines = np.vstack([lines, np.append(np.zeros(d), 1.0)])
    return quadratic_minimum(
        np.append(np.ones(d), 0.0), np.append(np.zeros(d), C), lines, np.append(planes.offsets, 0.0)
    )


@pytest.mark.parametrize("shrinking", [True, False])
@pytest.mark.parametrize("solver", ["bundle", "cutting-plane"])
def test_planes_survive_a_change_of_candidates(monkeypatch, solver, shrinking):
    """Those that carry the bound, and no others; moved, each lies below J of the new choices."""
    original, rounds = ConcaveConvex._move, []

    def move(self, k, choice, changed):
        before = self.points[k]
        original(self, k, choice, changed)
        if self.status[k] == "running" and changed.size:
            rounds.append((choice, before, self.points[k].planes))

    monkeypatch.setattr(ConcaveConvex, "_move", move)
    bags, y = bags_and_labels(n=60, sizes=(3, 7))
    LatentRankSVC(C=C, tol=1e-5, solver=solver, shrinking=shrinking).fit(bags, y)
    assert len(rounds) == 2
    points = np.random.default_rng(0).normal(size=(20, 4))
    for choice, before, planes in rounds:
        assert least_bound(before.planes) == pytest.approx(before.dual, rel=1e-8)
        assert 0 < planes.offsets.size == before.planes.offsets.size <= 5
        for w in [before.w, *points]:
            assert np.all(planes.offsets + planes.slopes @ w <= hinge_of_choices(w, bags, y, choice) + 1e-9)


@pytest.mark.parametrize("init", ["random", "first"])
def test_no_fit_ends_beside_zero(init):
    by_working_set, by_all = [], []
    for seed in range(4):
        bags, y = bags_and_labels(n=60, sizes=(4, 12), shift=1.5, seed=seed)
        by_working_set.append(LatentRankSVC(C=500.0, init=init).fit(bags, y).objective_)
        by_all.append(LatentRankSVC(C=500.0, init=init, shrinking=False).fit(bags, y).objective_)
    assert np.mean(by_working_set) <= 1.02 * np.mean(by_all)


@pytest.mark.parametrize("seed", range(3))
def test_no_limit_is_blamed_that_was_not_reached(monkeypatch, seed):
    # A single look at all candidates: the working set's solver converges, the whole problem does not.
    monkeypatch.setattr("rankhinge.latent.inner.WORKING", WORKING._replace(sweeps=1))
    bags, y = bags_and_labels(n=40, sizes=(4, 12), seed=seed)
    with pytest.warns(ConvergenceWarning, match="relative gap"):
        # Where the positives' candidates are known, the first round is the last.
        model = LatentRankSVC(C=C, tol=1e-9).fit(bags, y, chosen=np.where(y == 1, 0, -1))
    assert model.n_iter_ < model.max_iter
    assert model.gap_ > model.tol
    assert model.status_ == "stalled"
