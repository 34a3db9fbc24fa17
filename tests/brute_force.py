"""The judge: every ± pattern of a small list is tried. Slow, obvious, and sharing no code with the library.

A list has positives ``p_1 ≥ … ≥ p_P`` and negatives ``n_1 ≥ … ≥ n_N``. Only pairs in which a negative stands above
a positive enter the score of a ranking R, so the structured hinge is

    J(s) = max over patterns R of  Δ(R) + 2 / (P N) · Σ over pairs out of order (n_j − p_i).

Differences of scores make the sum exact whatever the scores' offset. A loss is given twice, both by the book:
by the ranks of the positives, and by the part that a positive with `a` negatives above it adds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np


class Loss(NamedTuple):
    """A loss by the book.

    ``of_ranks(positive_ranks, n_negatives)`` takes the ranks of the positives among all samples, ascending, from 1.
    ``part(i, a, n_positives, n_negatives)`` is the i-th positive's part with a negatives above it:
    ``Δ = Σ_i part(i, a_i, P, N)``.
    """

    of_ranks: Callable[[Sequence[int], int], float]
    part: Callable[[int, int, int, int], float]


def _ap_of_ranks(positive_ranks, n_negatives):
    precisions = [i / rank for i, rank in enumerate(positive_ranks, 1)]
    return 1 - math.fsum(precisions) / len(precisions)


def _rr_of_ranks(positive_ranks, n_negatives):
    return 1 - 1 / positive_ranks[0]


def _auc_of_ranks(positive_ranks, n_negatives):
    wrong_pairs = sum(int(rank) - i for i, rank in enumerate(positive_ranks, 1))
    return wrong_pairs / (len(positive_ranks) * n_negatives)


def dcg(discount: Callable[[int], float]) -> Loss:
    """``Δ = 1 − DCG / ideal DCG``, a positive at rank r being worth ``discount(r)``."""

    def of_ranks(positive_ranks, n_negatives):
        ideal = math.fsum(discount(i) for i in range(1, len(positive_ranks) + 1))
        return 1 - math.fsum(discount(int(rank)) for rank in positive_ranks) / ideal

    def part(i, a, n_positives, n_negatives):
        ideal = math.fsum(discount(k) for k in range(1, n_positives + 1))
        return (discount(i) - discount(i + a)) / ideal

    return Loss(of_ranks, part)


def by_steps(step: Callable[[int, int, int, int], float]) -> Loss:
    """``Δ = −Σ step(j, i)`` over the pairs in which the j-th negative stands above the i-th positive.

    `step` must take an array of j.
    """

    def part(i, a, n_positives, n_negatives):
        return -float(np.sum(step(np.arange(1, a + 1), i, n_positives, n_negatives)))

    def of_ranks(positive_ranks, n_negatives):
        n_positives = len(positive_ranks)
        return math.fsum(part(i, int(rank) - i, n_positives, n_negatives) for i, rank in enumerate(positive_ranks, 1))

    return Loss(of_ranks, part)


AP = Loss(_ap_of_ranks, lambda i, a, n_positives, n_negatives: (1 - i / (i + a)) / n_positives)
RR = Loss(_rr_of_ranks, lambda i, a, n_positives, n_negatives: (1 - 1 / (1 + a)) * (i == 1))
AUC = Loss(_auc_of_ranks, lambda i, a, n_positives, n_negatives: a / (n_positives * n_negatives))
NDCG = dcg(lambda rank: 1 / math.log2(1 + rank))
RBP = dcg(lambda rank: 0.9 ** (rank - 1))


def soft_ndcg(k: int) -> Loss:
    return dcg(lambda rank: max(1 / math.log2(1 + rank) - 1 / math.log2(k + 2), 0.0))


def partial_auc(max_fpr: float) -> Loss:
    """Only the ``max_fpr N`` best negatives count, the last of them in part."""

    def part(i, a, n_positives, n_negatives):
        return min(a, max_fpr * n_negatives) / (n_positives * max_fpr * n_negatives)

    return Loss(_by_parts(part), part)


def p_norm_push(p: float) -> Loss:
    """The mean over the negatives of ``(positives below / P)^p``."""

    def of_ranks(positive_ranks, n_negatives):
        n = len(positive_ranks) + n_negatives
        negatives = sorted(set(range(1, n + 1)) - {int(rank) for rank in positive_ranks})
        below = [sum(int(rank) > place for rank in positive_ranks) for place in negatives]
        return math.fsum((b / len(positive_ranks)) ** p for b in below) / n_negatives

    def part(i, a, n_positives, n_negatives):
        here, after = ((n_positives + 1 - i) / n_positives) ** p, ((n_positives - i) / n_positives) ** p
        return a * (here - after) / n_negatives

    return Loss(of_ranks, part)


def bedroc(alpha: float) -> Loss:
    """``exp(−α rank / n)``, scaled to 0 for the best order and 1 for the worst."""

    def weights(n):
        return [math.exp(-alpha * rank / n) for rank in range(1, n + 1)]

    def scale(n_positives, n_negatives):
        of_rank = weights(n_positives + n_negatives)
        return math.fsum(of_rank[:n_positives]) - math.fsum(of_rank[n_negatives:])

    def part(i, a, n_positives, n_negatives):
        of_rank = weights(n_positives + n_negatives)
        return (of_rank[i - 1] - of_rank[i + a - 1]) / scale(n_positives, n_negatives)

    return Loss(_by_parts(part), part)


def _by_parts(part):
    def of_ranks(positive_ranks, n_negatives):
        n_positives = len(positive_ranks)
        return math.fsum(part(i, int(rank) - i, n_positives, n_negatives) for i, rank in enumerate(positive_ranks, 1))

    return of_ranks


def _top_push_part(i, a, n_positives, n_negatives):
    return (a > 0) / n_positives


TOP_PUSH = Loss(_by_parts(_top_push_part), _top_push_part)


def patterns(n_positives: int, n_negatives: int) -> list[tuple[bool, ...]]:
    """All ± patterns, best rank first; True is a positive."""
    n = n_positives + n_negatives
    return [tuple(place in chosen for place in range(n)) for chosen in itertools.combinations(range(n), n_positives)]


def positive_ranks(pattern: Sequence[bool]) -> list[int]:
    return [rank for rank, positive in enumerate(pattern, 1) if positive]


def out_of_order(pattern: Sequence[bool]) -> np.ndarray:
    """Entry (i, j) is 1 where the j-th negative stands above the i-th positive; both from 0."""
    n_positives, n_negatives = sum(pattern), len(pattern) - sum(pattern)
    pairs = np.zeros((n_positives, n_negatives))
    i = j = 0
    for positive in pattern:
        if positive:
            pairs[i, :j] = 1
            i += 1
        else:
            j += 1
    return pairs


@cache
def _pairs(n_positives: int, n_negatives: int) -> np.ndarray:
    return np.array([out_of_order(p).ravel() for p in patterns(n_positives, n_negatives)])


@cache
def _losses(loss: Loss, n_positives: int, n_negatives: int) -> np.ndarray:
    return np.array([loss.of_ranks(positive_ranks(p), n_negatives) for p in patterns(n_positives, n_negatives)])


def hinges(positives: np.ndarray, negatives: np.ndarray, loss: Loss) -> np.ndarray:
    """J of many lists of one size: `positives` (cases, P), `negatives` (cases, N), in any order."""
    p = np.sort(np.asarray(positives, np.float64), axis=1)[:, ::-1]
    n = np.sort(np.asarray(negatives, np.float64), axis=1)[:, ::-1]
    n_positives, n_negatives = p.shape[1], n.shape[1]
    gaps = (n[:, None, :] - p[:, :, None]).reshape(len(p), -1)
    scores = gaps @ _pairs(n_positives, n_negatives).T * (2 / (n_positives * n_negatives))
    return (scores + _losses(loss, n_positives, n_negatives)).max(axis=1)


def hinge(scores, relevant, loss: Loss) -> float:
    """J of one list."""
    scores, relevant = np.asarray(scores, np.float64), np.asarray(relevant, bool)
    return float(hinges(scores[relevant][None], scores[~relevant][None], loss)[0])


def hinge_of_all_orders(scores, relevant, loss: Loss) -> float:
    """J by trying every permutation of the samples, with u as it is defined: the judge's own judge."""
    scores, relevant = np.asarray(scores, np.float64), np.asarray(relevant, bool)
    return max(value_of_order(scores, relevant, order, loss)[0] for order in _orders(len(scores)))


