"""Query ids as a column of X: per query everywhere, with metadata routing off."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankhinge import QueryKFold, SVMRanker, SVMRankerCV, metrics
from rankhinge.metrics import make_query_scorer
from tests.svm.helpers import graded

pytestmark = pytest.mark.sklearn_compat

X, Y, QID = graded(n_queries=9)
NAMES = np.array([f"query {q}" for q in QID])
FRAME = pd.DataFrame(X, columns=["a", "b", "c"]).assign(qid=NAMES)[["a", "qid", "b", "c"]]
CS = [0.1, 10.0, 1000.0]
WITH = np.column_stack([X[:, :1], QID, X[:, 1:]])


def ranker(**options):
    return SVMRanker(**{"C": 10.0, "bound": "convex", "qid_column": "qid", **options})


KINDS = {
    "pandas": (FRAME, "qid"),
    "pandas, by place": (FRAME, 1),
    "polars": (pl.DataFrame(FRAME.to_dict("list")), "qid"),
    "array": (WITH, 1),
    "array, from the end": (WITH, -3),
    "list": (WITH.tolist(), 1),
    "objects": (FRAME.to_numpy(), 1),
    "csr": (sparse.csr_array(WITH), 1),
    "csc": (sparse.csc_matrix(WITH), 1),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_column_is_the_query_and_no_feature(kind):
    given, column = KINDS[kind]
    expected = SVMRanker(C=10.0, bound="convex").fit(X, Y, qid=QID)
    model = ranker(qid_column=column).fit(given, Y)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-9)
    assert model.n_features_in_ == 3
    assert (model.n_queries_, model.intercept_) == (9, 0.0)
    np.testing.assert_allclose(model.predict(given), expected.predict(X), atol=1e-9)
    assert model.score(given, Y) == pytest.approx(expected.score(X, Y, qid=QID), abs=1e-12)


def test_features_alone_will_do_afterwards():
    model = ranker().fit(FRAME, Y)
    features = FRAME.drop(columns="qid")
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(model.predict(features), model.predict(FRAME))
    assert model.score(features, Y, qid=QID) == model.score(FRAME, Y)
    by_place = ranker(qid_column=1).fit(WITH, Y)
    np.testing.assert_allclose(by_place.predict(X), by_place.predict(WITH), atol=1e-12)
    with pytest.raises(ValueError, match="2 features"):
        by_place.predict(X[:, :2])


def test_the_intercept_of_any_ranker():
    assert SVMRanker(bound="convex").fit(X, Y, qid=QID).intercept_ == 0.0
    assert SVMRankerCV(Cs=[1.0], bound="convex").fit(X, Y, qid=QID).intercept_ == 0.0


def by_hand(splits):
    """Scores of (C, fold), by per-query NDCG and no tool of scikit-learn's."""
    scores = np.empty((len(CS), len(splits)))
    for fold, (train, test) in enumerate(splits):
        for place, C in enumerate(CS):
            model = SVMRanker(C=C, bound="convex").fit(X[train], Y[train], qid=QID[train])
            each = [
                metrics.ndcg(Y[rows], model.predict(X[rows]), gains="exponential")
                for rows in (test[QID[test] == query] for query in np.unique(QID[test]))
            ]
            scores[place, fold] = np.mean(each)
    return scores


@pytest.mark.parametrize("scoring", [None, make_query_scorer("ndcg", gains="exponential")])
def test_a_grid_search_is_a_loop_over_queries(scoring):
    folds = QueryKFold(3, qid_column="qid", shuffle=True, random_state=0)
    search = GridSearchCV(ranker(), {"C": CS}, cv=folds, scoring=scoring, error_score="raise").fit(FRAME, Y)
    expected = by_hand(list(QueryKFold(3, shuffle=True, random_state=0).split(X, groups=QID)))
    found = np.array([search.cv_results_[f"split{fold}_test_score"] for fold in range(3)]).T
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    assert search.best_params_["C"] == CS[int(np.argmax(expected.mean(axis=1)))]
    best = SVMRanker(bound="convex", **search.best_params_).fit(X, Y, qid=QID)
    assert search.score(FRAME, Y) == pytest.approx(best.score(X, Y, qid=QID), abs=1e-12)


def test_cross_validation_per_query():
    folds = QueryKFold(3, qid_column="qid")
    expected = by_hand(list(QueryKFold(3).split(X, groups=QID)))[1]
    np.testing.assert_allclose(cross_val_score(ranker(), FRAME, Y, cv=folds), expected, rtol=0, atol=1e-12)
    # The training part is no cut query, although it is scored as well.
    found = cross_validate(ranker(), FRAME, Y, cv=folds, return_train_score=True)
    np.testing.assert_allclose(found["test_score"], expected, rtol=0, atol=1e-12)


