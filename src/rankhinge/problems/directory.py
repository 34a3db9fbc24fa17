"""The directory of lists whose samples lie in several parts: how many samples of each label every list has, and where.

It is made of one pass over queries and labels. The levels of each list and their weights follow from it, as
`rankhinge.problems.grading` has them for samples; so does what has to be done about lists that lie in several parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankhinge._validation import QueryIds, as_numbers, encode_queries
from rankhinge.losses import RankingLoss
from rankhinge.problems.gains import Grades, check_relevance
from rankhinge.problems.grading import MOST_LEVELS, ListGrades, grade_weights, tells_something

__all__ = ["Directory", "Entries", "LevelTable", "Places", "directory_of", "entries_of", "levels_of", "places_of"]

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class Entries(NamedTuple):
    """The lists of one part: their queries, and how many samples of each label they have here.

    Attributes
    ----------
    queries : ndarray of shape (q,)
    labels : ndarray of shape (g,)
        The different labels, ascending.
    lists, label, counts : ndarray of shape (e,)
        Indices into `queries` and `labels`, and the number of samples with both.
    least, most : ndarray of shape (q,), optional
        The weights that the samples of each list say it has.
    """

    queries: NDArray[Any]
    labels: Floats
    lists: Indices
    label: Indices
    counts: Indices
    least: Floats | None
    most: Floats | None


def entries_of(y: ArrayLike, qid: QueryIds | None, weights: ArrayLike | None = None) -> Entries:
    """Look at the labels, queries and weights of the samples of a part."""
    labels = as_numbers(y, "y")
    if labels.ndim != 1:
        raise ValueError(f"y must be one-dimensional, its shape is {labels.shape}")
    check_relevance(labels)
    queries, codes = np.zeros(1 if labels.size else 0, np.int64), np.zeros(labels.size, np.intp)
    if qid is not None:
        queries, codes = encode_queries(qid, labels.size, counted="y")
    different, which = np.unique(labels, return_inverse=True)
    pairs, count = np.unique(codes * max(1, different.size) + which, return_counts=True)
    lists, label = np.divmod(pairs, max(1, different.size))
    least = most = None
    if weights is not None:
        rows = as_numbers(weights, "query_weight")
        if rows.shape != labels.shape:
            raise ValueError(f"query_weight has shape {rows.shape}, but there are {labels.size} rows")
        least, most = np.full(queries.size, np.inf), np.full(queries.size, -np.inf)
        np.minimum.at(least, codes, rows)
        np.maximum.at(most, codes, rows)
    return Entries(queries, different, lists, label, count, least, most)


class Directory(NamedTuple):
    """All lists: queries (Q,), sizes (Q,), labels (g,), the entries of all, by list and label, and where they lie.

    ``parts[p]`` are the numbers of the lists that have samples in part p, in the order of its own queries; ``rows[p]``
    are how many. `weights` (Q,), in units of the largest, are None if all lists weigh the same.
    """

    queries: NDArray[Any]
    sizes: Indices
    labels: Floats
    lists: Indices
    label: Indices
    counts: Indices
    parts: list[Indices]
    rows: list[Indices]
    weights: Floats | None
    unit: float = 1.0


def directory_of(entries: Sequence[Entries]) -> Directory:
    """The directory of all parts together."""
    queries, codes = encode_queries(_joined([part.queries for part in entries]), sum(p.queries.size for p in entries))
    bounds = np.cumsum([part.queries.size for part in entries])[:-1]
    parts = [numbers.astype(np.int64) for numbers in np.split(codes, bounds)]
    labels = np.unique(np.concatenate([part.labels for part in entries]))
    width = max(1, labels.size)
    keys = [
        mine[part.lists] * width + np.searchsorted(labels, part.labels)[part.label]
        for part, mine in zip(entries, parts, strict=True)
    ]
    pairs, place = np.unique(np.concatenate(keys), return_inverse=True)
    count = np.bincount(place, np.concatenate([part.counts for part in entries]), pairs.size).astype(np.int64)
    lists, label = np.divmod(pairs, width)
    sizes = np.bincount(lists, count, queries.size).astype(np.int64)
    rows = [np.bincount(p.lists, p.counts, p.queries.size).astype(np.int64) for p in entries]
    weights = _weights(entries, queries, parts)
    # By the largest: a sum of large weights may overflow.
    unit = 1.0 if weights is None else max(float(weights.max(initial=0.0)), np.finfo(float).tiny)
    weights = None if weights is None else weights / unit
    return Directory(queries, sizes, labels, lists, label, count, parts, rows, weights, unit)


def _joined(queries: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """All queries, as objects if not all parts have arrays of one kind: numbers stay what they are."""
    kinds = {part.dtype.kind for part in queries if part.size}
    if len(kinds) > 1:
        queries = [part.astype(object) for part in queries]
    return np.concatenate([part for part in queries if part.size] or [np.zeros(0, np.int64)])


def _weights(entries: Sequence[Entries], queries: NDArray[Any], parts: Sequence[Indices]) -> Floats | None:
    if not any(part.least is not None for part in entries):
        return None
    least, most = np.full(queries.size, np.inf), np.full(queries.size, -np.inf)
    for part, mine in zip(entries, parts, strict=True):
        if part.least is not None and part.most is not None:
            np.minimum.at(least, mine, part.least)
            np.maximum.at(most, mine, part.most)
    for k in np.flatnonzero(~(np.isfinite(least) & np.isfinite(most) & (least >= 0)))[:1]:
        raise ValueError(f"the weight of query {queries[k]} is {least[k]:g}: it must be finite and ≥ 0")
    for k in np.flatnonzero(least != most)[:1]:
        raise ValueError(f"query_weight of query {queries[k]} is {least[k]:g} in one row and {most[k]:g} in another")
    return least


class LevelTable(NamedTuple):
    """Levels of the usable lists, by list: the threshold's index into the grades, P and N of it, and what it weighs.

    ``usable`` (Q,) says which lists are; `n_unusable` are those without samples of different relevance. π of a usable
    list is its weight, or 1, over `total`.
    """

    lists: Indices
    rank: Indices
    label: Indices
    n_positives: Indices
    n_negatives: Indices
    weights: Floats
    usable: NDArray[np.bool_]
    n_unusable: int
    total: float


def levels_of(
    directory: Directory, grade_of_label: Indices, grades: Grades, loss: RankingLoss, level_weights: Floats | None
) -> LevelTable:
    """The levels of all lists; `grade_of_label` (g,) says which grade the directory's labels have."""
    n_lists, sizes = directory.sizes.size, directory.sizes
    # Labels may share a grade.
    keys, place = np.unique(directory.lists * grades.gains.size + grade_of_label[directory.label], return_inverse=True)
    count = np.bincount(place, directory.counts, keys.size).astype(np.int64)
    lists, label = np.divmod(keys, grades.gains.size)
    begins = np.searchsorted(lists, np.arange(n_lists + 1))
    has_both = tells_something(label[begins[:-1]], label[begins[1:] - 1], grades.gains, level_weights)
    share = np.ones(n_lists) if directory.weights is None else directory.weights
    usable = has_both & (share > 0)
    total = float(share[usable].sum())
    kept = usable[lists]
    n_above = np.cumsum(count[::-1])[::-1]
    reached = n_above - np.append(n_above, 0)[begins[lists + 1]]
    rank = np.arange(lists.size) - begins[lists]
    below = np.where(rank > 0, np.roll(label, 1), 0)
    own, rank = lists[kept], rank[kept]
    compact = np.cumsum(usable)[own] - 1
    found = ListGrades(compact, rank, label[kept], below[kept], reached[kept], np.zeros(0, np.int64))
    weights = grade_weights(found, sizes[usable], loss, grades.gains, level_weights) * (share[own] / total)
    if rank.size and rank.max() >= MOST_LEVELS:
        raise ValueError(
            f"y has {rank.max() + 1} different grades in one list, each of which is a ranking problem of its own: "
            f"round it to at most {MOST_LEVELS}"
        )
    level = rank >= (1 if loss.is_ranking else 0)
    n_positives = reached[kept][level]
    return LevelTable(
        own[level],
        rank[level],
        label[kept][level],
        n_positives,
        sizes[own[level]] - n_positives,
        weights[level],
        usable,
        int(n_lists - has_both.sum()),
        total,
    )


