"""`score` on workers: the metric in memory to 1e-12, whatever the targets, the queries and the chunks."""

from __future__ import annotations

import numpy as np
import pytest

from rankhinge import RankSVC, SVMRanker
from tests.dask.test_lists import data, pytestmark, small  # noqa: F401

da = pytest.importorskip("dask.array")
N, D = 900, 5
LOOSE = {"bound": "convex", "C": 1.0, "tol": 0.1}


@pytest.mark.parametrize("loss", ["ap", "ndcg", "auc"])
@pytest.mark.parametrize("kind", ["binary", "multiclass", "multilabel"])
def test_classes(client, loss, kind):
    rng = np.random.default_rng(0)
    # Whole numbers: many scores are tied, and equal to the last bit however chunks are cut.
    X = rng.integers(-2, 3, (N, D)).astype(float)
    scores = X[:, :3] + rng.normal(size=(N, 3))
    y = {"binary": scores[:, 0] > 1, "multiclass": np.argmax(scores, axis=1), "multilabel": scores > 1}[kind].astype(
        int
    )
    model = RankSVC(loss, **LOOSE).fit(X, y)
    model.coef_ = np.round(10 * model.coef_)
    blocks, labels = da.from_array(X, chunks=((300, 0, 1, 599), D)), da.from_array(y, chunks=250)
    assert model.score(blocks, labels) == pytest.approx(model.score(X, y), rel=1e-12)
    np.testing.assert_allclose(model.score(blocks, y, average=None), model.score(X, y, average=None), rtol=1e-12)


def test_no_other_scores_are_gathered(client, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    y = (X[:, 0] > 1.5).astype(int)
    model, gathered, gather = RankSVC(**LOOSE).fit(X, y), [], client.gather

    def noted(*arguments, **options):
        found = gather(*arguments, **options)
        gathered.append(sum(np.asarray(part).nbytes for chunk in found for part in np.atleast_1d(chunk)))
        return found

    monkeypatch.setattr(client, "gather", noted)
    monkeypatch.setattr("rankhinge.dask.container._client", lambda: client)
    model.score(da.from_array(X, chunks=(300, D)), y)
    # Labels, positives, counts between them in three chunks.
    assert max(gathered) <= 3 * 8 * (2 * y.sum() + 1) < 8 * N


@pytest.mark.parametrize("loss", ["ndcg", "ap", "soft-ndcg@10"])
@pytest.mark.parametrize("case", ["sorted", "scattered", "no queries"])
def test_lists(client, small, loss, case):  # noqa: F811
    X, y, qid = data("sorted" if case == "sorted" else "scattered", n_grades=4 if loss != "ap" else 2, long=300)
    X = np.round(X)
    model = SVMRanker(loss, **LOOSE).fit(X, y, qid=qid)
    model.coef_ = np.round(10 * model.coef_)
    qid = np.zeros(N, int) if case == "no queries" else qid
    for chunks in ((200,) * 4 + (100,), (1, 0, 2, 897)):
        found = model.score(da.from_array(X, chunks=(chunks, D)), da.from_array(y, chunks=333), qid=da.from_array(qid))
        assert found == pytest.approx(model.score(X, y, qid=qid), rel=1e-12)


def test_what_is_refused(client, small):  # noqa: F811
    X, y, qid = data("scattered", long=300)
    blocks = da.from_array(X, chunks=(300, D))
    model = RankSVC("precision@5", **LOOSE).fit(X, y)
    with pytest.raises(
        ValueError, match=r"the metric of loss='precision@5' is not one of average_precision, ndcg, auc"
    ):
        model.score(blocks, y)
    model = RankSVC(**LOOSE).fit(X, y)
    with pytest.raises(ValueError, match="y has none of the labels of training"):
        model.score(blocks, y + 5)
    with pytest.raises(ValueError, match="X has 900 rows, but y has 899"):
        model.score(blocks, y[1:])
    with pytest.warns(UserWarning, match="no label with both"):
        assert np.isnan(model.score(blocks, np.ones(N)))
    ranker = SVMRanker(**LOOSE).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="X has 900 rows, but qid has 899"):
        ranker.score(blocks, y, qid=qid[1:])
