"""Reading LETOR files: `datasets.load_letor` beside scikit-learn's and XGBoost's readers, time and peak memory.

Two files of about 70 MB are made: MQ2008 repeated, with comments (skipped where the data are not there), and 136
features of seeded random numbers. Readers take turns; medians are reported. Memory is that of a process of its own.
"""

from __future__ import annotations

import glob
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROUNDS = 5
SIZE = 70_000_000
DATA = Path(os.environ.get("RANKHINGE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
READERS = {
    "rankhinge": "from rankhinge.datasets import load_letor\ndef read(path): return load_letor(path, sparse=True)",
    "scikit-learn": (
        "from sklearn.datasets import load_svmlight_file\n"
        "def read(path): return load_svmlight_file(path, query_id=True)"
    ),
    "XGBoost": "import xgboost\ndef read(path): return xgboost.DMatrix(path + '?format=libsvm', silent=True)",
}


def files(folder: str) -> dict[str, str]:
    made = {}
    parts = sorted(glob.glob(str(DATA / "mq2008" / "*.txt.gz")))
    if parts:
        text = b"".join(gzip.decompress(Path(part).read_bytes()) for part in parts)
        made["MQ2008, with comments"] = os.path.join(folder, "mq2008.txt")
        Path(made["MQ2008, with comments"]).write_bytes(text * round(SIZE / len(text)))
    else:
        print(f"MQ2008 is missing: put S1.txt.gz … into {DATA / 'mq2008'}")
    rng = np.random.default_rng(0)
    made["136 features"] = os.path.join(folder, "wide.txt")
    with open(made["136 features"], "w") as file:
        row = 0
        while file.tell() < SIZE:
            words = [f"{k + 1}:{value:.6f}" for k, value in enumerate(10 * rng.normal(size=136))]
            file.write(f"{rng.integers(5)} qid:{row // 100} {' '.join(words)}\n")
            row += 1
    return made


def peak(name: str, path: str) -> float:
    """Peak memory in MB beyond that of reading one line."""
    small = path + ".small"
    with open(path) as file:
        Path(small).write_text(file.readline())
    program = (
        f"import re, sys, warnings; warnings.simplefilter('ignore')\n{READERS[name]}\n"
        # Not `getrusage`, which goes on from the peak of the parent process.
        "def peak(): return int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])\n"
        "read(sys.argv[2]); before = peak(); kept = read(sys.argv[1]); print(peak() - before)"
    )
    done = subprocess.run([sys.executable, "-c", program, path, small], capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1]) / 1024


def main() -> None:
    functions = {}
    for name, source in READERS.items():
        scope: dict[str, object] = {}
        exec(source, scope)
        functions[name] = scope["read"]
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for title, path in files(folder).items():
            seconds: dict[str, list[float]] = {name: [] for name in functions}
            for _ in range(ROUNDS + 1):
                for name, read in functions.items():
                    start = time.perf_counter()
                    read(path)  # type: ignore[operator]
                    seconds[name].append(time.perf_counter() - start)
            # The first round compiles and fills the cache of files.
            medians = {name: statistics.median(times[1:]) for name, times in seconds.items()}
            for name in functions:
                row = {
                    "file": title,
                    "megabytes": round(os.path.getsize(path) / 1e6),
                    "reader": name,
                    "seconds": medians[name],
                    "times as fast": medians[name] / medians["rankhinge"],
                    "peak MB": peak(name, path),
                }
                results.append(row)
                print(
                    f"{title:24} {name:14} {row['seconds']:.3f} s × {row['times as fast']:.1f} {row['peak MB']:.0f} MB"
                )
    target = Path(__file__).parent / "results" / "reader.json"
    target.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