@cache
def _orders(n: int) -> list[np.ndarray]:
    return [np.array(order) for order in itertools.permutations(range(n))]


def counts(ranked_relevance: np.ndarray) -> np.ndarray:
    """For each place of a ranking: negatives above a positive, positives below a negative."""
    relevant = np.asarray(ranked_relevance, bool)
    negatives_above = np.cumsum(~relevant)
    positives_below = relevant.sum() - np.cumsum(relevant)
    return np.where(relevant, negatives_above, positives_below)


def coefficients_of_order(relevant, order) -> np.ndarray:
    """``u = −2 a_i / (P N)`` for positives, ``2 b_j / (P N)`` for negatives, aligned with `relevant`."""
    relevant = np.asarray(relevant, bool)
    ranked = relevant[order]
    n_positives = int(relevant.sum())
    u = np.empty(relevant.size)
    sign = np.where(ranked, -2.0, 2.0)
    u[order] = sign * counts(ranked) / (n_positives * (relevant.size - n_positives))
    return u


def value_of_order(scores, relevant, order, loss: Loss) -> tuple[float, float]:
    """``Δ(R) + u(R)·s`` and ``Δ(R)`` of one ranking, summed without rounding: serves lists of any length."""
    scores, relevant = np.asarray(scores, np.float64), np.asarray(relevant, bool)
    order = np.asarray(order)
    ranked = relevant[order]
    weights = np.where(ranked, -counts(ranked), counts(ranked))
    used = np.flatnonzero(weights)
    weights, ranked_scores = weights[used], scores[order][used]
    # In halves of 26 bits, so that the products with counts below 2^26 are exact.
    high = _upper_half(ranked_scores)
    total = math.fsum(itertools.chain(weights * high, weights * (ranked_scores - high)))
    n_positives = int(relevant.sum())
    delta = loss.of_ranks(np.flatnonzero(ranked) + 1, relevant.size - n_positives)
    return delta + 2 * total / n_positives / (relevant.size - n_positives), delta


