"""Fits that are interrupted, stopped or refused: a whole model, with true figures, or the one before."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from rankhinge.latent import LatentRankSVC, LatentSVC
from rankhinge.latent.candidates import CandidateFeatures
from rankhinge.latent.cccp import ConcaveConvex
from rankhinge.latent.objective import LatentObjective
from tests.latent.helpers import bags_and_labels, multilabel_bags, outer_objective


def interrupt_at(monkeypatch, owner, name, k):
    """The k-th call of a method raises what Ctrl-C would."""
    original, n_calls = getattr(owner, name), iter(range(1, 10**6))

    def method(self, *arguments, **options):
        if next(n_calls) == k:
            raise KeyboardInterrupt
        return original(self, *arguments, **options)

    monkeypatch.setattr(owner, name, method)


def interrupted(monkeypatch, model, X, y, owner, name, k, **options):
    interrupt_at(monkeypatch, owner, name, k)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y, **options)
    monkeypatch.undo()
    return model


def check_figures(model, bags, Y, C):
    for k in range(Y.shape[1]):
        assert model.objective_[k] == pytest.approx(outer_objective(model.coef_[k], bags, Y[:, k], C), rel=1e-9)
    rounds = {name: values.shape[1] for name, values in model.outer_history_.items()}
    assert set(rounds.values()) == {model.n_outer_.max()}
    for table, n in zip(model.chosen_history_, model.n_outer_, strict=True):
        assert len(table) == n + 1 or (n == 0 and len(table) == 0)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("name", ["_record", "_move", "_finish_round"])
def test_between_the_labels_of_a_round(monkeypatch, name, k):
    bags, Y = multilabel_bags(n=60)
    model = interrupted(monkeypatch, LatentRankSVC(C=10.0), bags, Y, ConcaveConvex, name, k)
    assert "interrupted" in model.status_
    assert model.coef_.any(axis=1).all()
    check_figures(model, bags, Y, 10.0)


@pytest.mark.parametrize("shrinking", [True, False])
@pytest.mark.parametrize("k", [5, 20, 40, 53, 70])
def test_a_later_interrupt_is_not_worse(monkeypatch, k, shrinking):
    bags, Y = multilabel_bags(n=80)
    bags = type(bags)([np.concatenate([bag] * 4) for bag in bags])
    model = interrupted(
        monkeypatch, LatentRankSVC(C=10.0, tol=1e-6, shrinking=shrinking), bags, Y, LatentObjective, "evaluate", k
    )
    check_figures(model, bags, Y, 10.0)
    at_zero = [outer_objective(np.zeros(4), bags, Y[:, label], 10.0) for label in range(3)]
    assert np.all(model.objective_ <= np.array(at_zero) * (1 + 1e-12))
    if k >= 53 and shrinking:
        assert model.coef_.any(axis=1).all()


@pytest.mark.parametrize("warm_start", [True, False])
def test_before_anything_was_reached_the_earlier_model_stays(monkeypatch, warm_start):
    bags, y = bags_and_labels()
    model = LatentRankSVC(C=10.0, warm_start=warm_start).fit(bags, y)
    before = {name: value for name, value in vars(model).items() if name.endswith("_")}
    interrupted(monkeypatch, model, bags, y, CandidateFeatures, "sweep", 1)
    for name, value in before.items():
        assert getattr(model, name) is value


def test_while_results_are_stored(monkeypatch):
    from rankhinge.latent import _base

    bags, y = bags_and_labels(n=60)
    model = LatentRankSVC(C=10.0).fit(bags, y)
    expected = model.decision_function(bags)

    def cut_rankings(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(_base, "cut_rankings", cut_rankings)
    with pytest.raises(KeyboardInterrupt):
        model.fit(bags, np.column_stack([y, 1 - y, y]))
    monkeypatch.undo()
    np.testing.assert_array_equal(model.decision_function(bags), expected)
    assert model.score(bags, y) > 0.5


def test_a_wish_to_stop_holds_for_the_starts_that_follow():
    from contextlib import contextmanager

    asked = []

    class Stopped(LatentRankSVC):
        @contextmanager
        def _callbacks(self, fitted=None, given=None):
            yield lambda: asked.append(0) or len(asked) == 30

    bags, y = bags_and_labels(n=60, sizes=(4, 9), shift=0.5)
    with pytest.warns(ConvergenceWarning):
        Stopped(C=10.0, n_starts=6, init="random", tol=1e-6).fit(bags, y)
    assert len(asked) == 30


@pytest.mark.parametrize("solver", ["bundle", "cutting-plane"])
def test_starts_belong_to_the_problem_that_follows(monkeypatch, solver):
    """The inner solver gets the value of *this* inner problem, and planes that lie below it: else no gap is true."""
    from rankhinge.latent.inner import InnerSolver

    original, n_checked = InnerSolver.solve, 0

    def solve(self, ks, fixed, starts, tol):
        nonlocal n_checked
        for k, places, start in zip(ks, fixed, starts, strict=True):
            if start is None or not np.isfinite(start.primal):
                continue
            found = self.whole.sweep(np.array([k]), start.w[:, None], [places])
            value = self.whole.point(int(k), start.w, found, 0, places).primal
            assert start.primal == pytest.approx(value, rel=1e-9)
            if start.planes is not None:
                J = (value - 0.5 * start.w @ start.w) / self.whole.C[k]
                assert np.all(start.planes.offsets + start.planes.slopes @ start.w <= J + 1e-9)
            n_checked += 1
        return original(self, ks, fixed, starts, tol)

    monkeypatch.setattr(InnerSolver, "solve", solve)
    for seed in [*range(40), 351]:
        rng = np.random.default_rng(seed)
        y, X = np.arange(20) % 3 == 0, rng.normal(size=(20, 6, 4))
        LatentSVC(C=10.0, ignore_confusing=5.0, init="random", random_state=seed, tol=0.05, solver=solver).fit(
            list(X), y
        )
    assert n_checked > 40


def test_the_procedure_does_not_end_at_zero_where_it_can_fall():
    for seed in (122, 207, 247):
        rng = np.random.default_rng(seed)
        y, X = np.arange(12) % 3 == 0, rng.normal(size=(12, 4, 2))
        X[y, rng.integers(4)] += [1.0, 0]
        model = LatentRankSVC(C=10.0).fit(list(X), y)
        assert model.coef_.any()
        assert model.objective_ < outer_objective(np.zeros(2), list(X), y, 10.0)
        assert np.all(np.diff(model.outer_history_["objective"]) <= 0)


@pytest.mark.parametrize("k", [3, 6, 10, 20, 40, 60])
@pytest.mark.parametrize("machine", [LatentRankSVC, LatentSVC])
def test_each_label_is_valued_by_its_own_bags(monkeypatch, machine, k):
    """Labels that a mask leaves as many bags, but others: what an interrupt has reached belongs to one of them."""
    bags, Y = multilabel_bags(n=60)
    # So many candidates that there are working sets.
    bags = type(bags)([np.concatenate([bag] * 4) for bag in bags])
    mask = np.ones(Y.shape, bool)
    for label in range(Y.shape[1]):
        mask[10 * label : 10 * label + 8, label] = False
    chosen = np.where(np.arange(60) % 3 == 0, -1, [len(bag) - 1 for bag in bags])
    options = {} if machine is LatentRankSVC else {"fit_intercept": False}
    given = {"mask": mask, "chosen": chosen}
    model = interrupted(monkeypatch, machine(C=10.0, **options), bags, Y, LatentObjective, "evaluate", k, **given)
    for label in range(Y.shape[1]):
        mine, relevant = bags[mask[:, label]], Y[mask[:, label], label]
        loss = "ap" if machine is LatentRankSVC else "zero-one"
        value = outer_objective(model.coef_[label], mine, relevant, 10.0, loss, chosen[mask[:, label]])
        assert model.objective_[label] == pytest.approx(value, rel=1e-9) or not np.isfinite(model.objective_[label])


def test_a_callback_sees_models_of_labels_with_a_mask():
    monitors = pytest.importorskip("sklearn.callback")
    if not hasattr(monitors, "ScoringMonitor"):
        pytest.skip("this scikit-learn has no ScoringMonitor")
    bags, Y = multilabel_bags(n=60)
    bags = type(bags)([np.concatenate([bag] * 4) for bag in bags])
    mask = np.random.default_rng(0).random(Y.shape) < 0.7
    seen = []

    def score(estimator, X, y, mask):
        seen.append(estimator.score(X, y, mask=mask))
        return {"mine": seen[-1]}

    model = LatentRankSVC(C=10.0).set_callbacks(monitors.ScoringMonitor(scoring=score)).fit(bags, Y, mask=mask)
    assert seen[-1] == pytest.approx(model.score(bags, Y, mask=mask))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_no_more_iterations_and_rounds_than_allowed():
    rng = np.random.default_rng(7)
    for _ in range(60):
        y = np.arange(10) < 3
        X = rng.normal(size=(10, 5, 2))
        limits = {"max_iter": int(rng.integers(1, 5)), "max_outer": int(rng.integers(1, 3))}
        model = LatentRankSVC(C=10.0 ** rng.uniform(-1, 3), tol=0.02, **limits).fit(list(X), y)
        assert model.n_outer_ <= limits["max_outer"]
        assert model.n_iter_ <= limits["max_iter"] * model.n_outer_
