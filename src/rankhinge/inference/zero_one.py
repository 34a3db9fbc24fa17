"""The decomposable baseline: mean over samples of ``max(0, 1 - y s)``, y = ±1."""

from __future__ import annotations

from rankhinge._jit import inner, kernel
from rankhinge.inference.passes import CHUNK, first_bad


@kernel
def hinge(scores, relevant, n_samples, coefficients, sums, margins):
    """Write ``u = -y / n`` where ``y s < 1``, else 0.

    ``sums[c]`` becomes the sum of the hinges over chunk c and ``margins[c]`` the number of samples within the margin.
    Returns the first place with a bad score, or -1.
    """
    unit = 1.0 / n_samples
    for start in range(0, scores.size, CHUNK):
        part, part_relevant = scores[start : start + CHUNK], relevant[start : start + CHUNK]
        part_coefficients = coefficients[start : start + CHUNK]
        bad = first_bad(part)
        if bad >= 0:
            return start + bad
        inside = 0
        for k in range(part.size):
            signed = part[k] if part_relevant[k] else -part[k]
            within = signed < 1.0
            inside += within
            part_coefficients[k] = (-unit if part_relevant[k] else unit) if within else 0.0
        sums[start // CHUNK] = _sum_of_hinges(part, part_relevant)
        margins[start // CHUNK] = inside
    return -1


@inner
def _sum_of_hinges(scores, relevant):
    # Four lanes: a single running sum would wait for itself at every sample.
    sum0 = sum1 = sum2 = sum3 = 0.0
    for quarter in range(scores.size // 4):
        k = 4 * quarter
        sum0 += max(0.0, 1.0 - (scores[k] if relevant[k] else -scores[k]))
        sum1 += max(0.0, 1.0 - (scores[k + 1] if relevant[k + 1] else -scores[k + 1]))
        sum2 += max(0.0, 1.0 - (scores[k + 2] if relevant[k + 2] else -scores[k + 2]))
        sum3 += max(0.0, 1.0 - (scores[k + 3] if relevant[k + 3] else -scores[k + 3]))
    for k in range(scores.size // 4 * 4, scores.size):
        sum0 += max(0.0, 1.0 - (scores[k] if relevant[k] else -scores[k]))
    return (sum0 + sum1) + (sum2 + sum3)
