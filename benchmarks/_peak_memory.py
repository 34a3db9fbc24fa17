"""Print the peak of memory during inference, in arrays of N float64: of the first call of a size, and of a later one.

Run in a process of its own: ``python _peak_memory.py LOSS P N SHIFT``. The result, u, is one array and counts.
"""

from __future__ import annotations

import ctypes
import gc
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from _lists import Relevant, Scores, make_list, raised

import rankhinge


def status(entry: str) -> int:
    """An entry of this process's status, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(entry + ":"):
            return 1024 * int(line.split()[1])
    raise LookupError(entry)


def peak_of(call: Callable[[], object]) -> int:
    """How far the memory in use rises above its present size during a call."""
    # What the last call has left to a sleeping thread or to the allocator would hide an allocation.
    gc.collect()
    time.sleep(0.2)
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # begins a new high-water mark
    before = status("VmRSS")
    call()
    return status("VmHWM") - before


def raised_list(n_positives: int, n_negatives: int, shift: float) -> tuple[Scores, Relevant]:
    scores, relevant = make_list(n_positives, n_negatives, "float64")
    return raised(scores, relevant, shift), relevant


def main(loss: str, n_positives: int, n_negatives: int, shift: float) -> None:
    # Compiling and loading kernels takes memory too, once: those for short and for long lists, and the baseline's.
    for size in (1000, 300_000):
        for other in (0.0, 100.0, 1e9):
            rankhinge.most_violating_ranking(*raised_list(100, size, other), loss)
        rankhinge.most_violating_ranking(*raised_list(100, size, 0.0), "zero-one")
    scores, relevant = raised_list(n_positives, n_negatives, shift)
    peaks = {
        "first": peak_of(lambda: rankhinge.most_violating_ranking(scores, relevant, loss)),
        "later": peak_of(lambda: rankhinge.most_violating_ranking(scores, relevant, loss)),
        "zero_one": peak_of(lambda: rankhinge.most_violating_ranking(scores, relevant, "zero-one")),
    }
    print(json.dumps({name: peak / (8 * n_negatives) for name, peak in peaks.items()}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
