r"""Inference on a spread list for a loss with a cut: only the best negatives may stand on top, and they are shipped.

1. *Top.* The positives go out. Each part ranks its negatives by the scores. It sends how many of them have how many
   positives above, and its best scores, up to ``k + 1``, with the number of negatives at each. A bar, estimated by the
   coordinator from a sample, keeps most parts from sending that many. If too few scores reach the bar, the parts are
   asked again without it. All negatives with one of the ``k + 1`` best scores of the list are counted, because a full
   reply includes the true number of ties at its last score.
2. *Finish.* The coordinator chooses the top as in memory (`rankhinge.inference.cut_kernels`). The coefficient of a
   negative on top depends on its score alone; all others keep that of the ranking by the scores.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge.inference.cut_callbacks import cut_addresses
from rankhinge.inference.cut_kernels import cut_loss_of_counts, settle_top
from rankhinge.inference.finish import write_positives
from rankhinge.inference.partition import sort_descending
from rankhinge.inference.query import centre_of
from rankhinge.inference.spread.coordinator import MOST_SHIPPED, BadScoreError, Spread
from rankhinge.inference.spread.messages import Finish, Floats, Request, Runs, Top, TopCounts
from rankhinge.losses.cut import CutLoss

__all__ = ["CompiledCut", "compile_cut", "infer_top"]


class CompiledCut(NamedTuple):
    """A loss with a cut for lists of one size: how many places count, callbacks, and their table."""

    depth: int
    addresses: NDArray[np.int64]
    table: Floats


def compile_cut(loss: CutLoss, n_positives: int, n_negatives: int) -> CompiledCut:
    """The cut for a list of this size. Raises a ValueError if too many scores would be shipped."""
    n_samples = n_positives + n_negatives
    loss.require_suitable(n_samples)
    depth = int(loss.depths(np.array([n_samples]))[0]) or n_positives
    n_shipped = min(depth, n_positives) + min(depth + 1, n_negatives)
    if n_shipped > MOST_SHIPPED:
        raise ValueError(
            f"loss={loss.name!r} looks at the first {depth} places of a list, for which {n_shipped} scores would "
            f"have to travel, and {MOST_SHIPPED} may: choose fewer places, or fit it in memory, on arrays or on files "
            "that rankhinge.spool has written"
        )
    loss.require_cheap(depth, n_positives)
    return CompiledCut(depth, cut_addresses(loss), loss.table(n_samples + 1))


def infer_top(
    compiled: CompiledCut, positives: Sequence[Floats], n_negatives: int, sample: Floats, *, tight: bool = False
) -> Generator[Request, Any, Spread]:
    """The most violating ranking of a spread list, as requests to be answered by all its parts.

    Parameters are as for `infer_spread`, `Top` is to be sent `TopCounts.merged` of all parts. The value is exact.
    """
    together = np.concatenate(positives).astype(np.float64)
    order = np.arange(together.size)
    sort_descending(together, order)
    wanted = min(compiled.depth + 1, n_negatives)
    bar = _bar(sample, wanted, n_negatives)
    reply = yield Top(together, n_negatives, wanted, bar)
    n_rounds = 2
    if not reply.bad and reply.counts.sum() < wanted:
        n_rounds = 3
        reply = yield Top(together, n_negatives, wanted, -np.inf)
    if reply.bad:
        raise BadScoreError("a score is nan, infinite or too large")
    best = np.repeat(reply.values, np.minimum(reply.counts, wanted))[:wanted]
    _, ranks, _, _, _ = settle_top(together, best, n_negatives, compiled.depth, compiled.addresses, compiled.table)
    rank_counts = np.append(0, reply.ranked)
    top = _settled(together, n_negatives, reply, best[: ranks.size], ranks, rank_counts)
    above = np.cumsum(rank_counts[1:-1])
    loss = cut_loss_of_counts(compiled.addresses, compiled.table, above, n_negatives, compiled.depth)
    centre, u = float(centre_of(together, best[0])), np.empty(together.size)
    write_positives(together, order, above, n_negatives, centre, u)
    bounds, ranked = np.cumsum([part.size for part in positives])[:-1], None
    if tight:
        by_scores = np.empty(together.size)
        by_scores[order] = -2.0 / together.size / n_negatives * np.cumsum(reply.ranked[:-1])
        ranked = np.split(by_scores, bounds)
    yield Finish(Runs.of(np.zeros(1)), centre, None, np.split(u, bounds), ranked, top)
    return Spread(float(loss), 0.0, n_rounds)


def _bar(sample: Floats, wanted: int, n_negatives: int) -> float:
    """A score that some more than the wanted negatives reach, by the sample."""
    ordered = np.sort(sample[np.isfinite(sample)])[::-1]
    expected = wanted * ordered.size / n_negatives
    place = int(expected + 3 * np.sqrt(expected)) + 3
    return float(ordered[place]) if place < ordered.size else -np.inf


def _settled(
    positives: Floats,
    n_negatives: int,
    reply: TopCounts,
    best: Floats,
    ranks: NDArray[np.int64],
    rank_counts: NDArray[np.int64],
) -> tuple[Floats, Floats]:
    """The edges below the scores on top, and the coefficients of all that have these, tied ones their mean.

    Edges are amid two scores: those of a part that is made anew may differ in the last bit. Corrects `rank_counts`,
    which has them where the ranking by the scores does.
    """
    if best.size == 0:
        return np.zeros(0), np.zeros(0)
    first = np.flatnonzero(np.append(True, best[1:] != best[:-1]))
    values, members = best[first], np.diff(first, append=best.size)
    # The cut may run through the last ones, which are more than those on top: all of them share.
    sizes = reply.counts[: first.size]
    higher = np.searchsorted(-positives, -values, side="right")
    below = np.add.reduceat(positives.size + 1 - ranks, first) + (sizes - members) * (positives.size - higher)
    np.subtract.at(rank_counts, higher + 1, members)
    np.add.at(rank_counts, ranks, 1)
    lower = np.append(values[1:], np.max(reply.values[first.size : first.size + 1], initial=reply.below))
    # Below the last one there may be nothing, and an edge must lie below its score.
    amid = lower + 0.5 * (values - np.where(np.isfinite(lower), lower, values))
    edges = np.where(amid < values, amid, lower)
    return edges, 2.0 / positives.size / n_negatives * (below / sizes)
