"""The command ``rankhinge``: train, judge and compare models without writing Python.

``main(argv)`` returns the exit code: 0 done, 1 not converged, 2 wrong usage, 3 files that cannot be read, used or
written, 4 a missing extra. Errors are one line on standard error.

Nothing here imports NumPy before a command runs, so that ``rankhinge --help`` answers at once.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from rankhinge.cli.outcome import BAD_INPUT, INTERNAL, INTERRUPTED, MISSING_EXTRA, CommandError, complain, one_line
from rankhinge.cli.parser import UsageError, make_parser

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments. Default: those of the process.

    Returns
    -------
    int

    Examples
    --------
    >>> main(["evaluate", "no-such-model", "no-such-data"])
    3
    """
    _print_all_letters()
    try:
        arguments = make_parser().parse_args(argv)
    except UsageError as error:
        return complain(error.message, error.code)
    except SystemExit as stop:
        # --help and --version have written what was asked for.
        return int(stop.code or 0)
    if os.environ.get("RANKHINGE_TRACEBACK"):
        return _run(arguments)
    return _guarded(arguments)


def _print_all_letters() -> None:
    """Let letters that a terminal does not know appear as escapes, rather than end a training with an error."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None and getattr(sys.stdout, "errors", None) in ("strict", "surrogateescape"):
        reconfigure(errors="backslashreplace")


def _run(arguments: Any) -> int:
    # Each command lives in a module of its name, imported when it is asked for.
    module = importlib.import_module(f"rankhinge.cli.{arguments.command}")
    with _warnings_in_one_line():
        return int(module.run(arguments))


def _guarded(arguments: Any) -> int:
    """Run the command. Any error becomes one line and an exit code."""
    try:
        return _run(arguments)
    except CommandError as error:
        return complain(error.message, error.code)
    except KeyboardInterrupt:
        kept = getattr(arguments, "save_data", None)
        return complain(f"interrupted, {'nothing' if kept is None else 'no model'} was written", INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has closed the pipe. Python would complain again at exit.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except ModuleNotFoundError as error:
        # Rooms that need another library say so, and which extra brings it.
        is_ours = (error.name or "").partition(".")[0] == "rankhinge"
        return complain(one_line(error), INTERNAL if is_ours else MISSING_EXTRA)
    except OSError as error:
        return complain(_of_file(error), BAD_INPUT)
    except ValueError as error:
        # The errors of readers and estimators are written for the user.
        return complain(one_line(error), BAD_INPUT)
    except MemoryError as error:
        return complain(f"not enough memory, {one_line(error)}", BAD_INPUT)
    except Exception as error:
        advice = "this is a bug; with RANKHINGE_TRACEBACK=1 in the environment the command shows where it happened"
        return complain(f"{type(error).__name__}: {one_line(error)} ({advice})", INTERNAL)


def _of_file(error: OSError) -> str:
    """``file: what``, from an error of the system."""
    name = error.filename2 or error.filename
    what = error.strerror or one_line(error)
    what = what[:1].lower() + what[1:]
    return f"{name}: {what}" if name is not None else what


@contextlib.contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Show warnings as the command shows errors, each once."""
    seen: set[str] = set()

    def show(message: Warning | str, category: Any, *rest: Any) -> None:
        text = one_line(message)
        if text not in seen:
            seen.add(text)
            print(f"rankhinge: warning: {text}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        # Deprecation warnings of other libraries are for developers, not for users of the command.
        for category in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", category)
        warnings.showwarning = show  # type: ignore[assignment]
        yield
