"""The judge's convex problem above the tight bound, which touches it at given coefficients.

The lower bound of a tight fit is that of ``½‖v − w₀‖² + C · (J(Xv) − r·Xv)``, where r is a subgradient of H at the
scores of ``coef_``. Samples whose scores are equal there, within rounding, leave a choice: each such pair may count by
any part between 0 and 1 in r. What the fit has chosen is not known. The judge takes the worst for each v, the maximum
over all choices, so that a true bound of any choice lies nowhere above its value.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from tests.judge import EPS, Problem

__all__ = ["Above", "above"]

# Scores may have been carried along steps: rounding of so many products.
SLACK = 16


@dataclass(frozen=True)
class Tied:
    """Pairs of a level whose order is open: entry (j, i) of `pairs`, of negative j and positive i; each weighs `k`."""

    negatives: np.ndarray
    positives: np.ndarray
    pairs: np.ndarray
    k: Any


@dataclass(frozen=True)
class Above(Problem):
    """A convex problem above that of the tight bound; `r` by row of X, from the pairs whose order is certain."""

    r: Any = None
    ties: tuple[Tied, ...] = ()

    def parts(self, rows: np.ndarray) -> tuple[Any, np.ndarray]:
        total, u = super().parts(rows)
        r = self.r.astype(rows.dtype)
        total, u = total - r @ rows, u - r
        for tied in self.ties:
            excess = rows[tied.positives][None, :] - rows[tied.negatives][:, None]
            counted = tied.pairs & (excess > 0)
            total = total + tied.k * excess[counted].sum()
            slope = float(tied.k)
            u[tied.positives] += slope * counted.sum(axis=0)
            u[tied.negatives] -= slope * counted.sum(axis=1)
        return total, u

    def rounding(self, w: np.ndarray) -> float:
        """That of J, and of the linear part, which is no larger."""
        return 2 * super().rounding(w)


def above(problem: Problem, w: np.ndarray) -> Above:
    """The convex problem that touches a tight one at w."""
    scores = problem.wide_rows @ np.asarray(w, problem.wide_rows.dtype)
    sizes = SLACK * EPS * (w.size + 1) * (np.abs(problem.rows) @ np.abs(np.asarray(w, np.float64)))
    r, ties = np.zeros_like(scores), []
    for level in problem.levels:
        positives, negatives = level.index[level.relevant], level.index[~level.relevant]
        if positives.size == 0 or negatives.size == 0:
            continue
        k = level.weight * scores.dtype.type(2) / (positives.size * negatives.size)
        excess = scores[negatives][:, None] - scores[positives][None, :]
        is_open = np.abs(excess) <= sizes[negatives][:, None] + sizes[positives][None, :]
        wrong = (excess > 0) & ~is_open
        r[negatives] += k * wrong.sum(axis=1)
        r[positives] -= k * wrong.sum(axis=0)
        if is_open.any():
            ties.append(Tied(negatives, positives, is_open, k))
    convex = replace(problem, tight=False)
    return Above(**{field.name: getattr(convex, field.name) for field in fields(Problem)}, r=r, ties=tuple(ties))
