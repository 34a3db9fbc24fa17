"""`LatentRankSVCCV`: scores are those of single fits, planes stay valid, the model is that of the chosen C."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, StratifiedKFold

from rankhinge import metrics
from rankhinge.latent import LatentRankSVC, LatentRankSVCCV
from rankhinge.latent.problem import problems_of
from tests.latent.helpers import bags_and_labels, multilabel_bags, outer_objective

CS = [0.3, 3.0, 30.0]


@pytest.fixture(scope="module")
def data():
    return bags_and_labels(n=90, d=4, seed=1, sizes=(4, 9), shift=2.0)


def no_stop(solver):
    return False


@pytest.mark.parametrize("shrinking", [True, False])
@pytest.mark.parametrize("solver", ["bundle", "cutting-plane"])
def test_a_path_ends_where_a_warm_start_does(data, solver, shrinking):
    """The slow twin starts each C from the coefficients before, without planes: the objectives agree within tol."""
    bags, y = data
    options = {"tol": 1e-4, "solver": solver, "shrinking": shrinking}
    machine = LatentRankSVCCV(Cs=CS, **options)
    _, targets, usable, known = machine._prepared(bags, y, None, None)
    features = machine._features(bags)
    path = list(machine._path(features, bags, problems_of(bags, targets, usable, known), np.array(CS), no_stop))
    slow = LatentRankSVC(warm_start=True, **options)
    for C, weights in zip(CS, path, strict=True):
        slow.set_params(C=C).fit(bags, y)
        mine = outer_objective(weights[:, 0], bags, y, C)
        # Both are local minima of F; from the same point they lead to the same one but for near-ties.
        assert mine == pytest.approx(slow.objective_, rel=5e-3)


def test_planes_of_another_C_are_below_the_objective(data):
    """After `go_on_from` the inherited planes bound J at any point, with the positives fixed where they now are."""
    bags, y = data
    machine = LatentRankSVCCV(tol=1e-3)
    _, targets, usable, known = machine._prepared(bags, y, None, None)
    features = machine._features(bags)
    problems = problems_of(bags, targets, usable, known)
    inner = machine._make_inner(features, bags, problems, np.array([1.0]), lambda solver: False)
    first = machine._make_outer(inner)
    machine._begin(first, 0, None)
    while not first.done:
        first.step()
    inner.whole.C = np.array([30.0])
    second = machine._make_outer(inner)
    second.go_on_from(first)
    point = second.points[0]
    assert point is not None
    assert point.planes is not None
    assert point.planes.offsets.size > 0
    fixed = problems[0].fixed(second.choices[0])
    rng = np.random.default_rng(0)
    for scale in (0.1, 1.0, 10.0):
        w = scale * rng.normal(size=4)
        scores = np.array(scores_of(features, bags, w, fixed))
        value = inner.whole.hinge(0, scores, problems[0].given)
        assert np.all(point.planes.offsets + point.planes.slopes @ w <= value + 1e-9 * max(1.0, scale))


def scores_of(features, bags, w, fixed):
    every = features.rows(np.arange(features.n_samples)) @ w
    starts = bags.offsets
    return [every[place] if place >= 0 else every[starts[b] : starts[b + 1]].max() for b, place in enumerate(fixed)]


def test_scores_are_those_of_the_test_parts(data):
    bags, y = data
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(y, y))
    machine = LatentRankSVCCV(Cs=[3.0], cv=folds, tol=1e-4).fit(bags, y)
    for fold, (train, test) in enumerate(folds):
        own = LatentRankSVC(C=3.0, tol=1e-4).fit(bags[train], y[train])
        expected = metrics.average_precision(y[test], own.decision_function(bags[test]))
        assert machine.scores_[0, fold] == pytest.approx(expected, abs=1e-6)


def test_the_model_is_that_of_the_chosen_C(data):
    bags, y = data
    machine = LatentRankSVCCV(Cs=CS, cv=3, random_state=0).fit(bags, y)
    best = int(np.argmax(machine.scores_.mean(axis=1)))
    assert pytest.approx(CS[best]) == machine.C_
    assert machine.best_score_ == pytest.approx(machine.scores_.mean(axis=1).max())
    assert machine.n_splits_ == 3
    same = LatentRankSVC(C=machine.C_, random_state=0).fit(bags, y)
    np.testing.assert_array_equal(machine.coef_, same.coef_)
    np.testing.assert_array_equal(clone(machine).fit(bags, y).coef_, machine.coef_)


def test_results_are_those_that_scikit_learn_would_have(data):
    """The table has the scores of the path, and its best row is the model."""
    bags, y = data
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(y, y))
    machine = LatentRankSVCCV(Cs=CS, cv=folds, tol=1e-4).fit(bags, y)
    found = machine.cv_results_
    assert found["params"] == [{"C": C} for C in CS]
    assert found["param_C"].tolist() == CS
    for fold in range(3):
        assert found[f"split{fold}_test_score"].tolist() == machine.scores_[:, fold].tolist()
    np.testing.assert_allclose(found["mean_test_score"], machine.scores_.mean(axis=1), rtol=1e-12)
    np.testing.assert_allclose(found["std_test_score"], machine.scores_.std(axis=1), atol=1e-12)
    assert found["rank_test_score"][machine.best_index_] == 1
    assert machine.best_params_ == {"C": machine.C_} == found["params"][machine.best_index_]
    assert machine.best_score_ == found["mean_test_score"].max()
    assert machine.n_splits_ == 3
    refit = LatentRankSVC(**machine.best_params_, tol=1e-4).fit(bags, y)
    np.testing.assert_array_equal(refit.coef_, machine.coef_)


def test_several_labels_have_a_C_each():
    bags, Y = multilabel_bags(n=80, seed=2)
    mask = np.ones(Y.shape, bool)
    mask[:10, 0] = False
    machine = LatentRankSVCCV(Cs=CS, cv=3, random_state=0).fit(bags, Y, mask=mask)
    assert machine.scores_.shape == (3, 3, 3)
    assert machine.C_.shape == (3,)
    assert set(machine.C_) <= set(CS)
    assert machine.coef_.shape == (3, 4)
    found = machine.cv_results_
    assert found["label"].tolist() == np.repeat(machine.classes_, 3).tolist()
    assert found["rank_test_score"][machine.best_index_].tolist() == [1, 1, 1]
    assert found["param_C"][machine.best_index_].tolist() == machine.best_params_["C"].tolist() == machine.C_.tolist()
    np.testing.assert_allclose(found["mean_test_score"].reshape(3, 3), machine.scores_.mean(axis=2))
    assert machine.best_score_ == pytest.approx(machine.scores_.mean(axis=2).max(axis=1).mean())


def test_known_candidates_and_groups(data):
    bags, y = data
    chosen = np.where(np.arange(len(y)) % 2 == 0, 0, -1)
    groups = np.arange(len(y)) // 3
    machine = LatentRankSVCCV(Cs=CS, cv=GroupKFold(3)).fit(bags, y, chosen=chosen, groups=groups)
    assert np.isfinite(machine.scores_).all()


def test_a_fold_without_a_score_for_some_C_counts_for_none(data):
    bags, y = data
    calls = []

    def gap(relevant, scores):
        calls.append(0)
        # Of the first value of the second fold.
        return np.nan if len(calls) == 1 + len(CS) else metrics.average_precision(relevant, scores)

    machine = LatentRankSVCCV(Cs=CS, cv=3, scoring=gap, random_state=0).fit(bags, y)
    assert np.argwhere(np.isnan(machine.scores_)).tolist() == [[0, 1]]
    assert np.isnan(machine.cv_results_["split1_test_score"]).all()
    assert machine.best_score_ == pytest.approx(machine.scores_[:, [0, 2]].mean(axis=1).max())
    assert machine.cv_results_["rank_test_score"][machine.best_index_] == 1


def test_another_metric(data):
    bags, y = data
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(y, y))
    by_ap = LatentRankSVCCV(Cs=[3.0], cv=folds).fit(bags, y)
    by_auc = LatentRankSVCCV(Cs=[3.0], cv=folds, scoring="auc").fit(bags, y)
    assert np.all(by_ap.scores_ != by_auc.scores_)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"Cs": [-1.0]}, "Cs"), ({"Cs": []}, "Cs"), ({"Cs": 0}, "Cs"), ({"scoring": "nonsense"}, "nonsense")],
)
def test_refuses(data, options, message):
    with pytest.raises(ValueError, match=message):
        LatentRankSVCCV(**options).fit(*data)


def test_folds_without_positives(data):
    bags, y = data
    negatives = np.flatnonzero(y == 0)
    folds = [(np.setdiff1d(np.arange(len(y)), negatives[:10]), negatives[:10])]
    with pytest.raises(ValueError, match="no fold has both"):
        LatentRankSVCCV(Cs=[1.0], cv=folds).fit(bags, y)
