r"""Handles of scores and coefficients on shards: the calls that know of features and columns alone.

**Handles are recipes.** Scores are linear in the weights, and the coordinator keeps the weights of every live handle;
of coefficients it keeps the few messages that wrote them. When a shard is lost, its scores are computed again from
these, in one pass over that shard. Operations without a reply wait for the next one that has a reply. Handles that are
no longer referenced are dropped with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rankhinge.objective.sharded.engine import Engine, Operation
from rankhinge.objective.sharded.handles import CoefficientHandle, Recipe, ScoreHandle, Shared, surviving
from rankhinge.objective.sharded.talks import Talk

__all__ = ["ShardedHandles", "Sizes", "seen_of", "total"]

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class Sizes(NamedTuple):
    """What is known of the samples from the beginning: rows, features, entries, and of each problem P and N, (K,)."""

    n_samples: int
    n_features: int
    n_entries: int
    n_positives: Indices
    n_negatives: Indices


class ShardedHandles:
    """The calls of `rankhinge.solvers.protocol.Objective` that know of features alone, and conversations with shards.

    Parameters
    ----------
    engine : Engine
    sizes : Sizes
    factors : ndarray of shape (d,), optional
        What the columns of X are multiplied with.
    """

    def __init__(self, engine: Engine, sizes: Sizes, factors: Floats | None = None) -> None:
        self._shared, self.factors = Shared(engine), factors
        self._begin(sizes, np.arange(sizes.n_positives.size))

    def _begin(self, sizes: Sizes, numbers: Indices) -> None:
        self.sizes, self.numbers = sizes, numbers
        self.n_samples, self.n_features, self.n_entries = sizes.n_samples, sizes.n_features, sizes.n_entries
        self.n_problems, self.width = numbers.size, sizes.n_entries / max(1, sizes.n_samples)
        self._layout: list[tuple[Indices, Indices, Indices]] | None = None

    def part(self, problems: Indices) -> Self:
        """The same of some problems only."""
        other = copy(self)
        other._begin(self.sizes, self.numbers[problems])
        return other

    def weighted(self, factors: Floats | None) -> Self:
        """The same with the columns of X multiplied by factors."""
        other = self.part(np.arange(self.n_problems))
        other.factors = factors
        return other

    @property
    def slack_used(self) -> float:
        """The largest ε so far."""
        return self._shared.slack_used

    @property
    def engine(self) -> Engine:
        """Where the shards are."""
        return self._shared.engine

    def close(self) -> None:
        """Let go of the shards."""
        self.engine.release()

    @surviving
    def score(self, weights: Floats, problems: Indices) -> ScoreHandle:
        """Scores at the columns of `weights` (d, m). One pass."""
        inner = self._inner(weights)
        name, numbers = self._shared.name(), self.numbers[problems]
        replies = self._shared.call([Operation("score", (name, inner, numbers), None, "each")])[0]
        return self._shared.keep(ScoreHandle(name, numbers, inner, seen_of(replies, numbers.size)))

    def _inner(self, weights: Floats) -> Floats:
        """Weights of the columns of X as they are."""
        return np.ascontiguousarray(weights if self.factors is None else weights * self.factors[:, None])

    @surviving
    def zeros(self, problems: Indices) -> ScoreHandle:
        """``score(0, problems)`` without a pass."""
        if self._layout is None:
            self._layout = self._shared.call([Operation("layout", (), None, "each")])[0]
        name, numbers = self._shared.name(), self.numbers[problems]
        seen: list[Any] = [
            ([np.zeros(mine[k]) for mine, *_ in self._layout], np.zeros(sum(int(own[k]) for _, own, _ in self._layout)))
            for k in numbers
        ]
        self._shared.later(Operation("zeros", (name, numbers.size)))
        return self._shared.keep(ScoreHandle(name, numbers, np.zeros((self.n_features, numbers.size)), seen))

    def along(self, scores: ScoreHandle, ahead: ScoreHandle, steps: Floats) -> ScoreHandle:
        """``scores + steps * ahead``, a step for each column."""
        name = self._shared.name()
        weights, seen = ahead.weights * steps + scores.weights, []
        for here, there, step in zip(scores.seen, ahead.seen, steps.tolist(), strict=True):
            # As the shards do it, to the last bit.
            positives = [a * step + s for s, a in zip(here[0], there[0], strict=True)]
            seen.append((positives, there[1] * step + here[1]))
        self._shared.later(Operation("along", (name, scores.name, ahead.name, steps)))
        return self._shared.keep(ScoreHandle(name, scores.problems, weights, seen, ahead.name))

    def select(self, handle: Any, places: Indices) -> Any:
        """Some columns of scores or coefficients."""
        if np.array_equal(places, np.arange(handle.problems.size)):
            return handle
        name, problems = self._shared.name(), handle.problems[places]
        operation = Operation("select", (name, handle.name, places))
        self._shared.later(operation)
        if isinstance(handle, ScoreHandle):
            seen = [handle.seen[place] for place in places]
            return self._shared.keep(ScoreHandle(name, problems, handle.weights[:, places].copy(), seen))
        dots = {other: known[places] for other, known in handle.dots.items()}
        return self._shared.keep(CoefficientHandle(Recipe(name, [operation], [handle.recipe]), problems, dots))

    def join(self, handles: Sequence[CoefficientHandle]) -> CoefficientHandle:
        """The columns of several handles of coefficients."""
        if len(handles) == 1:
            return handles[0]
        name, problems = self._shared.name(), np.concatenate([handle.problems for handle in handles])
        operation = Operation("join", (name, [handle.name for handle in handles]))
        self._shared.later(operation)
        return self._shared.keep(
            CoefficientHandle(Recipe(name, [operation], [handle.recipe for handle in handles]), problems)
        )

    @surviving
    def adjoint(self, coefficients: CoefficientHandle) -> Floats:
        """Slopes (d, m). One pass."""
        if coefficients.slopes is not None:
            return self._outer(total(coefficients.slopes))
        replies = self._shared.call([Operation("adjoint", (coefficients.name,), None, "each")])[0]
        return self._outer(total(replies))

    def _outer(self, slopes: Floats) -> Floats:
        return slopes if self.factors is None else slopes * self.factors[:, None]

    @surviving
    def dots(self, coefficients: CoefficientHandle, scores: ScoreHandle) -> Floats:
        """``u . s``, column by column."""
        if scores.name in coefficients.dots:
            return coefficients.dots[scores.name]
        return total(self._shared.call([Operation("dots", (coefficients.name, scores.name), None, "each")])[0])

    def _talk(self, talks: Sequence[Talk]) -> list[Any]:
        """Lead conversations side by side to their ends: the operations of one round are one message."""
        found: list[Any] = [None] * len(talks)
        going: dict[int, Any] = dict.fromkeys(range(len(talks)))
        while going:
            asked: dict[int, list[Operation]] = {}
            for c, reply in list(going.items()):
                try:
                    asked[c] = talks[c].send(reply)
                except StopIteration as end:
                    found[c] = end.value
                    del going[c]
            if asked:
                batch = [operation for operations in asked.values() for operation in operations]
                replies = iter(self._shared.call(batch))
                for c, operations in asked.items():
                    own = [reply for reply in [next(replies) for _ in operations] if reply is not None]
                    going[c] = own[0] if len(own) == 1 else own
        return found


def total(replies: Sequence[Floats]) -> Floats:
    """The sum, in the order of the shards."""
    total = np.array(replies[0], dtype=np.float64)
    for reply in replies[1:]:
        total += reply
    return total


def seen_of(replies: Sequence[Any], n_columns: int) -> list[Any]:
    """By column: the positives of each shard, and the sample of all."""
    return [
        ([reply[c].positives for reply in replies], np.concatenate([reply[c].sample for reply in replies]))
        for c in range(n_columns)
    ]
