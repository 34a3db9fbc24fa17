"""What it costs to leave the samples on workers: whole fits, rounds, messages and bytes, against memory.

Starts its own workers on this machine. ``python benchmarks/scale.py [--workers 1 2] [--shapes 2000000x50 ...]``; writes
JSON. Ratios are of one run; with as many workers as cores, both use the same cores.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

from rankhinge import RankSVC
from rankhinge.dask import engine as engines

SHAPES = ("2000000x50", "500000x500", "200000x2000")


def make(n, d):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d), dtype=np.float32)
    scores = X[:, : min(d, 20)] @ rng.normal(size=min(d, 20)) + 3 * rng.normal(size=n)
    return X, (scores > np.quantile(scores, 0.99)).astype(int)


def timed(call):
    began = time.perf_counter()
    found = call()
    return time.perf_counter() - began, found


def measure(n, d, n_workers, options):
    """Seconds of a fit in memory and on workers, and what travelled."""
    X, y = make(n, d)
    RankSVC(**options).fit(X[:5000], y[:5000])
    in_memory, expected = timed(lambda: RankSVC(**options).fit(X, y))
    last = {}
    call = engines.DaskEngine.call

    def noted(self, *arguments):
        replies = call(self, *arguments)
        last.update(messages=self.n_messages, out=self.bytes_out, back=self.bytes_back)
        return replies

    engines.DaskEngine.call = noted
    try:
        with (
            LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
            ) as cluster,
            Client(cluster),
        ):
            chunks = (-(-n // (2 * n_workers)), d)
            rows = da.from_array(X, chunks=chunks).persist()
            wait(rows)
            # The first fit of a worker compiles, or reads what was compiled.
            RankSVC(**options).fit(rows[: 4 * n_workers * 500].rechunk((500, d)), y[: 4 * n_workers * 500])
            on_workers, found = timed(lambda: RankSVC(**options).fit(rows, y))
    finally:
        engines.DaskEngine.call = call
    return {
        "n": n,
        "d": d,
        "workers": n_workers,
        "bound": options["bound"],
        "seconds in memory": in_memory,
        "seconds on workers": on_workers,
        "ratio": on_workers / in_memory,
        "objective": [expected.objective_, found.objective_],
        "passes": [expected.n_passes_, found.n_passes_],
        "iterations": found.n_iter_,
        "messages": last["messages"],
        "bytes out": last["out"],
        "bytes back": last["back"],
        "bytes of one array of scores": 8 * n,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shapes", nargs="+", default=SHAPES)
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--bounds", nargs="+", default=["convex"])
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/scale.json"))
    arguments = parser.parse_args()
    results = []
    for shape in arguments.shapes:
        n, d = (int(part) for part in shape.split("x"))
        for n_workers in arguments.workers:
            for bound in arguments.bounds:
                options = {"bound": bound, **({"C": 100.0} if bound == "convex" else {})}
                results.append(measure(n, d, n_workers, options))
                row = results[-1]
                print(
                    f"{shape:>12} {bound:>7} {n_workers} workers: {row['seconds on workers']:.2f} s, memory "
                    f"{row['seconds in memory']:.2f} s, ratio {row['ratio']:.2f}; {row['messages']} messages, "
                    f"{row['bytes back'] / 1e6:.1f} MB back",
                    flush=True,
                )
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(results, indent=1, default=float) + "\n")


if __name__ == "__main__":
    main()
