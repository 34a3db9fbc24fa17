"""A judge of whole fits that shares no code with the library.

`problems` writes the objective down from its definition, O(P N) a list, in extended precision:

    F(w) = ½‖w − w₀‖² + C · Σ_q π_q Σ_ℓ ω_qℓ J_qℓ(X_q w),
    J(s) = max over rankings of Δ + 2 / (P N) · Σ over pairs out of order (n_j − p_i),
    T(s) = J(s) − H(s),   H(s) = 2 / (P N) · Σ over all pairs max(n_j − p_i, 0),

and bags score as their best candidate. `check` compares a fitted model with it: the objective reported is F at the
coefficients; gap and status follow from objective and lower bound; and no point whatever, the judge's own descent or
those found elsewhere (`others`), lies below the lower bound. With the tight bound that is the lower bound of a convex
problem above it (`judge_tight`), of a latent machine that of its last inner problem. The objective may be off by
`Problem.rounding`, what float64 may lose on the way from X and w to F, and no further. Lower bounds have that taken off
already, and get no allowance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import optimize, sparse

from tests.judge_losses import WIDE, hinge, ideal, named, reference

EPS = float(np.finfo(np.float64).eps)
LOSSES = ("ap", "ndcg", "rr", "auc", "rbp", "zero-one")
# Evaluations of the judge's own descent, from each start; and the pairs of a problem above which it starts but once.
DESCENT_STEPS = 100
MANY_PAIRS = 50_000
# What extended precision loses in turn, as a part of what float64 does.
LOST = float(np.finfo(WIDE).eps) / EPS


class Violation(AssertionError):
    """What a fit claims does not hold."""


@dataclass(frozen=True)
class Level:
    """A threshold of a list: its samples, which of them are relevant, and the weight of its J in the mean."""

    index: np.ndarray
    relevant: np.ndarray
    weight: Any


@dataclass(frozen=True)
class Problem:
    """One objective. `bags`: where each sample's candidates begin among the rows of X, and where the last ends."""

    X: Any
    levels: tuple[Level, ...]
    loss: str
    C: float
    centre: np.ndarray
    tight: bool = False
    bags: np.ndarray | None = None
    fixed: np.ndarray | None = None  # the row that stands for a bag, -1: its best
    weight: float = 1.0  # of the positives in the zero-one loss's hinge

    @cached_property
    def rows(self) -> np.ndarray:
        X = self.X.toarray() if sparse.issparse(self.X) else np.asarray(self.X)
        return X.astype(np.float64)

    @cached_property
    def wide_rows(self) -> np.ndarray:
        return self.rows.astype(WIDE)

    def of_samples(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scores of the samples from those of the rows, and the row that each comes from."""
        if self.bags is None:
            return rows, np.arange(rows.size)
        spans = zip(self.bags[:-1], self.bags[1:], strict=True)
        best = np.array([start + int(np.argmax(rows[start:stop])) for start, stop in spans])
        if self.fixed is not None:
            best = np.where(self.fixed >= 0, self.fixed, best)
        return rows[best], best

    def parts(self, rows: np.ndarray) -> tuple[Any, np.ndarray]:
        """Mean of J or T over the lists, and a subgradient of that of J by rows of X."""
        scores, from_row = self.of_samples(rows)
        total, u = rows.dtype.type(0), np.zeros_like(rows)
        for level in self.levels:
            own = scores[level.index]
            value, slope = hinge(own, level.relevant, self.loss, self.weight)
            if self.tight:
                value = value - reference(own, level.relevant)
            total += level.weight * value
            np.add.at(u, from_row[level.index], (level.weight * slope).astype(u.dtype))
        return total, u

    def objective(self, w: np.ndarray) -> float:
        """F(w) in extended precision."""
        return float(self.wide(w))

    def wide(self, w: np.ndarray) -> Any:
        w = np.asarray(w, WIDE)
        away = w - self.centre.astype(WIDE)
        return away @ away / 2 + WIDE(self.C) * self.parts(self.wide_rows @ w)[0]

    def rounding(self, w: np.ndarray) -> float:
        """What float64 may lose in F(w): in the products, in the sums over samples and in the norm.

        J moves by no more than twice the mean error of the positives' scores plus that of the negatives'; the sums over
        pairs, of n terms each, lose no more than n units in the last place of their terms' sizes.
        """
        w = np.abs(np.asarray(w, np.float64))
        sizes = np.abs(self.rows) @ w
        if self.bags is not None:
            sizes = np.maximum.reduceat(sizes, self.bags[:-1])
        lost = 0.0
        for level in self.levels:
            own = sizes[level.index]
            means = [float(own[part].mean()) for part in (level.relevant, ~level.relevant) if part.any()]
            lost += float(level.weight) * (2 * sum(means) + 1) * max(self.weight, 1.0) * (w.size + level.index.size)
        away = w + np.abs(self.centre)
        return EPS * (self.C * lost + (w.size + 1) * float(away @ away))


def level_weights(labels: np.ndarray, loss: str, gains: Any, uniform: bool) -> dict[float, Any]:
    """``ω`` by threshold, for the labels of one list; thresholds that no sample reaches weigh nothing."""
    thresholds = sorted(gains)
    omega, below = {}, 0.0
    for label in thresholds:
        if label == 0:
            continue
        n_reached = int(np.count_nonzero(labels >= label))
        best = WIDE(1) if uniform else ideal(loss, n_reached, labels.size)
        omega[label] = (WIDE(1) if uniform else WIDE(gains[label]) - WIDE(below)) * best if n_reached else WIDE(0)
        below = gains[label]
    total = sum(omega.values())
    return {label: weight / total for label, weight in omega.items()}


def lists_of(y: Any, qid: Any, loss: str, gains: str, query_weight: Any = None) -> tuple[Level, ...]:
    """The lists of a learning-to-rank problem by the book; of one label only they do not count."""
    y = np.asarray(y, np.float64)
    qid = np.zeros(y.size, int) if qid is None else np.asarray(qid)
    table = {float(v): float(2.0**v - 1 if gains == "exponential" else v) for v in np.unique(np.append(y, 0.0))}
    binary, levels, total = named(loss)[0] not in ("ndcg", "rbp"), [], WIDE(0)
    for query in np.unique(qid):
        index = np.flatnonzero(qid == query)
        weight = WIDE(1 if query_weight is None else query_weight[index[0]])
        if np.unique(y[index]).size < 2 or weight == 0:
            continue
        total += weight
        for label, omega in level_weights(y[index], loss, table, binary).items():
            relevant = y[index] >= label
            if omega > 0 and (loss == "zero-one" or not relevant.all()):
                levels.append(Level(index, relevant, weight * omega))
    return tuple(replace(level, weight=level.weight / total) for level in levels)


def problems(
    model: Any,
    X: Any,
    y: Any,
    *,
    qid: Any = None,
    query_weight: Any = None,
    mask: Any = None,
    bags: Any = None,
) -> list[Problem]:
    """The problems that a fitted model has solved, from its parameters (and, where it chose them, C and the start)."""
    loss, tight = getattr(model, "loss", "zero-one"), hasattr(model, "init_coef_")
    y = np.asarray(y)
    if hasattr(model, "gains"):
        columns = [lists_of(y, qid, loss, model.gains, query_weight)]
    else:
        if y.ndim == 1:
            classes = np.unique(y)
            relevant = [y == classes[1]] if classes.size == 2 else [y == value for value in classes]
        else:
            relevant = list((y == 1).T)
        known = np.ones((y.shape[0], len(relevant)), bool) if mask is None else np.asarray(mask)
        index = [np.flatnonzero(column) for column in known.T]
        columns = [(Level(own, r[own], WIDE(1)),) for r, own in zip(relevant, index, strict=True)]
    C = np.broadcast_to(model.C_ if hasattr(model, "C_") else model.C, len(columns))
    sigma, weight = units(model), float(getattr(model, "positive_weight", 1.0))
    if np.any(sigma != 1.0) or learns_intercept(model):
        X = (X.toarray() if sparse.issparse(X) else np.asarray(X, np.float64)) / sigma
    if learns_intercept(model):
        X = np.column_stack([X, np.ones(X.shape[0])])
    centres = np.atleast_2d(model.init_coef_) * sigma if tight else np.zeros((len(columns), X.shape[1]))
    return [
        Problem(X, levels, loss, float(c), np.asarray(w0, np.float64), tight, bags, weight=weight)
        for levels, c, w0 in zip(columns, C, centres, strict=True)
    ]


def units(model: Any) -> Any:
    """σ: the objective is ½‖σ∘(w - w₀)‖² + C·T(Xw), and so that of σ∘w for the features X / σ."""
    return getattr(model, "feature_scale_", np.ones(np.shape(model.coef_)[-1]))


def learns_intercept(model: Any) -> bool:
    """Whether there is one among the coefficients, by a constant feature."""
    return bool(getattr(model, "fit_intercept", False))


def descended(problem: Problem, start: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """A point below `start`, if some steps of L-BFGS on J find one; in units of `scale` for each coefficient."""
    rows = problem.rows * scale

    def value_and_slope(v: np.ndarray) -> tuple[float, np.ndarray]:
        total, u = problem.parts(rows @ v)
        away = scale * v - problem.centre
        return float(away @ away / 2 + problem.C * total), scale * away + problem.C * (rows.T @ u.astype(np.float64))

    options = {"maxfun": DESCENT_STEPS}
    with np.errstate(all="ignore"):
        found = optimize.minimize(value_and_slope, start / scale, jac=True, method="L-BFGS-B", options=options)
    return found.x * scale


def is_convex(problem: Problem) -> bool:
    """Whether it is: bags, if their positives are fixed."""
    return not problem.tight and (problem.bags is None or problem.fixed is not None)


def own_points(problem: Problem, w: np.ndarray) -> list[np.ndarray]:
    """Points that the judge finds: on the ray through w, without its largest columns, and by its own descent."""
    rows = np.abs(problem.rows)
    sizes = rows.max(axis=0)
    points = [np.zeros_like(w), *(factor * w for factor in (0.5, 0.9, 0.99, 1.01, 1.1, 2.0))]
    points.append(np.where(sizes > 1e3 * np.median(sizes), 0.0, w))
    if is_convex(problem):
        unit = 1 / np.where(sizes > 0, sizes, 1.0)
        starts = [(np.zeros_like(w), unit), (w, unit), (np.zeros_like(w), np.ones_like(w)), (w, np.ones_like(w))]
        is_large = sum(level.index.size**2 for level in problem.levels) > 4 * MANY_PAIRS or rows.size > MANY_PAIRS
        points += [descended(problem, start, scale) for start, scale in starts[: 1 if is_large else None]]
    return [point for point in points if np.isfinite(point).all()]


@dataclass(frozen=True)
class Claim:
    """What a fit says of one problem."""

    w: np.ndarray
    objective: float
    dual: float
    gap: float
    status: str
    tol: float


def check_claim(problem: Problem, claim: Claim, others: list[np.ndarray]) -> dict[str, float]:
    """Raise `Violation` with the figures if the claim does not hold; else return these."""
    figures = {
        "objective": claim.objective,
        "judged": problem.objective(claim.w),
        "dual": claim.dual,
        "gap": claim.gap,
        "rounding": problem.rounding(claim.w),
    }

    def fail(what: str) -> None:
        raise Violation(f"{what}; status {claim.status!r}, " + ", ".join(f"{k} {v!r}" for k, v in figures.items()))

    if not all(np.isfinite(value) for key, value in figures.items() if key not in ("gap", "dual")):
        fail("a figure is not finite")
    allowed = figures["rounding"]
    if abs(claim.objective - figures["judged"]) > allowed:
        fail("the objective is not that of the coefficients")
    if claim.gap < (claim.objective - claim.dual) / abs(claim.objective or 1.0) - 4 * EPS:
        fail("the gap is smaller than that between objective and lower bound")
    if claim.status == "converged" and not claim.gap <= claim.tol:
        fail("converged with a gap above tol")
    if claim.dual > figures["judged"] * (1 + 2 * EPS) + LOST * figures["rounding"]:
        fail("the lower bound is above the objective")
    found = None
    if claim.dual > 0:
        found = lower_point(problem_of_bound(problem, claim.w), claim, others)
    if found is not None:
        figures["elsewhere"] = found[1]
        fail(f"the lower bound is above the objective at another point ({found[0]})")
    return figures


def problem_of_bound(problem: Problem, w: np.ndarray) -> Problem:
    """The problem whose minimum the lower bound is about."""
    from tests import judge_tight  # which builds on this module

    return judge_tight.above(problem, w) if problem.tight else problem


def lower_point(problem: Problem, claim: Claim, others: list[np.ndarray]) -> tuple[str, float] | None:
    """A point whose value is below the lower bound: where it was found, and the value; None: there is none."""
    points = {f"own {k}": point for k, point in enumerate(own_points(problem, claim.w))}
    points |= {f"other {k}": np.asarray(point, np.float64) for k, point in enumerate(others)}
    points["coef_"] = claim.w
    for name, point in points.items():
        value = problem.objective(point)
        if claim.dual > value * (1 + 2 * EPS) + LOST * problem.rounding(point):
            return name, value
    return None


def check_inner(inner: Problem, claim: Claim) -> None:
    """Judge lower bound, gap and status of a latent machine: they are about the last inner problem."""
    value, allowed = inner.objective(claim.w), inner.rounding(claim.w)
    figures = f"status {claim.status!r}, dual {claim.dual!r}, gap {claim.gap!r}, inner objective {value!r}"
    found = lower_point(inner, claim, [])
    if found is not None:
        raise Violation(f"the lower bound is above the inner objective ({found[0]}), {found[1]!r}; {figures}")
    if claim.gap < (value - allowed - claim.dual) / abs(value or 1.0) - 4 * EPS:
        raise Violation(f"the gap is smaller than that between inner objective and lower bound; {figures}")
    if claim.status == "converged" and not claim.gap <= claim.tol:
        raise Violation(f"converged with a gap above tol = {claim.tol!r}; {figures}")


def claims(model: Any) -> list[Claim]:
    """What a fitted model says, problem by problem."""
    coef = np.atleast_2d(model.coef_) * units(model)
    if learns_intercept(model):
        coef = np.column_stack([coef, model.intercept_])
    columns = [np.atleast_1d(getattr(model, f"{name}_")) for name in ("objective", "dual_objective", "gap", "status")]
    return [Claim(w, *map(float, rest[:3]), str(rest[3]), model.tol) for w, *rest in zip(coef, *columns, strict=True)]


def models_of_path(path: Any, **options: Any) -> list[SimpleNamespace]:
    """The values of C of a `RankPath` as models; `options` with ``loss`` and ``tol``, and ``gains`` for lists."""
    models = []
    columns = (path.Cs, path.coefs, path.objectives, path.dual_objectives, path.gaps)
    for C, coef, objective, dual, gap in zip(*columns, strict=True):
        status = np.where(gap <= options["tol"], "converged", "max_iter")
        claimed = {"objective_": objective, "dual_objective_": dual, "gap_": gap, "status_": status}
        models.append(SimpleNamespace(C=C, coef_=coef, **claimed, **options))
    return models


def check(
    model: Any,
    X: Any,
    y: Any,
    *,
    qid: Any = None,
    query_weight: Any = None,
    mask: Any = None,
    bags: Any = None,
    others: Any = (),
) -> list[dict[str, float]]:
    """Judge a `RankSVC`, `SVMRanker`, their CV forms, `LatentRankSVC`, `LatentSVC`; raise `Violation` with the figures.

    `others` are coefficients found elsewhere, each of the shape of ``coef_``. `bags` are offsets into the rows of X.
    """
    found = []
    stated = problems(model, X, y, qid=qid, query_weight=query_weight, mask=mask, bags=bags)
    for k, (problem, claim) in enumerate(zip(stated, claims(model), strict=True)):
        if claim.status == "constant":
            continue
        points = [np.atleast_2d(other)[k] * units(model) for other in others]
        if bags is None:
            found.append(check_claim(problem, claim, points))
            continue
        # The lower bound is that of the last inner problem, with the positives' candidates fixed.
        found.append(check_claim(problem, replace(claim, dual=-np.inf, gap=np.inf, status=""), points))
        check_inner(inner_problem(model, problem, k), claim)
    return found


def inner_problem(model: Any, problem: Problem, k: int) -> Problem:
    """The convex problem of a latent machine's last round."""
    history = model.chosen_history_[k] if isinstance(model.chosen_history_, list) else model.chosen_history_
    chosen = history[-2] if len(history) > 1 else history[-1]
    assert problem.bags is not None
    return replace(problem, fixed=np.where(chosen >= 0, problem.bags[:-1] + chosen, -1))
