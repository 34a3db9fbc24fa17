"""K problems in lockstep are K problems, and share their passes."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from rankhinge import RankSVC
from rankhinge.objective import RankingObjective
from rankhinge.solvers import PlaneSolver
from rankhinge.svm import fit as fit_module
from rankhinge.svm import lockstep
from tests.svm.helpers import multiclass, multilabel


@pytest.mark.parametrize("solver", ["bundle", "cutting-plane"])
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_classes(solver, tol):
    X, y = multiclass(n_classes=4)
    together = RankSVC(C=10.0, solver=solver, tol=tol, bound="convex").fit(X, y)
    alone = [RankSVC(C=10.0, solver=solver, tol=tol, bound="convex").fit(X, y == k) for k in range(4)]
    for k, model in enumerate(alone):
        # Both lie within tol above the same minimum.
        assert together.objective_[k] == pytest.approx(model.objective_, rel=2 * tol)
        assert together.dual_objective_[k] <= model.objective_
        assert model.dual_objective_ <= together.objective_[k]
        # The objective is 1-strongly convex, so each solution is near the optimum.
        distance = np.linalg.norm(together.coef_[k] - model.coef_[0])
        assert distance <= 2 * np.sqrt(2 * tol * model.objective_)
    assert together.n_passes_ < sum(model.n_passes_ for model in alone)
    assert together.n_iter_.shape == (4,)


def test_labels_with_their_own_C():
    X, Y = multilabel()
    C = [0.1, 10.0, 1000.0]
    together = RankSVC(C=C, bound="convex").fit(X, Y)
    for k in range(3):
        assert together.objective_[k] == pytest.approx(
            RankSVC(C=C[k], bound="convex").fit(X, Y[:, k]).objective_, rel=2e-3
        )
    # Problems end one by one, and the rows of those that have ended go on with their last values.
    assert together.history_["primal"].shape == (3, together.n_iter_.max())
    for k, n_iter in enumerate(together.n_iter_):
        np.testing.assert_allclose(together.history_["primal"][k, n_iter - 1 :], together.objective_[k], rtol=1e-12)


@pytest.fixture
def by_twos(monkeypatch):
    """From now on two problems at a time are all that memory allows."""

    def begin(n_samples):
        monkeypatch.setattr(
            lockstep, "MEMORY", lockstep.MEMORY._replace(entries=2 * n_samples, part_of_X=0.0, weights=0.01)
        )

    return begin


@pytest.mark.parametrize("bound", ["convex", "tight"])
def test_in_turn(by_twos, bound):
    """What does not fit into memory side by side runs in groups; the models are the same."""
    X, y = multiclass(d=6, n_classes=5)
    options = {"bound": bound, "tol": 1e-6, "random_state": 0}
    options |= {"C": [1.0, 10.0, 100.0, 1000.0, 1e4]} if bound == "convex" else {"reach": [0.1, 0.3, 1.0, 2.0, 3.0]}
    if bound == "tight":
        options |= {"init_C": [1.0, 2.0, 3.0, 4.0, 5.0]}
    together = RankSVC(**options).fit(X, y)
    by_twos(len(y))
    in_turn = RankSVC(**options).fit(X, y)
    # The tight bound has other local minima nearby.
    rtol = 2e-6 if bound == "convex" else 2e-3
    np.testing.assert_allclose(in_turn.objective_, together.objective_, rtol=rtol)
    name = "C" if bound == "convex" else "reach"
    np.testing.assert_array_equal(getattr(in_turn, f"{name}_"), options[name])
    assert np.all(in_turn.status_ == "converged")
    assert np.all(in_turn.gap_ <= 1e-6)
    np.testing.assert_allclose(in_turn.score(X, y), together.score(X, y), atol=1e-3)
    if bound == "tight":
        np.testing.assert_array_equal(in_turn.init_C_, options["init_C"])
        np.testing.assert_array_equal(in_turn.scale_, together.scale_)
        np.testing.assert_allclose(in_turn.init_coef_, together.init_coef_, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("bound", ["convex", "tight"])
def test_history_of_problems_in_turn(by_twos, bound):
    """Each problem has the iterations of its own group, and the passes of all until then."""
    X, y = multiclass(d=6, n_classes=5)
    C = np.array([1.0, 10.0, 100.0, 1000.0, 1e4])
    name, values = ("C", C) if bound == "convex" else ("reach", np.log10(C + 1.0))
    by_twos(len(y))
    model = RankSVC(bound=bound, **{name: values}).fit(X, y)
    passes, lengths = 0, []
    for group in (slice(0, 2), slice(2, 4), slice(4, 5)):
        labels = np.stack([y == k for k in range(5)[group]], axis=1)
        alone = RankSVC(bound=bound, **{name: values[group]}).fit(X, labels if labels.shape[1] > 1 else labels[:, 0])
        length = np.atleast_2d(alone.history_["primal"]).shape[1]
        lengths.append(length)
        for key in ("primal", "dual", "gap"):
            expected, mine = np.atleast_2d(alone.history_[key]), model.history_[key][group]
            np.testing.assert_array_equal(mine[:, :length], expected)
            np.testing.assert_array_equal(mine[:, length:], np.broadcast_to(expected[:, -1:], mine[:, length:].shape))
        # The features are measured once for all.
        expected = np.atleast_2d(alone.history_["passes"]) + passes - (bound == "tight" and group.start > 0)
        np.testing.assert_array_equal(model.history_["passes"][group, :length], expected)
        passes = model.history_["passes"][group.start, -1]
        assert np.all(np.diff(model.history_["time"][group]) >= 0)
    np.testing.assert_allclose(model.history_["primal"][:, -1], model.objective_, rtol=1e-12)
    assert model.history_["primal"].shape == (5, max(lengths))
    # But for those that set the thresholds.
    assert model.n_passes_ == passes + 3


def test_history_grows_with_the_problems_not_with_their_square(by_twos):
    X, Y = multilabel(n=40, n_labels=4)
    by_twos(40)
    shapes = [RankSVC(C=10.0, bound="convex").fit(X, np.tile(Y, n)).history_["primal"].shape for n in (1, 3)]
    assert shapes[0][1] == shapes[1][1]


def test_a_warm_start_outlives_an_interrupt_while_it_waits(by_twos, monkeypatch):
    X, y = multiclass(d=6, n_classes=5)
    model = RankSVC(C=100.0, warm_start=True, bound="convex").fit(X, y)
    earlier, ranked = model.coef_.copy(), model.score(X, y)
    by_twos(len(y))
    original, calls = RankingObjective.adjoint, []

    def adjoint(self, coefficients):
        calls.append(None)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(self, coefficients)

    with monkeypatch.context() as patch:
        patch.setattr(RankingObjective, "adjoint", adjoint)
        with pytest.raises(KeyboardInterrupt):
            model.set_params(C=1000.0, tol=1e-9).fit(X, y)
    np.testing.assert_array_equal(model.coef_[2:], earlier[2:])
    np.testing.assert_array_equal(model.C_, 1000.0)
    assert model.score(X, y) > ranked - 0.05


def test_interrupt_in_the_first_step_of_a_later_group(by_twos, monkeypatch):
    X, y = multiclass(d=6, n_classes=5)
    by_twos(len(y))
    expected = RankSVC(C=100.0, bound="convex").fit(X, y)
    original = PlaneSolver.step

    def step(self):
        if len(seen) > 1 and self is seen[-1]:
            raise KeyboardInterrupt
        original(self)

    seen, begin = [], fit_module.begin

    def begin_and_note(*arguments):
        seen.append(begin(*arguments))
        return seen[-1]

    monkeypatch.setattr(PlaneSolver, "step", step)
    monkeypatch.setattr(fit_module, "begin", begin_and_note)
    model = RankSVC(C=100.0, bound="convex")
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    np.testing.assert_array_equal(model.coef_[:2], expected.coef_[:2])
    np.testing.assert_array_equal(model.status_, ["converged"] * 2 + ["interrupted"] * 3)
    assert np.isinf(model.history_["primal"][2:]).all()


def test_problems_that_have_not_begun_are_told(by_twos):
    X, y = multiclass(d=6, n_classes=5)
    by_twos(len(y))

    class Stops(RankSVC):
        @contextmanager
        def _callbacks(self, fitted=None, given=None):
            yield lambda: True

    with pytest.warns(ConvergenceWarning, match="3 of 5 problems had not begun"):
        Stops(C=1000.0, bound="convex").fit(X, y)


def test_thresholds_are_set_group_by_group(by_twos):
    X, Y = multilabel(n_labels=3)
    together = RankSVC(C=10.0, bound="convex").fit(X, Y)
    by_twos(len(Y))
    in_turn = RankSVC(C=10.0, bound="convex").fit(X, Y)
    np.testing.assert_array_equal(in_turn.predict(X), together.predict(X))
    assert in_turn.n_passes_ > together.n_passes_


@pytest.mark.parametrize("bound", ["convex", "tight"])
def test_interrupt_while_others_wait(by_twos, monkeypatch, bound):
    X, y = multiclass(d=6, n_classes=5)
    by_twos(len(y))
    strength = {"C": 100.0} if bound == "convex" else {"reach": 1.0}
    whole = RankSVC(bound=bound, random_state=0, **strength).fit(X, y)
    model = RankSVC(bound=bound, random_state=0, **strength)
    original, seen = RankingObjective.adjoint, []

    def adjoint(self, coefficients):
        # Problems of the second group: a little later there is something to be kept.
        seen.append(self.problems[0].levels[0].relevant is second)
        if sum(seen) == 30:
            raise KeyboardInterrupt
        return original(self, coefficients)

    part, second = RankingObjective.part, None

    def note(self, problems):
        nonlocal second
        found = part(self, problems)
        if problems[0] == 2:
            second = found.problems[0].levels[0].relevant
        return found

    with monkeypatch.context() as patch:
        patch.setattr(RankingObjective, "adjoint", adjoint)
        patch.setattr(RankingObjective, "part", note)
        with pytest.raises(KeyboardInterrupt):
            model.set_params(tol=1e-12).fit(X, y)
    np.testing.assert_array_equal(model.status_[2:], "interrupted")
    assert np.isin(model.status_[:2], ["converged", "stalled", "precision"]).all()
    np.testing.assert_allclose(model.objective_[:2], whole.objective_[:2], rtol=2e-3)
    assert model.coef_[:4].any(axis=1).all()
    assert not model.coef_[4].any()
    assert np.isinf(model.objective_[4])
    assert np.isfinite(model.decision_function(X)).all()


def test_progress_of_problems_in_turn(by_twos, capsys):
    X, y = multiclass(d=6, n_classes=5)
    by_twos(len(y))
    RankSVC(C=1.0, verbose=2, bound="convex").fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[0] for line in (lines[0], lines[-1])] == ["problems to come 3", "problems to come 0"]
    assert all("gap" in line for line in lines)
