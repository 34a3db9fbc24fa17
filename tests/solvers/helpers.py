"""An objective for the tests of the solvers, which do without the other rooms.

AP hinge over lists, inference by the table of all interleaving ranks, O(PN). It counts its passes.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np

from rankhinge import solvers

# "rounds": the bundle solver as it is with many features, without an opening by quasi-Newton steps.
VARIANTS = {**{name: (name, {}) for name in solvers.SOLVERS}, "rounds": ("bundle", {"opening": False})}


def make_solver(variant, *arguments, **options):
    name, more = VARIANTS.get(variant, (variant, {}))
    return solvers.make_solver(name, *arguments, **more, **options)


class Scores(NamedTuple):
    values: np.ndarray  # (m, n)
    problems: np.ndarray


class Span(NamedTuple):
    values: np.ndarray  # (m, T, n)
    problems: np.ndarray


class Evaluation(NamedTuple):
    value: np.ndarray
    loss: np.ndarray
    coefficients: Scores | None


def tied_mean(values, u):
    """Samples of equal score share their coefficients."""
    _, group = np.unique(values, return_inverse=True)
    return (np.bincount(group, u) / np.bincount(group))[group]


def ap_hinge(scores, relevant):
    """Value, loss and coefficients of the most violating ranking for AP."""
    p_index, n_index = np.flatnonzero(relevant), np.flatnonzero(~relevant)
    P, N = p_index.size, n_index.size
    if P == 0 or N == 0:
        return 0.0, 0.0, np.zeros(scores.size)
    scores = scores - scores.mean()
    p_index = p_index[np.argsort(-scores[p_index], kind="stable")]
    n_index = n_index[np.argsort(-scores[n_index], kind="stable")]
    i, j = np.arange(1, P + 1)[None, :], np.arange(1, N + 1)[:, None]
    steps = 2 * (scores[p_index][None, :] - scores[n_index][:, None]) / (P * N)
    steps = steps - i / ((i + j) * (i + j - 1.0)) / P
    f = np.concatenate([np.zeros((N, 1)), np.cumsum(steps, axis=1)], axis=1)
    rank = P + 1 - np.argmax(f[:, ::-1], axis=1)
    above = np.array([(rank <= k).sum() for k in range(1, P + 1)])
    loss = float(np.mean(above / (np.arange(1, P + 1) + above)))
    u = np.zeros(scores.size)
    u[p_index] = tied_mean(scores[p_index], -2.0 * above / (P * N))
    u[n_index] = tied_mean(scores[n_index], 2.0 * (P + 1 - rank) / (P * N))
    return loss + float(u @ scores), loss, u


class ListsObjective:
    """``J_k = mean over the lists of the AP hinge``; column k of `labels` is problem k."""

    def __init__(self, X, labels, lists=None):
        self.X = np.asarray(X, dtype=np.float64)
        self.labels = np.asarray(labels, dtype=bool).reshape(self.X.shape[0], -1)
        n = self.X.shape[0]
        self.lists = [np.arange(n)] if lists is None else [np.asarray(part) for part in lists]
        self.n_samples, self.n_features = self.X.shape
        self.width = float(self.n_features)
        self.n_problems = self.labels.shape[1]
        self.passes = self.inferences = 0

    def score(self, weights, problems):
        self.passes += 1
        return Scores((self.X @ weights).T.copy(), np.asarray(problems))

    def zeros(self, problems):
        return Scores(np.zeros((len(problems), self.n_samples)), np.asarray(problems))

    def along(self, scores, ahead, steps):
        return Scores(scores.values + np.diag(steps) @ ahead.values, scores.problems)

    def span(self, scores, capacity):
        return Span(scores.values[:, None, :], scores.problems)

    def mix(self, span, coordinates):
        return Scores(np.einsum("ct,ctn->cn", coordinates, span.values), span.problems)

    def slopes(self, coefficients, span):
        return np.einsum("ctn,cn->ct", span.values, coefficients.values)

    def widen(self, span, scores):
        new = scores.values.reshape(len(span.problems), -1, self.n_samples)
        return Span(np.concatenate([span.values, new], axis=1), span.problems)

    def narrow(self, span, weights):
        t = weights.shape[1]
        first = np.einsum("ct,ctn->cn", weights, span.values[:, :t])
        return Span(np.concatenate([first[:, None], span.values[:, t:]], axis=1), span.problems)

    def select(self, handle, places):
        return type(handle)(handle.values[places], handle.problems[places])

    def join(self, handles):
        return Scores(
            np.concatenate([h.values for h in handles]),
            np.concatenate([h.problems for h in handles]),
        )

    def evaluate(self, scores, coefficients=True):
        value, loss = np.zeros(len(scores.problems)), np.zeros(len(scores.problems))
        u = np.zeros_like(scores.values)
        for c, k in enumerate(scores.problems):
            for part in self.lists:
                self.inferences += 1
                v, b, found = self.hinge(scores.values[c, part], self.labels[part, k])
                value[c] += v / len(self.lists)
                loss[c] += b / len(self.lists)
                u[c, part] += found / len(self.lists)
        return Evaluation(value, loss, Scores(u, scores.problems) if coefficients else None)

    def hinge(self, scores, relevant):
        return ap_hinge(scores, relevant)

    def dots(self, coefficients, scores):
        return np.einsum("cn,cn->c", scores.values, coefficients.values)

    def split(self, coefficients, n_parts, generator):
        m = len(coefficients.problems)
        parts = np.zeros((m, 2 * n_parts, self.n_samples))
        which = generator.integers(n_parts, size=self.n_samples)
        for part, u in zip(parts, coefficients.values):
            part[which + n_parts * (u > 0), np.arange(self.n_samples)] = u
        return Scores(parts.reshape(-1, self.n_samples), np.repeat(coefficients.problems, 2 * n_parts))

    def adjoint(self, coefficients):
        self.passes += 1
        return self.X.T @ coefficients.values.T


class QueryObjective(ListsObjective):
    """The same, with its lists as blocks."""

    def n_blocks(self, problem):
        return len(self.lists)

    def block_weights(self, problem):
        return np.full(len(self.lists), 1 / len(self.lists))

    def block_plane(self, weights, problem, block):
        part = self.lists[block]
        value, loss, u = self.hinge(self.X[part] @ weights, self.labels[part, problem])
        return loss, self.X[part].T @ u, value


def all_planes(X, relevant):
    """Every (offset, slope) of the AP hinge of one list.

    A ranking is a pattern of signs together with an order of the positives and of the negatives;
    only its coefficients matter, so orders are enumerated as distinct coefficient vectors.
    """
    from itertools import permutations

    p_index, n_index = np.flatnonzero(relevant), np.flatnonzero(~relevant)
    P, N = p_index.size, n_index.size
    seen = {}
    for places in combinations(range(P + N), N):
        sign = np.ones(P + N, dtype=bool)
        sign[list(places)] = False
        above = np.cumsum(~sign)[sign]
        below = (P - np.cumsum(sign))[~sign]
        loss = float(np.mean(above / (np.arange(1, P + 1) + above)))
        for a in set(permutations(above)):
            for b in set(permutations(below)):
                u = np.zeros(P + N)
                u[p_index] = -2.0 * np.array(a) / (P * N)
                u[n_index] = 2.0 * np.array(b) / (P * N)
                key = tuple(np.round(u * P * N, 6))
                if loss > seen.get(key, (-1.0, None))[0]:
                    seen[key] = (loss, X.T @ u)
    offsets = np.array([item[0] for item in seen.values()])
    slopes = np.array([item[1] for item in seen.values()])
    return offsets, slopes


def random_problem(seed, n=40, d=6, K=1, share=0.3, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    labels = np.zeros((n, K), dtype=bool)
    for k in range(K):
        signal = X @ rng.normal(size=d) + noise * rng.normal(size=n)
        labels[:, k] = signal > np.quantile(signal, 1 - share)
    return X, labels
