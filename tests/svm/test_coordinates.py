"""Fewer coordinates change nothing of the model: columns without entries, and few samples with many features."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from rankhinge import (
    ApproximateRankSVC,
    RankSVC,
    RankSVCCV,
    SVMRanker,
    SVMRankerCV,
    rank_svm_path,
    structured_hinge,
    tight_hinge,
)
from rankhinge.objective import RankingObjective
from rankhinge.svm import coordinates as coordinates_module
from rankhinge.svm.coordinates import AsGiven, fewer
from tests.svm.helpers import binary, graded, multiclass

WIDTH, PLACES = 40, np.array([3, 4, 17, 39])
FORMATS = {
    "csr_array": sparse.csr_array,
    "csc_array": sparse.csc_array,
    "csr_matrix": sparse.csr_matrix,
    "csc_matrix": sparse.csc_matrix,
}


def hashed(X, make=sparse.csr_array):
    """The columns of X among many that are empty."""
    wide = np.zeros((X.shape[0], WIDTH))
    wide[:, PLACES[: X.shape[1]]] = X
    return make(wide)


def narrow(X):
    """What is left of that: no empty column, entries in the same order."""
    return sparse.csr_array(X)


@pytest.mark.parametrize("make", FORMATS.values(), ids=FORMATS)
def test_entries_are_not_copied(make):
    X = hashed(binary()[0], make)
    found, columns = fewer(X)
    assert type(found) is type(X)
    assert found.shape == (60, 4)
    assert columns.n_features == WIDTH
    np.testing.assert_array_equal(columns.used, PLACES)
    np.testing.assert_array_equal(found.toarray(), X.toarray()[:, PLACES])
    assert np.shares_memory(found.data, X.data)
    coef = np.arange(8.0).reshape(2, 4)
    whole = columns.everywhere(coef)
    assert whole.shape == (2, WIDTH)
    assert whole.sum() == coef.sum()
    np.testing.assert_array_equal(columns.inside(whole), coef)


def test_what_has_few_empty_columns_or_is_dense_stays_as_it_is():
    X = binary()[0]
    few = sparse.csr_array(np.column_stack([X, np.zeros(60)]))
    empty = sparse.csr_array((5, 3))
    for given in (X, np.zeros((5, 3)), few, empty):
        found, columns = fewer(given)
        assert found is given
        assert isinstance(columns, AsGiven)
        coef = np.ones((1, given.shape[1]))
        assert columns.everywhere(coef) is columns.inside(coef) is coef


FITS = {
    "binary": (lambda: RankSVC(C=20.0, bound="convex"), binary),
    "multiclass": (lambda: RankSVC(C=20.0, bound="convex"), multiclass),
    "tight": (lambda: RankSVC(bound="tight"), binary),
    "approximate": (lambda: ApproximateRankSVC(C=20.0), binary),
    "search": (lambda: RankSVCCV(Cs=[1.0, 20.0], random_state=0, bound="convex"), binary),
    "tight search": (lambda: RankSVCCV(bound="tight", random_state=0), multiclass),
    "ranker": (lambda: SVMRanker(C=20.0, bound="convex"), graded),
    "tight ranker": (lambda: SVMRanker(bound="tight"), graded),
    "search for a ranker": (lambda: SVMRankerCV(Cs=[1.0, 20.0], cv=3, random_state=0, bound="convex"), graded),
}


@pytest.mark.parametrize("make", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("name", FITS)
def test_the_model_is_that_of_the_columns_with_entries(name, make):
    new, data = FITS[name]
    X, *rest = data()
    wide, model, judge = hashed(X, make), new(), new()
    model.fit(wide, *rest)
    judge.fit(make(narrow(X)), *rest)
    places = PLACES[: X.shape[1]]
    for attribute in ("coef_", "init_coef_", "binary_coef_"):
        if hasattr(judge, attribute):
            found = np.atleast_2d(getattr(model, attribute))
            assert found.shape[1] == WIDTH
            # How many columns share the variance is a sum, which is rounded in another order.
            expected = np.atleast_2d(getattr(judge, attribute))
            np.testing.assert_allclose(found[:, places], expected, rtol=1e-6 if "tight" in name else 0.0)
            assert np.count_nonzero(found) == np.count_nonzero(found[:, places]) > 0
    assert model.n_features_in_ == WIDTH
    assert model.n_passes_ == judge.n_passes_
    rtol = 1e-6 if "tight" in name else 0.0
    np.testing.assert_allclose(model.objective_, judge.objective_, rtol=rtol)
    np.testing.assert_allclose(model.predict(wide), judge.predict(make(narrow(X))), rtol=rtol)
    # New samples may have entries in columns that were empty: their weight is 0.
    np.testing.assert_allclose(model.predict(wide.toarray() + 1e-300), model.predict(wide.toarray()))


def test_a_path_has_all_columns():
    X, y = binary()
    path = rank_svm_path(hashed(X), y, [1.0, 20.0])
    assert path.coefs.shape == (2, 1, WIDTH)
    np.testing.assert_array_equal(path.coefs[..., PLACES], rank_svm_path(narrow(X), y, [1.0, 20.0]).coefs)


def test_a_warm_start_is_taken_from_all_columns():
    X, y = binary(n=200)
    model = RankSVC(C=20.0, warm_start=True, bound="convex").fit(hashed(X), y)
    first = model.n_passes_
    assert model.fit(hashed(X), y).n_passes_ < first
    # A model of all columns is a start for some of them, too.
    model.fit(hashed(X).toarray(), y)
    assert model.fit(hashed(X), y).n_passes_ < first


def test_a_start_that_is_given_may_speak_of_empty_columns():
    """They are left alone then: w₀ is what w is pulled to, there as elsewhere."""
    X, y = binary()
    start = np.zeros(WIDTH)
    start[PLACES], start[5] = [1.0, 0.0, 0.0, -0.5], 2.0
    model = RankSVC(bound="tight", init=start).fit(hashed(X), y)
    assert model.init_coef_[0, 5] > 0
    assert model.coef_[0, 5] == pytest.approx(model.init_coef_[0, 5], rel=1e-6)
    search = RankSVCCV(bound="tight", init=start, random_state=0).fit(hashed(X), y)
    assert search.coef_[0, 5] == pytest.approx(search.init_coef_[0, 5], rel=1e-6)


def test_empty_columns_cost_no_memory():
    rng = np.random.default_rng(0)
    X, y = binary(n=300, d=30)
    width = 1 << 20
    entries = sparse.coo_array(X)
    wide = sparse.csr_array((entries.data, (entries.row, rng.permutation(width)[entries.col])), shape=(300, width))
    RankSVC(C=100.0, bound="convex").fit(wide, y)
    tracemalloc.start()
    model = RankSVC(C=100.0, bound="convex").fit(wide, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Weights, the counts of the columns and where each has gone: not a vector for each plane.
    assert peak < 5 * 8 * width
    assert model.n_iter_ > 3


# Few samples with many features: coordinates in the space of the rows.


def wide(n=60, d=1100, seed=0):
    """Standardised, so that a rank is missing; two classes that overlap."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.normal(size=(n, d))
    X[:, :40] += 0.4 * (y == 0)[:, None] - 0.4 * (y == 1)[:, None]
    return (X - X.mean(axis=0)) / X.std(axis=0), y


