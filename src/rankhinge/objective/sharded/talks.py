"""Conversations of the coordinator with the shards about one column of scores, as generators.

Each yields operations, is sent the shards' replies, and returns what it has found. Several continue side by side: their
operations of one round are one message.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rankhinge.inference.buckets import make_grid
from rankhinge.inference.callbacks import CompiledLoss
from rankhinge.inference.spread import BadScoreError, CompiledCut, Count, Finish, Runs, infer_spread, infer_top
from rankhinge.objective.logistic import INTERCEPT_TOLERANCE, NEWTON_STEPS
from rankhinge.objective.sharded.engine import Operation

__all__ = ["Column", "Inferred", "Talk", "hinge", "inference", "logistic", "reference"]

Floats = NDArray[np.float64]
Talk: TypeAlias = Generator[list[Operation], Any, Any]


class Column(NamedTuple):
    """A row of scores of a problem on the shards, and where its coefficients go: `name`, with so many rows, `place`."""

    scores: str
    row: int
    problem: int
    name: str = ""
    n_columns: int = 0
    place: int = 0
    shards: tuple[int, ...] | None = None
    """Those that have samples of the problem, if not all have."""

    @property
    def where(self) -> tuple[Any, ...]:
        """As shards are told."""
        return self[:6]

    @property
    def own(self) -> dict[int, tuple[Any, ...]] | None:
        """For operations that are the same for all these shards."""
        return None if self.shards is None else dict.fromkeys(self.shards, ())


class Inferred(NamedTuple):
    """Value, Δ, slack, the operations that would write the same coefficients again, and ``u · a`` with a direction.

    `slopes` are those of the columns of all coefficients, shard by shard, if they were asked for.
    """

    value: float
    loss: float
    slack: float
    log: list[Operation]
    dot: float = 0.0
    slopes: list[Floats] | None = None


def inference(
    column: Column,
    compiled: CompiledLoss | CompiledCut,
    positives: Sequence[Floats],
    n_negatives: int,
    sample: Floats,
    *,
    slack: float = 0.0,
    tight: bool = False,
    less: tuple[str, int] | None = None,
    ahead: str = "",
    with_slopes: bool = False,
) -> Talk:
    """The most violating ranking of a column.

    `ahead` names scores whose product with u is wanted as well. Slopes may come with it, if there is one column only.
    """
    token = f"{column.name}/{column.place}/{column.problem}"
    requests = (
        infer_top(compiled, positives, n_negatives, sample, tight=tight)
        if isinstance(compiled, CompiledCut)
        else infer_spread(compiled, positives, n_negatives, sample, slack=slack, tight=tight)
    )
    begin = [Operation("begin", (token, *column.where), column.own)]
    log = list(begin)
    reply: Any = None
    total, dot, slopes = 0.0, 0.0, None
    while True:
        try:
            request = requests.send(reply)
        except StopIteration as end:
            return Inferred(end.value.loss + total, end.value.loss, end.value.slack, log, dot, slopes)
        if isinstance(request, Finish):
            # A repetition needs no product, and `ahead` may no longer exist by then.
            log.append(_finish(column, token, request, less, None))
            ends = [*begin, _finish(column, token, request, less, (ahead, column.row) if ahead else None)]
            if with_slopes:
                reply, slopes = yield [*ends, Operation("adjoint", (column.name,), None, "each")]
            else:
                reply = yield ends
            # In the order of the shards: as many workers as there may be, the sum is the same.
            total, dot = (float(sum(part[place] for part in reply)) for place in (0, 1))
        else:
            method = type(request).__name__.lower()
            log.append(Operation(method, (token, request), column.own, "each" if method == "ship" else "counts"))
            reply = yield [*begin, log[-1]]
        begin = []


def _finish(
    column: Column,
    token: str,
    request: Finish,
    less: tuple[str, int] | None,
    ahead: tuple[str, int] | None,
    sign: float = 1.0,
) -> Operation:
    """The last request, with what belongs to each shard apart."""
    shards = range(len(request.positives)) if column.shards is None else column.shards
    own = {
        number: (
            None if request.shipped is None else request.shipped[part],
            request.positives[part],
            None if request.ranked is None else request.ranked[part],
        )
        for part, number in enumerate(shards)
    }
    bare = request._replace(shipped=None, positives=[], ranked=None)
    return Operation("finish", (token, bare, less, ahead, sign), own, "each")


def reference(column: Column, positives: Sequence[Floats], n_negatives: int) -> Talk:
    """The ranking by the scores: its score H and its coefficients."""
    token = f"{column.name}/{column.place}/{column.problem}"
    together = np.concatenate(positives)
    order = np.argsort(-together, kind="stable")
    log = [Operation("begin", (token, *column.where), column.own)]
    # One bucket will do: what counts is the positives above each negative.
    request = Count(tuple(make_grid(0.0, 0.0, 1)), together[order], n_negatives)
    log.append(Operation("count", (token, request), column.own, "counts"))
    reply = yield log
    if reply.bad:
        raise BadScoreError("a score is nan, infinite or too large")
    ranked = np.empty(together.size)
    ranked[order] = -2.0 / together.size / n_negatives * np.cumsum(reply.ranked[:-1])
    bounds = np.cumsum([part.size for part in positives])[:-1]
    nothing = [np.zeros(part.size) for part in positives]
    centre = float(np.median(together))
    finish = Finish(Runs.of(np.zeros(1)), centre, None, nothing, np.split(ranked, bounds))
    log = [*log, _finish(column, token, finish, None, None, -1.0)]
    reply = yield log[2:]
    return Inferred(float(sum(part[0] for part in reply)), 0.0, 0.0, log)


def hinge(column: Column, n_samples: int, ahead: str = "") -> Talk:
    """The mean hinge of a binary SVM."""
    scores, row, problem, *target = column.where
    arguments = (scores, row, problem, n_samples, *target)
    operation = Operation("hinge", (*arguments, None), column.own, "each")
    reply = yield [operation._replace(arguments=(*arguments, (ahead, column.row) if ahead else None))]
    if any(part[2] for part in reply):
        raise BadScoreError("a score is nan, infinite or too large")
    value, inside, dot = (float(sum(part[place] for part in reply)) for place in (0, 1, 3))
    return Inferred(value / n_samples, inside / n_samples, 0.0, [operation], dot)


def logistic(column: Column, n_relevant: int, n_samples: int, intercept: float) -> Talk:
    """The logistic loss at its best intercept, by Newton's method; returns the loss, the intercept and the log."""
    low, high = -np.inf, np.inf
    log_odds = np.log(n_relevant / (n_samples - n_relevant))
    operation = Operation("")
    loss = np.nan
    for _ in range(NEWTON_STEPS):
        arguments = (column.scores, column.row, column.problem, intercept, column.name, column.n_columns, column.place)
        operation = Operation("logistic", arguments, column.own, "each")
        reply = yield [operation]
        loss, first, second = (float(sum(part[k] for part in reply)) for k in range(3))
        if not np.isfinite(low):
            # Were all scores the highest, or the lowest, the answer would be known.
            low = log_odds - max(part[4] for part in reply)
            high = log_odds - min(part[3] for part in reply)
        first -= n_relevant
        if abs(first) <= INTERCEPT_TOLERANCE * n_samples or high - low <= 1e-15 * abs(intercept):
            break
        low, high = (low, min(high, intercept)) if first > 0 else (max(low, intercept), high)
        ahead = intercept - first / second if second > 0.0 else np.nan
        intercept = float(ahead if low < ahead < high else 0.5 * (low + high))
    return loss, float(intercept), [operation]
