"""The search of the tight bound takes what its scores call the best, by a slow twin, and measures C in its unit."""

from __future__ import annotations

from statistics import fmean, median, stdev

import numpy as np
import pytest

from rankhinge import RankSVCCV, SVMRankerCV

from .helpers import binary, graded, multiclass, multilabel

PULLS = np.logspace(-1, 1.5, 6)


def noise(seed, spread=0.004, level=0.5):
    """A metric that has nothing to do with the ranking: every point of the grid may be the best."""
    rng = np.random.default_rng(seed)
    return lambda relevant, scores: level + spread * rng.normal()


def search(scoring, y=None, **options):
    X, labels = binary(n=40, d=3, noise=2.0)
    options = {"scales": 3, "init_Cs": 4, "cv": 3, "random_state": 0, "tol": 0.1, "standardize": False, **options}
    return RankSVCCV(bound="tight", scoring=scoring, **options).fit(X, labels if y is None else y)


def smooth(path):
    last = len(path) - 1
    return [(path[max(i - 1, 0)] + 2 * path[i] + path[min(i + 1, last)]) / 4 for i in range(last + 1)]


def best_of(path, tolerated):
    """Place of the first that is nearly as good as the best, place of the best, and its mean."""
    path = smooth(path)
    means = [fmean(folds) for folds in path]
    top = means.index(max(means))
    for place, folds in enumerate(path):
        lost = [b - a for a, b in zip(folds, path[top])]
        if fmean(lost) <= tolerated * stdev(lost) / len(lost) ** 0.5:
            return place, top, means[top]


def best_start(init_scores):
    means = [fmean(folds) for folds in smooth(list(init_scores))]
    return means.index(max(means))


def best_point(init_scores, scores, scales, tolerated=0.25):
    """Start, scale, place and top of the path with the highest score among those over some scales."""
    best = (0, 0, 0, 0, -np.inf)
    first = best_start(init_scores)
    for a, start in enumerate((first, max(first - 1, 0))):
        for b in scales:
            followed = [folds for folds in scores[a, b] if np.isfinite(folds).all()]
            if followed:
                place, top, score = best_of([init_scores[start], *followed], tolerated)
                if score > best[-1]:
                    best = (a, b, place, top, score)
    return best


def chosen(reaches, scales, init_Cs, init_scores, start, scale, place):
    """Reach, scale and C of the start; the start itself has a tenth of the smallest reach."""
    first = best_start(init_scores)
    return (reaches[place - 1] if place else 0.1 * reaches[0]), scales[scale], init_Cs[max(first - start, 0)]


def test_the_choice_follows_from_the_scores():
    seen = set()
    for seed in (0, 1, 2, 3, 5, 17, 26, 30, 58):
        model = search(noise(seed))
        start, scale, place, top, _ = best_point(model.init_scores_, model.scores_, range(3))
        expected = chosen(model.reaches_, model.scales_, model.init_Cs_, model.init_scores_, start, scale, place)
        np.testing.assert_allclose((model.reach_, model.scale_, model.init_C_), expected, rtol=1e-12)
        seen |= {("start", start), ("scale", scale), ("stays", place == 0), ("earlier", 0 < place < top)}
        seen |= {("neighbour", bool(np.isfinite(model.scores_[1]).any()))}
    assert seen == {
        *(("start", a) for a in range(2)),
        *(("scale", b) for b in range(3)),
        *((name, known) for name in ("stays", "earlier", "neighbour") for known in (False, True)),
    }


def test_lists_leave_the_start_for_a_standard_error_only():
    X, y, qid = graded(n_queries=15)
    options = {"bound": "tight", "init": "logistic", "scales": 2, "init_Cs": 3, "cv": 3, "tol": 0.1, "random_state": 0}
    options["standardize"] = False
    stricter = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        model = SVMRankerCV(scoring=lambda y, scores, qid, rng=rng: 0.5 + 0.004 * rng.normal(), **options)
        model.fit(X, y, qid=qid)
        strict, loose = (best_point(model.init_scores_, model.scores_, range(2), part) for part in (1.0, 0.25))
        expected = chosen(model.reaches_, model.scales_, model.init_Cs_, model.init_scores_, *strict[:3])
        np.testing.assert_allclose((model.reach_, model.scale_, model.init_C_), expected, rtol=1e-12)
        stricter += strict[2] < loose[2]
    assert stricter > 0


def test_what_was_not_followed_has_no_scores_and_is_not_chosen():
    lengths = set()
    for seed in range(6):
        model = search(noise(seed))
        start, _, _, top, _ = best_point(model.init_scores_, model.scores_, [1])
        length = min(6, top + 2)
        known = np.isfinite(model.scores_).all(axis=-1)
        expected = np.zeros((2, 3, 6), bool)
        expected[: 1 + (best_start(model.init_scores_) > 0), 1] = True
        expected[start, [0, 2], :length] = True
        np.testing.assert_array_equal(known, expected)
        np.testing.assert_array_equal(np.isnan(model.scores_).all(axis=-1), ~expected)
        assert np.isclose(model.reach_, [*model.reaches_, 0.1 * model.reaches_[0]]).any()
        lengths.add(length)
    assert len(lengths) > 1


