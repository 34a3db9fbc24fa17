"""The ranks at the edges of buckets: walked to (AP loss) and bisected."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rankhinge.inference.buckets import make_grid
from rankhinge.inference.callbacks import compile_loss
from rankhinge.inference.edges import HIGH, LOW, STOP, settle_buckets
from rankhinge.inference.passes import count
from rankhinge.inference.query import make_query
from rankhinge.losses import get_loss


@given(
    n_positives=st.integers(2, 200),
    n_negatives=st.integers(2, 600),
    shift=st.sampled_from([-1.0, 0.0, 0.5, 2.0, 5.0]),
    factor=st.sampled_from([1e-3, 1.0, 30.0, 1e9]),
    decimals=st.sampled_from([0, 1, 9]),
    seed=st.integers(0, 1000),
)
def test_walking_finds_what_bisecting_finds(n_positives, n_negatives, shift, factor, decimals, seed):
    """With P > N, ties, tiny and huge scores: the same settled buckets, the same groups."""
    rng = np.random.default_rng(seed)
    positives = factor * np.sort(np.round(shift + rng.normal(size=n_positives), decimals))[::-1]
    negatives = factor * np.round(rng.normal(size=n_negatives), decimals)
    compiled = compile_loss(get_loss("ap"), n_positives + n_negatives)
    query = make_query(compiled.addresses, compiled.table, positives, n_negatives)
    # No more edges than for which walking is chosen.
    grid = make_grid(negatives.min(), negatives.max(), min(n_negatives, 32 * n_positives))
    buckets = np.empty(n_negatives, np.uint32)
    found = []
    for is_ap in (True, False):
        counts = np.zeros(grid.size + 1, np.int64)
        count(negatives, np.zeros(n_negatives, bool), grid, buckets, counts)
        rank_counts = np.zeros(n_positives + 2, np.int64)
        groups, _ = settle_buckets(query._replace(is_ap=is_ap), grid, counts, 0, 1, n_positives + 1, rank_counts)
        found.append((counts[buckets], rank_counts, groups))
    for walked, bisected in zip(*found, strict=True):
        np.testing.assert_array_equal(walked, bisected)
    codes, rank_counts, groups = found[0]
    n_left = int(groups[-1, STOP]) if len(groups) else 0
    assert rank_counts.sum() == np.count_nonzero(codes > 0) == n_negatives - n_left
    assert (groups[:, LOW] < groups[:, HIGH]).all()
