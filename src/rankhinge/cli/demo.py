"""``rankhinge demo``: the library at work."""

from __future__ import annotations

import contextlib
import io
import time
from typing import Any

from rankhinge.cli.outcome import DONE
from rankhinge.cli.writing import show
from rankhinge.demo import main

__all__ = ["run"]


def run(arguments: Any) -> int:
    """Run the demonstration."""
    given = [] if arguments.plot is None else ["--plot", arguments.plot]
    began = time.perf_counter()
    if not arguments.json:
        main(given)
        return DONE
    with contextlib.redirect_stdout(io.StringIO()) as text:
        main(given)
    show(arguments, "", {"seconds": time.perf_counter() - began, "text": text.getvalue()})
    return DONE
