"""The papers' worked examples.

000: Mohapatra et al., Efficient Optimization for Rank-based Loss Functions (CVPR 2018), long version; 004: the same,
short version; numbers of figures and remarks are theirs.
"""

from __future__ import annotations

import numpy as np
import pytest

from rankhinge import most_violating_ranking
from rankhinge.inference.callbacks import compile_loss
from rankhinge.inference.query import make_query
from rankhinge.losses import DCG, check_suitable, get_loss
from rankhinge.papers.inference.quicksort import quicksort_ranks
from tests import brute_force


def chakrabarti(ranks):
    """``D(i) = 1`` for i ≤ 2, else ``1 / log2 i`` (Chakrabarti et al. 2008)."""
    return 1 / np.log2(np.maximum(ranks, 2))


CHAKRABARTI = brute_force.dcg(lambda rank: float(chakrabarti(rank)))


@pytest.mark.parametrize(("loss", "expected"), [("ap", 0.1458), ("ndcg", 0.0561)])
def test_order_of_eight(loss, expected):
    """x1 x3 x8 x4 x5 x2 x6 x7 with x1 … x4 positive."""
    counts_above = [0, 0, 1, 2]
    assert get_loss(loss).from_counts(counts_above, n_negatives=4) == pytest.approx(expected, abs=5e-5)


# Figure 1 of 004: two positives, eleven negatives, opt = [1, 2, …, 2, 3, 3]. The figure gives no scores; these
# have that optimum for AP: one negative far above both positives, eight between them, two far below.
FIGURE_POSITIVES = np.array([10.0, 0.0])
FIGURE_NEGATIVES = np.array([20.0, 6.0, 5.8, 5.6, 5.4, 5.2, 5.0, 4.8, 4.6, -20.0, -21.0])
FIGURE_RANKS = [1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3]


def test_figure_1_has_the_ranks_of_the_paper():
    scores = np.concatenate([FIGURE_POSITIVES, FIGURE_NEGATIVES])
    relevant = np.arange(13) < 2
    ranks, _ = brute_force.best_ranks(scores, relevant, brute_force.AP)
    assert ranks.tolist() == FIGURE_RANKS
    for method in ("auto", "quicksort", "quicksort-search", "greedy", "search", "select"):
        ranking = most_violating_ranking(scores, relevant, method=method)
        assert ranking.interleaving_ranks.tolist() == FIGURE_RANKS


@pytest.mark.parametrize("seed", range(5))
def test_figure_1_computes_six_ranks_explicitly(seed):
    """Negatives 1, 2, 3, 6, 9 and 10 are computed, the other five are inferred, whatever the input's order."""
    order = np.random.default_rng(seed).permutation(11)
    values, index = FIGURE_NEGATIVES[order], order.copy()
    compiled = compile_loss(get_loss("ap"), 13)
    query = make_query(compiled.addresses, compiled.table, FIGURE_POSITIVES, 11)
    ranks, explicit = np.empty(11, np.int64), np.zeros(11, bool)
    quicksort_ranks(query, values, index, ranks, explicit, False)
    assert ranks.tolist() == FIGURE_RANKS
    assert (np.flatnonzero(explicit) + 1).tolist() == [1, 2, 3, 6, 9, 10]


@pytest.mark.parametrize("epsilon", [0.001, 0.05, 0.091])
def test_remark_1(epsilon):
    """One positive at 5ε, negatives at 3ε and ε: the better negative wants rank 2, the worse one rank 1."""
    scores, relevant = np.array([5.0, 3.0, 1.0]) * epsilon, np.array([True, False, False])
    ranks, values = brute_force.best_ranks(scores, relevant, CHAKRABARTI)
    assert ranks.tolist() == [2, 1]
    # Each for itself they would reach a value that no ranking has.
    assert values.sum() > brute_force.hinge(scores, relevant, CHAKRABARTI) + 1e-3
    with pytest.raises(ValueError, match=r"not suitable for lists of 3 samples: step\(2, 1\)"):
        most_violating_ranking(scores, relevant, DCG(chakrabarti))


def test_remark_1_ends_where_the_notes_say():
    """Beyond ε = 0.092 both negatives of Remark 1 want rank 2."""
    scores, relevant = np.array([5.0, 3.0, 1.0]) * 0.093, np.array([True, False, False])
    assert brute_force.best_ranks(scores, relevant, CHAKRABARTI)[0].tolist() == [2, 2]


def test_remark_1_has_a_witness():
    report = check_suitable(DCG(chakrabarti), n_positives=1, n_negatives=2)
    assert not report
    assert report.witness["ranks"] == (2, 1)


@pytest.mark.parametrize("method", ["auto", "quicksort", "quicksort-search", "greedy", "search", "select"])
def test_the_last_rank_is_among_those_tried(method):
    """The ranks run to P + 1: taken literally, the papers' algorithms stop at P and miss the perfect ranking."""
    ranking = most_violating_ranking([9.0, 8.0, 0.0, -1.0], [1, 1, 0, 0], method=method)
    assert ranking.interleaving_ranks.tolist() == [3, 3]
    assert ranking.value == 0