class Places(NamedTuple):
    """How lists that lie in several parts are handled, (Q,) each.

    The scores of those that are `fetched` go to the coordinator. Those that are `spread` are counted where they lie.
    Those that are `moved` are brought together, each in one part.
    """

    fetched: NDArray[np.bool_]
    spread: NDArray[np.bool_]
    moved: NDArray[np.bool_]


def places_of(directory: Directory, usable: NDArray[np.bool_], longest: int, most_fetched: int) -> Places:
    """Decide how each list is handled.

    Lists of more than `longest` samples stay spread. Of the others nothing moves where queries are sorted, or nearly:
    then fewer lists are cut than there are parts. Their scores are fetched, up to `most_fetched` in all.
    """
    n_parts = np.bincount(np.concatenate(directory.parts), minlength=usable.size)
    cut = usable & (n_parts > 1)
    short = cut & (directory.sizes <= longest)
    order = np.flatnonzero(short)[np.argsort(directory.sizes[short], kind="stable")]
    fetched = np.zeros(usable.size, np.bool_)
    fetched[order[np.cumsum(directory.sizes[order]) <= most_fetched]] = True
    is_sorted = int((n_parts[cut] - 1).sum()) < len(directory.parts)
    if is_sorted or bool(np.all(fetched[short])):
        return Places(fetched, cut & ~fetched, np.zeros_like(cut))
    return Places(np.zeros_like(cut), cut & ~short, short)
