"""`score`: the loss's own metric, with the gains of training, or an error that says why not."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from rankhinge import RankSVC, SVMRanker, SVMRankerCV, losses, metrics, ranking_loss
from rankhinge.svm.quality import list_metric, lists_quality

from .helpers import binary, graded, multiclass, multilabel

DISCOUNTED = [losses.SoftNDCG(3), losses.RBP(0.8), losses.DCG(lambda rank: 1.0 / rank), losses.NDCG()]


def _graded_by_hand(loss, gains, scores):
    """DCG of the ranking by score over that of the best one; of equal scores the mean over all orders."""
    discount = loss.table(gains.size + 1)[1 : gains.size + 1]
    tied = [gains[scores == score] for score in np.unique(scores)[::-1]]
    orders = product(
        *(list(permutations(group)) if len(group) < 6 else [np.full(len(group), group.mean())] for group in tied)
    )
    reached = np.mean([np.concatenate(order) @ discount for order in orders])
    return float(reached / (np.sort(gains)[::-1] @ discount))


@pytest.mark.filterwarnings("ignore:the coefficients are all 0")
@pytest.mark.parametrize("loss", DISCOUNTED, ids=["soft", "rbp", "by rank", "ndcg"])
@pytest.mark.parametrize("gains", ["exponential", "linear", [0, 1, 5]], ids=str)
def test_graded_gains_count_for_every_loss_of_the_dcg_family(loss, gains):
    X, y, qid = graded(n_queries=8)
    y[qid == 3] = 0
    model = SVMRanker(loss, C=10.0, gains=gains, bound="convex").fit(X, y, qid=qid)
    table = {"exponential": 2.0 ** np.arange(3) - 1, "linear": np.arange(3.0)}.get(
        str(gains), np.array([0.0, 1.0, 5.0])
    )
    scores = model.predict(X)
    lists = [np.flatnonzero(qid == q) for q in range(8) if q != 3]
    expected = np.mean([_graded_by_hand(loss, table[y[rows]], scores[rows]) for rows in lists])
    assert model.score(X, y, qid=qid) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("loss", DISCOUNTED, ids=["soft", "rbp", "by rank", "ndcg"])
def test_binary_labels_give_one_minus_the_loss(loss):
    X, y, qid = graded(n_grades=2)
    lists = [np.flatnonzero(qid == q) for q in np.unique(qid)]
    expected = np.mean([1 - ranking_loss(X[rows, 0], y[rows] > 0, loss) for rows in lists])
    assert lists_quality(loss, y.astype(float), "linear", X[:, 0], qid) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("loss", DISCOUNTED, ids=["soft", "rbp", "by rank", "ndcg"])
@pytest.mark.parametrize("n_grades", [2, 3])
def test_equal_scores_count_by_the_mean_over_their_orders(loss, n_grades):
    X, y, qid = graded(n_grades=n_grades, size=8)
    scores = np.round(X[:, 0])
    lists = [np.flatnonzero(qid == q) for q in np.unique(qid)]
    expected = np.mean([_graded_by_hand(loss, y[rows].astype(float), scores[rows]) for rows in lists if y[rows].any()])
    assert lists_quality(loss, y.astype(float), "linear", scores, qid) == pytest.approx(expected, rel=1e-12)
    if n_grades == 2:
        one = lists[0]
        expected = _graded_by_hand(loss, y[one].astype(float), scores[one])
        assert list_metric(loss, None, y[one] > 0)(scores[one]) == pytest.approx(expected, rel=1e-12)


def test_metrics_of_the_same_name_agree_where_scores_are_equal():
    X, y, qid = graded()
    scores, options = np.round(X[:, 0]), {"qid": qid, "no_positives": "skip"}
    rbp = metrics.rbp(y > 0, scores, persistence=0.9, normalize=True, **options)
    assert lists_quality(losses.RBP(), (y > 0) * 1.0, "linear", scores, qid) == pytest.approx(rbp)
    ndcg = metrics.ndcg(y, scores, gains="exponential", **options)

    class Mine(losses.NDCG):
        pass

    for loss in (losses.NDCG(), Mine(), losses.DCG(lambda rank: 1 / np.log2(1.0 + rank))):
        assert lists_quality(loss, y.astype(float), "exponential", scores, qid) == pytest.approx(ndcg)


def test_lists_where_all_are_relevant():
    X, y, qid = graded()
    ranker = SVMRankerCV("rbp", cv=2, random_state=0, bound="convex").fit(X, y + 1, qid=qid)
    assert np.isfinite(ranker.scores_).all()
    assert 0 < ranker.score(X, y + 1, qid=qid) <= 1


def test_a_loss_is_known_by_what_it_is_and_not_by_its_name():
    def step(j, i, n_positives, n_negatives):
        return -1.0 / (i + j) ** 2 / n_positives

    X, y = binary()
    named, other = (RankSVC(losses.CustomLoss(step, name=name), bound="convex").fit(X, y) for name in ("ap", "mine"))
    assert named.score(X, y) == other.score(X, y) != metrics.average_precision(y, named.decision_function(X))


def test_entries_that_are_not_labelled_do_not_count():
    X, Y = multilabel()
    rng = np.random.default_rng(0)
    mask = rng.random(Y.shape) < 0.7
    model = RankSVC(C=10.0, bound="convex").fit(X, np.where(mask, Y, 0), mask=mask)
    scores = model.decision_function(X)
    expected = np.mean([metrics.average_precision(Y[on, k], scores[on, k]) for k, on in enumerate(mask.T)])
    assert model.score(X, np.where(mask, Y, 0), mask=mask) == pytest.approx(expected)
    with pytest.raises(ValueError, match=r"mask must be bool or 0/1 of shape \(60, 3\)"):
        model.score(X, Y, mask=mask[:5])


def test_columns_and_containers():
    X, y = binary()
    model = RankSVC(bound="convex").fit(X, y)
    assert model.score(X, y[:, None]) == model.score(X, pd.DataFrame({"y": y})) == model.score(X, y)
    X, Y = multilabel()
    model = RankSVC(bound="convex").fit(X, Y)
    assert model.score(X, sparse.csr_array(Y)) == model.score(X, Y)
    X, y, qid = graded()
    ranker = SVMRanker(bound="convex").fit(X, y, qid=qid)
    assert ranker.score(X, y[:, None], qid=qid) == ranker.score(X, y, qid=qid)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (lambda y: y.astype(str), r"none of the labels of training, \[0, 1\]; it has '[01]'"),
        (lambda y: y + 7, "none of the labels of training"),
        (lambda y: y[:7], r"y has shape \(7,\), but \(60,\) fits"),
        (lambda y: np.where(y, 1.0, np.nan), r"y\[\d+\] is nan"),
    ],
)
def test_bad_targets_of_a_classifier(bad, message):
    X, y = binary()
    with pytest.raises(ValueError, match=message):
        RankSVC(bound="convex").fit(X, y).score(X, bad(y))


def test_bad_targets_of_labels_and_lists():
    X, Y = multilabel()
    with pytest.raises(ValueError, match=r"y has shape \(60, 2\), but \(60, 3\) fits"):
        RankSVC(bound="convex").fit(X, Y).score(X, Y[:, :2])
    X, y, qid = graded()
    ranker = SVMRanker("rbp", bound="convex").fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="y has 5 entries, but X has 48 rows"):
        ranker.score(X, y[:5], qid=qid)
    for wrong in (-1.0, np.nan):
        with pytest.raises(ValueError, match=r"y\[0\] is .*: relevance must be finite and not negative"):
            ranker.score(X, np.append(wrong, y[1:]), qid=qid)


def test_classes_that_the_test_data_lack_or_add():
    X, y = multiclass()
    model = RankSVC(bound="convex").fit(X[y < 2], y[y < 2])
    assert np.isfinite(model.score(X, y))
