r"""The bundle solver: cutting planes that get the most out of each pass over the features.

It opens with quasi-Newton steps where there are many samples for each feature or many problems share the passes, and
continues in rounds.

*The opening.* A long list has so many rankings that J is nearly smooth. Then quasi-Newton steps (`descent`) reach the
minimum fast, and the planes at the points they visit soon certify it: near the minimum, combinations of subgradients
come close to 0. A step takes two passes with one column each and hardly more than one inference. When the gap no
longer shrinks fast, as on short lists that can nearly be ranked perfectly, the rounds take over, with all planes.

*The rounds.* A pass costs about the same for one column and for many. So a round, for all problems that have not
ended, in lockstep:

1. *Look.* The span of directions with known scores grows by the way to the master problem's minimiser and by the slopes
   of the last round, made orthonormal. Their scores take one pass.
2. *Search.* P is minimised over this span with inferences only (`subspace.search`): the best point moves.
3. *Cut.* The planes that carry the solution in the span become planes of the master problem. In the same pass the
   subgradient is cut into random parts, ``u = Σ u_i`` with disjoint supports. The slopes of the parts, ``Xᵀ u_i``, are
   the next directions: in their span each part can be weighted anew, which a single slope does not allow. On a set of
   1280 features this alone saves up to half of the passes.

The span holds a bounded number of directions: the best point and the newest. The dual bound is the value of the
master problem and never falls; planes whose multiplier has been 0 for long are dropped, which does not change it. If
a round has not raised the bound noticeably, the next one cuts at the master problem's minimiser whatever else it
does: this alone makes plain cutting planes converge (Joachims, Finley and Yu 2009). Line search on cached scores: Franc
and Sonnenburg 2009; subspaces: Narkiss and Zibulevsky 2005.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankhinge.solvers.descent import Descent, look
from rankhinge.solvers.planes import PlaneSolver
from rankhinge.solvers.protocol import Array, Handle, Objective, SpanObjective, payloads_of
from rankhinge.solvers.subspace import Cut, Probe, extension, narrowing, search

__all__ = ["Bundle", "QuasiNewton"]


class OpeningPolicy(NamedTuple):
    """When to open with quasi-Newton steps, and how long."""

    # With fewer samples for each feature J is far from smooth, and the opening takes more passes than the rounds. It is
    # worth them where problems share a pass: each counts its samples.
    samples_per_feature: float = 4
    # Of steps and changes of the gradient. More take more memory and, on real sets, no fewer steps.
    n_pairs: int = 8
    # It continues while these many steps shrink the gap to this part, and a while longer as long as it is large.
    steps: int = 10
    shrinking: float = 0.7
    large_gap: float = 0.5
    steps_at_large_gap: int = 40


class RoundsPolicy(NamedTuple):
    """How the rounds go."""

    # Solutions of the master problem without a multiplier after which a plane is dropped.
    prune_after: int = 12
    # A bound that rises by less than this part of the gap calls for a cut at the master's minimiser.
    noticeable: float = 0.02
    # The search in the span ends when its own gap is this part of the whole.
    inner: float = 0.1


OPENING, ROUNDS = OpeningPolicy(), RoundsPolicy()


class Bundle(PlaneSolver):
    """Cutting planes with a search on cached scores, for K problems in lockstep.

    Parameters
    ----------
    objective : Objective
    C : (K,)
    n_cuts : int, optional
        Planes that a round keeps for their weight; it adds two more at most, the newest and the first. By default more
        where a pass is dear (many features, few problems).
    n_parts : int, optional
        Parts into which the positive and the negative coefficients are cut, each.
    n_directions : int, optional
        Directions that the span keeps from one round to the next.
    n_turns : int, optional
        Inferences in a round, at most.
    opening : bool, optional
        Whether to open with quasi-Newton steps; by default with four samples or more, counted once for each problem,
        for each feature (of sparse features: for each entry of a row), and always where the objective has no spans.
    random_state : int, optional
        Seed of the parts.
    start_scores : handle, optional
        Scores of the start, of all problems to be solved, if they are known: the opening need not find them.
    **options
        As for `PlaneSolver`.
    """

    # The rounds need spans; the opening does not.
    objective: SpanObjective

    def __init__(
        self,
        objective: Objective,
        C: Array,
        *,
        n_cuts: int | None = None,
        n_parts: int | None = None,
        n_directions: int | None = None,
        n_turns: int | None = None,
        opening: bool | None = None,
        random_state: int | None = None,
        start_scores: Handle | None = None,
        **options: Any,
    ) -> None:
        super().__init__(objective, C, **options)
        # Many columns are worth their pass where that is dear beside them: by the entries it looks at, not by d.
        d, K = objective.width, objective.n_problems
        dear = min(d / 50, 24) / K**0.5
        self.n_cuts = max(2, int(dear / 3)) if n_cuts is None else n_cuts
        self.n_parts = int(dear / 3) if n_parts is None else n_parts
        self.n_directions = max(4, int(min(d / 32, 48) / K**0.5)) if n_directions is None else n_directions
        self.n_turns = int(np.clip(d // 40, 6, 20)) if n_turns is None else n_turns
        # Without spans there are no rounds, and what follows the opening is plain cuts.
        self._has_spans = isinstance(objective, SpanObjective)
        if opening is None:
            opening = not self._has_spans or objective.n_samples * K >= OPENING.samples_per_feature * d
        self._opens, self._start_scores = opening, start_scores if opening else None
        self._started = self.active
        self._descent: Descent | None = None
        self._shrinkage: dict[int, list[float]] = {}
        self.generator = np.random.default_rng(0 if random_state is None else random_state)
        self._columns = np.zeros(0, dtype=np.int64)
        self._span: Handle = None
        # By problem: basis of the span (d, T), coordinates of the best point, directions to be scored next (d, r).
        self._bases: dict[int, Array] = {}
        self._anchors: dict[int, Array] = {}
        self._next: dict[int, Array] = {}
        self._cut_at_minimiser = np.zeros(K, dtype=bool)

    def _advance(self, active: np.ndarray) -> None:
        if self._opens:
            self._open(active)
            return
        if not self._has_spans:
            self._plain_round(active)
            return
        if self._span is None:
            self._begin(active)
            active = active[self.unfinished()[active]]
        self._align(active)
        if active.size == 0:
            return
        self._look(active)
        probes = [
            Probe(self.masters[k], self._bases[k], self._anchors[k], self.best[k][0], self.n_turns) for k in active
        ]
        gaps = np.array([self.best[k][0] - self.dual[k] for k in active])
        precision = 0.2 * self.tol * np.abs([self.best[k][0] for k in active])
        enough = np.where(np.isfinite(gaps), np.maximum(ROUNDS.inner * gaps, precision), 0.0)
        search(
            self.objective,
            self.evaluate,
            probes,
            self._span,
            active,
            enough,
            n_turns=self.n_turns,
            n_cuts=self.n_cuts,
            admit=self._admit_in_span,
        )
        for k, probe in zip(active, probes):
            point = probe.point(probe.anchor)
            # The length is that of the point itself: its coordinates have the same only as far as rounding lets the
            # basis be orthonormal.
            if probe.moved and self.offer(k, self.regulariser(k, point) + self.C[k] * probe.loss, point):
                self._anchors[k] = probe.anchor
        self._cut_all(active, probes)
        self._narrow(active)

    def _open(self, active: np.ndarray) -> None:
        """A quasi-Newton step of all problems; where it leads, they are cut."""
        if self._descent is None:
            scores, self._start_scores = self._start_scores, None
            if scores is not None and active.size < self._started.size:
                # Some have been ended before the first step.
                scores = self.objective.select(scores, np.searchsorted(self._started, active))
            start = look(self.objective, self.evaluate, self.start[:, active], active, scores)
            del scores
            self._descent = Descent(
                self.objective,
                self.evaluate,
                self.C,
                self.centre,
                start,
                tol=0.0,
                n_pairs=OPENING.n_pairs,
                hopeful=True,
            )
            before, moved = -start.n_passes, active
        else:
            descent, before = self._descent, self._descent.n_passes
            staying = np.isin(descent.active, active)
            if not staying.all():
                descent.keep(staying)
            values = {k: descent.states[k].value for k in descent.active.tolist()}
            # By now, all remaining problems may be waiting for the rounds.
            if values:
                descent.step()
            moved = np.array([k for k, value in values.items() if descent.states[k].value < value], dtype=np.int64)
        self.n_passes += self._descent.n_passes - before
        for k in moved.tolist():
            state, plane = self._descent.states[k], self._descent.states[k].plane
            self.offer(k, state.value, state.w)
            self._raise(k, np.array([plane.offset]), plane.slope[None, :], plane.miss, plane.reach, plane.payload)
        # A problem without a further step waits for the others, and then for the rounds. That is not stalling.
        self._still[active] = -1
        gaps, unfinished = self.gaps(), self.unfinished()
        promising = [unfinished[k] and self._shrinks(int(k), gaps[k]) for k in self._descent.active]
        if moved.size == 0 or not any(promising):
            self._opens, self._descent = False, None
            self.start = np.stack([w for _, w in self.best], axis=1)

    def _shrinks(self, k: int, gap: float) -> bool:
        """Whether the last steps have shrunk the gap of problem k enough to continue with them."""
        gaps = self._shrinkage.setdefault(k, [])
        gaps.append(gap)
        if len(gaps) <= (OPENING.steps_at_large_gap if gap > OPENING.large_gap else OPENING.steps):
            return True
        return gap <= OPENING.shrinking * gaps[-1 - OPENING.steps]

    def _begin(self, active: np.ndarray) -> None:
        """Evaluate the start, and cut there."""
        weights = self.start[:, active]
        lengths = np.linalg.norm(weights, axis=0)
        units = weights / np.where(lengths > 0, lengths, 1.0)
        if weights.any():
            scores = self.objective.score(units, active)
            self.n_passes += 1
        else:
            scores = self.objective.zeros(active)
        # The most directions that a round adds: towards the master's minimiser, the cuts, two more cuts, and the parts.
        self._span = self.objective.span(scores, self.n_directions + 3 + self.n_cuts + 2 * self.n_parts)
        self._columns = active
        scores = self.objective.mix(self._span, lengths[:, None])
        found = self.evaluate(scores)
        admitted = self._admit(weights, scores, active)
        cuts = []
        for c, k in enumerate(active):
            self._bases[k], self._anchors[k] = units[:, c : c + 1], lengths[c : c + 1].copy()
            if admitted[c]:
                value = self.regulariser(k, weights[:, c]) + self.C[k] * float(found.value[c])
                self.offer(k, value, weights[:, c].copy())
            u = self.objective.select(found.coefficients, np.array([c]))
            cuts.append([Cut(0, float(found.loss[c]), u, self._anchors[k], float(found.value[c]))])
        # Warm planes may have certified a warm start already.
        open_ = np.flatnonzero(self.unfinished()[active])
        self._add_cuts(active[open_], [cuts[c] for c in open_])

    def _admit_in_span(
        self, probes: list[Probe], points: list[Array], scores: Handle, problems: np.ndarray
    ) -> np.ndarray:
        """As `_admit`, of points in the spans of these probes, by their coordinates."""
        return np.ones(problems.size, dtype=bool)

    def _align(self, active: np.ndarray) -> None:
        """Drop what belongs to problems that have ended."""
        if active.size == self._columns.size or active.size == 0:
            return
        for k in np.setdiff1d(self._columns, active):
            for kept in (self._bases, self._anchors, self._next):
                kept.pop(k, None)
        self._span = self.objective.select(self._span, np.searchsorted(self._columns, active))
        self._columns = active

    def _look(self, active: np.ndarray) -> None:
        """Widen the spans by the ways to the master's minimisers and the new directions, and score these: one pass."""
        r = 1 + max(self._next[k].shape[1] for k in active)
        # Problems with fewer directions add zeros, which change nothing.
        new = np.zeros((self.objective.n_features, active.size, r))
        for c, k in enumerate(active):
            # From the best point, which the span holds: the minimiser itself would count as dependent if close.
            way = self.masters[k].point - self.best[k][1]
            found = extension(self._bases[k], np.column_stack([way, self._next[k]]))
            new[:, c, : found.shape[1]] = found
            self._bases[k] = np.column_stack([self._bases[k], new[:, c]])
            self._anchors[k] = np.concatenate([self._anchors[k], np.zeros(r)])
        # The orthonormal vectors themselves are scored. Combined of the directions' scores, theirs would inherit the
        # errors of the span, enlarged by what a nearly dependent direction is divided by, and rounds compound that.
        scores = self.objective.score(new.reshape(-1, active.size * r), np.repeat(active, r))
        self.n_passes += 1
        self._span = self.objective.widen(self._span, scores)

    def _narrow(self, active: np.ndarray) -> None:
        """Keep the best point and the newest directions."""
        T = self._bases[int(active[0])].shape[1]
        if self.n_directions >= T:
            return
        kept = [narrowing(self._anchors[k], self.n_directions) for k in active]
        self._span = self.objective.narrow(self._span, np.stack([direction for direction, _ in kept]))
        for k, (direction, anchor) in zip(active, kept):
            basis = self._bases[k]
            self._bases[k] = np.column_stack([basis[:, : direction.size] @ direction, basis[:, direction.size :]])
            self._anchors[k] = anchor

    def _cut_all(self, active: np.ndarray, probes: list[Probe]) -> None:
        """Turn the planes that carry the solution in the span into planes of the masters."""
        unfinished, chosen, open_ = self.unfinished(), [], []
        for k, probe in zip(active, probes):
            if not unfinished[k]:
                continue
            weight = probe.small.multipliers
            cuts = [cut for cut in probe.cuts if weight[cut.place] > 0.0]
            cuts = sorted(cuts or probe.cuts[-1:], key=lambda cut: -weight[cut.place])
            if self._cut_at_minimiser[k] and probe.first_cut not in cuts:
                cuts.append(probe.first_cut)  # type: ignore[arg-type]
            open_.append(k)
            chosen.append(cuts)
        self._add_cuts(np.array(open_, dtype=np.int64), chosen)

    def _add_cuts(self, problems: np.ndarray, cuts: list[list[Cut]]) -> None:
        """One pass for the slopes of all cuts and of the parts of each first one; the masters are solved again."""
        if problems.size == 0:
            return
        handles = [cut.coefficients for group in cuts for cut in group]
        n_parts = 2 * self.n_parts
        if n_parts > 0:
            heaviest = self.objective.join([group[0].coefficients for group in cuts])
            handles.append(self.objective.split(heaviest, self.n_parts, self.generator))
        slopes = self.objective.adjoint(self.objective.join(handles))
        self.n_passes += 1
        # The masters are solved next, and grow: coefficients are not needed any more.
        del handles
        n_cut_columns = slopes.shape[1] - n_parts * problems.size
        begin = 0
        for c, (k, group) in enumerate(zip(problems, cuts)):
            payloads = np.array([payloads_of(self.objective, cut.coefficients)(0) for cut in group])
            mine = slopes[:, begin : begin + len(group)]
            first = n_cut_columns + c * n_parts
            self._next[k] = np.column_stack([mine, slopes[:, first : first + n_parts]])
            known = self._witness(int(k), group, mine)
            self._raise(int(k), np.array([cut.loss for cut in group]), mine.T, *known, payloads.reshape(len(group), -1))
            begin += len(group)

    def _witness(self, k: int, group: list[Cut], slopes: Array) -> tuple[Array, Array]:
        """As `certificate.witness`, of cuts in the span, each at a point of its own."""
        points = np.stack([cut.coordinates for cut in group])
        along = np.einsum("rt,rt->r", slopes.T @ self._bases[k], points)
        misses = np.abs([cut.loss - cut.value for cut in group] + along)
        return misses, np.linalg.norm(points, axis=1)

    def _raise(
        self,
        k: int,
        offsets: Array,
        slopes: Array,
        misses: Array | float = 0.0,
        reaches: Array | float = 0.0,
        payloads: Array | float = 0.0,
    ) -> None:
        """Add planes (r,), (r, d) to a master, solve it, and note whether that raised the bound."""
        master, gap = self.masters[k], self.best[k][0] - self.dual[k]
        master.add_planes(offsets, slopes, misses, reaches, payloads)
        self._solve(k)
        before = self.dual[k]
        self.dual[k] = max(before, master.dual_value)
        self._cut_at_minimiser[k] = not self.dual[k] - before > ROUNDS.noticeable * gap
        master.prune(ROUNDS.prune_after)


class QuasiNewton(Bundle):
    """`Bundle` that always opens with quasi-Newton steps; parameters as there, without `opening`."""

    def __init__(self, objective: Objective, C: Array, **options: Any) -> None:
        super().__init__(objective, C, opening=True, **options)
