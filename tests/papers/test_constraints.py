"""Hard linear constraints: satisfied, optimal, generated on the fly, contradictions found."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from rankhinge.papers.solvers.constrained import constrained_solver
from rankhinge.papers.solvers.constraints import LinearConstraints
from tests.solvers.helpers import VARIANTS, ListsObjective, all_planes, random_problem
from tests.solvers.helpers import make_solver as make_free_solver
from tests.solvers.test_solvers import EXACT, optimum, primal, small


def make_solver(variant, *arguments, **options):
    return constrained_solver(VARIANTS[variant][0], *arguments, **options)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("C", [0.5, 20.0])
@pytest.mark.parametrize("seed", range(4))
def test_known_optimum(name, C, seed):
    X, relevant = small(seed)
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(8, 3))
    c = A @ rng.normal(size=3) - 0.1
    constraints = LinearConstraints(A, c)
    result = make_solver(name, ListsObjective(X, relevant), C, tol=1e-8, max_iter=500, constraints=constraints).run()
    expected = optimum(*all_planes(X, relevant), C, np.zeros(3), A, c)
    assert result.status[0] == "converged"
    assert (A @ result.coef[:, 0] >= c - 1e-6).all()
    assert result.objective[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("as_sparse", [False, True])
def test_thousands_of_constraints(as_sparse):
    X, labels = random_problem(0, n=80, d=10)
    rng = np.random.default_rng(1)
    A = rng.normal(size=(3000, 10))
    w = rng.normal(size=10)
    A *= np.sign(A @ w)[:, None]
    A = A[A @ w > 0.3]
    c = np.full(len(A), 0.2)
    constraints = LinearConstraints(sparse.csr_array(A) if as_sparse else A, c)
    solver = make_solver("bundle", ListsObjective(X, labels), 10.0, constraints=constraints)
    result = solver.run()
    assert result.status[0] == "converged"
    assert (A @ result.coef[:, 0] >= 0.2 - 1e-6).all()
    assert result.gap[0] <= 1e-3
    assert result.objective[0] == pytest.approx(primal(ListsObjective(X, labels), 10.0, result.coef[:, 0]))
    assert len(solver.masters[0]) < 1000, "only violated constraints enter"


def test_inactive_constraints_change_nothing():
    X, labels = random_problem(0)
    free = make_free_solver("bundle", ListsObjective(X, labels), 5.0, tol=1e-6).run()
    loose = LinearConstraints(np.eye(6), np.full(6, -100.0))
    bound = make_solver("bundle", ListsObjective(X, labels), 5.0, tol=1e-6, constraints=loose).run()
    assert bound.objective == pytest.approx(free.objective, rel=1e-5)


@pytest.mark.parametrize("name", EXACT)
def test_contradiction(name):
    X, labels = random_problem(0)
    A = np.array([[1.0, 0, 0, 0, 0, 0], [-1.0, 0, 0, 0, 0, 0]])
    constraints = LinearConstraints(A, np.array([1.0, 0.0]))
    result = make_solver(name, ListsObjective(X, labels), 5.0, constraints=constraints, max_iter=50).run()
    assert result.status[0] == "infeasible"
    assert np.isinf(result.gap[0])


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("seed", [992, 1689, *range(20)])
def test_contradictions_that_rounding_hides(name, seed):
    """Of twelve random constraints in three dimensions most are contradictory, by a sum that is 0 but for rounding."""
    rng = np.random.default_rng(seed)
    A, X, c = rng.normal(size=(12, 3)), rng.normal(size=(10, 3)), np.ones(12)
    possible = linprog(np.zeros(3), -A, -c, bounds=(None, None)).status == 0
    objective = ListsObjective(X, np.arange(10) < 4)
    result = make_solver(name, objective, 1.0, constraints=LinearConstraints(A, c), max_iter=200).run()
    assert result.status[0] == ("converged" if possible else "infeasible")


@pytest.mark.parametrize("name", EXACT)
def test_multipliers_that_run_away_are_a_contradiction(name):
    """``1.703 a + b + c / 32 = 0``: the programme seems bounded, by multipliers of 1e16."""
    A = np.array([[-0.4, -0.6], [0.7, 1.0], [-0.6, 0.7]])
    X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, 0.0]])
    constraints = LinearConstraints(A, np.ones(3))
    result = make_solver(name, ListsObjective(X, [1, 0, 1, 0]), 10.0, constraints=constraints).run()
    assert result.status[0] == "infeasible"


def test_only_plane_solvers_take_constraints():
    X, labels = random_problem(0)
    with pytest.raises(ValueError, match="'subgradient'"):
        make_solver("subgradient", ListsObjective(X, labels), 1.0, constraints=LinearConstraints(X, X[:, 0]))
