"""Try one rival once at one size, under limits: ``python _torch_trial.py RIVAL N SECONDS BYTES``.

Prints the seconds of forward and backward pass and the peak of memory above what was there before. Ends with
`TOO_LARGE` if it asks for more memory than allowed; the system ends it when the time is over.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
import time

from _peak_memory import peak_of, status
from _torch_rivals import RIVALS, call_of

TOO_LARGE = 3
# Lists from this length on have kernels of their own.
LONG = 1 << 18


def warm_up(name: str, n: int) -> None:
    """What is compiled or loaded by the first call is not the call's."""
    call_of(name, 96)()
    if RIVALS[name].over == "list" and n >= LONG and "rank_hinge" in RIVALS[name].text:
        call_of(name, LONG)()


def main(name: str, n: int, most_seconds: int, most_bytes: int) -> None:
    warm_up(name, n)
    call = call_of(name, n)
    limit = status("VmSize") + most_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(most_seconds)
    seconds = 0.0

    def timed() -> None:
        nonlocal seconds
        start = time.perf_counter()
        call()
        seconds = time.perf_counter() - start

    try:
        peak = peak_of(timed)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, MemoryError) or "allocate memory" in str(error):
            sys.exit(TOO_LARGE)
        raise
    print(json.dumps({"seconds": seconds, "peak": peak}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
