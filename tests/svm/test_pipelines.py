"""With scikit-learn's tools: pipelines, searches, folds that keep queries together, metadata routing."""

from __future__ import annotations

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

from rankhinge import RankSVC, RankSVCCV, SVMRanker, SVMRankerCV, metrics
from rankhinge.metrics import make_query_scorer
from tests.svm.helpers import binary, graded, multilabel

pytestmark = pytest.mark.sklearn_compat

CS = [0.1, 10.0]
FOLDS = GroupKFold(3)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def ranker(**options):
    return SVMRanker(bound="convex", **options).set_fit_request(qid=True).set_score_request(qid=True)


def by_hand(X, y, qid):
    """Scores of (C, fold): scale, fit and score per query, without any of scikit-learn's tools."""
    scores = np.empty((len(CS), FOLDS.get_n_splits()))
    for fold, (train, test) in enumerate(FOLDS.split(X, y, groups=qid)):
        centre, spread = X[train].mean(axis=0), X[train].std(axis=0)
        for place, C in enumerate(CS):
            model = SVMRanker(C=C, bound="convex").fit((X[train] - centre) / spread, y[train], qid=qid[train])
            predicted = model.predict((X[test] - centre) / spread)
            scores[place, fold] = metrics.ndcg(y[test], predicted, qid=qid[test], gains="exponential")
    return scores


def fold_scores(search):
    return np.array([search.cv_results_[f"split{fold}_test_score"] for fold in range(search.n_splits_)]).T


@pytest.mark.usefixtures("routing")
def test_search_over_a_pipeline_scores_per_query():
    X, y, qid = graded()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), ranker()),
        {"svmranker__C": CS},
        scoring=make_query_scorer("ndcg", gains="exponential"),
        cv=FOLDS,
        error_score="raise",
    ).fit(X, y, qid=qid, groups=qid)
    expected = by_hand(X, y, qid)
    np.testing.assert_allclose(fold_scores(search), expected, atol=1e-9)
    assert search.best_params_["svmranker__C"] == CS[int(np.argmax(expected.mean(axis=1)))]
    assert search.score(X, y, qid=qid) == pytest.approx(
        metrics.ndcg(y, search.predict(X), qid=qid, gains="exponential"), abs=1e-12
    )


@pytest.mark.usefixtures("routing")
@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.8"),
    reason="the default scoring of a search over a pipeline drops metadata before scikit-learn 1.8",
)
def test_default_scoring_of_a_search_over_a_pipeline():
    X, y, qid = graded()
    pipeline = make_pipeline(StandardScaler(), ranker())
    search = GridSearchCV(pipeline, {"svmranker__C": CS}, cv=FOLDS, error_score="raise")
    search.fit(X, y, qid=qid, groups=qid)
    np.testing.assert_allclose(fold_scores(search), by_hand(X, y, qid), atol=1e-9)


@pytest.mark.usefixtures("routing")
def test_pipeline_fits_and_scores_with_qid():
    X, y, qid = graded()
    names = [f"query {q}" for q in qid]
    pipeline = make_pipeline(StandardScaler(), ranker()).fit(X, y, qid=names)
    scaled = StandardScaler().fit_transform(X)
    expected = SVMRanker(bound="convex").fit(scaled, y, qid=qid)
    np.testing.assert_allclose(pipeline[-1].coef_, expected.coef_, atol=1e-9)
    assert pipeline.score(X, y, qid=names) == pytest.approx(expected.score(scaled, y, qid=qid), abs=1e-9)


@pytest.mark.usefixtures("routing")
def test_cross_validation_with_qid_as_metadata():
    X, y, qid = graded()
    scorer = make_query_scorer("ndcg", gains="exponential")
    found = cross_validate(
        ranker(C=10.0), X, y, cv=FOLDS, scoring=scorer, params={"qid": qid, "groups": qid}, error_score="raise"
    )
    rows = [
        SVMRanker(C=10.0, bound="convex").fit(X[train], y[train], qid=qid[train]).score(X[test], y[test], qid=qid[test])
        for train, test in FOLDS.split(X, y, groups=qid)
    ]
    np.testing.assert_allclose(found["test_score"], rows, atol=1e-9)


