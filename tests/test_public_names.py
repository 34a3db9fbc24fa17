"""Public names have addresses that users know, and the examples of public classes run."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pickle
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import rankhinge
from tests.svm.helpers import binary

ROOMS = [*rankhinge._ROOMS, *(room for room in rankhinge._EXTRA_ROOMS if find_spec(room) is not None)]


def public_things():
    """Where a user finds each public class and function, and the thing itself."""
    for name in rankhinge._HOME:
        yield "rankhinge", name, getattr(rankhinge, name)
    for room in ROOMS:
        module = importlib.import_module(f"rankhinge.{room}")
        for name in module.__all__:
            if rankhinge._HOME.get(name) != room:
                yield module.__name__, name, getattr(module, name)


THINGS = [
    pytest.param(address, name, thing, id=f"{address}.{name}")
    for address, name, thing in public_things()
    if inspect.isclass(thing) or inspect.isfunction(thing)
]


@pytest.mark.parametrize(("address", "name", "thing"), THINGS)
def test_a_thing_is_from_where_it_is_imported(address, name, thing):
    assert (thing.__module__, thing.__qualname__) == (address, name)
    # By reference: the stored text is the address.
    stored = pickle.dumps(thing, protocol=0).decode()
    assert stored.startswith(f"c{address}\n{name}\n")
    assert pickle.loads(stored.encode()) is thing


@pytest.mark.parametrize(("address", "name", "thing"), [thing for thing in THINGS if inspect.isclass(thing.values[2])])
def test_examples_of_a_class(address, name, thing):
    """The collector of examples looks into the file of a class under its address, where it is not."""
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    report: list[str] = []
    known = dict(vars(importlib.import_module(address)))
    for test in doctest.DocTestFinder().find(thing, name, module=False, globs=known):
        runner.run(test, out=report.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)


def test_there_are_examples():
    found = doctest.DocTestFinder().find(rankhinge.RankSVC, "RankSVC", module=False, globs={})
    assert sum(len(test.examples) for test in found) > 3


def estimators():
    return [thing for _, _, thing in public_things() if inspect.isclass(thing) and issubclass(thing, BaseEstimator)]


def test_there_are_estimators():
    assert {rankhinge.RankSVC, rankhinge.SVMRankerCV, rankhinge.LatentRankSVC} <= set(estimators())


@pytest.mark.parametrize("estimator", estimators(), ids=lambda estimator: estimator.__name__)
def test_skops_trusts_the_address(estimator):
    skops = pytest.importorskip("skops.io")
    needed = {"transformer": None} if estimator is rankhinge.BagTransformer else {}
    stored = skops.dumps(estimator(**needed))
    assert skops.get_untrusted_types(data=stored) == [f"rankhinge.{estimator.__name__}"]
    assert type(skops.loads(stored, trusted=[f"rankhinge.{estimator.__name__}"])) is estimator


def test_a_pickle_names_no_private_file(tmp_path):
    """Whichever way the class was imported; and a process that has imported nothing can load it."""
    X, y = binary()
    model = importlib.import_module("rankhinge.svm.rank_svc").RankSVC(C=10.0, bound="convex").fit(X, y)
    stored = pickle.dumps(model)
    assert b"rankhinge.svm" not in stored
    (tmp_path / "model.pickle").write_bytes(stored)
    np.save(tmp_path / "X.npy", X)
    script = (
        "import pickle, sys, numpy as np\n"
        "model = pickle.load(open('model.pickle', 'rb'))\n"
        "np.save('scores.npy', model.decision_function(np.load('X.npy')))\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True, timeout=120)
    np.testing.assert_array_equal(np.load(tmp_path / "scores.npy"), model.decision_function(X))
