"""The judge of the machines whose objective is another: hard constraints, candidates of their own, networks.

As `tests.judge`, it shares no code with the library, and raises `judge.Violation` with the figures.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import optimize

from tests import judge
from tests.judge import EPS, Claim, Problem, Violation
from tests.judge_losses import WIDE, hinge, parts

# By how much a constraint may be violated, and by how much an easy sample may lie inside the margin; see
# `ApproximateRankSVC`.
TOLERATED = 1e-6


def check_trimmed(model: Any, X: Any, y: Any, bags: Any) -> None:
    """Judge a `LatentSVC` that ignores some candidates of negatives: which, is its own affair; that lowers J only."""
    stated = zip(judge.problems(model, X, y, bags=bags), judge.claims(model), strict=True)
    for k, (problem, claim) in enumerate(stated):
        most = problem.objective(claim.w) + problem.rounding(claim.w)
        if not 0.5 * float(claim.w @ claim.w) * (1 - 4 * EPS) <= claim.objective <= most:
            raise Violation(f"the objective {claim.objective!r} is above that of all candidates, {most!r}")
        most = judge.inner_problem(model, problem, k).objective(claim.w) + problem.rounding(claim.w)
        if not claim.dual <= most:
            raise Violation(f"the lower bound {claim.dual!r} is above the inner objective {most!r}")
        # The inner objective of the candidates that count is not known, but it is not below the outer one.
        check_gap(claim)


def check_falls(model: Any) -> None:
    """Raise if the objective of a latent machine rises from round to round."""
    for rounds in np.atleast_2d(model.outer_history_["objective"]):
        if np.any(np.diff(rounds) > 1e-12 * np.abs(rounds[:-1])):
            raise Violation(f"the objective rises: {rounds.tolist()}")


def check_approximate(model: Any, X: Any, y: Any) -> bool:
    """Judge an `ApproximateRankSVC` of two classes; False if rounding alone tells which samples are easy."""
    base = judge.problems(model, X, y)[0]
    claim, relevant, w0 = judge.claims(model)[0], np.asarray(y) == 1, np.asarray(model.binary_coef_[0], WIDE)
    sign = np.where(relevant, 1, -1)
    margins = sign * (base.wide_rows @ w0)
    lost = EPS * (w0.size + 1) * (np.abs(base.rows) @ np.abs(w0.astype(np.float64)))
    easy = np.zeros(relevant.size, bool)
    for label in (True, False):
        mine = np.flatnonzero(relevant == label)
        inside = mine[margins[mine] >= 1 - TOLERATED]
        inside = inside[np.argsort(-margins[inside], kind="stable")]
        kept = inside[: round(model.keep_easy * inside.size)]
        close = np.abs(margins[mine] - (1 - TOLERATED)) <= lost[mine]
        left = inside[kept.size :]
        tied = kept.size and left.size and margins[kept[-1]] - margins[left[0]] <= lost[kept[-1]] + lost[left[0]]
        if close.any() or tied or (kept.size == mine.size and kept.size > 1):
            return False
        easy[kept[:-1] if kept.size == mine.size else kept] = True
    if int(easy.sum()) != model.n_easy_ or int((~easy).sum()) != model.n_difficult_:
        raise Violation(f"{easy.sum()} samples are easy, not {model.n_easy_}")
    index = np.flatnonzero(~easy)
    problem = replace(base, levels=(judge.Level(index, relevant[index], WIDE(1)),))

    def least(w: Any) -> float:
        return float((sign * (base.wide_rows @ np.asarray(w, WIDE)))[easy].min(initial=np.inf))

    # What rounding makes of the margins at this point, not at w0.
    lost_there = EPS * (w0.size + 1) * (np.abs(base.rows) @ np.abs(np.asarray(claim.w, np.float64)))
    if claim.status != "infeasible" and least(claim.w) < 1 - TOLERATED - float(lost_there[easy].max(initial=0.0)):
        raise Violation(f"an easy sample lies {1 - least(claim.w):.3g} inside the margin; status {claim.status!r}")
    # No bound but those of points that keep all constraints.
    held = replace(claim, dual=-np.inf, gap=np.inf, status="")
    judge.check_claim(problem, held, [])
    for point in (claim.w, np.asarray(w0, np.float64)):
        share = least(point)
        if share > 0:
            for factor in (1.0, 1.001, 1.1, 2.0):
                feasible = np.asarray(point, WIDE) * factor / min(WIDE(share), WIDE(1))
                value = problem.objective(feasible)
                if claim.dual > value + problem.rounding(feasible):
                    raise Violation(f"the lower bound {claim.dual!r} is above the objective {value!r} of a feasible w")
    check_gap(claim)
    return True


def check_gap(claim: Claim) -> None:
    """Raise if the gap is below that between objective and lower bound, or "converged" has more than `tol`."""
    if claim.gap < (claim.objective - claim.dual) / abs(claim.objective or 1.0) - 4 * EPS:
        raise Violation(f"the gap {claim.gap!r} is smaller than that between {claim.objective!r} and {claim.dual!r}")
    if claim.status == "converged" and not claim.gap <= claim.tol:
        raise Violation(f"converged with the gap {claim.gap!r} above tol = {claim.tol!r}")


def structural_hinge(lowest: np.ndarray, highest: np.ndarray, relevant: np.ndarray, loss: str) -> Any:
    """``max_{R, H} Δ(R) + F(R, H)`` over all rankings R and candidates H of a few bags, by assignment."""
    P, N = int(relevant.sum()), int((~relevant).sum())
    lost, best = parts(loss, P, N), -np.inf
    for above in itertools.combinations_with_replacement(range(N + 1), P):
        a = np.array(above)
        below = np.array([np.count_nonzero(a > j) for j in range(N)])
        value = lost[np.arange(P), a].sum()
        of_positives, of_negatives = (N - 2 * a) / WIDE(P * N), (2 * below - P) / WIDE(P * N)
        for c, mine in ((of_positives, relevant), (of_negatives, ~relevant)):
            gains = np.where(c[:, None] >= 0, c[:, None] * highest[mine], c[:, None] * lowest[mine])
            rows, columns = optimize.linear_sum_assignment(-gains.astype(np.float64))
            value = value + gains[rows, columns].sum()
        best = max(best, value)
    return best


def structural_objective(problem: Problem, w: np.ndarray, at: np.ndarray | None = None) -> Any:
    """The objective of `LatentStructuralSVC`, exact; positives at given rows (-1: at their best) in the ranking R*."""
    w, relevant = np.asarray(w, WIDE), problem.levels[0].relevant
    rows, bags = problem.wide_rows @ w, problem.bags
    assert bags is not None
    spans = list(itertools.pairwise(bags))
    lowest, highest = (np.array([pick(rows[start:stop]) for start, stop in spans]) for pick in (np.min, np.max))
    own = highest if at is None else np.where(at >= 0, rows[at], highest)
    right = np.where(relevant, -own / relevant.sum(), highest / (~relevant).sum()).sum()
    return w @ w / 2 + WIDE(problem.C) * (structural_hinge(lowest, highest, relevant, problem.loss) + right)


def check_structural(model: Any, X: Any, y: Any, bags: Any) -> None:
    """Judge a `LatentStructuralSVC` of a few bags: its inference may miss the maximum, but never be above it.

    So a gap would claim what nobody has proved, unless nothing is latent.
    """
    problem, claim = judge.problems(model, X, y, bags=bags)[0], judge.claims(model)[0]
    fixed = judge.inner_problem(model, problem, 0).fixed
    allowed = 2 * problem.rounding(claim.w)
    exact = float(structural_objective(problem, claim.w))
    if claim.objective > exact + allowed:
        raise Violation(f"the objective {claim.objective!r} is above {exact!r}, that of all candidates")
    if len(bags) == X.shape[0] + 1:
        if claim.objective < exact - allowed:
            raise Violation(f"nothing is latent, and the objective {claim.objective!r} is below {exact!r}")
        check_gap(claim)
    elif claim.status == "converged" or np.isfinite(claim.gap):
        raise Violation(f"inference is a heuristic, but status {claim.status!r}, gap {claim.gap!r}")
    for factor in (0.0, 0.5, 1.0, 1.1):
        value = float(structural_objective(problem, factor * claim.w, fixed))
        if claim.dual > value + allowed:
            raise Violation(f"the lower bound {claim.dual!r} is above the inner objective {value!r} at {factor} w")


def forward(network: Any, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scores of a network of linear layers and ReLUs in extended precision, and the sizes of what was added up."""
    values, sizes = X.astype(WIDE), np.abs(X).astype(WIDE)
    for module in network:
        if hasattr(module, "weight"):
            weight, bias = (t.detach().double().numpy().astype(WIDE) for t in (module.weight, module.bias))
            values, sizes = values @ weight.T + bias, sizes @ np.abs(weight).T + np.abs(bias)
        else:
            values = np.maximum(values, 0)
    return values, sizes