@pytest.mark.usefixtures("routing")
def test_qid_that_nobody_asked_for():
    X, y, qid = graded()
    with pytest.raises(ValueError, match=r"\[qid\] are passed but are not explicitly set as requested"):
        make_pipeline(StandardScaler(), SVMRanker(bound="convex")).fit(X, y, qid=qid)


@pytest.mark.usefixtures("routing")
def test_other_requests():
    X, y, qid = graded()
    weight = 1.0 + qid
    estimator = SVMRankerCV(Cs=[1.0], cv=2, random_state=0, bound="convex").set_fit_request(qid=True, query_weight=True)
    pipeline = make_pipeline(StandardScaler(), estimator).fit(X, y, qid=qid, query_weight=weight)
    expected = SVMRanker(bound="convex").fit(StandardScaler().fit_transform(X), y, qid=qid, query_weight=weight)
    np.testing.assert_allclose(pipeline[-1].coef_, expected.coef_, atol=1e-9)
    XL, YL = multilabel()
    mask = np.random.default_rng(0).random(YL.shape) < 0.8
    masked = make_pipeline(StandardScaler(), RankSVC(bound="convex").set_fit_request(mask=True)).fit(XL, YL, mask=mask)
    alone = RankSVC(bound="convex").fit(StandardScaler().fit_transform(XL), YL, mask=mask)
    np.testing.assert_allclose(masked[-1].coef_, alone.coef_, atol=1e-9)


def test_search_of_a_classifier_uses_its_own_metric():
    X, y = binary(noise=2.0)
    folds = StratifiedKFold(3)
    search = GridSearchCV(
        RankSVC(bound="convex"), {"C": CS, "loss": ["ap", "ndcg"]}, cv=folds, error_score="raise"
    ).fit(X, y)
    for place, parameters in enumerate(search.cv_results_["params"]):
        rows = [
            RankSVC(bound="convex", **parameters).fit(X[train], y[train]).score(X[test], y[test])
            for train, test in folds.split(X, y)
        ]
        np.testing.assert_allclose(fold_scores(search)[place], rows, atol=1e-12)


@pytest.mark.parametrize("scoring", ["average_precision", "roc_auc", "f1", "accuracy"])
def test_scorers_of_scikit_learn(scoring):
    X, y = binary()
    assert np.isfinite(cross_val_score(RankSVC(bound="convex"), X, y, cv=3, scoring=scoring, error_score="raise")).all()


def test_scorer_without_qid_says_so():
    X, y, qid = graded()
    with pytest.raises(ValueError, match="got no qid"):
        make_query_scorer("ndcg")(SVMRanker(bound="convex").fit(X, y, qid=qid), X, y)


def test_scorer_takes_the_decision_function_of_a_classifier():
    X, y = binary()
    qid = np.arange(60) % 4
    model = RankSVC(bound="convex").fit(X, y)
    expected = metrics.average_precision(y, model.decision_function(X), qid=qid)
    assert make_query_scorer("average_precision")(model, X, y, qid=qid) == expected


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_folds_in_parallel(backend):
    X, y = binary()
    one = cross_val_score(RankSVC(bound="convex"), X, y, cv=3, error_score="raise")
    with joblib.parallel_config(backend, n_jobs=2):
        two = cross_val_score(RankSVC(bound="convex"), X, y, cv=3, error_score="raise")
    np.testing.assert_allclose(one, two, atol=1e-9)


def test_cross_validated_classifier_in_a_pipeline():
    X, y = binary()
    pipeline = make_pipeline(StandardScaler(), RankSVCCV(Cs=CS, cv=3, random_state=0, bound="convex")).fit(X, y)
    assert pipeline[-1].C_ in CS
