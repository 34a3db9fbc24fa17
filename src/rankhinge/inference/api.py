"""The doors of this room: one list, its value alone, and many lists."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankhinge import _threads
from rankhinge._validation import check_offsets, check_relevant, check_scores, describe_bad_score
from rankhinge.inference.callbacks import CompiledLoss, compile_loss
from rankhinge.inference.finish import loss_of_counts
from rankhinge.inference.long_list import (
    LONG,
    BadScore,
    equal_shares,
    infer_long,
    on_stretches,
    raise_if_bad,
    stretches,
)
from rankhinge.inference.methods import AP_ONLY, METHODS, infer_by
from rankhinge.inference.passes import CHUNK, first_bad
from rankhinge.inference.ranking import MostViolatingRanking, MostViolatingRankings
from rankhinge.inference.whole import BAD_SCORE, NO_NEGATIVE, NO_POSITIVE, SETTLED, infer, infer_lists
from rankhinge.inference.zero_one import hinge
from rankhinge.losses import RankingLoss, get_loss

__all__ = ["most_violating_ranking", "most_violating_rankings", "ranking_loss", "structured_hinge"]

# What the loss of a user's own may lie outside of [0, 1].
_ROUNDING = 1e-6
_COMPLAINTS = {
    NO_POSITIVE: "no sample is relevant: a ranking needs at least one positive",
    NO_NEGATIVE: "all samples are relevant: a ranking needs at least one negative",
}


def most_violating_ranking(
    scores: ArrayLike,
    relevant: ArrayLike,
    loss: str | RankingLoss = "ap",
    method: str = "auto",
) -> MostViolatingRanking:
    r"""Find the ranking that maximises loss plus score: the value and a subgradient of the structured hinge.

    .. math:: J(s) = \max_R \; \Delta(R) + \sum_k u_k(R) \, s_k

    with ``u = -2 a_i / (P N)`` for a positive with ``a_i`` negatives above it in R and ``u = 2 b_j / (P N)`` for a
    negative with ``b_j`` positives below it. J is convex in s, bounds the loss of the ranking by s from above, and
    the returned coefficients are a subgradient: ``J(s) = loss + coefficients @ scores``.

    Parameters
    ----------
    scores : array of shape (n,)
        float32 and float64 are used as they are, anything else is converted to float64.
    relevant : array of shape (n,)
        Bool or 0/1.
    loss : str or RankingLoss, default "ap"
        ``"ap"``, ``"ndcg"``, ``"rr"``, ``"auc"``, ``"rbp"``, any object of `rankhinge.losses`, or ``"zero-one"``, the
        decomposable baseline (value and coefficients, no ranks).
    method : str, default "auto"
        All methods are exact. ``"histogram"`` (any loss; what ``"auto"`` takes), ``"quicksort"`` (any loss),
        ``"greedy"`` (any loss, O(PN)), ``"search"`` and ``"select"`` (AP).

    Returns
    -------
    MostViolatingRanking
        With `value`, `loss`, `coefficients`, `interleaving_ranks`, `order`.

    Raises
    ------
    ValueError
        For scores that are not finite, shapes that do not fit, relevance other than 0/1, a list without positives
        or negatives, and losses for which the methods would not be exact.

    References
    ----------
    Mohapatra, Rolínek, Jawahar, Kolmogorov, Kumar: Efficient Optimization for Rank-based Loss Functions, CVPR 2018;
    Mohapatra, Jawahar, Kumar: Efficient Optimization for Average Precision SVM, NIPS 2014.

    Examples
    --------
    >>> from rankhinge import most_violating_ranking
    >>> ranking = most_violating_ranking([2.0, 1.5, 1.0, 0.5], [True, False, True, False])
    >>> round(ranking.value, 4), round(ranking.loss, 4)
    (0.4167, 0.1667)
    >>> ranking.order
    array([0, 1, 2, 3])
    """
    loss = get_loss(loss)
    scores = check_scores(scores)
    relevant = check_relevant(relevant, scores.size)
    if loss.family == "zero-one":
        return _zero_one(scores, relevant, method)
    if method not in ("auto", "histogram"):
        return _by_method(scores, relevant, loss, method)
    compiled = compile_loss(loss, scores.size)
    if scores.size < LONG:
        coefficients = np.empty_like(scores)
        status, place, value, delta, n_steps, rank_counts = infer(
            scores, relevant, compiled.addresses, compiled.table, coefficients
        )
        if status != SETTLED:
            raise ValueError(_complaint(status, scores, place))
    else:
        _check_both_classes(relevant)
        try:
            coefficients, (value, delta, n_steps), rank_counts = infer_long(scores, relevant, compiled)
        except BadScore as error:
            raise ValueError(describe_bad_score(scores, error.place)) from None
    _check_outcome(loss, value, delta)
    return MostViolatingRanking(value, delta, coefficients, n_steps, scores, relevant, rank_counts)


def structured_hinge(scores: ArrayLike, relevant: ArrayLike, loss: str | RankingLoss = "ap") -> float:
    """``J(s)``, the value of `most_violating_ranking` alone.

    Parameters
    ----------
    scores, relevant : array of shape (n,)
    loss : str or RankingLoss, default "ap"

    Examples
    --------
    >>> from rankhinge import structured_hinge
    >>> structured_hinge([3.0, 0.0, -1.0], [True, False, False], loss="rr")
    0.0
    """
    return most_violating_ranking(scores, relevant, loss).value


def ranking_loss(scores: ArrayLike, relevant: ArrayLike, loss: str | RankingLoss = "ap") -> float:
    """Δ of the ranking by descending score; among equal scores negatives come first, the worst order.

    It is what `structured_hinge` bounds from above.

    Parameters
    ----------
    scores, relevant : array of shape (n,)
    loss : str or RankingLoss, default "ap"

    Examples
    --------
    >>> from rankhinge import ranking_loss
    >>> ranking_loss([3.0, 2.0, 1.0], [False, True, False], loss="rr")
    0.5
    """
    loss = get_loss(loss)
    scores = check_scores(scores)
    relevant = check_relevant(relevant, scores.size)
    place = first_bad(scores)
    if place >= 0:
        raise ValueError(describe_bad_score(scores, place))
    if loss.family == "zero-one":
        _require_samples(scores)
        return float(np.mean((scores > 0) != relevant))
    _check_both_classes(relevant)
    negatives = np.sort(scores[~relevant])
    above = negatives.size - np.searchsorted(negatives, np.sort(scores[relevant])[::-1], side="left")
    addresses, table = compile_loss(loss, scores.size)
    value = float(loss_of_counts(addresses, table, above, negatives.size))
    _check_outcome(loss, value, value)
    return value


def most_violating_rankings(
    scores: ArrayLike,
    relevant: ArrayLike,
    offsets: ArrayLike,
    loss: str | RankingLoss = "ap",
) -> MostViolatingRankings:
    """`most_violating_ranking` of many lists at once, on all threads.

    Parameters
    ----------
    scores, relevant : array of shape (n,)
        All lists, one after the other.
    offsets : array of shape (n_lists + 1,), int
        List q is ``scores[offsets[q]:offsets[q + 1]]``.
    loss : str or RankingLoss, default "ap"

    Returns
    -------
    MostViolatingRankings
        Lists without a positive or a negative are not usable: value, loss and coefficients are 0.

    Examples
    --------
    >>> from rankhinge import most_violating_rankings
    >>> batch = most_violating_rankings([1.0, 0.0, 2.0, 5.0], [1, 0, 1, 1], offsets=[0, 2, 4])
    >>> batch.usable
    array([ True, False])
    """
    loss = get_loss(loss)
    scores = check_scores(scores)
    relevant = check_relevant(relevant, scores.size)
    bounds = check_offsets(offsets, scores.size)
    sizes = np.diff(bounds)
    batch = MostViolatingRankings(
        np.zeros(sizes.size), np.zeros(sizes.size), np.empty_like(scores), np.zeros(sizes.size, np.bool_)
    )
    if loss.family == "zero-one":
        return _zero_one_lists(batch, scores, relevant, bounds)
    compiled = compile_loss(loss, int(sizes.max(initial=0)))
    for q in np.flatnonzero(sizes >= LONG):
        _infer_one(batch, scores, relevant, bounds, int(q), compiled)
    shares = equal_shares(bounds)
    work = partial(infer_lists, scores, relevant, bounds, LONG, *compiled, batch.values, batch.losses)
    outcomes = _threads.run([partial(work, batch.coefficients, batch.usable, a, b) for a, b in pairwise(shares)])
    for place in outcomes:
        if place >= 0:
            raise ValueError(describe_bad_score(scores, place))
    _check_outcome(loss, batch.values, batch.losses)
    return batch


def _check_outcome(loss: RankingLoss, values: Any, losses: Any) -> None:
    """Refuse what a user's step cannot have meant: where it was not looked at before, it may be anything."""
    if loss.family == "custom":
        sane = np.isfinite(values) & (np.asarray(losses) >= -_ROUNDING) & (np.asarray(losses) <= 1.0 + _ROUNDING)
        for wrong in np.atleast_1d(losses)[~np.atleast_1d(sane)][:1]:
            raise ValueError(
                f"{loss!r} is not suitable: a ranking has the loss {wrong}, which must lie between 0 and 1"
            )


