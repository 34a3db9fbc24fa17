"""Many lists at once."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from rankhinge import most_violating_ranking, most_violating_rankings
from tests.inference.cases import LOSS_CASES

EVERY_LOSS = pytest.mark.parametrize("case", LOSS_CASES, ids=lambda case: case.name)


def make_batch(sizes, seed=0, share=0.3, dtype=np.float64):
    """Scores, relevance and offsets of lists of these sizes; some scores are tied."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    scores = rng.normal(size=offsets[-1])
    scores[::3] = np.round(scores[::3])
    return scores.astype(dtype), rng.random(offsets[-1]) < share, offsets


def check_one_by_one(scores, relevant, offsets, loss="ap"):
    """Each list as if it were alone, in the same bits; zeros where it has not both classes."""
    batch = most_violating_rankings(scores, relevant, offsets, loss)
    for q, (start, stop) in enumerate(pairwise(offsets)):
        mine, mine_relevant = scores[start:stop], relevant[start:stop]
        usable = bool(mine_relevant.any() and not mine_relevant.all())
        assert batch.usable[q] == usable
        if usable:
            one = most_violating_ranking(mine, mine_relevant, loss)
            assert batch.values[q] == one.value
            assert batch.losses[q] == one.loss
            np.testing.assert_array_equal(batch.coefficients[start:stop], one.coefficients)
        else:
            assert batch.values[q] == batch.losses[q] == 0
            assert not batch.coefficients[start:stop].any()
    return batch


@EVERY_LOSS
def test_equals_one_by_one(case):
    sizes = np.random.default_rng(0).integers(0, 40, 60)
    check_one_by_one(*make_batch([*sizes, 700]), case.loss)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_long_list_among_short_ones(dtype):
    """Short lists before, between and after long ones; one long list is not usable."""
    scores, relevant, offsets = make_batch([5, 270_000, 3, 400, 265_000, 263_000, 20], share=0.01, dtype=dtype)
    relevant[offsets[5] : offsets[6]] = False
    batch = check_one_by_one(scores, relevant, offsets)
    assert batch.coefficients.dtype == dtype
    assert batch.values.dtype == batch.losses.dtype == np.float64


def test_more_samples_than_one_share():
    """Lists are handed to the threads in shares once there are many samples."""
    check_one_by_one(*make_batch(np.random.default_rng(1).integers(0, 400, 300), share=0.2))


def test_unusable_lists():
    """No positive, no negative, empty: zeros, and `usable` is False."""
    scores = np.arange(8.0)
    relevant = np.array([0, 0, 1, 1, 1, 0, 1, 0], bool)
    batch = check_one_by_one(scores, relevant, np.array([0, 2, 4, 4, 6, 7, 8]))
    assert batch.usable.tolist() == [False, False, False, True, False, False]
    assert repr(batch) == "MostViolatingRankings(1 of 6 lists usable)"


@pytest.mark.parametrize("loss", ["ap", "ndcg", "zero-one"])
@pytest.mark.parametrize("offsets", [[0], [0, 0], [0, 0, 0]])
def test_nothing_at_all(loss, offsets):
    batch = most_violating_rankings([], [], offsets, loss)
    assert batch.values.shape == batch.usable.shape == (len(offsets) - 1,)
    assert not batch.usable.any()
    assert batch.coefficients.shape == (0,)


@pytest.mark.parametrize("dtype", [np.int32, np.uint64, np.int64])
def test_dtypes_of_offsets(dtype):
    scores, relevant, offsets = make_batch([3, 4])
    values = most_violating_rankings(scores, relevant, offsets).values
    np.testing.assert_array_equal(most_violating_rankings(scores, relevant, offsets.astype(dtype)).values, values)
    np.testing.assert_array_equal(most_violating_rankings(scores, relevant, offsets.tolist()).values, values)


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ([0, 2, 3], r"offsets run from 0 to 3, but must run from 0 to 4"),
        ([1, 4], r"offsets run from 1 to 4, but must run from 0 to 4"),
        ([0, 3, 2, 4], r"offsets\[2\] = 2 is less than offsets\[1\] = 3"),
        ([0, 5, 4], r"offsets\[2\] = 4 is less than offsets\[1\] = 5"),
        ([], "vector of integers, got shape"),
        ([0.0, 4.0], "vector of integers, got .* dtype float64"),
        ([[0, 4]], r"vector of integers, got shape \(1, 2\)"),
        (4, r"vector of integers, got shape \(\)"),
    ],
)
@pytest.mark.parametrize("loss", ["ap", "zero-one"])
def test_wrong_offsets(loss, offsets, message):
    with pytest.raises(ValueError, match=message):
        most_violating_rankings([1.0, 2.0, 3.0, 4.0], [1, 0, 1, 0], offsets, loss)
