"""The kernels of a spread inference, and what its messages are packed into, against slow twins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from rankhinge.inference.callbacks import compile_loss
from rankhinge.inference.query import best_rank, make_query
from rankhinge.inference.spread import Counts, Runs, TopCounts
from rankhinge.inference.spread.kernels import expand, settle_tied
from rankhinge.losses import get_loss


@njit
def ranks_one_by_one(query, score, j0, size, low, high):
    ranks = np.empty(size, np.int64)
    for k in range(size):
        ranks[k] = best_rank(query, j0 + 1 + k, score, low, high)
    return ranks


@pytest.mark.parametrize("loss", ["ap", "ndcg", "auc"])
@pytest.mark.parametrize("seed", range(20))
def test_ties_by_bisection_have_the_ranks_of_each_on_its_own(loss, seed):
    """The same bits of the coefficients; groups that are not chosen are left alone."""
    rng = np.random.default_rng(seed)
    n_positives = int(rng.integers(1, 60))
    sizes = rng.integers(1, 40, int(rng.integers(1, 20)))
    n_negatives = int(sizes.sum()) + 5
    positives = np.sort(rng.normal(size=n_positives))[::-1].copy()
    compiled = compile_loss(get_loss(loss), n_positives + n_negatives)
    query = make_query(compiled.addresses, compiled.table, positives, n_negatives)
    scores = rng.normal(size=sizes.size)
    first_ranks = np.sort(rng.integers(1, n_positives + 2, sizes.size + 1))
    # Each group may have all ranks between those of its neighbours.
    groups = np.column_stack([sizes, np.cumsum(sizes) - sizes, first_ranks[:-1], first_ranks[1:]])
    chosen, places = rng.random(sizes.size) < 0.7, rng.permutation(2 * sizes.size)[: sizes.size]
    rank_counts, coefficients = np.zeros(n_positives + 2, np.int64), np.full(2 * sizes.size, np.nan)
    settle_tied(query, groups, scores, chosen, places, rank_counts, coefficients)
    expected_counts, expected = np.zeros(n_positives + 2, np.int64), np.full(2 * sizes.size, np.nan)
    unit = 2.0 / n_positives / n_negatives
    for g in np.flatnonzero(chosen):
        size, j0, low, high = groups[g].tolist()
        ranks = ranks_one_by_one(query, scores[g], j0, size, low, high)
        np.add.at(expected_counts, ranks, 1)
        expected[places[g]] = unit * (int((n_positives + 1 - ranks).sum()) / size)
    np.testing.assert_array_equal(rank_counts, expected_counts)
    assert coefficients.tobytes() == expected.tobytes()


@given(st.lists(st.sampled_from([0.0, 0.25, 1.0, np.nan]), max_size=60))
def test_runs_there_and_back(coefficients):
    """Coefficients return as they were, a 0 follows them, and open buckets are numbered in order."""
    table, numbers = np.empty(len(coefficients) + 1), np.empty(len(coefficients), np.int32)
    expand(*Runs.of(np.array(coefficients)), table, numbers)
    np.testing.assert_array_equal(table, [*coefficients, 0.0])
    is_open = np.isnan(coefficients)
    np.testing.assert_array_equal(numbers[is_open], np.arange(np.count_nonzero(is_open)))


@pytest.mark.parametrize(
    ("largest", "n_bytes"), [(0, 1), (255, 1), (256, 2), (65_535, 2), (65_536, 4), (2**32 - 1, 4), (2**32, 8)]
)
def test_counts_travel_in_as_few_bytes_as_hold_them(largest, n_bytes):
    """And are merged without overflow."""
    counts, none = np.array([3, largest]), np.zeros(0)
    compact = Counts(counts, none, none, counts[::-1]).compact()
    assert compact.counts.itemsize == compact.ranked.itemsize == n_bytes
    merged = Counts.merged([compact, Counts(np.array([250, 1]), none, none, np.array([1, 1])).compact(), compact])
    assert merged.counts.tolist() == [256, 2 * largest + 1]
    assert merged.ranked.tolist() == [2 * largest + 1, 7]
    top = TopCounts(np.array([1.0, 0.0]), counts, -np.inf, counts).compact()
    assert TopCounts.merged([top, top]).counts.tolist() == [6, 2 * largest]
