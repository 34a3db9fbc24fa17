"""Ctrl-C in the middle of a fit: the exception passes, and the best model so far stays."""

from __future__ import annotations

import numpy as np
import pytest

from rankhinge import ApproximateRankSVC, RankSVC, SVMRanker
from rankhinge.objective import RankingObjective
from rankhinge.svm import _fitting, begin, threshold
from tests.svm.helpers import binary, graded, multiclass, multilabel


@pytest.fixture
def interrupt_after(monkeypatch):
    """Let the k-th inference from now on raise; `undo` makes the next ones run again."""

    def arm(k):
        original, n_calls = RankingObjective.evaluate, iter(range(1, 10**6))

        def evaluate(self, *arguments, **options):
            if next(n_calls) == k:
                raise KeyboardInterrupt
            return original(self, *arguments, **options)

        monkeypatch.setattr(RankingObjective, "evaluate", evaluate)

    arm.undo = monkeypatch.undo
    return arm


HARD = {"bound": "convex", "C": 1e4, "tol": 1e-9}


@pytest.mark.parametrize("k", [1, 2, 5, 20])
@pytest.mark.parametrize("data", [binary, multiclass, multilabel])
def test_classifier(interrupt_after, data, k):
    X, y = data()
    model = RankSVC(**HARD)
    interrupt_after(k)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    interrupt_after.undo()
    assert "interrupted" in np.atleast_1d(model.status_)
    assert np.isfinite(model.coef_).all()
    assert model.predict(X).shape == y.shape
    assert np.isfinite(model.decision_function(X)).all()
    assert 0 <= model.score(X, y) <= 1
    if k > 10:
        # Something has been learnt: better than the start, and the certificate holds at the end as well.
        assert np.all(model.objective_ < HARD["C"])
        assert np.all(model.dual_objective_ <= model.objective_)
    again = model.fit(X, y)
    assert np.all(again.gap_ <= 1e-9)
    np.testing.assert_array_equal(again.coef_, RankSVC(**HARD).fit(X, y).coef_)


def test_an_interrupt_after_the_last_step_loses_nothing(monkeypatch):
    X, y = multilabel()
    expected, calls = RankSVC(bound="convex").fit(X, y), []
    original = threshold.Cut.__call__

    def cut_rankings(*arguments):
        calls.append(None)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(threshold.Cut, "__call__", cut_rankings)
    model = RankSVC(bound="convex")
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    assert np.all(model.status_ == "converged")


@pytest.mark.parametrize("name", ["rescaled", "unit_of_C"])
@pytest.mark.parametrize("init", ["logistic", "convex"])
def test_an_interrupt_between_the_start_and_the_tight_bound_keeps_the_start(monkeypatch, name, init):
    X, y = binary()
    expected, calls = RankSVC(bound="tight", init=init).fit(X, y), []
    original = getattr(begin, name)

    def interrupted(*arguments):
        calls.append(None)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return original(*arguments)

    monkeypatch.setattr(begin, name, interrupted)
    model = RankSVC(bound="tight", init=init)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.status_ == "interrupted"
    np.testing.assert_array_equal(model.init_coef_, expected.init_coef_)
    assert model.coef_.any()
    assert model.C_ == expected.C_


@pytest.mark.parametrize("solver", ["bundle", "cutting-plane"])
def test_ranker(interrupt_after, solver):
    X, y, qid = graded()
    model = SVMRanker(C=100.0, solver=solver, bound="convex")
    interrupt_after(3)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y, qid=qid)
    interrupt_after.undo()
    assert model.status_ == "interrupted"
    assert np.isfinite(model.predict(X)).all()
    assert model.n_queries_ == 6
    assert model.fit(X, y, qid=qid).status_ == "converged"


def test_warm_start_goes_on_from_there(interrupt_after):
    X, y = binary()
    model = RankSVC(warm_start=True, **HARD)
    interrupt_after(20)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    interrupt_after.undo()
    reached = model.objective_
    assert model.fit(X, y).history_["primal"][0] <= reached * (1 + 1e-12)
    assert model.status_ == "converged"


def test_interrupt_of_a_second_fit(interrupt_after):
    X, y = binary()
    model = RankSVC(**HARD).fit(X, y)
    interrupt_after(20)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :3], y)
    interrupt_after.undo()
    assert model.coef_.shape == (1, 3)
    assert model.status_ == "interrupted"
    assert model.predict(X[:, :3]).shape == y.shape


