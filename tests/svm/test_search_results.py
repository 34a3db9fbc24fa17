"""What a search leaves behind under scikit-learn's names, and the folds that it takes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneGroupOut,
    PredefinedSplit,
)

from rankhinge import QueryKFold, RankSVC, RankSVCCV, SVMRanker, SVMRankerCV
from rankhinge.svm.results import Candidate, summary
from tests.svm.helpers import binary, graded, multiclass, multilabel

CS = [0.1, 10.0, 1000.0]


def agrees(model):
    """The table, the best row and the chosen values say the same."""
    results, best = model.cv_results_, np.atleast_1d(model.best_index_)
    splits = np.array([results[f"split{fold}_test_score"] for fold in range(model.n_splits_)]).T
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(results["mean_test_score"], splits.mean(axis=1), atol=1e-15)
        np.testing.assert_allclose(results["std_test_score"], splits.std(axis=1), atol=1e-15)
    assert model.best_score_ == pytest.approx(results["mean_test_score"][best].mean(), abs=1e-15)
    for key, value in model.best_params_.items():
        chosen = [results["params"][index][key] for index in best]
        assert np.atleast_1d(value).tolist() == chosen if not isinstance(value, str) else {value} == set(chosen)
        np.testing.assert_array_equal(results[f"param_{key}"][best], chosen)
        np.testing.assert_array_equal(getattr(model, f"{key}_"), value)
    assert len(pd.DataFrame(results)) == len(results["params"])


def test_the_table_is_that_of_a_grid_search():
    X, y = binary(noise=2.0)
    folds = PredefinedSplit(np.arange(60) % 3)
    mine = RankSVCCV(Cs=CS, bound="convex", cv=folds, tol=1e-9).fit(X, y)
    theirs = GridSearchCV(RankSVC(bound="convex", tol=1e-9), {"C": CS}, cv=folds).fit(X, y)
    agrees(mine)
    for key in ("best_score_", "best_params_", "best_index_", "n_splits_"):
        assert getattr(mine, key) == pytest.approx(getattr(theirs, key), abs=1e-9)
    timed = {f"{statistic}_{stage}_time" for statistic in ("mean", "std") for stage in ("fit", "score")}
    assert set(mine.cv_results_) == set(theirs.cv_results_) - timed
    for key, column in mine.cv_results_.items():
        if key == "params":
            assert column == theirs.cv_results_[key]
        else:
            np.testing.assert_allclose(column, np.asarray(theirs.cv_results_[key], dtype=float), atol=1e-9)


@pytest.mark.parametrize("data", [multiclass, multilabel])
def test_each_label_has_its_rows(data):
    X, y = data()
    model = RankSVCCV(Cs=CS, bound="convex", cv=2, random_state=0).fit(X, y)
    agrees(model)
    table = pd.DataFrame(model.cv_results_)
    assert table["label"].tolist() == np.repeat(model.classes_, 3).tolist()
    for label, C in zip(model.classes_, model.C_, strict=True):
        mine = table[table["label"] == label]
        assert C in mine["param_C"][mine["rank_test_score"] == 1].tolist()
    np.testing.assert_array_equal(model.best_params_["C"], model.C_)
    refitted = RankSVC(bound="convex", **model.best_params_).fit(X, y)
    np.testing.assert_allclose(refitted.coef_, model.coef_, atol=1e-9)


@pytest.mark.parametrize("init", ["logistic", "auto"])
def test_the_rows_of_a_tight_search_can_be_fitted(init):
    X, y, qid = graded(n_queries=8)
    model = SVMRankerCV(bound="tight", init=init, reaches=3, init_Cs=3, cv=2, random_state=0).fit(X, y, qid=qid)
    agrees(model)
    assert set(model.best_params_) == {"reach", "scale", "init", "init_C", "standardize"}
    followed = np.isfinite(model.cv_results_["mean_test_score"])
    scores = np.sort(model.scores_.mean(axis=-1), axis=None)
    scores = scores[np.isfinite(scores)]
    # Beside the points of the paths three starts of the first kind in both units, and of the other in one of these.
    n_starts = 3 * 2 + (3 if init == "auto" else 0)
    assert followed.sum() == scores.size + n_starts
    refitted = SVMRanker(bound="tight", **model.best_params_).fit(X, y, qid=qid)
    np.testing.assert_allclose(refitted.coef_, model.coef_, atol=1e-9)


def test_a_given_start_is_no_choice():
    X, y = binary()
    model = RankSVCCV(bound="tight", init=np.ones((1, 4)), reaches=2, scales=1, cv=2, random_state=0).fit(X, y)
    agrees(model)
    assert set(model.best_params_) == {"reach", "scale", "standardize"}


def test_a_label_that_no_fold_judges_does_not_count():
    X, Y = multilabel(n=40)
    Y[:, 1] = 0
    Y[3, 1] = 1
    with pytest.warns(UserWarning, match="labels .* have no fold"):
        model = RankSVCCV(Cs=CS, bound="convex", cv=2, random_state=0).fit(X, Y)
    means = model.cv_results_["mean_test_score"][model.best_index_]
    assert np.isnan(means).tolist() == [False, True, False]
    assert model.best_score_ == pytest.approx(np.nanmean(means))


def test_folds_without_a_score():
    nan = np.nan
    tried = [[Candidate({"C": 1.0}, np.array([0.5, nan])), Candidate({"C": 2.0}, np.array([0.7, nan]))]]
    found = summary(tried, [1], [""])
    assert found["best_score_"] == 0.7
    assert found["cv_results_"]["rank_test_score"].tolist() == [2, 1]
    nothing = summary([[Candidate({"C": 1.0}, np.array([nan, nan]))]], [0], [""])
    assert np.isnan(nothing["best_score_"])
    assert nothing["cv_results_"]["rank_test_score"].tolist() == [1]


SPLITTERS = {
    "groups": (GroupKFold(3), lambda X, y, qid: list(GroupKFold(3).split(X, y, qid))),
    "leave one out": (LeaveOneGroupOut(), lambda X, y, qid: list(LeaveOneGroupOut().split(X, y, qid))),
    "drawn": (
        GroupShuffleSplit(2, random_state=0),
        lambda X, y, qid: list(GroupShuffleSplit(2, random_state=0).split(X, y, qid)),
    ),
    "ours": (QueryKFold(2), lambda X, y, qid: list(QueryKFold(2).split(X, groups=qid))),
}


@pytest.mark.parametrize("splitter", SPLITTERS)
def test_splitters_are_given_the_queries(splitter):
    X, y, qid = graded()
    cv, splits = SPLITTERS[splitter]
    expected = splits(X, y, qid)
    model = SVMRankerCV(Cs=CS, bound="convex", cv=cv, tol=1e-9).fit(X, y, qid=qid)
    assert model.n_splits_ == len(expected)
    pairs = SVMRankerCV(Cs=CS, bound="convex", cv=expected, tol=1e-9).fit(X, y, qid=qid)
    np.testing.assert_array_equal(model.scores_, pairs.scores_)
    for fold, (train, test) in enumerate(expected):
        fitted = SVMRanker(C=CS[1], bound="convex", tol=1e-9).fit(X[train], y[train], qid=qid[train])
        assert model.scores_[1, fold] == pytest.approx(fitted.score(X[test], y[test], qid=qid[test]), abs=1e-9)


def test_splitters_are_given_numbers_where_queries_cannot_be_sorted():
    X, y, qid = graded()
    names = [f"query {q}" if q % 2 else (q, "even") for q in qid.tolist()]
    model = SVMRankerCV(Cs=CS, bound="convex", cv=LeaveOneGroupOut()).fit(X, y, qid=names)
    expected = SVMRankerCV(Cs=CS, bound="convex", cv=LeaveOneGroupOut()).fit(X, y, qid=qid)
    np.testing.assert_allclose(np.sort(model.scores_[0]), np.sort(expected.scores_[0]), atol=1e-9)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_part_for_validation(sign):
    """LETOR's way: some queries train, some validate; rows that are in neither, or named from the end, are fine."""
    X, y, qid = graded()
    validates = qid >= 4
    by_split = SVMRankerCV(Cs=CS, bound="convex", cv=PredefinedSplit(np.where(validates, 0, -1))).fit(X, y, qid=qid)
    rows = [np.flatnonzero(~validates), np.flatnonzero(validates)]
    if sign < 0:
        rows = [part - y.size for part in rows]
    by_rows = SVMRankerCV(Cs=CS, bound="convex", cv=[tuple(rows)]).fit(X, y, qid=qid)
    by_masks = SVMRankerCV(Cs=CS, bound="convex", cv=[(~validates, validates)]).fit(X, y, qid=qid)
    assert by_split.scores_.shape == (3, 1)
    np.testing.assert_array_equal(by_split.scores_, by_rows.scores_)
    np.testing.assert_array_equal(by_split.scores_, by_masks.scores_)