def test_a_search_over_a_pipeline():
    """What is scaled without a look at the names: ids change, but not whose they are."""
    pipeline = make_pipeline(StandardScaler(), ranker(qid_column=1))
    found = cross_val_score(pipeline, WITH, Y, cv=QueryKFold(3, qid_column=1), error_score="raise")
    for score, (train, test) in zip(found, QueryKFold(3).split(X, groups=QID), strict=True):
        scaler = StandardScaler().fit(X[train])
        model = SVMRanker(C=10.0, bound="convex").fit(scaler.transform(X[train]), Y[train], qid=QID[train])
        assert score == pytest.approx(model.score(scaler.transform(X[test]), Y[test], qid=QID[test]), abs=1e-12)


def test_a_pipeline_that_lets_names_through():
    scale = make_column_transformer(
        (StandardScaler(), ["a", "b", "c"]), remainder="passthrough", verbose_feature_names_out=False
    ).set_output(transform="pandas")
    pipeline = make_pipeline(scale, ranker()).fit(FRAME, Y)
    scaled = StandardScaler().fit_transform(X)
    expected = SVMRanker(C=10.0, bound="convex").fit(scaled, Y, qid=QID)
    np.testing.assert_allclose(pipeline[-1].coef_, expected.coef_, atol=1e-9)
    assert pipeline.score(FRAME, Y) == pytest.approx(expected.score(scaled, Y, qid=QID), abs=1e-12)


def importances(model, X, **options):
    return permutation_importance(model, X, Y, n_repeats=3, random_state=0, **options).importances_mean


