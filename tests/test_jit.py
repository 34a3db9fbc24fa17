"""Kernels without a cache: no folder to write to, or no room in it."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import textwrap

import pytest
from numba import float64

from rankhinge import _jit

SOURCE = "def double(x):\n    return 2 * x\n"


def test_no_folder_for_the_cache(monkeypatch):
    monkeypatch.setattr(_jit, "_warned", False)
    space: dict[str, object] = {}
    # What has no file has no place for a cache either.
    exec(compile(SOURCE, "<string>", "exec"), space)
    with pytest.warns(RuntimeWarning, match=r"cannot be kept .* NUMBA_CACHE_DIR"):
        double = _jit.kernel(space["double"])
    assert double(1.5) == 3.0
    # Once is enough.
    assert _jit.callback(float64(float64), space["double"])(space["double"]).ctypes(1.5) == 3.0


@pytest.mark.skipif(sys.platform == "win32", reason="no limits there")
def test_no_room_for_the_cache(tmp_path):
    (tmp_path / "mine.py").write_text("from rankhinge._jit import kernel\n\n@kernel\n" + SOURCE)
    program = textwrap.dedent(
        """
        import resource, warnings
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            import mine
            print(mine.double(1.5), mine.double(2), [str(one.message)[:36] for one in seen])
        """
    )
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path), "PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stdout.strip() == "3.0 4 ['compiled code cannot be kept ([Errno']", done.stderr


def test_formulas_come_from_the_cache_and_are_told_apart(tmp_path):
    """A second process compiles no callback, and each loss has its own."""
    program = (
        "from rankhinge import structured_hinge as J; from rankhinge.inference import callbacks; "
        "print([J([2.0, 1.5, 1.0, 0.5], [1, 0, 1, 0], loss) for loss in ('ap', 'ndcg', 'rr', 'auc')]); "
        "print(sum(c.cache_hits for code in {id(v): v for v in callbacks._packed.values()}.values() "
        "for c in code.callbacks))"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    found = [
        subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    (first, no_hits), (second, hits) = (done.stdout.splitlines() for done in found)
    assert first == second
    assert len(set(ast.literal_eval(first))) >= 3
    assert (int(no_hits), int(hits)) == (0, 12)


NOTICE = "compiling kernels, once, about "


@pytest.mark.parametrize("verbose", [0, 1])
def test_who_waits_for_the_compiler_is_told(tmp_path, verbose):
    """With an empty cache and somebody who looks; a second process finds all of it, and says nothing."""
    program = (
        "import numpy as np, rankhinge; X = np.random.default_rng(0).normal(size=(60, 3)); "
        f"rankhinge.RankSVC(bound='convex', C=1.0, verbose={verbose}).fit(X, X[:, 0] > 0)"
    )
    environment = dict(os.environ, NUMBA_CACHE_DIR=str(tmp_path))
    for is_first in (True, False):
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stderr.count(NOTICE) == int(is_first and verbose)
    if verbose == 0:
        return
    assert (
        f"kept in {tmp_path}"
        in subprocess.run(
            [sys.executable, "-c", program],
            env=environment | {"NUMBA_CACHE_DIR": str(tmp_path / "new")},
            capture_output=True,
            text=True,
            check=True,
        ).stderr
    )
