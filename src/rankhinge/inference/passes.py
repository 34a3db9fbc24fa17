"""The passes over a whole list: what must look at every sample, and does little else.

Each works on a stretch of the list so that threads can share it. They go by chunks of a fixed size, small enough to
stay in the cache between two loops over one; sums are kept by chunk, whoever computes them, so that the result has
the same bits with any number of threads. Stretches are sliced first: an index that may be negative, as Python
allows, would keep the loops from being vectorised.
"""

from __future__ import annotations

import numpy as np

from rankhinge._jit import inner, kernel
from rankhinge.inference.buckets import bucket_of

# Differences of scores, and sums of a list's worth of them, must not overflow.
LARGEST_SCORE = 1e300
CHUNK = 1 << 14
_ROOM = 512


@kernel
def first_bad(scores):
    """The first place with a NaN, infinite or too large score, or -1."""
    bad = False
    for k in range(scores.size):
        bad |= not (abs(scores[k]) <= LARGEST_SCORE)
    if bad:
        for k in range(scores.size):
            if not (abs(scores[k]) <= LARGEST_SCORE):
                return k
    return -1


@inner
def extent(scores, relevant):
    """Least and greatest score of the negatives; there must be one."""
    first = 0
    while relevant[first]:
        first += 1
    filler = np.float64(scores[first])
    # Four lanes: a single running minimum would wait for itself at every sample.
    low0 = low1 = low2 = low3 = filler
    high0 = high1 = high2 = high3 = filler
    room = np.empty(_ROOM)
    for k in range(_ROOM):
        room[k] = filler
    for start in range(0, scores.size, _ROOM):
        part, part_relevant = scores[start : start + _ROOM], relevant[start : start + _ROOM]
        # This copy is vectorised; amid the comparisons the choice would be a branch, mispredicted on mixed lists.
        for k in range(part.size):
            room[k] = filler if part_relevant[k] else np.float64(part[k])
        # What an earlier part has left beyond the end does no harm.
        for k in range(0, part.size, 4):
            s0, s1, s2, s3 = room[k], room[k + 1], room[k + 2], room[k + 3]
            low0, high0 = s0 if s0 < low0 else low0, s0 if s0 > high0 else high0
            low1, high1 = s1 if s1 < low1 else low1, s1 if s1 > high1 else high1
            low2, high2 = s2 if s2 < low2 else low2, s2 if s2 > high2 else high2
            low3, high3 = s3 if s3 < low3 else low3, s3 if s3 > high3 else high3
    low0, high0 = low1 if low1 < low0 else low0, high1 if high1 > high0 else high0
    low2, high2 = low3 if low3 < low2 else low2, high3 if high3 > high2 else high2
    return low2 if low2 < low0 else low0, high2 if high2 > high0 else high0


@kernel
def count(scores, relevant, grid, buckets, counts):
    """Count the samples in each bucket (positives: one beyond the last) and keep each sample's bucket.

    Returns the first place with a bad score, or -1.
    """
    for start in range(0, scores.size, CHUNK):
        part = scores[start : start + CHUNK]
        bad = first_bad(part)
        if bad >= 0:
            return start + bad
        part_relevant, part_buckets = relevant[start : start + CHUNK], buckets[start : start + CHUNK]
        # Two loops: the first is vectorised.
        for k in range(part.size):
            part_buckets[k] = np.uint32(grid.size) if part_relevant[k] else bucket_of(grid, np.float64(part[k]))
        for k in range(part.size):
            counts[part_buckets[k]] += 1
    return -1


@kernel
def write(query, scores, buckets, offset, codes, following, values, index, centre, coefficients, sums):
    """Write u of the settled buckets; move the samples of unsettled ones, in order, to ``following[g]`` on.

    `codes` is what `settle_buckets` has found. ``sums[c]`` becomes the part of ``Σ u (s - centre)`` of chunk c. `index`
    counts from `offset`.
    """
    n_ranks = query.positives.size + 1
    unit = 2.0 / query.positives.size / query.n_negatives
    left = np.empty((scores.size if scores.size < CHUNK else CHUNK) + 1, np.int32)
    for start in range(0, scores.size, CHUNK):
        part, part_buckets = scores[start : start + CHUNK], buckets[start : start + CHUNK]
        part_coefficients = coefficients[start : start + CHUNK]
        total, n_left = 0.0, 0
        for k in range(part.size):
            code = codes[part_buckets[k]]
            # No branch: which samples are settled cannot be guessed.
            u = unit * (n_ranks - code if code >= 0 else 0)
            part_coefficients[k] = u
            total += u * (np.float64(part[k]) - centre)
            left[n_left] = k
            n_left += code < 0
        for place_left in range(n_left):
            k = left[place_left]
            group = np.uint32(-1 - codes[part_buckets[k]])
            place = following[group]
            following[group] = place + 1
            values[place], index[place] = part[k], offset + start + k
        sums[start // CHUNK] = total


@kernel
def collect(scores, relevant, offset, cut, values, index):
    """Copy the negatives that score at least `cut`; `index` counts from `offset`.

    Returns how many there are (-1: more than there is room for) and the first place with a bad score, or -1.
    """
    size = 0
    for start in range(0, scores.size, CHUNK):
        part, part_relevant = scores[start : start + CHUNK], relevant[start : start + CHUNK]
        bad = first_bad(part)
        if bad >= 0:
            return size, start + bad
        if size + part.size > values.size:
            return -1, -1
        for k in range(part.size):
            score = np.float64(part[k])
            if score >= cut and not part_relevant[k]:
                values[size], index[size] = score, offset + start + k
                size += 1
    return size, -1
