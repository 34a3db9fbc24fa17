"""Reading LETOR files: `datasets.load_letor` beside scikit-learn's and XGBoost's readers; how soon the command answers.

``make bench ONLY=reader`` reads two files of about 70 MB: MQ2008 repeated, with comments (left out where the data are
missing), and 136 features of seeded random numbers. Readers take turns, and what ours reads must have the bits of
scikit-learn's. Memory is that of a process of its own. ``rankhinge --help`` starts in fresh processes. Results go to
``results/reader.json`` and ``docs/benchmarks/reader.md``. A trial: ``ARGS=--quick``; the page alone: ``ARGS=--redraw``.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _datasets import MissingData, data_file
from _harness import ROOT, SCRATCH, in_fresh_process, machine_facts, median, quartiles, race, ratio_to, write_json

ROUNDS, BUDGET, SIZE = 5, 60.0, 70_000_000
# Starts of the command; a few more than rounds of files, because they take milliseconds.
STARTS = 21
# How many times as fast as scikit-learn's at least; times its memory, XGBoost's time and milliseconds at most.
FASTER, MEMORY, AS_XGBOOST, HELP = 8.0, 2.0, 1.0, 80.0
OURS, SKLEARN, XGBOOST = "rankhinge", "scikit-learn", "XGBoost"
READERS = {
    OURS: "from rankhinge.datasets import load_letor\ndef read(path): return load_letor(path, sparse=True)",
    SKLEARN: (
        "from sklearn.datasets import load_svmlight_file\n"
        "def read(path): return load_svmlight_file(path, query_id=True)"
    ),
    XGBOOST: "import xgboost\ndef read(path): return xgboost.DMatrix(path + '?format=libsvm', silent=True)",
}
# Not `getrusage`, which continues from the peak of the parent process.
PEAK = """
import re, sys, warnings
warnings.simplefilter("ignore")
def peak(): return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
read(sys.argv[2]); before = peak(); kept = read(sys.argv[1]); print("peak", peak() - before)
"""


def files(folder: Path, size: int) -> dict[str, Path]:
    made = {}
    try:
        parts = [data_file("mq2008", f"S{part}.txt.gz") for part in range(1, 6)]
    except MissingData as error:
        print(error)
    else:
        text = b"".join(gzip.decompress(part.read_bytes()) for part in parts)
        made["MQ2008, with comments"] = folder / "mq2008.txt"
        made["MQ2008, with comments"].write_bytes(text * max(1, round(size / len(text))))
    rng = np.random.default_rng(0)
    made["136 features"] = folder / "wide.txt"
    with open(made["136 features"], "w") as file:
        row = 0
        while file.tell() < size:
            words = [f"{k + 1}:{value:.6f}" for k, value in enumerate(10 * rng.normal(size=136))]
            file.write(f"{rng.integers(5)} qid:{row // 100} {' '.join(words)}\n")
            row += 1
    return made


def readers() -> dict[str, Callable[[str], Any]]:
    functions = {}
    for name, source in READERS.items():
        scope: dict[str, Any] = {}
        exec(source, scope)
        functions[name] = scope["read"]
    return functions


def check_bits(path: str, functions: dict[str, Callable[[str], Any]]) -> None:
    """Ours and scikit-learn's reader return the same bits; the run stops where they do not."""
    mine, (X, y, qid) = functions[OURS](path), functions[SKLEARN](path)
    assert mine.X.shape == X.shape, "the shapes differ"
    for name, a, b in (("values", mine.X.data, X.data), ("labels", mine.y, y)):
        assert a.dtype == b.dtype, f"{name} are {a.dtype}, scikit-learn's {b.dtype}"
        assert a.tobytes() == b.tobytes(), f"{name} differ"
    assert np.array_equal(mine.X.indices, X.indices), "columns differ"
    assert np.array_equal(mine.X.indptr, X.indptr), "rows differ"
    assert np.array_equal(mine.qid, qid), "queries differ"


def peak(name: str, path: Path) -> float:
    """Peak memory in MB beyond that of reading one line."""
    small = path.with_suffix(".small")
    with open(path) as file:
        small.write_text(file.readline())
    _, printed = in_fresh_process("-c", READERS[name] + PEAK, str(path), str(small))
    return int(re.findall(r"peak (\d+)", printed)[-1]) * 1024 / 1e6


def race_readers(title: str, path: Path, rounds: int) -> list[dict[str, Any]]:
    functions = readers()
    # It also compiles, and fills the system's cache of files.
    check_bits(str(path), functions)
    seconds = race({name: lambda read=read: read(str(path)) for name, read in functions.items()}, rounds, BUDGET)
    rows = []
    for name, mine in seconds.items():
        row = {"file": title, "megabytes": path.stat().st_size / 1e6, "reader": name, "seconds": median(mine)}
        row |= {"as ours": ratio_to(mine, seconds[OURS]), "peak": peak(name, path)}
        print(
            f"{title}: {name} {row['seconds']:.3f} s, × {row['as ours']['ratio']:.2f}, {row['peak']:.0f} MB", flush=True
        )
        rows.append(row)
    return rows


