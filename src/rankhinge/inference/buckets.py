"""Cutting a range of scores into buckets whose edges are exact.

Bucket b holds the scores with ``round(s · 2^m) - base = b``. Multiplying by a power of two rounds nothing, so the
edge between buckets b - 1 and b is the float ``(b + base - ½) · 2^-m`` itself: no sample lies on the wrong side of
the edge that the search uses (one exactly on it may lie in either bucket, which decides nothing). Scores beyond
the range fall into the first or the last bucket.
"""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np

from rankhinge._jit import inner, kernel

Grid = namedtuple("Grid", "size scale width base lowest highest")
Grid.__doc__ = """`size` buckets of `width` = 1 / `scale`; scores are clipped to ``lowest … highest`` first."""

_LARGEST_POWER = 1022
# Added to a number below 2^51, it leaves the number, rounded, in the last bits: the cheapest way to an integer.
_ROUNDING = 1.5 * 2.0**52
_ROUNDING_BITS = int(np.float64(_ROUNDING).view(np.int64))


@kernel
def make_grid(lowest, highest, size):
    """About `size` buckets (between half of it and all) over ``lowest … highest``; one if these are too close."""
    _, exponent = math.frexp((highest - lowest) / size)
    power = _LARGEST_POWER if -exponent > _LARGEST_POWER else -exponent
    _, exponent = math.frexp(abs(highest) if abs(highest) > abs(lowest) else abs(lowest))
    # Products must stay below 2^51; scores closer together than that allows are few different floats anyway.
    power = 50 - exponent if power > 50 - exponent else power
    scale = math.ldexp(1.0, power)
    base = _rounded(lowest * scale)
    return Grid(_rounded(highest * scale) - base + 1, scale, math.ldexp(1.0, -power), base, lowest, highest)


@inner
def _rounded(number):
    return np.float64(number + _ROUNDING).view(np.int64) - _ROUNDING_BITS


@inner
def bucket_of(grid, score):
    """The bucket of a score; a NaN goes to the first."""
    clipped = score if score > grid.lowest else grid.lowest
    clipped = clipped if clipped < grid.highest else grid.highest
    return np.uint32(_rounded(clipped * grid.scale) - grid.base)


@inner
def lower_edge(grid, bucket):
    """No score in this bucket (not the first) is smaller, none in the buckets before it is larger."""
    return (bucket + grid.base - 0.5) * grid.width
