"""Metrics of the first places: equal to other libraries, to all orders of ties, and to the losses."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from rankhinge import metrics, ranking_loss
from rankhinge.losses import get_loss
from rankhinge.metrics import make_query_scorer, per_query

NAMES = ["ap@3", "ndcg@3", "precision@3", "recall@3", "f1@3", "hit@2", "r-precision", "recall@25%", "ndcg@40%"]
MORE = ["partial-auc@0.3", "top-push", "bedroc@20"]


def random_lists(seed, n_lists=30, ties=False):
    rng = np.random.default_rng(seed)
    for _ in range(n_lists):
        n = int(rng.integers(2, 8))
        relevant = rng.permutation(np.arange(n) < rng.integers(1, n))
        scores = rng.integers(0, 3, n) if ties else rng.permutation(n)
        yield relevant.astype(int), scores.astype(float)


@pytest.mark.parametrize("name", [*NAMES, *MORE, "p-norm-push@3"])
def test_a_loss_is_what_its_metric_lacks(name):
    """``Δ = metric of the perfect ranking − metric``, two codes."""
    loss = get_loss(name)
    for relevant, scores in random_lists(0):
        qid = np.zeros(scores.size)
        value, best = (float(per_query(loss.metric, relevant, s, qid)[1][0]) for s in (scores, relevant + scores / 100))
        assert best - value == pytest.approx(ranking_loss(scores, relevant, loss), abs=1e-13)


@pytest.mark.parametrize("name", [*NAMES, *MORE])
def test_ties_are_averaged_over_all_orders(name):
    for relevant, scores in random_lists(1, 12, ties=True):
        qid, orders = np.zeros(scores.size), []
        for order in itertools.permutations(range(scores.size)):
            order = np.array(order)
            if (np.diff(scores[order]) <= 0).all():
                broken = np.empty(scores.size)
                broken[order] = -np.arange(scores.size)
                orders.append(float(per_query(name, relevant, broken, qid)[1][0]))
        assert float(per_query(name, relevant, scores, qid)[1][0]) == pytest.approx(np.mean(orders), abs=1e-12)
        for ties, extreme in (("worst", min), ("best", max)):
            found = float(per_query(name, relevant, scores, qid, ties=ties)[1][0])
            assert found == pytest.approx(extreme(orders), abs=1e-12)


def test_equal_to_ir_measures():
    """Scores that are equal in float32 are ties to ir-measures: these are whole numbers."""
    ir_measures = pytest.importorskip("ir_measures")
    measures = {
        "precision@3": ir_measures.P @ 3,
        "recall@3": ir_measures.R @ 3,
        "ndcg@3": ir_measures.nDCG @ 3,
        "hit@2": ir_measures.Success @ 2,
        "r-precision": ir_measures.Rprec,
    }
    qrels, run, rows = [], [], []
    for number, (relevant, scores) in enumerate(random_lists(2)):
        for place, (label, score) in enumerate(zip(relevant, scores, strict=True)):
            qrels.append(ir_measures.Qrel(str(number), f"d{place}", int(label)))
            run.append(ir_measures.ScoredDoc(str(number), f"d{place}", float(score)))
            rows.append((number, label, score))
    qid, labels, scores = (np.array(column) for column in zip(*rows, strict=True))
    for name, measure in measures.items():
        expected = ir_measures.calc_aggregate([measure], qrels, run)[measure]
        assert per_query(name, labels, scores, qid)[1].mean() == pytest.approx(expected, abs=1e-12)
    # AP@k by trec_eval divides by the number of positives.
    expected = ir_measures.calc_aggregate([ir_measures.AP @ 3], qrels, run)[ir_measures.AP @ 3]
    found = metrics.average_precision(labels, scores, qid=qid, k=3, divide_by="positives")
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("max_fpr", [0.05, 0.3, 0.5, 0.99])
def test_partial_auc_is_scikit_learns_before_its_rescaling(max_fpr):
    rng = np.random.default_rng(3)
    relevant, scores = rng.random(200) < 0.2, rng.normal(size=200)
    area = max_fpr * metrics.partial_auc(relevant, scores, max_fpr=max_fpr)
    least = max_fpr**2 / 2
    rescaled = (1 + (area - least) / (max_fpr - least)) / 2
    assert rescaled == pytest.approx(roc_auc_score(relevant, scores, max_fpr=max_fpr), abs=1e-12)


def test_bedroc_is_rdkits():
    """RIE, and BEDROC from it, as RDKit's ML.Scoring writes them."""
    for relevant, scores in random_lists(4):
        n, actives, alpha = scores.size, int(relevant.sum()), 20.0
        ranks = np.flatnonzero(relevant[np.argsort(-scores)]) + 1
        total = math.fsum(math.exp(-alpha * rank / n) for rank in ranks)
        ratio = actives / n
        rie = total / (ratio * (1 - math.exp(-alpha)) / (math.exp(alpha / n) - 1))
        most = (1 - math.exp(-alpha * ratio)) / (ratio * (1 - math.exp(-alpha)))
        least = (1 - math.exp(alpha * ratio)) / (ratio * (1 - math.exp(alpha)))
        assert metrics.bedroc(relevant, scores) == pytest.approx((rie - least) / (most - least), abs=1e-12)


def test_lists_without_positives_or_negatives():
    assert metrics.recall_at_k([0, 0], [1.0, 2.0], k=1, no_positives="zero") == 0.0
    assert math.isnan(metrics.r_precision([0, 0], [1.0, 2.0], no_positives="nan"))
    for metric in (metrics.partial_auc, metrics.bedroc, metrics.top_push, metrics.p_norm_push):
        assert math.isnan(metric([1, 1], [1.0, 2.0], no_positives="nan"))
    assert metrics.precision_at_k([1], [1.0], k=5) == 0.2


@pytest.mark.parametrize("name", [*NAMES, *MORE])
def test_scorers(name):
    assert make_query_scorer(name).measure([1, 0, 0], [3.0, 2.0, 1.0], qid=[0, 0, 0]) > 0


@pytest.mark.parametrize("k", [0, -1, 1.5, "x%", "0%", True])
def test_wrong_depths(k):
    with pytest.raises(ValueError, match="it must be an integer of at least 1, or a share"):
        metrics.recall_at_k([1, 0], [1.0, 0.0], k=k)
