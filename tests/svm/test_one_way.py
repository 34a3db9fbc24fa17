"""Data are validated once, at the door; and a machine holds its parameters and one model, nothing on the way there."""

import sys
from collections import Counter

import numpy as np
import pytest

from rankhinge import Bags, LatentRankSVC, LatentRankSVCCV, RankSVC, RankSVCCV, SVMRanker, SVMRankerCV
from rankhinge.svm._base import LinearRankingMachine
from rankhinge.svm._fitting import fitted_names

# What users' arguments go through at the doors of inference and of metrics.
DOORS = {
    "check_scores",
    "check_relevant",
    "check_offsets",
    "most_violating_ranking",
    "most_violating_rankings",
    "ranking_loss",
    "structured_hinge",
    "validated",
    "evaluate",
    "per_query",
}
PUBLIC = ("_validation.py", "inference/api.py", "metrics/_lists.py", "metrics/_evaluate.py", "metrics/_per_query.py")


def fits():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    y = X[:, 0] + rng.normal(size=120) > 0.8
    grades, qid = np.clip(np.round(X[:, 0] + 1), 0, 2), np.repeat(np.arange(12), 10)
    bags = Bags(list(rng.normal(size=(40, 3, 4))))
    labels = np.arange(40) % 3 == 0
    few = {"cv": 3, "random_state": 0}
    return {
        "convex": (RankSVC(bound="convex"), (X, y)),
        "tight": (RankSVC(), (X, y)),
        "lists": (SVMRanker(), (X, grades, qid)),
        "convex search": (RankSVCCV(Cs=3, bound="convex", **few), (X, y)),
        "tight search": (RankSVCCV(reaches=2, init_Cs=2, **few), (X, y)),
        "search of lists": (SVMRankerCV(reaches=2, init_Cs=2, **few), (X, grades, qid)),
        "latent": (LatentRankSVC(), (bags, labels)),
        "latent search": (LatentRankSVCCV(Cs=2, **few), (bags, labels)),
    }


@pytest.mark.parametrize("name", list(fits()))
def test_no_fit_goes_through_the_public_doors(name):
    model, data = fits()[name]
    entered = Counter()

    def watch(frame, event, _):
        code = frame.f_code
        if event == "call" and code.co_name in DOORS and code.co_filename.endswith(PUBLIC):
            entered[code.co_name] += 1

    sys.setprofile(watch)
    try:
        model.fit(*data)
    finally:
        sys.setprofile(None)
    assert not entered


def others(model):
    """What a machine holds beside its parameters, and beside what scikit-learn's callbacks need."""
    return {name for name in vars(model).keys() - model.get_params().keys() if "callback" not in name}


@pytest.mark.parametrize("name", list(fits()))
def test_nothing_is_parked_on_a_machine(name, monkeypatch):
    model, data = fits()[name]
    before = []
    for kind in type(model).__mro__:
        if "_become" in vars(kind) and issubclass(kind, LinearRankingMachine):
            original = kind._become

            def become(self, fitted, original=original):
                before.append(others(self))
                return original(self, fitted)

            monkeypatch.setattr(kind, "_become", become)
    model.fit(*data)
    # scikit-learn's own check at the door counts the features.
    assert before == [{"_under_way", "n_features_in_"}]
    assert others(model) <= fitted_names(type(model)) | {"_kind"}
