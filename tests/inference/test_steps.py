"""No method goes quadratic, whatever the scores: counted in steps of the loss, not in seconds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rankhinge import most_violating_ranking
from tests.inference.cases import KINDS, large_list

EVERY_KIND = pytest.mark.parametrize("kind", KINDS)
SIZES = pytest.mark.parametrize(
    ("n_positives", "n_negatives"),
    [(1, 3000), (50, 1000), (1000, 1000), (2000, 300), (300, 30_000), (1000, 400_000)],
)


def levels(n_negatives):
    """How often a list can be halved, counting the list itself."""
    return math.floor(math.log2(n_negatives)) + 1


@EVERY_KIND
@SIZES
@pytest.mark.parametrize("loss", ["ap", "ndcg", "rr", "auc"])
def test_quicksort(kind, n_positives, n_negatives, loss):
    """At most P steps a level: the ranges of ranks of the parts on one level overlap in their ends only.

    A block of m tied negatives is itself ranked by halving, on ``log2 m`` levels below its own.
    """
    scores, relevant = large_list(kind, n_positives, n_negatives)
    n_steps = most_violating_ranking(scores, relevant, loss, "quicksort").n_steps
    deepest = levels(n_negatives)
    tied = np.unique(scores[~relevant]).size < n_negatives
    assert n_steps <= n_positives * (deepest * (deepest + 1) // 2 if tied else deepest)


@EVERY_KIND
@SIZES
@pytest.mark.parametrize("loss", ["ap", "ndcg", "rr", "auc"])
def test_histogram(kind, n_positives, n_negatives, loss):
    """At most P (L + 1) steps a round, L rounds, and 24 P for the rest.

    The ranks open in all groups of a round add up to P at most; each round settles a group's edges by halving and
    leaves groups of about half the size. The rest: 6 P in search of the score below which all have the last rank, and
    groups of 24 or fewer, ranked by halving, some of them twice.
    """
    scores, relevant = large_list(kind, n_positives, n_negatives)
    n_steps = most_violating_ranking(scores, relevant, loss).n_steps
    deepest = levels(n_negatives)
    assert n_steps <= n_positives * (deepest * (deepest + 1) + 24)


@EVERY_KIND
def test_search_and_select(kind):
    """``N log P`` steps by bisection and at most P² beyond the concave part, which few negatives have."""
    n_positives, n_negatives = 60, 20_000
    scores, relevant = large_list(kind, n_positives, n_negatives)
    n_bisections = math.ceil(math.log2(n_positives + 1))
    beyond = n_positives**2
    n_steps = most_violating_ranking(scores, relevant, "ap", "search").n_steps
    assert n_steps <= n_negatives * n_bisections + beyond
    n_tried = 2 * levels(n_negatives)
    n_steps = most_violating_ranking(scores, relevant, "ap", "select").n_steps
    assert n_steps <= (n_negatives + n_tried) * n_bisections + beyond + n_tried * n_positives


def test_greedy():
    """Each negative tries each rank: P N steps."""
    scores, relevant = large_list("overlapping", 30, 500)
    assert most_violating_ranking(scores, relevant, "ndcg", "greedy").n_steps == 30 * 500


@pytest.mark.parametrize("kind", ["trained", "separated"])
def test_select_leaves_out_what_is_settled_last(kind):
    """Negatives with rank P + 1 are found by bisection and not looked at one by one."""
    scores, relevant = large_list(kind, 30, 50_000)
    by_select = most_violating_ranking(scores, relevant, "ap", "select").n_steps
    assert by_select < 0.5 * most_violating_ranking(scores, relevant, "ap", "search").n_steps
