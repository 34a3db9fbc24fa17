"""What the papers prove, asserted: unimodality (003, Proposition 1), Theorem 2 and Observation 2 (000 and 004)."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from types import FunctionType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankhinge import most_violating_ranking
from rankhinge.inference import partition as sorting
from rankhinge.inference.callbacks import compile_loss
from rankhinge.inference.query import make_query
from rankhinge.losses import get_loss
from rankhinge.papers.inference import quicksort
from tests.brute_force import AP
from tests.brute_force import best_ranks as slow_ranks

SCORES = st.integers(-40, 40)


def contributions(positives, score, j, n_negatives):
    """f_j(1), f_j(2), … exactly, from the differences ``2 (p_i - n_j) / PN + t(j, i)`` of AP."""
    n_positives = len(positives)
    values = [Fraction(0)]
    for i, positive in enumerate(sorted(positives, reverse=True), 1):
        step = Fraction(-i, n_positives * (i + j) * (i + j - 1))
        values.append(values[-1] + Fraction(2, n_positives * n_negatives) * (positive - score) + step)
    return values


def is_unimodal(values):
    """Never falls up to some place, and never rises from there on."""
    falls = [b < a for a, b in itertools.pairwise(values)]
    rises = [b > a for a, b in itertools.pairwise(values)]
    return not any(fell and rose for k, fell in enumerate(falls) for rose in rises[k + 1 :])


class TestUnimodality:
    @given(
        positives=st.lists(SCORES, min_size=1, max_size=12),
        score=SCORES,
        j=st.integers(1, 30),
        more=st.integers(0, 30),
        scale=st.sampled_from([Fraction(1, 1000), Fraction(1, 10), Fraction(1), Fraction(10)]),
    )
    def test_up_to_rank_j_plus_1(self, positives, score, j, more, scale):
        values = contributions([scale * p for p in positives], scale * score, j, j + more)
        assert is_unimodal(values[: j + 1])

    def test_not_beyond(self):
        """One negative a little below eight tied positives: f falls at first and rises from the third on."""
        values = contributions([Fraction(3, 20)] * 8, 0, 1, 1)
        assert not is_unimodal(values)
        assert is_unimodal(values[:2])

    @given(positives=st.lists(SCORES, min_size=1, max_size=9), j=st.integers(1, 20))
    def test_the_steps_are_those_of_the_loss(self, positives, j):
        """The differences above and the library's step are the same numbers."""
        values = contributions([0] * len(positives), 0, j, 20)
        steps = [get_loss("ap").step(j, i, len(positives), 20) for i in range(1, len(positives) + 1)]
        np.testing.assert_allclose(np.diff([float(value) for value in values]), steps, rtol=1e-12)


class Counted(float):
    """A score that counts its comparisons."""

    n_comparisons = 0

    def __lt__(self, other):
        Counted.n_comparisons += 1
        return float.__lt__(self, other)

    def __gt__(self, other):
        Counted.n_comparisons += 1
        return float.__gt__(self, other)

    def __eq__(self, other):
        Counted.n_comparisons += 1
        return float.__eq__(self, other)

    __hash__ = float.__hash__


def one_rank(query, values, block, after, j0, low, high, ranks, room):
    """The best rank of one negative, the scores being distinct, by trying ``low … high``."""
    assert after == block + 1
    steps = [get_loss("ap").step(j0 + 1, i, query.positives.size, query.n_negatives) for i in range(low, high)]
    slopes = 2 * (query.positives[low - 1 : high - 1] - float(values[block])) / query.positives.size / query.n_negatives
    sums = np.concatenate([[0.0], np.cumsum(slopes + steps)])
    ranks[block] = high - np.argmax(sums[::-1])
    return high - low


def uncompiled(function, **others):
    """A kernel as Python runs it, calling these instead of compiled ones."""
    plain = function.py_func
    return FunctionType(plain.__code__, {**plain.__globals__, **others}, plain.__name__)


@pytest.fixture(scope="module")
def ranks_by_quicksort():
    """`quicksort_ranks` and all that it selects with, run by Python, so that comparisons can be counted."""
    swap = uncompiled(sorting._swap)
    parts = {name: uncompiled(getattr(sorting, name)) for name in ("insertion_sort", "shell_sort", "median_of_three")}
    select = uncompiled(sorting.select, partition=uncompiled(sorting.partition, _swap=swap), **parts)
    return uncompiled(quicksort.quicksort_ranks, select=select, sorted_ranks=one_rank)


