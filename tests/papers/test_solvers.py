"""Frank-Wolfe and subgradients: what they are called, known optima, bounds that hold, and an honest end."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from rankhinge import RankSVC, SVMRanker
from rankhinge.features import feature_map
from rankhinge.losses import get_loss
from rankhinge.objective import RankingObjective
from rankhinge.problems import one_list
from tests.solvers.helpers import ListsObjective, QueryObjective, all_planes, ap_hinge, make_solver, random_problem
from tests.solvers.test_solvers import optimum, primal, small
from tests.svm.helpers import binary, graded

NAMES = ["frank-wolfe", "subgradient"]


def literal(name, X, relevant, C, n_steps):
    """Iterates and dual values by the formulas of the papers, for one list and ``w0 = 0``."""
    offset, slope, w = 0.0, np.zeros(X.shape[1]), np.zeros(X.shape[1])
    points, duals = [], []
    for t in range(1, n_steps + 1):
        _, b, u = ap_hinge(X @ w, relevant)
        g = X.T @ u
        if name == "frank-wolfe":
            # The dual along the way, D(step) = C l - |C g|^2 / 2, is a parabola.
            ahead = C * (g - slope)
            step = np.clip((C * (b - offset) - ahead @ (C * slope)) / (ahead @ ahead), 0.0, 1.0)
        else:
            step = 2.0 / (t + 1.0)
        offset, slope = offset + step * (b - offset), slope + step * (g - slope)
        w = -C * slope
        points.append(w)
        duals.append(C * offset - 0.5 * w @ w)
    return np.array(points), np.array(duals)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("C", [0.5, 20.0])
def test_one_list_is_stepped_as_the_papers_say(name, C):
    X, labels = random_problem(1, n=50, d=6)
    solver = make_solver(name, ListsObjective(X, labels), C, tol=1e-12)
    points, duals = literal(name, X, labels[:, 0], C, 15)
    for point, dual in zip(points, np.maximum.accumulate(duals), strict=True):
        solver.step()
        np.testing.assert_allclose(solver.iterates[:, 0], point, rtol=1e-9, atol=1e-12)
        assert solver.dual[0] == pytest.approx(max(dual, 0.0), rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_one_list_is_not_solved_by_cutting_planes(name):
    X, labels = random_problem(1, n=50, d=6)
    objectives = ListsObjective(X, labels), ListsObjective(X, labels)
    mine, planes = (make_solver(n, o, 10.0, tol=1e-12) for n, o in zip((name, "cutting-plane"), objectives))
    for _ in range(6):
        mine.step()
        planes.step()
    assert not np.allclose(mine.result().coef, planes.result().coef, rtol=1e-3)
    # Neither needs more passes for it.
    assert objectives[0].passes <= objectives[1].passes + 1


@pytest.mark.parametrize("C", [1e-3, 1 / 32, 0.5, 1e3])
def test_two_samples_by_hand(C):
    """``J = max(0, 1/2 - 4 w)``, so that ``w = min(4 C, 1/8)``: one line search finds it."""
    w = min(4 * C, 1 / 8)
    least = 0.5 * w**2 + C * max(0.0, 0.5 - 4 * w)
    objective = ListsObjective(np.array([[1.0], [-1.0]]), np.array([True, False]))
    found = make_solver("frank-wolfe", objective, C, tol=1e-9).run()
    assert found.status[0] == "converged"
    assert found.n_iter[0] <= 3
    assert found.coef[0, 0] == pytest.approx(w, rel=1e-9)
    assert found.objective[0] == pytest.approx(least, rel=1e-9)
    found = make_solver("subgradient", objective, C, tol=1e-2, max_iter=5000).run()
    assert found.dual_objective[0] <= least * (1 + 1e-12)
    assert least <= found.objective[0] * (1 + 1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("C", [0.1, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_known_optimum(name, C, seed):
    X, relevant = small(seed)
    centre = 0.5 * np.random.default_rng(seed).normal(size=3) if seed == 2 else np.zeros(3)
    expected = optimum(*all_planes(X, relevant), C, centre)
    result = make_solver(name, ListsObjective(X, relevant), C, max_iter=20000, centre=centre[:, None]).run()
    assert result.status[0] == "converged"
    assert expected * (1 - 1e-9) <= result.objective[0] <= expected * (1 + 1e-3)
    assert expected * (1 - 2e-3) <= result.dual_objective[0] <= expected * (1 + 1e-9)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("C", "n_lists"), [(1.0, 1), (10.0, 1), (1e3, 1), (1.0, 6), (10.0, 6), (1e3, 6)])
def test_bounds_hold_at_every_step(name, C, n_lists):
    """Whatever `tol` asks for: the bundle solver's optimum lies between the bounds, which end as the status says."""
    X, labels = random_problem(2, n=60, d=5)
    lists = np.array_split(np.random.default_rng(0).permutation(60), n_lists)
    best = make_solver("bundle", QueryObjective(X, labels, lists), C, tol=1e-8, max_iter=3000).run()
    objective = QueryObjective(X, labels, lists)
    result = make_solver(name, objective, C, max_iter=60, random_state=0).run()
    assert (np.diff(result.history["dual"][0]) >= 0).all()
    assert (np.diff(result.history["primal"][0]) <= 0).all()
    assert (result.history["dual"][0] <= best.objective[0] * (1 + 1e-12)).all()
    assert (result.history["primal"][0] >= best.dual_objective[0] * (1 - 1e-12)).all()
    assert result.status[0] == ("converged" if result.gap[0] <= 1e-3 else "max_iter")
    assert result.objective[0] == pytest.approx(primal(objective, C, result.coef[:, 0]), rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_the_gap_falls_as_one_over_t(name):
    """On one list the gap after t steps is at most ``2 (C r)^2 / t`` times a constant, with slopes of length r."""
    X, labels = random_problem(3, n=60, d=5)
    C = 5.0
    longest = 4.0 * np.linalg.norm(X, axis=1).max()
    solver = make_solver(name, ListsObjective(X, labels), C, tol=0.0)
    for t in range(1, 200):
        solver.step()
        assert solver.primal[0] - solver.dual[0] <= 8.0 * (C * longest) ** 2 / t


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("loss", ["ap", "ndcg"])
@pytest.mark.parametrize("kind", ["one list", "lists"])
def test_fits_meet_the_default_solver(name, loss, kind):
    if kind == "one list":
        (X, y), given, machine = binary(), {}, RankSVC
    else:
        X, y, qid = graded(n_queries=6, n_grades=2)
        given, machine = {"qid": qid}, SVMRanker
    options = {"loss": loss, "bound": "convex", "C": 5.0, "max_iter": 5000}
    best = machine(**options | {"tol": 1e-6}).fit(X, y, **given)
    model = machine(solver=name, **options).fit(X, y, **given)
    assert model.status_ == "converged"
    assert best.dual_objective_ <= model.objective_ <= best.objective_ * (1 + 1e-3)
    assert model.dual_objective_ <= best.objective_


@pytest.mark.parametrize("name", NAMES)
def test_problems_of_one_list_share_passes(name):
    X, labels = random_problem(4, n=60, d=6, K=3)
    objective = ListsObjective(X, labels)
    joint = make_solver(name, objective, np.array([1.0, 2.0, 3.0]), max_iter=3000).run()
    assert list(joint.status) == ["converged"] * 3
    assert joint.n_passes == objective.passes <= 2 * joint.n_iter.max()
    for k in range(3):
        alone = make_solver(name, ListsObjective(X, labels[:, k]), k + 1.0, max_iter=3000).run()
        assert joint.objective[k] == pytest.approx(alone.objective[0], rel=2e-3)


def test_frank_wolfe_begins_with_the_planes_of_another_fit():
    X, labels = random_problem(5, n=60, d=6)
    first = make_solver("bundle", ListsObjective(X, labels), 50.0, tol=1e-6)
    least = first.run().objective[0]
    again = make_solver("frank-wolfe", ListsObjective(X, labels), 50.0, planes=first.planes())
    assert again.dual[0] == pytest.approx(least, rel=1e-5)
    assert again.run().n_iter[0] <= 3
    # And hands on a single plane, which proves as much.
    last = make_solver("frank-wolfe", ListsObjective(X, labels), 50.0, planes=again.planes())
    assert again.planes()[0].offsets.size == 1
    assert last.dual[0] == pytest.approx(again.dual[0], rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_an_order_of_blocks_repeats_for_a_seed(name):
    X, labels = random_problem(2, n=40, d=4)
    lists = np.array_split(np.arange(40), 4)

    def fit(seed):
        return make_solver(name, QueryObjective(X, labels, lists), 1.0, max_iter=5, tol=1e-9, random_state=seed).run()

    assert np.array_equal(fit(1).coef, fit(1).coef)
    assert not np.array_equal(fit(1).coef, fit(2).coef)


@pytest.mark.parametrize(("name", "near"), [("frank-wolfe", 0.01), ("subgradient", 0.04)])
@pytest.mark.parametrize("centred", [False, True])
def test_averages_of_sweeps_come_near_the_optimum(name, near, centred):
    X, labels = random_problem(2, n=60, d=5)
    lists = np.array_split(np.random.default_rng(0).permutation(60), 6)
    centre = np.full((5, 1), 0.3 if centred else 0.0)
    objective = QueryObjective(X, labels, lists)
    best = make_solver("bundle", objective, 10.0, tol=1e-6, max_iter=2000, centre=centre).run().objective[0]
    solver = make_solver(name, objective, 10.0, tol=1e-9, centre=centre, random_state=0)
    for _ in range(50):
        solver.step()
    assert best <= primal(objective, 10.0, solver.averages[:, 0], centre=centre[:, 0]) <= (1 + near) * best
    assert primal(objective, 10.0, centre[:, 0], centre=centre[:, 0]) > 2 * best


@pytest.mark.parametrize("name", NAMES)
def test_a_single_list_does_not_copy_X(name):
    X = sparse.random(500, 4000, density=1e-3, format="csr", random_state=0)
    objective = RankingObjective(feature_map(X), [one_list(np.arange(500) % 7 == 0)], get_loss("ap"))
    solver = make_solver(name, objective, 1.0, tol=0.0)
    for _ in range(2):
        solver.step()
    tracemalloc.start()
    solver.step()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.1 * 8 * 500 * 4000


def test_frank_wolfe_with_many_lists_begins_below_the_planes_that_it_is_given_and_goes_on(tmp_path):
    X, y, qid = graded(n_queries=8)
    options = {"solver": "frank-wolfe", "bound": "convex", "tol": 1e-5, "C": 100.0}
    known = SVMRanker(max_iter=150, checkpoint=tmp_path / "fit", **options)
    with pytest.warns(ConvergenceWarning):
        known.fit(X, y, qid=qid)
    whole = SVMRanker(max_iter=300, **options)
    resumed = SVMRanker(max_iter=300, checkpoint=tmp_path / "fit", **options)
    with pytest.warns(ConvergenceWarning):
        resumed.fit(X, y, qid=qid)
    with pytest.warns(ConvergenceWarning):
        whole.fit(X, y, qid=qid)
    # What is known is a single plane, not one of each list: that the bound does not rise at first is no stalling.
    assert (known.status_, resumed.status_) == ("max_iter", "max_iter")
    assert resumed.gap_ < known.gap_
    assert resumed.gap_ <= 1.5 * whole.gap_


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n_queries", [1, 4])
def test_features_whose_squares_overflow_are_refused(name, n_queries):
    X, y, qid = graded(n_queries=n_queries)
    with pytest.raises(ValueError, match="features are so large"):
        SVMRanker(solver=name, bound="convex", C=1e8, max_iter=5).fit(1e155 * X, y, qid=qid)
