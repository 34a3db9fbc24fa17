"""Lists in simulated shards: plain objects, a list of them for each worker, and the bytes that would travel."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from rankhinge.inference.callbacks import compile_loss
from rankhinge.inference.spread import Finish, ListPart, compile_cut, infer_spread, infer_top, sample_stride
from rankhinge.losses import get_loss
from rankhinge.losses.cut import CutLoss


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
    stride, loss, n_negatives = sample_stride(n), get_loss(loss), int(np.count_nonzero(~relevant))
    sample = scores[::stride][~relevant[::stride]]
    positives = [part.scores[part.relevant] for part in parts]
    if isinstance(loss, CutLoss):
        compiled, infer = compile_cut(loss, n - n_negatives, n_negatives), infer_top
    else:
        compiled, infer = compile_loss(loss, n), infer_spread
    requests = infer(compiled, positives, n_negatives, options.pop("sample", sample), tight=tight, **options)
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
            common = n_bytes(request.settled) + n_bytes(request.centre) + n_bytes(request.top)
            mine_alone = [x for x in (request.shipped, request.positives, request.ranked) if x is not None]
            downs.append(max(common + sum(n_bytes(x[k]) for x in mine_alone for k in mine) for mine in workers))
        else:
            name = type(request).__name__.lower()
            replies = [[getattr(parts[k], name)(request) for k in mine] for mine in workers]
            if name != "ship":
                counts = type(replies[0][0])
                replies = [[counts.merged(mine).compact()] for mine in replies]
            reply = [one for mine in replies for one in mine]
            reply = reply if name == "ship" else counts.merged(reply)
            downs.append(n_bytes(request))
        ups.append(max(n_bytes(mine) for mine in replies))
    assert not np.isnan(u).any()
    return Found(found.loss + sum(sums), found.loss, found.slack, u, found.n_rounds, max(ups), max(downs))
