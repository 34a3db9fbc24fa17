"""Choosing the parameters of latent machines: the same folds, the same grid of C and the same rule for all of them.

First, on one fold and at a value of C a decade, the parameters other than C (J and c of the latent SVM) and where the
search for C begins. Then five folds, three values a decade, grown by a value at a time until the choice lies inside.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold

from rankhinge import metrics
from rankhinge.latent import Bags, LatentRankSVC, LatentStructuralSVC, LatentSVC
from rankhinge.latent.cccp import ConcaveConvex
from rankhinge.papers.machines.latent_svc import _Trimmed

N_FOLDS = 5
# What the latent SSVM can afford: so many positive and negative bags.
FEW = (20, 40)
MACHINES = {"latent AP-SVM": LatentRankSVC, "latent SVM": LatentSVC, "latent SSVM": LatentStructuralSVC}
PAIR = ("latent AP-SVM", "latent SVM")
TRIO = ("latent AP-SVM", "latent SSVM", "latent SVM")


class TrimmedRankSVC(LatentRankSVC):
    """`LatentRankSVC` that leaves out the most confusing candidates of negatives, as `LatentSVC` can: a trial."""

    percent = 1.0

    def _make_outer(self, inner: Any) -> ConcaveConvex:
        return _Trimmed(inner, self._loss(), self.tol, self.max_outer, self.percent)


@dataclass(frozen=True)
class Search:
    """How to look for C.

    Attributes
    ----------
    powers : tuple of int
        Exponents of ten that are tried first.
    n_folds : int
        Folds of the search, out of five.
    coarse_step : int
        Every so-manieth bag takes part in the coarse search.
    width : int
        So many values on each side of the coarse choice, to begin with.
    most_values : int
        Where to stop although the choice lies at an end.
    options : tuple of (str, Any)
        Further parameters of the trial fits, such as a larger tolerance.
    """

    powers: tuple[int, ...]
    n_folds: int = N_FOLDS
    coarse_step: int = 1
    per_decade: int = 3
    width: int = 2
    most_values: int = 13
    options: tuple[tuple[str, Any], ...] = (("tol", 1e-2),)


def folds_of(y: np.ndarray, n_folds: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The first of five stratified folds; seed 0."""
    splitter = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0)
    return list(splitter.split(np.zeros(len(y)), y))[:n_folds]


def average_precision(y: Any, scores: Any) -> float:
    return float(metrics.average_precision(np.asarray(y).astype(np.int64), scores))


def validation(
    kind: str, options: dict[str, Any], Cs: list[float], bags: Bags, y: np.ndarray, n_folds: int
) -> np.ndarray:
    """AP on each fold's part at each C, ascending, each fit started from the one before: (n_Cs, n_folds)."""
    scores = np.empty((len(Cs), n_folds))
    for fold, (train, test) in enumerate(folds_of(y, n_folds)):
        model, inside, outside = MACHINES[kind](warm_start=True, **options), bags[train], bags[test]
        for place, C in enumerate(Cs):
            model.set_params(C=C).fit(inside, y[train])
            scores[place, fold] = average_precision(y[test], model.decision_function(outside))
    return scores


def trimmed(percent: float, C: float, bags: Bags, y: np.ndarray, n_folds: int) -> list[float]:
    """AP on each fold's part with so many percent left out; 0: the machine as it is."""
    scores = []
    for train, test in folds_of(y, n_folds):
        model = TrimmedRankSVC(C=C) if percent else LatentRankSVC(C=C)
        model.percent = percent
        scores.append(average_precision(y[test], model.fit(bags[train], y[train]).decision_function(bags[test])))
    return scores


def settings(kind: str, y: np.ndarray) -> list[dict[str, Any]]:
    """What there is to choose beside C: the weight J of positives and c, the confusing candidates to ignore."""
    if kind != "latent SVM":
        return [{}]
    balance = float((y == 0).sum() / (y == 1).sum())
    return [{"positive_weight": J, "ignore_confusing": c} for J, c in product((1.0, balance), (0.0, 1.0))]


def coarse(kind: str, bags: Bags, y: np.ndarray, search: Search) -> dict[str, Any]:
    """J and c, and where the search for C begins: one fold, a value of C a decade."""
    Cs = [10.0**power for power in search.powers]
    some = np.arange(0, len(y), search.coarse_step)
    bags, y, tried = bags[some], y[some], []
    for options in settings(kind, y):
        scores = validation(kind, {**dict(search.options), **options}, Cs, bags, y, 1)[:, 0]
        tried.append((float(scores.max()), Cs[int(scores.argmax())], options))
    _, C, options = max(tried, key=lambda one: one[0])
    return {"C": C, "options": options}


def fine(kind: str, bags: Bags, y: np.ndarray, search: Search, begin: dict[str, Any]) -> dict[str, Any]:
    """C around the coarse one, grown by a value at a time until the choice lies inside."""
    centre = round(search.per_decade * np.log10(begin["C"]))
    options = {**dict(search.options), **begin["options"]}
    found: dict[int, list[float]] = {}
    wanted = list(range(centre - search.width, centre + search.width + 1))[: search.most_values]
    while wanted:
        Cs = [float(10 ** (place / search.per_decade)) for place in wanted]
        scores = validation(kind, options, Cs, bags, y, search.n_folds)
        found |= {place: row.tolist() for place, row in zip(wanted, scores, strict=True)}
        best = max(found, key=lambda place: float(np.mean(found[place])))
        wanted = [best - 1] * (best == min(found)) + [best + 1] * (best == max(found))
        if len(found) >= search.most_values:
            break
    grid = {f"{10 ** (place / search.per_decade):.4g}": row for place, row in sorted(found.items())}
    C = float(10 ** (best / search.per_decade))
    return {"C": C, "options": begin["options"], "grid": grid, "folds": found[best]}


def subsample(y: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """So many positives and negatives, drawn at random with seed 0."""
    generator = np.random.default_rng(0)
    parts = [generator.permutation(np.flatnonzero(y == label))[:n] for label, n in zip((1, 0), size, strict=True)]
    return np.sort(np.concatenate(parts))


def chosen(kind: str, bags: Bags, y: np.ndarray, search: Search) -> dict[str, Any]:
    """Both searches."""
    return fine(kind, bags, y, search, coarse(kind, bags, y, search))


def at_end(choice: dict[str, Any]) -> bool:
    """Whether the C that was chosen is an end of the grid after all."""
    Cs = [float(text) for text in choice["grid"]]
    return bool(np.isclose(choice["C"], [Cs[0], Cs[-1]], rtol=1e-3).any())
