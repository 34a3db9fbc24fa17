"""The judge of small convex problems: Clarabel, an interior-point solver that shares nothing with the library."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse


def quadratic_minimum(diagonal, linear, lines, bounds):
    """The least ``½ Σ diagonal z² + linear · z`` subject to ``lines @ z ≥ bounds``.

    A general method of descent gets stuck at 1e-6 here, or gives up, depending on the last bits of its products.
    """
    clarabel = pytest.importorskip("clarabel", reason="needs clarabel, of the extra `test`")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    solution = clarabel.DefaultSolver(
        sparse.diags_array(np.asarray(diagonal, dtype=float)).tocsc(),
        np.asarray(linear, dtype=float),
        sparse.csc_array(-np.asarray(lines, dtype=float)),
        -np.asarray(bounds, dtype=float),
        [clarabel.NonnegativeConeT(len(bounds))],
        settings,
    ).solve()
    assert str(solution.status) in ("Solved", "AlmostSolved")
    return solution.obj_val
