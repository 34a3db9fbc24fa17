"""Fits to odd data, judged: ``make fuzz SECONDS=60``.

A seed is a case: `draw` makes data, machine and parameters of it, `play` fits and asks `tests.judge`. Nine in ten
cases are small. Nothing else is random, so that ``python -m tests.fuzz --replay SEED`` plays a case again. What fails
is written to ``.make/fuzz`` as a snippet that can be run.

A case passes if nothing but warnings that the library means to give comes out of the fit, and if what the model claims
holds; see `tests.judge`. Other routes lead to the same minimum: dense for sparse, another solver, centred features,
some columns left out. Each is judged on its own features, and their points are tried against the first fit's lower
bound. What is counted are fits, *claims* (objective, lower bound, gap and status of one problem) and those among them
that say "converged".
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from rankhinge import RankSVC, SVMRanker, rank_svm_path
from rankhinge.latent import Bags
from tests import fuzz_data, fuzz_later, fuzz_more, judge
from tests.fuzz_data import Case, container, features

FOLDER = Path(__file__).resolve().parent.parent / ".make" / "fuzz"
SOLVERS = ("bundle", "quasi-newton", "cutting-plane", "frank-wolfe", "subgradient")
KINDS = {"svc": 40, "ranker": 20, "path": 10, "cv": 6, "ranker cv": 4, "latent": 12, "labels": 8}
# What a fit may say: that it has not converged, that all coefficients are 0, that a label is constant, …
EXPECTED = (UserWarning,)
MOST_ENTRIES = 10**6
# Seeds from here on know the kinds of `fuzz_more`, those of `fuzz_later`, and warm starts of all kinds.
FIRST, LATER, WARM = 700_000, 3_000_000, 7_000_000
MAKERS = fuzz_more.MAKERS | fuzz_later.MAKERS


def draw(seed: int) -> Case:
    """The case of a seed. Those from `FIRST`, `LATER` and `WARM` on know more; the others are what they were."""
    rng = np.random.default_rng(seed)
    facts: dict[str, Any] = {"seed": seed}
    large = rng.random() < 0.1
    kind = str(rng.choice(list(KINDS), p=np.array(list(KINDS.values())) / sum(KINDS.values())))
    n = int(np.exp(rng.uniform(np.log(5), np.log(2000 if large else 200))))
    d = int(np.exp(rng.uniform(0, np.log(3000 if large else 300))))
    if large and rng.random() < 0.5:
        # Few samples with many features go a way of their own.
        n, d = int(rng.integers(5, 60)), int(rng.integers(1024, 3000))
    d = min(d, MOST_ENTRIES // n)
    X = features(rng, n, d, facts)
    C = 10.0 ** rng.uniform(-6, 8)
    options: dict[str, Any] = {
        "loss": str(rng.choice(judge.LOSSES)),
        "C": float(C),
        "tol": float(rng.choice([1e-1, 1e-2, 1e-3, 1e-6], p=[0.1, 0.2, 0.6, 0.1])),
        "max_iter": int(rng.integers(1, 101)) if not large else 20,
        "random_state": int(rng.integers(100)),
    }
    if kind in ("svc", "ranker", "labels"):
        options["solver"] = str(rng.choice(SOLVERS, p=[0.5, 0.15, 0.15, 0.1, 0.1]))
        options["bound"] = str(rng.choice(["convex", "tight"], p=[0.8, 0.2]))
        if options["bound"] == "tight":
            if options["loss"] == "zero-one":
                options["loss"] = "ap"
            options["init"] = str(rng.choice(["logistic", "convex"]))
            # What belongs to the convex bound; the tight one has a reach.
            del options["C"], options["solver"]
            if rng.random() < 0.5:
                options["reach"] = float(10.0 ** rng.uniform(-3, 3))
    case = Case(kind, X, np.empty(0), options, facts=facts)
    if seed >= FIRST:
        fuzz_more.widen(np.random.default_rng([seed, 1]), case)
    if seed >= LATER:
        fuzz_later.widen(np.random.default_rng([seed, 2]), case)
    MAKERS.get(case.kind, fuzz_data.binary)(rng, case)
    case.X = container(rng, case.X, facts)
    if case.kind in ("svc", "ranker") and options["bound"] == "convex" and rng.random() < 0.2:
        case.warm = facts["warm"] = 10.0 ** rng.uniform(-3, 15)
    if seed >= WARM:
        fuzz_later.warm(np.random.default_rng([seed, 3]), case)
    return case


def fitted(case: Case, X: Any, **changes: Any) -> Any:
    options = case.options | changes
    if case.kind in fuzz_more.OF_BAGS:
        offsets = case.facts["offsets"]
        return fuzz_more.OF_BAGS[case.kind](**options).fit(Bags(X, offsets=offsets), case.y)
    if case.kind in fuzz_later.SEARCHES:
        return fuzz_later.search(case, X, options)
    machine = SVMRanker if case.kind == "ranker" else RankSVC
    model = machine(**options)
    if case.warm:
        model.set_params(warm_start=True, max_iter=1).fit(X, case.y, **case.given)
        shape = model.coef_.shape
        model.coef_ = case.warm * np.random.default_rng(case.facts["seed"]).normal(size=shape)
        model.set_params(max_iter=options["max_iter"])
    return model.fit(X, case.y, **case.given)


def routes(case: Case) -> list[tuple[Any, Callable[[Any], np.ndarray]]]:
    """Other ways to the same minimum: features, and coefficients in terms of the features as they are."""
    dense = case.X.toarray() if sparse.issparse(case.X) else np.asarray(case.X)
    dense = dense.astype(np.float64)
    found: list[tuple[Any, Callable[[Any], np.ndarray]]] = []
    if case.kind not in ("svc", "labels", "ranker") or case.options["bound"] != "convex":
        return found
    other = dense if sparse.issparse(case.X) else sparse.csr_array(dense)
    found.append((other, lambda model: model.coef_))
    centred = (dense.astype(judge.WIDE) - dense.astype(judge.WIDE).mean(axis=0)).astype(np.float64)
    if case.options["loss"] != "zero-one":
        found.append((centred, lambda model: model.coef_))
    # Without the columns whose size is beyond all others': their coefficients are 0.
    sizes = np.abs(dense).max(axis=0)
    small = sizes <= 1e3 * max(np.median(sizes), np.finfo(float).tiny)
    if 0 < np.count_nonzero(small) < small.size:

        def widened(model: Any) -> np.ndarray:
            coef = np.zeros((*model.coef_.shape[:-1], small.size))
            coef[..., small] = model.coef_
            return coef

        found.append((dense[:, small], widened))
    return found


def counted(model: Any, n_claims: int) -> Counter[str]:
    """One fit, the claims of it that were judged, and those that say "converged"."""
    statuses = np.atleast_1d(getattr(model, "status_", ""))
    return Counter(fits=1, claims=n_claims, converged=int(np.count_nonzero(statuses == "converged")))


def play(seed: int) -> Counter[str]:
    """Fit and judge the case of this seed; how many fits and claims that were."""
    case = draw(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for expected in EXPECTED:
            warnings.simplefilter("ignore", expected)
        if case.kind in fuzz_later.PATHS:
            return _play_path(case)
        if case.kind in fuzz_more.PLAYERS:
            model, n_claims = fuzz_more.PLAYERS[case.kind](case)
            return counted(model, n_claims)
        around = [(X, coefficients, fitted(case, X, solver="bundle", max_iter=100)) for X, coefficients in routes(case)]
        model = fuzz_more.with_threads(case, lambda: fitted(case, case.X))
    if model is None:
        return Counter(fits=1)
    if case.kind in fuzz_more.CHECKS:
        return counted(model, fuzz_more.CHECKS[case.kind](case, model))
    counts = Counter[str]()
    for X, _, other in around:
        counts += counted(other, len(judge.check(other, X, case.y, **case.given)))
    others = [coefficients(other) for _, coefficients, other in around]
    found = judge.check(model, case.X, case.y, **case.given, bags=case.facts.get("offsets"), others=others)
    return counts + counted(model, len(found))


def _play_path(case: Case) -> Counter[str]:
    Cs = case.options["C"] * np.array([1.0, 10.0, 1000.0])
    names = ("loss", "tol", "max_iter", "gains", "level_weights")
    options = {name: case.options[name] for name in names if name in case.options}
    path = rank_svm_path(case.X, case.y, Cs, **options, **case.given)
    counts = Counter[str]()
    for model in judge.models_of_path(path, **options):
        # The points of the other values of C are tried as well.
        counts += counted(model, len(judge.check(model, case.X, case.y, **case.given, others=list(path.coefs))))
    return counts


def described(seed: int) -> dict[str, Any]:
    case = draw(seed)
    facts = {name: value for name, value in case.facts.items() if name != "offsets"}
    return facts | {"kind": case.kind, "shape": case.X.shape, **case.options}


def report(seed: int, error: BaseException) -> str:
    """Write a snippet that plays the case again; the line that sums it up."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    summary = f"{type(error).__name__}: {error}".splitlines()[0][:400]
    facts = json.dumps(described(seed), default=str)
    text = f'"""{summary}\n\n{facts}\n"""\n\nfrom tests.fuzz import play\n\nplay({seed})\n'
    (FOLDER / f"seed_{seed}.py").write_text(text, encoding="utf-8")
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"seed {seed}: {summary}\n    at {Path(where.filename).name}:{where.lineno}; {facts}"


