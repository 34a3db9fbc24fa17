"""The progress display: what is shown where, and that it never gets in the way."""

from __future__ import annotations

import io
import re
import sys

import pytest

from rankhinge import _progress
from rankhinge._progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True

    def screen(self):
        """Return the lines as they stand in the end."""
        lines = []
        for line in self.getvalue().split("\n"):
            shown = ""
            for part in line.split("\r"):
                shown = part + shown[len(part) :]
            lines.append(shown.rstrip())
        return lines


@pytest.fixture
def clock(monkeypatch):
    """Time that passes only when told to."""

    class Clock:
        now = 100.0

        def monotonic(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(_progress, "time", clock)
    return clock


def iterate(progress, clock, n, seconds):
    with progress:
        for k in range(1, n + 1):
            clock.now += seconds
            progress.update(iteration=k, primal=1.0 + 1 / k, dual=1.0, gap=1 / (k + 1))


def test_silent_by_default(clock, capsys):
    iterate(Progress(0), clock, 5, 10.0)
    iterate(Progress(False), clock, 5, 10.0)
    assert capsys.readouterr() == ("", "")


def test_patience_ends_on_a_terminal(clock):
    """With verbose=0 the line is shown after so many seconds all the same, with the time left; elsewhere never."""
    for stream, first in ((Terminal(), 6), (io.StringIO(), None)):
        shown = None
        with Progress(0, ("point", "of at most"), patience=5.0, stream=stream) as progress:
            for k in range(1, 9):
                clock.now += 0.9
                progress.update(**{"point": float(k), "of at most": 10.0})
                if shown is None and stream.getvalue():
                    shown = k
        assert shown == first
        assert ("left 2 s" in stream.getvalue()) == (first is not None)


def test_goes_to_standard_error(clock, capsys):
    iterate(Progress(1), clock, 1, 2.5)
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "iteration 1  primal 2  dual 1  gap 5.00e-01  time 2.5 s\n"


def test_a_terminal_has_one_line_that_changes(clock):
    terminal = Terminal()
    iterate(Progress(1, stream=terminal), clock, 50, 0.2)
    assert terminal.getvalue().count("\r") == 50
    assert terminal.screen() == [
        "iteration 50  primal 1.02  dual 1  gap 1.96e-02  time 10.0 s",
        "",
    ]


def test_a_terminal_is_not_flooded(clock):
    terminal = Terminal()
    iterate(Progress(1, stream=terminal), clock, 10_000, 0.001)
    assert terminal.getvalue().count("\r") <= 102
    assert terminal.screen()[0].startswith("iteration 10000 ")


def test_shorter_line_leaves_no_rest(clock):
    terminal = Terminal()
    with Progress(1, ("objective",), stream=terminal) as progress:
        progress.update(objective=1.234567)
        clock.now += 1
        progress.update(objective=2)
    assert terminal.screen() == ["objective 2  time 1.0 s", ""]


def test_line_fits_the_window(clock, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    terminal = Terminal()
    iterate(Progress(1, stream=terminal), clock, 3, 1.0)
    assert max(map(len, re.split("[\r\n]", terminal.getvalue()))) <= 19


def test_a_log_gets_a_line_now_and_then_and_the_last(clock):
    log = io.StringIO()
    iterate(Progress(1, stream=log), clock, 103, 0.125)
    lines = log.getvalue().splitlines()
    assert [line.split()[1] for line in lines] == ["1", "41", "81", "103"]
    assert "\r" not in log.getvalue()


def test_very_verbose_shows_every_update(clock):
    for stream in (io.StringIO(), Terminal()):
        iterate(Progress(2, stream=stream), clock, 7, 0.001)
        assert [line.split()[1] for line in stream.getvalue().splitlines()] == list("1234567")


def test_columns_choose_and_order(clock):
    log = io.StringIO()
    with Progress(1, ("gap", "epoch"), stream=log) as progress:
        progress.update(epoch=3, gap=0.125, primal=7.0)
    assert log.getvalue() == "gap 1.25e-01  epoch 3  time 0.0 s\n"


def test_no_update_no_output(clock):
    terminal = Terminal()
    with Progress(1, stream=terminal):
        pass
    assert terminal.getvalue() == ""


def test_errors_pass_and_the_last_state_stays(clock):
    terminal = Terminal()

    def interrupted():
        with Progress(1, stream=terminal) as progress:
            for k in (1, 2):
                progress.update(iteration=k)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert terminal.screen() == ["iteration 2  time 0.0 s", ""]


def test_not_finite(clock):
    log = io.StringIO()
    with Progress(1, stream=log) as progress:
        progress.update(primal=float("inf"), dual=float("-inf"), gap=float("nan"))
    assert log.getvalue() == "primal inf  dual -inf  gap nan  time 0.0 s\n"


class Broken(io.StringIO):
    def write(self, text):
        raise BrokenPipeError


@pytest.mark.parametrize("verbose", [1, 2])
def test_a_broken_stream_is_no_error(clock, verbose):
    closed = io.StringIO()
    closed.close()
    for stream in (closed, Broken(), object()):
        iterate(Progress(verbose, stream=stream), clock, 3, 10.0)


def test_no_standard_error_at_all(clock, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    iterate(Progress(1), clock, 3, 10.0)


def test_closed_in_the_middle(clock):
    terminal = Terminal()
    with Progress(1, stream=terminal) as progress:
        progress.update(iteration=1)
        terminal.close()
        clock.now += 10
        progress.update(iteration=2)
        progress.update(iteration=3)


def test_can_be_used_again(clock):
    log = io.StringIO()
    progress = Progress(1, stream=log)
    iterate(progress, clock, 1, 1.0)
    iterate(progress, clock, 1, 2.0)
    assert [line.split()[-2] for line in log.getvalue().splitlines()] == ["1.0", "2.0"]


def test_the_time_left():
    stream = io.StringIO()
    with Progress(2, ("point", "of at most"), stream=stream) as progress:
        progress._began -= 6.0
        progress.update(**{"point": 2.0, "of at most": 8.0})
    assert re.fullmatch(r"point 2  of at most 8  time 6\.\d s  left 18 s\n", stream.getvalue())
