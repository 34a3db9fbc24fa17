"""Exact inference, by counts, on a list whose scores lie in several parts, for instance on the workers of a cluster."""

from __future__ import annotations

from rankhinge.inference.spread.coordinator import BadScoreError, Spread, infer_spread, sample_stride
from rankhinge.inference.spread.messages import (
    Count,
    Counts,
    Finish,
    Refine,
    Request,
    Runs,
    Ship,
    Shipped,
    Top,
    TopCounts,
)
from rankhinge.inference.spread.part import ListPart
from rankhinge.inference.spread.top import CompiledCut, compile_cut, infer_top

__all__ = [
    "BadScoreError",
    "CompiledCut",
    "Count",
    "Counts",
    "Finish",
    "ListPart",
    "Refine",
    "Request",
    "Runs",
    "Ship",
    "Shipped",
    "Spread",
    "Top",
    "TopCounts",
    "compile_cut",
    "infer_spread",
    "infer_top",
    "sample_stride",
]
