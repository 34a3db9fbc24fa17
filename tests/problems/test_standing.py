"""Counts of parts, added up, say where the relevant samples stand in the whole."""

from __future__ import annotations

import numpy as np
import pytest

from rankhinge.problems.standing import count_between, standing_of


@pytest.mark.parametrize("n_values", [1, 4, 10**6])
@pytest.mark.parametrize("n_relevant", [0, 1, 20])
def test_as_counted_one_by_one(n_values, n_relevant):
    rng = np.random.default_rng(n_values)
    scores = rng.integers(0, n_values, 60).astype(float)
    own, parts = scores[:n_relevant], np.split(scores[n_relevant:], [0, 10, 11])
    marks = np.unique(own)
    found = standing_of(own, np.ones(n_relevant), [count_between(part, marks) for part in parts])
    assert found.n_others == 60 - n_relevant
    np.testing.assert_array_equal(found.n_above, [(scores[n_relevant:] > score).sum() for score in own])
    np.testing.assert_array_equal(found.n_equal, [(scores[n_relevant:] == score).sum() for score in own])
