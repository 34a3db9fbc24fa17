"""How kernels are compiled: cached on disk, without the GIL, and with no wrapper that nobody calls.

The first call of a process that finds no cache waits for the compiler, and each wrapper is a function more to compile:
`kernel` is for what Python calls, `inner` for what only kernels call, `once` for what is called in one place only: it
becomes part of its caller before types are inferred, and is compiled once instead of twice. A constant as an argument
is a type of its own, and a function that is called with one and with a variable is compiled twice: hence
``np.int64(0)`` here and there.
"""

from __future__ import annotations

from numba import njit

__all__ = ["inner", "kernel", "once"]

# Kernels divide by nothing that can be 0: a check at each division would be a branch, and more to compile. They have no
# expressions of whole arrays either, which could be rewritten as one loop.
_OPTIONS = {"cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "no_rewrites": True}
kernel = njit(**_OPTIONS)
inner = njit(**_OPTIONS, no_cpython_wrapper=True)
once = njit(**_OPTIONS, no_cpython_wrapper=True, inline="always")
