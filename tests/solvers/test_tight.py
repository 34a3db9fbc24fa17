"""Descent and the tight bound: no step raises the objective, and the convex problem above certifies the end."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from rankhinge.features import feature_map
from rankhinge.losses import get_loss
from rankhinge.objective import RankingObjective
from rankhinge.problems import one_list
from rankhinge.solvers import Bundle, Descent, Tight, look, make_solver

SCALE = 20.0


def overlapping(n=300, d=5, n_problems=1, seed=0):
    """Features, relevance (K, n), and coefficients (d, K) of middling quality with scores of a large spread."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.array([1.0, 3.0] + [1.0] * (d - 2))
    strength = X[:, :n_problems] + 0.4 * X[:, 1:2] ** 3 / 9 + rng.normal(size=(n, n_problems))
    relevant = (strength > np.quantile(strength, 0.85, axis=0)).T
    coef = np.linalg.lstsq(X, relevant.T - relevant.mean(axis=1), rcond=None)[0]
    return X, np.ascontiguousarray(relevant), SCALE * coef / (X @ coef).std(axis=0)


def objective_of(X, relevant, loss="ap"):
    return RankingObjective(feature_map(X), [one_list(row) for row in relevant], get_loss(loss))


def value(objective, coef, centre, C):
    scores = objective.score(coef, np.arange(objective.n_problems))
    return 0.5 * ((coef - centre) ** 2).sum(axis=0) + C * objective.evaluate_tight(scores).value


@pytest.mark.parametrize("loss", ["ap", "ndcg", "auc"])
@pytest.mark.parametrize("pull", [0.01, 1.0, 30.0])
def test_every_step_lowers_the_objective_and_the_end_is_certified(loss, pull):
    X, relevant, centre = overlapping()
    objective = objective_of(X, relevant, loss)
    C = np.array([pull * SCALE**2])
    result = Tight(objective, C, centre=centre, tol=1e-3).run()
    assert result.status[0] == "converged"
    assert result.gap[0] <= 1e-3
    assert np.all(np.diff(result.history["primal"][0]) <= 0.0)
    at_start = value(objective, centre, centre, C)
    assert result.objective[0] <= at_start[0]
    assert result.objective[0] == pytest.approx(value(objective, result.coef, centre, C)[0], rel=1e-12)


def test_the_convex_problem_above_touches_at_the_point_and_its_bound_holds():
    # By hand: G(w) ≤ ½‖w - w₀‖² + C (J(Xw) - u·Xw) for the u of any ranking by scores, with equality where u is from.
    X, relevant, centre = overlapping()
    objective, C = objective_of(X, relevant), np.array([5.0 * SCALE**2])
    result = Tight(objective, C, centre=centre, tol=1e-4).run()
    everything = np.arange(1)
    u = objective.reference(objective.score(result.coef, everything)).coefficients

    def above(coef):
        scores = objective.score(coef, everything)
        linear = float(u.values[0] @ scores.values[0])
        convex = float(objective.evaluate(scores).value[0])
        return 0.5 * float(((coef - centre) ** 2).sum()) + C[0] * (convex - linear)

    assert above(result.coef) == pytest.approx(result.objective[0], rel=1e-9)
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-1, 1.0, 10.0):
        for _ in range(20):
            other = result.coef + size * rng.normal(size=result.coef.shape)
            assert value(objective, other, centre, C)[0] <= above(other) * (1 + 1e-12)
            # No point of the convex problem lies noticeably below the end.
            assert above(other) >= result.objective[0] * (1 - 3e-3)


def test_a_tiny_C_returns_the_start():
    X, relevant, centre = overlapping()
    result = Tight(objective_of(X, relevant), np.array([1e-12]), centre=centre).run()
    np.testing.assert_allclose(result.coef, centre, rtol=1e-9)
    assert result.status[0] == "converged"


def test_problems_in_lockstep_end_where_they_end_alone():
    X, relevant, centre = overlapping(n_problems=3)
    C = np.array([0.1, 1.0, 10.0]) * SCALE**2
    joint = Tight(objective_of(X, relevant), C, centre=centre, tol=1e-5).run()
    assert set(joint.status) == {"converged"}
    for k in range(3):
        alone = Tight(objective_of(X, relevant[k : k + 1]), C[k : k + 1], centre=centre[:, k : k + 1], tol=1e-5).run()
        # The descents are the same; the bundle solver spends more on a single problem, and ends elsewhere within tol.
        assert joint.objective[k] == pytest.approx(alone.objective[0], rel=1e-3)