def test_only_those_with_a_neighbour_are_followed_from_it():
    """Labels whose best start is the first of the grid have no other to try."""
    X, y = multiclass(n=150, d=6)
    model = RankSVCCV(bound="tight", init_Cs=[1e-4, 1.0], cv=3, random_state=0, standardize=False).fit(X, y)
    places = np.array([best_start(scores) for scores in model.init_scores_])
    assert 0 < np.count_nonzero(places) < 3
    known = np.isfinite(model.scores_).any(axis=(2, 3, 4))
    np.testing.assert_array_equal(known, np.stack([np.ones(3, bool), places > 0], axis=1))


@pytest.mark.parametrize(("reaches", "expected"), [([1e-9, 1.0], 1e-10), ([10.0, 100.0], 0.01)])
def test_where_the_start_is_best_the_reach_is_a_hundredth_or_a_tenth_of_the_grid(reaches, expected):
    X, y = binary(n=60, d=3, noise=2.0)
    calls, given = iter(range(1000)), np.array([1.0, 0.4, -0.7])
    options = {"scoring": lambda relevant, scores: 1.0 / (1 + next(calls)), "init": given, "scales": [3.0]}
    model = RankSVCCV(reaches=reaches, cv=3, random_state=5, standardize=False, **options).fit(X, y)
    assert pytest.approx(expected, rel=1e-9) == model.reach_


def test_labels_that_no_fold_can_judge_have_the_median_of_the_others():
    X, _ = binary(n=40, d=3)
    rng = np.random.default_rng(0)
    Y = (X[:, [0, 1, 2, 0]] + rng.normal(size=(40, 4)) > 0.5).astype(int)
    Y[:, 1] = np.arange(40) == 7
    places = set()
    for seed in range(4):
        with pytest.warns(UserWarning, match=r"labels \[1\] have no fold"):
            model = search(noise(seed), Y)
        judged = (0, 2, 3)
        points = [best_point(model.init_scores_[k], model.scores_[k], range(3)) for k in judged]
        for k, point in zip(judged, points):
            arrays = (model.reaches_, model.scales_[k], model.init_Cs_[k], model.init_scores_[k])
            expected = chosen(*arrays, *point[:3])
            np.testing.assert_allclose((model.reach_[k], model.scale_[k], model.init_C_[k]), expected, rtol=1e-12)
        scale, place = (median(point[which] for point in points) for which in (1, 2))
        start = median(best_start(model.init_scores_[k]) for k in judged)
        path = model.reaches_
        assert model.reach_[1] == pytest.approx(path[place - 1] if place else 0.1 * path[0], rel=1e-12)
        assert model.scale_[1] == pytest.approx(model.scales_[1, scale])
        assert model.init_C_[1] == model.init_Cs_[1, start]
        assert np.isnan(model.scores_[1]).all()
        places.add(place)
    assert len(places) > 1


def level(init_scores):
    """How well the best start ranks the test parts."""
    return max(fmean(folds) for folds in smooth(list(init_scores)))


def test_auto_goes_on_with_the_kind_of_start_that_ranks_better():
    seen = set()
    for seed in range(6):
        X, y, qid = graded(n_queries=15, size=8, d=6, seed=seed)
        options = {"bound": "tight", "scales": 1, "reaches": 2, "cv": 3, "random_state": 0, "tol": 0.1}
        kinds = {init: SVMRankerCV(init=init, **options).fit(X, y, qid=qid) for init in ("logistic", "convex")}
        auto = SVMRankerCV(**options).fit(X, y, qid=qid)
        assert auto.init_ == max(kinds, key=lambda init: level(kinds[init].init_scores_))
        alone = kinds[auto.init_]
        for name in ("init_Cs_", "init_scores_", "scores_", "C_", "coef_"):
            np.testing.assert_array_equal(getattr(auto, name), getattr(alone, name))
        seen.add(auto.init_)
    assert seen == {"logistic", "convex"}


def test_auto_takes_one_kind_of_start_for_all_labels():
    X, Y = multilabel(n=90)
    options = {"bound": "tight", "scales": 1, "reaches": 2, "cv": 2, "random_state": 0, "tol": 0.1}
    kinds = {init: RankSVCCV(init=init, **options).fit(X, Y) for init in ("logistic", "convex")}
    auto = RankSVCCV(init="auto", **options).fit(X, Y)
    assert auto.init_ == max(kinds, key=lambda init: fmean(level(mine) for mine in kinds[init].init_scores_))
    np.testing.assert_array_equal(auto.coef_, kinds[auto.init_].coef_)


def test_values_of_C_for_two_kinds_of_starts_are_refused():
    X, y = binary(n=40)
    with pytest.raises(ValueError, match="init_Cs are those of one kind of start"):
        RankSVCCV(bound="tight", init="auto", init_Cs=[0.1, 1.0]).fit(X, y)
