"""What may be passed in: dtypes, layouts, and what comes back."""

from __future__ import annotations

import numpy as np
import pytest

from rankhinge import most_violating_ranking, most_violating_rankings
from rankhinge._validation import check_offsets, check_relevant, check_scores
from tests.inference.cases import large_list

SIZES = pytest.mark.parametrize("n_negatives", [6, 500, 270_000])
LOSSES = pytest.mark.parametrize("loss", ["ap", "zero-one"])


def unaligned(array):
    """The same numbers one byte off every address that suits them."""
    memory = np.empty(array.nbytes + 1, np.uint8)
    view = memory[1:].view(array.dtype)
    view[:] = array
    assert not view.flags.aligned
    return view


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def strided(array):
    wide = np.zeros(3 * array.size, array.dtype)
    wide[::3] = array
    return wide[::3]


LAYOUTS = {
    "unaligned": unaligned,
    "read-only": read_only,
    "strided": strided,
    "backwards": lambda array: array[::-1].copy()[::-1],
    "big-endian": lambda array: array.astype(array.dtype.newbyteorder(">")),
    "column": lambda array: np.stack([array, array], axis=1)[:, 1],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@SIZES
@LOSSES
def test_layouts(layout, dtype, n_negatives, loss):
    """Any layout of the same numbers gives the same result, and no input is written to."""
    scores, relevant = large_list("overlapping", 4, n_negatives)
    scores = scores.astype(dtype)
    expected = most_violating_ranking(scores, relevant, loss)
    laid_out, laid_out_relevant = LAYOUTS[layout](scores), LAYOUTS[layout](relevant.astype(np.int16))
    kept = laid_out.copy()
    ranking = most_violating_ranking(laid_out, laid_out_relevant, loss)
    assert ranking.value == expected.value
    # Numbers of another byte order become float64.
    assert ranking.coefficients.dtype == (dtype if laid_out.dtype.isnative else np.float64)
    np.testing.assert_array_equal(ranking.coefficients.astype(dtype), expected.coefficients)
    np.testing.assert_array_equal(laid_out, kept)
    assert laid_out.flags.writeable == (layout != "read-only")
    batch = most_violating_rankings(laid_out, laid_out_relevant, [0, scores.size], loss)
    assert batch.values[0] == expected.value


@SIZES
@pytest.mark.parametrize("method", ["auto", "quicksort", "select"])
def test_memory_mapped(tmp_path, n_negatives, method):
    """A file opened for reading only is used in place."""
    scores, relevant = large_list("overlapping", 4, n_negatives)
    scores.tofile(tmp_path / "scores")
    relevant.tofile(tmp_path / "relevant")
    mapped = np.memmap(tmp_path / "scores", np.float64, "r")
    ranking = most_violating_ranking(mapped, np.memmap(tmp_path / "relevant", bool, "r"), method=method)
    assert ranking.value == most_violating_ranking(scores, relevant, method=method).value
    assert ranking.coefficients.flags.writeable
    assert sorted(ranking.order) == list(range(scores.size))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scores_are_not_copied(dtype):
    """What the kernels read is the memory that was passed in."""
    scores = np.arange(5, dtype=dtype)
    assert np.shares_memory(check_scores(scores), scores)
    assert scores.flags.writeable
    relevant = np.array([True, False, True])
    assert np.shares_memory(check_relevant(relevant, 3), relevant)


@pytest.mark.parametrize(
    "convert",
    [
        list,
        tuple,
        lambda s: s.astype(np.int8),
        lambda s: s.astype(np.int64),
        lambda s: s.astype(np.float16),
        lambda s: s.astype(np.longdouble),
        lambda s: s.astype(int).tolist(),
    ],
)
def test_other_numbers_become_float64(convert):
    scores, relevant = np.array([3.0, 1.0, 2.0, 2.0, 0.0]), np.array([1, 0, 0, 1, 0])
    expected = most_violating_ranking(scores, relevant)
    ranking = most_violating_ranking(convert(scores), convert(relevant))
    assert ranking.coefficients.dtype == np.float64
    assert ranking.value == expected.value
    np.testing.assert_array_equal(ranking.coefficients, expected.coefficients)


def test_bool_scores():
    """False and True count as 0 and 1."""
    value = most_violating_ranking([True, False, False], [1, 0, 0]).value
    assert value == most_violating_ranking([1.0, 0.0, 0.0], [1, 0, 0]).value


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.uint8, np.float32, np.float64])
def test_dtypes_of_relevance(dtype):
    scores, relevant = large_list("overlapping", 4, 9)
    expected = most_violating_ranking(scores, relevant)
    assert most_violating_ranking(scores, relevant.astype(dtype)).value == expected.value


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@SIZES
def test_dtype_of_coefficients(dtype, n_negatives):
    scores, relevant = large_list("overlapping", 4, n_negatives)
    for loss in ("ap", "zero-one"):
        ranking = most_violating_ranking(scores.astype(dtype), relevant, loss)
        assert ranking.coefficients.dtype == dtype
        assert ranking.coefficients.shape == scores.shape
        assert isinstance(ranking.value, float)
        assert isinstance(ranking.loss, float)


def test_offsets_are_checked_and_converted():
    offsets = check_offsets([0, 2, 2, 5], 5)
    assert offsets.dtype == np.int64
    assert offsets.tolist() == [0, 2, 2, 5]
