"""`interleaving_ranks` and `order`: the ranking itself, told when asked for."""

from __future__ import annotations

import numpy as np
import pytest

from rankhinge import most_violating_ranking
from rankhinge.inference import ranking as ranking_module
from tests import brute_force
from tests.inference.cases import LOSS_CASES, large_list, random_list

EVERY_LOSS = pytest.mark.parametrize("case", LOSS_CASES, ids=lambda case: case.name)
LISTS = [
    ("overlapping", 1, 1),
    ("overlapping", 4, 9),
    ("integers", 5, 30),
    ("constant", 3, 12),
    ("two values", 20, 150),
    ("overlapping", 25, 600),
    ("integers", 25, 600),
    ("trained", 25, 600),
]
EVERY_LIST = pytest.mark.parametrize(("kind", "n_positives", "n_negatives"), LISTS)


def from_ranks(ranks, relevant):
    """``a_i`` and ``u`` from the interleaving ranks, literally."""
    n_positives, n_negatives = int(relevant.sum()), ranks.size
    counts_above = [(ranks <= i).sum() for i in range(1, n_positives + 1)]
    unit = 2 / (n_positives * n_negatives)
    return np.array(counts_above), unit * (n_positives + 1 - ranks)


@EVERY_LOSS
@EVERY_LIST
def test_ranks(case, kind, n_positives, n_negatives):
    """Along descending scores (ties by index) the ranks ascend; Δ recomputed from them is `loss`."""
    scores, relevant = large_list(kind, n_positives, n_negatives)
    for method in case.methods:
        ranking = most_violating_ranking(scores, relevant, case.loss, method)
        ranks = ranking.interleaving_ranks
        assert ranks.shape == (n_negatives,)
        assert ranks.min() >= 1
        assert ranks.max() <= n_positives + 1
        best_first = np.argsort(-scores[~relevant], kind="stable")
        assert (np.diff(ranks[best_first]) >= 0).all()
        counts_above, _ = from_ranks(ranks, relevant)
        positive_ranks = counts_above + np.arange(1, n_positives + 1)
        assert ranking.loss == pytest.approx(case.judge.of_ranks(positive_ranks, n_negatives), rel=1e-11, abs=1e-15)


@EVERY_LOSS
@pytest.mark.parametrize("n_negatives", [9, 600])
def test_coefficients_from_ranks(case, n_negatives):
    """Without ties ``u = 2 (P + 1 − r_j) / (P N)`` and ``−2 a_i / (P N)``."""
    rng = np.random.default_rng(0)
    scores, relevant = random_list(rng, 6, n_negatives)
    ranking = most_violating_ranking(scores, relevant, case.loss)
    counts_above, negatives = from_ranks(ranking.interleaving_ranks, relevant)
    np.testing.assert_allclose(ranking.coefficients[~relevant], negatives, rtol=1e-14)
    best_first = np.argsort(-scores[relevant], kind="stable")
    positives = -2 * counts_above / (6 * n_negatives)
    np.testing.assert_allclose(ranking.coefficients[relevant][best_first], positives, rtol=1e-14)


@EVERY_LOSS
@EVERY_LIST
def test_order(case, kind, n_positives, n_negatives):
    """A permutation whose Δ is `loss` and whose ``Δ + u·s`` is `value`; it agrees with the ranks."""
    scores, relevant = large_list(kind, n_positives, n_negatives)
    for method in case.methods:
        ranking = most_violating_ranking(scores, relevant, case.loss, method)
        order = ranking.order
        np.testing.assert_array_equal(np.sort(order), np.arange(scores.size))
        value, loss = brute_force.value_of_order(scores, relevant, order, case.judge)
        assert ranking.loss == pytest.approx(loss, rel=1e-11, abs=1e-15)
        assert ranking.value == pytest.approx(value, rel=1e-12)
        positives_above = np.cumsum(relevant[order])[~relevant[order]]
        ranks = np.empty(scores.size, int)
        ranks[order[~relevant[order]]] = positives_above + 1
        np.testing.assert_array_equal(ranks[~relevant], ranking.interleaving_ranks)


def test_order_breaks_ties_by_index():
    """Within a class equal scores stand in the order of the input."""
    scores, relevant = large_list("integers", 40, 300)
    order = most_violating_ranking(scores, relevant).order
    for group in (order[relevant[order]], order[~relevant[order]]):
        for score in np.unique(scores[group]):
            assert (np.diff(group[scores[group] == score]) > 0).all()


def test_long_list():
    """Both ways through a long list, collecting and counting, tell the ranks that quicksort tells."""
    for kind in ("integers", "trained"):
        scores, relevant = large_list(kind, 100, 280_000)
        one, other = (most_violating_ranking(scores, relevant, method=m) for m in ("auto", "quicksort"))
        np.testing.assert_array_equal(one.interleaving_ranks, other.interleaving_ranks)
        np.testing.assert_array_equal(one.order, other.order)


def test_computed_only_when_asked_for(monkeypatch):
    """Inference does not sort indices; the first question does, and its answer is kept."""
    n_sorts = []
    best_first = ranking_module._best_first
    monkeypatch.setattr(
        ranking_module, "_best_first", lambda *arguments: (n_sorts.append(1), best_first(*arguments))[1]
    )
    scores, relevant = large_list("overlapping", 5, 50)
    ranking = most_violating_ranking(scores, relevant)
    assert not n_sorts
    assert ranking.order is ranking.order
    n_sorted = len(n_sorts)
    assert n_sorted >= 1
    assert ranking.interleaving_ranks is ranking.interleaving_ranks
    assert ranking.order is ranking.order
    assert len(n_sorts) == n_sorted


def test_repr_tells_the_value():
    ranking = most_violating_ranking([2.0, 1.5, 1.0, 0.5], [True, False, True, False])
    assert repr(ranking) == "MostViolatingRanking(value=0.416667, loss=0.166667, n=4)"
