"""Handles that are recipes: what the coordinator knows of scores and coefficients that lie on the shards."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankhinge.objective.errors import EngineLostError
from rankhinge.objective.sharded.engine import Engine, Operation, ShardsLostError

__all__ = ["CoefficientHandle", "Handle", "Recipe", "ScoreHandle", "Shared", "surviving"]

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
Call = TypeVar("Call", bound=Callable[..., Any])
# Consecutive losses of shards after which a call is given up.
_MOST_LOSSES = 20


class Recipe:
    """How to make scores or coefficients of this name again.

    Parameters
    ----------
    name : str
    log : list of Operation
    sources : sequence of Recipe
        What has to be there before.
    """

    def __init__(self, name: str, log: list[Operation], sources: Sequence[Recipe] = ()) -> None:
        self.name, self.log, self.sources = name, log, list(sources)


class Handle:
    """Scores or coefficients on the shards: their recipe, and the problem of each column."""

    def __init__(self, recipe: Recipe, problems: Indices) -> None:
        self.recipe, self.name, self.problems = recipe, recipe.name, problems


class ScoreHandle(Handle):
    """Scores of the columns of `weights` (d, m).

    ``seen[c]`` are those of the positives, shard by shard, and of the sample. `ahead` is the name of the direction
    along which they were reached, if they were.
    """

    def __init__(self, name: str, problems: Indices, weights: Floats, seen: list[Any], ahead: str = "") -> None:
        super().__init__(Recipe(name, [Operation("score", (name, weights, problems))]), problems)
        self.weights, self.seen, self.ahead = weights, seen, ahead


class CoefficientHandle(Handle):
    """Coefficients.

    `dots` are their products with scores that are known already, by the name of these; `slopes` those of the shards,
    if they are known.
    """

    def __init__(
        self,
        recipe: Recipe,
        problems: Indices,
        dots: dict[str, Floats] | None = None,
        slopes: list[Floats] | None = None,
    ) -> None:
        super().__init__(recipe, problems)
        self.dots, self.slopes = dots or {}, slopes


def surviving(call: Call) -> Call:
    """A call that is repeated when shards are lost, as soon as they are back."""

    @wraps(call)
    def whole(self: Any, *arguments: Any, **options: Any) -> Any:
        for _ in range(_MOST_LOSSES):
            try:
                return call(self, *arguments, **options)
            except ShardsLostError as error:
                self._shared.restore(error.numbers)
        raise EngineLostError(f"shards were lost {_MOST_LOSSES} times in one call: the workers do not stay alive")

    return whole  # type: ignore[return-value]


class Shared:
    """What an objective and its parts have in common: the engine, the names, and what waits to be sent."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.pending: list[Operation] = []
        self.dropped: list[str] = []
        self.handles: weakref.WeakValueDictionary[str, Handle] = weakref.WeakValueDictionary()
        self.in_flight: list[str] = []
        self.slack_used = 0.0
        self.expecting = False
        self._interrupted = False
        self._numbers = itertools.count()

    def name(self) -> str:
        return f"a{next(self._numbers)}"

    def keep(self, handle: Handle) -> Any:
        """Remember a handle for as long as somebody holds it; then its name is dropped."""
        self.handles[handle.name] = handle
        weakref.finalize(handle, self.dropped.append, handle.name)
        return handle

    def later(self, operation: Operation) -> None:
        """An operation without a reply."""
        self.pending.append(operation)
        self.in_flight.append(operation.arguments[0])

    def call(self, operations: Sequence[Operation]) -> list[Any]:
        """Send operations, after those that wait; the replies."""
        if self._interrupted:
            self.restore([])
            self._interrupted = False
        n_dropped = len(self.dropped)
        batch = [*self.pending, *operations]
        if n_dropped:
            batch.append(Operation("drop", (self.dropped[:n_dropped],)))
        n_pending = len(self.pending)
        try:
            replies = self.engine.call(batch)
        except KeyboardInterrupt:
            # Nobody knows what the shards have done of this: what was under way is made again before the next call.
            self._interrupted = True
            raise
        self.pending, self.in_flight = [], []
        del self.dropped[:n_dropped]
        return replies[n_pending : n_pending + len(operations)]

    def restore(self, lost: Sequence[int]) -> None:
        """Wait for lost shards, and make again what they held; on the others what was under way."""
        while True:
            lost = self.engine.recover(lost)
            under_way = set(self.in_flight)
            try:
                kept = list(self.handles.values())
                if lost:
                    self.engine.call(self._recipes(kept), lost)
                others = sorted(set(range(self.engine.n_shards)) - set(lost))
                unfinished = [handle for handle in kept if handle.name in under_way]
                if others and unfinished:
                    self.engine.call(self._recipes(unfinished), others)
                self.pending, self.in_flight = [], []
                return
            except ShardsLostError as error:
                lost = sorted({*lost, *error.numbers})

    def _recipes(self, handles: Sequence[Handle]) -> list[Operation]:
        """Operations that make these handles, each after what it is made of."""
        done: set[str] = set()
        batch: list[Operation] = []

        def make(recipe: Recipe) -> None:
            if recipe.name not in done:
                for source in recipe.sources:
                    make(source)
                done.add(recipe.name)
                batch.extend(operation._replace(reply="none") for operation in recipe.log)

        for handle in handles:
            make(handle.recipe)
        batch.append(Operation("drop", (sorted(done - set(self.handles)),)))
        return batch
