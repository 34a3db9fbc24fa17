"""The path over C. Planes do not depend on C, so each fit starts with all planes found before."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_X_y
from sklearn.utils._param_validation import validate_params

from rankhinge._validation import QueryIds, in_native_order, refuse_masked
from rankhinge.features import feature_map
from rankhinge.losses import RankingLoss, get_loss
from rankhinge.objective import RankingObjective
from rankhinge.problems.queries import ranking_lists, without_words
from rankhinge.problems.targets import as_targets, encode_targets, plain_targets
from rankhinge.solvers import Deadline, Solver, SolverResult, make_solver
from rankhinge.solvers.base import RUNNING
from rankhinge.svm._fitting import Unfinished, warn_of_zeros, warn_user
from rankhinge.svm.coordinates import fewer
from rankhinge.svm.flat import ways_out
from rankhinge.svm.following import Path, Watch
from rankhinge.svm.last_word import last_word
from rankhinge.svm.ranker import SVMRanker
from rankhinge.svm.tuning import positive

__all__ = ["RankPath", "convex_path", "rank_svm_path"]

Function = TypeVar("Function", bound=Callable[..., Any])


class RankPath(NamedTuple):
    """What `rank_svm_path` returns.

    Attributes
    ----------
    Cs : ndarray of shape (n_Cs,)
        In ascending order, as far as the time allowed.
    coefs : ndarray of shape (n_Cs, K, d)
    objectives, dual_objectives, gaps : ndarray of shape (n_Cs, K)
    n_passes : ndarray of shape (n_Cs,)
        Passes over X that each value of C took.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from rankhinge import rank_svm_path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = rank_svm_path(scale(X), y, Cs=[1.0, 10.0])
    >>> path.Cs.tolist(), path.coefs.shape
    ([1.0, 10.0], (2, 1, 30))
    """

    Cs: NDArray[np.float64]
    coefs: NDArray[np.float64]
    objectives: NDArray[np.float64]
    dual_objectives: NDArray[np.float64]
    gaps: NDArray[np.float64]
    n_passes: NDArray[np.int64]


def walk_path(
    objective: RankingObjective,
    Cs: NDArray[np.float64],
    *,
    tol: float,
    max_iter: int,
    stop: Callable[[Solver], bool],
) -> Generator[SolverResult, NDArray[np.int64] | None, None]:
    """Solve for each C in turn, (n_Cs,) or (n_Cs, K), handing planes and coefficients on to the next.

    `send(indices)` continues only those problems; the others keep their last coefficients. `stop` is called after each
    step. If it returns True, the path ends with what was reached.
    """
    planes = start = going = None
    for C in Cs:
        solver = make_solver(
            "bundle",
            objective,
            np.broadcast_to(C, objective.n_problems),
            tol=tol,
            max_iter=max_iter,
            planes=planes,
            start=start,
            problems=going,
        )
        result = solver.run(stop)
        planes, start = solver.planes(), result.coef
        ended = not solver.done
        # The solver still holds its own planes. Free them before the next solver copies these.
        del solver
        going = yield result
        if ended:
            return


def convex_path(
    objective: RankingObjective,
    Cs: NDArray[np.float64],
    *,
    tol: float,
    max_iter: int,
    watch: Watch,
    unfinished: Unfinished,
    passes: float = np.inf,
) -> Path:
    """The coefficients along `walk_path`; what does not converge is noted.

    The path ends after `passes` passes. A C that is unsolved by then does not count, unless it is the first.
    """
    spent, going = 0.0, None

    def stop(solver: Solver) -> bool:
        return watch.step() or spent + solver.n_passes > passes

    results = walk_path(objective, Cs, tol=tol, max_iter=max_iter, stop=stop)
    for place in range(len(Cs)):
        try:
            result = results.send(going)
        except StopIteration:
            return
        cut = RUNNING in result.status
        if cut and place > 0 and watch.ended is None:
            return
        if not cut:
            unfinished.note(result, tol)
        spent += result.n_passes
        going = yield result.coef


def _checked(function: Function) -> Function:
    """A function that checks its parameters first; to type checkers what it was."""
    names = ("loss", "gains", "level_weights", "tol", "max_iter", "max_time")
    constraints = {name: SVMRanker._parameter_constraints[name] for name in names}
    checked: Function = validate_params(constraints, prefer_skip_nested_validation=True)(function)
    return checked


@_checked
def rank_svm_path(
    X: Any,
    y: ArrayLike,
    Cs: ArrayLike,
    *,
    qid: QueryIds | None = None,
    loss: str | RankingLoss = "ap",
    mask: ArrayLike | None = None,
    gains: str | ArrayLike = "exponential",
    level_weights: str | ArrayLike | None = None,
    tol: float = 1e-3,
    max_iter: int = 1000,
    max_time: float | None = None,
) -> RankPath:
    """Fit a whole path of C, reusing the cutting planes.

    Parameters
    ----------
    X : array or sparse array of shape (n, d)
    y : array of shape (n,) or (n, K)
        Without `qid`, targets as for `RankSVC`; with it, relevance as for `SVMRanker`.
    Cs : array of shape (n_Cs,)
        Positive; taken in ascending order.
    qid : array of shape (n,), optional
    loss, tol, max_iter
        As for `RankSVC`.
    max_time : float or None, default None
        Seconds after which the path ends. The result lacks the values of C that were not reached.
    mask, gains, level_weights
        As for `RankSVC.fit` and `SVMRanker`.

    Returns
    -------
    RankPath

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from rankhinge import rank_svm_path
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = rank_svm_path(scale(X), y, Cs=[1.0, 10.0, 100.0])
    >>> path.coefs.shape, bool((path.gaps <= 1e-3).all())
    ((3, 1, 30), True)
    """
    refuse_masked(X, "X")
    X, y = check_X_y(
        in_native_order(X),
        plain_targets(y, mask) if qid is None else without_words(y),
        accept_sparse=("csr", "csc"),
        dtype="numeric",
        multi_output=qid is None,
        y_numeric=qid is not None,
        ensure_min_samples=2,
    )
    loss, deadline = get_loss(loss), Deadline.after(max_time)
    if np.ndim(Cs) != 1 or np.size(Cs) == 0:
        raise ValueError(f"Cs must be a vector of one value or more, got {Cs!r}")
    Cs = np.sort(positive(Cs, "Cs"))
    if qid is None:
        targets = encode_targets(as_targets(y, mask), mask)
        if not targets.usable().all():
            wrong = int(np.flatnonzero(~targets.usable())[0])
            raise ValueError(f"label {targets.classes.tolist()[wrong]!r} has no positive or no negative sample")
        problems = targets.lists()
    elif mask is not None:
        raise ValueError("mask belongs to multilabel targets: with qid there is one relevance for each row")
    else:
        problems = [ranking_lists(np.asarray(y), qid, loss, gains, level_weights, None)]
    X, coordinates = fewer(X, len(problems), centred=loss.is_ranking)
    objective = RankingObjective(feature_map(X), problems, loss)
    whole = objective
    if coordinates.whole is not None:
        whole = RankingObjective(feature_map(coordinates.whole), problems, loss)
    points = []
    results = walk_path(objective, Cs, tol=tol, max_iter=max_iter, stop=lambda _: deadline.passed)
    for C, found in zip(Cs, results, strict=False):
        coef = coordinates.everywhere(found.coef.T)
        seen = found if coordinates.whole is None else replace(found, coef=coef.T)
        everywhere = np.full(len(problems), C)
        centre = np.zeros_like(seen.coef)
        inside = None if coordinates.whole is None else (objective, found.coef)
        result, _ = last_word(whole, seen, everywhere, centre, tol, lengths=coordinates.lengths, inside=inside)
        if np.max(result.gap) > tol:
            warn_user(
                f"rank_svm_path stopped at C = {C:g} with a relative gap of {np.max(result.gap):.3g} > tol = {tol:g}",
                ConvergenceWarning,
            )
        n_passes = int(np.ceil(result.n_passes)) + coordinates.back
        points.append((coef, result.objective, result.dual_objective, result.gap, n_passes))
    if len(points) < Cs.size:
        warn_user(
            f"rank_svm_path ended after max_time = {max_time:g} s, with {len(points)} of {Cs.size} values of C: "
            "increase max_time or tol, or take fewer or smaller values",
            ConvergenceWarning,
        )
    # Only the largest C is checked: with a small C, all-zero coefficients can be the optimum.
    flat = np.flatnonzero(~found.coef.any(axis=0) & (result.gap <= tol))
    if flat.size:
        warn_of_zeros(flat.size, len(problems), ways_out(objective, int(flat[0])))
    return RankPath(Cs[: len(points)], *map(np.array, zip(*points, strict=True)))
