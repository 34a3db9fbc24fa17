"""What it costs to leave the samples on workers or on disk: rounds, whole fits, messages and bytes, against memory.

Starts its own workers on this machine. ``python benchmarks/scale.py`` measures workers, ``--out-of-core [GB]`` files,
``--shuffle`` lists that lie scattered; ``--quick`` is a trial of all that changes no page. ``--products FILE`` takes in
what ``make bench AGAINST=<commit> ONLY=float32`` has written. Writes JSON, and tables of docs/scaling.md. Ratios are
medians of calls that alternate; with as many workers as cores, both sides use the same cores.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import tempfile
import time
from pathlib import Path

import numpy as np
from _harness import machine_facts
from _scale_files import out_of_core
from _scale_report import write_page

from rankhinge import RankSVC
from rankhinge.inference.core import infer_one
from rankhinge.losses import get_loss

# Shapes, and what is demanded of 2 workers there: a round and a fit, as multiples of the time in memory.
MARKS = {"2000000x50": (1.6, 2.0), "500000x500": (1.2, 1.3), "200000x2000": (1.2, 1.3)}
QUICK = {"20000x20": (None, None)}
# Where the tight bound is measured as well, on 2 workers.
TIGHT = "500000x500"
# Messages an iteration of the opening.
MOST_MESSAGES = 4
# Scattered lists: rows, features, two numbers of queries, and how the times for these may differ.
SHUFFLE, SHUFFLE_QUICK, SHUFFLE_MARKS = (800_000, 50, (200, 200_000)), (200_000, 4, (20, 50_000)), (0.7, 1.3)
ROUNDS, FITS, SHUFFLES = 7, 3, 5
# Seconds before each call: the threads of a BLAS look for more work for some 30 ms after a product, on the cores that
# the other side needs.
PAUSE = 0.1
LOCAL = {"processes": True, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}


def make(n, d, share=0.01):
    """Rows, and labels of which this share is relevant."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d), dtype=np.float32)
    scores = X[:, : min(d, 20)] @ rng.normal(size=min(d, 20)) + 3 * rng.normal(size=n)
    return X, (scores > np.quantile(scores, 1 - share)).astype(int)


def in_turn(sides, repeats, *, warm_up):
    """Seconds of each side, an array, and what it has returned last; who begins changes from repeat to repeat."""
    seconds, found = {name: [] for name in sides}, {}
    for repeat in range(repeats + warm_up):
        for name in list(sides)[:: 1 if repeat % 2 else -1]:
            time.sleep(PAUSE)
            began = time.perf_counter()
            found[name] = sides[name](repeat)
            seconds[name].append(time.perf_counter() - began)
    return {name: np.array(values[warm_up:]) for name, values in seconds.items()}, found


def wire(engine):
    """What has gone over the wire: messages, bytes out and bytes back."""
    return np.array([engine.n_messages, engine.bytes_out, engine.bytes_back])


def measure_rounds(X, y, rows):
    """A round on workers, and NumPy's float32 products with local inference."""
    from rankhinge.problems.door import container_of

    loss, relevant, none, sent = get_loss("ap"), y == 1, np.arange(1), []
    weights = np.random.default_rng(1).normal(size=(ROUNDS + 1, X.shape[1])) / np.sqrt(X.shape[1])
    opened = container_of(rows).classes(rows, y, mask=None, pos_label=None)
    objective = opened.objective(loss, None)
    # As a fit with the default tol asks for it.
    objective.slack = 1e-6

    def on_workers(k):
        before = wire(objective.engine)
        found = objective.evaluate(objective.score(weights[k][:, None], none))
        slopes = objective.adjoint(found.coefficients)[:, 0]
        sent.append(wire(objective.engine) - before)
        return found.value[0], slopes

    def in_numpy(k):
        found = infer_one(X @ weights[k].astype(np.float32), relevant, loss)
        return found.value, found.coefficients.astype(np.float32) @ X

    try:
        seconds, found = in_turn({"workers": on_workers, "numpy": in_numpy}, ROUNDS, warm_up=1)
    finally:
        opened.close()
    (value, slopes), (expected, expected_slopes) = found["workers"], found["numpy"]
    np.testing.assert_allclose(value, expected, rtol=1e-4)
    np.testing.assert_allclose(slopes, expected_slopes, atol=1e-3 * np.abs(slopes).max())
    messages, out, back = np.median(sent[1:], axis=0).tolist()
    return {
        "seconds on workers": float(np.median(seconds["workers"])),
        "seconds in numpy": float(np.median(seconds["numpy"])),
        "ratio": float(np.median(seconds["workers"] / seconds["numpy"])),
        "messages": messages,
        "bytes out": out,
        "bytes back": back,
    }


