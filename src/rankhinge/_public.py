"""The addresses of public names: what a file has stored under one of them must outlive any move between our files."""

from __future__ import annotations

import sys
from types import FunctionType

__all__ = ["publish"]


def publish(room: str) -> None:
    """Let the public classes and functions of a room say that they are from where users import them.

    Pickles, skops, MLflow and messages name a class by its ``__module__``. That becomes ``"rankhinge"`` for the names
    that can be imported from there, and the room's own name for its others. A room calls it when it has been filled.
    """
    package, module = sys.modules[room.partition(".")[0]], sys.modules[room]
    homes: dict[str, str] = package._HOME
    private = (f"{room}.", f"{package.__name__}._")
    for name in module.__all__:
        thing = getattr(module, name)
        if isinstance(thing, type | FunctionType) and thing.__module__.startswith(private):
            # Two rooms may have a name in common: the package has that of one.
            thing.__module__ = package.__name__ if f"{package.__name__}.{homes.get(name)}" == room else room
