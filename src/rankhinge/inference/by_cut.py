"""Inference for losses that look at the first places only (see `cut_kernels`): one list, many lists, by scores."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge import _threads
from rankhinge._validation import describe_bad_score
from rankhinge.inference.by_scores import add_negatives, highest_negative, tabulate
from rankhinge.inference.by_step import COMPLAINTS, check_usable
from rankhinge.inference.cut_callbacks import cut_addresses
from rankhinge.inference.cut_kernels import best_negatives, cut_loss_of_counts, infer_cut, infer_cut_lists, settle_cut
from rankhinge.inference.long_list import LONG, equal_shares, on_stretches, stretches
from rankhinge.inference.partition import sort_descending
from rankhinge.inference.passes import CHUNK, first_bad
from rankhinge.inference.query import centre_of
from rankhinge.inference.ranking import MostViolatingRanking, MostViolatingRankings
from rankhinge.inference.whole import BAD_SCORE, SETTLED
from rankhinge.losses.cut import CutLoss

__all__ = ["infer_many", "infer_one", "loss_by_scores"]


def infer_one(scores: NDArray[Any], relevant: NDArray[np.bool_], loss: CutLoss) -> MostViolatingRanking:
    """The most violating ranking of one list."""
    depth = _depth(loss, relevant)
    # In float64: the coefficients are corrected, and must not be rounded in between.
    wide = scores.astype(np.float64, copy=False)
    coefficients = np.zeros_like(wide)
    code = cut_addresses(loss), loss.table(scores.size + 1)
    if scores.size < LONG:
        found = infer_cut(wide, relevant, depth, *code, coefficients)
        status, place, value, delta, n_steps, rank_counts = found
        if status != SETTLED:
            raise ValueError(describe_bad_score(scores, place) if status == BAD_SCORE else COMPLAINTS[status])
    else:
        check_usable(wide, relevant)
        value, delta, n_steps, rank_counts = _infer_long(wide, relevant, depth, *code, coefficients)
    narrow = coefficients.astype(scores.dtype, copy=False)
    return MostViolatingRanking(value, delta, narrow, n_steps, scores, relevant, rank_counts)


def infer_many(
    scores: NDArray[Any], relevant: NDArray[np.bool_], bounds: NDArray[np.int64], loss: CutLoss
) -> MostViolatingRankings:
    """Those of many lists, on all threads."""
    wide = scores.astype(np.float64, copy=False)
    batch = MostViolatingRankings.empty(wide, bounds)
    sizes = np.diff(bounds)
    longest = int(sizes.max(initial=0))
    loss.require_suitable(longest)
    depths = loss.depths(sizes)
    n_positives = np.diff(np.concatenate([[0], np.cumsum(relevant)])[bounds])
    if sizes.size:
        costliest = int(np.argmax(depths * np.minimum(depths, n_positives)))
        loss.require_cheap(int(depths[costliest]), int(n_positives[costliest]))
    for q in np.flatnonzero(sizes >= LONG):
        part = slice(int(bounds[q]), int(bounds[q + 1]))
        if 0 < n_positives[q] < sizes[q]:
            one = infer_one(wide[part], relevant[part], loss)
            batch.values[q], batch.losses[q], batch.usable[q] = one.value, one.loss, True
            batch.coefficients[part] = one.coefficients
        else:
            batch.coefficients[part] = 0.0
    code = cut_addresses(loss), loss.table(longest + 1)
    work = partial(infer_cut_lists, wide, relevant, bounds, depths, LONG, *code, batch.values, batch.losses)
    shares = equal_shares(bounds)
    outcomes = _threads.run([partial(work, batch.coefficients, batch.usable, a, b) for a, b in pairwise(shares)])
    for place in [*outcomes, first_bad(wide) if longest >= LONG else -1]:
        if place >= 0:
            raise ValueError(describe_bad_score(scores, place))
    batch.coefficients = batch.coefficients.astype(scores.dtype, copy=False)
    return batch


def loss_by_scores(scores: NDArray[Any], relevant: NDArray[np.bool_], loss: CutLoss) -> float:
    """Δ of the ranking by descending score; among equal scores negatives come first."""
    check_usable(scores, relevant)
    depth = _depth(loss, relevant)
    negatives = np.sort(scores[~relevant])
    above = negatives.size - np.searchsorted(negatives, np.sort(scores[relevant])[::-1], side="left")
    depth = depth or above.size
    return float(cut_loss_of_counts(cut_addresses(loss), loss.table(scores.size + 1), above, negatives.size, depth))


def _depth(loss: CutLoss, relevant: NDArray[np.bool_]) -> int:
    """How many places count; 0 means as many as there are positives."""
    loss.require_suitable(relevant.size)
    depth = int(loss.depths(np.array([relevant.size]))[0])
    if loss.step_formula is not None:
        loss.require_cheap(depth, int(np.count_nonzero(relevant)))
    return depth


def _infer_long(
    scores: NDArray[np.float64],
    relevant: NDArray[np.bool_],
    depth: int,
    addresses: NDArray[np.int64],
    table: NDArray[np.float64],
    coefficients: NDArray[np.float64],
) -> tuple[float, float, int, NDArray[np.int64]]:
    """J, Δ, steps and rank counts of a long list, the passes shared by the threads; writes u."""
    positive_index = np.flatnonzero(relevant)
    positives = scores[positive_index]
    n_negatives = scores.size - positives.size
    depth = depth or positives.size
    sort_descending(positives, positive_index)
    grid, above = tabulate(positives)
    parts = stretches(scores.size)
    highest = max(on_stretches(lambda _, part: highest_negative(scores[part], relevant[part]), parts))
    centre = float(centre_of(positives, highest))
    by_scores = np.zeros((len(parts), positives.size + 1), np.int64)
    sums = np.empty(-(-scores.size // CHUNK))

    def work(n: int, part: slice) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        arrays = scores[part], relevant[part], coefficients[part], by_scores[n], sums[part.start // CHUNK :]
        add_negatives(1.0, positives, n_negatives, centre, grid, above, *arrays)
        return best_negatives(scores[part], relevant[part], part.start, depth + 1)

    best = on_stretches(work, parts)
    values, index = (np.concatenate(columns) for columns in zip(*best, strict=True))
    sort_descending(values, index)
    values, index = values[: depth + 1].copy(), index[: depth + 1].copy()
    loss, change, positive_total, n_steps, rank_counts = settle_cut(
        scores,
        relevant,
        positives,
        positive_index,
        values,
        index,
        depth,
        by_scores.sum(axis=0),
        centre,
        addresses,
        table,
        coefficients,
    )
    return loss + (float(sums.sum()) + change + positive_total), loss, n_steps, rank_counts
