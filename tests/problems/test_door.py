"""A container of another kind enters by its own door: nothing looks at it before, and no row is asked for."""

from __future__ import annotations

import numpy as np
import pytest

from rankhinge import ApproximateRankSVC, RankSVC, RankSVCCV, SVMRanker
from rankhinge.features import WeightedColumns, feature_map
from rankhinge.objective import RankingObjective
from rankhinge.objective.variance import variances_within
from rankhinge.problems import door, one_list
from rankhinge.problems.queries import ranking_lists
from tests.svm.helpers import binary, graded

# What an engine must offer: rankhinge.svm.protocol.FitObjective, and no spans, rows or lists.
OFFERED = {
    *("n_samples", "n_features", "n_problems", "n_entries", "width", "slack_used"),
    *("score", "adjoint", "zeros", "along", "select", "join", "evaluate", "dots"),
    *("evaluate_tight", "reference", "evaluate_against"),
    *("counts", "variances", "spread", "largest", "apart", "logistic", "audit", "cut"),
}


class Remote:
    """An objective behind a wall: only what the protocol names can be reached, and handles cannot be read."""

    def __init__(self, objective):
        self._inside = objective

    def __getattr__(self, name):
        if name not in OFFERED:
            raise AttributeError(name)
        value = getattr(self._inside, name)
        if not callable(value):
            return value
        return lambda *a, **k: _sealed(value(*_open(a), **dict(zip(k, _open(k.values()), strict=True))))

    def part(self, problems):
        return Remote(self._inside.part(problems))


class Sealed:
    """A handle that nobody but the objective can read."""

    def __init__(self, handle):
        self.secret = handle


def _open(arguments):
    return [
        a.secret if isinstance(a, Sealed) else [_open([b])[0] for b in a] if isinstance(a, list) else a
        for a in arguments
    ]


def _sealed(found):
    if callable(found):
        return lambda *a: _sealed(found(*_open(a)))
    if not isinstance(found, tuple):
        return found
    if hasattr(found, "problems"):
        return Sealed(found)
    return found._replace(**{n: Sealed(v) for n, v in found._asdict().items() if hasattr(v, "problems")})


class Chunks:
    """Rows in pieces, which nothing can make an array of by accident."""

    def __init__(self, X, n_chunks=3):
        self.pieces = np.array_split(X, n_chunks)

    def __array__(self, *_, **__):
        raise AssertionError("loaded whole")

    def __len__(self):
        raise AssertionError("asked for its length")


class Opened:
    def __init__(self, X, lists, usable, attributes):
        self.X, self.lists, self.usable, self.attributes = X, lists, usable, attributes
        self.n_features, self.feature_names, self.constant = X.shape[1], None, np.zeros(usable.size)

    def variances(self):
        return variances_within(feature_map(self.X), self.lists[0])

    def objective(self, loss, scale):
        X = self.X if scale is None else WeightedColumns(self.X, 1.0 / scale)
        return Remote(RankingObjective(feature_map(X), self.lists, loss))


class InChunks:
    def classes(self, X, y, *, mask, pos_label):
        lists = [one_list(np.asarray(y) == 1)]
        attributes = {"classes_": np.array([0, 1]), "_kind": "binary"}
        return Opened(np.concatenate(X.pieces), lists, np.ones(1, bool), attributes)

    def queries(self, X, y, *, qid, qid_column, query_weight, loss, gains, level_weights):
        lists = ranking_lists(y, qid, loss, gains, level_weights, None)
        attributes = {"n_queries_": lists.n_lists, "n_unusable_queries_": lists.n_unusable}
        return Opened(np.concatenate(X.pieces), [lists], np.ones(1, bool), attributes)

    def each(self, X, function):
        return np.concatenate([function(piece) for piece in X.pieces])


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setattr(door, "_REGISTERED", [])
    door.register(lambda X: isinstance(X, Chunks), InChunks())


@pytest.mark.parametrize("d", [4, 60])
@pytest.mark.parametrize("options", [{"bound": "convex", "C": 10.0}, {"bound": "tight"}, {"init": "convex"}])
def test_classifier(options, d):
    """Also with few samples for each feature, where arrays would have spans."""
    X, y = binary(n=120, d=d)
    near = RankSVC(tol=1e-4, **options).fit(X, y)
    far = RankSVC(tol=1e-4, **options).fit(Chunks(X), y)
    assert far.status_ == near.status_ == "converged"
    if near.get_params()["bound"] == "convex":
        assert max(far.dual_objective_, near.dual_objective_) <= min(far.objective_, near.objective_)
    assert far.score(X, y) == pytest.approx(near.score(X, y), abs=0.01)
    np.testing.assert_array_equal(far.predict(Chunks(X)), far.predict(X))
    np.testing.assert_array_equal(far.decision_function(Chunks(X)), far.decision_function(X))
    assert vars(far).keys() == vars(near).keys()


@pytest.mark.parametrize("bound", ["convex", "tight"])
def test_ranker(bound):
    X, y, qid = graded()
    near, far = (SVMRanker(bound=bound, tol=1e-4).fit(given, y, qid=qid) for given in (X, Chunks(X)))
    assert far.objective_ == pytest.approx(near.objective_, rel=2e-4 if bound == "convex" else 0.1)
    np.testing.assert_array_equal(far.predict(Chunks(X)), far.predict(X))
    assert vars(far).keys() == vars(near).keys()


def test_an_interrupt_keeps_the_best_point(monkeypatch):
    X, y = binary()
    model, original, calls = RankSVC(bound="convex", C=100.0, tol=1e-9), RankingObjective.adjoint, []

    def adjoint(self, coefficients):
        calls.append(None)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return original(self, coefficients)

    monkeypatch.setattr(RankingObjective, "adjoint", adjoint)
    with pytest.raises(KeyboardInterrupt):
        model.fit(Chunks(X), y)
    assert model.status_ == "interrupted"
    assert model.coef_.any()


@pytest.mark.parametrize("machine", [RankSVCCV(), ApproximateRankSVC()])
def test_machines_that_need_arrays_say_so(machine):
    X, y = binary()
    with pytest.raises(TypeError, match=r"Chunks.*pass an array"):
        machine.fit(Chunks(X), y)