def time_help(starts: int) -> list[dict[str, Any]]:
    """Milliseconds of the installed command, of the module, and of Python with nothing to do."""
    script = str(Path(sys.executable).with_name("rankhinge"))
    calls = {"rankhinge --help": (script, "--help"), "python -m rankhinge --help": ("-m", "rankhinge", "--help")}
    calls["python -c pass"] = ("-c", "pass")
    seconds = race({name: lambda call=call: in_fresh_process(*call) for name, call in calls.items()}, starts, BUDGET)
    rows = []
    for name, mine in seconds.items():
        low, high = quartiles([1000 * value for value in mine if value is not None])
        rows.append({"call": name, "milliseconds": 1000 * median(mine), "low": low, "high": high})
        print(f"{name}: {rows[-1]['milliseconds']:.0f} ms ({low:.0f} – {high:.0f})", flush=True)
    return rows


def targets(results: dict[str, Any]) -> list[tuple[str, float, bool]]:
    """What was asked for, what was measured, and whether it was met."""
    judged = []
    for title in dict.fromkeys(row["file"] for row in results["files"]):
        row = {row["reader"]: row for row in results["files"] if row["file"] == title}
        faster, memory = row[SKLEARN]["as ours"]["ratio"], row[OURS]["peak"] / row[SKLEARN]["peak"]
        time = 1 / row[XGBOOST]["as ours"]["ratio"]
        judged.append((f"{title}: at least {FASTER:g} times as fast as scikit-learn", faster, faster >= FASTER))
        judged.append((f"{title}: at most {MEMORY:g} times scikit-learn's peak memory", memory, memory <= MEMORY))
        judged.append((f"{title}: no slower than XGBoost, time over its time", time, time <= AS_XGBOOST))
    (answer,) = (row["milliseconds"] for row in results["help"] if row["call"] == "rankhinge --help")
    judged.append((f"`rankhinge --help` within {HELP:g} ms", answer, answer <= HELP))
    return judged


def page(results: dict[str, Any]) -> str:
    machine = results["machine"]
    lines = [
        "# Reading files, and the command's first answer",
        "",
        "Made by `make bench ONLY=reader`. Readers take turns; medians, and the quartiles of the ratios within the "
        "rounds.",
        "The run checks that `load_letor` returns the bits of scikit-learn's `load_svmlight_file`: values, places, "
        "labels and queries.",
        "Memory is the peak of a process of its own, beyond that of reading one line. Measured on",
        f"{machine['cpus']} CPUs ({machine['processor']}), Python {machine['python']}, commit {machine['commit']}.",
        "",
        "| file | reader | seconds | times as long as ours | peak, MB |",
        "|---|---|--:|--:|--:|",
    ]
    for row in results["files"]:
        ratio = row["as ours"]
        spread = "1" if row["reader"] == OURS else f"{ratio['ratio']:.2f} ({ratio['low']:.2f} – {ratio['high']:.2f})"
        name = f"{row['file']}, {row['megabytes']:.0f} MB"
        lines.append(f"| {name} | {row['reader']} | {row['seconds']:.3f} | {spread} | {row['peak']:.0f} |")
    lines += [
        "",
        "The command answers `--help` without importing NumPy. Medians and quartiles of fresh processes:",
        "",
        "| call | milliseconds | quartiles |",
        "|---|--:|--:|",
        *(
            f"| `{row['call']}` | {row['milliseconds']:.0f} | {row['low']:.0f} – {row['high']:.0f} |"
            for row in results["help"]
        ),
        "",
        "| | target | measured |",
        "|---|---|--:|",
        *(f"| {'met' if met else 'NOT MET'} | {what} | {figure:.2f} |" for what, figure, met in targets(results)),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small files, few rounds")
    parser.add_argument("--redraw", action="store_true", help="the page from the results there are")
    chosen = parser.parse_args()
    folder = SCRATCH if chosen.quick else ROOT / "benchmarks" / "results"
    if not chosen.redraw:
        with tempfile.TemporaryDirectory() as scratch:
            made = files(Path(scratch), SIZE // 20 if chosen.quick else SIZE)
            rounds = 3 if chosen.quick else ROUNDS
            rows = [row for title, path in made.items() for row in race_readers(title, path, rounds)]
        results = {"machine": machine_facts("numpy", "sklearn", "xgboost"), "files": rows}
        results["help"] = time_help(5 if chosen.quick else STARTS)
        write_json(folder / "reader.json", results)
    results = json.loads((folder / "reader.json").read_text("utf-8"))
    target = folder if chosen.quick else ROOT / "docs" / "benchmarks"
    (target / "reader.md").write_text(page(results), encoding="utf-8")
    for what, figure, met in targets(results):
        print(f"{'met' if met else 'NOT MET'}: {what}: {figure:.2f}")


if __name__ == "__main__":
    main()
