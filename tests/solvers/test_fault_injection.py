"""What a solver computes is spoilt on purpose: no fit may call itself converged with a gap that is not true.

A fault changes one kind of number that passes between solver and objective, by a part of it, in all steps or in a
single call. It ends with the steps: what comes after them, the last word on the coefficients, is computed as ever. A
fault that also spoils the last word, in the same way, is beyond what the code itself can notice.

There is no list of faults that may pass: none of those tried does, in any solver.
"""

from __future__ import annotations

import copy
import itertools
import warnings

import numpy as np
import pytest

from rankhinge import RankSVC, SVMRanker, rank_svm_path
from rankhinge.latent import Bags, LatentRankSVC
from rankhinge.latent.objective import LatentObjective
from rankhinge.objective import Handles, RankingObjective
from rankhinge.papers.solvers.lists import ListBlocks
from rankhinge.solvers import Bundle, Descent, Tight
from rankhinge.solvers.base import Solver
from rankhinge.svm import begin as begin_module
from rankhinge.svm import fit as fit_module
from tests import judge
from tests.svm.helpers import binary, graded

SOLVERS = ["bundle", "quasi-newton", "cutting-plane", "frank-wolfe", "subgradient"]
KINDS = ["offsets", "slopes", "coefficients", "scores", "values"]
FACTORS = [1e-3, 0.5, 0.999, 1.001, 2.0]
# Where solvers that need more iterations converge.
SLOWER = {"binary": {"C": 5.0, "max_iter": 180}, "lists": {"C": 2.0, "max_iter": 90}}
# All calls, or one: the first, at w = 0 mostly, and later ones.
CALLS = [None, 0, 1, 4]


class Fault:
    """Numbers of one kind times a factor, while a solver makes steps: in each call, or in the `only`-th."""

    def __init__(self, kind, factor, only=None):
        self.kind, self.factor, self.only, self.n_calls, self.depth = kind, factor, only, 0, 0

    def spoil(self, kind, numbers):
        if kind != self.kind or self.depth == 0 or numbers is None:
            return numbers
        self.n_calls += 1
        if self.only is not None and self.n_calls - 1 != self.only:
            return numbers
        if hasattr(numbers, "values"):
            return numbers._replace(values=self.factor * numbers.values)
        return self.factor * numbers

    def install(self, monkeypatch):
        for solver in (Solver, Tight):
            monkeypatch.setattr(solver, "step", self.during(solver.step))
        for objective in (Handles, RankingObjective, LatentObjective):
            for name in ("evaluate", "evaluate_tight", "evaluate_against", "reference"):
                if name in vars(objective):
                    monkeypatch.setattr(objective, name, self.spoilt_evaluation(vars(objective)[name]))
            if "adjoint" in vars(objective):
                monkeypatch.setattr(objective, "adjoint", self.spoilt("slopes", objective.adjoint))
        monkeypatch.setattr(Handles, "score", self.spoilt("scores", Handles.score))
        block_plane = ListBlocks.block_plane

        def spoilt_plane(blocks, *arguments):
            offset, slope, value = block_plane(blocks, *arguments)
            return self.spoil("offsets", offset), self.spoil("slopes", slope), self.spoil("values", value)

        monkeypatch.setattr(ListBlocks, "block_plane", spoilt_plane)

    def install_between(self, monkeypatch):
        """Spoil what is handed on from one part of a tight fit to the next, in place of what objectives say."""
        unit_of_C, known, begin = begin_module.unit_of_C, Descent.known, Bundle.__init__

        def begun(solver, *arguments, start_scores=None, **options):
            begin(solver, *arguments, start_scores=self.spoil("scores", start_scores), **options)

        def first(*arguments):
            unit, found = unit_of_C(*arguments)
            return unit, self.spoilt_knowledge(found)

        self.depth = 1
        monkeypatch.setattr(begin_module, "unit_of_C", first)
        monkeypatch.setattr(Descent, "known", lambda *arguments: self.spoilt_knowledge(known(*arguments)))
        monkeypatch.setattr(Bundle, "__init__", begun)

    def spoilt_knowledge(self, known):
        if known is None:
            return None
        kinds = {"values": "value", "offsets": "loss", "slopes": "slopes", "scores": "scores", "weights": "weights"}
        name = kinds[self.kind]
        return known._replace(**{name: self.spoil(self.kind, getattr(known, name))})

    def during(self, step):
        def spoilt_step(solver):
            self.depth += 1
            try:
                step(solver)
            finally:
                self.depth -= 1

        return spoilt_step

    def spoilt(self, kind, function):
        return lambda *arguments: self.spoil(kind, function(*arguments))

    def spoilt_evaluation(self, evaluate):
        def spoilt(*arguments, **options):
            found = evaluate(*arguments, **options)
            return found._replace(
                value=self.spoil("values", found.value),
                loss=self.spoil("offsets", found.loss),
                coefficients=self.spoil("coefficients", found.coefficients),
            )

        return spoilt


