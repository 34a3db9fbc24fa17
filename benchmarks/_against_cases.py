"""What `make bench AGAINST=<commit>` times: small cases of each benchmark, by public names that both commits have.

A case is a call without arguments that does its work and returns the value it found, so that a reader sees whether both
commits did the same. Made data come first: they need no data set. A case whose data set is missing is left out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from _datasets import LOADERS, MissingData, shortened
from _harness import ROOT
from _latent_data import mil_set, voc_windows
from _lists import make_list, raised
from _training_rivals import MOST_ITERATIONS, quietly
from scipy import sparse
from threadpoolctl import threadpool_limits

from rankhinge import RankSVC, RankSVCCV, SVMRanker, most_violating_ranking, rank_svm_path
from rankhinge.latent import Bags, LatentRankSVC, LatentSVC

Case = tuple[str, Callable[[], float]]
QUICK_ROWS = 3000
LATENT_C = 1e-3


def fitted(make: Callable[[], Any], *arrays: Any, **named: Any) -> float:
    """Fit a new machine, and return its objective, summed over classes."""
    return float(np.sum(quietly(lambda: make().fit(*arrays, **named))[0].objective_))


def made(n_rows: int, n_features: int, positive_share: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([n_rows, n_features])
    y = (np.arange(n_rows) < positive_share * n_rows).astype(np.int64)
    return rng.normal(size=(n_rows, n_features)) + y[:, None] * rng.normal(size=n_features) / np.sqrt(n_features), y


def training(quick: bool) -> Iterator[Case]:
    for n_rows, n_features in ((500, 20), (QUICK_ROWS, 30), (200, 4000), *(() if quick else ((50_000, 20),))):
        X, y = made(n_rows, n_features)
        for C in (1.0, 1000.0):
            yield (
                f"made {n_rows} × {n_features}, C = {C:g}",
                partial(fitted, partial(RankSVC, C=C, bound="convex"), X, y),
            )
    X, y = made(1000, 20)
    yield "made, tight", partial(fitted, partial(RankSVC, bound="tight"), X, y)
    yield "made, CV", partial(fitted, partial(RankSVCCV, cv=3, bound="convex", random_state=0), X, y)
    sparse_X = sparse.random_array((2000, 5000), density=0.01, format="csr", rng=np.random.default_rng(0))
    labels = (np.asarray(sparse_X.sum(axis=1)) > 25).astype(np.int64)
    yield "made, sparse", partial(fitted, partial(RankSVC, C=100.0, bound="convex"), sparse_X, labels)
    path = partial(rank_svm_path, X, y, np.logspace(-1, 4, 6))
    yield "made, path", lambda: float(quietly(path)[0].objectives[-1].sum())
    yield from _training_sets(quick)


def _training_sets(quick: bool) -> Iterator[Case]:
    """The sets of `training.py`, at the C that its published run chose."""
    chosen = json.loads((ROOT / "benchmarks" / "results" / "training.json").read_text("utf-8"))["chosen"]
    for name, load in LOADERS.items():
        try:
            data = shortened(load(), QUICK_ROWS) if quick else load()
        except MissingData as error:
            print(error)
            continue
        options = {"C": chosen[name]["C"], "max_iter": MOST_ITERATIONS, "bound": "convex"}
        if data.kind == "lists":
            yield name, partial(fitted, partial(SVMRanker, **options), data.X, data.y, qid=data.qid)
        else:
            yield name, partial(fitted, partial(RankSVC, **options), data.X, data.y, mask=data.mask)


def inference(quick: bool) -> Iterator[Case]:
    for n_positives, n_negatives in ((20, 500), (227, 3120), (10**3, 10**5), *(() if quick else ((10**3, 10**6),))):
        scores, relevant = make_list(n_positives, n_negatives, "float64")
        for kind, shift in (("overlapping", 0.5), ("apart", 3.0)):
            moved = raised(scores, relevant, shift)
            for loss in ("ap", "ndcg", "zero-one"):
                call = partial(most_violating_ranking, moved, relevant, loss)
                yield f"{n_positives} × {n_negatives}, {kind}, {loss}", lambda call=call: call().value


def latent(quick: bool) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    y = (np.arange(200) % 4 == 0).astype(np.int64)
    bags = Bags(rng.normal(size=(1000, 20)) + 0.5 * np.repeat(y, 5)[:, None], bag_ids=np.repeat(np.arange(200), 5))
    for machine in (LatentRankSVC, LatentSVC):
        yield f"made, {machine.__name__}", partial(fitted, machine, bags, y)
    try:
        small, labels = mil_set("musk1")
        yield "musk1", partial(fitted, LatentRankSVC, small, labels)
        windows = voc_windows()
    except MissingData as error:
        print(error)
        return
    for k in (8,) if quick else (0, 8, 14):
        seen, relevant, _ = windows.problem(k)
        yield f"windows, {windows.classes[k]}", partial(fitted, partial(LatentRankSVC, C=LATENT_C), seen, relevant)


def torch_losses(quick: bool) -> Iterator[Case]:
    from _torch_rivals import RIVALS, make_input

    for n in (384, 4096, *(() if quick else (16_384, 262_144))):
        for name in ("ap", "ndcg", "on device", "retrieval"):
            rival = RIVALS[name]
            if rival.over == "batch" and n > QUICK_ROWS:
                continue
            leaf, target = make_input(rival.over, n)
            yield f"{rival.text}, n = {n}", partial(_forward_and_backward, rival.make(n), leaf.requires_grad_(), target)


def _forward_and_backward(criterion: Callable[..., Any], leaf: Any, target: Any) -> float:
    leaf.grad = None
    value = criterion(leaf, target)
    value.backward()
    return float(value.detach())


def float32(quick: bool) -> Iterator[Case]:
    """Both products of float32 rows with one column, on one thread: what a pass over X costs."""
    from rankhinge.features import feature_map

    os.environ["RANKHINGE_NUM_THREADS"] = "1"
    for n_features in (50, 500, 2000):
        n_rows = (5_000_000 if quick else 50_000_000) // n_features
        rng = np.random.default_rng(n_features)
        features = feature_map(rng.standard_normal((n_rows, n_features), dtype=np.float32))
        w, u = rng.normal(size=(n_features, 1)), rng.normal(size=(1, n_rows))
        for name, product, factor in (("score", features.scores, w), ("adjoint", features.adjoint, u)):
            yield f"{name}, d = {n_features}", partial(_on_one_thread, product, factor)


def _on_one_thread(product: Callable[[np.ndarray], np.ndarray], factor: np.ndarray) -> float:
    with threadpool_limits(1):
        return float(np.abs(product(factor)).sum())


CASES: dict[str, Callable[[bool], Iterator[Case]]] = {
    "training": training,
    "inference": inference,
    "latent": latent,
    "torch_losses": torch_losses,
    "float32": float32,
}
