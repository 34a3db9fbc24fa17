"""Inference for suitable losses, given by their step: one list, many lists, and the loss of the ranking by scores."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge import _threads
from rankhinge._validation import describe_bad_score
from rankhinge.inference.callbacks import CompiledLoss, compile_loss
from rankhinge.inference.finish import loss_of_counts
from rankhinge.inference.long_list import LONG, BadScore, equal_shares, infer_long
from rankhinge.inference.passes import first_bad
from rankhinge.inference.ranking import MostViolatingRanking, MostViolatingRankings
from rankhinge.inference.whole import BAD_SCORE, NO_NEGATIVE, NO_POSITIVE, SETTLED, infer, infer_lists
from rankhinge.losses import RankingLoss

__all__ = ["COMPLAINTS", "check_outcome", "check_usable", "hinge_of_one", "infer_many", "infer_one", "loss_by_scores"]

# By how much a user's loss may lie outside [0, 1].
_ROUNDING = 1e-6
COMPLAINTS = {
    NO_POSITIVE: "no sample is relevant: a ranking needs at least one positive",
    NO_NEGATIVE: "all samples are relevant: a ranking needs at least one negative",
}


def infer_one(scores: NDArray[Any], relevant: NDArray[np.bool_], loss: RankingLoss) -> MostViolatingRanking:
    """The most violating ranking of one list."""
    compiled = compile_loss(loss, scores.size)
    value, delta, coefficients, n_steps, rank_counts = hinge_of_one(loss, compiled, scores, relevant)
    return MostViolatingRanking(value, delta, coefficients, n_steps, scores, relevant, rank_counts)


def hinge_of_one(
    loss: RankingLoss, compiled: CompiledLoss, scores: NDArray[Any], relevant: NDArray[np.bool_]
) -> tuple[float, float, NDArray[Any], int, NDArray[np.int64]]:
    """J, Δ, u, the steps and the rank counts of one list, with what was compiled for its length or a longer one."""
    if scores.size < LONG:
        coefficients = np.empty_like(scores)
        status, place, value, delta, n_steps, rank_counts = infer(
            scores, relevant, compiled.addresses, compiled.table, coefficients
        )
        if status != SETTLED:
            raise ValueError(describe_bad_score(scores, place) if status == BAD_SCORE else COMPLAINTS[status])
    else:
        check_both_classes(relevant)
        try:
            coefficients, (value, delta, n_steps), rank_counts = infer_long(scores, relevant, compiled)
        except BadScore as error:
            raise ValueError(describe_bad_score(scores, error.place)) from None
    if not loss.is_checked:
        check_outcome(loss, value, delta)
    return value, delta, coefficients, n_steps, rank_counts


def infer_many(
    scores: NDArray[Any], relevant: NDArray[np.bool_], bounds: NDArray[np.int64], loss: RankingLoss
) -> MostViolatingRankings:
    """Those of many lists, on all threads."""
    batch = MostViolatingRankings.empty(scores, bounds)
    sizes = np.diff(bounds)
    compiled = compile_loss(loss, int(sizes.max(initial=0)))
    for q in np.flatnonzero(sizes >= LONG):
        _infer_one_of(batch, scores, relevant, bounds, int(q), compiled)
    work = partial(infer_lists, scores, relevant, bounds, LONG, *compiled, batch.values, batch.losses)
    shares = equal_shares(bounds)
    outcomes = _threads.run([partial(work, batch.coefficients, batch.usable, a, b) for a, b in pairwise(shares)])
    for place in outcomes:
        if place >= 0:
            raise ValueError(describe_bad_score(scores, place))
    if not loss.is_checked:
        check_outcome(loss, batch.values, batch.losses)
    return batch


def loss_by_scores(scores: NDArray[Any], relevant: NDArray[np.bool_], loss: RankingLoss) -> float:
    """Δ of the ranking by descending score; among equal scores negatives come first."""
    check_usable(scores, relevant)
    negatives = np.sort(scores[~relevant])
    above = negatives.size - np.searchsorted(negatives, np.sort(scores[relevant])[::-1], side="left")
    addresses, table = compile_loss(loss, scores.size)
    value = float(loss_of_counts(addresses, table, above, negatives.size))
    if not loss.is_checked:
        check_outcome(loss, value, value)
    return value


def _infer_one_of(
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


def check_outcome(loss: RankingLoss, values: Any, losses: Any) -> None:
    """Refuse values that no suitable step gives: a user's step was checked at some places only."""
    sane = np.isfinite(values) & (np.asarray(losses) >= -_ROUNDING) & (np.asarray(losses) <= 1.0 + _ROUNDING)
    for wrong in np.atleast_1d(losses)[~np.atleast_1d(sane)][:1]:
        raise ValueError(f"{loss!r} is not suitable: a ranking has the loss {wrong}, which must lie between 0 and 1")


def check_both_classes(relevant: NDArray[np.bool_]) -> None:
    """Raise if there is no ranking to speak of."""
    if not relevant.any():
        raise ValueError(COMPLAINTS[NO_POSITIVE])
    if relevant.all():
        raise ValueError(COMPLAINTS[NO_NEGATIVE])


def check_usable(scores: NDArray[Any], relevant: NDArray[np.bool_]) -> None:
    """Raise for a bad score, or if there is no ranking to speak of."""
    place = first_bad(scores)
    if place >= 0:
        raise ValueError(describe_bad_score(scores, place))
    check_both_classes(relevant)