def test_a_fold_that_cuts_a_query():
    X, y, qid = graded()
    names = np.array(["apple", "pear", "plum", "fig", "nut", "kiwi"])[qid]
    with pytest.raises(ValueError, match=r"fold 0 of cv=KFold.* has query \w+ in its training and in its test part"):
        SVMRankerCV(cv=KFold(3)).fit(X, y, qid=names)
    with pytest.raises(ValueError, match="training part of fold 0 has rows more than once"):
        SVMRankerCV(cv=[(np.repeat(np.flatnonzero(qid < 3), 2), np.flatnonzero(qid >= 3))]).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="has no folds"):
        SVMRankerCV(cv=[]).fit(X, y, qid=qid)
    order = np.argsort(qid, kind="stable")
    # Cut where queries end, whatever the splitter knows of them.
    assert SVMRankerCV(Cs=CS, bound="convex", cv=KFold(3)).fit(X[order], y[order], qid=qid[order]).n_splits_ == 3


def test_one_list_is_split_by_rows():
    X, y = binary()
    model = SVMRankerCV("ap", Cs=CS, bound="convex", cv=KFold(3)).fit(X, y)
    assert model.scores_.shape == (3, 3)
    with pytest.raises(ValueError, match=r"has row 0 in its training and in its test part"):
        SVMRankerCV("ap", cv=[(np.arange(40), np.arange(60))]).fit(X, y)


