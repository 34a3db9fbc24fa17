"""Fits on the workers of a Dask cluster: `RankSVC` and `SVMRanker` take dask arrays and frames as they are.

There is nothing to import from here: with a `distributed.Client` in force, ``RankSVC().fit(X, y)`` leaves X where it
is. `docs/scaling.md` has the costs, and when not to.
"""

from __future__ import annotations

from rankhinge.dask.container import DaskContainer, accepts
from rankhinge.problems.door import register

__all__: list[str] = []

register(accepts, DaskContainer())
