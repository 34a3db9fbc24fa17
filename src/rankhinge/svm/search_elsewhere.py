"""The search over a grid for data that enter by the door for containers: fold by fold, setting by setting.

Folds in memory run in lockstep and share each pass. Here each fold is opened once, and its settings are fitted one
after the other to what lies there; test parts are judged without gathering their scores. Of the convex bound C is
searched, of the tight bound the reach, and the scale if several are given. The unit of the features and the start are
what they are without a search.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from rankhinge.problems.door import Opened, register
from rankhinge.solvers import Deadline
from rankhinge.svm._fitting import warn_user
from rankhinge.svm.following import overfits
from rankhinge.svm.results import Candidate, summary
from rankhinge.svm.tight_cv import choose, grid_of
from rankhinge.svm.tuning import Tuning

__all__ = ["Found", "Trial", "search_elsewhere"]

Floats = NDArray[np.float64]


class Trial(NamedTuple):
    """A fold: its training part, opened, and ``judge(model)``: the metric on its test part by label."""

    training: Opened
    judge: Callable[[Any], dict[Any, float]]


class Found(NamedTuple):
    """Scores of the fold for each setting, by label, and those of the start; None where there is none."""

    scores: list[dict[Any, float]]
    start: dict[Any, float] | None


class _Kept:
    """Stands for X that is open already."""

    def __init__(self, opened: Opened) -> None:
        self.opened = opened


class _Container:
    """What is open is only cleared of what an earlier fit has left."""

    def classes(self, X: _Kept, y: Any, **options: Any) -> Opened:
        """As it is."""
        X.opened.renew()
        return X.opened

    queries = classes


register(lambda X: isinstance(X, _Kept), _Container())  # type: ignore[arg-type]


def search_elsewhere(
    machine: Any, make: Callable[..., Any], folds: Sequence[Callable[[], Trial]], labels_of: Callable[[], list[Any]]
) -> Tuning:
    """What suits each label best, with the attributes that tell of the search.

    Parameters
    ----------
    machine : Search
    make : callable
        ``make(**parameters)``: the machine without cross-validation.
    folds : sequence of callable
        Each opens a fold.
    labels_of : callable
        Of all data, once the folds are through: a label for each problem.
    """
    policy, tight = machine._policy, machine._bound == "tight"
    whole = Deadline.after(machine.max_time)
    deadline, unfinished = whole.earlier(policy.share), [0]
    settings, grids = _settings(machine, tight)
    options = {"tol": policy.coarser * machine.tol, "max_iter": machine.max_iter}
    found: list[Found] = []
    for open_ in folds:
        if deadline.passed and found:
            warn_user(
                f"the search ended with {policy.share:.0%} of max_time = {machine.max_time:g} s, after {len(found)} of "
                f"{len(folds)} folds: the best so far is taken",
                ConvergenceWarning,
            )
            break
        trial = open_()
        try:
            follow = _follow_tight if tight else _follow_convex
            passes = policy.passes if machine.Cs is None else np.inf
            with _quietly(unfinished):
                found.append(follow(trial, make, settings, options, policy.decline, passes, deadline))
        finally:
            getattr(trial.training, "close", lambda: None)()
    if unfinished[0]:
        warn_user(
            f"{unfinished[0]} fits of the search ended with a relative gap above tol: the results may change with a "
            "larger max_iter, or with scaled features",
            ConvergenceWarning,
        )
    labels = labels_of()
    scores = np.array([_column(found, label, place, len(folds)) for label in labels for place in range(len(settings))])
    scores = scores.reshape(len(labels), len(settings), len(folds))
    if not np.isfinite(scores).any():
        raise ValueError("no fold has both a positive and a negative in its training part and in its test part")
    chosen = _choose_tight if tight else _choose_convex
    tuning: Tuning = chosen(machine, labels, scores, grids, found)
    return tuning._replace(deadline=whole)


def _settings(machine: Any, tight: bool) -> tuple[list[dict[str, Any]], Any]:
    """The settings in turn, and the grids that they are made of."""
    policy = machine._policy
    if not tight:
        Cs = grid_of(machine.Cs, "Cs", policy.Cs)
        return [{"C": float(C)} for C in Cs], Cs
    if machine.init_Cs is not None:
        raise ValueError("init_Cs works for arrays in memory only: on shards, a search takes the start of a single fit")
    reaches = grid_of(machine.reaches, "reaches", policy.reaches)
    scales = [None] if np.ndim(machine.scales) == 0 else grid_of(machine.scales, "scales", policy.tightness).tolist()
    settings = [
        {"reach": float(reach), **({} if scale is None else {"scale": scale})} for scale in scales for reach in reaches
    ]
    return settings, (scales, reaches)


class _quietly(warnings.catch_warnings):
    """Counts fits that did not end, and says nothing of folds that cannot be judged."""

    def __init__(self, unfinished: list[int]) -> None:
        super().__init__(record=True)
        self._unfinished, self._log = unfinished, list[Any]()

    def __enter__(self) -> Any:
        self._log = super().__enter__() or []
        warnings.simplefilter("always")
        return self._log

    def __exit__(self, *arguments: Any) -> None:
        self._unfinished[0] += sum(issubclass(note.category, ConvergenceWarning) for note in self._log)
        super().__exit__(*arguments)


def _follow_convex(
    trial: Trial,
    make: Callable[..., Any],
    settings: list[dict[str, Any]],
    options: dict[str, Any],
    decline: float,
    passes: float,
    deadline: Deadline,
) -> Found:
    """C ascending, each from the model before, until all labels overfit or the passes are used up."""
    found: list[dict[Any, float]] = []
    model, kept, used = make(warm_start=True, **options), _Kept(trial.training), 0.0
    for setting in settings if trial.training.usable.any() else []:
        model.set_params(**setting).fit(kept, None)
        found.append(trial.judge(model))
        used += model.n_passes_
        if used > passes or deadline.passed:
            break
        path = np.array([list(one.values()) for one in found])
        if overfits(path, decline).all():
            # From there on the last score is repeated.
            found += [found[-1]] * (len(settings) - len(found))
            break
    return Found(found, None)


def _follow_tight(
    trial: Trial,
    make: Callable[..., Any],
    settings: list[dict[str, Any]],
    options: dict[str, Any],
    decline: float,
    passes: float,
    deadline: Deadline,
) -> Found:
    """Every setting from one start, which the first fit finds."""
    found: list[dict[Any, float]] = []
    start, init = None, dict[str, Any]()
    for setting in settings if trial.training.usable.any() else []:
        model = make(**options, **setting, **init).fit(_Kept(trial.training), None)
        if start is None:
            at_start = copy(model)
            at_start.coef_ = np.nan_to_num(model.init_coef_)
            start, init = trial.judge(at_start), {"init": at_start.coef_}
        found.append(trial.judge(model))
        if deadline.passed:
            break
    return Found(found, start)


def _column(found: Sequence[Found], label: Any, place: int, n_folds: int) -> list[float]:
    """The score of a label at one setting, on each fold."""
    scores = [one.scores[place].get(label, np.nan) if place < len(one.scores) else np.nan for one in found]
    return scores + [np.nan] * (n_folds - len(scores))


def _choose_convex(machine: Any, labels: list[Any], scores: Floats, Cs: Floats, found: Sequence[Found]) -> Tuning:
    """The smallest C with the highest mean, among those that all folds with a score have reached."""
    chosen, judged = np.zeros(len(labels), np.intp), np.isfinite(scores).any(axis=(1, 2))
    for k in np.flatnonzero(judged):
        folds = np.isfinite(scores[k, 0])
        reached = np.isfinite(scores[k][:, folds]).all(axis=1)
        chosen[k] = np.argmax(scores[k][reached][:, folds].mean(axis=1))
    chosen[~judged] = int(np.median(chosen[judged]))
    table: dict[str, Any] = {"Cs_": Cs, "scores_": scores if len(labels) > 1 else scores[0]}
    tried = [[Candidate({"C": float(C)}, row) for C, row in zip(Cs, mine, strict=True)] for mine in scores]
    return Tuning(C=Cs[chosen], found=table | summary(tried, chosen.tolist(), labels))


def _choose_tight(machine: Any, labels: list[Any], scores: Floats, grids: Any, found: Sequence[Found]) -> Tuning:
    """The setting nearest to the start that is not noticeably worse than the best, as in memory."""
    scales, reaches = grids
    n_folds = scores.shape[2]
    paths = scores.reshape(len(labels), len(scales), reaches.size, n_folds)
    starts = np.full((len(labels), n_folds), np.nan)
    for fold, one in enumerate(found):
        starts[:, fold] = [(one.start or {}).get(label, np.nan) for label in labels]
    stay = min(machine._policy.stay, 0.1 * float(reaches[0]))
    rows, places, params = [], [], []
    for k in range(len(labels)):
        own: list[Candidate] = [Candidate(_named(stay, scales[0]), starts[k])]
        own += [
            Candidate(_named(float(reach), scale), paths[k, s, r])
            for s, scale in enumerate(scales)
            for r, reach in enumerate(reaches)
        ]
        point = choose(starts[k], paths[k], machine._policy.tolerated)
        places.append(0 if point.place == 0 else point.scale * reaches.size + point.place)
        rows.append(own)
        params.append(own[places[-1]].params)
    each = {"scores_": paths, "init_scores_": starts}
    table = {name: values if len(labels) > 1 else values[0] for name, values in each.items()}
    table |= {"reaches_": reaches} | summary(rows, places, labels)
    scale: Any = "auto" if scales[0] is None else np.array([one["scale"] for one in params])
    init = "logistic" if isinstance(machine.init, str) and machine.init == "auto" else machine.init
    return Tuning("auto", np.array([one["reach"] for one in params]), scale, "auto", init, found=table)


def _named(reach: float, scale: float | None) -> dict[str, Any]:
    return {"reach": reach, **({} if scale is None else {"scale": scale})}
