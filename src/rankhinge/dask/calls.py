"""Messages to workers: a handler on each of them, called on the worker's own port, else through the scheduler.

This is the one file that knows how. `Worker.handlers` is not a documented name of distributed's; it has been there in
all releases that this package allows.
"""

from __future__ import annotations

import asyncio
import pickle
from typing import Any

from distributed import Client, WorkerPlugin
from distributed.protocol import Serialize, to_serialize

from rankhinge.dask.waiting import Waiting
from rankhinge.dask.worker import answer

__all__ = ["Asked", "Handler", "Messenger"]

_NAME = "rankhinge-answer"
# Seconds for a first connection to a worker. Slower workers are called through the scheduler.
_CONNECT = 3.0

Asked = tuple[dict[int, tuple[str, str]], Any]
"""What a worker is asked: keys and marks of its shards, and the batch."""


class Handler(WorkerPlugin):
    """Lets a worker answer, including workers that start later."""

    name = _NAME

    def setup(self, worker: Any) -> None:
        """Register the handler."""
        self.worker = worker
        worker.handlers[_NAME] = self.handle

    def teardown(self, worker: Any) -> None:
        """Keep the handler: a later fit replaces it, and a message may still be on its way."""

    async def handle(self, message: Any) -> Any:
        """Answer a message; an error of ours comes back as a value, unlike one of the connection."""
        try:
            keys, batch = _unpacked(_bare(message))
            reply = await answer(keys, batch, self.worker)
        except Exception as error:
            reply = {"error": error}
        return to_serialize(_packed(reply))


class Messenger:
    """Sends requests to workers.

    Parameters
    ----------
    client : Client

    Attributes
    ----------
    bytes_out, bytes_back : int
        Of all messages and replies, as they travel.
    direct : dict of bool
        Whether a worker is called on its own port.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self.bytes_out = self.bytes_back = 0
        self.direct: dict[str, bool] = {}
        # Workers have the handler before this returns, and later ones before they take tasks.
        Waiting(client).register(Handler())

    async def ask(self, where: str, asked: Asked) -> dict[str, Any]:
        """The reply of a worker, or what it has failed with as ``"error"``; OSError if it cannot be reached."""
        packed = _packed(asked)
        self.bytes_out += len(packed)
        message = to_serialize(packed)
        if where not in self.direct:
            self.direct[where] = await self._reaches(where)
        if self.direct[where]:
            reply = await getattr(self.client.rpc(where), _NAME)(message=message)
        else:
            reply = await self.client.scheduler.proxy(worker=where, msg={"op": _NAME, "message": message})
        if reply is None:
            raise RuntimeError(f"the worker {where} lacks the handler of this fit: was its plugin removed?")
        reply = _bare(reply)
        self.bytes_back += len(reply)
        found: dict[str, Any] = _unpacked(reply)
        return found

    async def _reaches(self, where: str) -> bool:
        """Whether the worker's own port can be reached from here."""
        pool = self.client.rpc
        try:
            comm = await asyncio.wait_for(pool.connect(where), _CONNECT)
        except (TimeoutError, OSError):
            return False
        pool.reuse(where, comm)
        return True


def _bare(message: Any) -> Any:
    """The message that has arrived. Within one process (``Client(processes=False)``) it is still in its wrapper."""
    return message.data if isinstance(message, Serialize) else message


def _packed(value: Any) -> bytes:
    # In one piece: arrays that are taken out of it lie at even addresses, and can be written.
    return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)


def _unpacked(message: bytes) -> Any:
    return pickle.loads(message)
