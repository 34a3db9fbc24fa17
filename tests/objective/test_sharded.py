"""The objective over shards against the one over arrays: every call, whole fits, and shards that are lost."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from rankhinge.features import feature_map
from rankhinge.inference.spread import BadScoreError, ListPart, compile_cut, infer_top, sample_stride
from rankhinge.losses import get_loss
from rankhinge.objective import RankingObjective
from rankhinge.objective.sharded import LocalEngine, Shard, ShardedObjective, ShardsLostError, marks
from rankhinge.objective.sharded.algebra import Sizes
from rankhinge.problems.lists import one_list
from rankhinge.solvers import Tight, make_solver
from rankhinge.solvers.bundle import Bundle
from rankhinge.solvers.descent import Descent
from rankhinge.svm.start import rescaled, unit_of_C
from rankhinge.svm.threshold import Cut
from tests.inference.spread_lists import spread_inference

N, D = 3000, 8
BOUNDS = {
    "one": (0, N),
    "some": (0, 700, 1500, N),
    "empty ones": (0, 0, 10, 10, 2000, N, N),
    "single rows": (0, 1, 2, N),
}
PROBLEMS = np.arange(2)


def data(kind="dense", seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D)) * rng.uniform(0.5, 3, D)
    relevant = (X @ rng.normal(size=(D, 2)) + 4 * rng.normal(size=(N, 2)) > 8).T.copy()
    if kind == "float32":
        X = X.astype(np.float32)
    elif kind == "integers":
        X = np.round(3 * X).astype(np.int16)
    elif kind == "sparse":
        X = sparse.csr_array(np.where(np.abs(X) > 1, X, 0.0))
    return X, relevant


def in_memory(X, relevant, loss="ap", labelled=None):
    masks = [None, None] if labelled is None else labelled
    lists = [one_list(mine, mask) for mine, mask in zip(relevant, masks)]
    return RankingObjective(feature_map(X), lists, get_loss(loss))


def over_shards(
    X,
    relevant,
    loss="ap",
    *,
    bounds=BOUNDS["some"],
    n_workers=2,
    labelled=None,
    slack=0.0,
    factors=None,
    engine=LocalEngine,
):
    shards = [
        Shard(
            X[a:b], relevant[:, a:b].copy(), None if labelled is None else labelled[:, a:b].copy(), a, sample_stride(N)
        )
        for a, b in pairwise(bounds)
    ]
    known = np.ones_like(relevant) if labelled is None else labelled
    sizes = Sizes(N, D, N * D, (relevant & known).sum(axis=1), (~relevant & known).sum(axis=1))
    return ShardedObjective(engine(shards, n_workers), sizes, get_loss(loss), slack=slack, factors=factors)


def weights(seed=1):
    return np.random.default_rng(seed).normal(size=(D, 2))


@pytest.mark.parametrize("kind", ["dense", "float32", "integers", "sparse"])
@pytest.mark.parametrize("cut", BOUNDS)
def test_every_call(kind, cut):
    X, relevant = data(kind)
    mine, theirs = over_shards(X, relevant, bounds=BOUNDS[cut]), in_memory(X, relevant)
    s, t = mine.score(weights(), PROBLEMS), theirs.score(weights(), PROBLEMS)
    a, b = mine.score(weights(2), PROBLEMS), theirs.score(weights(2), PROBLEMS)
    steps = np.array([0.5, -2.0])
    s, t = mine.along(s, a, steps), theirs.along(t, b, steps)
    by_scores, expected_by_scores = mine.reference(s), theirs.reference(t)
    np.testing.assert_allclose(by_scores.value, expected_by_scores.value, rtol=1e-12)
    pairs = [
        (by_scores, expected_by_scores),
        (mine.evaluate(s), theirs.evaluate(t)),
        (mine.evaluate_tight(s), theirs.evaluate_tight(t)),
        (
            mine.evaluate_against(s, by_scores.coefficients),
            theirs.evaluate_against(t, expected_by_scores.coefficients),
        ),
        (mine.evaluate(mine.zeros(PROBLEMS)), theirs.evaluate(theirs.zeros(PROBLEMS))),
    ]
    for found, expected in pairs:
        np.testing.assert_allclose(found.value, expected.value, rtol=1e-10)
        np.testing.assert_allclose(found.loss, expected.loss, rtol=1e-10)
        np.testing.assert_allclose(
            mine.adjoint(found.coefficients), theirs.adjoint(expected.coefficients), rtol=1e-10, atol=1e-13
        )
        np.testing.assert_allclose(
            mine.dots(found.coefficients, a), theirs.dots(expected.coefficients, b), rtol=1e-9, atol=1e-12
        )
    second = np.array([1])
    one, other = mine.select(found.coefficients, second), theirs.select(expected.coefficients, second)
    joined, expected_joined = mine.join([one, found.coefficients]), theirs.join([other, expected.coefficients])
    np.testing.assert_allclose(mine.adjoint(joined), theirs.adjoint(expected_joined), rtol=1e-10, atol=1e-13)
    part, expected_part = mine.select(s, second), theirs.select(t, second)
    np.testing.assert_allclose(mine.evaluate(part).value, theirs.evaluate(expected_part).value, rtol=1e-12)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_reductions(kind):
    X, relevant = data(kind)
    mine, theirs = over_shards(X, relevant), in_memory(X, relevant)
    s, rows = mine.score(weights(), PROBLEMS), theirs.score(weights(), PROBLEMS).values
    np.testing.assert_allclose(mine.spread(s), rows.std(axis=1), rtol=1e-12)
    np.testing.assert_allclose(mine.largest(s), np.abs(rows).max(axis=1), rtol=1e-14)
    dense = X.toarray() if kind == "sparse" else X
    np.testing.assert_allclose(mine.variances(0), dense.var(axis=0), rtol=1e-12)
    for form, rule in (("binary", "f1"), ("binary", "error"), ("multiclass", "f1"), ("binary", 0.25)):
        found = mine.cut(s, SimpleNamespace(kind=form, threshold=rule))
        expected = [Cut(form, rule)(row, own) for row, own in zip(rows, relevant)]
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    found = mine.audit(weights(), PROBLEMS)
    np.testing.assert_allclose(found.values, theirs.evaluate(theirs.score(weights(), PROBLEMS)).value, rtol=1e-12)
    lengths, sizes = np.linalg.norm(dense, axis=1), np.abs(dense) @ np.abs(weights())
    for c in PROBLEMS:
        most = np.where(relevant[c], 2 / relevant[c].sum(), 2 / (~relevant[c]).sum())
        assert found.slopes[c] == pytest.approx(most @ lengths, rel=1e-12)
        assert found.sizes[c] == pytest.approx(most @ sizes[:, c], rel=1e-12)


def test_columns_with_factors():
    X, relevant = data()
    factors = np.linspace(0.1, 2, D)
    mine, theirs = over_shards(X, relevant, factors=factors), in_memory(X * factors, relevant)
    found, expected = (o.evaluate(o.score(weights(), PROBLEMS)) for o in (mine, theirs))
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-12)
    np.testing.assert_allclose(mine.adjoint(found.coefficients), theirs.adjoint(expected.coefficients), rtol=1e-9)
    np.testing.assert_allclose(mine.variances(1), (X * factors).var(axis=0), rtol=1e-12)


def test_samples_that_are_not_labelled():
    X, relevant = data()
    labelled = np.random.default_rng(0).random(relevant.shape) < 0.7
    mine, theirs = over_shards(X, relevant, labelled=labelled), in_memory(X, relevant, labelled=labelled)
    s, t = mine.score(weights(), PROBLEMS), theirs.score(weights(), PROBLEMS)
    for call in ("evaluate", "evaluate_tight", "reference"):
        found, expected = getattr(mine, call)(s), getattr(theirs, call)(t)
        np.testing.assert_allclose(found.value, expected.value, rtol=1e-12)
        np.testing.assert_allclose(
            mine.adjoint(found.coefficients), theirs.adjoint(expected.coefficients), rtol=1e-9, atol=1e-13
        )


@pytest.mark.parametrize("loss", ["ap", "ndcg", "auc"])
@pytest.mark.parametrize("slack", [0.0, 1e-11, 1e-6])
def test_whole_fits(loss, slack):
    """The solver, unchanged: the same objective; with slack a lower bound that is below every other value."""
    X, relevant = data()
    C = np.array([10.0, 100.0])
    expected = make_solver("bundle", in_memory(X, relevant, loss), C, tol=1e-8, max_iter=3000).run()
    tol = 1e-8 if slack < 1e-8 else 1e-3
    objective = over_shards(X, relevant, loss, slack=slack)
    found = Bundle(objective, C, tol=tol, opening=True).run()
    assert (found.gap <= tol).all()
    np.testing.assert_allclose(found.objective, expected.objective, rtol=max(1e-6, 2 * tol))
    assert (found.dual_objective <= expected.objective * (1 + 1e-9)).all()
    assert (expected.dual_objective <= found.objective * (1 + 1e-9)).all()
    # What nobody holds any more is dropped with the next message.
    here = objective.zeros(PROBLEMS)
    objective.largest(here)
    assert all(list(shard.arrays) == [here.name] for shard in objective.engine.shards)


def test_slopes_that_come_along():
    """A message less an iteration, and the same bits: the opening takes four messages an iteration at most."""
    X, relevant = data("float32")
    C, points, counts = np.array([30.0]), [], []
    for expecting in (True, False):
        objective = over_shards(X, relevant, slack=1e-9).part(np.array([0]))
        call, methods = objective.engine.call, []

        def noted(batch, shards=None, call=call, methods=methods):
            methods.append([operation.method for operation in batch])
            return call(batch, shards)

        objective.engine.call = noted
        with pytest.MonkeyPatch.context() as patched:
            if not expecting:
                patched.setattr(Descent, "_ends_soon", lambda descent: False)
            solver = Bundle(objective, C, tol=1e-5, opening=True)
            result = solver.run()
        points.append((result.coef.tobytes(), result.objective.tobytes(), result.status[0]))
        together = sum({"finish", "adjoint"} <= set(names) for names in methods)
        counts.append((len(methods), together, result.n_passes))
    assert points[0] == points[1]
    assert points[0][2] == "converged"
    (with_them, together, n_passes), (without, none, fewer) = counts
    assert none == 0
    assert together >= 3
    # Where the first point of a line search was not the last, a pass was for nothing.
    assert without - with_them == together - (n_passes - fewer)


class Flaky(LocalEngine):
    """Loses a shard with all that it holds, before, within or after a batch."""

    def __init__(self, shards, n_workers=1):
        super().__init__(shards, n_workers)
        self.rng, self.n_lost = np.random.default_rng(0), 0

    def call(self, batch, shards=None):
        chance = self.rng.random()
        if chance < 0.05:
            self.n_lost += 1
            lost = int(self.rng.integers(self.n_shards))
            if chance < 0.03:
                super().call(batch[: int(self.rng.integers(len(batch) + 1))], shards)
            self.shards[lost].arrays.clear()
            self.shards[lost]._talks.clear()
            raise ShardsLostError([lost])
        return super().call(batch, shards)


class Interrupted(LocalEngine):
    """Is interrupted once, when the shards have done what they were told, a part of it or nothing."""

    n_done = None

    def call(self, batch, shards=None):
        if self.n_done is None:
            return super().call(batch, shards)
        n_done, self.n_done = self.n_done, None
        if n_done:
            super().call(batch[: n_done if n_done > 0 else len(batch)], shards)
        raise KeyboardInterrupt


@pytest.mark.parametrize("n_done", [0, 1, -1])
def test_an_interrupted_call_can_be_followed_by_others(n_done):
    """Also where the shards have dropped what the waiting operations need."""
    X, relevant = data()
    objective, steps = over_shards(X, relevant, engine=Interrupted), np.array([0.5, 2.0])
    here, ahead = (objective.score(weights(seed=seed), PROBLEMS) for seed in (1, 2))
    expected = objective.evaluate(objective.score(weights(seed=1) + steps * weights(seed=2), PROBLEMS)).value
    moved = objective.along(here, ahead, steps)
    del ahead
    objective.engine.n_done = n_done
    with pytest.raises(KeyboardInterrupt):
        objective.evaluate(moved)
    np.testing.assert_allclose(objective.evaluate(moved).value, expected, rtol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_lost_shards(seed):
    """Whenever a shard is lost, the fit goes on; scores made anew from the weights differ by rounding alone."""
    X, relevant = data(seed=seed)
    C = np.array([10.0, 100.0])
    results = []
    for engine in (LocalEngine, Flaky):
        objective = over_shards(X, relevant, engine=engine)
        results.append(Bundle(objective, C, tol=1e-6, opening=True).run())
    assert objective.engine.n_lost > 3
    np.testing.assert_allclose(results[0].objective, results[1].objective, rtol=1e-9)


def tight_fit(objective, reach, **options):
    """From scaled scores on, as `svm.fit` begins; what has been seen there is handed on."""
    unit, known = unit_of_C(objective, *rescaled(objective, weights(seed=3), np.full(2, 50.0)))
    return Tight(objective, reach * unit, centre=known.weights, known=known, tol=1e-4, **options).run()


@pytest.mark.parametrize("reach", [0.1, 100.0])
@pytest.mark.parametrize("max_iter", [7, 1000])
def test_tight_fits(reach, max_iter):
    X, relevant = data()
    expected, mine = tight_fit(in_memory(X, relevant), reach, max_iter=max_iter), over_shards(X, relevant)
    found = tight_fit(mine, reach, max_iter=max_iter)
    assert found.n_passes == pytest.approx(expected.n_passes, abs=10)
    if max_iter > 100:
        assert set(found.status) == set(expected.status) == {"converged"}
    np.testing.assert_allclose(found.objective, expected.objective, rtol=1e-3)
    anew = mine.evaluate_tight(mine.score(found.coef, PROBLEMS), coefficients=False).value
    # From scores that were added up on the way, stage by stage, and from new ones.
    centre = rescaled(mine, weights(seed=3), np.full(2, 50.0))[0]
    C = reach * unit_of_C(mine, centre, mine.score(centre, PROBLEMS))[0]
    np.testing.assert_allclose(found.objective, 0.5 * ((found.coef - centre) ** 2).sum(axis=0) + C * anew, rtol=1e-9)
    here = mine.zeros(PROBLEMS)
    mine.largest(here)
    assert all(list(shard.arrays) == [here.name] for shard in mine.engine.shards)


@pytest.mark.parametrize("seed", range(3))
def test_lost_shards_in_a_tight_fit(seed):
    """What is handed on from one descent to the next outlives them."""
    X, relevant = data(seed=seed)
    results = []
    for engine in (LocalEngine, Flaky):
        objective = over_shards(X, relevant, engine=engine)
        results.append(tight_fit(objective, 100.0))
    assert objective.engine.n_lost > 3
    np.testing.assert_allclose(results[0].objective, results[1].objective, rtol=1e-6)
    np.testing.assert_allclose(results[0].dual_objective, results[1].dual_objective, rtol=1e-3)


@pytest.mark.parametrize("seed", range(2))
def test_lost_shards_under_a_cut(seed):
    """Scores made anew in a new place may differ in the last bit from those on top."""
    X, relevant = data(seed=seed)
    results = []
    for engine in (LocalEngine, Flaky):
        objective = over_shards(X, relevant, "recall@20%", engine=engine)
        results.append(Bundle(objective, np.array([10.0, 100.0]), tol=1e-6, opening=True).run())
    assert objective.engine.n_lost > 3
    np.testing.assert_allclose(results[0].objective, results[1].objective, rtol=2e-6)


def test_scores_on_top_may_differ_in_the_last_bit():
    """As on a shard that was made anew: each score still finds its coefficient."""
    rng = np.random.default_rng(0)
    relevant = rng.random(500) < 0.1
    scores = rng.normal(size=500)
    found = spread_inference(scores, relevant, "ap@20")
    requests = infer_top(
        compile_cut(get_loss("ap@20"), int(relevant.sum()), int((~relevant).sum())),
        [scores[relevant]],
        int((~relevant).sum()),
        np.zeros(0),
    )
    u = np.empty(500)
    for away in (1.0 - 1e-15, 1.0 + 1e-15):
        part = ListPart(scores * away, relevant, u)
        if away < 1.0:
            finish = requests.send(ListPart(scores, relevant, u).top(top := next(requests)))
        part.top(top)
        part.finish(finish, 0)
        np.testing.assert_allclose(u, found.coefficients, rtol=1e-14, atol=0)


def test_workers_do_not_show():
    X, relevant = data()
    found = [
        Bundle(over_shards(X, relevant, n_workers=w), np.array([10.0, 10.0]), tol=1e-6, opening=True).run()
        for w in (1, 2, 3)
    ]
    for other in found[1:]:
        np.testing.assert_array_equal(found[0].coef, other.coef)


def test_a_score_that_is_not_usable():
    X, relevant = data()
    X[1234, 3] = np.nan
    objective = over_shards(X, relevant)
    with pytest.raises(BadScoreError):
        objective.evaluate(objective.score(weights(), PROBLEMS))


@pytest.mark.parametrize("loss", ["ap@10", "precision@5%", "r-precision"])
@pytest.mark.parametrize("cut", BOUNDS)
def test_losses_with_a_cut(loss, cut):
    X, relevant = data("integers")
    labelled = np.random.default_rng(0).random(relevant.shape) < 0.7
    mine = over_shards(X, relevant, loss, bounds=BOUNDS[cut], labelled=labelled)
    theirs = in_memory(X, relevant, loss, labelled)
    s, t = mine.score(weights(), PROBLEMS), theirs.score(weights(), PROBLEMS)
    a, b = mine.reference(s), theirs.reference(t)
    pairs = [
        (mine.evaluate(s), theirs.evaluate(t)),
        (mine.evaluate(mine.zeros(PROBLEMS)), theirs.evaluate(theirs.zeros(PROBLEMS))),
        (mine.evaluate_tight(s), theirs.evaluate_tight(t)),
        (mine.evaluate_against(s, a.coefficients), theirs.evaluate_against(t, b.coefficients)),
    ]
    for found, expected in pairs:
        np.testing.assert_allclose(found.value, expected.value, rtol=1e-12)
        np.testing.assert_allclose(found.loss, expected.loss, rtol=1e-12)
        np.testing.assert_allclose(
            mine.adjoint(found.coefficients), theirs.adjoint(expected.coefficients), rtol=1e-10, atol=1e-13
        )
    assert mine.slack_used == 0.0


def test_a_cut_that_is_too_deep_for_shards(monkeypatch):
    monkeypatch.setattr("rankhinge.inference.spread.top.MOST_SHIPPED", 20)
    X, relevant = data()
    with pytest.raises(ValueError, match=r"looks at the first 10 places of a list, .* fit it in memory"):
        over_shards(X, relevant, "precision@10")


@pytest.mark.parametrize("kind", ["dense", "float32", "sparse"])
def test_marks_tell_samples_apart_however_they_are_cut(kind):
    X, relevant = data(kind)
    rows, expected = np.array([0, 5, 700, 1499, N - 1]), None
    for bounds in BOUNDS.values():
        found = over_shards(X, relevant, bounds=bounds).marks(rows)
        expected = expected or found
        assert found == expected
    other = relevant.copy()
    other[0, [3, 4]] = ~other[0, [3, 4]]
    assert over_shards(X, other).marks(rows)["y"] != expected["y"]
    assert over_shards(X, np.roll(relevant, 1, axis=1)).marks(rows)["y"] != expected["y"]
    shifted = X[::-1] if kind == "sparse" else np.roll(X, 1, axis=1)
    assert over_shards(shifted, relevant).marks(rows)["rows"] != expected["rows"]
    assert over_shards(X, relevant).part(np.array([1])).marks(rows)["y"] != expected["y"]


@pytest.mark.parametrize("kind", ["dense", "float32", "integers", "sparse"])
def test_sums_of_rows_do_not_know_their_order(kind):
    X, relevant = data(kind)
    rng = np.random.default_rng(0)
    labels, codes, order = relevant[0].astype(int), rng.integers(0, 2**63, N).astype(np.uint64), rng.permutation(N)
    whole = marks.row_sum(X, labels, codes)
    with np.errstate(over="ignore"):
        halves = marks.row_sum(X[:100], labels[:100], codes[:100]) + marks.row_sum(X[100:], labels[100:], codes[100:])
    assert halves == whole
    assert marks.row_sum(X[order], labels[order], codes[order]) == whole
    assert marks.row_sum(X, labels, codes[order]) != whole
    assert marks.row_sum(X, labels[order], codes) != whole
