"""What every test run needs: which modules can be collected here, and how hypothesis goes about it."""

from __future__ import annotations

import os
from importlib.util import find_spec

from hypothesis import settings

# Doctests import the module they are in: leave out those whose library is not installed.
_NEEDS = {
    "src/rankhinge/dask": "distributed",
    "src/rankhinge/plotting": "matplotlib",
    "src/rankhinge/torch": "torch",
    "tests/torch": "torch",
}
collect_ignore = [path for path, library in _NEEDS.items() if find_spec(library) is None]

# Processes that share the tests and each start a thread a core make each other wait at every operation of PyTorch,
# tens of milliseconds for an addition. Set before PyTorch is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Ours are to be used all the same.
os.environ.setdefault("RANKHINGE_NUM_THREADS", str(os.cpu_count()))

# No deadline: the first call of a kernel compiles it. The same examples in every run, so that a
# failure is the fault of the change at hand.
settings.register_profile("rankhinge", deadline=None, derandomize=True)
settings.load_profile("rankhinge")
