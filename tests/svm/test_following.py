"""A path is followed as long as its scores do not say that it has begun to overfit."""

from __future__ import annotations

import numpy as np
import pytest

from rankhinge._progress import Progress
from rankhinge.solvers import NEVER, Deadline
from rankhinge.svm.following import Watch, along


def follow(table, together=None):
    """Follow a path whose coefficients are its places; returns what `along` does, what was sent, and the calls."""
    table = np.array(table, dtype=float)
    m, length = table.shape
    sent, watch = [], Watch(Progress(0), NEVER)

    def path():
        places = np.zeros((1, m))
        while True:
            going = yield places.copy()
            sent.append(going.tolist())
            places[0, going] += 1

    def quality(coef):
        return table[np.arange(m), coef[0].astype(int)]

    coefs, scores, reached = along(path(), quality, length, watch, 0.02, together)
    assert reached.tolist() == [1 + sum(k in going for going in sent) for k in range(m)]
    return coefs, scores, sent, watch.n_points


RISING = [0.5, 0.6, 0.7, 0.8, 0.9]
FALLING = [0.9, 0.8, 0.7, 0.6, 0.5]


def test_each_problem_is_given_up_for_itself_and_keeps_its_last_score():
    coefs, scores, sent, _ = follow([RISING, FALLING, [0.9, 0.5, 0.9, 0.5, 0.9]])
    assert sent == [[0, 1, 2], [0, 1, 2], [0, 2], [0, 2]]
    np.testing.assert_allclose(scores, [RISING, [0.9, 0.8, 0.7, 0.7, 0.7], [0.9, 0.5, 0.9, 0.5, 0.9]])
    np.testing.assert_array_equal(np.array(coefs)[:, 0].T, [[0, 1, 2, 3, 4], [0, 1, 2, 2, 2], [0, 1, 2, 3, 4]])


def test_problems_of_one_number_are_given_up_together_by_their_mean():
    steep = [0.9, 0.5, 0.1, 0.1, 0.1]
    _, scores, sent, _ = follow([RISING, FALLING, RISING, steep], np.array([4, 4, 7, 7]))
    # The first two have the mean 0.7 everywhere, that of the others falls.
    assert sent == [[0, 1, 2, 3], [0, 1, 2, 3], [0, 1], [0, 1]]
    np.testing.assert_allclose(scores[:2], [RISING, FALLING])
    np.testing.assert_allclose(scores[2:], [[0.5, 0.6, 0.7, 0.7, 0.7], [0.9, 0.5, 0.1, 0.1, 0.1]])


def test_a_problem_without_a_score_does_not_count_in_the_mean():
    unknown = [np.nan] * 5
    assert follow([RISING, unknown], np.array([3, 3]))[2] == [[0, 1]] * 4
    assert follow([RISING, unknown], np.array([3, 5]))[2] == [[0, 1], [0, 1], [0], [0]]


@pytest.mark.parametrize("together", [None, np.array([0, 0])])
def test_every_point_is_told_even_those_not_followed(together):
    coefs, scores, sent, n_watched = follow([FALLING, FALLING], together)
    assert n_watched == len(coefs) == scores.shape[1] == 5
    assert sent == [[0, 1], [0, 1]]
    assert coefs[2] is coefs[3] is coefs[4]


def places(n_points, then):
    """A path of so many points, then something else."""
    for place in range(n_points):
        yield np.full((1, 2), float(place))
    then()


def interrupt():
    raise KeyboardInterrupt


@pytest.mark.parametrize(("then", "ended"), [(interrupt, "interrupted"), (lambda: None, None)])
@pytest.mark.parametrize("n_points", [0, 1, 3])
def test_a_path_that_ends_early_keeps_what_it_has(then, ended, n_points):
    watch = Watch(Progress(0), NEVER)
    coefs, scores, reached = along(places(n_points, then), lambda coef: coef[0], 5, watch, 0.02)
    assert len(coefs) == watch.n_points == n_points
    assert watch.ended == ended
    if n_points:
        np.testing.assert_array_equal(scores[:, :n_points], [np.arange(n_points)] * 2)
        assert np.isnan(scores[:, n_points:]).all()
        assert reached.tolist() == [n_points] * 2


def test_when_time_is_over_one_point_is_scored():
    watch = Watch(Progress(0), Deadline(-np.inf))
    coefs, scores, _ = along(places(5, interrupt), lambda coef: coef[0], 5, watch, 0.02)
    assert len(coefs) == 1
    assert np.isfinite(scores).sum() == 2
    assert watch.ended == "time"
