"""The watchdog of the tests ends what hangs."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.watchdog import no_longer_than, patience

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no interval timers")


def wait():
    # The command catches all of these.
    with contextlib.suppress(Exception):
        time.sleep(60)


def test_what_hangs_fails():
    began = time.perf_counter()
    with pytest.raises(AssertionError, match=r"waiting takes more than 0\.2 s"), no_longer_than(0.2, "waiting"):
        wait()
    assert time.perf_counter() - began < 30


def test_what_is_done_goes_on():
    with no_longer_than(0.2, "nothing"):
        pass
    time.sleep(0.5)
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_compiled_code_ends_with_its_process():
    # A loop inside the interpreter, in which no signal handler of Python runs, for the better part of an hour.
    program = "from tests.watchdog import no_longer_than\nwith no_longer_than(0.2, 'a sum'): sum(range(10**11))"
    environment = os.environ | {"PYTHONPATH": os.getcwd()}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=50)
    assert done.returncode == 1
    assert "Timeout" in done.stderr


def test_patience(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    for load, nice, expected in ((0.5, 0, 1.0), (1.0, 19, 1.0), (5.0, 0, 3.0), (5.0, 2, 1.0 + 2.0 * 1.25**2)):
        monkeypatch.setattr(os, "getloadavg", lambda load=load: (load, 0.0, 0.0))
        monkeypatch.setattr(os, "nice", lambda step, nice=nice: nice)
        assert patience() == pytest.approx(expected)
