"""The search of the tight bound: what it takes follows from its scores, and what it says can be fitted again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rankhinge import RankSVC, RankSVCCV, SVMRankerCV
from rankhinge.svm.folds import Part, batches, units_to_try
from rankhinge.svm.tight_cv import choose
from tests.svm.helpers import binary, graded, multiclass, multilabel

SMALL = {"scales": 2, "init_Cs": 3, "reaches": 3, "cv": 3, "random_state": 0, "tol": 0.1}


def noise(seed):
    """A metric that has nothing to do with the ranking: every setting may be the best."""
    rng = np.random.default_rng(seed)
    return lambda relevant, scores: 0.5 + 0.004 * rng.normal()


tables = arrays(float, (2, 4, 3), elements=st.floats(0.0, 1.0))
starts = arrays(float, 3, elements=st.floats(0.0, 1.0))


@given(starts, tables, st.floats(0.0, 2.0))
def test_no_point_nearer_to_the_start_is_as_good(start, scores, tolerated):
    point = choose(start, scores, tolerated)
    strict = choose(start, scores, 0.0)
    assert 0 <= point.place <= 4
    # Who tolerates more stays nearer to the start, on the same path.
    assert (point.scale, point.place <= strict.place) == (strict.scale, True)


@given(starts, tables, st.floats(-1.0, 1.0), st.permutations(range(3)))
def test_neither_the_level_nor_the_order_of_folds_matters(start, scores, level, order):
    # Powers of two and a coarse grid, so that sums round nowhere.
    start, scores, level = (np.round(64 * values) / 64 for values in (start, scores, level))
    expected = choose(start, scores, 0.0)
    assert choose(start + level, scores + level, 0.0) == expected
    assert choose(start[list(order)], scores[..., list(order)], 0.0) == expected


@given(starts, tables)
def test_where_nothing_beats_the_start_it_stays(start, scores):
    assert choose(start + 2.0, scores, 0.0).place == 0


@given(tables, st.integers(0, 4))
def test_what_was_not_come_to_is_not_chosen(scores, n_points):
    start = np.zeros(3)
    scores[:, n_points:] = np.nan
    assert choose(start, scores, 0.0).place <= n_points


@pytest.mark.parametrize("data", [binary, multiclass, multilabel])
@pytest.mark.parametrize("standardize", ["auto", True])
def test_what_is_chosen_is_a_row_and_can_be_fitted(data, standardize):
    X, y = data()
    model = RankSVCCV(standardize=standardize, **SMALL).fit(X, y)
    best = np.atleast_1d(model.best_index_)
    for name in ("reach", "scale", "init_C"):
        np.testing.assert_array_equal(
            model.cv_results_[f"param_{name}"][best], np.atleast_1d(getattr(model, f"{name}_"))
        )
    again = RankSVC(tol=0.1, **model.best_params_).fit(X, y)
    np.testing.assert_allclose(again.coef_, model.coef_, atol=1e-9)


def _smoothed(means):
    padded = np.pad(means, 1, mode="edge")
    return (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4


@given(st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_whatever_the_metric_the_choice_is_on_the_grid(seed):
    X, y = binary(n=40, d=3, noise=2.0)
    model = RankSVCCV(scoring=noise(seed), standardize=False, **SMALL).fit(X, y)
    stay = min(0.01, 0.1 * model.reaches_[0])
    assert np.isclose(model.reach_, [stay, *model.reaches_]).any()
    assert model.scale_ in model.scales_
    assert model.init_C_ in model.init_Cs_
    # By the mean of the smoothed scores: no start ranks better than the one that was taken.
    means = _smoothed(model.init_scores_.mean(axis=1))
    assert means[model.init_Cs_.tolist().index(model.init_C_)] == pytest.approx(means.max())


def test_labels_that_no_fold_can_judge_have_the_median_of_the_others():
    X, _ = binary(n=40, d=3)
    rng = np.random.default_rng(0)
    Y = (X[:, [0, 1, 2, 0]] + rng.normal(size=(40, 4)) > 0.5).astype(int)
    Y[:, 1] = np.arange(40) == 7
    with pytest.warns(UserWarning, match=r"labels \[1\] have no fold"):
        model = RankSVCCV(standardize=False, **SMALL).fit(X, Y)
    assert np.isnan(model.scores_[1]).all()
    judged = [0, 2, 3]
    steps = [0.01, *model.reaches_]
    place = [int(np.argmin(np.abs(np.log(steps) - np.log(reach)))) for reach in model.reach_]
    assert place[1] == int(np.median([place[k] for k in judged]))
    start = [row.tolist().index(C) for row, C in zip(model.init_Cs_, model.init_C_, strict=True)]
    assert start[1] == int(np.median([start[k] for k in judged]))


def test_auto_goes_on_with_the_kind_of_start_and_the_unit_that_rank_better():
    X, y, qid = graded(n_queries=15, size=8, d=6, seed=1)
    options = SMALL | {"scales": 1, "reaches": 2}
    alone = {
        (unit, init): SVMRankerCV(init=init, standardize=unit, **options).fit(X, y, qid=qid)
        for unit in (0.5, 1.0)
        for init in ("logistic", "convex")
    }
    auto = SVMRankerCV(**options).fit(X, y, qid=qid)
    mine = alone[auto.standardize_, auto.init_]
    np.testing.assert_allclose(auto.scores_, mine.scores_, atol=1e-9)
    np.testing.assert_allclose(auto.coef_, mine.coef_, atol=1e-9)
    rows = auto.cv_results_
    # The unit is chosen by the first kind of start, and the second tried in that alone.
    suited = max((0.5, 1.0), key=lambda unit: np.max(_smoothed(alone[unit, "logistic"].init_scores_.mean(axis=1))))
    assert set(rows["param_standardize"][rows["param_init"] == "convex"]) == {suited}
    for unit, init in [(0.5, "logistic"), (1.0, "logistic"), (suited, "convex")]:
        model = alone[unit, init]
        inside = (rows["param_standardize"] == unit) & (rows["param_init"] == init) & (rows["param_reach"] <= 0.01)
        found = [rows[f"split{fold}_test_score"][inside] for fold in range(3)]
        np.testing.assert_allclose(np.array(found).T, model.init_scores_, atol=1e-9)


def test_features_as_they_are_where_they_share_a_unit():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 60)) * rng.uniform(0.5, 2.0, 60)
    y = (X[:, :3].sum(axis=1) + rng.normal(size=80) > 0).astype(int)
    tried = set(RankSVCCV(**SMALL).fit(X, y).cv_results_["param_standardize"])
    assert tried == {0.0, 0.5, 1.0}
    X[:, 0] *= 1e4
    assert set(RankSVCCV(**SMALL).fit(X, y).cv_results_["param_standardize"]) == {0.5, 1.0}


def test_units_that_share_their_passes_see_what_they_would_see_alone():
    X, y = binary(n=50, d=4)
    X = X * [1.0, 10.0, 0.1, 3.0]
    from rankhinge.losses import get_loss
    from rankhinge.problems import one_list

    lists = one_list(y > 0)
    units, _ = units_to_try(X, lists, "auto", tight=True, n_fits=2, centred=True)
    parts = [Part(0, 0, lists, lambda scores: float(scores[0]))]
    (together,) = batches(dict(enumerate(units)), 1, parts, get_loss("ap"))
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(4, len(units)))
    problems = np.arange(len(units))
    scores = together.objective.score(weights, problems)
    slopes = together.objective.adjoint(together.objective.evaluate(scores).coefficients)
    for number, unit in enumerate(units):
        (alone,) = batches({number: unit}, 1, parts, get_loss("ap"))
        own = alone.objective.score(weights[:, [number]], np.zeros(1, np.int64))
        np.testing.assert_allclose(scores.values[number], own.values[0], rtol=1e-12)
        slope = alone.objective.adjoint(alone.objective.evaluate(own).coefficients)
        np.testing.assert_allclose(slopes[:, number], slope[:, 0], rtol=1e-9, atol=1e-15)
        assert together.quality(weights)[number] == pytest.approx(alone.quality(weights[:, [number]])[0], rel=1e-12)


@pytest.mark.parametrize(("reaches", "expected"), [([1e-9, 1.0], 1e-10), ([10.0, 100.0], 0.01)])
def test_where_the_start_is_best_the_reach_is_a_hundredth_or_a_tenth_of_the_grid(reaches, expected):
    X, y = binary(n=60, d=3, noise=2.0)
    calls, given = iter(range(1000)), np.array([1.0, 0.4, -0.7])
    options = {"scoring": lambda relevant, scores: 1.0 / (1 + next(calls)), "init": given, "scales": [3.0]}
    model = RankSVCCV(reaches=reaches, cv=3, random_state=5, standardize=False, **options).fit(X, y)
    assert pytest.approx(expected, rel=1e-9) == model.reach_


def test_values_of_C_for_two_kinds_of_starts_are_refused():
    X, y = binary(n=40)
    with pytest.raises(ValueError, match="init_Cs is for one kind of start"):
        RankSVCCV(bound="tight", init="auto", init_Cs=[0.1, 1.0]).fit(X, y)