def test_without_a_certificate_the_descent_alone_is_run():
    X, relevant, centre = overlapping()
    objective, C = objective_of(X, relevant), np.array([SCALE**2])
    result = Tight(objective, C, centre=centre, certify=False).run()
    whole = Tight(objective, C, centre=centre).run()
    assert np.isinf(result.gap[0])
    assert whole.objective[0] <= result.objective[0] * (1 + 1e-9)
    assert result.n_passes < whole.n_passes


def test_too_few_iterations_leave_the_best_so_far():
    X, relevant, centre = overlapping()
    objective, C = objective_of(X, relevant), np.array([10 * SCALE**2])
    result = Tight(objective, C, centre=centre, max_iter=3).run()
    assert result.status[0] == "max_iter"
    assert result.objective[0] < value(objective, centre, centre, C)[0]
    assert result.objective[0] == pytest.approx(value(objective, result.coef, centre, C)[0], rel=1e-12)


@pytest.mark.parametrize("n_problems", [1, 2])
@pytest.mark.parametrize("pull", [0.01, 30.0])
def test_what_is_known_of_the_centre_is_not_looked_at_again(monkeypatch, n_problems, pull):
    X, relevant, centre = overlapping(n_problems=n_problems)
    objective, C = objective_of(X, relevant), np.full(n_problems, pull * SCALE**2)
    expected = Tight(objective, C, centre=centre).run()
    known = look(objective, objective.evaluate_tight, centre, np.arange(n_problems))
    passes = []
    for name in ("score", "adjoint"):
        original = getattr(objective, name)
        monkeypatch.setattr(objective, name, lambda *a, original=original: passes.append(a) or original(*a))
    result = Tight(objective, C, centre=centre, known=known).run()
    assert result.n_passes == expected.n_passes == len(passes) + known.n_passes
    np.testing.assert_array_equal(result.coef, expected.coef)
    assert not any(np.array_equal(first, centre) for first, *_ in passes[:-1])