def outcome(machine, X, y, bags=None, **given):
    """How a fit ended: ``raised``, ``open`` (it does not call itself converged), ``true`` or ``false``."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = machine.fit(X if bags is None else Bags(X, offsets=bags), y, **given)
    except (RuntimeError, ValueError, AssertionError, np.linalg.LinAlgError):
        return "raised"
    models = model if isinstance(model, list) else [model]
    if any(np.any(np.asarray(model.status_) != "converged") for model in models):
        return "open"
    try:
        for model in models:
            judge.check(model, X, y, bags=bags, **given)
    except judge.Violation as error:
        return f"false: {error}"
    return "true"


def binary_problem(C):
    X, y = binary(n=40)
    return RankSVC(C=C, bound="convex", max_iter=60), X, y, {}


def lists_problem():
    X, y, qid = graded(n_queries=5, size=6)
    return SVMRanker(C=20.0, bound="convex", max_iter=60), X, y, {"qid": qid}


def labels_problem():
    X, y = binary(n=40)
    return RankSVC(C=5.0, bound="convex", max_iter=60), X, np.stack([y, X[:, 0] > 0], axis=1).astype(int), {}


def tight_problem():
    X, y = binary(n=40)
    return RankSVC(bound="tight", max_iter=200), X, y, {}


def tight_labels_problem():
    X, y = binary(n=40)
    return RankSVC(bound="tight", max_iter=200), X, np.stack([y, X[:, 0] > 0], axis=1).astype(int), {}


def far_tight_problem():
    """C is so large that it is approached in stages, each of which goes on from the last."""
    X, y = binary(n=40, noise=2.0)
    return RankSVC(bound="tight", reach=30.0, max_iter=400), X, y, {}


def bags_problem(shrinking):
    X, _ = binary(n=40)
    offsets = np.arange(0, 41, 4)
    machine = LatentRankSVC(C=20.0, max_iter=60, shrinking=shrinking, random_state=0)
    return machine, X, np.arange(10) % 2, {"bags": offsets}


def row_space_problem():
    """Few samples with many features: the solver sees coordinates in the space of the rows."""
    X = np.random.default_rng(0).normal(size=(24, 1100))
    X[:, :20] += np.where(np.arange(24) % 3 == 0, 0.5, 0.0)[:, None]
    return RankSVC(C=0.1, bound="convex", max_iter=60), X, (np.arange(24) % 3 == 0).astype(int), {}


class WarmStart:
    """A machine that has been fitted for another C, each time anew: the fault is in the second fit alone."""

    def __init__(self, machine, C, X, y):
        self.machine = machine.set_params(warm_start=True).fit(X, y).set_params(C=C)

    def fit(self, X, y):
        return copy.deepcopy(self.machine).fit(X, y)


def warm_problem():
    X, y = binary(n=40)
    return WarmStart(RankSVC(C=2.0, bound="convex", max_iter=60), 20.0, X, y), X, y, {}


class Path:
    """`rank_svm_path` as a machine; its models are the values of C."""

    def fit(self, X, y):
        options = {"loss": "ap", "tol": 1e-3, "max_iter": 60}
        return judge.models_of_path(rank_svm_path(X, y, [1.0, 5.0, 20.0], **options), **options)


def path_problem():
    X, y = binary(n=40)
    return Path(), X, y, {}


def false_certificates(monkeypatch, kind, machine, X, y, given, factors=FACTORS, install=Fault.install):
    """The faults of a kind after which a fit calls itself converged, and is wrong; and how often there was a fault."""
    # Else no fault could end as a false certificate.
    assert outcome(machine, X, y, **given) == "true"
    false, n_faults = [], 0
    for factor, only in itertools.product(factors, CALLS):
        fault = Fault(kind, factor, only)
        with monkeypatch.context() as patch:
            install(fault, patch)
            found = outcome(machine, X, y, **given)
        n_faults += fault.n_calls > (only or 0)
        if found.startswith("false"):
            false.append((factor, only, found))
    return false, n_faults


@pytest.mark.parametrize("problem", ["binary", "at a small C", "lists"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_no_false_certificate(monkeypatch, solver, kind, problem):
    machine, X, y, given = lists_problem() if problem == "lists" else binary_problem(20.0 if problem == "binary" else 1)
    machine.set_params(solver=solver, **(SLOWER.get(problem, {}) if solver in ("frank-wolfe", "subgradient") else {}))
    false, n_faults = false_certificates(monkeypatch, kind, machine, X, y, given)
    assert not false
    if n_faults == 0:
        # The stochastic solvers cut lists as a whole.
        assert solver in ("frank-wolfe", "subgradient")
        assert kind == "coefficients"
        assert problem == "lists"


@pytest.mark.parametrize("kind", KINDS)
def test_no_false_certificate_of_groups_in_turn(monkeypatch, kind):
    monkeypatch.setattr(fit_module, "side_by_side", lambda features, K: [np.array([k]) for k in range(K)])
    false, n_faults = false_certificates(monkeypatch, kind, *labels_problem())
    assert not false
    assert n_faults > 0


@pytest.mark.parametrize("problem", [row_space_problem, warm_problem, path_problem])
@pytest.mark.parametrize("kind", KINDS)
def test_no_false_certificate_on_other_ways(monkeypatch, kind, problem):
    false, n_faults = false_certificates(monkeypatch, kind, *problem())
    assert not false
    assert n_faults > 0


@pytest.mark.parametrize("kind", KINDS)
def test_no_false_certificate_of_the_tight_bound(monkeypatch, kind):
    false, n_faults = false_certificates(monkeypatch, kind, *tight_problem())
    assert not false
    assert n_faults > 0


@pytest.mark.parametrize("problem", [tight_problem, tight_labels_problem, far_tight_problem])
@pytest.mark.parametrize("kind", ["offsets", "slopes", "scores", "values", "weights"])
def test_no_false_certificate_of_what_is_handed_on(monkeypatch, kind, problem):
    false, n_faults = false_certificates(monkeypatch, kind, *problem(), install=Fault.install_between)
    assert not false
    assert n_faults > 0


@pytest.mark.parametrize("shrinking", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_no_false_certificate_of_bags(monkeypatch, kind, shrinking):
    false, n_faults = false_certificates(monkeypatch, kind, *bags_problem(shrinking))
    assert not false
    assert n_faults > 0
