"""What works in memory refuses dask collections before anything is computed; what is lazy computes nothing either."""

from __future__ import annotations

import numpy as np
import pytest

import rankhinge
from rankhinge import datasets, detection, metrics
from rankhinge.latent import Bags, LatentRankSVC, detect

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
pytestmark = pytest.mark.dask

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
Y = (X[:, 0] + RNG.normal(size=120) > 1).astype(int)
QID = np.repeat(np.arange(12), 10)
BOXES = np.tile([0.0, 0.0, 9.0, 9.0], (120, 1))
WHOLE = "is a dask collection, which would be loaded whole here: .*rankhinge.spool"
ELSEWHERE = "pass an array"


def computed(block):
    raise AssertionError("this chunk has been computed")


def lazy(values):
    """In chunks of rows that nobody may compute."""
    chunks = (30, *values.shape[1:])
    meta = np.zeros((0,) * values.ndim, values.dtype)
    return da.from_array(values, chunks=chunks).map_blocks(computed, dtype=values.dtype, meta=meta)


def machine(name):
    return getattr(rankhinge, name)(max_iter=5)


REFUSED = {
    "path, X": lambda path: rankhinge.rank_svm_path(lazy(X), Y, [1.0]),
    "path, y": lambda path: rankhinge.rank_svm_path(X, lazy(Y), [1.0]),
    "path, qid": lambda path: rankhinge.rank_svm_path(X, Y, [1.0], qid=lazy(QID)),
    "bags": lambda path: Bags(lazy(X)),
    "bags, each": lambda path: Bags([lazy(X), lazy(X)]),
    "bags, ids": lambda path: Bags(X, lazy(QID)),
    "latent, y": lambda path: LatentRankSVC().fit(Bags(X), lazy(Y)),
    "classifier, y": lambda path: machine("RankSVC").fit(X, lazy(Y)),
    "classifier, mask": lambda path: machine("RankSVC").fit(X, np.stack([Y, 1 - Y], 1), mask=lazy(X[:, :2] > -9)),
    "classifier, score": lambda path: rankhinge.RankSVC(bound="convex", C=1.0).fit(X, Y).score(X, lazy(Y)),
    "ranker, y": lambda path: machine("SVMRanker").fit(X, lazy(Y), qid=QID),
    "ranker, qid": lambda path: machine("SVMRanker").fit(X, Y, qid=lazy(QID)),
    "ranker, weights": lambda path: machine("SVMRanker").fit(X, Y, qid=QID, query_weight=lazy(X[:, 0])),
    "search, y": lambda path: rankhinge.RankSVCCV().fit(X, lazy(Y)),
    "search, qid": lambda path: rankhinge.SVMRankerCV().fit(X, Y, qid=lazy(QID)),
    "folds": lambda path: list(rankhinge.QueryKFold(2).split(X, Y, lazy(QID))),
    "ranking, scores": lambda path: rankhinge.most_violating_ranking(lazy(X[:, 0]), Y),
    "ranking, relevance": lambda path: rankhinge.most_violating_ranking(X[:, 0], lazy(Y)),
    "rankings": lambda path: rankhinge.most_violating_rankings(lazy(X[:, 0]), Y, [0, 60, 120]),
    "loss": lambda path: rankhinge.ranking_loss(lazy(X[:, 0]), Y, "ap"),
    "hinge": lambda path: rankhinge.structured_hinge(lazy(X[:, 0]), Y),
    "tight hinge": lambda path: rankhinge.tight_hinge(lazy(X[:, 0]), Y),
    "metric, scores": lambda path: metrics.average_precision(Y, lazy(X[:, 0])),
    "metric, relevance": lambda path: metrics.ndcg(lazy(Y), X[:, 0]),
    "metric, qid": lambda path: metrics.auc(Y, X[:, 0], qid=lazy(QID)),
    "comparison": lambda path: metrics.compare("average_precision", Y, lazy(X[:, 0]), X[:, 1], qid=QID),
    "per query": lambda path: metrics.per_query("ndcg", Y, lazy(X[:, 0]), qid=QID),
    "boxes": lambda path: detection.iou(lazy(BOXES), BOXES),
    "suppression": lambda path: detection.non_maxima_suppression(BOXES, lazy(X[:, 0])),
    "windows": lambda path: detect(LatentRankSVC(max_iter=5), X, lazy(BOXES)),
    "letor": lambda path: datasets.dump_letor(path, lazy(X), Y),
    "run": lambda path: datasets.dump_run(path, qid=QID, scores=lazy(X[:, 0])),
    "npz": lambda path: datasets.save_npz(path, datasets.LetorData(lazy(X), Y)),
}


@pytest.mark.filterwarnings("ignore:X has two dimensions")
@pytest.mark.parametrize("name", REFUSED)
def test_refused(name, tmp_path):
    with pytest.raises(TypeError, match=WHOLE):
        REFUSED[name](tmp_path / "file")


LATENT = ["LatentRankSVC", "LatentRankSVCCV", "LatentSVC", "LatentStructuralSVC"]


@pytest.mark.parametrize("name", LATENT)
def test_latent_machines(name):
    with pytest.raises(TypeError, match=f"{name} takes no Array: {ELSEWHERE}"):
        getattr(rankhinge, name)().fit(lazy(X), Y)


def test_a_latent_model_that_is_fitted():
    model = LatentRankSVC(C=1.0).fit(Bags(X, QID), np.arange(12) % 3 == 0)
    for call in (model.predict, model.decision_function, model.score_candidates):
        with pytest.raises(TypeError, match=f"{WHOLE}|{ELSEWHERE}"):
            call(lazy(X))


def test_predictions_are_lazy():
    """Without a client too: of a model that was fitted in memory."""
    classifier = rankhinge.RankSVC(bound="convex", C=1.0).fit(X, Y)
    ranker = rankhinge.SVMRanker(bound="convex", C=1.0).fit(X, Y, qid=QID)
    for call in (classifier.decision_function, classifier.predict, ranker.predict):
        assert isinstance(call(lazy(X)), da.Array)
        with dask.config.set(scheduler="synchronous"):
            np.testing.assert_array_equal(call(da.from_array(X, chunks=(50, 4))).compute(), call(X))


def test_frames(tmp_path):
    pandas = pytest.importorskip("pandas")
    frames = pytest.importorskip("dask.dataframe")
    frame = frames.from_pandas(pandas.DataFrame(X), npartitions=3)
    for call in (lambda: rankhinge.rank_svm_path(frame, Y, [1.0]), lambda: Bags(frame)):
        with pytest.raises(TypeError, match=WHOLE):
            call()