HOLD = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "F order": np.asfortranarray,
    "whole numbers": lambda X: np.round(20 * X).astype(np.int16),
    "rows twice": lambda X: np.concatenate([X[:30], X[:30]]),
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "offset": lambda X: X + 100.0,
    "large offset": lambda X: X + 1e6,
    "rows nearly twice": lambda X: np.concatenate([X[:30], X[:30] + 1e-7 * X[30:]]),
    "a row far out": lambda X: X * np.where(np.arange(60) == 7, 1e7, 1.0)[:, None],
    "rows of all lengths": lambda X: X * np.logspace(0, 12, 60)[:, None],
    "tiny": lambda X: 1e-150 * X,
}


@pytest.mark.parametrize("hold", HOLD.values(), ids=HOLD)
def test_the_space_of_the_rows(hold):
    """Scores and lengths stay what they are."""
    X = hold(wide()[0])
    found, coordinates = fewer(X)
    assert found.shape == (60, 60)
    assert coordinates.n_features == 1100
    # Sums of slopes, as all that a solver visits.
    coef = np.random.default_rng(1).normal(size=(3, 60)) @ found
    coef /= np.linalg.norm(coef, axis=1, keepdims=True)
    whole = coordinates.everywhere(coef)
    assert whole.shape == (3, 1100)
    np.testing.assert_allclose(whole @ whole.T, coef @ coef.T, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(X @ whole.T, found @ coef.T, rtol=1e-9, atol=1e-9 * np.abs(found).max())
    # For warm starts.
    np.testing.assert_allclose(coordinates.inside(whole), coef, rtol=1e-7, atol=1e-7)
    # Along directions in which the rows hardly differ, sums of one or of several columns differ by rounding.
    np.testing.assert_allclose(coordinates.everywhere(coef[0]), whole[0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(coordinates.inside(whole[0]), coef[0], rtol=1e-7, atol=1e-7)


def test_where_the_space_of_the_rows_is_not_taken():
    X = wide()[0]
    many = np.random.default_rng(0).normal(size=(500, 4100))
    for given in (X[:, :1000], np.tile(X, (3, 1)), np.zeros((60, 1100)), many):
        found, coordinates = fewer(given)
        assert found is given
        assert isinstance(coordinates, AsGiven)
    # Where several problems share it, it is worth more samples.
    assert fewer(many, 2)[0].shape == (500, 500)


WIDE = {
    "binary": (lambda: RankSVC(C=0.01, bound="convex"), False),
    "multiclass": (lambda: RankSVC(C=0.01, bound="convex"), True),
    "ndcg by cutting planes": (lambda: RankSVC("ndcg", C=0.01, solver="cutting-plane", bound="convex"), False),
    "tight": (lambda: RankSVC(bound="tight", scale=0.5), False),
    "approximate": (lambda: ApproximateRankSVC(C=0.01), False),
    "search": (lambda: RankSVCCV(Cs=[1e-3, 1e-2], cv=3, random_state=0, bound="convex"), False),
    "tight search": (lambda: RankSVCCV(bound="tight", cv=3, random_state=0), False),
}


@pytest.mark.parametrize("name", WIDE)
def test_a_fit_in_the_space_of_the_rows(name, monkeypatch):
    new, several = WIDE[name]
    X, y = wide()
    y = y if several else (y == 0).astype(int)
    model = new().set_params(tol=1e-6).fit(X, y)
    assert model.coef_.shape == (3 if several else 1, 1100)
    for k, w in enumerate(model.coef_):
        relevant, C = (y == k if several else y == 1), np.atleast_1d(model.C_)[k]
        if model.bound == "tight":
            away = w - model.init_coef_[k]
            value = 0.5 * away @ away + C * tight_hinge(X @ w, relevant).value
        else:
            value = 0.5 * w @ w + C * structured_hinge(X @ w, relevant, model.loss)
        if name != "approximate":
            assert np.atleast_1d(model.objective_)[k] == pytest.approx(value, rel=1e-9)
    monkeypatch.setattr(coordinates_module, "FEWER", coordinates_module.FewerPolicy(samples=0))
    judge = new().set_params(tol=1e-6).fit(X, y)
    assert np.all(model.dual_objective_ <= judge.objective_ * (1 + 1e-9))
    np.testing.assert_allclose(model.objective_, judge.objective_, rtol=1e-5)
    np.testing.assert_allclose(model.C_, judge.C_, rtol=1e-2)
    np.testing.assert_allclose(model.score(X, y), judge.score(X, y), atol=0.02)
    for attribute in ("init_coef_", "binary_coef_"):
        if hasattr(judge, attribute):
            found, expected = getattr(model, attribute), getattr(judge, attribute)
            assert np.linalg.norm(found - expected) <= 0.05 * np.linalg.norm(expected)


def test_lists_and_paths_in_the_space_of_the_rows(monkeypatch):
    X, y = wide()
    qid = np.arange(60) // 15
    ranker = SVMRanker(C=0.1, tol=1e-6, bound="convex").fit(X, y, qid=qid)
    path = rank_svm_path(X, y == 0, [1e-3, 1e-2], tol=1e-6)
    monkeypatch.setattr(coordinates_module, "FEWER", coordinates_module.FewerPolicy(samples=0))
    judge = SVMRanker(C=0.1, tol=1e-6, bound="convex").fit(X, y, qid=qid)
    assert ranker.coef_.shape == (1100,)
    assert ranker.objective_ == pytest.approx(judge.objective_, rel=1e-5)
    np.testing.assert_allclose(path.objectives, rank_svm_path(X, y == 0, [1e-3, 1e-2], tol=1e-6).objectives, rtol=1e-5)
    assert path.coefs.shape == (2, 1, 1100)
    for C, coef, value in zip(path.Cs, path.coefs[:, 0], path.objectives[:, 0]):
        assert value == pytest.approx(0.5 * coef @ coef + C * structured_hinge(X @ coef, y == 0), rel=1e-9)


def test_a_warm_start_in_the_space_of_the_rows():
    X, y = wide()
    model = RankSVC(C=0.01, warm_start=True, tol=1e-4, bound="convex").fit(X, y == 0)
    first = model.n_passes_
    assert model.fit(X, y == 0).n_passes_ < first


def test_an_interrupt_in_the_space_of_the_rows(monkeypatch):
    X, y = wide()
    evaluate, calls = RankingObjective.evaluate, iter(range(10**6))

    def interrupted(self, *arguments, **options):
        if next(calls) == 6:
            raise KeyboardInterrupt
        return evaluate(self, *arguments, **options)

    monkeypatch.setattr(RankingObjective, "evaluate", interrupted)
    model = RankSVC(C=0.1, tol=1e-9, bound="convex")
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y == 0)
    assert model.status_ == "interrupted"
    w = model.coef_[0]
    monkeypatch.undo()
    assert model.objective_ == pytest.approx(0.5 * w @ w + 0.1 * structured_hinge(X @ w, y == 0), rel=1e-9)


def test_a_mapped_X_is_not_copied_for_the_space_of_its_rows(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 40_000)).astype(np.float32)
    y = (X[:, :200].sum(axis=1) + rng.normal(size=100) > 5).astype(int)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    RankSVC(C=0.01, bound="convex").fit(mapped, y)
    tracemalloc.start()
    RankSVC(C=0.01, bound="convex").fit(mapped, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * X.nbytes


@pytest.mark.parametrize("width", [300, 3000], ids=["no empty columns", "most columns empty"])
def test_looking_for_empty_columns_takes_little_memory(width):
    X = sparse.random_array((20_000, 300), density=0.05, format="csr", rng=0)
    X = sparse.csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=(20_000, width))
    tracemalloc.start()
    found, _ = fewer(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.shape == (20_000, 300)
    # New indices where there are any, and a part of the entries at a time.
    assert peak < (1.5 * X.indices.nbytes if width > 300 else 0.5 * X.indices.nbytes)
