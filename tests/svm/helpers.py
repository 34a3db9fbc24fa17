"""Small data, the objective by hand, and its minimum by a convex solver over all rankings of every list."""

from __future__ import annotations

import itertools
import math

import numpy as np

from rankhinge import structured_hinge
from tests import brute_force
from tests.convex_judge import quadratic_minimum

LOSSES = {"ap": brute_force.AP, "ndcg": brute_force.NDCG, "rr": brute_force.RR, "auc": brute_force.AUC}


def binary(n=60, d=4, seed=0, noise=1.0):
    """Features and labels 0/1, a third of them 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    strength = X[:, 0] - 0.5 * X[:, -1] + noise * rng.normal(size=n)
    return X, (strength > np.quantile(strength, 2 / 3)).astype(int)


def multiclass(n=90, d=4, seed=0, n_classes=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.argmax(X[:, :n_classes] + 0.7 * rng.normal(size=(n, n_classes)), axis=1)


def multilabel(n=60, d=4, seed=0, n_labels=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X[:, :n_labels] + 0.7 * rng.normal(size=(n, n_labels)) > 0.5).astype(int)


def graded(n_queries=6, size=8, d=3, seed=0, n_grades=3):
    """Features, labels 0 … n_grades - 1 and query numbers; every list has two labels or more."""
    rng = np.random.default_rng(seed)
    n = n_queries * size
    X = rng.normal(size=(n, d))
    y = np.clip(np.round(X[:, 0] + 0.7 * rng.normal(size=n) + 0.5), 0, n_grades - 1).astype(int)
    qid = np.repeat(np.arange(n_queries), size)
    y[::size], y[1::size] = 0, n_grades - 1
    order = rng.permutation(n)
    return X[order], y[order], qid[order]


def level_weights(labels, gains):
    """``(level, ω)`` of one list by the book, for gains of the labels 0, 1, …"""
    discount = [1 / math.log2(2 + place) for place in range(len(labels))]
    ideal = math.fsum(gains[y] * w for y, w in zip(sorted(labels, reverse=True), discount))
    levels = []
    for level in range(1, max(labels) + 1):
        reached = sum(y >= level for y in labels)
        levels.append((level, (gains[level] - gains[level - 1]) * math.fsum(discount[:reached]) / ideal))
    return levels


def hinge_of_grades(scores, labels, qid, gains, query_weight=None):
    """The weighted mean over queries of ``Σ ω_ℓ J_ℓ`` for NDCG, term by term; queries of one label do not count."""
    total = weights = 0.0
    for query in np.unique(qid):
        mine = qid == query
        y = labels[mine].tolist()
        if len(set(y)) == 1:
            continue
        weight = 1.0 if query_weight is None else query_weight[query]
        weights += weight
        for level, omega in level_weights(y, gains):
            relevant = labels[mine] >= level
            if not relevant.all():
                total += weight * omega * structured_hinge(scores[mine], relevant, "ndcg")
    return total / weights


def all_planes(X, relevant, loss):
    """Offsets and slopes of the planes of every order of one list: ``J(Xw) = max offsets + slopes @ w``."""
    positives, negatives = np.flatnonzero(relevant), np.flatnonzero(~relevant)
    rows = set()
    for pattern in brute_force.patterns(positives.size, negatives.size):
        delta = loss.of_ranks(brute_force.positive_ranks(pattern), negatives.size)
        for up, down in itertools.product(itertools.permutations(positives), itertools.permutations(negatives)):
            order = np.empty(relevant.size, int)
            order[np.array(pattern)], order[~np.array(pattern)] = up, down
            rows.add((delta, *brute_force.coefficients_of_order(relevant, order)))
    table = np.array(sorted(rows))
    return table[:, 0], table[:, 1:] @ X


def optimum(blocks, C):
    """``min ½‖w‖² + C Σ weight · max(offsets + slopes @ w)`` over blocks of weight, offsets, slopes.

    In epigraph form, one more variable for each block.
    """
    d, m = blocks[0][2].shape[1], len(blocks)
    weights = np.array([weight for weight, _, _ in blocks])
    offsets = np.concatenate([offset for _, offset, _ in blocks])
    columns = np.repeat(np.eye(m), [offset.size for _, offset, _ in blocks], axis=0)
    lines = np.hstack([-np.concatenate([slope for _, _, slope in blocks]), columns])
    diagonal = np.concatenate([np.ones(d), np.zeros(m)])
    return quadratic_minimum(diagonal, np.concatenate([np.zeros(d), C * weights]), lines, offsets)