@pytest.mark.parametrize("shuffle", [False, True])
def test_query_folds(shuffle):
    qid = np.array(list("bbacaaddeefc"))
    X = pd.DataFrame({"qid": qid, "feature": np.arange(12.0)})
    splitter = QueryKFold(4, qid_column="qid", shuffle=shuffle, random_state=0 if shuffle else None)
    folds = list(splitter.split(X))
    assert len(folds) == splitter.get_n_splits() == 4
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(12))
    counts = [len(set(qid[test])) for _, test in folds]
    assert sorted(counts) == [1, 1, 2, 2]
    for train, test in folds:
        assert not set(qid[train]) & set(qid[test])
        assert sorted([*train, *test]) == list(range(12))
    if not shuffle:
        assert ["".join(dict.fromkeys(qid[test])) for _, test in folds] == ["ba", "cd", "e", "f"]
    again = QueryKFold(4, shuffle=shuffle, random_state=0 if shuffle else None).split(np.zeros((12, 1)), groups=qid)
    for mine, theirs in zip(folds, again, strict=True):
        np.testing.assert_array_equal(mine[1], theirs[1])


def test_query_folds_that_cannot_be():
    X = np.array([[1.0, 0.5], [1.0, 0.4], [2.0, 0.3]])
    with pytest.raises(ValueError, match="3 folds need at least as many queries, got 2"):
        list(QueryKFold(3, qid_column=0).split(X))
    with pytest.raises(ValueError, match="QueryKFold needs the queries: qid_column="):
        list(QueryKFold(2).split(X))
    with pytest.raises(ValueError, match="qid_column='qid': X has 2 columns without names"):
        list(QueryKFold(2, qid_column="qid").split(X))
    with pytest.raises(ValueError, match=r"qid_column='qid': X has the columns \['a', 'b'\]"):
        list(QueryKFold(2, qid_column="qid").split(pd.DataFrame(X, columns=["a", "b"])))
    X32 = np.array([[2.0**24, 0.0], [2.0**24 + 1, 0.0]], dtype=np.float32)
    with pytest.raises(ValueError, match="has the id 16777216 as float32"):
        list(QueryKFold(2, qid_column=0).split(X32))


def test_query_folds_of_a_sparse_column():
    X = sparse.csr_array(np.array([[0.0, 0.5], [0.0, 0.0], [2.0, 0.3]]))
    assert [test.tolist() for _, test in QueryKFold(2, qid_column=-2).split(X)] == [[0, 1], [2]]
