"""J, T and Δ by their definitions, in extended precision: the judge's part that knows losses.

Every Δ here is a sum over the positives, best first, of what positive i loses with ``a_i`` negatives above it
(`parts`). Where that grows by less and less, from rank to rank, each negative finds its best place for itself
(`hinge`); losses with a cut need a dynamic program over the positives (`hinge_of_parts`), which serves all.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

WIDE = np.longdouble
RBP_PERSISTENCE = 0.9


def named(loss: str) -> tuple[str, float | None]:
    """A loss's kind and its number: places or share for those with a cut, else its parameter."""
    kind, _, number = loss.partition("@")
    if not number:
        return kind, None
    return kind, float(number[:-1]) / 100 if number.endswith("%") else float(number)


def depth_of(loss: str, n_positives: int, n: int) -> int | None:
    """How many of n places count; None: all."""
    kind, number = named(loss)
    if kind == "r-precision":
        return n_positives
    if kind not in ("ndcg", "ap", "precision", "recall", "f1", "hit") or number is None:
        return None
    if loss.endswith("%"):
        return max(1, math.ceil(number * n * (1 - 4e-16)))
    return min(int(number), n)


def discounts(loss: str, n: int) -> np.ndarray:
    """D by rank, of losses of the DCG family."""
    ranks = np.arange(1, n + 1, dtype=WIDE)
    kind, number = named(loss)
    if kind == "bedroc":
        assert number is not None
        return np.exp(-WIDE(number) * ranks / n)
    return 1 / np.log2(1 + ranks) if kind == "ndcg" else WIDE(RBP_PERSISTENCE) ** (ranks - 1)


def ideal(loss: str, n_positives: int, n: int) -> Any:
    """The best DCG."""
    depth = depth_of(loss, n_positives, n)
    return discounts(loss, n)[: n_positives if depth is None else min(n_positives, depth)].sum()


@lru_cache(maxsize=16)
def parts(loss: str, n_positives: int, n_negatives: int) -> np.ndarray:
    """Entry (i, a): what positive i + 1 adds to Δ with a negatives above it."""
    P, N, n = WIDE(n_positives), WIDE(n_negatives), n_positives + n_negatives
    i = np.arange(1, n_positives + 1, dtype=WIDE)[:, None]
    a = np.arange(n_negatives + 1, dtype=WIDE)[None, :]
    (kind, number), depth = named(loss), depth_of(loss, n_positives, n)
    if depth is not None:
        return _parts_of_cut(kind, loss, depth, n_positives, n_negatives)
    if kind == "ap":
        return a / (i + a) / P
    if kind == "rr":
        return a / (1 + a) * (i == 1)
    if kind == "auc":
        return a * np.ones_like(i) / (P * N)
    if kind == "partial-auc":
        assert number is not None
        return np.minimum(a, WIDE(number) * N) * np.ones_like(i) / (P * WIDE(number) * N)
    if kind == "top-push":
        return (a > 0) * np.ones_like(i) / P
    if kind == "p-norm-push":
        assert number is not None
        return a * (((P + 1 - i) / P) ** WIDE(number) - ((P - i) / P) ** WIDE(number)) / N
    D = discounts(loss, n)
    above = np.arange(n_positives)[:, None] + np.arange(n_negatives + 1)
    worst = D[n_negatives:].sum() if kind == "bedroc" else 0
    return (D[:n_positives, None] - D[above]) / (D[:n_positives].sum() - worst)


def _parts_of_cut(kind: str, loss: str, depth: int, n_positives: int, n_negatives: int) -> np.ndarray:
    """As `parts`, where the first places count only: the metric of the best ranking less that of this one."""
    i = np.arange(1, n_positives + 1, dtype=WIDE)[:, None]
    rank = i + np.arange(n_negatives + 1, dtype=WIDE)[None, :]
    inside, could_be = (rank <= depth).astype(WIDE), (i <= depth).astype(WIDE)
    most = min(depth, n_positives)
    if kind == "ndcg":
        D = 1 / np.log2(1 + rank)
        return (could_be / np.log2(1 + i) - inside * D) / ideal(loss, n_positives, n_positives + n_negatives)
    if kind == "ap":
        return (could_be - inside * i / rank) / most
    if kind == "hit":
        return (i == 1) * (1 - inside)
    divisor = {"precision": depth, "recall": n_positives, "r-precision": n_positives}
    return (could_be - inside) / WIDE(divisor.get(kind, (depth + n_positives) / 2))


