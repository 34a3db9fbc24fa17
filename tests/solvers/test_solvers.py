"""All solvers: known optima, certificates, lockstep, warm starts, interrupts, edge cases."""

from __future__ import annotations

import sys
from itertools import count

import numpy as np
import pytest

from rankhinge.solvers import Solver
from rankhinge.solvers.master import Master
from tests.convex_judge import quadratic_minimum

from .helpers import VARIANTS, ListsObjective, QueryObjective, all_planes, make_solver, random_problem

EXACT = ["bundle", "rounds", "cutting-plane"]


def primal(objective, C, w, k=0, centre=0.0):
    scores = objective.score(w[:, None], np.array([k]))
    return 0.5 * np.sum((w - centre) ** 2) + C * objective.evaluate(scores).value[0]


def optimum(offsets, slopes, C, centre, A=None, c=None):
    """The minimum over enumerated planes by an independent solver, over (w, J)."""
    d = slopes.shape[1]
    lines, bounds = np.column_stack([-slopes, np.ones(len(slopes))]), offsets
    if A is not None:
        lines = np.vstack([lines, np.column_stack([A, np.zeros(len(A))])])
        bounds = np.append(bounds, c)
    least = quadratic_minimum(np.append(np.ones(d), 0.0), np.append(-centre, C), lines, bounds)
    return least + 0.5 * centre @ centre


