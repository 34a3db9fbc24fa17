"""Small bags, and the latent objective by brute force."""

from __future__ import annotations

import itertools

import numpy as np

from rankhinge import structured_hinge
from rankhinge.latent import Bags


def bags_and_labels(n=40, d=4, seed=0, sizes=(1, 6), share=3, shift=2.0):
    """Bags of several candidates; a positive one (one in `share`) has one candidate that is shifted."""
    rng = np.random.default_rng(seed)
    n_candidates = rng.integers(*sizes, size=n)
    y = (np.arange(n) % share == 0).astype(int)
    parts = [rng.normal(size=(size, d)) for size in n_candidates]
    for b in np.flatnonzero(y):
        parts[b][rng.integers(len(parts[b])), 0] += shift
    order = rng.permutation(n)
    return Bags([parts[b] for b in order]), y[order]


def multilabel_bags(n=40, d=4, n_labels=3, seed=0):
    rng = np.random.default_rng(seed)
    parts = [rng.normal(size=(rng.integers(1, 6), d)) for _ in range(n)]
    best = np.array([part[:, :n_labels].max(axis=0) for part in parts])
    return Bags(parts), (best + 0.5 * rng.normal(size=best.shape) > 1.0).astype(int)


def outer_objective(w, bags, y, C, loss="ap", chosen=None):
    """``F(w)`` by the book: each bag at its best candidate, or at the known one."""
    scores = []
    for b, bag in enumerate(bags):
        own = bag @ w
        scores.append(own.max() if chosen is None or chosen[b] < 0 else own[chosen[b]])
    return 0.5 * w @ w + C * structured_hinge(np.array(scores), y.astype(bool), loss=loss)


def choices(sizes):
    """All ways to choose a candidate of each bag."""
    return itertools.product(*(range(size) for size in sizes))
