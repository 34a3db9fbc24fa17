"""How kernels are compiled: cached on disk, without the GIL, and without unused wrappers.

The first call of a process that finds no cache waits for the compiler, and each wrapper is one more function to
compile. So there are four decorators. `kernel` is for functions that Python calls, `inner` for those that only kernels
call. `once` is for those that are called in one place: they become part of the caller before types are inferred, and
are compiled once instead of twice. `callback` is for those called by address.

A literal argument has a type of its own. A function that is called with a literal and with a variable is compiled
twice: hence `ZERO`, `ONE` and `NONE`, which have the type of a variable.

The cache is a convenience. Where there is no folder to write to, or no room in it, each process compiles for itself.
"""

from __future__ import annotations

import contextlib
import hashlib
import sys
import threading
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numba import njit
from numba.core.ccallback import CFunc

from rankhinge._progress import is_terminal, is_watched

__all__ = ["NONE", "ONE", "ZERO", "callback", "compiled", "inner", "kernel", "once"]

# Kernels divide by nothing that can be 0: a check at each division would be a branch, and more to compile. They have no
# expressions of whole arrays either, which could be rewritten as one loop.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "no_rewrites": True}
ZERO: Any = np.int64(0)
ONE: Any = np.int64(1)
NONE: Any = np.int64(-1)
_warned = False
# Seconds of compiling after which a message appears: less than the second in which patience ends.
_PATIENCE = 0.5
# Typical seconds of compiling in a first fit, for the message.
_FIRST_FIT = 10


class _Notice:
    """Says once in each process that kernels are being compiled, if that takes a while on a terminal.

    A kernel that has to be compiled finds no entry in its cache first, and saves one at last; the kernels that it calls
    do so meanwhile.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_open = 0
        self._began = 0.0
        self._spent = 0.0
        self._is_said = False

    def begins(self, folder: str) -> None:
        """A kernel is going to be compiled, and kept in that folder."""
        with self._lock:
            self._n_open += 1
            if self._is_said or self._n_open > 1:
                return
            self._began = time.monotonic()
            timer = threading.Timer(max(0.0, _PATIENCE - self._spent), self._say, [folder])
        timer.daemon = True
        timer.start()

    def ends(self) -> None:
        """A kernel has been compiled."""
        with self._lock:
            self._n_open = max(0, self._n_open - 1)
            if self._n_open == 0:
                self._spent += time.monotonic() - self._began

    def _say(self, folder: str) -> None:
        with self._lock:
            if self._is_said or self._n_open == 0 or not (is_watched() or is_terminal(sys.stderr)):
                return
            self._is_said = True
        # A stream that is closed or broken is no reason to lose a fit.
        with contextlib.suppress(OSError, ValueError, AttributeError):
            print(f"compiling kernels, once, about {_FIRST_FIT} s; kept in {folder}", file=sys.stderr, flush=True)


_notice = _Notice()


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
    """Let a full disk fail the cache only: numba would raise its error. Tell the notice about compiling."""
    cache = getattr(made, "_cache", None)
    if cache is None:
        return
    save, load = cache.save_overload, cache.load_overload

    def save_overload(*arguments: Any) -> None:
        _notice.ends()
        try:
            save(*arguments)
        except OSError as error:
            _without_cache(error)

    def load_overload(*arguments: Any) -> Any:
        found = load(*arguments)
        if found is None:
            _notice.begins(str(cache.cache_path))
        return found

    cache.save_overload, cache.load_overload = save_overload, load_overload


def compiled(function: Callable[..., Any], **options: Any) -> Any:
    """``njit(**options)(function)``, cached if possible."""
    return _cached(partial(njit, **options), function)


def callback(signature: Any, formula: Any) -> Callable[[Callable[..., Any]], Any]:
    """``cfunc(signature)`` for what is called by address and has compiled a formula of a loss into itself.

    numba's key of a function with such a closure differs in every process, so that it would never come from the cache.
    Here the key is the code of both. Formulas that are not this package's may depend on anything: they are not kept.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        made = CFunc(function, (signature.args, signature.return_type), {}, {"error_model": "numpy"})
        if str(getattr(formula, "__module__", None)).startswith(f"{__package__}.") and not formula.__closure__:
            _keep(made, function, formula)
        made.compile()
        return made

    return decorate


def _keep(made: Any, function: Callable[..., Any], formula: Any) -> None:
    """Give a callback a cache whose key tells its formula from others, if there is a place for one."""
    try:
        made.enable_caching()
    except RuntimeError as error:
        if "locator" not in str(error):
            raise
        _without_cache("there is no folder that can be written to")
        return
    codes = [(f.__qualname__, f.__code__) for f in (function, formula)]
    described = [(name, code.co_code, code.co_consts, code.co_names) for name, code in codes]
    flags = [cell.cell_contents for cell in function.__closure__ or () if isinstance(cell.cell_contents, bool)]
    fingerprint = hashlib.sha256(repr((described, flags)).encode()).hexdigest()
    made._cache._index_key = lambda signature, codegen: (signature, codegen.magic_tuple(), fingerprint)
    _keep_if_possible(made)


kernel: Callable[[Callable[..., Any]], Any] = partial(compiled, **_OPTIONS)
inner: Callable[[Callable[..., Any]], Any] = partial(compiled, **_OPTIONS, no_cpython_wrapper=True)
once: Callable[[Callable[..., Any]], Any] = partial(compiled, **_OPTIONS, no_cpython_wrapper=True, inline="always")