def small(seed, d=3):
    rng = np.random.default_rng(seed)
    relevant = np.zeros(6, dtype=bool)
    relevant[rng.permutation(6)[: 2 + seed % 2]] = True
    return rng.normal(size=(6, d)), relevant


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("C", [0.1, 3.0, 100.0])
@pytest.mark.parametrize("seed", range(3))
def test_known_optimum(name, C, seed):
    X, relevant = small(seed)
    centre = 0.5 * np.random.default_rng(seed).normal(size=3) if seed == 2 else np.zeros(3)
    result = make_solver(name, ListsObjective(X, relevant), C, tol=1e-9, max_iter=500, centre=centre[:, None]).run()
    expected = optimum(*all_planes(X, relevant), C, centre)
    assert result.status[0] == "converged"
    assert result.objective[0] == pytest.approx(expected, rel=1e-6)
    assert result.dual_objective[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("C", [1.0, 30.0, 1e3, 1e5])
def test_certificate(name, C):
    X, labels = random_problem(1, n=80, d=10)
    objective = ListsObjective(X, labels)
    solver = make_solver(name, objective, C, tol=1e-4, max_iter=2000)
    result = solver.run()
    assert result.status[0] == "converged"
    assert 0 <= result.gap[0] <= 1e-4
    history = result.history
    assert (np.diff(history["primal"][0]) <= 0).all()
    assert (np.diff(history["dual"][0]) >= 0).all()
    assert history["gap"][0, -1] == result.gap[0]
    # The value is that of the point returned, not of some point on the way.
    assert result.objective[0] == pytest.approx(primal(objective, C, result.coef[:, 0]), rel=1e-9)
    # Every plane is a lower bound on J.
    planes = solver.planes()[0]
    rng = np.random.default_rng(0)
    for w in [result.coef[:, 0], *rng.normal(size=(20, 10))]:
        J = primal(objective, 1.0, w) - 0.5 * w @ w
        assert np.max(planes.offsets + planes.slopes @ w) <= J + 1e-9


def test_passes_are_those_of_the_objective():
    X, labels = random_problem(0, n=80, d=10)
    for name in EXACT:
        objective = ListsObjective(X, labels)
        result = make_solver(name, objective, 100.0).run()
        assert result.n_passes == objective.passes
        assert result.history["passes"][0, -1] == objective.passes


def test_bundle_needs_fewer_passes_than_cutting_planes():
    X, labels = random_problem(3, n=400, d=40, noise=3.0)
    passes = {}
    for name in EXACT:
        passes[name] = make_solver(name, ListsObjective(X, labels), 100.0).run().n_passes
    assert passes["bundle"] < 0.6 * passes["cutting-plane"]
    assert passes["rounds"] < 0.4 * passes["cutting-plane"]


def test_opening_by_quasi_newton_steps():
    X, labels = random_problem(4, n=600, d=6, noise=3.0)
    opened = make_solver("quasi-newton", ListsObjective(X, labels), 50.0)
    rounds = make_solver("rounds", ListsObjective(X, labels), 50.0).run()
    result = opened.run()
    # Overlapping classes, many samples: J is nearly smooth, and the rounds are not needed.
    assert opened._span is None
    assert result.status[0] == "converged"
    assert result.objective[0] == pytest.approx(rounds.objective[0], rel=2e-3)
    # Twelve samples with twelve features: J has kinks, the opening gives up, the rounds end it.
    X, labels = random_problem(0, n=12, d=12)
    closed = make_solver("quasi-newton", ListsObjective(X, labels), 1e3, tol=1e-8)
    assert closed.run().status[0] == "converged"
    assert closed._span is not None


@pytest.mark.parametrize(("n_problems", "opens"), [(1, False), (3, False), (4, True)])
def test_problems_that_share_passes_open_with_quasi_newton_steps(n_problems, opens):
    X, labels = random_problem(5, n=40, d=40)
    columns = np.stack([np.roll(labels, k) for k in range(n_problems)], axis=1)
    solver = make_solver("bundle", ListsObjective(X, columns), 10.0)
    solver.step()
    assert (solver._descent is not None) == opens
    assert list(solver.run().status) == ["converged"] * n_problems


def test_problems_wait_for_each_other_in_the_opening():
    X, labels = random_problem(1, n=80, d=10)
    columns = np.stack([labels, np.roll(labels, 7), np.roll(labels, 31)], axis=1)
    C = np.array([1e-3, 30.0, 1e4])
    objective = ListsObjective(X, columns)
    joint = make_solver("quasi-newton", objective, C, tol=1e-6).run()
    assert list(joint.status) == ["converged"] * 3
    for k in range(3):
        alone = make_solver("rounds", ListsObjective(X, columns[:, k]), C[k], tol=1e-6).run()
        assert joint.objective[k] == pytest.approx(alone.objective[0], rel=3e-6)


def test_rounds_go_on_where_nobody_is_left_in_the_opening():
    X, labels = random_problem(1, n=80, d=10)
    columns = np.stack([labels, np.roll(labels, 7)], axis=1)
    solver = make_solver("quasi-newton", ListsObjective(X, columns), 30.0, tol=1e-6)
    solver.step()
    # As when the gradients themselves lead no further; before, a step of nobody was an error.
    solver._descent.keep(np.zeros(2, dtype=bool))
    assert list(solver.run().status) == ["converged"] * 2


@pytest.mark.parametrize("centred", [False, True])
def test_all_solvers_meet(centred):
    X, labels = random_problem(2, n=60, d=5)
    lists = np.array_split(np.random.default_rng(0).permutation(60), 6)
    centre = np.full((5, 1), 0.3) if centred else None
    values = {}
    for name in VARIANTS:
        objective = QueryObjective(X, labels, lists)
        result = make_solver(name, objective, 2.0, tol=1e-3, max_iter=3000, centre=centre, random_state=0).run()
        assert result.status[0] == "converged", (name, result.gap)
        assert (np.diff(result.history["dual"][0]) >= 0).all()
        assert (np.diff(result.history["primal"][0]) <= 0).all()
        w0 = 0.0 if centre is None else 0.3
        assert result.objective[0] == pytest.approx(primal(objective, 2.0, result.coef[:, 0], centre=w0), rel=1e-9)
        values[name] = result.objective[0]
    best = min(values.values())
    assert max(values.values()) <= best * (1 + 1e-3)


@pytest.mark.parametrize("name", EXACT)
def test_lockstep_is_as_good_as_separate_fits(name):
    X, labels = random_problem(4, n=60, d=6, K=3)
    C = np.array([1.0, 30.0, 300.0])
    joint_objective = ListsObjective(X, labels)
    joint = make_solver(name, joint_objective, C, tol=1e-5).run()
    alone_passes = 0
    for k in range(3):
        objective = ListsObjective(X, labels[:, k])
        alone = make_solver(name, objective, C[k], tol=1e-5).run()
        alone_passes += objective.passes
        assert joint.objective[k] == pytest.approx(alone.objective[0], rel=3e-5)
        assert joint.gap[k] <= 1e-5
    assert len(set(joint.n_iter)) > 1, "problems that have converged are dropped"
    assert joint_objective.passes < alone_passes
    assert joint.history["gap"].shape == (3, joint.n_iter.max())


def test_warm_planes_save_passes():
    X, labels = random_problem(5, n=100, d=10)
    solver = make_solver("bundle", ListsObjective(X, labels), 100.0)
    first, planes = solver.run(), solver.planes()
    cold = ListsObjective(X, labels)
    make_solver("bundle", cold, 150.0).run()
    warm = ListsObjective(X, labels)
    result = make_solver("bundle", warm, 150.0, planes=planes, start=first.coef).run()
    assert result.status[0] == "converged"
    assert warm.passes < 0.7 * cold.passes
    again = ListsObjective(X, labels)
    make_solver("bundle", again, 100.0, planes=planes, start=first.coef).run()
    assert again.passes <= 2


@pytest.mark.parametrize("name", list(VARIANTS))
def test_interrupt_leaves_a_usable_result(name):
    X, labels = random_problem(6, n=60, d=6, K=2)
    objective = QueryObjective(X, labels)
    evaluate, countdown = objective.evaluate, count(1, 0)

    def interrupted(*args, **options):
        if next(countdown) == 0:
            raise KeyboardInterrupt
        return evaluate(*args, **options)

    objective.evaluate = interrupted
    solver = make_solver(name, objective, 50.0, tol=1e-12)
    for _ in range(3):
        solver.step()
    before = solver.result()
    countdown = count(1, -1)
    with pytest.raises(KeyboardInterrupt):
        solver.run()
    objective.evaluate = evaluate
    after = solver.result(status="interrupted")
    assert (after.status == "interrupted").all()
    assert (after.objective <= before.objective).all()
    for k in range(2):
        assert after.objective[k] == pytest.approx(primal(objective, 50.0, after.coef[:, k], k), rel=1e-9)
    # And it goes on from there.
    solver.step()
    assert (solver.result().objective <= after.objective).all()


def test_interrupt_before_the_first_evaluation():
    X, labels = random_problem(6)
    result = make_solver("bundle", ListsObjective(X, labels), 1.0).result(status="interrupted")
    assert result.coef.shape == (6, 1)
    assert np.isinf(result.gap[0])


@pytest.mark.parametrize("name", list(VARIANTS))
def test_max_iter_is_a_status_with_the_gap(name):
    X, labels = random_problem(7, n=80, d=10)
    result = make_solver(name, ListsObjective(X, labels), 1e4, tol=1e-9, max_iter=3).run()
    assert result.status[0] == "max_iter"
    assert result.n_iter[0] == 3
    assert 1e-9 < result.gap[0] <= 1
    assert "max_iter" in result.message


def test_rounding_ends_a_fit_that_asks_for_too_much():
    X, labels = random_problem(8, n=30, d=3)
    result = make_solver("bundle", ListsObjective(X, labels), 10.0, tol=1e-30, max_iter=5000).run()
    assert result.status[0] in ("stalled", "converged")
    assert result.gap[0] < 1e-9


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("C", [1e-8, 1e8])
def test_extreme_C(name, C):
    X, labels = random_problem(9, n=50, d=4)
    result = make_solver(name, ListsObjective(X, labels), C, max_iter=3000).run()
    assert result.status[0] == "converged"


@pytest.mark.parametrize("name", list(VARIANTS))
def test_no_features(name):
    labels = np.arange(10) < 3
    result = make_solver(name, ListsObjective(np.zeros((10, 0)), labels), 2.0, max_iter=50).run()
    assert result.coef.shape == (0, 1)
    assert result.status[0] == "converged"


@pytest.mark.parametrize("name", list(VARIANTS))
def test_features_without_information(name):
    labels = np.arange(10) < 3
    result = make_solver(name, ListsObjective(np.ones((10, 2)), labels), 2.0, max_iter=50).run()
    assert result.status[0] == "converged"
    assert result.coef == pytest.approx(np.zeros((2, 1)), abs=1e-6)


@pytest.mark.parametrize("name", list(VARIANTS))
def test_nothing_to_rank(name):
    X, _ = random_problem(0)
    result = make_solver(name, ListsObjective(X, np.zeros(40, dtype=bool)), 2.0).run()
    assert result.status[0] == "converged"
    assert result.objective[0] == result.dual_objective[0] == result.gap[0] == 0


def test_callback_sees_every_step_and_may_stop():
    X, labels = random_problem(1)
    seen = []

    def callback(solver):
        seen.append(solver.report())
        return len(seen) == 2

    result = make_solver("bundle", ListsObjective(X, labels), 100.0, tol=1e-9).run(callback)
    assert [report["iteration"] for report in seen] == [1, 2]
    assert result.status[0] == "running"


def test_what_is_displayed_of_several_problems():
    X, _ = random_problem(1)
    labels = np.stack([np.arange(len(X)) % step == 0 for step in (2, 3, 5)], axis=1)
    solver = make_solver("cutting-plane", ListsObjective(X, labels), np.array([1.0, 50.0, 200.0]), problems=[0, 2])
    for _ in range(3):
        solver.step()
    shown = solver.report()
    assert shown["primal"] == solver.primal[0] + solver.primal[2]
    assert shown["dual"] == solver.dual[0] + solver.dual[2]
    assert shown["gap"] == max(solver.gaps()[[0, 2]])


def test_unknown_solver():
    X, labels = random_problem(1)
    with pytest.raises(ValueError, match="'newton'"):
        make_solver("newton", ListsObjective(X, labels), 1.0)


@pytest.mark.parametrize("name", list(VARIANTS))
def test_a_start_is_never_lost(name):
    X, labels = random_problem(11, n=60, d=5)
    best = make_solver("bundle", ListsObjective(X, labels), 100.0, tol=1e-4, max_iter=2000).run()
    solver = make_solver(name, ListsObjective(X, labels), 100.0, tol=1e-6, max_iter=1, start=best.coef)
    assert solver.run().objective[0] <= best.objective[0] * (1 + 1e-12)


def test_an_interrupt_finds_the_planes_whole():
    """Between any two lines of `add_planes` and `prune`, `planes` gives the old planes or the new ones."""
    rng = np.random.default_rng(12)
    seen = set()
    for stop in range(1, 60):
        master = Master(1.0, np.zeros(4))
        for _ in range(30):
            master.add_planes(rng.random(1), rng.normal(size=(1, 4)))
            master.solve()
        lines = 0

        def trace(frame, event, argument, stop=stop):
            nonlocal lines
            if frame.f_code.co_name not in ("add_planes", "prune"):
                return None
            lines += event == "line"
            if lines == stop:
                raise KeyboardInterrupt
            return trace

        pairs = {float(b): tuple(g) for b, g in zip(master.planes().offsets, master.planes().slopes)}
        sys.settrace(trace)
        try:
            master.add_planes(np.array([0.5]), np.ones((1, 4)))
            master.prune(3)
        except KeyboardInterrupt:
            seen.add(stop)
        finally:
            sys.settrace(None)
        planes = master.planes()
        pairs[0.5] = (1.0,) * 4
        assert all(pairs[float(b)] == tuple(g) for b, g in zip(planes.offsets, planes.slopes))
    assert len(seen) > 10


def test_features_beyond_all_bounds_are_refused():
    X, labels = random_problem(13, n=30, d=3)
    with pytest.raises(ValueError, match="overflow"):
        make_solver("rounds", ListsObjective(1e160 * X, labels), 1.0).run()


class _Idle(Solver):
    """Offers the same value and the same bound at every step."""

    value, lower = 1.0, 0.5

    def _advance(self, active):
        for k in active:
            self.offer(k, self.value, np.ones(self.centre.shape[0]))
            self.bound(k, self.lower)


def test_what_moves_nothing_is_stalled():
    X, labels = random_problem(0)
    result = _Idle(ListsObjective(X, labels), 1.0).run()
    assert result.status[0] == "stalled"
    # Not at the first step without progress, nor long after.
    assert 2 < result.n_iter[0] < 30
    assert result.gap[0] == 0.5
    assert "rounding" in result.message


def test_a_bound_is_kept_as_it_is():
    """What rounding has to do with it is for the certificate to say."""
    X, labels = random_problem(0)
    solver = _Idle(ListsObjective(X, labels), 1.0)
    solver.lower = 1.0 + 1e-12
    result = solver.run()
    assert (result.dual_objective[0], result.objective[0]) == (1.0 + 1e-12, 1.0)
    assert result.status[0] == "converged"
    assert result.gap[0] == pytest.approx(-1e-12, rel=1e-3)


def assert_products_are_right(master):
    vectors, gram = master._cuts.vectors[: len(master)], master._cuts.gram[: len(master), : len(master)]
    np.testing.assert_allclose(gram, vectors @ vectors.T, rtol=1e-12)


def test_pruning_leaves_each_cut_in_one_piece():
    """The last cuts move to the places of those that are dropped: with offset, vector, products and multiplier."""
    rng = np.random.default_rng(3)
    for n_planes in (7, 40, 200):
        master = Master(50.0, rng.normal(size=5))
        master.add_planes(rng.random(n_planes), rng.normal(size=(n_planes, 5)))
        for _ in range(5):
            master.solve()
        value, point = master.dual_value, master.point
        carrying = {float(b): g for b, g in zip(master.planes(carrying=True).offsets, master.planes(True).slopes)}
        before = {float(b): g for b, g in zip(master.planes().offsets, master.planes().slopes)}
        multipliers = dict(zip(master.planes().offsets.tolist(), master.multipliers[1:].tolist()))
        master.prune(3)
        kept = master.planes()
        assert set(carrying) == set(kept.offsets.tolist())
        assert 1 < len(master) == 1 + len(carrying) < 1 + n_planes
        np.testing.assert_array_equal(kept.slopes, [before[float(b)] for b in kept.offsets])
        np.testing.assert_array_equal(master.multipliers[1:], [multipliers[float(b)] for b in kept.offsets])
        assert_products_are_right(master)
        master.solve()
        assert master.dual_value == pytest.approx(value, rel=1e-9)
        np.testing.assert_allclose(master.point, point, rtol=1e-9)
        # And the places left free are taken again.
        master.add_planes(np.array([0.25]), np.ones((1, 5)))
        assert_products_are_right(master)
        assert master.planes().offsets[-1] == 0.25


def test_the_plane_0_is_never_dropped():
    """Without it the bound would not hold where J is 0; and `planes` leaves out the first cut, whatever that is."""
    master = Master(1.0, np.zeros(2))
    master.add_planes(np.array([0.9, 0.5]), np.array([[0.1, 0.0], [0.0, 0.1]]))
    for _ in range(5):
        master.solve()
    assert master.multipliers[0] == 0.0
    before = master.planes()
    master.prune(3)
    assert len(master) == 2
    np.testing.assert_array_equal(master.planes().offsets, before.offsets[:1])
    # Far along a direction in which the plane falls, J is bounded by 0 again.
    far = Master(1e4, np.zeros(2))
    far.add_planes(np.array([0.9]), np.array([[0.1, 0.0]]))
    for _ in range(5):
        far.solve()
    far.prune(3)
    far.solve()
    assert far.dual_value >= 0.0


def test_a_bound_that_hardly_rises_calls_for_a_cut_at_the_minimiser():
    X, labels = random_problem(14, n=60, d=5)
    solver = make_solver("rounds", ListsObjective(X, labels), 10.0, tol=1e-9)
    solver.step()
    plane = solver.masters[0].planes()
    solver._raise(0, plane.offsets[:1], plane.slopes[:1])
    assert solver._cut_at_minimiser[0]
    # Asked for, the next round cuts there: J is known at the point where the model was least.
    minimiser = solver.masters[0].point.copy()
    solver.step()
    planes = solver.masters[0].planes()
    value = primal(solver.objective, 1.0, minimiser) - 0.5 * minimiser @ minimiser
    assert np.max(planes.offsets + planes.slopes @ minimiser) == pytest.approx(value, rel=1e-9)
    solver._raise(0, np.array([2.0 * solver.best[0][0]]), np.zeros((1, 5)))
    assert not solver._cut_at_minimiser[0]


def test_planes_of_problems_that_are_left_out_are_handed_on():
    X, labels = random_problem(6, n=60, d=6, K=3)
    first = make_solver("bundle", ListsObjective(X, labels), 10.0)
    coef, planes = first.run().coef, first.planes()
    again = make_solver("bundle", ListsObjective(X, labels), 50.0, planes=planes, start=coef, problems=np.array([1]))
    again.run()
    after = again.planes()
    assert after[0] is planes[0]
    assert after[2] is planes[2]
    assert after[1].offsets.size > 0
    assert len(again.masters[0]) == len(again.masters[2]) == 1


@pytest.mark.parametrize("name", ["bundle", "rounds"])
def test_planes_that_carry_nothing_for_long_are_dropped(name):
    X, labels = random_problem(1, n=200, d=20)
    solver = make_solver(name, ListsObjective(X, labels), 1e4, tol=1e-6)
    n_added, add = 0, Master.add_planes

    def adding(self, offsets, slopes, *known):
        nonlocal n_added
        n_added += offsets.size if self is solver.masters[0] else 0
        add(self, offsets, slopes, *known)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Master, "add_planes", adding)
        result = solver.run()
    assert result.status[0] == "converged"
    assert len(solver.masters[0]) < 0.7 * n_added
