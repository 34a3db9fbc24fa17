"""The public names of the package, for the reference's pages and for the tests that ask for them."""

from __future__ import annotations

import importlib
import inspect
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

# Rooms that need an extra: public, but not in `rankhinge.__all__`, all of which can be imported without one.
EXTRA_MODULES = {"rankhinge.torch": "torch", "rankhinge.dask": "distributed"}


def public_modules() -> list[str]:
    """`rankhinge`, the submodules with public names of their own, and those of the extras that are installed."""
    import rankhinge

    rooms = [name for name in rankhinge.__all__ if isinstance(getattr(rankhinge, name), ModuleType)]
    extras = [name for name, library in EXTRA_MODULES.items() if find_spec(library) and find_spec(name)]
    modules = ["rankhinge", *(f"rankhinge.{room}" for room in sorted(rooms)), *extras]
    return [module for module in modules if public_objects(module)]


def public_objects(module_name: str) -> dict[str, Any]:
    """The names of a module's `__all__`, without submodules and without what `rankhinge` itself has."""
    module = importlib.import_module(module_name)
    names = getattr(module, "__all__", ())
    found = {name: getattr(module, name) for name in names}
    found = {name: thing for name, thing in found.items() if not isinstance(thing, ModuleType)}
    if module_name != "rankhinge":
        import rankhinge

        found = {name: thing for name, thing in found.items() if getattr(rankhinge, name, None) is not thing}
    return found


def names_of_kind(module_name: str, kind: str) -> list[str]:
    """The public classes (``kind="class"``), functions (``"function"``) or other things (``"other"``)."""
    return sorted((name for name, thing in public_objects(module_name).items() if _kind(thing) == kind), key=str.lower)


def _kind(thing: Any) -> str:
    if inspect.isclass(thing):
        return "class"
    return "function" if callable(thing) else "other"


def own_members(full_name: str) -> list[tuple[str, str]]:
    """The public methods and properties of a class that this package defines, each with its kind.

    What comes from scikit-learn, PyTorch or tuples is left out.
    """
    module_name, _, name = full_name.rpartition(".")
    cls = getattr(importlib.import_module(module_name), name)
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if not base.__module__.startswith("rankhinge"):
            continue
        for method, thing in vars(base).items():
            if method.startswith("_") or not (inspect.isfunction(thing) or isinstance(thing, (classmethod, property))):
                continue
            if inspect.getdoc(getattr(cls, method)):
                found[method] = "property" if isinstance(thing, property) else "method"
    return sorted(found.items())


def write_index(path: Path) -> None:
    """The page from which autosummary makes all others: a line for each public module."""
    lines = "\n".join(f"   {name}" for name in public_modules())
    text = f"""API
===

Everything that is public, with examples that run. What is not here may change at any time.

.. autosummary::
   :toctree: .

{lines}
"""
    path.parent.mkdir(exist_ok=True)
    if not path.exists() or path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")
