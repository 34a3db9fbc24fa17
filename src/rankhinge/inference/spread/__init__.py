"""Inference on a list whose scores lie in parts, on the workers of a cluster for instance: exact, by counts."""

from __future__ import annotations

from rankhinge.inference.spread.coordinator import BadScoreError, Spread, infer_spread, sample_stride
from rankhinge.inference.spread.messages import Count, Counts, Finish, Refine, Request, Runs, Ship, Shipped
from rankhinge.inference.spread.part import ListPart

__all__ = [
    "BadScoreError",
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
    "infer_spread",
    "sample_stride",
]
