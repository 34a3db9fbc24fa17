"""A shard: some rows of X, which of them are relevant to which problem, and the scores and coefficients of these rows.

It knows nothing of the loss, nor of other shards. Scores and coefficients have names, and a row for each column that
the coordinator asked for. Every operation with a name for its result can be repeated.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge.features import WeightedColumns, audit, feature_map
from rankhinge.inference.passes import CHUNK
from rankhinge.inference.spread import Count, Counts, Finish, ListPart, Refine, Ship, Shipped, Top, TopCounts
from rankhinge.inference.zero_one import hinge
from rankhinge.objective.sharded.kernels import log_likelihood, logistic
from rankhinge.objective.sharded.marks import digests, label_sums
from rankhinge.objective.sharded.moments import squares_about

__all__ = ["Seen", "Shard"]

Floats = NDArray[np.float64]


class Seen(NamedTuple):
    """What the coordinator sees of scores: those of the positives, and of the negatives in the sample."""

    positives: Floats
    sample: Floats


class Shard:
    """Rows of X and their labels.

    Parameters
    ----------
    X : array or sparse array of shape (n, d)
    relevant : ndarray of shape (K, n), bool
    labelled : ndarray of shape (K, n), bool, optional
        Which rows belong to each problem; default: all.
    first_row : int
        The number of the first row in the whole.
    stride : int
        Rows whose number in the whole is a multiple belong to the sample.
    """

    def __init__(
        self,
        X: Any,
        relevant: NDArray[np.bool_],
        labelled: NDArray[np.bool_] | None = None,
        first_row: int = 0,
        stride: int = 1,
    ) -> None:
        K, n = relevant.shape
        self._begin(X, n, first_row)
        known = np.ones((K, n), np.bool_) if labelled is None else labelled
        self._index |= {k: None if labelled is None else np.flatnonzero(known[k]) for k in range(K)}
        self._inside |= {k: relevant[k] if i is None else relevant[k][i] for k, i in self._index.items()}
        self._positives = [np.flatnonzero(relevant[k] & known[k]) for k in range(K)]
        in_sample = (first_row + np.arange(n)) % stride == 0
        self._sample = [np.flatnonzero(in_sample & known[k] & ~relevant[k]) for k in range(K)]

    def _begin(self, X: Any, n_samples: int, first_row: int) -> None:
        """What all shards have; samples of problem k are `_index[k]`, None: all, and `_inside[k]` says their labels."""
        self.X, self.features, self.n_samples, self.first_row = X, feature_map(X), n_samples, first_row
        self._index: dict[int, NDArray[np.int64] | None] = {}
        self._inside: dict[int, NDArray[np.bool_]] = {}
        self.arrays: dict[str, Floats] = {}
        self._talks: dict[str, tuple[ListPart, int, str, int]] = {}

    def forget(self) -> None:
        """Drop all scores and coefficients."""
        self.arrays.clear()
        self._talks.clear()

    def n_bytes(self) -> int:
        """What the rows take, and the scores that a fit keeps."""
        rows = (
            sum(part.nbytes for part in (self.X.data, self.X.indices, self.X.indptr))
            if hasattr(self.X, "indptr")
            else self.X.nbytes
        )
        places = sum(index.nbytes for index in self._index.values() if index is not None)
        return int(rows) + places + sum(flags.nbytes for flags in self._inside.values()) + 6 * 8 * self.n_samples

    def layout(self) -> Any:
        """How many positives, how many negatives in the sample, and how many samples each problem has here."""
        groups: Any = self._positives, self._sample, self._inside.values()
        return tuple(np.array([part.size for part in group]) for group in groups)

    def marks(self, rows: NDArray[np.int64], problems: NDArray[np.int64]) -> tuple[list[str], NDArray[np.uint64]]:
        """Checksums of the rows with these numbers in the whole, as far as they are here, and of the labels."""
        mine = rows[(rows >= self.first_row) & (rows < self.first_row + self.n_samples)] - self.first_row
        groups = [self._positives[k] for k in problems]
        groups += [self._index[k] for k in problems if self._index[k] is not None]
        found = digests(self.features.rows(mine)) if mine.size else []
        return found, label_sums(self.first_row, self.n_samples, groups)

    # Scores and coefficients.

    def score(self, name: str, weights: Floats, problems: NDArray[np.int64]) -> list[Seen]:
        """``(X W)ᵀ``, kept, and what the coordinator sees of it."""
        self.arrays[name] = self.features.scores(weights) if self.n_samples else np.zeros((problems.size, 0))
        rows = zip(self.arrays[name], problems.tolist(), strict=True)
        return [Seen(row[self._positives[k]], row[self._sample[k]]) for row, k in rows]

    def zeros(self, name: str, n_columns: int) -> None:
        """Scores of the weights 0."""
        self.arrays[name] = np.zeros((n_columns, self.n_samples))

    def along(self, name: str, scores: str, ahead: str, steps: Floats) -> None:
        """``scores + steps * ahead``."""
        moved = self.arrays[ahead] * steps[:, None]
        moved += self.arrays[scores]
        self.arrays[name] = moved

    def select(self, name: str, source: str, places: NDArray[np.int64]) -> None:
        """Some rows."""
        self.arrays[name] = self.arrays[source][places]

    def join(self, name: str, sources: list[str]) -> None:
        """The rows of several, one after the other."""
        self.arrays[name] = np.concatenate([self.arrays[source] for source in sources])

    def drop(self, names: list[str]) -> None:
        """Forget."""
        for name in names:
            self.arrays.pop(name, None)

    def adjoint(self, name: str) -> Floats:
        """``Xᵀ Uᵀ`` of these rows, (d, m)."""
        u = self.arrays[name]
        return self.features.adjoint(u) if self.n_samples else np.zeros((self.features.n_features, len(u)))

    def dots(self, coefficients: str, scores: str) -> Floats:
        """``u · s``, row by row."""
        pairs = zip(self.arrays[coefficients], self.arrays[scores], strict=True)
        return np.array([u @ s for u, s in pairs])

    # Inference on one list. Each of the inferences under way has a token.

    def begin(self, token: str, scores: str, row: int, problem: int, name: str, n_columns: int, place: int) -> None:
        """Scores of a problem are going to be ranked; u goes to a row of `name`."""
        if name not in self.arrays:
            self.arrays[name] = np.zeros((n_columns, self.n_samples))
        index, values, u = self._index[problem], self.arrays[scores][row], self.arrays[name][place]
        if index is not None:
            values, u = values[index], np.zeros(index.size)
        self._talks[token] = ListPart(values, self._inside[problem], u), problem, name, place

    def count(self, token: str, request: Count) -> Counts:
        """Negatives by bucket."""
        return self._talks[token][0].count(request)

    def top(self, token: str, request: Top) -> TopCounts:
        """The best negatives."""
        return self._talks[token][0].top(request)

    def refine(self, token: str, request: Refine) -> Counts:
        """What is left by finer bucket."""
        return self._talks[token][0].refine(request)

    def ship(self, token: str, request: Ship) -> Shipped:
        """What is left."""
        return self._talks[token][0].ship(request)

    def finish(
        self,
        token: str,
        request: Finish,
        less: tuple[str, int] | None,
        ahead: tuple[str, int] | None,
        sign: float,
        shipped: Floats | None,
        positives: Floats,
        ranked: Floats | None,
    ) -> tuple[float, float]:
        """Write u, less a row of other coefficients, times a sign; its ``Σ u (s - centre)``, and ``u · a``.

        a is a row of scores.
        """
        part, problem, name, place = self._talks.pop(token)
        own, index = None if less is None else self.arrays[less[0]][less[1]], self._index[problem]
        request = request._replace(
            shipped=None if shipped is None else [shipped],
            positives=[positives],
            ranked=None if ranked is None else [ranked],
        )
        total = part.finish(request, 0, own if own is None or index is None else own[index])
        if sign != 1.0:
            part.coefficients *= sign
        return sign * total, self._put(name, place, problem, part.coefficients, ahead)

    def _put(self, name: str, place: int, problem: int, u: Floats, ahead: tuple[str, int] | None = None) -> float:
        """Write the coefficients of a problem's samples; ``u · a`` with a row of scores."""
        row, index = self.arrays[name][place], self._index[problem]
        if index is not None:
            row[:] = 0.0
            row[index] = u
        elif not np.may_share_memory(u, row):
            row[:] = u
        return 0.0 if ahead is None else float(row @ self.arrays[ahead[0]][ahead[1]])

    def hinge(
        self,
        scores: str,
        row: int,
        problem: int,
        n_samples: int,
        name: str,
        n_columns: int,
        place: int,
        ahead: tuple[str, int] | None,
    ) -> tuple[float, int, bool, float]:
        """The sum of the hinges of a binary SVM, the samples within the margin, and whether a score is not usable."""
        if name not in self.arrays:
            self.arrays[name] = np.zeros((n_columns, self.n_samples))
        index, values = self._index[problem], self.arrays[scores][row]
        values = values if index is None else values[index]
        u, n_chunks = np.empty(values.size), -(-values.size // CHUNK)
        sums, margins = np.zeros(n_chunks), np.zeros(n_chunks, np.int64)
        bad = hinge(values, self._inside[problem], n_samples, u, sums, margins) >= 0
        return float(sums.sum()), int(margins.sum()), bool(bad), self._put(name, place, problem, u, ahead)

    def logistic(
        self, scores: str, row: int, problem: int, intercept: float, name: str, n_columns: int, place: int
    ) -> Floats:
        """Loss, Σ p, Σ p (1 - p) at an intercept, least and greatest score; writes the gradient in the scores."""
        if name not in self.arrays:
            self.arrays[name] = np.zeros((n_columns, self.n_samples))
        values = self._of(scores, row, problem)
        u = np.empty(values.size)
        found: Floats = logistic(values, self._inside[problem], intercept, u)
        self._put(name, place, problem, u)
        return found

    # Reductions.

    def moments(self, scores: str, row: int, problem: int, centre: float) -> Floats:
        """``Σ (s - c)``, ``Σ (s - c)²``, and the largest size of a score."""
        values = self._of(scores, row, problem)
        away = values - centre
        return np.array([away.sum(), away @ away, np.max(np.abs(values), initial=0.0)])

    def largest(self, scores: str) -> Floats:
        """The largest size of a score in each row."""
        found: Floats = np.max(np.abs(self.arrays[scores]), axis=1, initial=0.0)
        return found

    def variances(self, problem: int | None) -> tuple[int, Floats, Floats]:
        """Number of rows of a problem (None: all rows), the means of the features, and ``Σ (x - mean)²``."""
        d, index = self.features.n_features, None if problem is None else self._index[problem]
        n = self.n_samples if index is None else index.size
        if n == 0:
            return 0, np.zeros(d), np.zeros(d)
        ones = np.zeros((1, self.n_samples))
        ones[0, slice(None) if index is None else index] = 1.0 / n
        means = self.features.adjoint(ones)[:, 0]
        return n, means, squares_about(self.features, means, index)

    def apart(self, coefficients: str, seed: int) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
        """Slopes of the positive and of the negative coefficients, their sizes, and which columns are in use."""
        u = self.arrays[coefficients]
        m, d = len(u), self.features.n_features
        if self.n_samples == 0:
            return np.zeros((d, m)), np.zeros((d, m)), np.zeros(m), np.zeros(d, np.bool_)
        # A combination of all rows shows which columns are empty; by the number of the row: it is the same anywhere.
        rows = np.random.default_rng([seed, self.first_row]).uniform(1.0, 2.0, (1, self.n_samples))
        slopes = self.features.adjoint(np.concatenate([np.maximum(u, 0.0), np.minimum(u, 0.0), rows]))
        return slopes[:, :m], slopes[:, m:-1], np.abs(u).sum(axis=1), slopes[:, -1] != 0.0

    def audit(
        self,
        name: str,
        weights: Floats,
        inner: Floats,
        problems: NDArray[np.int64],
        factors: Floats | None,
        most: Floats,
    ) -> tuple[list[Seen], Floats, Floats]:
        """Scores anew, and ``Σ L (|X||w|)`` and ``Σ L |x|`` by column; ``most[c]`` are L of negatives and positives."""
        m = problems.size
        sizes, slopes = np.zeros(m), np.zeros(m)
        if self.n_samples == 0:
            self.arrays[name] = np.zeros((m, 0))
        else:
            features = self.features if factors is None else feature_map(WeightedColumns(self.X, factors))
            found = audit(features, weights)
            self.arrays[name] = self.features.scores(inner)
            for c, k in enumerate(problems):
                index = slice(None) if self._index[k] is None else self._index[k]
                changes = np.where(self._inside[k], most[c, 1], most[c, 0])
                sizes[c], slopes[c] = changes @ found.sizes[c][index], changes @ found.lengths[index]
        rows = zip(self.arrays[name], problems.tolist(), strict=True)
        return [Seen(row[self._positives[k]], row[self._sample[k]]) for row, k in rows], sizes, slopes

    def ranked(self, scores: str, row: int, problem: int, positives: Floats) -> Counts:
        """Negatives by the numbers of the positives (descending) that are at least as large."""
        values = self._of(scores, row, problem)[~self._inside[problem]]
        n_above = np.searchsorted(-positives, -values, side="right")
        counts = np.bincount(n_above, minlength=positives.size + 1)
        return Counts(counts, np.zeros(0), np.zeros(0))

    def following(self, scores: str, row: int, problem: int, values: Floats) -> Floats:
        """For each of the values (ascending) the largest score below it; -inf if there is none."""
        mine = np.sort(self._of(scores, row, problem))
        place = np.searchsorted(mine, values, side="left")
        return np.append(-np.inf, mine)[place]

    def likelihood(self, scores: str, row: int, problem: int, point: Floats, targets: Floats) -> Floats:
        """Of the sigmoid of ``point · ((s - c) / spread, 1)``: loss, gradient and curvature.

        `point` is (slope, offset, c, spread), `targets` are those of a negative and of a positive.
        """
        return log_likelihood(self._of(scores, row, problem), self._inside[problem], point, targets)

    def _of(self, scores: str, row: int, problem: int) -> Floats:
        index, values = self._index[problem], self.arrays[scores][row]
        return values if index is None else values[index]