@lru_cache(maxsize=16)
def inverted_pairs(loss: str, n_positives: int, n_negatives: int, dtype: Any = WIDE) -> np.ndarray:
    """Entry (i, j): by how much Δ grows when positive i has j + 1 instead of j negatives above it; both from 0."""
    return np.diff(parts(loss, n_positives, n_negatives), axis=1).astype(dtype)


def hinge_of_parts(scores: np.ndarray, relevant: np.ndarray, loss: str) -> tuple[Any, np.ndarray]:
    """As `hinge`, for every Δ that has `parts`: the best ``a_1 ≤ a_2 ≤ …`` by a dynamic program."""
    positives, negatives = np.flatnonzero(relevant), np.flatnonzero(~relevant)
    positives = positives[np.argsort(-scores[positives], kind="stable")]
    negatives = negatives[np.argsort(-scores[negatives], kind="stable")]
    pair = scores.dtype.type(2) / (positives.size * negatives.size)
    above = np.concatenate([[0], np.cumsum(scores[negatives])]).astype(scores.dtype)
    counts = np.arange(negatives.size + 1)
    gains = parts(loss, positives.size, negatives.size).astype(scores.dtype)
    gains = gains + pair * (above[None, :] - counts * scores[positives][:, None])
    best, tables = np.zeros(counts.size, scores.dtype), []
    for gain in gains:
        best = np.maximum.accumulate(best) + gain
        tables.append(best)
    u, a, value = np.zeros_like(scores), counts.size - 1, tables[-1].max()
    for sample, table in zip(positives[::-1], tables[::-1], strict=True):
        a = int(np.argmax(table[: a + 1]))
        u[sample] = -pair * a
        u[negatives[:a]] += pair
    return value, u


def hinge(scores: np.ndarray, relevant: np.ndarray, loss: str, weight: float = 1.0) -> tuple[Any, np.ndarray]:
    """J and a subgradient, in the precision of the scores; each negative finds its best rank for itself.

    `weight` is that of the positives in the zero-one loss's hinge.
    """
    if loss == "zero-one":
        signed, weights = np.where(relevant, scores, -scores), np.where(relevant, scores.dtype.type(weight), 1)
        inside = weights * (signed < 1)
        return (inside * (1 - signed)).mean(), inside * np.where(relevant, -1, 1) / scores.size
    positives, negatives = np.flatnonzero(relevant), np.flatnonzero(~relevant)
    if positives.size == 0 or negatives.size == 0:
        return scores.dtype.type(0), np.zeros_like(scores)
    if depth_of(loss, positives.size, scores.size) is not None:
        return hinge_of_parts(scores, relevant, loss)
    positives = positives[np.argsort(-scores[positives], kind="stable")]
    negatives = negatives[np.argsort(-scores[negatives], kind="stable")]
    pair = scores.dtype.type(2) / (positives.size * negatives.size)
    gains = pair * (scores[negatives][None, :] - scores[positives][:, None])
    gains += inverted_pairs(loss, positives.size, negatives.size, scores.dtype.type)
    # Row r: what each negative gains from standing above the positives r, r + 1, …; the last row is 0.
    above = np.zeros((positives.size + 1, negatives.size), scores.dtype)
    above[:-1] = np.cumsum(gains[::-1], axis=0)[::-1]
    first_below = np.argmax(above, axis=0)
    u = np.zeros_like(scores)
    u[negatives] = pair * (positives.size - first_below)
    u[positives] = -pair * np.cumsum(np.bincount(first_below, minlength=positives.size + 1))[:-1]
    return above.max(axis=0).sum(), u


def reference(scores: np.ndarray, relevant: np.ndarray) -> Any:
    """H: the score of the ranking by the scores themselves."""
    positives, negatives = scores[relevant], scores[~relevant]
    if positives.size == 0 or negatives.size == 0:
        return scores.dtype.type(0)
    excess = np.maximum(negatives[None, :] - positives[:, None], 0)
    return 2 * excess.sum() / (positives.size * negatives.size)
