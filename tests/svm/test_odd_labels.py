"""Labels that are missing, unknown or left out by a mask, scorers as `scoring`, and attributes of subclasses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import average_precision_score, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.preprocessing import StandardScaler

from rankhinge import RankSVC, RankSVCCV, SVMRanker, SVMRankerCV, metrics, rank_svm_path
from rankhinge.latent import LatentRankSVC
from rankhinge.svm import ApproximateRankSVC
from rankhinge.svm._fitting import fitted_names
from tests.svm.helpers import binary, graded, multiclass, multilabel


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT], ids=str)
def test_missing_labels_are_not_scored_as_negatives(missing):
    X, y = binary()
    names = np.where(y == 1, "yes", "no").astype(object)
    model = RankSVC(bound="convex").fit(X, names)
    names[3] = missing
    with pytest.raises(ValueError, match=r"y\[3\] is "):
        model.score(X, names)


@pytest.mark.parametrize(
    "fit", [lambda X, y: RankSVC(bound="convex").fit(X, y), lambda X, y: rank_svm_path(X, y, [1.0])]
)
def test_missing_labels_are_named_by_fit_too(fit):
    X, y = binary()
    words = np.where(y, "a", "b").astype(object)
    words[3] = None
    for labels, named in ((words, "None"), (pd.Series(words, dtype="string"), "<NA>")):
        with pytest.raises(ValueError, match=rf"y\[3\] is {named}"):
            fit(X, labels)


def test_numbers_as_objects_are_numbers():
    X, y = binary()
    expected = RankSVC(bound="convex").fit(X, y)
    for labels in (y.astype(object), y.astype(bool).astype(object), list(y), y.astype(float).astype(object)):
        model = RankSVC(bound="convex").fit(X, labels)
        assert model.classes_.dtype != object
        np.testing.assert_array_equal(model.coef_, expected.coef_)


def test_labels_that_training_has_not_seen_are_relevant_to_no_class():
    X, y = multiclass()
    model = RankSVC(bound="convex").fit(X, y)
    stranger = np.where(np.arange(y.size) % 7 == 0, 99, y)
    scores = model.decision_function(X)
    expected = [metrics.average_precision(stranger == label, scores[:, k]) for k, label in enumerate(model.classes_)]
    assert model.score(X, stranger) == pytest.approx(np.mean(expected), rel=1e-12)


def test_entries_of_several_labels_are_checked_by_score_too():
    X, Y = multilabel()
    model = RankSVC(bound="convex").fit(X, Y)
    for value in (2, np.nan):
        wrong = Y.astype(np.float64)
        wrong[4, 1] = value
        with pytest.raises(ValueError, match=r"y\[4, 1\] is (2.0: labels must be 0/1 or -1/1|nan)"):
            model.score(X, wrong)


@pytest.mark.parametrize("hold", [np.asarray, pd.DataFrame, lambda Y: pd.DataFrame(Y).convert_dtypes()])
def test_what_lies_under_a_mask_does_not_matter(hold):
    X, Y = multilabel()
    mask = np.random.default_rng(0).random(Y.shape) > 0.2
    blank = hold(np.where(mask, Y, np.nan))
    plain = RankSVC(bound="convex").fit(X, Y, mask=mask)
    np.testing.assert_array_equal(RankSVC(bound="convex").fit(X, blank, mask=mask).coef_, plain.coef_)
    assert plain.score(X, blank, mask=mask) == plain.score(X, Y, mask=mask)
    path = rank_svm_path(X, blank, [1.0], mask=mask)
    np.testing.assert_array_equal(path.coefs[0], rank_svm_path(X, Y, [1.0], mask=mask).coefs[0])
    bags = X[:, None, :]
    latent = LatentRankSVC().fit(list(bags), blank, mask=mask)
    np.testing.assert_array_equal(latent.coef_, LatentRankSVC().fit(list(bags), Y, mask=mask).coef_)


def test_a_mask_does_not_hide_what_is_wrong_with_labels():
    X, Y = multilabel()
    mask = np.ones(Y.shape, dtype=bool)
    for wrong, message in [
        (np.where(Y == 1, "a", "b"), "must be 0/1 or -1/1"),
        (np.where(Y == 1, "a", "b").astype(object), "must be 0/1 or -1/1|could not convert"),
        (pd.DataFrame(Y).convert_dtypes().mask(Y == 1), "NaN|NA"),
    ]:
        with pytest.raises(ValueError, match=message):
            RankSVC(bound="convex").fit(X, wrong, mask=mask)
    with pytest.raises(ValueError, match="a mask goes with a multilabel y"):
        RankSVC(bound="convex").fit(X, np.where(Y[:, 0] == 1, "a", "b"), mask=mask[:, 0])


def test_a_scorer_for_queries_is_taken_as_scoring():
    X, y, qid = graded(n_queries=12)
    by_name = SVMRankerCV(Cs=[1.0, 10.0], cv=3, random_state=0, gains="linear", scoring="ndcg@5", bound="convex").fit(
        X, y, qid=qid
    )
    scorer = metrics.make_query_scorer("ndcg", k=5, gains="linear")
    by_scorer = SVMRankerCV(Cs=[1.0, 10.0], cv=3, random_state=0, gains="linear", scoring=scorer, bound="convex").fit(
        X, y, qid=qid
    )
    np.testing.assert_array_equal(by_scorer.scores_, by_name.scores_)
    X, y = binary()
    by_name = RankSVCCV(Cs=[1.0, 10.0], cv=3, random_state=0, scoring="ndcg@5", bound="convex").fit(X, y)
    by_scorer = RankSVCCV(Cs=[1.0, 10.0], cv=3, random_state=0, scoring=scorer, bound="convex").fit(X, y)
    np.testing.assert_array_equal(by_scorer.scores_, by_name.scores_)


@pytest.mark.parametrize("machine", [RankSVCCV, SVMRankerCV])
def test_a_scorer_that_asks_an_estimator_is_refused_at_once(machine):
    X, y = binary()
    with pytest.raises(ValueError, match="is a scorer, which asks an estimator"):
        machine(scoring=make_scorer(average_precision_score)).fit(X, y)


def test_a_scorer_knows_wrong_values_of_options_from_the_start():
    with pytest.raises(ValueError, match="ties is 'wrost'"):
        metrics.make_query_scorer("ndcg", ties="wrost")


def test_a_search_that_drops_the_queries_is_not_silent():
    X, y, qid = graded(n_queries=9)
    search = GridSearchCV(SVMRanker(bound="convex"), {"C": [1.0]}, cv=GroupKFold(3))
    with pytest.warns(UserWarning, match="score got no qid, after a fit to several queries"):
        search.fit(X, y, groups=qid, qid=qid)


class _Scaled(RankSVC):
    def fit(self, X, y):
        self.scaler_ = StandardScaler().fit(X)
        return super().fit(self.scaler_.transform(X), y)

    def decision_function(self, X):
        return super().decision_function(self.scaler_.transform(X))


def test_attributes_of_a_subclass_stay():
    X, y = binary()
    model = _Scaled(bound="convex").fit(X, y)
    scaled = StandardScaler().fit_transform(X)
    plain = RankSVC(bound="convex").fit(scaled, y)
    for _ in range(2):
        np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(scaled))
        model.fit(X, y)
    with pytest.raises(ValueError, match="one class only"):
        model.fit(X, np.zeros_like(y))
    assert hasattr(model, "scaler_")
    assert hasattr(model, "coef_")


@pytest.mark.parametrize(
    "model",
    [
        RankSVC(bound="convex"),
        RankSVC(bound="tight"),
        RankSVCCV(Cs=[1.0], cv=2, bound="convex"),
        RankSVCCV(bound="tight", reaches=[1.0], cv=2),
        SVMRanker("ap", bound="convex"),
        SVMRankerCV("ap", bound="tight", reaches=[1.0], cv=2),
        ApproximateRankSVC(),
        LatentRankSVC(),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore:X has two dimensions")
def test_what_a_fit_sets_is_declared(model):
    X, y = binary()
    fitted = {name for name in vars(model.fit(X, y)) if name.endswith("_") and not name.startswith("_")}
    assert fitted <= fitted_names(type(model))


def test_grades_whose_gains_are_huge():
    X, y, qid = graded(n_grades=2)
    plain, huge = SVMRanker(bound="convex").fit(X, y, qid=qid), SVMRanker(bound="convex").fit(X, 1023 * y, qid=qid)
    np.testing.assert_allclose(huge.coef_, plain.coef_, rtol=1e-12)
    scores = plain.predict(X)
    expected = metrics.ndcg(y, scores, qid=qid, gains="exponential")
    assert metrics.ndcg(1023 * y, scores, qid=qid, gains="exponential") == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("bound", ["convex", "tight"])
def test_features_that_are_too_large_are_called_so(bound):
    X, y = binary()
    with pytest.raises(ValueError, match="the features are so large"):
        RankSVC(bound=bound).fit(1e160 * X, y)


def test_weights_and_queries_in_odd_containers():
    X, y, qid = graded(n_queries=6)
    weights = np.ma.masked_array(np.ones(y.size), np.arange(y.size) == 3)
    with pytest.raises(ValueError, match=r"query_weight\[3\] is masked"):
        SVMRanker(bound="convex").fit(X, y, qid=qid, query_weight=weights)
    view = dict(enumerate(qid.tolist())).values()
    searched = SVMRankerCV(Cs=[1.0], cv=2, random_state=0, bound="convex")
    np.testing.assert_array_equal(searched.fit(X, y, qid=view).coef_, searched.fit(X, y, qid=qid).coef_)


def test_one_value_of_a_grid_is_its_middle():
    X, y = binary()
    assert pytest.approx(100.0) == RankSVCCV(Cs=1, cv=2, bound="convex").fit(X, y).C_
    tight = RankSVCCV(bound="tight", reaches=2, scales=1, init_Cs=1, cv=2, standardize=True).fit(X, y)
    assert tight.init_Cs_ == pytest.approx([RankSVC(bound="tight", standardize=True).fit(X, y).init_C_])
    assert tight.scales_ == pytest.approx([np.count_nonzero(y == 0) * 10**-2.5])


def test_what_lies_under_the_mask_of_a_masked_array_is_no_value():
    X, y = binary()
    Xg, grades, qid = graded()
    masked = np.ma.array(y, mask=np.arange(y.size) == 3)
    model, ranker = RankSVC(bound="convex").fit(X, y), SVMRanker(bound="convex").fit(Xg, grades, qid=qid)
    for call in (
        RankSVC(bound="convex").fit,
        RankSVCCV(bound="convex").fit,
        model.score,
        lambda X, y: rank_svm_path(X, y, [1.0]),
    ):
        with pytest.raises(ValueError, match=r"y\[3\] is masked"):
            call(X, masked)
    for call in (SVMRanker(bound="convex").fit, SVMRankerCV(bound="convex").fit, ranker.score):
        with pytest.raises(ValueError, match=r"y\[0\] is masked"):
            call(Xg, np.ma.array(grades, mask=np.arange(grades.size) == 0), qid=qid)
    hidden = np.ma.array(X, mask=(np.arange(X.size) == 2 * X.shape[1] + 1).reshape(X.shape))
    for call in (RankSVC(bound="convex").fit, lambda X, y: rank_svm_path(X, y, [1.0])):
        with pytest.raises(ValueError, match=r"X\[2, 1\] is masked"):
            call(hidden, y)
    X, Y = multilabel()
    with pytest.raises(ValueError, match=r"mask\[0, 0\] is masked"):
        RankSVC(bound="convex").fit(
            X, Y, mask=np.ma.array(np.ones(Y.shape, bool), mask=np.arange(Y.size).reshape(Y.shape) == 0)
        )
    # A masked array that masks nothing is an array.
    np.testing.assert_array_equal(
        RankSVC(bound="convex").fit(X, np.ma.array(Y)).coef_, RankSVC(bound="convex").fit(X, Y).coef_
    )


@pytest.mark.parametrize("wrong", [lambda M: M.astype(float), lambda M: M[:, :1], lambda M: M.T, lambda M: M[:, 0]])
def test_a_wrong_mask_is_named_where_labels_are_nan(wrong):
    X, Y = multilabel()
    mask = np.random.default_rng(0).random(Y.shape) < 0.8
    labels = np.where(mask, Y, np.nan)
    model = RankSVC(bound="convex").fit(X, labels, mask=mask)
    for call in (RankSVC(bound="convex").fit, model.score):
        with pytest.raises(ValueError, match="mask must be bool or 0/1 of shape"):
            call(X, labels, mask=wrong(mask))


def test_a_mask_of_flags_that_may_be_missing_and_are_not():
    X, Y = multilabel()
    mask = np.random.default_rng(0).random(Y.shape) < 0.8
    frame = pd.DataFrame(mask).astype("boolean")
    np.testing.assert_array_equal(
        RankSVC(bound="convex").fit(X, Y, mask=frame).coef_, RankSVC(bound="convex").fit(X, Y, mask=mask).coef_
    )
    frame.iloc[0, 0] = pd.NA
    with pytest.raises(ValueError, match="mask must be bool"):
        RankSVC(bound="convex").fit(X, Y, mask=frame)


@pytest.mark.parametrize("bound", ["convex", "tight"])
def test_what_a_search_has_chosen_can_be_given_back(bound):
    """Labels that are constant have no C: nan, which does not count."""
    X, Y = multilabel()
    Y[:, 1] = 0
    grid = {"Cs": 3} if bound == "convex" else {"reaches": 3}
    with pytest.warns(UserWarning, match="constant"):
        search = RankSVCCV(cv=3, bound=bound, random_state=0, **grid).fit(X, Y)
    assert np.isnan(search.C_[1])
    options = {"C": search.C_}
    if bound == "tight":
        options = {"reach": search.reach_, "scale": search.scale_, "init_C": search.init_C_}
        options |= {"standardize": search.standardize_}
    with pytest.warns(UserWarning, match="constant"):
        model = RankSVC(bound=bound, **options).fit(X, Y)
    np.testing.assert_allclose(model.coef_, search.coef_, rtol=1e-9)
    with pytest.raises(ValueError, match="C must be positive and finite, got nan"):
        RankSVC(C=[1.0, np.nan, 1.0], bound="convex").fit(*multilabel())
