"""How the coordinator reaches the shards: batches of operations out, replies back in the order of the shards.

An engine places shards, calls them, and tells which are lost. It knows nothing of rankings. Operations are names of
methods of `Shard` with arguments that can travel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from rankhinge.objective.sharded.shard import Shard

__all__ = ["Engine", "LocalEngine", "Operation", "ShardsLostError", "execute", "forget", "n_bytes"]


class Operation(NamedTuple):
    """One method of every shard.

    Attributes
    ----------
    method : str
    arguments : tuple
        The same for all shards.
    own : dict of tuple, optional
        By the number of a shard, arguments that are for it alone; they follow the others. Shards that are not named do
        nothing.
    reply : {"none", "each", "counts"}
        Nothing comes back; something of each shard; or counts, which are added up on the way.
    """

    method: str
    arguments: tuple[Any, ...] = ()
    own: dict[int, tuple[Any, ...]] | None = None
    reply: str = "none"

    def cut(self, shards: Sequence[int]) -> Operation:
        """The part of the operation that some of the shards need."""
        return (
            self
            if self.own is None
            else self._replace(own={number: self.own[number] for number in shards if number in self.own})
        )


class ShardsLostError(RuntimeError):
    """Shards have been lost; `numbers` says which. They can be recomputed."""

    def __init__(self, numbers: Sequence[int]) -> None:
        super().__init__(f"shards {list(numbers)[:10]} are lost")
        self.numbers = list(numbers)


class Engine(Protocol):
    """Where the shards are."""

    n_shards: int
    n_messages: int

    @property
    def bytes_out(self) -> int:
        """Of all messages so far."""

    @property
    def bytes_back(self) -> int:
        """Of all replies so far."""

    def call(self, batch: Sequence[Operation], shards: Sequence[int] | None = None) -> list[Any]:
        """Run a batch on all shards, or on some; for each operation the replies of the shards, in their order.

        Counts are merged to one. Raises `ShardsLostError`, or `EngineLostError`.
        """

    def recover(self, lost: Sequence[int]) -> list[int]:
        """Wait until these shards are there again, new; which of all had to be made anew."""

    def release(self) -> None:
        """Let go of the shards."""


def execute(shards: dict[int, Shard], batch: Sequence[Operation]) -> list[Any]:
    """Run a batch on the shards of one worker: for each operation a reply by the number of the shard, or merged."""
    answers: list[Any] = []
    for operation in batch:
        found = {}
        for number in sorted(shards):
            own = () if operation.own is None else operation.own.get(number)
            if own is not None:
                found[number] = getattr(shards[number], operation.method)(*operation.arguments, *own)
        if operation.reply == "counts":
            counts = list(found.values())
            answers.append(type(counts[0]).merged(counts).compact() if counts else None)
        else:
            answers.append(found if operation.reply == "each" else None)
    return answers


def forget(engine: Engine) -> None:
    """Let all shards drop the scores and coefficients that they hold; new ones hold none."""
    while True:
        try:
            engine.call([Operation("forget")])
            return
        except ShardsLostError as error:
            engine.recover(error.numbers)


def merge(batch: Sequence[Operation], answers: Sequence[list[Any]]) -> list[Any]:
    """The answers of all workers as those of all shards, in their order."""
    merged: list[Any] = []
    for place, operation in enumerate(batch):
        found = [answer[place] for answer in answers if answer[place] is not None]
        if operation.reply == "counts":
            merged.append(type(found[0]).merged(found))
        elif operation.reply == "each":
            together = {number: reply for own in found for number, reply in own.items()}
            merged.append([together[number] for number in sorted(together)])
        else:
            merged.append(None)
    return merged


def n_bytes(message: Any) -> int:
    """What the arrays and numbers of a message take."""
    if message is None or isinstance(message, str):
        return 0
    if isinstance(message, np.ndarray):
        return message.nbytes
    if isinstance(message, dict):
        return sum(n_bytes(part) for part in message.values())
    return sum(n_bytes(part) for part in message) if isinstance(message, tuple | list) else 8


class LocalEngine:
    """Shards in this process, dealt out to simulated workers.

    Parameters
    ----------
    shards : sequence of Shard
    n_workers : int
    """

    def __init__(self, shards: Sequence[Shard], n_workers: int = 1) -> None:
        self.shards, self.n_shards = list(shards), len(shards)
        self._workers = [part.tolist() for part in np.array_split(np.arange(self.n_shards), n_workers)]
        self.bytes_out = self.bytes_back = self.n_messages = 0

    def call(self, batch: Sequence[Operation], shards: Sequence[int] | None = None) -> list[Any]:
        """Run a batch on all shards, or on some."""
        wanted = set(range(self.n_shards) if shards is None else shards)
        answers = []
        for worker in self._workers:
            mine = [number for number in worker if number in wanted]
            if mine:
                message = [operation.cut(mine) for operation in batch]
                answers.append(execute({number: self.shards[number] for number in mine}, message))
                self.bytes_out += n_bytes(message)
                self.bytes_back += n_bytes(answers[-1])
        self.n_messages += 1
        return merge(batch, answers)

    def recover(self, lost: Sequence[int]) -> list[int]:
        """Nothing is lost here."""
        return list(lost)

    def release(self) -> None:
        """Let go of the shards."""
        self.shards = []
