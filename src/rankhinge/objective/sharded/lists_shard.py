"""A shard with many lists: those that lie in it are ranked here, of the others it holds a part.

A list that lies in several shards is *outside* all of them. Either its scores are fetched by the coordinator, or it is
spread: each level of it is a list part of its own, a *pair*, and counted where it lies.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge.features import ROW_BLOCK_ENTRIES, WeightedColumns, audit, feature_map
from rankhinge.inference.spread import sample_stride
from rankhinge.losses import RankingLoss
from rankhinge.objective.handles import Scores
from rankhinge.objective.logistic import LogisticLoss
from rankhinge.objective.ranking import RankingObjective
from rankhinge.objective.reductions import deviations
from rankhinge.objective.sharded.kernels import logistic
from rankhinge.objective.sharded.marks import row_sum
from rankhinge.objective.sharded.shard import Floats, Seen, Shard
from rankhinge.objective.variance import variances_within
from rankhinge.problems import Lists, graded_lists

__all__ = ["Layout", "ListsShard", "Outside", "OutsideLevel", "Rules"]

Indices = NDArray[np.int64]
_PROBLEM = np.zeros(1, np.int64)


class Rules(NamedTuple):
    """How labels, as indices into the grades, become lists; π of a list is its weight over `total`."""

    loss: RankingLoss
    gains: Floats
    level_weights: Floats | None
    total: float


class OutsideLevel(NamedTuple):
    """A level of a list outside: the number of its pair, the least label above it, what it weighs, P and N."""

    pair: int
    label: int
    weight: float
    n_positives: int
    n_negatives: int


class Outside(NamedTuple):
    """A list outside: its number in the directory, its code, whether it is spread, its samples, weight and levels."""

    number: int
    code: int
    is_spread: bool
    n_samples: int
    weight: float
    levels: tuple[OutsideLevel, ...]


class Layout(NamedTuple):
    """What the coordinator is shown of scores: of the fetched samples, list and label; of each pair P and a sample.

    `pairs` are rows (pair, positives here, negatives in the sample here).
    """

    lists: Indices
    labels: Indices
    pairs: Indices


class ListsShard(Shard):
    """Rows of X, their labels and their lists.

    Parameters
    ----------
    X : array or sparse array of shape (n, d)
    labels : ndarray of shape (n,), int
        Indices into the grades.
    codes : ndarray of shape (n,)
        Which list each row belongs to: any numbers that are equal for its rows.
    weights : ndarray of shape (n,), optional
        Of each row's list.
    outside : sequence of Outside
        Those lists outside that have rows here.
    rules : Rules
    first_row : int
    """

    def __init__(
        self,
        X: Any,
        labels: Indices,
        codes: NDArray[Any],
        weights: Floats | None,
        outside: tuple[Outside, ...],
        rules: Rules,
        first_row: int = 0,
    ) -> None:
        self._begin(X, labels.size, first_row)
        self._mark = row_sum(X, labels, codes, *(() if weights is None else (weights,)))
        self.rules, self._weights = rules, {level.pair: level.weight for mine in outside for level in mine.levels}
        self._rows = _rows_of(outside, codes)
        self.most, away = np.zeros(labels.size), np.zeros(labels.size, np.bool_)
        shown: list[Indices] = []
        samples: list[tuple[Indices, Indices, Indices]] = []
        rows: list[tuple[int, int, int]] = []
        for mine in outside:
            index = self._rows[mine.number]
            away[index] = True
            if not mine.is_spread:
                samples.append((index, np.full(index.size, mine.number), labels[index]))
            for level in mine.levels:
                inside = labels[index] >= level.label
                self.most[index] += 2.0 * level.weight / np.where(inside, level.n_positives, level.n_negatives)
                if mine.is_spread:
                    self._index[level.pair], self._inside[level.pair] = index, inside
                    if rules.loss.is_ranking:
                        shown += [index[inside], index[~inside][:: sample_stride(mine.n_samples)]]
                        rows.append((level.pair, shown[-2].size, shown[-1].size))
                    else:
                        # Nobody asks for the scores of its positives, which may be all.
                        rows.append((level.pair, 0, 0))
        fetched = [np.concatenate([part[place] for part in samples] or [np.zeros(0, np.int64)]) for place in range(3)]
        self._fetched = fetched[0]
        self._layout = Layout(fetched[1], fetched[2], np.array(rows, np.int64).reshape(-1, 3))
        self._positives = [np.concatenate([self._fetched, *shown])]
        self._sample = [np.zeros(0, np.int64)]
        self.lists = _local(labels, codes, weights, np.flatnonzero(~away), rules)
        if self.lists is not None:
            self.most += self.lists.most_changes(labels.size)
        self.forget()

    def forget(self) -> None:
        """Drop all scores and coefficients."""
        super().forget()
        self._own: RankingObjective | None = None
        self._logistic: dict[str, Any] = {}
        self._gradients: dict[tuple[str, int], Floats] = {}

    def marks(self, rows: Indices, problems: Indices) -> tuple[list[str], NDArray[np.uint64]]:
        """A checksum of all rows, labels and lists: rows may have been brought here, and have no numbers."""
        return [], np.array([self._mark])

    def layout(self) -> Layout:
        """What the coordinator is shown of scores."""
        return self._layout

    def _objective(self) -> RankingObjective | None:
        """Of the lists that lie here."""
        if self._own is None and self.lists is not None:
            self._own = RankingObjective(self.features, [self.lists], self.rules.loss)
        return self._own

    # Coefficients: those of the lists that lie here first, what belongs to lists outside is added to them.

    def whole(
        self,
        name: str,
        scores: str,
        method: str,
        less: str | None,
        ahead: str | None,
        fetched: Floats,
    ) -> tuple[float, float, float]:
        """J or what else the method of an objective finds, Δ, and ``u · a``, of the lists that lie here; writes u.

        u of another name is subtracted from it; `fetched` are the coefficients of the fetched samples.
        """
        row, own = self.arrays[scores], self._objective()
        value = loss = 0.0
        u = np.zeros((1, self.n_samples))
        if own is not None:
            found = getattr(own, method)(Scores(row, _PROBLEM))
            value, loss, u = float(found.value[0]), float(found.loss[0]), found.coefficients.values
        u[0, self._fetched] = fetched
        if less is not None:
            u -= self.arrays[less]
        self.arrays[name] = u
        return value, loss, 0.0 if ahead is None else float(u[0] @ self.arrays[ahead][0])

    def _put(self, name: str, place: int, problem: int, u: Floats, ahead: tuple[str, int] | None = None) -> float:
        """Add the coefficients of a pair, by its weight."""
        index, weight = self._index[problem], self._weights[problem]
        self.arrays[name][place][index] += weight * u
        return 0.0 if ahead is None else weight * float(u @ self.arrays[ahead[0]][ahead[1]][index])

    def whole_logistic(self, name: str, scores: str, key: str, n_lists: int, fetched: Floats) -> float:
        """The logistic loss of the lists that lie here; `key` names the function, which remembers intercepts."""
        row, total = self.arrays[scores][0], 0.0
        u = np.zeros((1, self.n_samples))
        if self.lists is not None:
            if key not in self._logistic:
                self._logistic = {key: LogisticLoss([self.lists])}
            # There, a list's weight is taken times the number of lists here.
            factor = n_lists / self.lists.n_lists
            total = factor * self._logistic[key](0, row, u[0])[0]
            u *= factor
        u[0, self._fetched] = fetched
        self.arrays[name] = u
        return total

    def logistic(
        self, scores: str, row: int, problem: int, intercept: float, name: str, n_columns: int, place: int
    ) -> Floats:
        """The same of a pair, at an intercept; its gradient is kept until it is added."""
        values = self._of(scores, row, problem)
        u = self._gradients.setdefault((name, problem), np.empty(values.size))
        found: Floats = logistic(values, self._inside[problem], intercept, u)
        return found

    def add_gradient(self, name: str, problem: int, factor: float) -> None:
        """Add what the last call of `logistic` has found."""
        self._put(name, 0, problem, factor * self._gradients.pop((name, problem)))

    # Reductions.

    def deviations(self, scores: str) -> tuple[float, float]:
        """``Σ (s - mean of its list)²`` over the lists that lie here, and their largest size of a score."""
        if self.lists is None:
            return 0.0, 0.0
        values = self.arrays[scores][0]
        away = deviations(self.lists, values)
        return float(away @ away), float(np.max(np.abs(self.lists.gather(values))))

    def within(self) -> tuple[Floats, dict[int, tuple[int, Floats]]]:
        """Squares of the features about the means of their lists, summed; of lists outside number and sums here."""
        totals = np.zeros(self.features.n_features)
        parts = [rows for rows in self._rows.values() if rows.size]
        offsets = np.cumsum([0, *(rows.size for rows in parts)])
        outside = Lists(np.concatenate([*parts, np.zeros(0, np.int64)]), offsets, (), np.ones(len(parts)))
        for lists in (self.lists, outside):
            if lists is not None and lists.n_lists:
                totals += variances_within(self.features, lists) * int(lists.offsets[-1])
        return totals, {number: (rows.size, self._sums(rows)) for number, rows in self._rows.items()}

    def _sums(self, rows: Indices) -> Floats:
        total, step = np.zeros(self.features.n_features), max(1, ROW_BLOCK_ENTRIES // max(1, self.features.n_features))
        for start in range(0, rows.size, step):
            total += self.features.rows(rows[start : start + step]).sum(axis=0)
        return total

    def audit_lists(
        self, name: str, weights: Floats, inner: Floats, factors: Floats | None, times: float
    ) -> tuple[list[Seen], float, float]:
        """Scores anew, and ``Σ L (|X||w|)`` and ``Σ L |x|``, with L ``times`` what a score changes at most."""
        size = slope = 0.0
        self.arrays[name] = np.zeros((1, self.n_samples))
        if self.n_samples:
            features = self.features if factors is None else feature_map(WeightedColumns(self.X, factors))
            found = audit(features, weights)
            self.arrays[name] = self.features.scores(inner)
            size, slope = times * float(self.most @ found.sizes[0]), times * float(self.most @ found.lengths)
        row = self.arrays[name][0]
        return [Seen(row[self._positives[0]], row[self._sample[0]])], size, slope


def _rows_of(outside: tuple[Outside, ...], codes: NDArray[Any]) -> dict[int, Indices]:
    """The rows of each list outside, ascending: by one sort, as there may be thousands of lists."""
    wanted = np.array([mine.code for mine in outside], codes.dtype)
    rows = np.flatnonzero(np.isin(codes, wanted))
    rows = rows[np.argsort(codes[rows], kind="stable")]
    begins, ends = (np.searchsorted(codes[rows], wanted, side=side) for side in ("left", "right"))
    return {mine.number: rows[begin:end] for mine, begin, end in zip(outside, begins, ends, strict=True)}


def _local(labels: Indices, codes: NDArray[Any], weights: Floats | None, own: Indices, rules: Rules) -> Lists | None:
    """The lists of some rows; None if none of them is usable."""
    if own.size == 0:
        return None
    compact = np.unique(codes[own], return_inverse=True)[1]
    of_lists = None
    if weights is not None:
        of_lists = np.empty(int(compact.max()) + 1)
        of_lists[compact] = weights[own]
    lists = graded_lists(
        labels[own], compact, rules.loss, rules.gains, rules.level_weights, of_lists, total=rules.total
    )
    if lists.n_lists == 0:
        return None
    if own.size == labels.size:
        return lists
    return replace(lists, index=own if lists.index is None else own[lists.index])
