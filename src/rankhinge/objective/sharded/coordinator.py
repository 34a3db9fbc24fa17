r"""The coordinator of shards: the objective that solvers see, where no array has an entry for each sample.

It asks the shards for inference and for reductions (`algebra` has its handles, `talks` the conversations).

**Slack.** An inference may return V with V ≤ J ≤ V + ε (`rankhinge.inference.spread`). Planes are those of V and
therefore valid. Values are V + ε, where ε is a small part of the value (`slack`). So the certificate of a fit stays
true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge.inference.callbacks import compile_loss
from rankhinge.inference.spread import CompiledCut, compile_cut
from rankhinge.losses import RankingLoss
from rankhinge.losses.base import BY_SAMPLE, BY_STEP
from rankhinge.losses.cut import CutLoss
from rankhinge.objective.reductions import NO_SPREAD, Apart, Audited, Counts
from rankhinge.objective.sharded.algebra import ShardedHandles, Sizes, seen_of, total
from rankhinge.objective.sharded.engine import Engine, Operation
from rankhinge.objective.sharded.handles import CoefficientHandle, Recipe, ScoreHandle, surviving
from rankhinge.objective.sharded.marks import together
from rankhinge.objective.sharded.moments import variances_together
from rankhinge.objective.sharded.talks import Column, Inferred, Talk, hinge, inference, logistic, reference
from rankhinge.objective.sharded.thresholds import calibration, threshold

__all__ = ["TRIALS", "Evaluation", "ShardedObjective"]

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
# How often an inference is repeated with less slack before it is made exactly.
TRIALS = 3


class Evaluation(NamedTuple):
    """Values (V + ε), losses and a handle of coefficients, by column."""

    value: Floats
    loss: Floats
    coefficients: Any


class ShardedObjective(ShardedHandles):
    """J and T of K problems with one list each, over shards.

    Parameters
    ----------
    engine : Engine
    sizes : Sizes
    loss : RankingLoss
    slack : float
        Of each value, how much of it ε may be at most; 0: exact.
    factors : ndarray of shape (d,), optional
        What the columns of X are multiplied with.
    """

    def __init__(
        self, engine: Engine, sizes: Sizes, loss: RankingLoss, *, slack: float = 0.0, factors: Floats | None = None
    ) -> None:
        super().__init__(engine, sizes, factors)
        self.loss, self.slack, self._cuts = loss, slack, dict[int, CompiledCut]()
        if isinstance(loss, CutLoss):
            for k, (P, N) in enumerate(zip(sizes.n_positives.tolist(), sizes.n_negatives.tolist(), strict=True)):
                if P and N:
                    self._cuts[k] = compile_cut(loss, P, N)

    def _begin(self, sizes: Sizes, numbers: Indices) -> None:
        super()._begin(sizes, numbers)
        # By problem and kind the smallest value so far, which slack is measured by.
        self._least: dict[tuple[int, str], float] = {}

    # Inference.

    def _infer(
        self, scores: ScoreHandle, kind: str, coefficients: bool, less: CoefficientHandle | None = None
    ) -> Evaluation:
        """Inference for each column: ``J``, ``T`` (kind "tight"), or J less what is given."""
        m, name = scores.problems.size, self._shared.name()
        rows = {} if less is None else {k: row for row, k in enumerate(less.problems.tolist())}
        by_step = compile_loss(self.loss, self.n_samples) if self.loss.way == BY_STEP else None
        ahead = scores.ahead if scores.ahead in self._shared.handles else ""

        def talk(c: int, slack: float) -> Talk:
            k = int(scores.problems[c])
            column = Column(scores.name, c, k, name, m, c)
            n_negatives = int(self.sizes.n_negatives[k])
            own = None if less is None else (less.name, rows[k])
            compiled = self._cuts.get(k, by_step)
            if compiled is None:
                return hinge(column, self.counts_of(k), ahead)
            positives, sample = scores.seen[c]
            options: dict[str, Any] = {"slack": slack, "tight": kind == "tight", "less": own, "ahead": ahead}
            with_slopes = coefficients and m == 1 and self._shared.expecting
            return inference(column, compiled, positives, n_negatives, sample, with_slopes=with_slopes, **options)

        found: list[Inferred] = [None] * m  # type: ignore[list-item]
        asked = {c: self.slack * self._least.get((int(k), kind), 1.0) for c, k in enumerate(scores.problems)}
        for trial in range(TRIALS):
            for c, one in zip(asked, self._talk([talk(c, slack) for c, slack in asked.items()]), strict=True):
                found[c] = one
            asked = {
                c: 0.0 if trial == TRIALS - 2 else 0.5 * self.slack * max(one.value, 0.0)
                for c, one in enumerate(found)
                if one.slack > self.slack * max(one.value, 0.0)
            }
            if not asked:
                break
        value = np.array([one.value + one.slack for one in found])
        self._shared.slack_used = max(self._shared.slack_used, *(one.slack for one in found))
        if kind == "tight":
            # No ranking has a higher score than that by the scores: what lies beyond is rounding.
            value = np.array([max(min(one.value, one.loss) + one.slack, 0.0) for one in found])
        for k, one in zip(scores.problems.tolist(), value.tolist(), strict=True):
            self._least[k, kind] = min(self._least.get((k, kind), np.inf), one)
        sources = [scores.recipe] if less is None else [scores.recipe, less.recipe]
        recipe = Recipe(name, [operation for one in found for operation in one.log], sources)
        dots = {ahead: np.array([one.dot for one in found])} if ahead else None
        slopes = found[0].slopes if m == 1 else None
        handle = self._shared.keep(CoefficientHandle(recipe, scores.problems, dots, slopes))
        return Evaluation(value, np.array([one.loss for one in found]), handle if coefficients else None)

    @contextmanager
    def expecting_slopes(self) -> Iterator[None]:
        """Inference for one column brings the slopes along: a message less, and a pass for nothing if nobody asks."""
        self._shared.expecting = True
        try:
            yield
        finally:
            self._shared.expecting = False

    @surviving
    def evaluate(self, scores: ScoreHandle, coefficients: bool = True) -> Evaluation:
        """J, Δ and u of each column."""
        return self._infer(scores, "convex", coefficients)

    @surviving
    def evaluate_tight(self, scores: ScoreHandle, coefficients: bool = True) -> Evaluation:
        """T, Δ and its u."""
        if self.loss.way == BY_SAMPLE:
            raise ValueError("the tight bound compares rankings: loss='zero-one' has none")
        return self._infer(scores, "tight", coefficients)

    @surviving
    def evaluate_against(
        self, scores: ScoreHandle, reference: CoefficientHandle, coefficients: bool = True
    ) -> Evaluation:
        """``J(s) - r . s`` and u - r, with the coefficients r of each problem that `reference` holds."""
        return self._infer(scores, f"against {reference.name}", coefficients, reference)

    @surviving
    def reference(self, scores: ScoreHandle) -> Evaluation:
        """H, 0, and u of the ranking by the scores."""
        m, name = scores.problems.size, self._shared.name()
        talks = [
            reference(Column(scores.name, c, k, name, m, c), scores.seen[c][0], int(self.sizes.n_negatives[k]))
            for c, k in enumerate(scores.problems.tolist())
        ]
        found = self._talk(talks)
        recipe = Recipe(name, [operation for one in found for operation in one.log], [scores.recipe])
        handle = self._shared.keep(CoefficientHandle(recipe, scores.problems))
        return Evaluation(np.array([one.value for one in found]), np.zeros(m), handle)

    # Reductions.

    def counts(self) -> Counts:
        """Samples, positives and negatives of each problem, which is one list."""
        n_positives, n_negatives = (part[self.numbers] for part in (self.sizes.n_positives, self.sizes.n_negatives))
        one = np.ones(n_positives.size, np.int64)
        return Counts(n_positives + n_negatives, n_positives, n_negatives.astype(np.float64), one)

    @surviving
    def marks(self, rows: Indices) -> dict[str, str]:
        """Checksums of some rows, by their numbers in the whole, and of the labels: they do not depend on the cuts."""
        return together(self._shared.call([Operation("marks", (rows, self.numbers), None, "each")])[0])

    @surviving
    def variances(self, problem: int) -> Floats:
        """How much each feature varies, (d,). One pass."""
        replies = self._shared.call([Operation("variances", (int(self.numbers[problem]),), None, "each")])[0]
        found = variances_together(replies)
        return found if self.factors is None else found * self.factors**2

    @surviving
    def spread(self, scores: ScoreHandle) -> Floats:
        """Standard deviation of each column, (m,); 0 where all are equal."""
        centres = [_middle(seen) for seen in scores.seen]
        rows = enumerate(scores.problems.tolist())
        batch = [Operation("moments", (scores.name, c, k, centres[c]), None, "each") for c, k in rows]
        spreads = np.zeros(len(batch))
        for c, replies in enumerate(self._shared.call(batch)):
            n = float(self.counts_of(scores.problems[c]))
            mean, square = (float(sum(part[place] for part in replies)) / n for place in (0, 1))
            deviation = float(np.sqrt(max(square - mean**2, 0.0)))
            spreads[c] = deviation if deviation > NO_SPREAD * max(part[2] for part in replies) else 0.0
        return spreads

    def counts_of(self, number: int) -> int:
        """Samples of a problem."""
        return int(self.sizes.n_positives[number] + self.sizes.n_negatives[number])

    @surviving
    def largest(self, scores: ScoreHandle) -> Floats:
        """The largest size of a score in each column, (m,)."""
        found: Floats = np.max(self._shared.call([Operation("largest", (scores.name,), None, "each")])[0], axis=0)
        return found

    @surviving
    def apart(self, coefficients: CoefficientHandle) -> Apart:
        """Slopes of the positive and the negative coefficients, their sizes, and the columns in use. One pass."""
        replies = self._shared.call([Operation("apart", (coefficients.name, 0), None, "each")])[0]
        rising, falling, sizes = (total([reply[place] for reply in replies]) for place in range(3))
        occupied = np.any([reply[3] for reply in replies], axis=0)
        return Apart(self._outer(rising), self._outer(falling), sizes, occupied)

    def logistic(self) -> Callable[[ScoreHandle], Evaluation]:
        """A new function of scores: the logistic loss, at its best intercept, and its gradient."""
        return partial(self._logistic, {})

    @surviving
    def _logistic(self, intercepts: dict[int, float], scores: ScoreHandle) -> Evaluation:
        m, name = scores.problems.size, self._shared.name()
        talks = [
            logistic(
                Column(scores.name, c, k, name, m, c),
                int(self.sizes.n_positives[k]),
                self.counts_of(k),
                intercepts.get(k, 0.0),
            )
            for c, k in enumerate(scores.problems.tolist())
        ]
        found = self._talk(talks)
        values = np.array([loss for loss, _, _ in found])
        intercepts.update((k, one[1]) for k, one in zip(scores.problems.tolist(), found, strict=True))
        recipe = Recipe(name, [operation for _, _, log in found for operation in log], [scores.recipe])
        return Evaluation(values, values, self._shared.keep(CoefficientHandle(recipe, scores.problems)))

    @surviving
    def audit(self, weights: Floats, problems: Indices, *, tight: bool = False, lengths: Any = None) -> Audited:
        """J or T at the columns of `weights`, anew, and what bounds the rounding of that. One pass."""
        if lengths is not None:
            raise ValueError("shards have the rows of X themselves: there are no others")
        inner, name, numbers = self._inner(weights), self._shared.name(), self.numbers[problems]
        n_positives, n_negatives = self.sizes.n_positives[numbers], self.sizes.n_negatives[numbers]
        most = np.stack([2.0 / n_negatives, 2.0 / n_positives], axis=1) * (2 if tight else 1)
        operation = Operation("audit", (name, weights, inner, numbers, self.factors, most), None, "each")
        replies = self._shared.call([operation])[0]
        seen = seen_of([reply[0] for reply in replies], numbers.size)
        scores = self._shared.keep(ScoreHandle(name, numbers, inner, seen))
        values = (self.evaluate_tight if tight else self.evaluate)(scores, coefficients=False).value
        sizes, slopes = (total([reply[place] for reply in replies]) for place in (1, 2))
        handle: Any = scores
        return Audited(values, sizes, slopes, handle)

    @surviving
    def cut(self, scores: ScoreHandle, rule: Any) -> list[tuple[float, float]]:
        """Intercept and slope of each column's decisions, by the rule's `kind` and `threshold`."""
        if rule.kind != "multiclass" and not isinstance(rule.threshold, str):
            return [(-float(rule.threshold), 1.0)] * scores.problems.size
        talks = []
        for c, k in enumerate(scores.problems.tolist()):
            n_positives, n_negatives = int(self.sizes.n_positives[k]), int(self.sizes.n_negatives[k])
            column, (positives, sample) = Column(scores.name, c, k), scores.seen[c]
            if rule.kind == "multiclass":
                talks.append(calibration(column, n_positives, n_negatives, _middle(scores.seen[c])))
            else:
                talks.append(threshold(column, np.concatenate(positives), sample, rule.threshold))
        found = self._talk(talks)
        if rule.kind == "multiclass":
            return [(offset / slope, slope) for slope, offset in found]
        return [(-value, 1.0) for value in found]


def _middle(seen: Any) -> float:
    """A score amid the others."""
    return float(np.median(np.concatenate([*seen[0], seen[1]])))
