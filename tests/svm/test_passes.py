"""Passes over X: every product of X counts, also those of a start, of a first stage, and before an interrupt."""

from __future__ import annotations

import numpy as np
import pytest

from rankhinge import ApproximateRankSVC, RankSVC, SVMRanker
from rankhinge.features import feature_map
from rankhinge.objective import reductions
from rankhinge.objective.variance import variances_within
from rankhinge.solvers import Bundle, Descent
from rankhinge.svm import fit as fit_module

from .helpers import binary, graded, multiclass, multilabel


@pytest.fixture
def products(monkeypatch):
    """Grows by one with each ``X @ W``, each ``Xᵀ U`` and each look at the variance of the features."""
    made, kind = [], type(feature_map(np.ones((1, 1))))
    # The last look at X is a pass of its own kind.
    for home, name in ((kind, "scores"), (kind, "adjoint"), (reductions, "audit")):
        original = getattr(home, name)
        monkeypatch.setattr(home, name, lambda *a, original=original: made.append(1) or original(*a))
    monkeypatch.setattr(fit_module, "variances_within", lambda *a: made.append(1) or variances_within(*a))
    return made


@pytest.mark.parametrize(
    "options", [{}, {"reach": 1.0}, {"init": "convex"}, {"standardize": False}, {"init": np.ones(4)}]
)
def test_tight(products, options):
    model = RankSVC(bound="tight", **options).fit(*binary(noise=2.0))
    assert model.n_passes_ == len(products)
    # The history counts the start, too; the intercept takes a pass after the last iteration.
    assert model.history_["passes"][-1] == model.n_passes_ - 1


def test_tight_with_many_problems_many_lists_and_a_warm_start(products):
    model = RankSVC(bound="tight", warm_start=True).fit(*multiclass())
    assert model.n_passes_ == len(products)
    products.clear()
    assert model.fit(*multiclass()).n_passes_ == len(products)
    products.clear()
    X, y, qid = graded()
    assert SVMRanker(bound="tight").fit(X, y, qid=qid).n_passes_ == len(products)


@pytest.mark.parametrize("k", [1, 4, 20])
@pytest.mark.parametrize("init", ["logistic", "convex"])
def test_tight_after_an_interrupt(monkeypatch, products, init, k):
    steps = iter(range(1, 1000))

    def interrupt(self, **values):
        # Those of the start come before.
        if "iteration" in values and next(steps) == k:
            raise KeyboardInterrupt

    monkeypatch.setattr("rankhinge.svm.fit.Progress.update", interrupt)
    model = RankSVC(bound="tight", init=init, reach=3.0, verbose=1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*binary(noise=2.0))
    assert model.status_ == "interrupted"
    assert model.n_passes_ == len(products)


@pytest.mark.parametrize(("init", "solver"), [("logistic", Descent), ("convex", Bundle)])
def test_tight_after_an_interrupt_of_its_start(monkeypatch, products, init, solver):
    original, steps = solver.step, iter(range(1, 1000))

    def step(self):
        original(self)
        if next(steps) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(solver, "step", step)
    model = RankSVC(bound="tight", init=init)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*binary(noise=2.0))
    assert model.n_passes_ == len(products)


@pytest.mark.parametrize("data", [binary, multiclass])
def test_approximation_with_its_first_stage(products, data):
    model = ApproximateRankSVC(C=100.0).fit(*data())
    assert model.n_passes_ == len(products)


def test_approximation_interrupted_in_its_second_stage(products, monkeypatch):
    step = Bundle.step

    def interrupted(solver):
        if hasattr(solver, "constraints") and solver.n_iter.any():
            raise KeyboardInterrupt
        step(solver)

    monkeypatch.setattr(Bundle, "step", interrupted)
    model = ApproximateRankSVC(C=100.0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*binary())
    assert model.status_ == "interrupted"
    assert model.n_passes_ == len(products)


@pytest.mark.parametrize("solver", ["frank-wolfe", "subgradient"])
@pytest.mark.parametrize("data", [binary, multiclass, multilabel])
def test_sweeps_of_each_problem(products, solver, data):
    model = RankSVC(solver=solver, bound="convex").fit(*data())
    assert model.n_passes_ == len(products)
