"""What `tests.fuzz` knows beyond its first kinds: the baselines, networks, losses with a cut, units and threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any
from unittest import mock

import numpy as np
from scipy import sparse

from rankhinge import ApproximateRankSVC
from rankhinge.latent import LatentRankSVC, LatentStructuralSVC, LatentSVC
from tests import fuzz_data, judge, judge_machines
from tests.fuzz_data import Case

__all__ = ["CHECKS", "MAKERS", "OF_BAGS", "PLAYERS", "widen", "with_threads"]

KINDS = {"latent svc": 10, "structural": 5, "approximate": 8, "layerwise": 3 if find_spec("torch") else 0}
OF_BAGS: dict[str, Any] = {"latent": LatentRankSVC, "latent svc": LatentSVC, "structural": LatentStructuralSVC}
MAKERS: dict[str, Callable[[np.random.Generator, Case], None]] = {
    "ranker": fuzz_data.lists,
    "ranker cv": fuzz_data.lists,
    "labels": fuzz_data.labels,
    "latent": fuzz_data.bags,
    "latent svc": fuzz_data.bags,
    "structural": lambda rng, case: _without_shrinking(rng, case),
}
RANKING = ("ap", "ndcg", "rr", "auc", "rbp")
PUSHES = ("partial-auc@0.3", "top-push", "p-norm-push@2", "bedroc@20")
# The structural machine's judge tries all rankings of its bags; networks are small.
MOST_CANDIDATES, MOST_SAMPLES, MOST_FEATURES = 16, 80, 20
# A network's scores may overflow float32 from here on, which it says.
LARGE = 1e3


def widen(rng: np.random.Generator, case: Case) -> None:
    """Another kind at times; losses with a cut, units of the features, threads."""
    if rng.random() < 0.3:
        case.kind = str(rng.choice(list(KINDS), p=np.array(list(KINDS.values())) / sum(KINDS.values())))
        {"latent svc": _latent_svc, "structural": _structural, "approximate": _approximate, "layerwise": _layerwise}[
            case.kind
        ](rng, case)
    elif rng.random() < 0.4:
        case.options["loss"] = cut_loss(rng) if rng.random() < 0.7 else str(rng.choice(PUSHES))
    if case.kind in ("svc", "ranker", "labels", "cv", "ranker cv") and rng.random() < 0.4:
        case.options["standardize"] = [True, False, 0.5, 0.25, "auto"][rng.integers(5)]
    if case.kind != "layerwise" and rng.random() < 0.1:
        case.facts["threads"] = int(rng.integers(2, 5))


def cut_loss(rng: np.random.Generator) -> str:
    """A loss of the first places only."""
    kind = str(rng.choice(["ndcg", "ap", "precision", "recall", "f1", "hit", "r-precision"]))
    places = str(rng.choice(["1", "3", "10", "50", "1%", "20%"]))
    return kind if kind == "r-precision" else f"{kind}@{places}"


def _shared(case: Case, *names: str) -> dict[str, Any]:
    return {name: case.options[name] for name in ("tol", "max_iter", "random_state", *names) if name in case.options}


def _latent_svc(rng: np.random.Generator, case: Case) -> None:
    case.options = _shared(case) | {
        "C": float(10.0 ** rng.uniform(-6, 8)),
        "positive_weight": float(10.0 ** rng.uniform(-2, 2)),
        "fit_intercept": bool(rng.random() < 0.7),
        "n_starts": int(rng.integers(1, 3)),
        "init": str(rng.choice(["mean", "first", "random"])),
    }
    if rng.random() < 0.2:
        case.options["ignore_confusing"] = float(rng.uniform(0, 100))


def _structural(rng: np.random.Generator, case: Case) -> None:
    case.X = case.X[: int(rng.integers(4, MOST_CANDIDATES + 1))]
    case.options = _shared(case) | {"loss": str(rng.choice(RANKING)), "C": float(10.0 ** rng.uniform(-6, 6))}


def _without_shrinking(rng: np.random.Generator, case: Case) -> None:
    fuzz_data.bags(rng, case)
    del case.options["shrinking"]


def _approximate(rng: np.random.Generator, case: Case) -> None:
    loss = cut_loss(rng) if rng.random() < 0.2 else str(rng.choice(RANKING))
    case.options = _shared(case) | {
        "loss": loss,
        "C": float(10.0 ** rng.uniform(-3, 6)),
        "keep_easy": float(rng.choice([0.0, 0.2, 0.5, 1.0])),
    }


def _layerwise(rng: np.random.Generator, case: Case) -> None:
    case.X = np.clip(case.X[:MOST_SAMPLES, :MOST_FEATURES], -1e12, 1e12)
    case.facts["double"] = bool(rng.random() < 0.5)
    case.facts["width"] = int(rng.integers(1, 6))
    case.facts["outputs"] = int(rng.integers(1, 3))
    case.options = {
        "loss": cut_loss(rng) if rng.random() < 0.2 else str(rng.choice(RANKING)),
        "lam": float(10.0 ** rng.uniform(-6, 1)),
        "mu": [None, 0.0, 1.0][rng.integers(3)],
        "max_passes": int(rng.integers(1, 4)),
        "max_epochs": int(rng.integers(1, 10)),
        "random_state": case.options["random_state"],
    }


def with_threads(case: Case, fit: Callable[[], Any]) -> Any:
    """The model; of several threads, if it is the same as that of one, to the last bit."""
    if "threads" not in case.facts:
        return fit()
    models = []
    for n in (1, case.facts["threads"]):
        with mock.patch.dict(os.environ, {"RANKHINGE_NUM_THREADS": str(n)}):
            models.append(fit())
    if models[0] is None or models[1] is None:
        # A search without a fold that can be ranked: neither has a model.
        if models[0] is not models[1]:
            raise judge.Violation("the number of threads decides whether there is a model")
        return None
    if models[0].coef_.tobytes() != models[1].coef_.tobytes():
        raise judge.Violation(f"{case.facts['threads']} threads lead to other coefficients than one")
    return models[1]


def _check_latent_svc(case: Case, model: Any) -> int:
    if model.ignore_confusing:
        judge_machines.check_trimmed(model, case.X, case.y, case.facts["offsets"])
        return 1
    judge.check(model, case.X, case.y, bags=case.facts["offsets"])
    judge_machines.check_falls(model)
    return 1


def _check_structural(case: Case, model: Any) -> int:
    judge_machines.check_structural(model, case.X, case.y, case.facts["offsets"])
    return 1


CHECKS = {"latent svc": _check_latent_svc, "structural": _check_structural}


def _play_approximate(case: Case) -> tuple[Any, int]:
    model = with_threads(case, lambda: ApproximateRankSVC(**case.options).fit(case.X, case.y))
    return model, int(judge_machines.check_approximate(model, case.X, case.y))


def _play_layerwise(case: Case) -> tuple[None, int]:
    """Train a network of two layers, and judge it."""
    import torch

    from rankhinge.torch.layerwise import LayerwiseTrainer

    dtype = torch.float64 if case.facts["double"] else torch.float32
    torch.manual_seed(case.facts["seed"])
    X = case.X.toarray() if sparse.issparse(case.X) else np.array(case.X)
    X = X.astype(np.float64 if case.facts["double"] else np.float32)
    layers = [torch.nn.Linear(X.shape[1], case.facts["width"]), torch.nn.ReLU()]
    network = torch.nn.Sequential(*layers, torch.nn.Linear(case.facts["width"], case.facts["outputs"])).to(dtype)
    y = np.stack([case.y, 1 - case.y][: case.facts["outputs"]], axis=1)
    trainer = LayerwiseTrainer(network, block_size=len(X), **case.options)
    try:
        trainer.fit(X, y)
    except ValueError as error:
        if "the network's score" in str(error) and not case.facts["double"] and np.abs(X).max() > LARGE:
            return None, 0
        raise
    judge_machines.check_layerwise(trainer, X, y, float(torch.finfo(dtype).eps))
    return None, 1


# Fit and judge machines of their own kind: the model, if its status is about a gap, and how many claims that was.
PLAYERS: dict[str, Callable[[Case], tuple[Any, int]]] = {"approximate": _play_approximate, "layerwise": _play_layerwise}
