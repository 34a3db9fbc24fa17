"""Odd data for `tests.fuzz`: features, containers, labels, lists and bags, each by a generator's draws alone."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["Case", "bags", "binary", "container", "features", "labels", "lists"]


@dataclass
class Case:
    """Data, a machine and what it is given."""

    kind: str
    X: Any
    y: np.ndarray
    options: dict[str, Any]
    given: dict[str, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    warm: float = 0.0  # size of the coefficients to start from, 0: none


def features(rng: np.random.Generator, n: int, d: int, facts: dict[str, Any]) -> np.ndarray:
    """Normal, whole, binary or heavy-tailed numbers, then odd scales, offsets, duplicates and odd columns."""
    kind = facts["values"] = str(
        rng.choice(["normal", "whole", "binary", "heavy", "few"], p=[0.5, 0.15, 0.1, 0.15, 0.1])
    )
    X = rng.normal(size=(n, d))
    if kind == "whole":
        X = rng.integers(-5, 6, (n, d)).astype(float)
    elif kind == "binary":
        X = (rng.random((n, d)) < 0.3).astype(float)
    elif kind == "heavy":
        X = rng.standard_cauchy((n, d))
    elif kind == "few":
        X *= rng.random((n, d)) < 0.1
    for name, shape in (("row scales", (n, 1)), ("column scales", (1, d))):
        decades = facts[name] = float(rng.choice([0, 1, 3, 6, 12], p=[0.55, 0.15, 0.14, 0.1, 0.06]))
        X = X * 10.0 ** rng.uniform(-decades, decades, shape)
    if rng.random() < 0.25:
        facts["offset"] = offset = 10.0 ** rng.uniform(0, 14)
        X[:, rng.random(d) < rng.choice([0.1, 1.0])] += offset
    if rng.random() < 0.15:
        facts["column"] = odd = str(rng.choice(["id", "timestamp", "constant", "zero"]))
        columns = {"id": np.arange(n) + 1.0, "timestamp": 1.7e12 + rng.integers(0, 10**9, n), "zero": np.zeros(n)}
        X[:, rng.integers(d)] = columns.get(odd, np.full(n, 10.0 ** rng.uniform(-3, 14)))
    if rng.random() < 0.15:
        facts["duplicates"] = True
        X = X[rng.integers(0, max(2, n // 2), n)]
    return X


def container(rng: np.random.Generator, X: np.ndarray, facts: dict[str, Any]) -> Any:
    """Dense, CSR, float32, column by column, or a file; float32 has no number beyond 3e38."""
    how = facts["container"] = str(rng.choice(["dense", "csr", "float32", "csr32", "F", "mapped"]))
    if how in ("float32", "csr32"):
        X = np.clip(X, -1e30, 1e30).astype(np.float32)
    if how in ("csr", "csr32"):
        return sparse.csr_array(X)
    if how == "mapped":
        with tempfile.TemporaryFile() as file:
            file.write(np.ascontiguousarray(X).tobytes())
            file.flush()
            return np.memmap(file, dtype=X.dtype, mode="r", shape=X.shape)
    return np.asfortranarray(X) if how == "F" else X


def binary_labels(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    """At random, or by a linear score with noise; one positive or one negative at least, at times no more."""
    n = X.shape[0]
    share = float(rng.choice([0.0, 0.05, 0.2, 0.5, 1.0]))
    n_positives = int(np.clip(round(share * n), 1, n - 1))
    unit = np.maximum(np.abs(X).max(axis=0), 1e-300)
    strength = (X / unit) @ rng.normal(size=X.shape[1]) * rng.choice([0.0, 1.0]) + rng.normal(size=n) * rng.choice(
        [0, 1.0]
    )
    y = np.zeros(n, int)
    y[np.argsort(-strength, kind="stable")[:n_positives]] = 1
    return y


def binary(rng: np.random.Generator, case: Case) -> None:
    case.y = binary_labels(rng, case.X)
    if case.kind == "cv":
        # Every fold needs both classes.
        case.y[:4] = (0, 1, 0, 1)


def labels(rng: np.random.Generator, case: Case) -> None:
    n = len(case.X)
    if rng.random() < 0.5:
        case.y = rng.integers(0, 3, n)
        case.y[:3] = (0, 1, 2)
        return
    case.y = np.stack([binary_labels(rng, case.X) for _ in range(3)], axis=1)
    mask = rng.random(case.y.shape) < 0.8
    for k in range(3):
        mask[np.argmax(case.y[:, k]), k] = mask[np.argmin(case.y[:, k]), k] = True
    case.given["mask"] = mask


def lists(rng: np.random.Generator, case: Case) -> None:
    n = len(case.X)
    n_queries = max(1, n // int(rng.integers(3, 20)))
    if case.kind == "ranker cv":
        # Two in each fold at least, of two rows at least.
        n_queries = max(n_queries, min(4, n // 2))
    case.given["qid"] = qid = rng.permutation(np.arange(n) % n_queries)
    binary = case.options["loss"].partition("@")[0] not in ("ndcg", "rbp")
    y = rng.integers(0, 2 if binary else rng.integers(2, 6), n)
    if binary and rng.random() < 0.3:
        y, case.options["level_weights"] = rng.integers(0, 4, n), "uniform"
    case.y = y
    for query in np.unique(qid)[:4]:
        rows = np.flatnonzero(qid == query)
        y[rows[0]], y[rows[-1]] = 0, 1
    case.options["gains"] = str(rng.choice(["exponential", "linear"]))
    if case.kind == "ranker" and rng.random() < 0.3:
        weight = 10.0 ** rng.uniform(-3, 3, n)
        weight[0] = 0.0
        case.given["query_weight"] = weight[qid]
        case.given["query_weight"][qid == qid[0]] = 1.0


def bags(rng: np.random.Generator, case: Case) -> None:
    n = len(case.X)
    cuts = np.sort(rng.choice(np.arange(1, n), size=int(rng.integers(1, max(2, n // 2))), replace=False))
    offsets = np.concatenate([[0], cuts, [n]])
    case.y = rng.integers(0, 2, offsets.size - 1)
    case.y[:2] = (0, 1)
    case.facts["offsets"] = offsets
    case.options["max_outer"] = int(rng.integers(1, 6))
    case.options["solver"] = str(rng.choice(["bundle", "cutting-plane"]))
    case.options["shrinking"] = bool(rng.random() < 0.8)