def _infer_one(
    batch: MostViolatingRankings,
    scores: NDArray[Any],
    relevant: NDArray[np.bool_],
    bounds: NDArray[np.int64],
    q: int,
    compiled: CompiledLoss,
) -> None:
    """One long list of a batch, with all threads on it."""
    part = slice(int(bounds[q]), int(bounds[q + 1]))
    if not relevant[part].any() or relevant[part].all():
        place = first_bad(scores[part])
        if place >= 0:
            raise ValueError(describe_bad_score(scores, part.start + place))
        batch.coefficients[part] = 0
        return
    try:
        coefficients, outcome, _ = infer_long(scores[part], relevant[part], compiled)
    except BadScore as error:
        raise ValueError(describe_bad_score(scores, part.start + error.place)) from None
    batch.values[q], batch.losses[q], batch.usable[q] = outcome.value, outcome.loss, True
    batch.coefficients[part] = coefficients


def _require_samples(scores: NDArray[Any]) -> None:
    if scores.size == 0:
        raise ValueError("there are no samples")


def _complaint(status: int, scores: NDArray[Any], place: int) -> str:
    return describe_bad_score(scores, place) if status == BAD_SCORE else _COMPLAINTS[status]


def _check_both_classes(relevant: NDArray[np.bool_]) -> None:
    if not relevant.any():
        raise ValueError(_COMPLAINTS[NO_POSITIVE])
    if relevant.all():
        raise ValueError(_COMPLAINTS[NO_NEGATIVE])


