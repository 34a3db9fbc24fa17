"""What `tests.fuzz` knows beyond `fuzz_more`: paths of lists and labels, masks and the tight bound in searches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rankhinge import RankSVCCV, SVMRankerCV
from rankhinge.latent import Bags, LatentRankSVCCV
from tests import fuzz_data
from tests.fuzz_data import Case

__all__ = ["MAKERS", "PATHS", "SEARCHES", "search", "warm", "widen"]

PATHS = ("path", "path of labels", "path of lists")
SEARCHES = ("cv", "ranker cv", "labels cv", "latent cv")
# How a search says that folds of few samples cannot be ranked.
NO_TEST = "use fewer folds"


def widen(rng: np.random.Generator, case: Case) -> None:
    """Another form of some kinds, at times."""
    if case.kind == "path":
        case.kind = str(rng.choice(PATHS))
    elif case.kind == "cv" and rng.random() < 0.5:
        case.kind = "labels cv"
    elif case.kind == "latent" and rng.random() < 0.2:
        case.kind = "latent cv"
    if case.kind in SEARCHES[:3] and rng.random() < 0.4:
        case.facts["tight"] = True
        case.options["loss"] = "ap" if case.options["loss"] == "zero-one" else case.options["loss"]
        case.facts["reaches"] = (10.0 ** np.sort(rng.uniform(-2, 2, 2))).tolist()


def warm(rng: np.random.Generator, case: Case) -> None:
    """Start elsewhere at times, of several labels and with the tight bound, too; there with few iterations as well."""
    if case.kind not in ("svc", "ranker", "labels"):
        return
    rare = case.kind == "labels" or case.options["bound"] == "tight"
    if case.warm == 0.0 and rng.random() < (0.7 if rare else 0.1):
        case.warm = case.facts["warm"] = float(10.0 ** rng.uniform(-3, 15))
    if case.options["bound"] == "tight" and rng.random() < 0.5:
        # Some problems end where the others go on from.
        case.options["max_iter"] = int(rng.integers(5, 40))


def _labels_of_folds(rng: np.random.Generator, case: Case) -> None:
    fuzz_data.labels(rng, case)
    if rng.random() < 0.5:
        case.given.pop("mask", None)


def _bags_of_folds(rng: np.random.Generator, case: Case) -> None:
    n = len(case.X)
    n_bags = int(rng.integers(4, max(5, n // 2 + 1)))
    cuts = np.sort(rng.choice(np.arange(1, n), size=n_bags - 1, replace=False))
    case.facts["offsets"] = np.concatenate([[0], cuts, [n]])
    case.y = rng.integers(0, 2, n_bags)
    case.y[:4] = (0, 1, 0, 1)
    case.options["max_outer"] = int(rng.integers(1, 6))
    case.options["shrinking"] = bool(rng.random() < 0.8)


MAKERS: dict[str, Callable[[np.random.Generator, Case], None]] = {
    "path of labels": fuzz_data.labels,
    "path of lists": fuzz_data.lists,
    "labels cv": _labels_of_folds,
    "latent cv": _bags_of_folds,
}


def search(case: Case, X: Any, options: dict[str, Any]) -> Any:
    """A search that is fitted; None if it says that its folds cannot be ranked."""
    C = options.pop("C")
    if case.kind == "latent cv":
        machine, X = LatentRankSVCCV, Bags(X, offsets=case.facts["offsets"])
        grid = {"Cs": [C, 10 * C]}
    else:
        machine = SVMRankerCV if case.kind == "ranker cv" else RankSVCCV
        grid = {"bound": "convex", "Cs": [C, 10 * C]}
        if case.facts.get("tight"):
            grid = {"bound": "tight", "reaches": case.facts["reaches"]}
    try:
        return machine(cv=2, **grid, **options).fit(X, case.y, **case.given)
    except ValueError as error:
        if NO_TEST in str(error) and case.kind == "labels cv":
            return None
        raise
