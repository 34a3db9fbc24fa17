"""Is this working tree slower than another commit? ``make bench AGAINST=<commit>``, with ``ONLY=training`` one part.

The commit is checked out beside (`git worktree`), and two processes live as long as the run, one with each library.
They time the same cases of `_against_cases` in turn, never at once; data, compilation and a first call come before.
What is printed, and written to ``.make/benchmarks``, are ratios of medians: below 1, this tree is faster.
"""

from __future__ import annotations

import argparse
import fnmatch
import gc
import json
import math
import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from _harness import ROOT, SCRATCH, machine_facts, median, ratio_to, seconds_of, write_json
from _tables import number_text, text_table, time_text

NAMES = ("training", "inference", "latent", "torch_losses", "float32")
# A clock and a message take some microseconds: shorter calls are repeated until they fill this many seconds.
BURST = 0.02
# Objectives of two commits may differ by the solvers' tolerance, 1e-3 each.
SAME_VALUE = 2e-3


def serve(name: str, quick: bool) -> None:
    """A worker: what cases there are, then for each line ``[case, n_calls]`` the seconds of a call and its value."""
    from _against_cases import CASES

    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever else is printed must not be taken for an answer
    cases = dict(CASES[name](quick))
    import rankhinge

    print(json.dumps({"library": rankhinge.__file__, "cases": list(cases)}), file=answers)
    gc.disable()
    for line in sys.stdin:
        case, n_calls = json.loads(line)
        values: list[float] = []
        try:
            seconds = seconds_of(lambda case=case, values=values: values.append(cases[case]()), n_calls)
        except Exception as error:
            answer: dict[str, Any] = {"error": f"{type(error).__name__}: {error}"}
        else:
            answer = {"seconds": seconds, "value": values[-1]}
        gc.collect()
        print(json.dumps(answer), file=answers)


class Worker:
    """A process that times cases with the library of one tree."""

    def __init__(self, tree: Path, name: str, quick: bool) -> None:
        package = tree / "src" / "rankhinge"
        # The cache of this tree's tool: the other commit may keep its own otherwise, or have none.
        tool = runpy.run_path(str(ROOT / "tools" / "numba_cache.py"))
        cache = tool["folder_of_source"](package)
        tool["prepare"](cache)
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve", name, *(["--quick"] if quick else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(package.parent), "NUMBA_CACHE_DIR": str(cache)},
        )
        greeting = self._answer()
        if not Path(greeting["library"]).is_relative_to(tree):
            raise RuntimeError(f"the worker for {tree.name} has loaded another library: {greeting['library']}")
        self.cases: list[str] = greeting["cases"]

    def time(self, case: str, n_calls: int = 1) -> dict[str, Any]:
        assert self.process.stdin is not None
        print(json.dumps([case, n_calls]), file=self.process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("a worker ended: see its message above")
        return json.loads(line)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """A worktree of the commit, removed at the end."""
    tree = ROOT / ".make" / "against" / commit
    run = ["git", "-C", str(ROOT), "worktree"]
    subprocess.run([*run, "prune"], check=True)
    if tree.exists():
        raise SystemExit(f"{tree.relative_to(ROOT)} is there: another run is under way, or remove it")
    subprocess.run([*run, "add", "--quiet", "--detach", str(tree), commit], check=True)
    try:
        yield tree
    finally:
        subprocess.run([*run, "remove", "--force", str(tree)], check=False)
        shutil.rmtree(tree, ignore_errors=True)


def compare(case: str, here: Worker, there: Worker, rounds: int, budget: float) -> dict[str, Any]:
    """Seconds of each round, the two in turn and in the other order each round; at least three rounds."""
    workers = {"here": here, "there": there}
    for _ in range(2):  # the first compiles, the second shows what a call takes
        first = {side: worker.time(case) for side, worker in workers.items()}
        errors = {side: answer["error"] for side, answer in first.items() if "error" in answer}
        if errors:
            return {"case": case, "errors": errors}
    longest = max(answer["seconds"] for answer in first.values())
    n_calls = max(1, round(BURST / longest))
    rounds = min(rounds, max(3, int(budget / (2 * n_calls * longest))))
    seconds: dict[str, list[float | None]] = {side: [] for side in workers}
    for turn in range(rounds):
        for side in list(workers)[:: 1 if turn % 2 else -1]:
            seconds[side].append(workers[side].time(case, n_calls)["seconds"])
    return {
        "case": case,
        "seconds": {side: median(values) for side, values in seconds.items()},
        "rounds": rounds,
        **ratio_to(seconds["here"], seconds["there"]),
        "values": {side: answer["value"] for side, answer in first.items()},
    }


def compare_all(name: str, tree: Path, quick: bool) -> list[dict[str, Any]]:
    rounds, budget = (5, 2.0) if quick else (15, 20.0)
    workers: list[Worker] = []
    try:
        workers += [Worker(ROOT, name, quick)]
        workers += [Worker(tree, name, quick)]
        entries = []
        for case in workers[0].cases:
            entries.append(compare(case, *workers, rounds, budget))
            print("  " + " ".join(row_of(entries[-1])), flush=True)
        return entries
    finally:
        for worker in workers:
            worker.close()


def row_of(entry: dict[str, Any]) -> list[str]:
    if "errors" in entry:
        return [entry["case"], *(entry["errors"].get(side, "") for side in ("here", "there")), "–", "–", ""]
    here, there = entry["values"]["here"], entry["values"]["there"]
    same = math.isclose(here, there, rel_tol=SAME_VALUE)
    return [
        entry["case"],
        time_text(entry["seconds"]["here"]),
        time_text(entry["seconds"]["there"]),
        number_text(entry["ratio"]),
        f"{number_text(entry['low'])} to {number_text(entry['high'])}",
        "" if same else f"values differ: {here:.6g}, {there:.6g}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit", nargs="?", help="what to compare with: a commit, a tag or a branch")
    parser.add_argument("--only", default="*", help="which benchmarks, as a pattern: " + ", ".join(NAMES))
    parser.add_argument("--quick", action="store_true", help="fewer rows and rounds: three minutes at most")
    parser.add_argument("--serve", choices=NAMES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.serve, arguments.quick)
        return
    names = fnmatch.filter(NAMES, arguments.only)
    if not names:
        sys.exit(f"no benchmark that can be compared matches {arguments.only}: there are {', '.join(NAMES)}")
    resolved = ["git", "-C", str(ROOT), "rev-parse", "--verify", f"{arguments.commit}^{{commit}}"]
    commit = subprocess.run(resolved, check=True, capture_output=True, text=True).stdout.strip()[:12]
    with checked_out(commit) as tree:
        for name in names:
            print(f"== {name}: this tree against {commit}", flush=True)
            entries = compare_all(name, tree, arguments.quick)
            ratios = [entry["ratio"] for entry in entries if "ratio" in entry]
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None
            facts = machine_facts("rankhinge", "numpy", "scipy", "numba", "sklearn")
            target = SCRATCH / f"{name}-against-{commit}.json"
            write_json(target, {"machine": facts, "against": commit, "geometric_mean": mean, "cases": entries})
            header = ["case", "here", "there", "ratio", "quartiles", "remark"]
            print("\n" + text_table(header, [row_of(entry) for entry in entries]))
            if mean is not None:
                print(f"\ngeometric mean of the ratios: {number_text(mean)}; written: {target.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
