"""Shards on the workers of a Dask cluster: futures with lineage, called where they lie, waited for with a deadline.

A call goes to all workers at once and is raced against the scheduler's list of workers. Waiting for a worker that has
gone would otherwise last until the connection times out. A lost shard is computed anew by the scheduler, which holds
its lineage; the coordinator then replays what it held.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from distributed import Client

from rankhinge.dask.calls import Asked, Messenger
from rankhinge.dask.waiting import LOOK, Silence, Waiting
from rankhinge.objective.sharded import Operation, ShardsLostError
from rankhinge.objective.sharded.engine import merge

__all__ = ["DaskEngine"]

# Seconds between two looks at shards that are being made anew.
_LOOK_AT_SHARDS = 0.05


class DaskEngine:
    """An engine over futures of `rankhinge.dask.worker.Held`.

    Parameters
    ----------
    client : Client
    futures : sequence of Future
    """

    def __init__(self, client: Client, futures: Sequence[Any]) -> None:
        self.client, self.futures, self.n_shards = client, list(futures), len(futures)
        self.n_messages = 0
        self._waiting = Waiting(client)
        self._messenger = Messenger(client)
        self._where: dict[int, str] = {}
        self._marks: dict[int, str] = {}
        self.recover([])

    @property
    def bytes_out(self) -> int:
        """Bytes of all messages."""
        return self._messenger.bytes_out

    @property
    def bytes_back(self) -> int:
        """Bytes of all replies."""
        return self._messenger.bytes_back

    def call(self, batch: Sequence[Operation], shards: Sequence[int] | None = None) -> list[Any]:
        """Run a batch on all shards, or on some."""
        messages: dict[str, dict[int, tuple[str, str]]] = {}
        for number in range(self.n_shards) if shards is None else shards:
            messages.setdefault(self._where[number], {})[number] = (self.futures[number].key, self._marks[number])
        sent = {where: (keys, [op.cut(list(keys)) for op in batch]) for where, keys in messages.items()}
        self.n_messages += 1
        replies = self._waiting.result(self._race(sent))
        lost = [number for reply in replies for number in reply.get("lost", ())]
        if lost:
            raise ShardsLostError(sorted(lost))
        return merge(batch, [reply["replies"] for reply in replies])

    async def _race(self, sent: dict[str, Asked]) -> list[dict[str, Any]]:
        """Ask all workers, and watch the list of workers meanwhile. A worker that has gone has lost its shards."""
        asked = {where: asyncio.ensure_future(self._messenger.ask(where, one)) for where, one in sent.items()}
        silence = Silence()
        try:
            waiting = set(asked.values())
            while waiting:
                _, waiting = await asyncio.wait(waiting, timeout=LOOK)
                if waiting:
                    alive = await self._alive()
                    gone = [number for where in asked if where not in alive for number in sent[where][0]]
                    if gone:
                        raise ShardsLostError(sorted(gone))
                if waiting and silence.due:
                    silence.note(await self._waiting.workers())
                    silence.refuse_silent([where for where, task in asked.items() if task in waiting])
            return [self._read(task, list(sent[where][0])) for where, task in asked.items()]
        finally:
            for task in asked.values():
                task.cancel()

    @staticmethod
    def _read(task: asyncio.Task[dict[str, Any]], numbers: list[int]) -> dict[str, Any]:
        """The reply of a worker; one that could not be reached has lost its shards."""
        try:
            reply = task.result()
        except OSError:
            return {"lost": numbers}
        if "error" in reply:
            raise reply["error"]
        return reply

    def recover(self, lost: Sequence[int]) -> list[int]:
        """Wait until every shard is on a worker; return which of them are new."""
        silence = Silence()
        while True:
            found = self._waiting.result(self._locate())
            if len(found) == self.n_shards:
                new = [number for number, (_, mark) in found.items() if self._marks.get(number) != mark]
                self._where = {number: where for number, (where, _) in found.items()}
                self._marks = {number: mark for number, (_, mark) in found.items()}
                return sorted(new)
            failed = next((future for future in self.futures if future.status == "error"), None)
            if failed is not None:
                failed.result()
            if silence.due:
                n_made = sum(future.status == "finished" for future in self.futures)
                silence.note(self._waiting.result(self._waiting.workers()), n_made)
                silence.refuse_idle(f"{self.n_shards - n_made} of {self.n_shards} shards are not there")
            time.sleep(_LOOK_AT_SHARDS)

    async def _alive(self) -> set[str]:
        return set(await self._waiting.scheduler("ncores", workers=None))

    async def _locate(self) -> dict[int, tuple[str, str]]:
        """Where each shard is, with its mark."""
        if any(future.status != "finished" for future in self.futures):
            return {}
        alive = await self._alive()
        who_has = await self._waiting.scheduler("who_has", keys=[future.key for future in self.futures])
        keys: dict[str, dict[int, tuple[str, str]]] = {}
        for number, future in enumerate(self.futures):
            holders = sorted(set(who_has.get(future.key, ())) & alive)
            if holders:
                # The worker that had the shard, if it still has it.
                where = self._where.get(number, "")
                keys.setdefault(where if where in holders else holders[0], {})[number] = (future.key, "")
        sent: dict[str, Asked] = {where: (mine, None) for where, mine in keys.items()}
        try:
            replies: list[Any] = await self._race(sent)
        except ShardsLostError:
            return {}
        return {
            number: (where, mark)
            for where, reply in zip(sent, replies, strict=True)
            for number, mark in reply.items()
            if isinstance(number, int)
        }

    def release(self) -> None:
        """Let go of the shards."""
        for future in self.futures:
            future.release()
        self.futures = []
