"""What the coordinator of many lists knows before it asks: counts of all that are usable, and the lists outside."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge.objective.reductions import Counts
from rankhinge.objective.sharded.lists_shard import Outside, OutsideLevel, Rules
from rankhinge.problems.directory import Directory, LevelTable, Places

__all__ = ["Outline", "counts_of", "outside_of", "parts_of"]


class Outline(NamedTuple):
    """Sizes, `counts` of the lists that are usable, those outside, and how lists are made."""

    n_samples: int
    n_features: int
    n_entries: int
    counts: Counts
    outside: tuple[Outside, ...]
    rules: Rules


def counts_of(directory: Directory, table: LevelTable) -> Counts:
    """Samples and positives of all usable lists, negatives of a list on average, and how many there are."""
    n_positives = np.bincount(table.rank, table.n_positives)[np.bincount(table.rank, table.weights) > 0]
    return Counts(
        np.array([int(directory.sizes[table.usable].sum())]),
        np.array([int(n_positives.max())]),
        np.array([float(table.weights @ table.n_negatives) / float(table.weights.sum())]),
        np.array([int(table.usable.sum())]),
    )


def outside_of(directory: Directory, table: LevelTable, places: Places, codes: NDArray[Any]) -> tuple[Outside, ...]:
    """The lists that lie in several parts and stay there; `codes` (Q,) are what parts know lists by."""
    begins, found, pair = np.searchsorted(table.lists, np.arange(directory.sizes.size + 1)), [], 0
    for k in np.flatnonzero(places.fetched | places.spread).tolist():
        levels = []
        for place in range(begins[k], begins[k + 1]):
            if table.weights[place] > 0:
                p, n = int(table.n_positives[place]), int(table.n_negatives[place])
                levels.append(OutsideLevel(pair, int(table.label[place]), float(table.weights[place]), p, n))
                pair += 1
        weight = 1.0 if directory.weights is None else float(directory.weights[k])
        found.append(Outside(k, int(codes[k]), bool(places.spread[k]), int(directory.sizes[k]), weight, tuple(levels)))
    return tuple(found)


def parts_of(outside: Sequence[Outside], directory: Directory) -> list[tuple[Outside, ...]]:
    """For each part those of the lists outside that have samples there."""
    by_number = {mine.number: mine for mine in outside}
    away = np.zeros(directory.sizes.size, np.bool_)
    away[list(by_number)] = True
    return [tuple(by_number[k] for k in np.sort(numbers[away[numbers]]).tolist()) for numbers in directory.parts]
