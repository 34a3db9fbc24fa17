"""What it costs to leave the samples on workers or on disk: rounds, whole fits, messages and bytes, against memory.

Starts its own workers on this machine. ``python benchmarks/scale.py`` measures workers, ``--out-of-core [GB]`` files,
``--shuffle`` lists that lie scattered; ``--quick`` is a trial of all that changes no page. Writes JSON, and tables of
docs/scaling.md. Ratios are medians of calls that alternate; with as many workers as cores, both sides use the same
cores.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
from _scale_files import out_of_core
from _scale_report import write_page

from rankhinge import RankSVC
from rankhinge.inference.core import infer_one
from rankhinge.losses import get_loss

# Shapes, and what is demanded of 2 workers there: a round and a fit, as multiples of the time in memory.
MARKS = {"2000000x50": (1.6, 2.0), "500000x500": (1.2, 1.3), "200000x2000": (1.2, 1.3)}
QUICK = {"20000x20": (None, None)}
REPEATS = 7


def make(n, d):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d), dtype=np.float32)
    scores = X[:, : min(d, 20)] @ rng.normal(size=min(d, 20)) + 3 * rng.normal(size=n)
    return X, (scores > np.quantile(scores, 0.99)).astype(int)


def timed(call):
    began = time.perf_counter()
    found = call()
    return time.perf_counter() - began, found


def noted(engine, call):
    """Seconds of a call, and what went over the wire."""
    before = engine.n_messages, engine.bytes_out, engine.bytes_back
    seconds, found = timed(call)
    after = engine.n_messages, engine.bytes_out, engine.bytes_back
    return seconds, found, [int(b - a) for a, b in zip(before, after, strict=True)]


def measure_rounds(X, y, rows):
    """A round on workers, and NumPy's float32 products with local inference, in turn."""
    from rankhinge.problems.door import container_of

    loss, rng, relevant, none = get_loss("ap"), np.random.default_rng(1), y == 1, np.arange(1)
    opened = container_of(rows).classes(rows, y, mask=None, pos_label=None)
    objective = opened.objective(loss, None)
    # As a fit with the default tol asks for it.
    objective.slack = 1e-6
    seconds, sent = {"workers": [], "numpy": []}, []

    def on_workers(w):
        found = objective.evaluate(objective.score(w[:, None], none))
        return found.value[0], objective.adjoint(found.coefficients)[:, 0]

    def in_numpy(w):
        found = infer_one(X @ w.astype(np.float32), relevant, loss)
        return found.value, found.coefficients.astype(np.float32) @ X

    try:
        for _ in range(REPEATS + 1):
            w = rng.normal(size=X.shape[1]) / np.sqrt(X.shape[1])
            there, (value, slopes), wire = noted(objective.engine, lambda w=w: on_workers(w))
            here, (expected, expected_slopes) = timed(lambda w=w: in_numpy(w))
            np.testing.assert_allclose(value, expected, rtol=1e-4)
            np.testing.assert_allclose(slopes, expected_slopes, atol=1e-3 * np.abs(slopes).max())
            seconds["workers"].append(there)
            seconds["numpy"].append(here)
            sent.append(wire)
    finally:
        opened.close()
    # The first one of each warms up.
    there, here = (np.array(seconds[name][1:]) for name in ("workers", "numpy"))
    messages, out, back = np.median(sent[1:], axis=0).tolist()
    return {
        "seconds on workers": float(np.median(there)),
        "seconds in numpy": float(np.median(here)),
        "ratio": float(np.median(there / here)),
        "messages": messages,
        "bytes out": out,
        "bytes back": back,
    }


def measure_fits(X, y, rows, options):
    """A whole fit in memory and on workers."""
    from rankhinge.dask import engine as engines

    last, call = {}, engines.DaskEngine.call

    def watched(self, *arguments):
        replies = call(self, *arguments)
        last.update(messages=self.n_messages, out=self.bytes_out, back=self.bytes_back)
        return replies

    in_memory, expected = timed(lambda: RankSVC(**options).fit(X, y))
    engines.DaskEngine.call = watched
    try:
        on_workers, found = timed(lambda: RankSVC(**options).fit(rows, y))
    finally:
        engines.DaskEngine.call = call
    return {
        "bound": options["bound"],
        "seconds on workers": on_workers,
        "seconds in memory": in_memory,
        "ratio": on_workers / in_memory,
        "objective": [expected.objective_, found.objective_],
        "passes": [expected.n_passes_, found.n_passes_],
        "iterations": int(found.n_iter_),
        "messages": last["messages"],
        "messages an iteration": last["messages"] / int(found.n_iter_),
        "bytes out": last["out"],
        "bytes back": last["back"],
        "bytes of one array of scores": 8 * len(y),
    }


