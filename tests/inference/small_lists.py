"""Thousands of small lists of every awkward kind, for the comparison with brute force."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tests.inference.cases import LOSS_CASES, SHAPES

LARGEST = 1e300
PER_SHAPE = 840


def _normal(rng, shape, n_positives):
    return rng.normal(size=shape)


def _few_values(rng, shape, n_positives):
    return rng.integers(-1, 2, size=shape) * rng.choice([0.25, 1.0, 3.0], size=(shape[0], 1))


def _constant(rng, shape, n_positives):
    return np.repeat(rng.normal(size=(shape[0], 1)), shape[1], axis=1)


def _one_scale(rng, shape, n_positives):
    scale = 10.0 ** rng.uniform(-300, 300, size=(shape[0], 1))
    return np.clip(rng.normal(size=shape) * scale, -LARGEST, LARGEST)


def _many_scales(rng, shape, n_positives):
    return rng.choice([-1.0, 1.0], size=shape) * 10.0 ** rng.uniform(-300, 300, size=shape)


def _few_outliers(rng, shape, n_positives):
    far = 10.0 ** rng.uniform(3, 30, size=shape) * (rng.random(size=shape) < 0.3)
    # On the harmless side: a positive far above, a negative far below, where J stays near Δ.
    side = np.where(np.arange(shape[1]) < n_positives, 1.0, -1.0)
    return 0.3 * rng.normal(size=shape) + side * far


def _extremes(rng, shape, n_positives):
    return rng.choice([-LARGEST, -1.0, -1e-300, 0.0, 5e-324, 1e-300, 1.0, LARGEST], size=shape)


def _offset(rng, shape, n_positives):
    return rng.choice([1e6, -1e12], size=(shape[0], 1)) + rng.normal(size=shape)


def _separated(rng, shape, n_positives):
    gap = rng.uniform(0, 3, size=(shape[0], 1)) * (np.arange(shape[1]) < n_positives)
    return 0.2 * rng.normal(size=shape) + gap


def _wrong_way_round(rng, shape, n_positives):
    return rng.normal(size=shape) - 3 * (np.arange(shape[1]) < n_positives)


def _on_kinks(rng, shape, n_positives):
    """Differences equal to ``P N / 2`` times a fraction with a small denominator: where AP's ranks change."""
    half = n_positives * (shape[1] - n_positives) / 2
    fractions = rng.integers(-3, 4, size=shape) / rng.choice([2, 6, 12, 20, 30], size=(shape[0], 1))
    return half / n_positives * fractions


KINDS = {
    "normal": _normal,
    "few values": _few_values,
    "constant": _constant,
    "one scale": _one_scale,
    "many scales": _many_scales,
    "few outliers": _few_outliers,
    "extremes": _extremes,
    "offset": _offset,
    "separated": _separated,
    "wrong way round": _wrong_way_round,
    "on kinks": _on_kinks,
}
FLOAT32_SAFE = ("normal", "few values", "constant", "separated", "wrong way round", "on kinks")


class Group(NamedTuple):
    """Lists of one size, one kind and one dtype; the first `n_positives` of each row are relevant."""

    kind: str
    n_positives: int
    scores: np.ndarray


def groups(n_positives, n_negatives):
    """`PER_SHAPE` lists of this size, of all kinds in turn, some of them in float32."""
    rng = np.random.default_rng([n_positives, n_negatives])
    plan = [(kind, np.float64) for kind in KINDS] + [(kind, np.float32) for kind in FLOAT32_SAFE]
    size = -(-PER_SHAPE // len(plan))
    for kind, dtype in plan:
        scores = KINDS[kind](rng, (size, n_positives + n_negatives), n_positives)
        yield Group(kind, n_positives, scores.astype(dtype))


def all_groups():
    for n_positives, n_negatives in SHAPES:
        yield from groups(n_positives, n_negatives)


def loss_of(number):
    """The loss that the list of this number is checked for with all methods."""
    return LOSS_CASES[number % len(LOSS_CASES)]