def check_layerwise(trainer: Any, X: np.ndarray, y: np.ndarray, eps: float) -> None:
    """Judge a `LayerwiseTrainer` of a single block: the objective is that of the network, and does not rise."""
    history, best = trainer.history_, trainer.best_
    objectives = [entry["objective"] for entry in history]
    scores, sizes = forward(trainer.network, X)
    usable = [k for k in range(y.shape[1]) if 0 < y[:, k].sum() < len(y)]
    loss = sum(hinge(scores[:, k].copy(), y[:, k] == 1, trainer.loss)[0] for k in usable) / len(usable)
    weights = [p.detach().double().numpy().astype(WIDE) for p in trainer.network.parameters()]
    squares = sum((w * w).sum() for w in weights)
    judged = float(loss + WIDE(trainer.lam) * squares / 2)
    width = max(X.shape[1], len(X), *(w.size for w in weights))
    allowed = width * (4 * eps * float(sizes.max()) + 4 * EPS * (1 + abs(judged)))
    figures = f"objective {best['objective']!r}, judged {judged!r}, allowed {allowed:.3g}, history {objectives}"
    if not abs(best["objective"] - judged) <= allowed:
        raise Violation(f"the objective is not that of the network; {figures}")
    if any(after > before for before, after in itertools.pairwise(objectives)):
        raise Violation(f"the objective rises; {figures}")
    for entry, before in zip(history[1:], objectives[:-1], strict=True):
        # The layer's problem lies nowhere below the true one, and meets it where the turn began; others' weights count
        # in the objective alone.
        if entry["surrogate"] == "exact" and entry["dual"] > before + allowed:
            raise Violation(f"the lower bound {entry['dual']!r} is above the value at the start of the turn; {figures}")
        if entry["dual"] > entry["primal"] or entry["gap"] < 0 or np.any(np.diff(entry["duals"]) < -allowed):
            raise Violation(f"bounds of a turn contradict each other: {entry}")
