"""What benchmarks share: rivals timed in turn, figures from fresh processes, facts about the machine."""

from __future__ import annotations

import gc
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# Results of trial runs: ignored by git, and never mistaken for the published ones.
SCRATCH = ROOT / ".make" / "benchmarks"


def seconds_of(call: Callable[[], Any], n_calls: int = 1) -> float:
    """Mean wall time of one of `n_calls` calls in a row."""
    start = time.perf_counter()
    for _ in range(n_calls):
        call()
    return (time.perf_counter() - start) / n_calls


def race(
    rivals: Mapping[str, Callable[[], Any]], rounds: int, budget: float, burst: float = 5e-3
) -> dict[str, list[float | None]]:
    """Seconds a call of each rival, for each round; None where a rival sat the round out.

    The rivals take turns, in another order each round, so that a disturbance of the machine meets all of them and
    none always inherits the caches of the same predecessor. Short calls are repeated to fill `burst` seconds. A rival
    that would take more than `budget` seconds in all takes part in fewer rounds, at least three, evenly spread.

    What rivals compile must have been compiled before.
    """
    names = list(rivals)
    cost = {name: seconds_of(rivals[name]) for name in names}
    n_calls = {name: max(1, round(burst / cost[name])) for name in names}
    n_rounds = {name: min(rounds, max(3, int(budget / (cost[name] * n_calls[name])))) for name in names}
    seconds: dict[str, list[float | None]] = {name: [] for name in names}
    shuffle = random.Random(0)
    gc.collect()
    gc.disable()
    try:
        for turn in range(rounds):
            for name in shuffle.sample(names, len(names)):
                takes_part = (turn + 1) * n_rounds[name] // rounds > turn * n_rounds[name] // rounds
                seconds[name].append(seconds_of(rivals[name], n_calls[name]) if takes_part else None)
    finally:
        gc.enable()
    return seconds


def median(values: list[float | None]) -> float:
    return statistics.median(value for value in values if value is not None)


def quartiles(values: list[float]) -> tuple[float, float]:
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def ratio_to(values: list[float | None], reference: list[float | None]) -> dict[str, float]:
    """Ratio of the medians, and the quartiles of the ratios within each round that both took part in."""
    pairs = [a / b for a, b in zip(values, reference, strict=True) if a is not None and b is not None]
    low, high = quartiles(pairs) if len(pairs) > 1 else (pairs[0], pairs[0])
    return {"ratio": median(values) / median(reference), "low": low, "high": high}


def in_fresh_process(*arguments: str, **environment: str) -> tuple[float, str]:
    """Wall time of ``python arguments…``, interpreter start included, and what it printed."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )
    seconds = time.perf_counter() - start
    if done.returncode:
        raise RuntimeError(f"a measurement in a process of its own failed:\n{done.stderr}")
    return seconds, done.stdout


def cold_start(program: str, repeats: int) -> dict[str, float]:
    """Seconds of a program with nothing compiled yet, and the median of later starts."""
    with tempfile.TemporaryDirectory() as cache:
        first, _ = in_fresh_process("-c", program, NUMBA_CACHE_DIR=cache)
        later = [in_fresh_process("-c", program, NUMBA_CACHE_DIR=cache)[0] for _ in range(repeats)]
    return {"first": first, "later": statistics.median(later)}


def machine_facts(*libraries: str) -> dict[str, Any]:
    """What a reader needs to judge the figures, and nothing that names the machine."""
    return {
        "commit": _commit(),
        "processor": _processor(),
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{library: import_module(library).__version__ for library in libraries},
    }


def _commit() -> str:
    """The commit whose code is measured, marked where it has been edited since."""
    command = ["git", "describe", "--always", "--dirty=, edited", "--exclude=*"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown"


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def power_of_ten(number: int) -> str:
    """1000 as 10³, other numbers with a gap between thousands."""
    exponent = len(str(number)) - 1
    if exponent >= 3 and number == 10**exponent:
        return "10" + str(exponent).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{number:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
