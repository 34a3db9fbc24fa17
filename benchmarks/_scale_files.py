"""Rounds over a file that is not in memory, against `read()` of the same file, in turn."""

from __future__ import annotations

import mmap
import os
import shutil
import threading
import time

import numpy as np

import rankhinge
from rankhinge.features import feature_map
from rankhinge.losses import get_loss
from rankhinge.objective import RankingObjective
from rankhinge.problems import one_list

D, ROUNDS, MARK = 500, 5, 0.7
_BLOCK_ROWS, _READ = 1 << 15, 1 << 24


def blocks(n):
    """Rows of float32; each block is a multiple of the first, which takes no time to make."""
    first = np.random.default_rng(0).standard_normal((min(n, _BLOCK_ROWS), D), dtype=np.float32)
    for number, begin in enumerate(range(0, n, _BLOCK_ROWS)):
        yield first[: min(_BLOCK_ROWS, n - begin)] * np.float32(1 + number / 1024)


def forget(X, path):
    """Let the system forget what it has of the file: first the pages of the process, then those of the cache."""
    if isinstance(getattr(X, "_mmap", None), mmap.mmap):
        X._mmap.madvise(mmap.MADV_DONTNEED)
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read(path):
    """The file from its beginning to its end, in pieces of 16 MB."""
    buffer = bytearray(_READ)
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


class Anonymous(threading.Thread):
    """The most anonymous memory of this process while it runs, looked at ten times a second."""

    def __init__(self):
        super().__init__(daemon=True)
        self.ended, self.before, self.most = threading.Event(), self.now(), 0

    @staticmethod
    def now():
        with open("/proc/self/status") as file:
            return next(1024 * int(line.split()[1]) for line in file if line.startswith("RssAnon"))

    def run(self):
        while not self.ended.wait(0.1):
            self.most = max(self.most, self.now())


def out_of_core(folder, n_gigabytes, *, drop):
    """GB/s of both passes of five rounds and of `read()`, alternating."""
    room = shutil.disk_usage(folder).free / 1e9
    # A disk that is full is nobody's friend.
    size = min(n_gigabytes, 0.8 * room)
    n, path = int(size * 1e9 / (4 * D)), folder / "x.npy"
    began = time.perf_counter()
    X = rankhinge.spool(blocks(n), path, verbose=0)
    spooled = time.perf_counter() - began
    n_bytes = path.stat().st_size
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if n_bytes < memory and not drop:
        raise SystemExit(f"{n_bytes / 1e9:.3g} GB fit {memory / 1e9:.3g} GB of memory: --drop lets them be forgotten")
    relevant = np.random.default_rng(1).random(n) < 0.01
    objective = RankingObjective(feature_map(X), [one_list(relevant)], get_loss("ap"))
    rng, rows, watch = np.random.default_rng(2), [], Anonymous()
    watch.start()

    def timed(call):
        if drop:
            forget(X, path)
        began = time.perf_counter()
        found = call()
        return time.perf_counter() - began, found

    for _ in range(ROUNDS):
        w = rng.normal(size=(D, 1)) / np.sqrt(D)
        plain, _ = timed(lambda: read(path))
        first, scores = timed(lambda w=w: objective.score(w, np.arange(1)))
        middle, found = timed(lambda scores=scores: objective.evaluate(scores))
        second, _ = timed(lambda found=found: objective.adjoint(found.coefficients))
        rows.append([n_bytes / plain, n_bytes / first, n_bytes / second, 2 * n_bytes / (first + middle + second)])
    watch.ended.set()
    watch.join()
    speeds = np.array(rows) / 1e9
    return {
        "GB": n_bytes / 1e9,
        "GB asked for": n_gigabytes,
        "GB of memory": memory / 1e9,
        "forgotten before each pass": drop,
        "seconds to spool": spooled,
        "n": n,
        "d": D,
        "GB/s of read, score, adjoint, round": np.median(speeds, axis=0).tolist(),
        "rounds against read": (speeds[:, 3] / speeds[:, 0]).tolist(),
        "ratio": float(np.median(speeds[:, 3] / speeds[:, 0])),
        "mark": MARK,
        "GB of anonymous memory": watch.most / 1e9,
        "bytes a sample": (watch.most - watch.before) / n,
    }