def test_a_descent_that_goes_on_from_another_knows_what_a_look_there_finds():
    X, relevant, centre = overlapping(n_problems=2)
    objective, C, everything = objective_of(X, relevant), np.array([1.0, 30.0]) * SCALE**2, np.arange(2)
    tight = objective.evaluate_tight
    descent = Descent(objective, tight, C, centre, look(objective, tight, centre, everything), tol=0.0)
    for _ in range(4):
        descent.step()
    known = descent.known(everything)
    anew = look(objective, tight, known.weights, everything)
    np.testing.assert_allclose(known.scores.values, anew.scores.values, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(known.value, anew.value, rtol=1e-9)
    np.testing.assert_allclose(known.loss, anew.loss, rtol=1e-9)
    np.testing.assert_allclose(known.slopes, anew.slopes, rtol=1e-9, atol=1e-12)
    descent.keep(np.array([True, False]))
    assert descent.known(everything) is None
    np.testing.assert_array_equal(descent.known(np.arange(1)).weights, known.weights[:, :1])


def test_a_start_elsewhere_is_where_the_descent_begins():
    """What is known of the centre must not stand for the start."""
    X, relevant, centre = overlapping(n_problems=2)
    objective, C, everything = objective_of(X, relevant), np.array([1.0, 30.0]) * SCALE**2, np.arange(2)
    start = Tight(objective, C, centre=centre, max_iter=15, certify=False).run().coef
    known = look(objective, objective.evaluate_tight, centre, everything)
    expected = Tight(objective, C, centre=centre, start=start).run()
    found = Tight(objective, C, centre=centre, start=start, known=known).run()
    np.testing.assert_array_equal(found.coef, expected.coef)
    np.testing.assert_array_equal(found.n_iter, expected.n_iter)
    assert found.n_passes == expected.n_passes + known.n_passes


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("pulls", [(1.0, 30.0, 300.0), (300.0, 1.0), (3000.0, 3000.0, 1.0)])
def test_scores_that_are_handed_on_belong_to_the_problems_that_go_on(monkeypatch, seed, pulls):
    """Some reach `max_iter` with the last step of the descent; the convex problem of the others has scores already."""
    objective, centre = _restless(len(pulls), seed)
    C, handed_on = np.array(pulls), []
    begin = Tight._begin_certificate

    def noting(solver, active):
        handed_on.append(solver.n_iter.copy())
        begin(solver, active)

    with monkeypatch.context() as patch:
        patch.setattr(Tight, "_begin_certificate", noting)
        Tight(objective, C, centre=centre, tol=1e-4).run()
    # The slowest makes its last step here; the others wait for it.
    max_iter = int(handed_on[0].max()) + 1
    assert handed_on[0].min() + 1 < max_iter
    found = Tight(objective, C, centre=centre, tol=1e-4, max_iter=max_iter).run()
    assert "max_iter" in found.status
    original = Bundle.__init__
    monkeypatch.setattr(Bundle, "__init__", lambda *a, **o: original(*a, **o | {"start_scores": None}))
    expected = Tight(objective, C, centre=centre, tol=1e-4, max_iter=max_iter).run()
    np.testing.assert_array_equal(found.status, expected.status)
    np.testing.assert_allclose(found.coef, expected.coef, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.dual_objective, expected.dual_objective, rtol=1e-6)
    np.testing.assert_allclose(found.objective, value(objective, found.coef, centre, C), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("max_iter", range(25, 45))
def test_some_stop_where_one_descent_hands_on_to_the_next(max_iter):
    objective, centre = _restless(3)
    C = np.array([1.0, 1e4, 1e6])
    result = Tight(objective, C, centre=centre, max_iter=max_iter, tol=1e-6).run()
    assert (result.n_iter <= max_iter).all()
    np.testing.assert_allclose(result.objective, value(objective, result.coef, centre, C), rtol=1e-9, atol=1e-12)
    assert (result.objective <= value(objective, centre, centre, C) * (1 + 1e-12)).all()


def test_planes_of_an_earlier_run_are_still_valid():
    X, relevant, centre = overlapping()
    objective, C = objective_of(X, relevant), np.array([5.0 * SCALE**2])
    solver = Tight(objective, C, centre=centre)
    first, planes = solver.run(), solver.planes()[0]
    assert planes.offsets.size > 0
    rng = np.random.default_rng(1)
    for _ in range(20):
        coef = first.coef * rng.uniform(0.1, 3.0) + rng.normal(size=first.coef.shape)
        hinge = float(objective.evaluate(objective.score(coef, np.arange(1))).value[0])
        assert np.all(planes.offsets + planes.slopes @ coef[:, 0] <= hinge * (1 + 1e-9))
    # And they are planes of J itself: where the last round has cut, they touch it.
    hinge = float(objective.evaluate(objective.score(first.coef, np.arange(1))).value[0])
    assert np.max(planes.offsets + planes.slopes @ first.coef[:, 0]) >= hinge * (1 - 0.01)


def test_descent_on_a_convex_function_reaches_its_minimum():
    X, relevant, _ = overlapping()
    objective, C = objective_of(X, relevant), np.array([3.0])
    centre = np.zeros((X.shape[1], 1))
    descent = Descent(
        objective, objective.evaluate, C, centre, look(objective, objective.evaluate, centre, np.arange(1)), tol=1e-9
    )
    values = [descent.states[0].value]
    while descent.active.size:
        descent.step()
        values.append(descent.states[0].value)
    best = make_solver("bundle", objective, C, tol=1e-8).run().objective[0]
    assert np.all(np.diff(values) <= 0.0)
    assert descent.states[0].value == pytest.approx(best, rel=1e-4)
    assert descent.states[0].value >= best * (1 - 1e-7)


def test_descent_agrees_with_a_library_on_a_smooth_function():
    rng = np.random.default_rng(0)
    X, target = rng.normal(size=(40, 6)), rng.normal(size=40)
    objective = objective_of(X, np.arange(40)[None, :] < 10)

    def smooth(scores):
        away = scores.values - target
        evaluation = type(objective.evaluate(scores))
        slope = scores._replace(values=np.tanh(away))
        return evaluation(np.log(np.cosh(away)).sum(axis=1), np.zeros(1), slope)

    centre = np.zeros((6, 1))
    descent = Descent(
        objective, smooth, np.array([2.0]), centre, look(objective, smooth, centre, np.arange(1)), tol=1e-14
    )
    while descent.active.size:
        descent.step()
    expected = minimize(lambda w: 0.5 * w @ w + 2.0 * np.log(np.cosh(X @ w - target)).sum(), np.zeros(6), tol=1e-12)
    assert descent.states[0].value == pytest.approx(expected.fun, rel=1e-9)
    np.testing.assert_allclose(descent.states[0].w, expected.x, atol=1e-4)


def _restless(n_problems, seed=0):
    """Problems whose convex problems lead further down more than once."""
    rng = np.random.default_rng(seed)
    X, W = rng.normal(size=(60, 8)), rng.normal(size=(8, n_problems))
    Y = X @ W + rng.normal(size=(60, n_problems)) * (1 + np.arange(n_problems)) > 0.5 * np.arange(n_problems)
    objective = RankingObjective(feature_map(X), [one_list(column) for column in Y.T], get_loss("ap"))
    return objective, 3.0 * W / np.std(X @ W, axis=0)


def test_problems_that_ended_keep_their_certificate():
    """Further rounds of the others must not touch it."""
    objective, centre = _restless(3)
    solver = Tight(objective, np.array([1.0, 30.0, 300.0]), centre=centre, tol=1e-6, max_iter=400)
    ended = {}
    while not solver.done:
        solver.step()
        result = solver.result()
        for k in np.flatnonzero(result.status == "converged"):
            now = (result.objective[k], result.dual_objective[k], result.gap[k])
            assert ended.setdefault(k, now) == now
    gap = (result.objective - result.dual_objective) / np.abs(result.objective)
    np.testing.assert_allclose(np.maximum(gap, 0.0), result.gap, atol=1e-12)
    np.testing.assert_array_equal(result.history["dual"][:, -1], result.dual_objective)


def test_a_gap_does_not_outlive_its_convex_problem():
    """Stopped in a later descent, a run has no certificate."""
    objective, centre = _restless(1)
    solver = Tight(objective, np.array([30.0]), centre=centre, tol=1e-3, max_iter=400)
    seen = set()
    while not solver.done:
        solver.step()
        seen.add((solver._descent is not None, bool(np.isfinite(solver.gaps()[0]))))
        assert solver._descent is None or np.isinf(solver.gaps()[0])
    assert (True, False) in seen
    assert np.isfinite(solver.gaps()[0])


def _further_down(objective, centre, C, end):
    """The least value that the convex problem above the objective leads to, from here; H is in the centre."""
    reference = objective.reference(objective.score(end, np.arange(1))).coefficients
    moved = centre + C * objective.adjoint(reference)
    reached = make_solver("bundle", objective, C, centre=moved, start=end, tol=1e-9, max_iter=3000).run()
    return value(objective, reached.coef, centre, C)[0]


@pytest.mark.parametrize(("seed", "C"), [(7, 100.0), (8, 1000.0), (10, 1000.0)])
def test_no_convex_problem_leads_noticeably_further_down_from_the_end(seed, C):
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(60, 8)), rng.normal(size=(8, 1))
    objective = objective_of(X, (X @ w + rng.normal(size=(60, 1)) > 0.0).T)
    centre, C = 3.0 * w / np.std(X @ w), np.array([C])
    result = Tight(objective, C, centre=centre, tol=1e-4).run()
    assert result.status[0] == "converged"
    assert _further_down(objective, centre, C, result.coef) >= result.objective[0] * (1 - 3e-4)


def test_a_large_C_is_approached_from_below():
    """Set free at once, the first steps would lead five times as far."""
    X, relevant, centre = overlapping()
    solver = Tight(objective_of(X, relevant), np.array([1e6 * SCALE**2]), centre=centre)
    for _ in range(8):
        solver.step()
        assert np.linalg.norm(solver.result().coef - centre) <= 0.12 * np.linalg.norm(centre)
    assert np.linalg.norm(solver.run().coef - centre) > 0.5 * np.linalg.norm(centre)


def test_where_the_objective_is_0_no_convex_problem_is_needed():
    X = np.linspace(-1, 1, 30)[:, None]
    relevant = np.stack([X[:, 0] > 0.5, X[:, 0] ** 2 > 0.5])
    objective = objective_of(X, relevant)
    solver = Tight(objective, np.array([2.0, 2.0]), centre=np.array([[1e6, 1.0]]))
    result = solver.run()
    assert set(result.status) == {"converged"}
    assert result.objective[0] == result.dual_objective[0] == result.gap[0] == 0.0
    assert result.objective[1] > 0
    assert [own.offsets.size > 0 for own in solver.planes()] == [False, True]


def test_what_ends_within_a_convex_problem_has_the_gap_of_its_own_point():
    """The solver of the convex problem may be far ahead: where it leads lower, the fit goes there before it ends."""
    rng = np.random.default_rng(5)
    n, d, K = 17, 36, 3
    X = rng.normal(size=(n, d))
    relevant = np.ascontiguousarray((X @ rng.normal(size=(d, K)) + rng.normal(size=(n, K)) > 1).T)
    objective, C = objective_of(X, relevant), np.full(K, 1e3)
    centre = np.linalg.lstsq(X, relevant.T - 0.5, rcond=None)[0]
    whole = Tight(objective, C, centre=centre).run()
    assert set(whole.status) == {"converged"}
    inside = 0
    for max_iter in range(1, int(whole.n_iter.max())):
        solver = Tight(objective, C, centre=centre, max_iter=max_iter)
        result = solver.run()
        np.testing.assert_allclose(result.objective, value(objective, result.coef, centre, C), rtol=1e-9, atol=1e-12)
        known = np.isfinite(result.dual_objective)
        np.testing.assert_allclose(
            result.gap[known], 1 - (result.dual_objective / result.objective)[known], rtol=1e-9, atol=1e-12
        )
        if solver._inner is not None:
            inside += 1
            # The convex problem lies above the objective: its best value is a bound on what is returned.
            assert np.all(result.objective <= solver._inner.primal * (1 + 1e-9) + 1e-12)
    assert inside > 3
