"""``rankhinge warm``: compile what the estimators use."""

from __future__ import annotations

from typing import Any

from rankhinge.cli.outcome import DONE
from rankhinge.cli.writing import show
from rankhinge.warm import warm

__all__ = ["run"]


def run(arguments: Any) -> int:
    """Compile, and say where the result is kept."""
    found = warm(arguments.folder)
    show(arguments, found.told(), found._asdict())
    return DONE
