"""A limit of wall-clock time that ends what hangs, in Python and in compiled code."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Linux gives a process 1.25 times the processor time of one that is a step nicer.
_SHARE_OF_A_STEP = 1.25


class Hang(BaseException):
    """Raised inside what hangs. No `Exception`: the command turns all of those into exit codes."""


def patience() -> float:
    """How many times longer something may take because other processes keep it waiting: 1 on a quiet machine.

    It adds the others' load per processor. To this process each of them weighs as much more as it is nicer than they.
    """
    if not hasattr(os, "getloadavg"):
        return 1.0
    others = max(os.getloadavg()[0] - 1.0, 0.0) / (os.cpu_count() or 1)
    return 1.0 + others * _SHARE_OF_A_STEP ** os.nice(0)


@contextmanager
def no_longer_than(seconds: float, what: str) -> Iterator[None]:
    """Fail as soon as the block has taken this long.

    Code that never comes back to the interpreter cannot be interrupted: after twice the time the process ends, and all
    its threads' stacks are on its standard error.
    """

    def stop(*_: object) -> None:
        raise Hang

    assert threading.current_thread() is threading.main_thread()
    has_timer = hasattr(signal, "setitimer")
    faulthandler.dump_traceback_later(2 * seconds, exit=True, file=sys.__stderr__)
    if has_timer:
        before = signal.signal(signal.SIGALRM, stop)
        # Once more each second: a first one may be lost in a finalizer.
        signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    except Hang as error:
        raise AssertionError(f"{what} takes more than {seconds:.1f} s") from error
    finally:
        faulthandler.cancel_dump_traceback_later()
        if has_timer:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
