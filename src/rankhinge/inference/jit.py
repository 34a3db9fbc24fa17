"""How kernels are compiled: cached on disk, without the GIL, and with no wrapper that nobody calls.

The first call of a process that finds no cache waits for the compiler, and each wrapper is a function more to compile:
`kernel` is for what Python calls, `inner` for what only kernels call.
"""

from __future__ import annotations

from numba import njit

__all__ = ["inner", "kernel"]

kernel = njit(cache=True, nogil=True, no_cfunc_wrapper=True)
inner = njit(cache=True, nogil=True, no_cfunc_wrapper=True, no_cpython_wrapper=True)
