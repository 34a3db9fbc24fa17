"""One machine, two threads: a clear error, and never a model that is half of each."""

from __future__ import annotations

import copy
import threading

import numpy as np
import pytest

from rankhinge import ApproximateRankSVC, RankSVC, RankSVCCV, SVMRanker, SVMRankerCV
from rankhinge.latent import LatentRankSVC, LatentRankSVCCV, LatentStructuralSVC, LatentSVC
from tests.svm.helpers import binary, multiclass


class Halting:
    """An X that lets a test come in between while it is validated."""

    def __init__(self, X):
        self.X, self.entered, self.go_on = X, threading.Event(), threading.Event()

    def __array__(self, dtype=None, copy=None):
        self.entered.set()
        assert self.go_on.wait(60)
        return np.asarray(self.X, dtype)

    def __len__(self):
        return len(self.X)

    @property
    def shape(self):
        return self.X.shape


# Rows for a latent machine are bags of one candidate, which it says.
@pytest.mark.filterwarnings("ignore:X has two dimensions")
@pytest.mark.parametrize(
    "machine",
    [
        RankSVC(bound="convex"),
        RankSVC(),
        SVMRanker(bound="convex"),
        ApproximateRankSVC(),
        RankSVCCV(Cs=[1.0], cv=2, bound="convex"),
        SVMRankerCV(Cs=[1.0], cv=2, bound="convex"),
        LatentRankSVC(),
        LatentRankSVCCV(Cs=[1.0], cv=2),
        LatentSVC(),
        LatentStructuralSVC(),
    ],
    ids=lambda machine: type(machine).__name__,
)
def test_second_thread_is_refused(machine):
    X, y = binary()
    alone = copy.deepcopy(machine).fit(X, y)
    halting = Halting(X)
    thread = threading.Thread(target=machine.fit, args=(halting, y))
    thread.start()
    assert halting.entered.wait(60)
    taken = copy.deepcopy(machine)
    with pytest.raises(RuntimeError, match=r"being fitted by another thread.*clone"):
        machine.fit(-X, 1 - y)
    halting.go_on.set()
    thread.join()
    np.testing.assert_array_equal(machine.coef_, alone.coef_)
    # It is free again, and so is a copy that was made in between.
    machine.fit(X, 1 - y)
    taken.fit(X, y)


def test_no_mixture_of_models():
    problems = [binary(), multiclass()]
    alone = [RankSVC(bound="convex").fit(X, y) for X, y in problems]
    for _ in range(20):
        machine, errors = RankSVC(bound="convex"), []
        barrier = threading.Barrier(2)

        def fit(X, y, machine=machine, errors=errors, barrier=barrier):
            barrier.wait()
            try:
                machine.fit(X, y)
            except RuntimeError as error:
                errors.append(error)

        threads = [threading.Thread(target=fit, args=problem) for problem in problems]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(errors) < 2
        same = [one for one in alone if np.array_equal(machine.classes_, one.classes_)]
        np.testing.assert_array_equal(machine.coef_, same[0].coef_)
        np.testing.assert_array_equal(machine.intercept_, same[0].intercept_)


def test_the_number_of_threads_does_not_show(monkeypatch):
    """A long list of float32 rows: products, inference and the solver give the same bits with 1 and 8 threads."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300_000, 5), dtype=np.float32)
    y = X[:, 0] + rng.standard_normal(300_000, dtype=np.float32) > 3.0
    bits = []
    for n_threads in ("1", "8"):
        monkeypatch.setenv("RANKHINGE_NUM_THREADS", n_threads)
        model = RankSVC(bound="convex", C=10.0).fit(X, y)
        bits.append((model.coef_.tobytes(), model.objective_, model.dual_objective_, model.n_passes_))
    assert bits[0] == bits[1]
