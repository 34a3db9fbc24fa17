"""The addresses of public names. Stored files refer to them, so they must survive moves between our files."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import FunctionType
from typing import Any

__all__ = ["publish", "shown_from"]


def publish(room: str, address: str | None = None) -> None:
    """Set ``__module__`` of a room's public classes and functions to the place where users import them.

    Pickles, skops, MLflow and messages name a class by its ``__module__``. That becomes ``"rankhinge"`` for the names
    that can be imported from there, and the room's own name for its others; or the address that is given. A room calls
    it when it has been filled.
    """
    package, module = sys.modules[room.partition(".")[0]], sys.modules[room]
    homes: dict[str, str] = package._HOME
    private = (f"{room}.", f"{package.__name__}._")
    for name in module.__all__:
        thing = vars(module).get(name)
        if isinstance(thing, type | FunctionType) and thing.__module__.startswith(private):
            # Two rooms may have a name in common: the package has that of one.
            own = package.__name__ if f"{package.__name__}.{homes.get(name)}" == room else room
            thing.__module__ = own if address is None else address


def shown_from(room: str, home: str, *names: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a room whose users find these names there, though they live in another one.

    That one is loaded when the first of them is asked for.
    """

    def look_up(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        found = vars(sys.modules[room])[name] = getattr(import_module(home), name)
        return found

    return look_up
