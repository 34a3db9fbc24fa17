"""Latent fits and searches that end by the clock or by Ctrl-C keep what they have."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from rankhinge.latent import Bags, LatentRankSVC, LatentRankSVCCV, LatentStructuralSVC, LatentSVC


def bags_of(n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3 == 0
    X = rng.normal(size=(n, 5, 4))
    X[y, 2] += 2.0
    return Bags(list(X)), y


@pytest.mark.parametrize("machine", [LatentRankSVC, LatentSVC, LatentStructuralSVC])
def test_a_fit_ends_by_the_clock(machine):
    bags, y = bags_of()
    with pytest.warns(ConvergenceWarning, match="an inner problem ended"):
        model = machine(C=100.0, max_time=1e-9).fit(bags, y)
    assert model.status_ == "time"
    assert model.gap_ > 1e-3
    whole = machine(C=100.0, max_time=1e6).fit(bags, y)
    assert whole.status_ != "time"
    assert model.objective_ > whole.objective_
    assert model.n_passes_ < whole.n_passes_


def test_a_search_ends_by_the_clock():
    bags, y = bags_of()
    with pytest.warns(ConvergenceWarning) as caught:
        model = LatentRankSVCCV(Cs=[1.0, 10.0, 100.0], cv=2, max_time=1e-9, random_state=0).fit(bags, y)
    search, fit = (str(warning.message) for warning in caught)
    assert "the search ended with 75% of max_time = 1e-09 s, after 1 of at most 6 points" in search
    assert "an inner problem ended with a relative gap of" in fit
    assert model.C_ == 1.0
    assert np.isfinite(model.scores_).sum() == 1
    assert model.best_score_ == np.nanmax(model.scores_)
    assert model.status_ == "time"


@pytest.mark.parametrize("n_points", [2, 5])
def test_ctrl_c_in_a_search_keeps_the_best_so_far(n_points):
    """In the first fold as far as that has come; then by the folds that are whole."""
    bags, y = bags_of()
    calls = []

    def scoring(relevant, scores):
        if len(calls) == n_points:
            raise KeyboardInterrupt
        calls.append(float(scores[relevant].mean() - scores[~relevant].mean()))
        return calls[-1]

    model = LatentRankSVCCV(Cs=[1.0, 10.0, 100.0], cv=3, scoring=scoring, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(bags, y)
    first = calls[:3]
    assert model.best_params_ == {"C": model.C_}
    assert [1.0, 10.0, 100.0][int(np.argmax(first))] == model.C_
    assert model.status_ == "interrupted"
    assert model.score(bags, y) > 0.8


def test_ctrl_c_before_any_score_puts_back_the_model_before():
    bags, y = bags_of()
    model = LatentRankSVCCV(Cs=[1.0, 10.0], cv=2, random_state=0).fit(bags, y)
    before = model.coef_.copy()

    def scoring(relevant, scores):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.set_params(scoring=scoring).fit(bags, y)
    np.testing.assert_array_equal(model.coef_, before)
    assert np.isfinite(model.scores_).all()