def _upper_half(values: np.ndarray) -> np.ndarray:
    """The values with the lower 27 bits of their fractions cleared."""
    return (values.view(np.int64) & ~np.int64((1 << 27) - 1)).view(np.float64)


def best_ranks(scores, relevant, loss: Loss) -> tuple[np.ndarray, np.ndarray]:
    """Each negative's best rank and value, chosen for itself: ``opt_j``, the largest maximiser of f_j, and f_j(opt_j).

    For a suitable loss the ranks ascend with j and the values add up to J.
    """
    scores, relevant = np.asarray(scores, np.float64), np.asarray(relevant, bool)
    p = np.sort(scores[relevant])[::-1]
    n = np.sort(scores[~relevant])[::-1]
    n_positives, n_negatives = p.size, n.size
    counts_above = range(n_negatives + 1)
    parts = np.array(
        [[loss.part(i, a, n_positives, n_negatives) for a in counts_above] for i in range(1, n_positives + 1)]
    )
    gains = 2 * (n[None, :] - p[:, None]) / (n_positives * n_negatives) + np.diff(parts, axis=1)
    # f_j(i) is what negative j gains from standing above the positives i … P.
    values = np.zeros((n_positives + 1, n_negatives))
    values[:-1] = np.cumsum(gains[::-1], axis=0)[::-1]
    ranks = n_positives + 1 - np.argmax(values[::-1], axis=0)
    return ranks, values.max(axis=0)
