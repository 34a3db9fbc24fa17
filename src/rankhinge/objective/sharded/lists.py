r"""The coordinator of shards with many lists: the objective of a ranker, where no array has an entry for each sample.

Lists that lie in one shard are ranked there, all in one message. Short lists that lie in several send their scores to
the coordinator with those that it is shown of any direction, so that they take no message of their own. Long ones are
counted where they lie, level by level, as `rankhinge.inference.spread` has it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankhinge.features import feature_map
from rankhinge.inference.callbacks import compile_loss
from rankhinge.inference.spread import CompiledCut, compile_cut
from rankhinge.losses.base import BY_SAMPLE
from rankhinge.losses.cut import CutLoss
from rankhinge.objective.handles import Scores
from rankhinge.objective.logistic import LogisticLoss
from rankhinge.objective.ranking import RankingObjective
from rankhinge.objective.reductions import NO_SPREAD, Audited, Counts, deviations
from rankhinge.objective.sharded.algebra import Sizes
from rankhinge.objective.sharded.coordinator import TRIALS, Evaluation, ShardedObjective
from rankhinge.objective.sharded.engine import Engine, Operation
from rankhinge.objective.sharded.handles import CoefficientHandle, Recipe, ScoreHandle, Shared, surviving
from rankhinge.objective.sharded.lists_shard import OutsideLevel
from rankhinge.objective.sharded.outline import Outline
from rankhinge.objective.sharded.talks import Column, Talk, hinge, inference, logistic, reference
from rankhinge.objective.variance import ROUNDING_SQUARED
from rankhinge.problems import graded_lists

__all__ = ["ShardedLists"]

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
_PROBLEM = np.zeros(1, np.int64)
_METHODS = {"convex": "evaluate", "against": "evaluate", "tight": "evaluate_tight", "reference": "reference"}


class _Shown(NamedTuple):
    """What the coordinator sees of some scores: of the fetched samples, and of each pair positives and a sample."""

    fetched: Floats
    positives: dict[int, list[Floats]]
    sample: dict[int, Floats]


class _Map(NamedTuple):
    """Where things lie: by shard how many samples are fetched; by pair its shards, and what it is shown there."""

    n_fetched: list[int]
    pairs: list[Indices]
    shards: dict[int, tuple[int, ...]]


class _Pair(NamedTuple):
    """A level of a spread list."""

    level: OutsideLevel
    n_samples: int
    list: int


class ShardedLists(ShardedObjective):
    """J and T of one problem with many lists, over shards.

    Parameters
    ----------
    engine : Engine
    outline : Outline
    factors : ndarray of shape (d,), optional
        What the columns of X are multiplied with.
    """

    def __init__(self, engine: Engine, outline: Outline, *, slack: float = 0.0, factors: Floats | None = None) -> None:
        self.outline, self.loss, self.slack, self.factors = outline, outline.rules.loss, slack, factors
        self._pairs = [
            _Pair(level, mine.n_samples, mine.number)
            for mine in outline.outside
            if mine.is_spread
            for level in mine.levels
        ]
        self._cuts: dict[int, CompiledCut] = {}
        if isinstance(self.loss, CutLoss):
            for level in (pair.level for pair in self._pairs):
                self._cuts[level.pair] = compile_cut(self.loss, level.n_positives, level.n_negatives)
        self._shared = Shared(engine)
        one = np.ones(1, np.int64)
        self._begin(Sizes(outline.n_samples, outline.n_features, outline.n_entries, one, one), _PROBLEM)
        self._map, self._fetched = self._read_layout()

    @surviving
    def _read_layout(self) -> tuple[_Map, RankingObjective | None]:
        """Where things lie, and the objective of the lists whose scores are fetched."""
        layouts = self._shared.call([Operation("layout", (), None, "each")])[0]
        shards: dict[int, list[int]] = {}
        for number, layout in enumerate(layouts):
            for pair in layout.pairs[:, 0].tolist():
                shards.setdefault(pair, []).append(number)
        where = {pair: tuple(mine) for pair, mine in shards.items()}
        found = _Map([layout.lists.size for layout in layouts], [layout.pairs for layout in layouts], where)
        numbers = np.concatenate([layout.lists for layout in layouts])
        if numbers.size == 0:
            return found, None
        known, codes = np.unique(numbers, return_inverse=True)
        rules, weights = self.outline.rules, {mine.number: mine.weight for mine in self.outline.outside}
        labels = np.concatenate([layout.labels for layout in layouts])
        mine = np.array([weights[number] for number in known.tolist()])
        lists = graded_lists(labels, codes, rules.loss, rules.gains, rules.level_weights, mine, total=rules.total)
        return found, RankingObjective(feature_map(np.zeros((numbers.size, 1))), [lists], rules.loss)

    @surviving
    def zeros(self, problems: Indices) -> ScoreHandle:
        """``score(0, problems)`` without a pass."""
        name = self._shared.name()
        sizes = [n + int(pairs[:, 1:].sum()) for n, pairs in zip(self._map.n_fetched, self._map.pairs, strict=True)]
        self._shared.later(Operation("zeros", (name, 1)))
        seen = [([np.zeros(size) for size in sizes], np.zeros(0))]
        return self._shared.keep(ScoreHandle(name, _PROBLEM, np.zeros((self.n_features, 1)), seen))

    def _shown(self, scores: ScoreHandle) -> _Shown:
        fetched: list[Floats] = []
        positives: dict[int, list[Floats]] = {}
        sample: dict[int, list[Floats]] = {}
        for mine, n, pairs in zip(scores.seen[0][0], self._map.n_fetched, self._map.pairs, strict=True):
            fetched.append(mine[:n])
            for pair, n_positives, n_sample in pairs.tolist():
                positives.setdefault(pair, []).append(mine[n : n + n_positives])
                sample.setdefault(pair, []).append(mine[n + n_positives : n + n_positives + n_sample])
                n += n_positives + n_sample
        return _Shown(
            np.concatenate(fetched), positives, {pair: np.concatenate(parts) for pair, parts in sample.items()}
        )

    def _own(self, u: Floats) -> dict[int, tuple[Floats]]:
        """Coefficients of the fetched samples, for each shard its own."""
        parts = np.split(u, np.cumsum(self._map.n_fetched)[:-1])
        return {number: (part,) for number, part in enumerate(parts)}

    def _column(self, scores: ScoreHandle, name: str, pair: int) -> Column:
        return Column(scores.name, 0, pair, name, 1, 0, self._map.shards[pair])

    # Inference.

    def _infer(
        self, scores: ScoreHandle, kind: str, coefficients: bool, less: CoefficientHandle | None = None
    ) -> Evaluation:
        kind, key = kind.partition(" ")[0], (0, kind)
        share = self.slack / max(1e-300, sum(pair.level.weight for pair in self._pairs))
        slack = share * self._least.get(key, 1.0)
        for trial in range(TRIALS):
            found, left, log, name, dot = self._once(scores, kind, less, slack)
            if left <= self.slack * max(found[0], 0.0):
                break
            slack = 0.0 if trial == TRIALS - 2 else 0.5 * share * max(found[0], 0.0)
        value, loss = found
        self._shared.slack_used = max(self._shared.slack_used, left)
        value = max(value + left, 0.0) if kind == "tight" else value + left
        self._least[key] = min(self._least.get(key, np.inf), value)
        ahead = self._ahead(scores)
        sources = [scores.recipe] if less is None else [scores.recipe, less.recipe]
        dots = {ahead: np.array([dot])} if ahead is not None else None
        handle = self._shared.keep(CoefficientHandle(Recipe(name, log, sources), _PROBLEM, dots))
        return Evaluation(np.array([value]), np.array([loss]), handle if coefficients else None)

    def _ahead(self, scores: ScoreHandle) -> str | None:
        return scores.ahead if scores.ahead and scores.ahead in self._shared.handles else None

    def _once(
        self, scores: ScoreHandle, kind: str, less: CoefficientHandle | None, slack: float
    ) -> tuple[tuple[float, float], float, list[Operation], str, float]:
        """J or another value, and Δ; ε; what would write u again, its name, and ``u · a``."""
        name, shown, ahead, method = self._shared.name(), self._shown(scores), self._ahead(scores), _METHODS[kind]
        value = loss = 0.0
        u = np.zeros(shown.fetched.size)
        if self._fetched is not None:
            own = getattr(self._fetched, method)(Scores(shown.fetched[None, :], _PROBLEM))
            value, loss, u = float(own.value[0]), float(own.loss[0]), own.coefficients.values[0]
        arguments = (name, scores.name, method, None if less is None else less.name, ahead)
        first = Operation("whole", arguments, self._own(u), "each")
        talks = [
            _ask(first),
            *(self._talk_of(scores, shown, pair, name, kind, ahead or "", slack) for pair in self._pairs),
        ]
        last = Operation("dots", (name, scores.name), None, "each")
        if less is not None and not self._pairs:
            talks.append(_ask(last))
        replies, *found = self._talk(talks)
        value, loss = value + sum(part[0] for part in replies), loss + sum(part[1] for part in replies)
        dot, left = float(sum(part[2] for part in replies)), 0.0
        # As in `talks.inference`: what is repeated has no direction.
        log = [first._replace(arguments=(*arguments[:-1], None))]
        for pair, one in zip(self._pairs, found, strict=False):
            weight = pair.level.weight
            value, loss, left = value + weight * one.value, loss + weight * one.loss, left + weight * one.slack
            dot += one.dot
            log += one.log
        if less is not None:
            # Summed over u - r: where the two nearly agree, the difference of two sums would be rounding.
            products = self._shared.call([last])[0] if self._pairs else found[-1]
            value = loss + float(sum(part[0] for part in products))
        return (float(value), float(loss)), left, log, name, dot

    def _talk_of(
        self, scores: ScoreHandle, shown: _Shown, pair: _Pair, name: str, kind: str, ahead: str, slack: float
    ) -> Talk:
        number = pair.level.pair
        column, positives = self._column(scores, name, number), shown.positives[number]
        if kind == "reference":
            return reference(column, positives, pair.level.n_negatives)
        if self.loss.way == BY_SAMPLE:
            return hinge(column, pair.n_samples, ahead)
        compiled: Any = self._cuts.get(number)
        if compiled is None:
            compiled = compile_loss(self.loss, max(one.n_samples for one in self._pairs))
        options: dict[str, Any] = {"slack": slack, "tight": kind == "tight", "ahead": ahead}
        return inference(column, compiled, positives, pair.level.n_negatives, shown.sample[number], **options)

    @surviving
    def reference(self, scores: ScoreHandle) -> Evaluation:
        """H, 0, and u of the rankings by the scores."""
        (value, loss), _, log, name, _ = self._once(scores, "reference", None, 0.0)
        handle = self._shared.keep(CoefficientHandle(Recipe(name, log, [scores.recipe]), _PROBLEM))
        return Evaluation(np.array([value]), np.array([loss]), handle)

    # Reductions.

    def counts(self) -> Counts:
        """Samples and positives of all lists, negatives of a list on average, and lists."""
        return self.outline.counts

    @property
    def _n_lists(self) -> int:
        return int(self.outline.counts.n_lists[0])

    def _first_pairs(self) -> list[_Pair]:
        """One for each spread list."""
        return list({pair.list: pair for pair in reversed(self._pairs)}.values())

    @surviving
    def spread(self, scores: ScoreHandle) -> Floats:
        """Standard deviation of the scores about the means of their lists, (1,); 0 where all are equal."""
        shown, pairs = self._shown(scores), self._first_pairs()
        batch = [Operation("deviations", (scores.name,), None, "each")]
        for pair in pairs:
            number = pair.level.pair
            column = self._column(scores, "", number)
            known = np.concatenate([*shown.positives[number], shown.sample[number], np.zeros(1)])
            centre = float(np.median(known[: max(1, known.size - 1)]))
            batch.append(Operation("moments", (scores.name, 0, number, centre), column.own, "each"))
        local, *outside = self._shared.call(batch)
        squares, largest = sum(part[0] for part in local), max(part[1] for part in local)
        if self._fetched is not None:
            away = deviations(self._fetched.problems[0], shown.fetched)
            squares, largest = squares + away @ away, max(largest, np.max(np.abs(shown.fetched)))
        for pair, replies in zip(pairs, outside, strict=True):
            first, second = (sum(part[place] for part in replies) for place in (0, 1))
            squares += max(second - first**2 / pair.n_samples, 0.0)
            largest = max(largest, *(part[2] for part in replies))
        deviation = float(np.sqrt(squares / int(self.outline.counts.n_samples[0])))
        return np.array([deviation if deviation > NO_SPREAD * largest else 0.0])

    @surviving
    def variances(self, problem: int) -> Floats:
        """How much each feature varies within the lists, (d,). One pass."""
        replies = self._shared.call([Operation("within", (), None, "each")])[0]
        totals = np.sum([part for part, _ in replies], axis=0)
        for mine in self.outline.outside:
            parts = [found[mine.number] for _, found in replies if mine.number in found]
            parts = [(n, sums / n) for n, sums in parts if n]
            mean = sum(n * own for n, own in parts) / mine.n_samples
            between = sum(n * (own - mean) ** 2 for n, own in parts)
            totals += np.where(between <= ROUNDING_SQUARED * mine.n_samples * mean**2, 0.0, between)
        found: Floats = totals / int(self.outline.counts.n_samples[0])
        return found if self.factors is None else found * self.factors**2

    def logistic(self) -> Callable[[ScoreHandle], Evaluation]:
        """A new function of scores: the logistic loss, each list at its best intercept, and its gradient."""
        own = None if self._fetched is None else LogisticLoss(self._fetched.problems)
        return partial(self._logistic_of, self._shared.name(), own, {})

    @surviving
    def _logistic_of(
        self, key: str, own: LogisticLoss | None, intercepts: dict[int, float], scores: ScoreHandle
    ) -> Evaluation:
        name, shown = self._shared.name(), self._shown(scores)
        value, u = 0.0, np.zeros(shown.fetched.size)
        if own is not None and self._fetched is not None:
            factor = self._n_lists / self._fetched.problems[0].n_lists
            value, u = factor * own(0, shown.fetched, u)[0], u * factor
        first = Operation("whole_logistic", (name, scores.name, key, self._n_lists), self._own(u), "each")
        talks = [_ask(first)]
        for pair in self._pairs:
            number = pair.level.pair
            column, begin = self._column(scores, name, number), intercepts.get(number, 0.0)
            talks.append(logistic(column, pair.level.n_positives, pair.n_samples, begin))
        replies, *found = self._talk(talks)
        value, log = value + sum(replies), [first]
        for pair, (loss, intercept, mine) in zip(self._pairs, found, strict=True):
            factor, number = self._n_lists * pair.level.weight, pair.level.pair
            intercepts[number] = intercept
            value += factor * loss
            add = Operation(
                "add_gradient", (name, number, float(self._n_lists)), dict.fromkeys(self._map.shards[number], ())
            )
            self._shared.later(add)
            log += [*mine, add]
        handle = self._shared.keep(CoefficientHandle(Recipe(name, log, [scores.recipe]), _PROBLEM))
        return Evaluation(np.array([value]), np.array([value]), handle)

    @surviving
    def audit(self, weights: Floats, problems: Indices, *, tight: bool = False, lengths: Any = None) -> Audited:
        """J or T at the columns of `weights`, anew, and what bounds the rounding of that. One pass."""
        if lengths is not None:
            raise ValueError("shards have the rows of X themselves: there are no others")
        inner, name = self._inner(weights), self._shared.name()
        operation = Operation("audit_lists", (name, weights, inner, self.factors, 2.0 if tight else 1.0), None, "each")
        replies = self._shared.call([operation])[0]
        seen: list[Any] = [([reply[0][0].positives for reply in replies], np.zeros(0))]
        scores = self._shared.keep(ScoreHandle(name, _PROBLEM, inner, seen))
        values = (self.evaluate_tight if tight else self.evaluate)(scores, coefficients=False).value
        sizes, slopes = (np.array([sum(reply[place] for reply in replies)]) for place in (1, 2))
        return Audited(values, sizes, slopes, scores)


def _ask(operation: Operation) -> Talk:
    """A conversation of one question."""
    reply = yield [operation]
    return reply
