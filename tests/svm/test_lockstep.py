"""K problems in lockstep are K problems, and share their passes."""

from __future__ import annotations

import numpy as np
import pytest

from rankhinge import RankSVC
from rankhinge.objective import RankingObjective
from rankhinge.svm import lockstep
from tests.svm.helpers import multiclass, multilabel


@pytest.mark.parametrize("solver", ["bundle", "cutting-plane"])
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_classes(solver, tol):
    X, y = multiclass(n_classes=4)
    together = RankSVC(C=10.0, solver=solver, tol=tol).fit(X, y)
    alone = [RankSVC(C=10.0, solver=solver, tol=tol).fit(X, y == k) for k in range(4)]
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
    together = RankSVC(C=C).fit(X, Y)
    for k in range(3):
        assert together.objective_[k] == pytest.approx(RankSVC(C=C[k]).fit(X, Y[:, k]).objective_, rel=2e-3)
    # Problems end one by one, and the rows of those that have ended go on with their last values.
    assert together.history_["primal"].shape == (3, together.n_iter_.max())
    for k, n_iter in enumerate(together.n_iter_):
        np.testing.assert_array_equal(together.history_["primal"][k, n_iter - 1 :], together.objective_[k])


@pytest.fixture
def by_twos(monkeypatch):
    """From now on two problems at a time are all that memory allows."""

    def begin(n_samples):
        monkeypatch.setattr(lockstep, "_ENTRIES", 2 * n_samples)
        monkeypatch.setattr(lockstep, "_PART_OF_X", 0.0)
        monkeypatch.setattr(lockstep, "_WEIGHTS", 0.01)

    return begin


@pytest.mark.parametrize("bound", ["convex", "tight"])
def test_in_turn(by_twos, bound):
    """What does not fit into memory side by side runs in groups; the models are the same."""
    X, y = multiclass(d=6, n_classes=5)
    options = {"C": [1.0, 10.0, 100.0, 1000.0, 1e4], "bound": bound, "tol": 1e-6, "random_state": 0}
    if bound == "tight":
        options |= {"init_C": [1.0, 2.0, 3.0, 4.0, 5.0]}
    together = RankSVC(**options).fit(X, y)
    by_twos(len(y))
    in_turn = RankSVC(**options).fit(X, y)
    # The tight bound has other local minima nearby.
    rtol = 2e-6 if bound == "convex" else 2e-3
    np.testing.assert_allclose(in_turn.objective_, together.objective_, rtol=rtol)
    np.testing.assert_array_equal(in_turn.C_, options["C"])
    assert np.all(in_turn.status_ == "converged")
    assert np.all(in_turn.gap_ <= 1e-6)
    np.testing.assert_allclose(in_turn.score(X, y), together.score(X, y), atol=1e-3)
    if bound == "tight":
        np.testing.assert_array_equal(in_turn.init_C_, options["init_C"])
        np.testing.assert_array_equal(in_turn.scale_, together.scale_)
        np.testing.assert_allclose(in_turn.init_coef_, together.init_coef_, rtol=1e-5, atol=1e-7)


def test_history_of_problems_in_turn(by_twos):
    X, y = multiclass(d=6, n_classes=5)
    by_twos(len(y))
    model = RankSVC(C=[1.0, 10.0, 100.0, 1000.0, 1e4]).fit(X, y)
    groups = [slice(0, 2), slice(2, 4), slice(4, 5)]
    lengths = [model.n_iter_[group].max() for group in groups]
    primal, passes = model.history_["primal"], model.history_["passes"]
    assert primal.shape == (5, sum(lengths))
    for group, begin in zip(groups, np.cumsum([0, *lengths[:-1]]), strict=True):
        assert np.isinf(primal[group, :begin]).all()
        assert np.isfinite(primal[group, begin:]).all()
    np.testing.assert_array_equal(primal[:, -1], model.objective_)
    assert np.all(np.diff(passes) >= 0)
    alone = [RankSVC(C=[1.0, 10.0]).fit(X, np.stack([y == 0, y == 1], axis=1))]
    # But for the pass that sets the threshold.
    assert passes[0, lengths[0] - 1] == alone[0].n_passes_ - 1
    assert model.n_passes_ == passes[0, -1] + 1


@pytest.mark.parametrize("bound", ["convex", "tight"])
def test_interrupt_while_others_wait(by_twos, monkeypatch, bound):
    X, y = multiclass(d=6, n_classes=5)
    by_twos(len(y))
    whole = RankSVC(C=100.0, bound=bound, random_state=0).fit(X, y)
    model = RankSVC(C=100.0, bound=bound, random_state=0)
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
    assert np.isin(model.status_[:2], ["converged", "stalled"]).all()
    np.testing.assert_allclose(model.objective_[:2], whole.objective_[:2], rtol=2e-3)
    assert model.coef_[:4].any(axis=1).all()
    assert not model.coef_[4].any()
    assert np.isinf(model.objective_[4])
    assert np.isfinite(model.decision_function(X)).all()


def test_progress_of_problems_in_turn(by_twos, capsys):
    X, y = multiclass(d=6, n_classes=5)
    by_twos(len(y))
    RankSVC(C=1.0, verbose=2).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("  ")[0] for line in (lines[0], lines[-1])] == ["problems to come 3", "problems to come 0"]
    assert all("gap" in line for line in lines)
