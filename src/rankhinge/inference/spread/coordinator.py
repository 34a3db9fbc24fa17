r"""Inference on a list that is spread over parts: what the coordinator does, which sees the positives and counts.

1. *Count.* A grid goes out, the negatives in each of its buckets come back. The ranks at the edges settle most buckets.
2. *Refine*, as often as needed. Each open bucket is cut into finer ones, whose counts and true extents come back. A
   bucket whose scores are all equal is settled by bisection on j.
3. *Ship.* If few negatives are left, their scores come.
4. *Finish.* The coefficients go out; ``Σ u (s - c)`` comes back, part by part.

**Slack.** To settle every last negative takes many rounds where positives are many. A bound that is proved to be nearly
exact takes two. Let s' be s with each open bucket g, of :math:`n_g` scores between :math:`l_g` and :math:`h_g`, moved
to its middle, and V the value at s of the ranking that is best at s'. (Of tied negatives any order is: u' is the mean.)
V is no more than J(s), the maximum over rankings, and

.. math:: J(s) - V \le \sum_k (u_k - u'_k)(s_k - s'_k)
          \le \epsilon = \sum_g n_g \frac{h_g - l_g}{2} \cdot \frac{2 (r^{high}_g - r^{low}_g)}{P N},

because :math:`J(s') = V + u' \cdot (s' - s)` and u is a subgradient at s, and because in a bucket the ranks at s and at
s' both lie between those of its ends, :math:`r^{low}_g` and :math:`r^{high}_g`. Extents are true ones. The plane of V
is valid everywhere, and V + ε is an upper bound on J(s).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge.inference.buckets import make_grid
from rankhinge.inference.callbacks import CompiledLoss
from rankhinge.inference.edges import HIGH, J0, LOW, START, STOP, settle_buckets
from rankhinge.inference.finish import finish
from rankhinge.inference.long_list import LEAST_BUCKETS, SAMPLE, bucket_range, sample_bounds
from rankhinge.inference.partition import sort_descending
from rankhinge.inference.query import centre_of, make_query
from rankhinge.inference.settle import settle
from rankhinge.inference.spread.kernels import settle_finer, settle_tied
from rankhinge.inference.spread.messages import Count, Counts, Finish, Floats, Refine, Request, Runs, Ship, Shipped

__all__ = ["BadScoreError", "Spread", "infer_spread", "sample_stride"]

# Bytes of the largest reply of counts: a message of a part stays below a megabyte.
_REPLY_BYTES = 900_000
_COUNT_BYTES, _FINER_BYTES = 4, 20
# What is left is shipped once there are no more scores than these.
MOST_SHIPPED = 1 << 16
# Buckets for each positive: each threshold between two ranks leaves a bucket open.
_BUCKETS_A_POSITIVE = 64


class BadScoreError(ValueError):
    """A score that is nan, infinite or too large."""


class Spread(NamedTuple):
    """Δ, ε, how many requests it took, and ``Σ u (s - c)`` is what the parts' sums add up to."""

    loss: float
    slack: float
    n_rounds: int