def summed(counts: Counter[str]) -> str:
    """Fits and claims in words."""
    return f"{counts['fits']} fits, {counts['claims']} claims judged, {counts['converged']} of them converged"


def work(first: int, stride: int, seconds: float, most: int) -> tuple[Counter[str], list[str]]:
    """Play seeds until the time is over; counts, and what failed."""
    counts, failures, end, seed = Counter[str](), [], time.monotonic() + seconds, first
    # The judge's descent makes many small products. Threads that wait for each other there take ten times as long.
    threadpool_limits(1)
    while time.monotonic() < end and counts["cases"] < most:
        counts["cases"] += 1
        try:
            counts += play(seed)
        except Exception as error:
            counts["failures"] += 1
            failures.append(report(seed, error))
            print(failures[-1], flush=True)
        seed += stride
    counts["last"] = seed - stride
    return counts, failures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0, help="the first; each case takes the next one")
    parser.add_argument("--cases", type=int, default=10**9, help="stop after so many in each process")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--replay", type=int, help="play this seed alone, with its traceback")
    arguments = parser.parse_args()
    if arguments.replay is not None:
        print(json.dumps(described(arguments.replay), default=str))
        print(f"passed: {summed(play(arguments.replay))}")
        return
    began, n = time.monotonic(), max(1, arguments.workers)
    tasks = [(arguments.seed + k, n, arguments.seconds, arguments.cases) for k in range(n)]
    if n == 1:
        found = [work(*tasks[0])]
    else:
        with multiprocessing.get_context("spawn").Pool(n) as pool:
            found = pool.starmap(work, tasks, chunksize=1)
    counts: Counter[str] = Counter()
    for one, _ in found:
        counts += one
    last = max(one["last"] for one, _ in found)
    print(
        f"{counts['cases']} cases, {summed(counts)}, seeds {arguments.seed} to {last}, "
        f"{time.monotonic() - began:.0f} s, {counts['failures']} failures"
    )
    if counts["failures"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
