"""Inference for losses that look at the first places only (see `cut_kernels`): one list, many lists, by scores."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge import _threads
from rankhinge._validation import describe_bad_score
from rankhinge.inference.by_step import COMPLAINTS, check_both_classes, check_usable
from rankhinge.inference.cut_callbacks import cut_addresses
from rankhinge.inference.cut_kernels import cut_loss_of_counts, infer_cut, infer_cut_lists
from rankhinge.inference.long_cut import infer_long_cut
from rankhinge.inference.long_list import LONG, BadScore, equal_shares
from rankhinge.inference.passes import first_bad
from rankhinge.inference.ranking import MostViolatingRanking, MostViolatingRankings
from rankhinge.inference.whole import BAD_SCORE, SETTLED
from rankhinge.losses.cut import CutLoss

__all__ = ["infer_many", "infer_one", "loss_by_scores"]


def infer_one(scores: NDArray[Any], relevant: NDArray[np.bool_], loss: CutLoss) -> MostViolatingRanking:
    """The most violating ranking of one list."""
    depth = _depth(loss, relevant)
    code = cut_addresses(loss), loss.table(scores.size + 1)
    if scores.size < LONG:
        # In float64: the coefficients are corrected, and must not be rounded in between.
        wide = scores.astype(np.float64, copy=False)
        coefficients = np.zeros_like(wide)
        status, place, value, delta, n_steps, rank_counts = infer_cut(wide, relevant, depth, *code, coefficients)
        if status != SETTLED:
            raise ValueError(describe_bad_score(scores, place) if status == BAD_SCORE else COMPLAINTS[status])
    else:
        check_both_classes(relevant)
        try:
            coefficients, (value, delta, n_steps), rank_counts = infer_long_cut(scores, relevant, depth, *code)
        except BadScore as error:
            raise ValueError(describe_bad_score(scores, error.place)) from None
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
        bad = first_bad(wide[part])
        if bad >= 0:
            raise ValueError(describe_bad_score(scores, part.start + bad))
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
    for place in outcomes:
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