def _by_method(
    scores: NDArray[Any], relevant: NDArray[np.bool_], loss: RankingLoss, method: str
) -> MostViolatingRanking:
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}: choose one of {['auto', 'histogram', *METHODS]}")
    if method in AP_ONLY and loss.family != "ap":
        raise ValueError(f"method {method!r} serves the loss 'ap' only, not {loss!r}")
    place = first_bad(scores)
    if place >= 0:
        raise ValueError(describe_bad_score(scores, place))
    _check_both_classes(relevant)
    compiled = compile_loss(loss, scores.size)
    coefficients, outcome, rank_counts = infer_by(method, scores, relevant, compiled)
    _check_outcome(loss, outcome.value, outcome.loss)
    return MostViolatingRanking(
        outcome.value, outcome.loss, coefficients, outcome.n_steps, scores, relevant, rank_counts
    )


def _zero_one(scores: NDArray[Any], relevant: NDArray[np.bool_], method: str) -> MostViolatingRanking:
    if method != "auto":
        raise ValueError(f"the zero-one loss is a single pass: method must be 'auto', not {method!r}")
    _require_samples(scores)
    coefficients = np.empty_like(scores)
    n = scores.size
    sums = np.empty(-(-n // CHUNK))
    inside = np.empty(sums.size, np.int64)

    def work(_: int, part: slice) -> int:
        first = part.start // CHUNK
        return hinge(scores[part], relevant[part], n, coefficients[part], sums[first:], inside[first:])

    if n < LONG:
        places, parts = [hinge(scores, relevant, n, coefficients, sums, inside)], [slice(0, n)]
    else:
        parts = stretches(n)
        places = on_stretches(work, parts)
    try:
        raise_if_bad(places, parts)
    except BadScore as error:
        raise ValueError(describe_bad_score(scores, error.place)) from None
    return MostViolatingRanking(float(sums.sum()) / n, float(inside.sum()) / n, coefficients, n, scores, relevant, None)


def _zero_one_lists(
    batch: MostViolatingRankings, scores: NDArray[Any], relevant: NDArray[np.bool_], bounds: NDArray[np.int64]
) -> MostViolatingRankings:
    for q in np.flatnonzero(np.diff(bounds)):
        part = slice(int(bounds[q]), int(bounds[q + 1]))
        place = first_bad(scores[part])
        if place >= 0:
            raise ValueError(describe_bad_score(scores, part.start + place))
        one = most_violating_ranking(scores[part], relevant[part], "zero-one")
        batch.values[q], batch.losses[q], batch.usable[q] = one.value, one.loss, True
        batch.coefficients[part] = one.coefficients
    return batch
