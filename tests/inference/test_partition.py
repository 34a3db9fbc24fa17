"""Sorting and selecting: right on every input, and never quadratic, counted in comparisons."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rankhinge import most_violating_ranking
from rankhinge.inference import partition, settle
from rankhinge.inference.callbacks import compile_loss
from rankhinge.inference.query import make_query
from rankhinge.losses import get_loss
from tests.inference.cases import KINDS, large_list

EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


@EVERY_KIND
@pytest.mark.parametrize("size", [1, 2, 19, 20, 21, 193, 5000])
def test_sort_descending(kind, size):
    """The scores descend, and each index still tells where its score was."""
    scores, _ = large_list(kind, 1, size)
    values, index = scores.copy(), np.arange(scores.size)
    partition.sort_descending(values, index)
    assert (np.diff(values) <= 0).all()
    np.testing.assert_array_equal(values, scores[index])
    np.testing.assert_array_equal(np.sort(index), np.arange(scores.size))


@EVERY_KIND
@pytest.mark.parametrize("size", [1, 2, 20, 21, 300, 5000])
def test_select(kind, size):
    """The target's block of equals is where it belongs: larger scores before it, smaller ones after it."""
    scores, _ = large_list(kind, 1, size)
    for target in {0, size // 2, size}:
        values, index = scores.copy(), np.arange(scores.size)
        block, after = partition.select(values, index, 0, scores.size, target)
        assert block <= target < after
        assert values[target] == np.sort(scores)[::-1][target]
        assert (values[:block] > values[target]).all()
        assert (values[block:after] == values[target]).all()
        assert (values[after:] < values[target]).all()
        np.testing.assert_array_equal(values, scores[index])


@EVERY_KIND
def test_heap_sort(kind):
    scores, _ = large_list(kind, 1, 500)
    values, index = scores.copy(), np.arange(scores.size)
    partition.heap_sort(values, index, 3, 400)
    np.testing.assert_array_equal(values[3:400], np.sort(scores[3:400])[::-1])
    np.testing.assert_array_equal(values, scores[index])
    np.testing.assert_array_equal(index[:3], [0, 1, 2])


class Adversary:
    """Scores that are decided upon only when compared, as badly as possible for a quicksort.

    McIlroy: A killer adversary for quicksort, Software: Practice and Experience 29, 1999. Undecided scores are
    smaller than all decided ones; of two undecided ones that are compared, the one that looks like the pivot gets the
    next largest value.
    """

    def __init__(self, size):
        self.items = [_Item(self) for _ in range(size)]
        self.n_comparisons = 0
        self.n_decided = 0
        self.candidate = None

    def compare(self, a, b):
        """The sign of a − b."""
        self.n_comparisons += 1
        if a is not b and a.value is None and b.value is None:
            chosen = b if b is self.candidate else a
            self.n_decided += 1
            chosen.value = -self.n_decided
        for item in (a, b):
            if item.value is None:
                self.candidate = item
        left = -math.inf if a.value is None else a.value
        right = -math.inf if b.value is None else b.value
        return (left > right) - (left < right)

    def scores(self):
        return np.array([-1e9 if item.value is None else item.value for item in self.items], float)


class _Item:
    def __init__(self, adversary):
        self.adversary, self.value = adversary, None

    def __lt__(self, other):
        return self.adversary.compare(self, other) < 0

    def __gt__(self, other):
        return self.adversary.compare(self, other) > 0

    def __le__(self, other):
        return self.adversary.compare(self, other) <= 0

    def __eq__(self, other):
        return self.adversary.compare(self, other) == 0

    __hash__ = None


def attacked(size):
    """The adversary after `select` has run on its scores, as Python, and how often that took to heap sort."""
    adversary = Adversary(size)
    heap_sorts = []
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_swap", "insertion_sort", "_sift_down", "median_of_three", "partition"):
            patch.setattr(partition, name, getattr(partition, name).py_func)
        heap_sort = partition.heap_sort.py_func
        patch.setattr(partition, "heap_sort", lambda *args: (heap_sorts.append(1), heap_sort(*args)))
        partition.select.py_func(list(adversary.items), list(range(size)), 0, size, size // 2)
    return adversary, len(heap_sorts)


@pytest.mark.parametrize("size", [500, 1000, 2000])
def test_an_adversary_of_select(size):
    """At most 32 + 4 (log2 n + 1) rounds of 2 n + 6 comparisons, then a heap sort of 2 n log2 n."""
    adversary, n_heap_sorts = attacked(size)
    depth = math.log2(size) + 1
    assert n_heap_sorts == 1
    assert adversary.n_comparisons <= (32 + 4 * depth + 2) * (2 * size + 6) + 6 * size * depth


def test_a_list_made_by_an_adversary():
    """The same J by all methods on scores made to defeat the pivots."""
    size, n_positives = 1500, 30
    scores = attacked(size)[0].scores() / size
    scores = np.concatenate([scores, np.linspace(-1, 0, n_positives)])
    relevant = np.arange(scores.size) >= size
    values = [
        most_violating_ranking(scores, relevant, method=method).value
        for method in ("auto", "quicksort", "greedy", "search", "select")
    ]
    np.testing.assert_allclose(values, values[0], rtol=1e-12)


@EVERY_KIND
@pytest.mark.parametrize("n_positives", [3, 300])
def test_settling_looks_at_each_negative_a_few_times(kind, n_positives, monkeypatch):
    """The negatives counted in buckets or partitioned add up to a few times N log2 N at most."""
    n_negatives = 20_000
    scores, relevant = large_list(kind, n_positives, n_negatives)
    looked_at = []

    def counted(function, size_of):
        def call(*arguments):
            looked_at.append(size_of(*arguments))
            return function(*arguments)

        return call

    monkeypatch.setattr(
        settle,
        "_bucket_step",
        counted(settle._bucket_step, lambda query, values, index, group, *_: group[1] - group[0]),
    )
    monkeypatch.setattr(
        settle, "partition", counted(settle.partition, lambda values, index, start, stop, _: stop - start)
    )
    compiled = compile_loss(get_loss("ap"), scores.size)
    positives = np.sort(scores[relevant])[::-1].copy()
    query = make_query(compiled.addresses, compiled.table, positives, n_negatives)
    rank_counts = np.zeros(n_positives + 2, np.int64)
    settle.settle.py_func(
        query,
        scores[~relevant],
        np.flatnonzero(~relevant),
        settle.one_group(n_negatives, n_positives),
        1,
        0.0,
        np.zeros(scores.size),
        rank_counts,
    )
    assert rank_counts.sum() == n_negatives
    assert sum(looked_at) <= 3 * n_negatives * math.log2(n_negatives)
