"""The decomposable baseline: mean over samples of max(0, 1 − y s)."""

from __future__ import annotations

import numpy as np
import pytest

from rankhinge import most_violating_ranking, most_violating_rankings, structured_hinge
from rankhinge.losses import ZeroOne
from tests.inference.cases import KINDS, large_list


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_negatives", [1, 6, 16_380, 270_000])
def test_value_and_coefficients(kind, n_negatives):
    """``J = mean max(0, 1 − y s)``, ``u = −y / n`` within the margin, ``J = loss + u·s``."""
    scores, relevant = large_list(kind, 5, n_negatives)
    y, n = np.where(relevant, 1.0, -1.0), scores.size
    ranking = most_violating_ranking(scores, relevant, "zero-one")
    within = y * scores < 1
    expected = np.maximum(0, 1 - y * scores).mean()
    assert ranking.value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(ranking.coefficients, np.where(within, -y / n, 0), rtol=1e-15)
    assert ranking.loss == pytest.approx(within.mean(), rel=1e-14)
    again = ranking.loss + ranking.coefficients @ scores
    assert again == pytest.approx(ranking.value, rel=1e-11, abs=1e-16 * np.abs(scores).max())


def test_float32():
    scores, relevant = large_list("overlapping", 50, 1000)
    ranking = most_violating_ranking(scores.astype(np.float32), relevant, ZeroOne())
    assert ranking.coefficients.dtype == np.float32
    assert ranking.value == pytest.approx(structured_hinge(scores, relevant, "zero-one"), rel=1e-6)


@pytest.mark.parametrize("relevant", [[1, 1], [0, 0]])
def test_one_class_is_enough(relevant):
    """It needs no pairs."""
    assert structured_hinge([0.5, -0.5], relevant, "zero-one") == 1.0


@pytest.mark.parametrize("name", ["order", "interleaving_ranks"])
def test_it_has_no_ranks(name):
    ranking = most_violating_ranking([1.0, 0.0], [1, 0], "zero-one")
    with pytest.raises(AttributeError, match="zero-one loss decomposes"):
        getattr(ranking, name)


def test_batch_equals_one_by_one():
    rng = np.random.default_rng(0)
    offsets = [0, 3, 3, 10, 17_010]
    scores, relevant = rng.normal(size=17_010), rng.random(17_010) < 0.5
    batch = most_violating_rankings(scores, relevant, offsets, "zero-one")
    assert batch.usable.tolist() == [True, False, True, True]
    for q in (0, 2, 3):
        part = slice(offsets[q], offsets[q + 1])
        one = most_violating_ranking(scores[part], relevant[part], "zero-one")
        assert (batch.values[q], batch.losses[q]) == (one.value, one.loss)
        np.testing.assert_array_equal(batch.coefficients[part], one.coefficients)
    assert batch.values[1] == 0


@pytest.mark.parametrize("method", ["histogram", "quicksort", "nonsense"])
def test_it_has_no_methods(method):
    with pytest.raises(ValueError, match=f"method must be 'auto', not '{method}'"):
        most_violating_ranking([1.0, 0.0], [1, 0], "zero-one", method)


def test_no_samples():
    with pytest.raises(ValueError, match="no samples"):
        most_violating_ranking([], [], "zero-one")