@pytest.mark.parametrize("solver", ["bundle", "cutting-plane", "frank-wolfe"])
def test_an_interrupt_before_anything_is_learnt_leaves_the_earlier_model(interrupt_after, solver):
    X, y = binary()
    model = RankSVC(solver=solver, bound="convex").fit(X, y)
    before = dict(vars(model))
    interrupt_after(1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :3], y)
    interrupt_after.undo()
    assert vars(model) == before


@pytest.mark.parametrize("k", [1, 8])
def test_approximation_in_its_first_stage_or_later(interrupt_after, k):
    X, y = binary()
    model = ApproximateRankSVC(C=100.0)
    interrupt_after(k)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    interrupt_after.undo()
    assert model.status_ == "interrupted"
    assert np.isfinite(model.decision_function(X)).all()
    assert model.n_easy_ + model.n_difficult_ == len(y)
    assert model.binary_coef_.shape == model.coef_.shape
    assert model.n_easy_ == 0 or k > 1
    assert model.fit(X, y).status_ == "converged"


def test_other_errors_pass_too(monkeypatch):
    X, y = binary()
    model = RankSVC(bound="convex")
    with monkeypatch.context() as patch:
        patch.setattr(RankingObjective, "adjoint", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            model.fit(X, y)
    assert not hasattr(model, "coef_")
    assert model.fit(X, y).status_ == "converged"


@pytest.mark.parametrize("k", [3, 20])
@pytest.mark.parametrize("model", [RankSVC(**HARD), SVMRanker("ap", **HARD), ApproximateRankSVC(C=1e4, tol=1e-9)])
def test_an_interrupt_that_python_hides_in_a_system_error(monkeypatch, model, k):
    """So it does if Ctrl-C falls into the moment at which a compiled function returns."""
    X, y = binary()
    original, n_calls = RankingObjective.evaluate, iter(range(1, 10**6))

    def evaluate(self, *arguments, **options):
        if next(n_calls) == k:
            raise SystemError("returned a result with an exception set") from KeyboardInterrupt()
        return original(self, *arguments, **options)

    monkeypatch.setattr(RankingObjective, "evaluate", evaluate)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.status_ == "interrupted"
    assert model.coef_.size == X.shape[1]


def test_other_system_errors_are_not_touched(monkeypatch):
    def evaluate(self, *arguments, **options):
        raise SystemError("something else")

    monkeypatch.setattr(RankingObjective, "evaluate", evaluate)
    with pytest.raises(SystemError, match="something else"):
        RankSVC(bound="convex").fit(*binary())


@pytest.mark.parametrize("n_gone", [0, 1, 5, 20])
def test_an_interrupt_while_the_earlier_model_is_put_aside(monkeypatch, n_gone):
    X, y = binary()
    model = RankSVC(bound="convex").fit(X, y)
    before = dict(vars(model))
    removed = _fitting._remove

    def interrupted(attributes, names):
        monkeypatch.setattr(_fitting, "_remove", removed)
        for name in sorted(names & attributes.keys())[:n_gone]:
            del attributes[name]
        raise KeyboardInterrupt

    monkeypatch.setattr(_fitting, "_remove", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, 1 - y)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())


@pytest.mark.parametrize("solver", ["bundle", "cutting-plane"])
def test_an_interrupt_within_a_step_of_a_group(monkeypatch, solver):
    X, labels = multilabel()
    monkeypatch.setattr("rankhinge.svm.fit.side_by_side", lambda objective, n: np.array_split(np.arange(n), 2))
    for k in range(2, 14):
        with monkeypatch.context() as patch:
            original, n_calls = RankingObjective.adjoint, iter(range(1, 10**6))

            def adjoint(self, *arguments, original=original, n_calls=n_calls, k=k):
                if next(n_calls) == k:
                    raise KeyboardInterrupt
                return original(self, *arguments)

            patch.setattr(RankingObjective, "adjoint", adjoint)
            model = RankSVC(bound="convex", solver=solver, tol=1e-6)
            with pytest.raises(KeyboardInterrupt):
                model.fit(X, labels)
        assert "interrupted" in model.status_
