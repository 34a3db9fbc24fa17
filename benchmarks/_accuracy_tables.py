"""The tables of `accuracy.py`'s page: paired differences over the outer folds, with their standard errors."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
from _accuracy_sets import OUTSIDE
from _tables import text_table
from numpy.typing import NDArray

LINEAR = ("LinearSVC", "LinearSVC balanced", "LogisticRegression", "LogisticRegression balanced")
ORDER = ("convex", "tight", *LINEAR, "LightGBM")
CALLS = {
    "untuned": ("RankSVC()", "LogisticRegression()", "LogisticRegression(), scaled"),
    "tuned": ("RankSVCCV()", "LogisticRegressionCV", "LogisticRegressionCV, scaled"),
}
RANKERS = ("SVMRanker()", "SVMRankerCV()", "LGBMRanker", "XGBRanker")
BOOSTED = ("LGBMRanker", "XGBRanker")
MEASURES = (
    "NDCG@10",
    "NDCG@10, lists without positives count 0",
    "MAP",
    "MAP, lists without positives count 0",
)
# Features from which a set counts as wide.
WIDE = 300

Results = dict[str, dict[str, NDArray[np.float64]]]


class Duel(NamedTuple):
    """One set: its training part's shape, the folds, three means, and the first minus the better of the others."""

    name: str
    shape: tuple[int, int]
    n_folds: int
    means: tuple[float, float, float]
    gain: float
    error: float

    @property
    def wide(self) -> bool:
        return self.shape[1] >= WIDE


def paired(records: list[dict[str, Any]], table: str, measure: str = "AP") -> Results:
    """By set and method, 100 × the measure of each fold, in the same order for all methods of a set.

    A set with a single split is paired by its classes instead.
    """
    found: dict[str, dict[str, dict[Any, float]]] = defaultdict(lambda: defaultdict(dict))
    for record in records:
        if record["table"] != table or measure not in record:
            continue
        mine = found[record["set"]][record["method"]]
        values = np.atleast_1d(record[measure])
        if record["set"] == "VOC action":
            mine.update({(0, k): 100 * float(value) for k, value in enumerate(values)})
        else:
            mine[record["repeat"], record["fold"]] = 100 * float(np.mean(values))
    results: Results = {}
    for name, methods in found.items():
        shared = sorted(set.intersection(*(set(values) for values in methods.values())))
        if shared:
            results[name] = {m: np.array([values[place] for place in shared]) for m, values in methods.items()}
    return results


def difference(a: NDArray[np.float64], b: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and standard error of paired differences."""
    away = a - b
    return float(away.mean()), float(away.std(ddof=1) / np.sqrt(away.size)) if away.size > 1 else float("nan")


def best_rival(methods: dict[str, NDArray[np.float64]]) -> str:
    return max((m for m in LINEAR if m in methods), key=lambda m: methods[m].mean())


def duels(records: list[dict[str, Any]], table: str) -> list[Duel]:
    """Each set on which all three calls of a table were run; the better rival is that with the better test score."""
    shapes = {record["set"]: record["shape"] for record in records if record["table"] == table}
    found = []
    for name, methods in paired(records, table).items():
        if set(CALLS[table]) <= set(methods):
            ours, *rivals = (methods[call] for call in CALLS[table])
            better = max(rivals, key=np.mean)
            means = (ours.mean(), rivals[0].mean(), rivals[1].mean())
            found.append(Duel(name, tuple(shapes[name]), ours.size, means, *difference(ours, better)))
    return found


def duel_table(table: str, found: list[Duel]) -> str:
    """The sets of the design, those outside it, and the wide ones, each with their mean."""
    groups = {
        "of the design": [duel for duel in found if not duel.wide and duel.name not in OUTSIDE],
        "outside it": [duel for duel in found if not duel.wide and duel.name in OUTSIDE],
        "wide": [duel for duel in found if duel.wide],
    }
    rows = []
    for kind, group in groups.items():
        for duel in group:
            size = f"{duel.shape[0]} × {duel.shape[1]}"
            means = [f"{mean:.2f}" for mean in duel.means]
            rows.append([duel.name, size, str(duel.n_folds), *means, f"{duel.gain:+.2f} ± {duel.error:.2f}"])
        if group:
            means = [f"{mean:.2f}" for mean in np.mean([duel.means for duel in group], axis=0)]
            gain = f"{np.mean([duel.gain for duel in group]):+.2f}"
            rows.append([f"**mean of {len(group)} {kind}**", "", "", *means, gain])
    return text_table(["set", "rows × features", "folds", *CALLS[table], "first − better"], rows)


def rivals_table(results: Results) -> str:
    rows = []
    for name, methods in results.items():
        if "tight" not in methods or "LogisticRegression" not in methods:
            continue
        rival = best_rival(methods)
        gain, error = difference(methods["tight"], methods[rival])
        cells = [f"{methods[m].mean():.2f}" if m in methods else "–" for m in ORDER]
        cells[ORDER.index(rival)] += " *"
        rows.append([name, str(methods["tight"].size), *cells, f"{gain:+.2f} ± {error:.2f}"])
    return text_table(["set", "folds", *ORDER, "tight − best linear rival (*)"], rows)


def lists_table(records: list[dict[str, Any]]) -> str:
    rows = []
    for measure in MEASURES:
        for name, methods in paired(records, "lists", measure).items():
            cells = [f"{methods[m].mean():.2f}" if m in methods else "–" for m in RANKERS]
            away = "–"
            rivals = [m for m in BOOSTED if m in methods]
            if "SVMRankerCV()" in methods and rivals:
                best = max(rivals, key=lambda m: methods[m].mean())
                gain, error = difference(methods["SVMRankerCV()"], methods[best])
                away = f"{gain:+.2f}" + ("" if np.isnan(error) else f" ± {error:.2f}")
            rows.append([f"{name}: {measure}", str(next(iter(methods.values())).size), *cells, away])
    return text_table(["set and measure", "folds", *RANKERS, "SVMRankerCV() − better boosted"], rows)
