"""The parts of a latent fit by hand: bests of segments, working sets, starts, and what a problem sees."""

import numpy as np
import pytest

from rankhinge.latent import segments
from rankhinge.latent.candidates import CandidateFeatures, Counter
from rankhinge.latent.problem import latent_problem
from rankhinge.latent.starts import class_means, first_choice, random_choice
from rankhinge.latent.working import WORKING
from tests.latent.helpers import bags_and_labels


def problem_of(bags, y, chosen=None, labelled=None):
    return latent_problem(bags, y.astype(bool), labelled, np.full(len(bags), -1) if chosen is None else chosen)


@pytest.mark.parametrize("chunk", [8, 1 << 18])
def test_bests_of_segments_are_those_of_loops(monkeypatch, chunk):
    monkeypatch.setattr(segments, "_CHUNK", chunk)
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 5, 200).astype(float)
    bounds = np.unique(np.concatenate([[0, 200], rng.integers(1, 200, 30)]))
    start, stop = bounds[:-1], bounds[1:]
    value, place = segments.segment_maxima(scores, start, stop)
    places, values = np.empty((start.size, 3), np.int64), np.empty((start.size, 3))
    segments.segment_best(scores, start, stop, places, values)
    for b, (first, last) in enumerate(zip(start, stop, strict=True)):
        # Of equal ones the first comes first.
        order = first + np.argsort(-scores[first:last], kind="stable")[:3]
        assert (value[b], place[b]) == (scores[order[0]], order[0])
        assert places[b, : order.size].tolist() == order.tolist()
        np.testing.assert_array_equal(values[b, : order.size], scores[order])
        assert (places[b, order.size :] == -1).all()


def test_what_a_problem_sees():
    bags, y = bags_and_labels(n=6, sizes=(2, 4))
    chosen = np.full(6, -1)
    chosen[2] = 1
    problem = problem_of(bags, y, chosen)
    offsets = bags.offsets
    assert problem.given[2] == offsets[2] + 1
    assert not problem.latent[2]
    fixed = problem.fixed(np.where(problem.given >= 0, problem.given, offsets[:-1]))
    assert ((fixed >= 0) == (problem.relevant | ~problem.latent)).all()
    seen = problem.needed(fixed, np.ones(bags.n_candidates, bool))
    for b in range(6):
        mine = seen[offsets[b] : offsets[b + 1]]
        assert mine.sum() == (1 if fixed[b] >= 0 else mine.size)
    # Of the free members only those that are wanted; fixed ones always.
    assert problem.needed(fixed, np.zeros(bags.n_candidates, bool)).sum() == (fixed >= 0).sum()


def test_bags_without_a_label_are_no_members():
    bags, y = bags_and_labels(n=8)
    labelled = np.arange(8) % 2 == 0
    problem = problem_of(bags, y, labelled=labelled)
    assert problem.members.tolist() == [0, 2, 4, 6]
    np.testing.assert_array_equal(problem.relevant, y[::2].astype(bool))


def test_means_of_the_classes_by_hand():
    bags, y = bags_and_labels(n=12)
    features = CandidateFeatures(bags.matrix, bags.rows(), constant=0.0, skip_zeros=True, counter=Counter())
    means = np.array([bag.mean(axis=0) for bag in bags])
    expected = means[y == 1].mean(axis=0) - means[y == 0].mean(axis=0)
    np.testing.assert_allclose(class_means(features, [problem_of(bags, y)])[:, 0], expected, rtol=1e-12)
    # Of a bag whose candidate is known, that one counts.
    chosen = np.zeros(12, np.int64)
    firsts = np.array([bag[0] for bag in bags])
    expected = firsts[y == 1].mean(axis=0) - firsts[y == 0].mean(axis=0)
    np.testing.assert_allclose(class_means(features, [problem_of(bags, y, chosen)])[:, 0], expected, rtol=1e-12)


def test_choices_lie_in_their_bags():
    bags, y = bags_and_labels(n=30)
    problem = problem_of(bags, y)
    assert first_choice([problem])[0].tolist() == bags.offsets[:-1].tolist()
    drawn = np.array([random_choice([problem], np.random.default_rng(seed))[0] for seed in range(200)])
    assert ((drawn >= problem.start) & (drawn < problem.stop)).all()
    # Each candidate of a bag is drawn at some time.
    assert all(np.unique(column).size == size for column, size in zip(drawn.T, bags.sizes, strict=True))


@pytest.mark.parametrize("wanted", [True, False])
@pytest.mark.parametrize("size", [2, 9])
def test_working_sets_hold_the_bests_where_bags_are_large(wanted, size):
    from rankhinge.latent import LatentRankSVC
    from rankhinge.latent.whole import Whole
    from rankhinge.latent.working import WorkingSets

    bags, y = bags_and_labels(n=20, sizes=(size, size + 1))
    problem = problem_of(bags, y)
    features = CandidateFeatures(bags.matrix, bags.rows(), constant=0.0, skip_zeros=True, counter=Counter())
    whole = Whole(features, bags.offsets, [problem], np.ones(1), LatentRankSVC()._make_objective)
    sets = WorkingSets(whole, wanted)
    assert sets.in_use == (wanted and size >= WORKING.candidates_a_bag)
    w, fixed = np.ones((features.n_features, 1)), problem.fixed(bags.offsets[:-1])
    point = whole.point(0, w[:, 0], whole.sweep(np.array([0]), w, [fixed]), 0, fixed)
    sets.begin(0, fixed, None)
    n_new = sets.join(0, point, fixed)
    seen = sets.seen({0: fixed})
    if not sets.in_use:
        assert n_new == 0
        return
    scores = bags.candidates() @ w[:, 0]
    best = [a + np.argmax(scores[a:b]) for a, b in zip(problem.start, problem.stop, strict=True)]
    free = np.flatnonzero(fixed < 0)
    assert set(np.array(best)[free]) <= set(seen)
    assert n_new == sum(best[b] != problem.start[b] for b in free)
    assert sets.join(0, point, fixed) == 0