@contextlib.contextmanager
def watched():
    """What engines send meanwhile; in iterations of quasi-Newton steps, which open a fit, apart."""
    from rankhinge.dask.engine import DaskEngine
    from rankhinge.solvers.descent import Descent

    call, step = DaskEngine.call, Descent.step
    sent = {"all": np.zeros(3), "opening": np.zeros(3), "steps": 0}

    def watched_call(self, *arguments):
        before = wire(self)
        replies = call(self, *arguments)
        sent["all"] += wire(self) - before
        return replies

    def watched_step(self):
        before = sent["all"].copy()
        step(self)
        sent["opening"] += sent["all"] - before
        sent["steps"] += 1

    DaskEngine.call, Descent.step = watched_call, watched_step
    try:
        yield sent
    finally:
        DaskEngine.call, Descent.step = call, step


def measure_fits(X, y, rows, options):
    """Whole fits on workers and in memory."""

    def on_workers(_):
        with watched() as sent:
            return RankSVC(**options).fit(rows, y), sent

    def in_memory(_):
        return RankSVC(**options).fit(X, y)

    seconds, found = in_turn({"workers": on_workers, "memory": in_memory}, FITS, warm_up=0)
    (model, sent), expected = found["workers"], found["memory"]
    messages, out, back = sent["all"].tolist()
    return {
        "bound": options["bound"],
        "seconds on workers": float(np.median(seconds["workers"])),
        "seconds in memory": float(np.median(seconds["memory"])),
        "ratio": float(np.median(seconds["workers"] / seconds["memory"])),
        "ratios": (seconds["workers"] / seconds["memory"]).tolist(),
        "objective": [expected.objective_, model.objective_],
        "passes": [expected.n_passes_, model.n_passes_],
        "iterations": int(model.n_iter_),
        "messages": messages,
        "messages an iteration": messages / int(model.n_iter_),
        "iterations of the opening": sent["steps"],
        "messages an iteration of the opening": float(sent["opening"][0]) / max(1, sent["steps"]),
        "bytes out": out,
        "bytes back": back,
        "bytes of one array of scores": 8 * len(y),
    }


