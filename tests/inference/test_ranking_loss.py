"""Δ of the ranking by score."""

from __future__ import annotations

import numpy as np
import pytest

from rankhinge import most_violating_ranking, ranking_loss, structured_hinge
from rankhinge.losses import CustomLoss
from tests.inference.cases import KINDS, LOSS_CASES, large_list

EVERY_LOSS = pytest.mark.parametrize("case", LOSS_CASES, ids=lambda case: case.name)


@EVERY_LOSS
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_negatives", [1, 30, 300])
def test_by_the_book(case, kind, n_negatives):
    """Sorted by score, equal scores in the worst order; bounded by J."""
    scores, relevant = large_list(kind, 7, n_negatives)
    ranked = relevant[np.lexsort((relevant, -scores))]
    expected = case.judge.of_ranks(np.flatnonzero(ranked) + 1, n_negatives)
    loss = ranking_loss(scores, relevant, case.loss)
    assert loss == pytest.approx(expected, rel=1e-11, abs=1e-14)
    assert loss <= structured_hinge(scores, relevant, case.loss) + 1e-14


@pytest.mark.parametrize("far", [1.0, 1e300])
def test_perfect(far):
    """0, exactly, where every positive is above every negative."""
    for case in LOSS_CASES:
        assert ranking_loss([far, 0.5, 0.0, -far], [1, 1, 0, 0], case.loss) == 0


def test_zero_one():
    """The share of samples on the wrong side of 0; a score of 0 counts as a no."""
    assert ranking_loss([1.0, -1.0, 0.0, 2.0], [1, 1, 0, 0], "zero-one") == 0.5


def test_bad_input():
    with pytest.raises(ValueError, match=r"scores\[1\] is nan"):
        ranking_loss([1.0, np.nan], [1, 0])
    with pytest.raises(ValueError, match="no sample is relevant"):
        ranking_loss([1.0, 2.0], [0, 0])


def _sometimes_nan(j, i, n_positives, n_negatives):
    return np.nan if (n_positives == 53 and j % 2 == 0 and j > 30) else -1.0 / (n_positives * n_negatives)


@pytest.mark.parametrize("method", ["auto", "greedy", "quicksort"])
def test_a_step_that_is_nan_where_nobody_had_looked(method):
    rng = np.random.default_rng(0)
    relevant = np.arange(2000) < 53
    scores = rng.normal(size=2000) - 3.0 * relevant
    loss = CustomLoss(_sometimes_nan)
    with pytest.raises(ValueError, match="not suitable"):
        most_violating_ranking(scores, relevant, loss, method=method)
    with pytest.raises(ValueError, match="not suitable"):
        ranking_loss(scores, relevant, loss)
