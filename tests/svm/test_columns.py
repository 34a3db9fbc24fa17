"""Columns without entries change nothing: not the model, and not what it costs."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from rankhinge import ApproximateRankSVC, RankSVC, RankSVCCV, SVMRanker, SVMRankerCV, rank_svm_path
from rankhinge.svm.columns import occupied
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
    found, columns = occupied(X)
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
        found, columns = occupied(given)
        assert found is given
        assert columns.used is None
        coef = np.ones((1, given.shape[1]))
        assert columns.everywhere(coef) is columns.inside(coef) is coef


FITS = {
    "binary": (lambda: RankSVC(C=20.0), binary),
    "multiclass": (lambda: RankSVC(C=20.0), multiclass),
    "tight": (lambda: RankSVC(bound="tight"), binary),
    "approximate": (lambda: ApproximateRankSVC(C=20.0), binary),
    "search": (lambda: RankSVCCV(Cs=[1.0, 20.0], random_state=0), binary),
    "tight search": (lambda: RankSVCCV(bound="tight", random_state=0), multiclass),
    "ranker": (lambda: SVMRanker(C=20.0), graded),
    "tight ranker": (lambda: SVMRanker(bound="tight"), graded),
    "search for a ranker": (lambda: SVMRankerCV(Cs=[1.0, 20.0], cv=3, random_state=0), graded),
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
            np.testing.assert_array_equal(found[:, places], np.atleast_2d(getattr(judge, attribute)))
            assert np.count_nonzero(found) == np.count_nonzero(found[:, places]) > 0
    assert model.n_features_in_ == WIDTH
    assert model.n_passes_ == judge.n_passes_
    np.testing.assert_array_equal(model.objective_, judge.objective_)
    np.testing.assert_array_equal(model.predict(wide), judge.predict(make(narrow(X))))
    # New samples may have entries in columns that were empty: their weight is 0.
    np.testing.assert_allclose(model.predict(wide.toarray() + 1e-300), model.predict(wide.toarray()))


def test_a_path_has_all_columns():
    X, y = binary()
    path = rank_svm_path(hashed(X), y, [1.0, 20.0])
    assert path.coefs.shape == (2, 1, WIDTH)
    np.testing.assert_array_equal(path.coefs[..., PLACES], rank_svm_path(narrow(X), y, [1.0, 20.0]).coefs)


def test_a_warm_start_is_taken_from_all_columns():
    X, y = binary(n=200)
    model = RankSVC(C=20.0, warm_start=True).fit(hashed(X), y)
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
    RankSVC(C=100.0).fit(wide, y)
    tracemalloc.start()
    model = RankSVC(C=100.0).fit(wide, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Weights, the counts of the columns and where each has gone: not a vector for each plane.
    assert peak < 5 * 8 * width
    assert model.n_iter_ > 3
