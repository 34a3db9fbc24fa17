"""Compute what the page shows: metrics, curve, extremes, queries, convergence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge.metrics import Estimate, per_query
from rankhinge.report.curve import thresholds

__all__ = ["Extreme", "Facts", "gather"]

# Rows in each of the two lists of extremes.
_EXTREMES = 12
_DIGITS = 4


@dataclass(frozen=True)
class Extreme:
    """A badly placed row: `misplaced` rows of the other kind are on its wrong side."""

    name: str
    query: str | None
    rank: int
    n_ranked: int
    label: float
    score: float
    misplaced: int
    row: int
    image: str | None = None


@dataclass(frozen=True)
class Facts:
    """All that the page shows."""

    title: str
    headline: dict[str, Estimate]
    confidence: float
    n_rows: int
    n_positives: int
    n_queries: int | None
    curve: dict[str, Any]
    lost: list[Extreme]
    intruders: list[Extreme]
    queries: dict[str, Any] | None
    convergence: dict[str, Any] | None
    provenance: dict[str, str] = field(default_factory=dict)


def gather(
    relevance: NDArray[Any],
    scores: NDArray[np.float64],
    *,
    title: str,
    headline: dict[str, Estimate],
    confidence: float = 0.95,
    qid: NDArray[Any] | None = None,
    names: Sequence[str] | None = None,
    image: Callable[[int], str | None] | None = None,
    own_threshold: float | None = None,
    options: Callable[[str], dict[str, Any]] = lambda metric: {},
    convergence: dict[str, Any] | None = None,
    provenance: dict[str, str] | None = None,
) -> Facts:
    """Compute what the page shows.

    Parameters
    ----------
    relevance, scores : ndarray of shape (n,)
    title : str
    headline : dict
        Metrics by name, with their intervals.
    confidence : float
        The level of the intervals.
    qid : ndarray of shape (n,), optional
    names : sequence of str, optional
        The names of the rows. Default: their numbers.
    image : callable, optional
        From the number of a row to a ``data:`` address of its image, or None.
    own_threshold : float, optional
        The model's own threshold.
    options : callable, optional
        Further arguments of a metric, by its name.
    convergence : dict, optional
        ``"gap"``, ``"primal"``, ``"dual"`` by iteration.
    provenance : dict, optional
        Facts about model, data and program.

    Returns
    -------
    Facts
    """
    relevant = np.asarray(relevance > 0)
    lost, intruders = _extremes(relevance, relevant, scores, qid, names, image)
    return Facts(
        title=title,
        headline=headline,
        confidence=confidence,
        n_rows=relevant.size,
        n_positives=int(np.count_nonzero(relevant)),
        n_queries=None if qid is None else int(np.unique(qid).size),
        curve=thresholds(relevant, scores, own_threshold),
        lost=lost,
        intruders=intruders,
        queries=None if qid is None else _by_query(relevance, relevant, scores, qid, list(headline), options),
        convergence=convergence,
        provenance=provenance or {},
    )


def _extremes(
    relevance: NDArray[Any],
    relevant: NDArray[np.bool_],
    scores: NDArray[np.float64],
    qid: NDArray[Any] | None,
    names: Sequence[str] | None,
    image: Callable[[int], str | None] | None,
) -> tuple[list[Extreme], list[Extreme]]:
    """Relevant rows with most others above them in their list, and others with most relevant rows below."""
    codes = np.zeros(scores.size, np.intp) if qid is None else np.unique(qid, return_inverse=True)[1].ravel()
    order = np.lexsort((-scores, codes))
    listed, hit = codes[order], relevant[order]
    starts = np.flatnonzero(np.append(True, listed[1:] != listed[:-1]))
    sizes = np.diff(np.append(starts, listed.size))
    first = np.repeat(starts, sizes)
    before = np.concatenate([[0], np.cumsum(hit)])
    hits_above = before[:-1] - before[first]
    hits_below = np.repeat(before[starts + sizes] - before[starts], sizes) - hits_above - hit
    rank = np.arange(listed.size) - first
    misplaced = np.where(hit, rank - hits_above, hits_below)

    def top(kind: NDArray[np.bool_]) -> list[Extreme]:
        places = np.flatnonzero(kind & (misplaced > 0))
        # Of as many misplaced rows, the one that is further from where it belongs in its list.
        places = places[np.lexsort((rank[places], -misplaced[places]))][:_EXTREMES]
        found = []
        for place in places.tolist():
            row = int(order[place])
            found.append(
                Extreme(
                    name=f"row {row + 1}" if names is None else str(names[row]),
                    query=None if qid is None else str(qid[row]),
                    rank=int(rank[place]) + 1,
                    n_ranked=int(sizes[listed[place]]),
                    # Some rounding leaves a zero with a sign.
                    label=float(relevance[row]) + 0.0,
                    score=float(scores[row]),
                    misplaced=int(misplaced[place]),
                    row=row,
                    image=None if image is None else image(row),
                )
            )
        return found

    return top(hit), top(~hit)


def _by_query(
    relevance: NDArray[Any],
    relevant: NDArray[np.bool_],
    scores: NDArray[np.float64],
    qid: NDArray[Any],
    metrics: list[str],
    options: Callable[[str], dict[str, Any]],
) -> dict[str, Any]:
    """Columns of the table of queries; a metric without a value is None."""
    columns: dict[str, Any] = {}
    queries = None
    for metric in metrics:
        queries, values = per_query(metric, relevance, scores, qid, no_positives="nan", **options(metric))
        columns[metric] = [None if np.isnan(value) else round(value, _DIGITS) for value in values.tolist()]
    assert queries is not None
    _, first, codes = np.unique(qid, return_index=True, return_inverse=True)
    codes = codes.ravel()
    by_appearance = np.argsort(first)
    n_rows = np.bincount(codes)[by_appearance]
    n_relevant = np.bincount(codes, weights=relevant)[by_appearance].astype(int)
    return {
        "names": [str(query) for query in queries.tolist()],
        "columns": {"rows": n_rows.tolist(), "relevant": n_relevant.tolist(), **columns},
    }
