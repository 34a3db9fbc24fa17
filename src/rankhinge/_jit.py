"""How kernels are compiled: cached on disk, without the GIL, and with no wrapper that nobody calls.

The first call of a process that finds no cache waits for the compiler, and each wrapper is a function more to compile:
`kernel` is for what Python calls, `inner` for what only kernels call, `once` for what is called in one place only: it
becomes part of its caller before types are inferred, and is compiled once instead of twice; `callback` is for what is
called by address. A constant as an argument is a type of its own, and a function that is called with one and with a
variable is compiled twice: hence ``np.int64(0)`` here and there.

The cache is a convenience. Where there is no folder to write to, or no room in it, each process compiles for itself.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from numba import cfunc, njit

__all__ = ["callback", "compiled", "inner", "kernel", "once"]

# Kernels divide by nothing that can be 0: a check at each division would be a branch, and more to compile. They have no
# expressions of whole arrays either, which could be rewritten as one loop.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "no_rewrites": True}
_warned = False


def _without_cache(reason: object) -> None:
    """Say once that each process will compile for itself."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"compiled code cannot be kept ({reason}): each process will compile it anew, which takes some seconds. "
            "Set NUMBA_CACHE_DIR to a folder that can be written to",
            RuntimeWarning,
            stacklevel=3,
        )


def _cached(decorate: Callable[..., Any], function: Callable[..., Any]) -> Any:
    """The function decorated by numba, with its cache if there is a place for it."""
    try:
        made = decorate(cache=True)(function)
    except RuntimeError as error:
        if "locator" not in str(error):
            raise
        _without_cache("there is no folder that can be written to")
        return decorate(cache=False)(function)
    _keep_if_possible(made)
    return made


def _keep_if_possible(made: Any) -> None:
    """Let the function's cache fail to save: numba would pass on the error of a full disk."""
    cache = getattr(made, "_cache", None)
    if cache is None:
        return
    save = cache.save_overload

    def save_overload(*arguments: Any) -> None:
        try:
            save(*arguments)
        except OSError as error:
            _without_cache(error)

    cache.save_overload = save_overload


def compiled(function: Callable[..., Any], **options: Any) -> Any:
    """``njit(**options)(function)``, cached if possible."""
    return _cached(partial(njit, **options), function)


def callback(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """``cfunc(signature)`` for what is called by address."""
    return partial(_cached, partial(cfunc, signature, error_model="numpy"))


kernel: Callable[[Callable[..., Any]], Any] = partial(compiled, **_OPTIONS)
inner: Callable[[Callable[..., Any]], Any] = partial(compiled, **_OPTIONS, no_cpython_wrapper=True)
once: Callable[[Callable[..., Any]], Any] = partial(compiled, **_OPTIONS, no_cpython_wrapper=True, inline="always")
