"""Query ids of any kind, in any order; lists that cannot be ranked; weights of queries."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pandas as pd
import pytest

from rankhinge import RankSVC, SVMRanker, SVMRankerCV, metrics
from tests.svm.helpers import binary, graded

SETTINGS = {"bound": "convex", "C": 20.0, "tol": 1e-9}


def named(kind, qid):
    """The same queries under other names."""
    kinds = {
        "strings": [f"query {q}" for q in qid],
        "array of strings": np.array([f"query {q}" for q in qid]),
        "tuples": [(int(q) % 2, f"{q}") for q in qid],
        "mixed": [[0, "0", None, (0,), 1.5, frozenset({1})][q] for q in qid],
        "array of objects": np.array([[7, "7", 2.5, b"7", None, True][q] for q in qid], dtype=object),
        "dates": np.datetime64("2020-01-01") + qid,
        "negative": -qid,
    }
    return kinds[kind]


@pytest.mark.parametrize(
    "kind", ["strings", "array of strings", "tuples", "mixed", "array of objects", "dates", "negative"]
)
def test_any_hashable(kind):
    X, y, qid = graded()
    names = named(kind, qid)
    expected = SVMRanker(**SETTINGS).fit(X, y, qid=qid)
    model = SVMRanker(**SETTINGS).fit(X, y, qid=names)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-6)
    assert model.n_queries_ == expected.n_queries_ == 6
    assert model.score(X, y, qid=names) == pytest.approx(expected.score(X, y, qid=qid), abs=1e-12)


@pytest.mark.parametrize("loss", ["rbp", "rr", "zero-one"])
def test_any_hashable_for_any_loss(loss):
    X, y, qid = graded(n_grades=2)
    model = SVMRanker(loss=loss, bound="convex").fit(X, y, qid=named("tuples", qid))
    assert model.score(X, y, qid=named("mixed", qid)) == pytest.approx(model.score(X, y, qid=qid), abs=1e-12)


def test_order_of_rows_does_not_matter():
    X, y, qid = graded()
    expected = SVMRanker(**SETTINGS).fit(X, y, qid=qid)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(y.size)
        model = SVMRanker(**SETTINGS).fit(X[order], y[order], qid=qid[order])
        assert model.objective_ == pytest.approx(expected.objective_, rel=1e-8)
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-6)
        assert model.score(X[order], y[order], qid=qid[order]) == pytest.approx(model.score(X, y, qid=qid), abs=1e-12)


@pytest.mark.parametrize("loss", ["ap", "ndcg"])
def test_without_qid_there_is_one_list(loss):
    X, y = binary()
    expected = RankSVC(loss=loss, **SETTINGS).fit(X, y)
    for qid in (None, np.zeros(y.size), ["a"] * y.size):
        model = SVMRanker(loss=loss, **SETTINGS).fit(X, y, qid=qid)
        assert model.objective_ == pytest.approx(expected.objective_, rel=1e-8)
        np.testing.assert_allclose(model.coef_, expected.coef_[0], atol=1e-6)
        assert (model.n_queries_, model.n_unusable_queries_) == (1, 0)
        assert model.score(X, y) == pytest.approx(expected.score(X, y), abs=1e-9)


def test_unusable_lists_do_not_count():
    X, y, qid = graded()
    expected = SVMRanker(**SETTINGS).fit(X, y, qid=qid)
    more = np.random.default_rng(1).normal(size=(9, 3))
    labels = np.repeat([0, 1, 2], 3)
    model = SVMRanker(**SETTINGS).fit(
        np.concatenate([more, X]), np.concatenate([labels, y]), qid=[*np.repeat(["x", "y", "z"], 3), *qid]
    )
    assert (model.n_queries_, model.n_unusable_queries_) == (6, 3)
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-8)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-6)


def test_weights_by_row_and_by_query():
    X, y, qid = graded()
    by_query = {0: 1.0, 1: 2.0, 2: 0.5, 3: 1.0, 4: 4.0, 5: 1.0}
    by_row = np.array([by_query[q] for q in qid.tolist()])
    models = [
        SVMRanker(**SETTINGS).fit(X, y, qid=qid, query_weight=by_query),
        SVMRanker(**SETTINGS).fit(X, y, qid=qid, query_weight=by_row),
        SVMRanker(**SETTINGS).fit(X, y, qid=qid, query_weight=(10 * by_row).tolist()),
        # Queries that the mapping leaves out weigh 1.
        SVMRanker(**SETTINGS).fit(X, y, qid=qid, query_weight={1: 2.0, 2: 0.5, 4: 4.0}),
    ]
    for model in models[1:]:
        assert model.objective_ == pytest.approx(models[0].objective_, rel=1e-8)
        np.testing.assert_allclose(model.coef_, models[0].coef_, atol=1e-6)
    assert not np.allclose(models[0].coef_, SVMRanker(**SETTINGS).fit(X, y, qid=qid).coef_)


@pytest.mark.parametrize("solver", ["bundle", "frank-wolfe"])
def test_weight_zero_leaves_a_query_out(solver):
    X, y, qid = graded()
    kept = qid != 2
    options = {"bound": "convex", "C": 1.0, "solver": solver, "random_state": 0}
    model = SVMRanker(**options).fit(X, y, qid=qid, query_weight={2: 0.0})
    expected = SVMRanker(**options).fit(X[kept], y[kept], qid=qid[kept])
    assert model.objective_ == pytest.approx(expected.objective_, rel=2e-3)
    assert (model.n_queries_, model.n_unusable_queries_) == (5, 0)


def test_weights_of_copies():
    """A query of weight 2 is a query that is there twice."""
    X, y, qid = graded()
    again = qid == 3
    expected = SVMRanker(**SETTINGS).fit(
        np.concatenate([X, X[again]]), np.concatenate([y, y[again]]), qid=[*qid, *["copy"] * again.sum()]
    )
    model = SVMRanker(**SETTINGS).fit(X, y, qid=qid, query_weight={3: 2.0})
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-6)


def test_score_is_the_mean_over_queries():
    X, y, qid = graded()
    model = SVMRanker(gains="linear", bound="convex").fit(X, y, qid=qid)
    assert model.score(X, y, qid=qid) == pytest.approx(metrics.ndcg(y, model.predict(X), qid=qid, gains="linear"))
    with pytest.warns(UserWarning, match="score got no qid"):
        pooled = model.score(X, y)
    assert pooled == pytest.approx(metrics.ndcg(y, model.predict(X), gains="linear"))
    assert model.score(X, y, qid=qid) != pytest.approx(pooled)
    np.testing.assert_allclose(model.predict(X), X @ model.coef_, rtol=1e-12)


def test_score_leaves_out_queries_without_relevant_samples():
    X, y, qid = graded()
    model = SVMRanker(bound="convex").fit(X, y, qid=qid)
    blank = np.where(qid == 1, 0, y)
    assert model.score(X, blank, qid=qid) == pytest.approx(model.score(X[qid != 1], y[qid != 1], qid=qid[qid != 1]))
    other = SVMRanker(loss="rbp", bound="convex").fit(X, y > 0, qid=qid)
    for machine in (model, other):
        with pytest.warns(UserWarning, match=f"none of the {np.unique(qid).size} queries of y has a relevant sample"):
            assert np.isnan(machine.score(X, np.zeros_like(y), qid=qid))


def test_cross_validation_takes_any_hashable():
    X, y, qid = graded()
    models = [
        SVMRankerCV(Cs=[1.0, 10.0], cv=3, random_state=0, bound="convex").fit(X, y, qid=names, query_weight=weight)
        for names, weight in ((qid, None), (named("tuples", qid), np.ones(y.size)), (named("mixed", qid), {}))
    ]
    for model in models[1:]:
        np.testing.assert_allclose(model.scores_, models[0].scores_, atol=1e-9)


@pytest.mark.parametrize("unit", ["D", "us", "ns"])
def test_weights_of_dates(unit):
    """A mapping may name a date as the array does, or as Python does."""
    X, y, qid = graded()
    dates = (np.datetime64("2020-01-01", "D") + qid).astype(f"datetime64[{unit}]")
    by_number = SVMRanker(bound="convex").fit(X, y, qid=qid, query_weight={0: 5.0, 2: 0.0})
    first, third = (np.datetime64("2020-01-01", "D") + days for days in (0, 2))
    kinds = [lambda date: date.astype(dates.dtype)]
    if unit == "D":
        kinds.append(lambda date: date.item())
    else:
        kinds += [lambda date: date.astype("datetime64[us]").item(), pd.Timestamp]
    for kind in kinds:
        weights = {kind(first): 5.0, kind(third): 0.0}
        model = SVMRanker(bound="convex").fit(X, y, qid=dates, query_weight=weights)
        np.testing.assert_array_equal(model.coef_, by_number.coef_)


@pytest.mark.parametrize("weight", [None, "a"])
def test_a_weight_that_is_no_number(weight):
    X, y, qid = graded()
    with pytest.raises(ValueError, match=f"query_weight of query 0 is {weight!r}: it must be a number"):
        SVMRanker(bound="convex").fit(X, y, qid=qid, query_weight={0: weight})


@pytest.mark.parametrize("wrong", [3, {1, 2}, frozenset([1])])
def test_queries_without_an_order(wrong):
    X, y, _ = graded()
    with pytest.raises(ValueError, match="qid must be a sequence with an entry for each row"):
        SVMRanker(bound="convex").fit(X, y, qid=wrong)


def test_nulls_of_polars_are_no_query():
    pl = pytest.importorskip("polars")
    X, y, qid = graded()
    names = [None if row == 3 else str(query) for row, query in enumerate(qid)]
    with pytest.raises(ValueError, match="qid has 1 nulls"):
        SVMRanker(bound="convex").fit(X, y, qid=pl.Series(names))


def test_level_weights_in_any_scale():
    X, y, qid = graded()
    objectives = [
        SVMRanker("ap", C=10.0, level_weights=np.array([1.0, 2.0]) * scale, bound="convex")
        .fit(X, y, qid=qid)
        .objective_
        for scale in (1.0, 8.0e307, 1e-300)
    ]
    np.testing.assert_allclose(objectives, objectives[0], rtol=1e-12)


def test_weights_of_levels_by_label():
    """A part of the data may lack a grade: what the others weigh does not depend on that."""
    X, y, qid = graded(n_grades=4)
    options = {"bound": "convex", "loss": "ap", "C": 10.0, "tol": 1e-6}
    without = np.where(y == 2, 1, y)
    by_label = SVMRanker(level_weights=[1.0, 2.0, 4.0], **options).fit(X, without, qid=qid)
    by_grade = SVMRanker(level_weights=[1.0, 6.0], **options).fit(X, without, qid=qid)
    assert by_label.objective_ == pytest.approx(by_grade.objective_, rel=1e-9)
    # The highest is missing.
    lower = np.minimum(y, 2)
    longer = SVMRanker(level_weights=[1.0, 2.0, 4.0], **options).fit(X, lower, qid=qid)
    assert longer.objective_ == SVMRanker(level_weights=[1.0, 2.0], **options).fit(X, lower, qid=qid).objective_
    halves = SVMRanker(level_weights=[1.0, 2.0], **options).fit(X, lower / 2, qid=qid)
    assert halves.objective_ == pytest.approx(longer.objective_, rel=1e-9)


def test_a_mapping_of_weights_may_have_a_default():
    X, y, qid = graded()
    by_default = SVMRanker(bound="convex").fit(X, y, qid=qid, query_weight=defaultdict(lambda: 0.5, {0: 9.0}))
    by_row = SVMRanker(bound="convex").fit(X, y, qid=qid, query_weight=np.where(qid == 0, 9.0, 0.5))
    assert by_default.objective_ == by_row.objective_
    with pytest.raises(ValueError, match="there are 48 rows: give the weight of each row's query, or a mapping"):
        SVMRanker(bound="convex").fit(X, y, qid=qid, query_weight=pd.Series({0: 9.0}))


def test_continuous_relevance():
    """Lists of eight have eight grades at most, however many there are in all."""
    X, _, qid = graded(n_queries=400)
    y = np.random.default_rng(0).random(qid.size)
    model = SVMRanker(C=10.0, gains="linear", bound="convex").fit(X, y, qid=qid)
    assert model.gap_ <= 1e-3
    assert model.score(X, y, qid=qid) == pytest.approx(metrics.ndcg(y, model.predict(X), qid=qid, gains="linear"))