def sample_stride(n_samples: int) -> int:
    """Of how many samples one belongs to the sample: those whose number in the whole is a multiple."""
    return max(1, n_samples // SAMPLE)


class _Open(NamedTuple):
    """Buckets that are not settled: rows (size, j0, low, high), extents, and which are a tail."""

    groups: NDArray[np.int64]
    lows: Floats
    highs: Floats
    kinds: NDArray[np.int8]

    def select(self, which: Any) -> _Open:
        return _Open(*(part[which] for part in self))


class _Coordinator:
    """What is known of one list."""

    def __init__(
        self,
        compiled: CompiledLoss,
        positives: Floats,
        n_negatives: int,
        sample: Floats,
        slack: float,
        most_shipped: int,
    ) -> None:
        self.order = np.arange(positives.size)
        self.positives = positives.astype(np.float64)
        sort_descending(self.positives, self.order)
        self.query = make_query(compiled.addresses, compiled.table, self.positives, n_negatives)
        self.rank_counts = np.zeros(positives.size + 2, np.int64)
        self.unit = 2.0 / positives.size / n_negatives
        self.sample = np.sort(sample[np.isfinite(sample)])[::-1].copy()
        highest = self.sample[0] if self.sample.size else self.positives[0]
        self.centre = float(centre_of(self.positives, highest))
        self.slack, self.spent, self.most_shipped = slack, 0.0, most_shipped

    def grid(self) -> Any:
        """Where to count first: by the sample, between the scores at which ranks begin and cease to change."""
        lowest, highest = bucket_range(self.sample, sample_bounds(self.query, self.sample))
        most = _REPLY_BYTES // _COUNT_BYTES
        wanted = min(_BUCKETS_A_POSITIVE * self.positives.size, self.query.n_negatives // 2)
        return make_grid(lowest, highest, min(max(LEAST_BUCKETS, wanted), most))

    def settle_counts(self, grid: Any, reply: Counts) -> tuple[Floats, _Open]:
        """The coefficient of each bucket of the grid, nan where it is open, and the open ones."""
        codes = np.append(reply.counts, 0)
        found, _ = settle_buckets(self.query, grid, codes, 0, 1, self.positives.size + 1, self.rank_counts)
        codes = codes[: grid.size]
        table = np.where(codes >= 0, self.unit * (self.positives.size + 1 - codes), np.nan)
        place = np.flatnonzero(codes < 0)
        # Edges are exact; the first and the last bucket reach as far as there are scores.
        first, last = place == 0, place == grid.size - 1
        lower, upper = ((place + b + grid.base - 0.5) * grid.width for b in (0, 1))
        lows = np.where(first, reply.lows[0], np.maximum(lower, reply.lows[0]))
        highs = np.where(last, reply.highs[0], np.minimum(upper, reply.highs[0]))
        groups = np.stack([found[:, STOP] - found[:, START], found[:, J0], found[:, LOW], found[:, HIGH]], axis=1)
        tails = np.where(first, -1, np.where(last, 1, 0))
        kinds = np.where((highs - lows > grid.width) & (grid.size > 1), tails, 0).astype(np.int8)
        return self._without_ties(table, _Open(groups, lows, highs, kinds))

    def settle_finer(self, open_: _Open, sizes: NDArray[np.int32], reply: Counts) -> tuple[Floats, _Open]:
        """The same of finer buckets."""
        table, finer = np.empty(reply.counts.size), np.empty((reply.counts.size, 4), np.int64)
        found = reply.counts, reply.lows, reply.highs
        n_finer = settle_finer(self.query, open_.groups, sizes, *found, self.rank_counts, table, finer)
        place = np.flatnonzero(np.isnan(table))
        kinds = np.zeros(n_finer, np.int8)
        return self._without_ties(table, _Open(finer[:n_finer], reply.lows[place], reply.highs[place], kinds))

    def _without_ties(self, table: Floats, open_: _Open) -> tuple[Floats, _Open]:
        """Settle the open buckets whose scores are all equal."""
        return self._collapse(table, open_, open_.lows == open_.highs)

    def _collapse(self, table: Floats, open_: _Open, which: NDArray[np.bool_]) -> tuple[Floats, _Open]:
        """Settle some open buckets as if all their scores were the middle one; the rest stays open."""
        if not which.any():
            return table, open_
        place = np.flatnonzero(np.isnan(table))
        middles = open_.lows + 0.5 * (open_.highs - open_.lows)
        self.spent += float(self._costs(open_)[which].sum())
        settle_tied(self.query, open_.groups, middles, which, place, self.rank_counts, table)
        return table, open_.select(~which)

    def _costs(self, open_: _Open) -> Floats:
        """What each bucket adds to ε if it is collapsed."""
        sizes, _, low, high = open_.groups.T
        return 0.5 * self.unit * sizes * (high - low) * (open_.highs - open_.lows)

    def approximate(self, table: Floats, open_: _Open) -> tuple[Floats, _Open]:
        """Collapse all buckets if the slack allows it, else the cheapest, with half of what is left of it."""
        left = self.slack - self.spent
        if left <= 0 or open_.lows.size == 0:
            return table, open_
        costs = self._costs(open_)
        if costs.sum() <= left:
            return self._collapse(table, open_, np.ones(costs.size, np.bool_))
        order = np.argsort(costs, kind="stable")
        which = np.zeros(costs.size, np.bool_)
        which[order[np.cumsum(costs[order]) <= 0.5 * left]] = True
        return self._collapse(table, open_, which)

    def finer_sizes(self, open_: _Open) -> NDArray[np.int32]:
        """How many finer buckets each open one is cut into: as many as a reply has room for, shared by the samples."""
        n_samples = open_.groups[:, 0]
        spare = max(0, _REPLY_BYTES // _FINER_BYTES - 2 * n_samples.size)
        share = np.floor(n_samples * (spare / float(n_samples.sum()))).astype(np.int64)
        return (2 + np.minimum(share, n_samples)).astype(np.int32)

    def settle_shipped(self, open_: _Open, parts: Sequence[Shipped]) -> list[Floats]:
        """Coefficients of the scores that the parts have shipped, part by part."""
        values = np.concatenate([part.values for part in parts])
        place = np.argsort(np.concatenate([part.groups for part in parts]), kind="stable")
        ends = np.cumsum(open_.groups[:, 0])
        groups = np.column_stack([ends - open_.groups[:, 0], ends, open_.groups[:, 1:]])
        u = np.empty(values.size)
        settle(self.query, values[place], place, groups, self.centre, u, self.rank_counts)
        return np.split(u, np.cumsum([part.values.size for part in parts])[:-1])

    def of_positives(self) -> tuple[float, Floats]:
        """Δ, and the coefficients of the positives in the order in which they came."""
        u = np.empty(self.positives.size)
        loss, _ = finish(self.query, self.order, self.rank_counts, self.centre, u)
        return float(loss), u

    def ranked_positives(self, ranked: NDArray[np.int64]) -> Floats:
        """Coefficients of the positives in the ranking by the scores, by the negatives' counts of positives above."""
        u = np.empty(self.positives.size)
        u[self.order] = -self.unit * np.cumsum(ranked[:-1])
        return u


def infer_spread(
    compiled: CompiledLoss,
    positives: Sequence[Floats],
    n_negatives: int,
    sample: Floats,
    *,
    slack: float = 0.0,
    tight: bool = False,
    most_shipped: int = MOST_SHIPPED,
) -> Generator[Request, Any, Spread]:
    """The most violating ranking of a spread list, as requests to be answered by all its parts.

    Parameters
    ----------
    compiled : CompiledLoss
        For lists of so many samples.
    positives : sequence of ndarray
        Scores of the positives of each part, in its order.
    n_negatives : int
        Of all parts.
    sample : ndarray
        Scores of some negatives, those of each `sample_stride`-th sample say: they say where to count first.
    slack : float
        How much less than J the value may be.
    tight : bool
        Whether u of the ranking by the scores is subtracted: the value is that of the tight bound then.

    Yields
    ------
    Count, Refine, Ship or Finish
        To be sent the replies, `Counts.merged` of all parts; of `Ship` and `Finish` those of each part, in order.

    Returns
    -------
    Spread
        With what the parts reply to `Finish`: ``V = loss + Σ u (s - c)``.
    """
    sizes_of_parts = [part.size for part in positives]
    here = _Coordinator(compiled, np.concatenate(positives), n_negatives, sample, slack, most_shipped)
    grid = here.grid()
    reply = yield Count(tuple(grid), here.positives if tight else None, n_negatives)
    if reply.bad:
        raise BadScoreError("a score is nan, infinite or too large")
    ranked = reply.ranked
    table, open_ = here.approximate(*here.settle_counts(grid, reply))
    n_rounds, shipped = 2, None
    while open_.lows.size:
        n_rounds += 1
        if open_.groups[:, 0].sum() <= most_shipped:
            parts = yield Ship(Runs.of(table))
            shipped = here.settle_shipped(open_, parts)
            break
        sizes = here.finer_sizes(open_)
        reply = yield Refine(Runs.of(table), open_.lows, open_.highs, sizes, open_.kinds, float(grid.width))
        table, open_ = here.approximate(*here.settle_finer(open_, sizes, reply))
    loss, u = here.of_positives()
    bounds = np.cumsum(sizes_of_parts)[:-1]
    by_scores = None if ranked is None else np.split(here.ranked_positives(ranked), bounds)
    yield Finish(Runs.of(table), here.centre, shipped, np.split(u, bounds), by_scores)
    return Spread(loss, here.spent, n_rounds)
