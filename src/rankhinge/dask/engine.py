"""Shards on the workers of a Dask cluster: futures with lineage, called where they lie, waited for with a deadline.

A call goes to all workers at once and is raced against the scheduler's list of workers. Waiting for a worker that has
gone would otherwise last until the connection times out. A lost shard is computed anew by the scheduler, which holds
its lineage; the coordinator then replays what it held.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from concurrent.futures import wait
from typing import Any

from distributed import Client

from rankhinge.dask.calls import Asked, Messenger
from rankhinge.objective.errors import EngineLostError
from rankhinge.objective.sharded import Operation, ShardsLostError
from rankhinge.objective.sharded.engine import merge

__all__ = ["DaskEngine"]

# Seconds after which the list of workers is looked at, while a call is under way.
_LOOK = 0.25
# Seconds for the scheduler to answer, and for lost shards to be there again or at least to be worked at.
_SCHEDULER_DEADLINE, _RECOVERY_DEADLINE = 30.0, 300.0


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
        replies = self._wait(self._race(sent))
        lost = [number for reply in replies for number in reply.get("lost", ())]
        if lost:
            raise ShardsLostError(sorted(lost))
        return merge(batch, [reply["replies"] for reply in replies])

    def _wait(self, talk: Coroutine[Any, Any, Any]) -> Any:
        """What a coroutine returns, for as long as there is a client that is connected.

        `Client.sync` would wait for ever, were the client closed by another thread.
        """
        loop = self.client.loop.asyncio_loop
        if self.client.status != "running" or not loop.is_running():
            talk.close()
            self._raise_if_lost()
        found = asyncio.run_coroutine_threadsafe(talk, loop)
        try:
            while not wait([found], _LOOK).done:
                self._raise_if_lost()
            return found.result()
        except EngineLostError:
            raise
        except Exception:
            # A connection that closes under a message is a symptom.
            self._raise_if_lost()
            raise
        finally:
            found.cancel()

    def _raise_if_lost(self) -> None:
        status = self.client.status
        if status != "running" or not self.client.loop.asyncio_loop.is_running():
            # A client that is connected again has forgotten its futures.
            state = "has lost the scheduler" if status == "connecting" else "is closed"
            raise EngineLostError(f"the client {state}, and with it the shards: the fit has ended")

    async def _race(self, sent: dict[str, Asked]) -> list[dict[str, Any]]:
        """Ask all workers, and look at the list of workers meanwhile; who has gone has lost its shards."""
        asked = {where: asyncio.ensure_future(self._messenger.ask(where, one)) for where, one in sent.items()}
        try:
            waiting = set(asked.values())
            while waiting:
                _, waiting = await asyncio.wait(waiting, timeout=_LOOK)
                if waiting:
                    alive = await self._workers()
                    gone = [number for where in asked if where not in alive for number in sent[where][0]]
                    if gone:
                        raise ShardsLostError(sorted(gone))
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

    async def _workers(self) -> set[str]:
        return set(await self._scheduler("ncores", workers=None))

    async def _scheduler(self, method: str, **arguments: Any) -> Any:
        """What the scheduler answers, within a deadline."""
        try:
            return await asyncio.wait_for(getattr(self.client.scheduler, method)(**arguments), _SCHEDULER_DEADLINE)
        except (TimeoutError, OSError) as error:
            raise EngineLostError(
                f"the scheduler has not answered within {_SCHEDULER_DEADLINE:g} seconds: the fit has ended without it"
            ) from error

    def recover(self, lost: Sequence[int]) -> list[int]:
        """Wait until every shard is on a worker; return which of them are new."""
        deadline = time.monotonic() + _RECOVERY_DEADLINE
        while True:
            found = self._wait(self._locate())
            if len(found) == self.n_shards:
                new = [number for number, (_, mark) in found.items() if self._marks.get(number) != mark]
                self._where = {number: where for number, (where, _) in found.items()}
                self._marks = {number: mark for number, (_, mark) in found.items()}
                return sorted(new)
            failed = next((future for future in self.futures if future.status == "error"), None)
            if failed is not None:
                failed.result()
            if time.monotonic() > deadline:
                raise EngineLostError(
                    f"{self.n_shards - len(found)} of {self.n_shards} shards were not there within "
                    f"{_RECOVERY_DEADLINE:g} seconds: are there workers, and have they room?"
                )
            time.sleep(0.05)

    async def _locate(self) -> dict[int, tuple[str, str]]:
        """Where each shard is, with its mark."""
        if any(future.status != "finished" for future in self.futures):
            return {}
        alive = await self._workers()
        who_has = await self._scheduler("who_has", keys=[future.key for future in self.futures])
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
