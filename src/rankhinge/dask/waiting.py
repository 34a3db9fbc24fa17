"""Waits for workers and the scheduler: each ends with what is waited for, or with an error that says who is silent.

A task may take as long as it takes: what ends a wait is that for some time nothing has come, and no worker that is
heard has anything to do. That time is ``dask.config.get("rankhinge.deadline")``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import wait
from typing import Any, NamedTuple

import dask
from dask.utils import parse_timedelta
from distributed import Client

from rankhinge.objective.errors import EngineLostError

__all__ = ["LOOK", "Silence", "Waiting"]

# Seconds after which is looked whether there still is a client, or the worker that is waited for.
LOOK = 0.25
# Seconds for the scheduler to answer.
_SCHEDULER_DEADLINE = 30.0
# Who is silent is given up by the scheduler after `distributed.scheduler.worker-ttl`, 5 minutes, for which it looks
# every 5 minutes: so long it has its chance.
_SETTING, _DEFAULT = "rankhinge.deadline", "15 minutes"
# Of the time that tasks have taken: how much later it may be noticed that they are done; and the least, in seconds.
_LATER, _SOON = 0.1, 0.001
# Of the deadline: how often is asked who has been heard.
_STEPS = 4


class Worker(NamedTuple):
    """What the scheduler knows of a worker: when it was heard last, and whether it is at work."""

    last_seen: float
    busy: bool


class Silence:
    """How long there has been no sign of life, by the scheduler's own clock."""

    def __init__(self) -> None:
        seconds = parse_timedelta(dask.config.get(_SETTING, _DEFAULT))
        if not seconds > 0:
            raise ValueError(f"the setting {_SETTING} of dask is {seconds:g} seconds: it must be positive")
        self.seconds = float(seconds)
        self.step = self.seconds / _STEPS
        self._heard: dict[str, tuple[float, float]] = {}
        self._progress: Any = None
        self._since = self._asked = time.monotonic()

    @property
    def due(self) -> bool:
        """Whether it is time to ask again."""
        return time.monotonic() - self._asked >= self.step

    def note(self, workers: Mapping[str, Worker], progress: Any = None) -> None:
        """Take in what the scheduler has said, and how much of what is waited for is there."""
        now = self._asked = time.monotonic()
        at_work = False
        for where, worker in workers.items():
            if where not in self._heard or self._heard[where][0] != worker.last_seen:
                self._heard[where] = (worker.last_seen, now)
                at_work |= worker.busy
        if at_work or progress != self._progress:
            self._progress, self._since = progress, now

    def refuse_idle(self, what: str) -> None:
        """Raise if nothing has come for too long, and nobody has been at work."""
        if time.monotonic() - self._since >= self.seconds:
            raise EngineLostError(
                f"{what}, and for {self.seconds:g} seconds no worker that is heard has been at work: are there "
                f"workers, do they run, and have they room? ({_SETTING} of dask's settings is this time)"
            )

    def refuse_silent(self, awaited: Sequence[str]) -> None:
        """Raise if one of these workers has not been heard for too long."""
        now = time.monotonic()
        for where in awaited:
            if now - self._heard.get(where, (0.0, now))[1] >= self.seconds:
                raise EngineLostError(
                    f"the worker {where} has not been heard for {self.seconds:g} seconds, and the scheduler has not "
                    f"removed it: does it hang? ({_SETTING} of dask's settings is this time)"
                )


class Waiting:
    """A client whose waits end.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Client) -> None:
        self.client = client

    def compute(self, tasks: Sequence[Any]) -> list[Any]:
        """Futures of tasks; nothing is waited for."""
        futures: list[Any] = self.client.compute(list(tasks))
        return futures

    def persist(self, tasks: Any) -> Any:
        """Tasks or a collection that are on their way; nothing is waited for."""
        return self.client.persist(tasks)

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        """The results of futures."""
        futures = list(futures)

        async def gathered() -> Any:
            await _ended(futures)
            return await self.client.gather(futures)

        def n_done() -> int:
            return sum(future.status == "finished" for future in futures)

        try:
            found: list[Any] = self.result(
                self._while_at_work(gathered(), n_done, lambda: f"{len(futures) - n_done()} tasks are not done")
            )
        except BaseException:
            # Whoever keeps the error would keep them on the workers.
            for future in futures:
                future.release()
            raise
        return found

    def register(self, plugin: Any) -> None:
        """Let all workers have a plugin; later ones get it before they take tasks."""

        async def registered() -> Any:
            return await self.client.register_plugin(plugin)

        self.result(self._while_at_work(registered(), lambda: None, lambda: "not all workers have taken a plugin"))

    def memory_limits(self) -> list[int]:
        """Of all workers, 0 if one has none."""
        known = self.result(self.scheduler("identity"))["workers"].values()
        return [int(worker["memory_limit"] or 0) for worker in known]

    def result(self, talk: Coroutine[Any, Any, Any]) -> Any:
        """What a coroutine returns, for as long as there is a client that is connected.

        `Client.sync` would wait for ever, were the client closed by another thread.
        """
        loop = self.client.loop.asyncio_loop
        if self.client.status != "running" or not loop.is_running():
            talk.close()
            self._raise_if_lost()
        found = asyncio.run_coroutine_threadsafe(talk, loop)
        try:
            while not wait([found], LOOK).done:
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

    async def workers(self) -> dict[str, Worker]:
        """Those that the scheduler knows."""
        known = (await self.scheduler("identity"))["workers"]
        tasks = await self.scheduler("processing", workers=None)
        return {
            where: Worker(worker["last_seen"], worker["status"] == "running" and bool(tasks.get(where)))
            for where, worker in known.items()
        }

    async def scheduler(self, method: str, **arguments: Any) -> Any:
        """What the scheduler answers, within a deadline."""
        try:
            return await asyncio.wait_for(getattr(self.client.scheduler, method)(**arguments), _SCHEDULER_DEADLINE)
        except (TimeoutError, OSError) as error:
            raise EngineLostError(
                f"the scheduler has not answered within {_SCHEDULER_DEADLINE:g} seconds: the fit has ended without it"
            ) from error

    async def _while_at_work(self, talk: Awaitable[Any], progress: Callable[[], Any], what: Callable[[], str]) -> Any:
        task, silence = asyncio.ensure_future(talk), Silence()
        try:
            while not (await asyncio.wait([task], timeout=silence.step))[0]:
                silence.note(await self.workers(), progress())
                silence.refuse_idle(what())
            return task.result()
        finally:
            task.cancel()

    def _raise_if_lost(self) -> None:
        status = self.client.status
        if status != "running" or not self.client.loop.asyncio_loop.is_running():
            # A client that is connected again has forgotten its futures.
            state = "has lost the scheduler" if status == "connecting" else "is closed"
            raise EngineLostError(f"the client {state}, and with it the shards: the fit has ended")


async def _ended(futures: Sequence[Any]) -> None:
    """Wait until all are finished, or one has failed.

    `Client.gather` would leave tasks of its own behind when it is cancelled.
    """
    began = time.monotonic()
    while True:
        states = {future.status for future in futures}
        if states <= {"finished"} or states & {"error", "cancelled"}:
            return
        await asyncio.sleep(min(LOOK, max(_SOON, _LATER * (time.monotonic() - began))))