def measure(shape, n_workers, bounds):
    """Rounds and fits of one shape."""
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    n, d = (int(part) for part in shape.split("x"))
    X, y = make(n, d)
    choices = [{"bound": bound, **({"C": 100.0} if bound == "convex" else {})} for bound in bounds]
    local = {"processes": True, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=n_workers, **local) as cluster, Client(cluster):
        rows = da.from_array(X, chunks=(-(-n // (2 * n_workers)), d)).persist()
        wait(rows)
        few = 2000 * n_workers
        for options in choices:
            # The first fit of a process compiles, or reads what was compiled.
            RankSVC(**options).fit(X[:5000], y[:5000])
            RankSVC(**options).fit(rows[:few].rechunk((few // (2 * n_workers), d)), y[:few])
        rounds = measure_rounds(X, y, rows)
        fits = [measure_fits(X, y, rows, options) for options in choices]
    return {"n": n, "d": d, "workers": n_workers, "round": rounds, "fits": fits}


def measure_shuffle(n, d, sizes, n_workers=2):
    """Seconds until scattered lists lie where they are ranked, for so many queries, in turn."""
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    from rankhinge.problems.door import container_of

    X, y = make(n, d)
    seconds = {size: [] for size in sizes}
    local = {"processes": True, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    options = {"qid_column": None, "query_weight": None, "gains": "exponential", "level_weights": None}
    with LocalCluster(n_workers=n_workers, **local) as cluster, Client(cluster):
        chunk = -(-n // (4 * n_workers))
        rows = da.from_array(X, chunks=(chunk, d)).persist()
        queries = {size: da.from_array(np.arange(n) % size, chunks=chunk).persist() for size in sizes}
        wait([rows, *queries.values()])
        for _ in range(4):
            for size, qid in queries.items():

                def bring_together(qid=qid):
                    opened = container_of(rows).queries(rows, y, qid=qid, loss=get_loss("ndcg"), **options)
                    objective = opened.objective(get_loss("ndcg"), None)
                    return opened, objective.score(np.ones((d, 1)), np.arange(1)), objective.counts()

                spent, (opened, *_) = timed(bring_together)
                opened.close()
                seconds[size].append(spent)
    # The first one of each warms up.
    medians = {size: float(np.median(values[1:])) for size, values in seconds.items()}
    few, many = (medians[size] for size in sizes)
    return {"n": n, "d": d, "queries": list(sizes), "seconds": [few, many], "ratio": many / few, "marks": [0.7, 1.3]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shapes", nargs="+", default=list(MARKS))
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--bounds", nargs="+", default=["convex"])
    parser.add_argument("--out-of-core", nargs="?", type=float, const=30.0, metavar="GB")
    parser.add_argument("--shuffle", action="store_true", help="scattered lists instead")
    parser.add_argument("--drop", action="store_true", help="tell the system to forget the file before each pass")
    parser.add_argument("--folder", type=Path, help="where the file is written; default: that of temporary files")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/scale.json"))
    parser.add_argument("--page", type=Path, default=Path("docs/scaling.md"))
    arguments = parser.parse_args()
    shapes, known = (list(QUICK) if arguments.quick else arguments.shapes), {}
    if arguments.output.exists() and not arguments.quick:
        known = json.loads(arguments.output.read_text())
    if arguments.shuffle or arguments.quick:
        known["shuffle"] = measure_shuffle(
            *((8000, 20, (20, 2000)) if arguments.quick else (800_000, 50, (200, 200_000)))
        )
        print(json.dumps(known["shuffle"]), flush=True)
    if not (arguments.shuffle or arguments.out_of_core) or arguments.quick:
        known["workers"] = []
        for shape in shapes:
            for n_workers in arguments.workers:
                row = measure(shape, n_workers, arguments.bounds) | {"marks": MARKS.get(shape)}
                known["workers"].append(row)
                one, fit = row["round"], row["fits"][0]
                print(
                    f"{shape:>12}, {n_workers} workers: round {one['seconds on workers']:.3f} s, {one['ratio']:.2f} of "
                    f"NumPy; fit {fit['seconds on workers']:.2f} s, {fit['ratio']:.2f} of memory, "
                    f"{fit['messages an iteration']:.1f} messages an iteration",
                    flush=True,
                )
    if arguments.out_of_core is not None or arguments.quick:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            size = 0.02 if arguments.quick else arguments.out_of_core
            found = out_of_core(Path(folder), size, drop=arguments.drop or arguments.quick)
        known["out of core"] = found
        print(json.dumps(found, indent=1))
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(known, indent=1, default=float) + "\n")
    if not arguments.quick:
        write_page(arguments.page, known)


if __name__ == "__main__":
    main()
