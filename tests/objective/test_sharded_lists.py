"""Many lists over shards against the objective over arrays: every call, whole fits, and shards that are lost."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from rankhinge.features import feature_map
from rankhinge.losses import get_loss
from rankhinge.objective import RankingObjective
from rankhinge.objective.sharded import LocalEngine
from rankhinge.objective.sharded.lists import ShardedLists
from rankhinge.objective.sharded.lists_shard import ListsShard, Outside, Rules, _rows_of
from rankhinge.objective.sharded.outline import Outline, counts_of, outside_of, parts_of
from rankhinge.problems.directory import directory_of, entries_of, levels_of, places_of
from rankhinge.problems.gains import gains_of, grades_of
from rankhinge.problems.queries import ranking_lists
from rankhinge.solvers import make_solver
from tests.objective.test_sharded import Flaky

N, D = 1200, 6
ONE = np.zeros(1, np.int64)
BOUNDS = {"one": (0, N), "some": (0, 250, 251, 251, 700, N), "empty ones": (0, 0, 600, 600, N, N)}


def data(order="sorted", n_grades=3, seed=0):
    """Lists of one to a few dozen samples, and one of 400."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 40, 101)
    sizes[5] = 400
    qid = np.repeat(np.arange(len(sizes)), sizes)[:N]
    qid = rng.permutation(qid) if order == "scattered" else qid
    X = rng.normal(size=(N, D)) + 3 * rng.normal(size=(101, D))[qid]
    scores = X @ rng.normal(size=D) + 2 * rng.normal(size=N)
    y = np.clip(np.round(scores - np.median(scores)), 0, n_grades - 1)
    return X, y, qid


def over_shards(
    X,
    y,
    qid,
    loss="ndcg",
    *,
    bounds,
    longest,
    most_fetched,
    weights=None,
    level_weights=None,
    slack=0.0,
    engine=LocalEngine,
    factors=None,
):
    loss, parts = get_loss(loss), list(pairwise(bounds))
    rows = [None if weights is None else weights[a:b] for a, b in parts]
    directory = directory_of([entries_of(y[a:b], qid[a:b], own) for (a, b), own in zip(parts, rows)])
    rows = [None if own is None else own / directory.unit for own in rows]
    grades = grades_of(directory.labels, "exponential")
    grade_of = np.searchsorted(grades.gains, gains_of(directory.labels, "exponential"))
    table = levels_of(directory, grade_of, grades, loss, level_weights)
    places = places_of(directory, table.usable, longest, most_fetched)
    codes, rules = directory.queries, Rules(loss, grades.gains, level_weights, table.total)
    outside = outside_of(directory, table, places, codes)
    labels = np.searchsorted(grades.gains, gains_of(y, "exponential"))
    shards = [
        ListsShard(X[a:b], labels[a:b], qid[a:b], own, mine, rules, a)
        for (a, b), own, mine in zip(parts, rows, parts_of(outside, directory))
    ]
    outline = Outline(N, D, N * D, counts_of(directory, table), outside, rules)
    return ShardedLists(engine(shards, 2), outline, slack=slack, factors=factors), places


@pytest.mark.parametrize("n_outside", [0, 1, 7, 300])
def test_rows_of_lists_outside(n_outside):
    """As found list by list; codes beyond 63 bits, and a list without rows here, among them."""
    rng = np.random.default_rng(n_outside)
    every = rng.integers(0, 2**64, 400, dtype=np.uint64)
    codes, wanted = rng.choice(every[1:], 5000), rng.permutation(every)[:n_outside]
    outside = tuple(Outside(number, int(code), False, 9, 1.0, ()) for number, code in enumerate(wanted))
    found = _rows_of(outside, codes)
    assert list(found) == list(range(n_outside))
    for number, code in enumerate(wanted):
        np.testing.assert_array_equal(found[number], np.flatnonzero(codes == code))


def in_memory(X, y, qid, loss="ndcg", weights=None, level_weights=None):
    lists = ranking_lists(y, qid, get_loss(loss), "exponential", level_weights, weights)
    return RankingObjective(feature_map(X), [lists], get_loss(loss))


WAYS = {"fetched": (10**6, 10**6), "spread": (0, 0), "both": (100, 10**6)}
OPTIONS = {
    "ndcg": {},
    "grades of ap": {"loss": "ap", "level_weights": np.array([1.0, 0.5])},
    "cut": {"loss": "ndcg@5"},
    "weights": {"weights": True},
    "hinge": {"loss": "zero-one", "level_weights": np.array([1.0, 1.0])},
}


def vector(seed):
    return np.random.default_rng(seed).normal(size=(D, 1))


CASES = [
    *(("scattered", way, "some") for way in WAYS),
    *(("sorted", way, "some") for way in WAYS),
    ("sorted", "spread", "empty ones"),
    ("scattered", "spread", "one"),
]


