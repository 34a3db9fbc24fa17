"""Small problems: the objective is that of an independent convex solver over all rankings."""

from __future__ import annotations

import numpy as np
import pytest

from rankhinge import RankSVC, SVMRanker
from tests.svm.helpers import LOSSES, all_planes, level_weights, optimum

CLOSE = {"rel": 1e-6, "abs": 1e-9}


def small(n_positives, n_negatives, d, seed):
    rng = np.random.default_rng(seed)
    relevant = rng.permutation(np.arange(n_positives + n_negatives) < n_positives)
    return rng.normal(size=(relevant.size, d)), relevant


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("shape", "C"), [((2, 3, 2), 0.5), ((3, 3, 3), 5.0), ((1, 4, 3), 200.0)])
def test_one_list(loss, shape, C):
    X, relevant = small(*shape, seed=len(loss))
    model = RankSVC(loss=loss, C=C, tol=1e-8, bound="convex").fit(X, relevant)
    expected = optimum([(1.0, *all_planes(X, relevant, LOSSES[loss]))], C)
    assert model.objective_ == pytest.approx(expected, **CLOSE)
    assert model.dual_objective_ <= expected * (1 + 1e-9) + 1e-12


def test_three_positives_four_negatives():
    X, relevant = small(3, 4, 2, seed=1)
    model = RankSVC(C=3.0, tol=1e-8, bound="convex").fit(X, relevant)
    assert model.objective_ == pytest.approx(optimum([(1.0, *all_planes(X, relevant, LOSSES["ap"]))], 3.0), **CLOSE)


@pytest.mark.parametrize("loss", LOSSES)
def test_several_lists(loss):
    lists = [small(*shape, seed=7 * k) for k, shape in enumerate([(1, 2, 2), (2, 2, 2), (2, 3, 2)])]
    X, y = np.concatenate([X for X, _ in lists]), np.concatenate([relevant for _, relevant in lists]).astype(int)
    qid = np.repeat([0, 1, 2], [relevant.size for _, relevant in lists])
    model = SVMRanker(loss=loss, C=4.0, tol=1e-8, bound="convex").fit(X, y, qid=qid)
    blocks = [(1 / 3, *all_planes(*part, LOSSES[loss])) for part in lists]
    assert model.objective_ == pytest.approx(optimum(blocks, 4.0), **CLOSE)


LABELS = [[0, 1, 2, 0], [2, 0, 0, 1, 1], [1, 1, 2, 2]]


@pytest.mark.parametrize(("gains", "table"), [("exponential", [0, 1, 3]), ("linear", [0, 1, 2]), ([0, 2, 2.5],) * 2])
def test_graded_labels(gains, table):
    """The last list has no 0: its first level has no negative, its hinge is 0 and its weight stays."""
    y = np.concatenate(LABELS)
    qid = np.repeat(["a", "b", "c"], [len(labels) for labels in LABELS])
    X = np.random.default_rng(3).normal(size=(y.size, 3))
    model = SVMRanker(C=10.0, gains=gains, tol=1e-8, bound="convex").fit(X, y, qid=qid)
    blocks = []
    for query, labels in zip("abc", LABELS):
        for level, omega in level_weights(labels, table):
            relevant = np.array(labels) >= level
            if not relevant.all():
                blocks.append((omega / 3, *all_planes(X[qid == query], relevant, LOSSES["ndcg"])))
    assert model.objective_ == pytest.approx(optimum(blocks, 10.0), **CLOSE)


@pytest.mark.parametrize(("chosen", "shares"), [("uniform", [1, 1]), ([3.0, 1.0], [3, 1])])
def test_graded_labels_of_other_losses(chosen, shares):
    labels = np.array([0, 1, 2, 0, 1])
    X = np.random.default_rng(4).normal(size=(5, 2))
    model = SVMRanker(loss="ap", C=5.0, level_weights=chosen, tol=1e-8, bound="convex").fit(X, labels)
    blocks = [
        (share / sum(shares), *all_planes(X, labels >= level, LOSSES["ap"])) for level, share in zip((1, 2), shares)
    ]
    assert model.objective_ == pytest.approx(optimum(blocks, 5.0), **CLOSE)


def test_query_weights():
    lists = [small(2, 2, 2, seed=k) for k in range(2)]
    X, y = np.concatenate([X for X, _ in lists]), np.concatenate([relevant for _, relevant in lists]).astype(int)
    model = SVMRanker(loss="ap", C=6.0, tol=1e-8, bound="convex").fit(
        X, y, qid=[0] * 4 + [1] * 4, query_weight={0: 3.0, 1: 1.0}
    )
    blocks = [(share, *all_planes(*part, LOSSES["ap"])) for share, part in zip((0.75, 0.25), lists)]
    assert model.objective_ == pytest.approx(optimum(blocks, 6.0), **CLOSE)


def test_zero_one_is_the_mean_hinge():
    """The planes of the sum of hinges: each sample inside its margin or not."""
    X, relevant = small(3, 4, 2, seed=5)
    y = np.where(relevant, 1.0, -1.0)
    blocks = [(1 / y.size, np.array([0.0, 1.0]), np.array([np.zeros(2), -sign * x])) for sign, x in zip(y, X)]
    model = RankSVC(loss="zero-one", C=5.0, tol=1e-8, bound="convex").fit(X, relevant)
    assert model.objective_ == pytest.approx(optimum(blocks, 5.0), **CLOSE)
