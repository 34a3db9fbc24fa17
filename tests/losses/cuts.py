"""Losses with a cut by the book, for the comparison with brute force: by the ranks of the positives."""

from __future__ import annotations

import math

from rankhinge import losses
from tests.brute_force import Loss

CLASSES = {
    "precision": losses.PrecisionAt,
    "recall": losses.RecallAt,
    "f1": losses.F1At,
    "hit": losses.HitAt,
    "ndcg": losses.NDCGAt,
    "ap": losses.APAt,
}
ORDERED = ("ndcg", "ap", "dcg")


def _log(rank):
    return 1 / math.log2(1 + rank)


def reciprocal(rank):
    return 1.0 / rank


def _metric(kind, top, k, n_positives):
    """The metric, not normalised, of a ranking with positives at the ranks `top`, all up to k."""
    if kind == "precision":
        return len(top) / k
    if kind in ("recall", "r-precision"):
        return len(top) / n_positives
    if kind == "f1":
        return 2 * len(top) / (k + n_positives)
    if kind == "hit":
        return float(len(top) > 0)
    if kind == "ap":
        return math.fsum(i / rank for i, rank in enumerate(top, 1)) / min(k, n_positives)
    return math.fsum((_log if kind == "ndcg" else reciprocal)(rank) for rank in top)


def judge(kind: str, k: int | None) -> Loss:
    """``Δ = metric of the perfect ranking − metric``; k None: as many places as there are positives."""

    def of_ranks(positive_ranks, n_negatives):
        n_positives = len(positive_ranks)
        depth = min(k or n_positives, n_positives + n_negatives)
        best = _metric(kind, list(range(1, min(depth, n_positives) + 1)), depth, n_positives)
        reached = _metric(kind, [int(rank) for rank in positive_ranks if rank <= depth], depth, n_positives)
        return 1 - reached / best if kind in ("ndcg", "dcg") else best - reached

    return Loss(of_ranks, None)


def make(kind: str, k: int | None) -> losses.RankingLoss:
    """The library's loss."""
    if kind == "r-precision":
        return losses.RPrecision()
    return losses.DCGAt(reciprocal, k) if kind == "dcg" else CLASSES[kind](k)


ALL = [*CLASSES, "dcg", "r-precision"]