def test_importance_leaves_out_queries_in_the_index():
    indexed = FRAME.set_index("qid")
    model = ranker().fit(indexed, Y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    found = importances(model, indexed)
    by_hand = importances(model, indexed, scoring=lambda model, X, y: model.score(X, y, qid=QID))
    assert found.shape == (3,)
    np.testing.assert_allclose(found, by_hand, rtol=0, atol=1e-12)
    assert found.max() > 0.01
    with pytest.warns(UserWarning, match="were in the fit with another number of rows"):
        # Some rows of each query, drawn by scikit-learn: they come with their queries, which are cut.
        importances(model, indexed, max_samples=0.5)


@pytest.mark.parametrize("kind", ["pandas", "pandas, by place", "array"])
def test_importance_of_a_query_column_is_nothing(kind):
    given, column = KINDS[kind]
    model = ranker(qid_column=column).fit(given, Y)
    found = importances(model, given, scoring=make_query_scorer("ndcg", gains="exponential", qid=QID))
    indexed = FRAME.set_index("qid")
    assert found[1] == 0.0
    # The same seed shuffles each column alike, be there one more or not.
    expected = importances(ranker().fit(indexed, Y), indexed)
    np.testing.assert_allclose(found[[0, 2, 3]], expected, rtol=0, atol=1e-12)


def test_a_scorer_that_knows_its_queries():
    model, scorer = ranker().fit(FRAME, Y), make_query_scorer("ndcg", gains="exponential", qid=QID)
    assert scorer(model, FRAME, Y) == pytest.approx(model.score(FRAME, Y), abs=1e-12)
    assert repr(scorer) == "make_query_scorer('ndcg', qid=..., gains='exponential')"
    with pytest.raises(ValueError, match=r"has the queries of 72 rows, but X has 71: for tools that select"):
        scorer(model, FRAME[1:], Y[1:])
    with pytest.raises(ValueError, match="has a qid already: do not pass"):
        scorer(model, FRAME, Y, qid=QID)


def test_a_level_of_the_index():
    """It travels with the rows as a column does, and a column of the same name goes first."""
    indexed = FRAME.set_index(["qid", pd.Index(range(len(Y)), name="document")])
    folds = QueryKFold(3, qid_column="qid")
    np.testing.assert_allclose(
        cross_val_score(ranker(), indexed, Y, cv=folds), cross_val_score(ranker(), FRAME, Y, cv=folds), atol=1e-12
    )
    model = ranker().fit(indexed, Y)
    np.testing.assert_array_equal(model.predict(indexed), model.predict(FRAME))
    both = FRAME.set_index(pd.Index(["same"] * len(Y), name="qid"))
    assert ranker().fit(both, Y).n_queries_ == 9
    with pytest.raises(ValueError, match="qid differs from"):
        ranker().fit(indexed, Y, qid=np.roll(QID, 1))


def test_a_fold_that_cuts_queries_is_warned_of():
    with pytest.warns(UserWarning, match=r"queries, 'query \d' among them, .*QueryKFold\(qid_column='qid'\)"):
        cross_val_score(ranker(), FRAME, Y, cv=KFold(3, shuffle=True, random_state=0))
    with pytest.warns(UserWarning, match="were in the fit with another number of rows"):
        cross_val_score(ranker(), FRAME, Y, cv=KFold(3), scoring=make_query_scorer("ap"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ranker().fit(FRAME, Y)
        model.score(FRAME, Y)
        model.score(FRAME[QID < 4], Y[QID < 4])
        model.score(FRAME.assign(qid="another"), Y)


def test_a_scorer_does_not_guess():
    with pytest.raises(ValueError, match=r"got no qid.*use SVMRanker\(qid_column="):
        make_query_scorer("ap")(ranker(qid_column=None).fit(X, Y, qid=QID), X, Y)


def test_a_search_of_our_own():
    folds = QueryKFold(3, qid_column="qid")
    options = {"Cs": CS, "bound": "convex", "tol": 1e-9}
    model = SVMRankerCV(qid_column="qid", cv=folds, **options).fit(FRAME, Y)
    expected = SVMRankerCV(cv=QueryKFold(3), **options).fit(X, Y, qid=QID)
    np.testing.assert_allclose(model.scores_, expected.scores_, atol=1e-9)
    assert model.score(FRAME, Y) == pytest.approx(expected.score(X, Y, qid=QID), abs=1e-9)
    np.testing.assert_allclose(model.predict(FRAME), expected.predict(X), atol=1e-6)


def test_qid_besides():
    assert ranker().fit(FRAME, Y, qid=QID).n_queries_ == 9
    other = QID.copy()
    other[7] = (other[7] + 1) % 9
    with pytest.raises(ValueError, match=r"qid differs from the column 'qid' of X, first in row \d+: leave out one"):
        ranker().fit(FRAME, Y, qid=other)
    with pytest.raises(ValueError, match="qid differs from the column 'qid' of X"):
        ranker().fit(FRAME, Y).score(FRAME, Y, qid=other)
    weighted = ranker().fit(FRAME, Y, query_weight={"query 1": 5.0})
    expected = SVMRanker(C=10.0, bound="convex").fit(X, Y, qid=QID, query_weight={1: 5.0})
    np.testing.assert_allclose(weighted.coef_, expected.coef_, atol=1e-9)


@pytest.mark.parametrize(
    ("given", "column", "message"),
    [
        (FRAME, "query", r"qid_column='query': X has the columns \['a', 'qid', 'b', 'c'\]"),
        (WITH, "qid", "qid_column='qid': X has 4 columns without names"),
        (WITH, 4, "qid_column=4: X has 4 columns without names"),
        (FRAME.assign(qid=FRAME["qid"].where(QID > 0)), "qid", r"qid\[\d+\] is nan"),
        (
            pl.DataFrame({"qid": [None, *NAMES[1:]], "a": X[:, 0]}),
            "qid",
            "qid_column='qid': the column has 1 nulls",
        ),
    ],
)
def test_columns_that_cannot_be(given, column, message):
    with pytest.raises(ValueError, match=message):
        ranker(qid_column=column).fit(given, Y)


def test_not_fitted():
    with pytest.raises(NotFittedError):
        ranker().predict(FRAME)
    with pytest.raises(NotFittedError):
        ranker().score(FRAME, Y)


def test_queries_do_not_leave_with_the_model():
    model = ranker().fit(FRAME, Y)
    assert b"query 1" not in pickle.dumps(model)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert other.score(FRAME, Y) == model.score(FRAME, Y)
    assert clone(model).qid_column == "qid"


@pytest.mark.parametrize("estimator", [SVMRanker, SVMRankerCV])
def test_words_of_other_libraries(estimator):
    with pytest.raises(TypeError, match=rf"{estimator.__name__} takes no class_weight: .* gains= and level_weights="):
        estimator(class_weight="balanced")
    with pytest.raises(TypeError, match=r"takes no sample_weight: .* query_weight="):
        estimator().fit(X, Y, sample_weight=np.ones(Y.size))
    with pytest.raises(TypeError, match=r"takes no group: .*qid=np\.repeat\(np\.arange\(len\(group\)\), group\)"):
        estimator().fit(X, Y, group=[8] * 9)
    with pytest.raises(TypeError, match="takes no groups: the query of each row is qid="):
        estimator().fit(X, Y, groups=QID)
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        estimator().fit(X, Y, colour=1)


@pytest.mark.parametrize("sizes", [np.array([8] * 9), [70, 2], (np.int64(72),)])
def test_sizes_of_groups_are_recognised(sizes):
    with pytest.raises(ValueError, match=r"these are sizes of groups.*np\.repeat\(np\.arange\(len\(qid\)\), qid\)"):
        SVMRanker().fit(X, Y, qid=sizes)


@pytest.mark.parametrize("other", [[70, 1], ["72"], [73, -1], np.array([72.0])])
def test_other_wrong_lengths(other):
    with pytest.raises(ValueError, match=r"qid has \d entries, y 72$"):
        SVMRanker().fit(X, Y, qid=other)
