"""The CV classes on workers: what is chosen is what the folds' scores say, as in memory on the same folds."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import PredefinedSplit

from rankhinge import RankSVCCV, SVMRankerCV
from rankhinge.problems.query_codes import codes_of_queries
from tests.dask.clusters import shards_left
from tests.dask.test_lists import data, pytestmark, small  # noqa: F401

da = pytest.importorskip("dask.array")
N, D = 900, 5
CS = [0.1, 10.0, 1000.0]


def seed_of(random_state):
    return int(np.random.RandomState(random_state).randint(2**31 - 1))


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_classes(client, kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    scores = X[:, :3] + 2 * rng.normal(size=(N, 3))
    y = np.argmax(scores, axis=1) if kind == "multiclass" else (scores[:, 0] > 2).astype(int)
    folds = PredefinedSplit((codes_of_queries(np.arange(N), seed_of(3)) % np.uint64(3)).astype(int))
    options = {"Cs": CS, "bound": "convex", "tol": 1e-5}
    expected = RankSVCCV(cv=folds, **options).fit(X, y)
    found = RankSVCCV(cv=3, random_state=3, **options).fit(da.from_array(X, chunks=(400, D)), da.from_array(y))
    assert found.scores_.shape == expected.scores_.shape
    np.testing.assert_allclose(found.scores_, expected.scores_, atol=2e-3)
    np.testing.assert_array_equal(found.C_, expected.C_)
    np.testing.assert_allclose(found.objective_, expected.objective_, rtol=1e-4)
    assert found.best_score_ == pytest.approx(expected.best_score_, abs=2e-3)
    assert set(vars(expected)) == set(vars(found))
    assert not shards_left(client)


def test_lists(client, small):  # noqa: F811
    X, y, qid = data("scattered", n_grades=3)
    folds = PredefinedSplit((codes_of_queries(qid, seed_of(1)) % np.uint64(3)).astype(int))
    options = {"Cs": CS, "bound": "convex", "tol": 1e-5}
    expected = SVMRankerCV(cv=folds, **options).fit(X, y, qid=qid)
    found = SVMRankerCV(cv=3, random_state=1, **options).fit(da.from_array(X, chunks=(400, D)), y, qid=qid)
    np.testing.assert_allclose(found.scores_, expected.scores_, atol=2e-3)
    assert found.C_ == expected.C_
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-4)
    assert not shards_left(client)


def test_the_tight_bound(client, small):  # noqa: F811
    X, y, qid = data("scattered", n_grades=2)
    blocks = da.from_array(X, chunks=(400, D))
    found = SVMRankerCV("ap", reaches=[0.1, 1.0], cv=2, random_state=0).fit(blocks, y, qid=qid)
    assert found.scores_.shape == (1, 2, 2)
    assert found.init_scores_.shape == (2,)
    assert np.isfinite(found.scores_).all()
    assert found.reach_ == found.best_params_["reach"]
    assert 0 <= found.standardize_ <= 1
    assert found.score(blocks, y, qid=qid) > 0.8


def test_what_is_refused(client):
    X, y, qid = data()
    blocks, y = da.from_array(X, chunks=(400, D)), y.astype(int)
    with pytest.raises(ValueError, match="give a number of folds"):
        RankSVCCV(cv=PredefinedSplit(np.arange(N) % 2)).fit(blocks, y)
    with pytest.raises(ValueError, match="give a name, 'ap', 'ndcg' or 'auc'"):
        RankSVCCV(scoring=lambda relevant, scores: 0.0).fit(blocks, y)
    with pytest.raises(ValueError, match="init_Cs works for arrays in memory only"):
        RankSVCCV(init_Cs=[1.0]).fit(blocks, y)
    with pytest.raises(ValueError, match="folds are made of whole queries"):
        SVMRankerCV().fit(blocks, y)
    with pytest.raises(ValueError, match="query_weight in cross-validation works for arrays in memory only"):
        SVMRankerCV().fit(blocks, y, qid=qid, query_weight=np.ones(N))
    assert not shards_left(client)