def measure(shape, n_workers, bounds):
    """Rounds and fits of one shape."""
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    n, d = (int(part) for part in shape.split("x"))
    X, y = make(n, d)
    choices = [{"bound": bound, **({"C": 100.0} if bound == "convex" else {})} for bound in bounds]
    with LocalCluster(n_workers=n_workers, **LOCAL) as cluster, Client(cluster):
        rows = da.from_array(X, chunks=(-(-n // (2 * n_workers)), d)).persist()
        wait(rows)
        few = 2000 * n_workers
        for options in choices:
            # The first fit of a process compiles, or reads what was compiled.
            RankSVC(**options).fit(X[:5000], y[:5000])
            RankSVC(**options).fit(rows[:few].rechunk((few // (2 * n_workers), d)), y[:few])
        rounds = measure_rounds(X, y, rows)
        fits = [measure_fits(X, y, rows, options) for options in choices]
    marks = {"marks": MARKS.get(shape), "most messages": MOST_MESSAGES}
    return {"n": n, "d": d, "workers": n_workers, "round": rounds, "fits": fits} | marks


def measure_shuffle(n, d, sizes, n_workers=2):
    """Seconds until scattered lists lie where they are ranked, for so many queries."""
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    from rankhinge.problems.door import container_of

    # Lists without a relevant sample count for nothing, and stay: there must be few of them.
    X, y = make(n, d, share=0.3)
    options = {"qid_column": None, "query_weight": None, "gains": "exponential", "level_weights": None}
    with LocalCluster(n_workers=n_workers, **LOCAL) as cluster, Client(cluster):
        chunk = -(-n // (4 * n_workers))
        rows = da.from_array(X, chunks=(chunk, d)).persist()
        queries = {size: da.from_array(np.arange(n) % size, chunks=chunk).persist() for size in sizes}
        wait([rows, *queries.values()])

        def bring_together(size):
            opened = container_of(rows).queries(rows, y, qid=queries[size], loss=get_loss("ndcg"), **options)
            try:
                if not opened.moves:
                    raise RuntimeError(f"no row moves with {size} queries: that is no shuffle")
                objective = opened.objective(get_loss("ndcg"), None)
                objective.score(np.ones((d, 1)), np.arange(1))
            finally:
                opened.close()

        sides = {size: lambda _, size=size: bring_together(size) for size in sizes}
        seconds, _ = in_turn(sides, SHUFFLES, warm_up=1)
    few, many = (seconds[size] for size in sizes)
    return {
        "n": n,
        "d": d,
        "queries": list(sizes),
        "seconds": [float(np.median(few)), float(np.median(many))],
        "ratio": float(np.median(many / few)),
        "ratios": (many / few).tolist(),
        "marks": SHUFFLE_MARKS,
    }


def measure_workers(arguments, known, commit):
    """Rows of all shapes with all numbers of workers, one after the other; each takes the place of the one before."""
    for shape in list(QUICK) if arguments.quick else arguments.shapes:
        for n_workers in arguments.workers:
            usual = ["convex", "tight"] if shape == TIGHT and n_workers == 2 else ["convex"]
            row = measure(shape, n_workers, arguments.bounds or usual) | {"commit": commit}
            case, one = (row["n"], row["d"], row["workers"]), row["round"]
            known[:] = [*(other for other in known if (other["n"], other["d"], other["workers"]) != case), row]
            known.sort(key=lambda row: (row["d"], row["workers"]))
            print(
                f"{shape:>12}, {n_workers} workers: round {one['seconds on workers']:.3f} s, "
                f"{one['ratio']:.2f} of NumPy",
                *(
                    f"{fit['bound']} fit {fit['seconds on workers']:.2f} s, {fit['ratio']:.2f} of memory, "
                    f"{fit['messages an iteration of the opening']:.1f} messages an iteration of the opening"
                    for fit in row["fits"]
                ),
                sep="; ",
                flush=True,
            )
            yield row


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shapes", nargs="+", default=list(MARKS))
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--bounds", nargs="+", help=f"default: convex, and tight at {TIGHT} on 2 workers")
    parser.add_argument("--out-of-core", nargs="?", type=float, const=30.0, metavar="GB")
    parser.add_argument("--shuffle", action="store_true", help="scattered lists instead")
    parser.add_argument("--products", type=Path, metavar="FILE", help="float32 products against another commit")
    parser.add_argument("--drop", action="store_true", help="tell the system to forget the file before each pass")
    parser.add_argument("--folder", type=Path, help="where the file is written; default: that of temporary files")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/scale.json"))
    parser.add_argument("--page", type=Path, default=Path("docs/scaling.md"))
    arguments = parser.parse_args()
    known, quick = {}, arguments.quick
    if arguments.output.exists() and not quick:
        known = json.loads(arguments.output.read_text())

    def save():
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        arguments.output.write_text(json.dumps(known, indent=1, default=float) + "\n")
        if not quick:
            write_page(arguments.page, known)

    facts, machines = machine_facts("numpy", "dask", "distributed"), known.setdefault("machine", {})
    if arguments.shuffle or quick:
        known["shuffle"], machines["shuffle"] = measure_shuffle(*(SHUFFLE_QUICK if quick else SHUFFLE)), facts
        print(json.dumps(known["shuffle"]), flush=True)
    if arguments.products:
        known["products"] = json.loads(arguments.products.read_text())
    if not (arguments.shuffle or arguments.out_of_core or arguments.products) or quick:
        machines["workers"] = facts
        for _ in measure_workers(arguments, known.setdefault("workers", []), facts["commit"]):
            # It takes minutes, and what is known may be kept if the rest is interrupted.
            save()
    if arguments.out_of_core is not None or quick:
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            size = 0.02 if quick else arguments.out_of_core
            found = out_of_core(Path(folder), size, drop=arguments.drop or quick)
        known["out of core"], machines["out of core"] = found, facts
        print(json.dumps(found, indent=1))
    save()


if __name__ == "__main__":
    main()
