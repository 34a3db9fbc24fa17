"""Lists in simulated shards: plain objects, a list of them for each worker, and the bytes that would travel."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from rankhinge.inference.callbacks import compile_loss
from rankhinge.inference.spread import Counts, Finish, ListPart, infer_spread, sample_stride
from rankhinge.losses import get_loss


class Found(NamedTuple):
    value: float
    loss: float
    slack: float
    coefficients: np.ndarray
    n_rounds: int
    most_up: int
    most_down: int


def n_bytes(message: Any) -> int:
    """What the arrays and numbers of a message take."""
    if message is None:
        return 0
    if isinstance(message, np.ndarray):
        return message.nbytes
    return sum(n_bytes(part) for part in message) if isinstance(message, (tuple, list)) else 8


def spread_inference(scores, relevant, loss="ap", *, bounds=None, n_workers=1, tight=False, **options):
    """Inference with the list cut at `bounds`, the parts dealt out to workers in runs."""
    n = scores.size
    bounds = np.linspace(0, n, 9).astype(int) if bounds is None else np.asarray(bounds)
    u = np.full(n, np.nan)
    parts = [ListPart(scores[a:b], relevant[a:b], u[a:b]) for a, b in pairwise(bounds)]
    stride = sample_stride(n)
    requests = infer_spread(
        compile_loss(get_loss(loss), n),
        [part.scores[part.relevant] for part in parts],
        int(np.count_nonzero(~relevant)),
        scores[::stride][~relevant[::stride]],
        tight=tight,
        **options,
    )
    workers = np.array_split(np.arange(len(parts)), n_workers)
    reply, ups, downs, sums = None, [], [], []
    while True:
        try:
            request = requests.send(reply)
        except StopIteration as end:
            found = end.value
            break
        if isinstance(request, Finish):
            replies = [[parts[k].finish(request, k) for k in mine] for mine in workers]
            reply = sums = [total for of_worker in replies for total in of_worker]
            common = n_bytes(request.settled) + n_bytes(request.centre)
            mine_alone = [x for x in (request.shipped, request.positives, request.ranked) if x is not None]
            downs.append(max(common + sum(n_bytes(x[k]) for x in mine_alone for k in mine) for mine in workers))
        else:
            name = type(request).__name__.lower()
            replies = [[getattr(parts[k], name)(request) for k in mine] for mine in workers]
            if name != "ship":
                replies = [[Counts.merged(mine).compact()] for mine in replies]
            reply = [one for mine in replies for one in mine]
            reply = reply if name == "ship" else Counts.merged(reply)
            downs.append(n_bytes(request))
        ups.append(max(n_bytes(mine) for mine in replies))
    assert not np.isnan(u).any()
    return Found(found.loss + sum(sums), found.loss, found.slack, u, found.n_rounds, max(ups), max(downs))