@pytest.mark.parametrize(("order", "way", "cut"), CASES)
@pytest.mark.parametrize("options", OPTIONS)
def test_every_call(order, way, cut, options):
    X, y, qid = data(order)
    own = dict(OPTIONS[options])
    if own.pop("weights", False):
        own["weights"] = np.random.default_rng(5).integers(0, 3, 101).astype(float)[qid]
    longest, most_fetched = WAYS[way]
    mine, places = over_shards(X, y, qid, bounds=BOUNDS[cut], longest=longest, most_fetched=most_fetched, **own)
    assert not places.moved.any()
    if order == "scattered" and cut != "one":
        assert places.spread.any() == (way != "fetched")
        assert places.fetched.any() == (way != "spread")
    theirs = in_memory(X, y, qid, **own)
    s, t = mine.score(vector(1), ONE), theirs.score(vector(1), ONE)
    a, b = mine.score(vector(2), ONE), theirs.score(vector(2), ONE)
    s, t = mine.along(s, a, np.array([0.5])), theirs.along(t, b, np.array([0.5]))
    pairs = [
        (mine.evaluate(s), theirs.evaluate(t)),
        (mine.evaluate(mine.zeros(ONE)), theirs.evaluate(theirs.zeros(ONE))),
    ]
    if options != "hinge":
        by_scores, expected = mine.reference(s), theirs.reference(t)
        pairs += [
            (by_scores, expected),
            (mine.evaluate_tight(s), theirs.evaluate_tight(t)),
            (mine.evaluate_against(s, by_scores.coefficients), theirs.evaluate_against(t, expected.coefficients)),
            (mine.logistic()(s), theirs.logistic()(t)),
        ]
    for found, expected in pairs:
        np.testing.assert_allclose(found.value, expected.value, rtol=1e-9)
        np.testing.assert_allclose(found.loss, expected.loss, rtol=1e-9, atol=1e-12)
        u, r = found.coefficients, expected.coefficients
        np.testing.assert_allclose(mine.adjoint(u), theirs.adjoint(r), rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(mine.dots(u, a), theirs.dots(r, b), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(mine.spread(s), theirs.spread(t), rtol=1e-10)
    np.testing.assert_allclose(mine.variances(0), theirs.variances(0), rtol=1e-10)
    for found, expected in zip(mine.counts(), theirs.counts()):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    found, expected = mine.audit(vector(3), ONE), theirs.audit(vector(3), ONE)
    for place in range(3):
        np.testing.assert_allclose(found[place], expected[place], rtol=1e-10)


@pytest.mark.parametrize("kind", ["sparse", "float32"])
def test_variances_of_other_features(kind):
    X, y, qid = data("scattered")
    X = sparse.csr_array(np.where(np.abs(X) > 1, X, 0.0)) if kind == "sparse" else X.astype(np.float32)
    mine, _ = over_shards(X, y, qid, bounds=BOUNDS["some"], longest=100, most_fetched=10**6)
    np.testing.assert_allclose(mine.variances(0), in_memory(X, y, qid).variances(0), rtol=1e-6)


def test_scattered_short_lists_are_to_be_moved():
    _, y, qid = data("scattered")
    parts = list(pairwise(BOUNDS["some"]))
    directory = directory_of([entries_of(y[a:b], qid[a:b]) for a, b in parts])
    usable = np.ones(directory.queries.size, np.bool_)
    places = places_of(directory, usable, longest=100, most_fetched=50)
    n_parts = np.array(
        [
            len({int(np.searchsorted(BOUNDS["some"], row, "right")) for row in np.flatnonzero(qid == q)})
            for q in directory.queries
        ]
    )
    np.testing.assert_array_equal(places.moved, (n_parts > 1) & (directory.sizes <= 100))
    np.testing.assert_array_equal(directory.queries[places.spread], [5])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("losing", [False, True])
def test_whole_fits(way, losing):
    X, y, qid = data("scattered")
    longest, most_fetched = WAYS[way]
    mine, _ = over_shards(
        X,
        y,
        qid,
        bounds=BOUNDS["some"],
        longest=longest,
        most_fetched=most_fetched,
        slack=1e-9,
        engine=Flaky if losing else LocalEngine,
    )
    found, expected = [], []
    for objective, into in ((mine, found), (in_memory(X, y, qid), expected)):
        solver = make_solver("bundle", objective, np.array([20.0]), tol=1e-7, max_iter=500)
        while not solver.done:
            solver.step()
        into.append(solver.result())
    assert found[0].gap[0] <= 1e-7
    assert found[0].objective[0] == pytest.approx(expected[0].objective[0], rel=1e-6)


def test_the_same_bits_for_any_number_of_workers():
    X, y, qid = data("scattered")
    values = []
    for n_workers in (1, 2, 4):
        mine, _ = over_shards(
            X,
            y,
            qid,
            bounds=BOUNDS["some"],
            longest=100,
            most_fetched=10**6,
            engine=lambda shards, _, n=n_workers: LocalEngine(shards, n),
        )
        found = mine.evaluate(mine.score(vector(1), ONE))
        values.append((found.value.tobytes(), mine.adjoint(found.coefficients).tobytes()))
    assert len(set(values)) == 1