def comparisons(run, positives, negatives):
    """How many comparisons of negatives with each other the ranks take; and the ranks, best negative first."""
    compiled = compile_loss(get_loss("ap"), positives.size + negatives.size)
    query = make_query(compiled.addresses, compiled.table, np.sort(positives)[::-1].copy(), negatives.size)
    values = np.array([Counted(value) for value in negatives], dtype=object)
    ranks = np.empty(values.size, np.int64)
    Counted.n_comparisons = 0
    run(query, values, np.arange(values.size), ranks, np.zeros(0, np.bool_), False)
    return Counted.n_comparisons, ranks


class TestTheorem2:
    """The negatives are traversed O(N log P) times, not O(N log N): T_neg of Proposition 3.

    Each part with more than one rank open is selected from once. By the recursion of Proposition 3 the sizes of such
    parts add up to no more than ``2 N log2(P + 1)``. A selection compares each of m scores some five times on average.
    """

    MOST_PER_SELECTED = 8

    @pytest.mark.parametrize("n_positives", [1, 2, 5, 30])
    @pytest.mark.parametrize("kind", ["random", "ascending", "descending"])
    def test_comparisons(self, ranks_by_quicksort, n_positives, kind):
        rng, n_negatives = np.random.default_rng(n_positives), 3000
        negatives, positives = rng.normal(size=n_negatives), rng.normal(size=n_positives)
        negatives = {"random": negatives, "ascending": np.sort(negatives), "descending": np.sort(negatives)[::-1]}[kind]
        counted, ranks = comparisons(ranks_by_quicksort, positives, negatives)
        assert counted <= self.MOST_PER_SELECTED * 2 * n_negatives * math.log2(n_positives + 1)
        scores, relevant = np.concatenate([positives, negatives]), np.arange(n_positives + n_negatives) < n_positives
        expected = most_violating_ranking(scores, relevant, "ap", "greedy")
        assert np.array_equal(np.sort(ranks), np.sort(expected.interleaving_ranks))

    def test_the_number_of_negatives_enters_linearly(self, ranks_by_quicksort):
        """With one positive: more negatives take no more comparisons for each of them, as sorting would."""
        rng = np.random.default_rng(0)
        few, many = (comparisons(ranks_by_quicksort, np.zeros(1), rng.normal(size=n))[0] / n for n in (1000, 30_000))
        assert many <= 1.5 * few
        assert many < math.log2(30_000)

    def test_comparisons_are_counted(self, ranks_by_quicksort):
        counted, _ = comparisons(ranks_by_quicksort, np.zeros(3), np.random.default_rng(0).normal(size=500))
        assert counted >= 499


def coefficients_of(ranks, n_positives):
    """``c`` of 000, Observation 2, up to its factor: negatives P + 1 - r_j, positives how many negatives are above."""
    below = tuple(n_positives + 1 - rank for rank in ranks)
    above = tuple(-sum(rank <= i for rank in ranks) for i in range(1, n_positives + 1))
    return below + above


class TestInjectivity:
    @pytest.mark.parametrize(("n_positives", "n_negatives"), [(1, 1), (1, 5), (4, 1), (3, 4), (4, 4)])
    def test_different_ranks_have_different_coefficients(self, n_positives, n_negatives):
        every = list(itertools.combinations_with_replacement(range(1, n_positives + 2), n_negatives))
        assert len({coefficients_of(ranks, n_positives) for ranks in every}) == len(every)

    @given(
        st.lists(st.integers(-1000, 1000), min_size=2, max_size=14, unique=True),
        st.data(),
        st.sampled_from(["ap", "ndcg", "rr", "auc"]),
        st.sampled_from(["auto", "quicksort", "greedy"]),
    )
    def test_ranks_can_be_read_off_the_coefficients(self, scores, data, loss, method):
        n = len(scores)
        relevant = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
        relevant[0], relevant[1] = True, False
        n_positives, n_negatives = int(relevant.sum()), int((~relevant).sum())
        ranking = most_violating_ranking(np.array(scores) / 100, relevant, loss, method)
        half = n_positives * n_negatives / 2
        read = n_positives + 1 - np.rint(half * ranking.coefficients[~relevant])
        assert np.array_equal(read, ranking.interleaving_ranks)
        # Positives, best first: the negatives above them.
        order = np.argsort(-np.array(scores)[relevant])
        above = -np.rint(half * ranking.coefficients[relevant])[order]
        assert above.tolist() == [int((read <= i).sum()) for i in range(1, n_positives + 1)]


def test_the_greedy_maxima_ascend():
    """Observation 4, by the slow judge that tries every rank for every negative."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        n_positives, n_negatives = rng.integers(1, 7, size=2)
        scores = rng.normal(size=n_positives + n_negatives) / rng.choice([1, 10, 100])
        ranks, _ = slow_ranks(scores, np.arange(scores.size) < n_positives, AP)
        assert np.all(np.diff(ranks) >= 0)
