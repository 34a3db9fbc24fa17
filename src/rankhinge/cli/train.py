"""``rankhinge train``: from a file to a model."""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankhinge.cli.evaluate import described, judgement
from rankhinge.cli.outcome import DONE, NOT_CONVERGED, USAGE, CommandError, one_line
from rankhinge.cli.reading import data_of, scores_by
from rankhinge.cli.writing import naming, refuse_unwritable, show
from rankhinge.datasets import DataError, LetorData, save_npz
from rankhinge.datasets.sources import MemoryBudget
from rankhinge.losses import get_loss

__all__ = ["run"]


def run(arguments: Any) -> int:
    """Train, save and report."""
    _check_loss(arguments.loss)
    refuse_unwritable(arguments.output, arguments.save_data)
    files = _files(arguments)
    data = data_of(arguments, files["train"])
    _refuse_too_wide(arguments, data)
    # Report unreadable files before the fit, not after it.
    validation = _like(arguments, files.get("validation"), data)
    test = _like(arguments, files.get("test"), data)
    if arguments.save_data is not None:
        with naming(arguments.save_data):
            save_npz(arguments.save_data, data)
    began = time.perf_counter()
    whole, folds = _folds(arguments, data, validation)
    candidates = _candidates(arguments, whole, folds)
    for candidate in candidates:
        _fit(candidate, whole)
    model = _best(candidates)
    seconds = time.perf_counter() - began
    facts = _facts(model, whole, seconds) | {"output": arguments.output}
    _note_origin(model, data)
    _save(model, arguments.output)
    if len(candidates) > 1:
        facts["fold_scores"] = {candidate.bound: candidate.best_score_ for candidate in candidates}
    lines = [_text(facts)]
    if test is not None:
        defaults = Namespace(metric=None, gains=None, confidence=0.95, seed=arguments.seed, positive=None)
        text, found = judgement(defaults, test, scores_by(model, test.X), model)
        lines.append(text)
        facts["test"] = found
    show(arguments, "\n".join([*lines, f"written: {arguments.output}"]), facts)
    return DONE if facts["converged"] else NOT_CONVERGED


def _check_loss(loss: str | None) -> None:
    """Report a wrong name before reading the file: it is not the file's fault."""
    try:
        get_loss("ap" if loss is None else loss)
    except ValueError as error:
        raise CommandError(f"--loss: {error}", USAGE) from None


def _refuse_too_wide(arguments: Any, data: LetorData) -> None:
    """Refuse absurdly many columns, which a single wrong index can cause: a fit has some vectors of that length."""
    n_vectors = 6
    budget = MemoryBudget(data.path, None if arguments.any_size else "auto")
    if sparse.issparse(data.X):
        budget.check(n_vectors * np.dtype(np.float64).itemsize * data.n_features)


def _files(arguments: Any) -> dict[str, str]:
    """The files of each part. In a folder they have the names that LETOR and MSLR use."""
    files = {"train": arguments.data, "validation": arguments.validation, "test": arguments.test}
    if os.path.isdir(arguments.data):
        parts = {"train": "train.txt", "validation": "vali.txt", "test": "test.txt"}
        inside = {part: os.path.join(arguments.data, name) for part, name in parts.items()}
        if not os.path.exists(inside["train"]):
            raise DataError(arguments.data, "there is no train.txt in this folder")
        if arguments.C is not None or arguments.folds is not None or arguments.validation_split is not None:
            # The arguments choose otherwise than by the validation file.
            del inside["validation"]
        there = {part: path for part, path in inside.items() if os.path.exists(path)}
        files = there | {part: path for part, path in files.items() if part != "train" and path is not None}
    return {part: path for part, path in files.items() if path is not None}


def _like(arguments: Any, path: str | None, data: LetorData) -> LetorData | None:
    """Further data with the columns of the training data."""
    if path is None:
        return None
    found = data_of(arguments, path, data)
    if (found.qid is None) != (data.qid is None):
        raise DataError(path, f"it has {'no ' if found.qid is None else ''}qid, unlike {data.path}")
    return found


def _folds(
    arguments: Any, data: LetorData, validation: LetorData | None
) -> tuple[LetorData, list[tuple[NDArray[np.intp], NDArray[np.intp]]] | int | None]:
    """The data to train on, and the folds to choose by."""
    if validation is not None:
        n, m = data.n_samples, validation.n_samples
        return _stacked(data, validation), [(np.arange(n), np.arange(n, n + m))]
    if arguments.validation_split is None:
        return data, arguments.folds
    units = np.arange(data.n_samples) if data.qid is None else np.unique(data.qid, return_inverse=True)[1].ravel()
    n_units = int(units.max()) + 1
    n_held = max(1, round(arguments.validation_split * n_units))
    if n_held >= n_units:
        units_are = "rows" if data.qid is None else "queries"
        what = f"--validation-split {arguments.validation_split:g} leaves none of {n_units} {units_are} to train on"
        raise DataError(data.path, what)
    held = np.random.default_rng(arguments.seed).permutation(n_units)[:n_held]
    inside = np.isin(units, held)
    return data, [(np.flatnonzero(~inside), np.flatnonzero(inside))]


def _stacked(data: LetorData, other: LetorData) -> LetorData:
    """The rows of both. Queries of the same name in different files are different queries."""
    if sparse.issparse(data.X) or sparse.issparse(other.X):
        X = sparse.vstack([data.X, other.X], format="csr")
    else:
        X = np.concatenate([data.X, other.X])
    qid = None
    if data.qid is not None and other.qid is not None:
        first, second = (np.unique(part, return_inverse=True)[1].ravel() for part in (data.qid, other.qid))
        qid = np.concatenate([first, second + first.max() + 1])
    y = np.concatenate([data.y, other.y])
    return LetorData(X, y, qid, path=data.path, index_base=data.index_base, feature_names=data.feature_names)


def _candidates(arguments: Any, data: LetorData, folds: Any) -> list[Any]:
    """Rankers or classifiers: one, or one for each bound if the folds are to choose between them."""
    import rankhinge

    parameters = _parameters(arguments, data)
    ranks = data.qid is not None
    kind: Any
    if arguments.C is not None or arguments.reach is not None:
        name, bound = ("C", "convex") if arguments.C is not None else ("reach", "tight")
        if folds is not None:
            raise CommandError(
                f"{name} is given, so there is nothing for folds or validation data to choose: leave out one of them",
                USAGE,
            )
        if arguments.bound not in (None, bound):
            raise CommandError(
                f"--{name} is the strength of the {bound} bound, not of the {arguments.bound} one", USAGE
            )
        kind = rankhinge.SVMRanker if ranks else rankhinge.RankSVC
        return [kind(**parameters | {"bound": bound, name: getattr(arguments, name)})]
    kind = rankhinge.SVMRankerCV if ranks else rankhinge.RankSVCCV
    # Equal seeds draw equal folds: the bounds' scores can be compared. "zero-one" ranks nothing and has no tight bound.
    both = ("tight", "convex") if get_loss(arguments.loss or "ap").is_ranking else ("convex",)
    bounds = both if arguments.bound is None else (arguments.bound,)
    if arguments.max_time is not None:
        # For all of them together.
        parameters["max_time"] = arguments.max_time / len(bounds)
    return [kind(cv=folds, **parameters | {"bound": bound}) for bound in bounds]


def _parameters(arguments: Any, data: LetorData) -> dict[str, Any]:
    """Parameters that all candidates share."""
    names = ("loss", "level_weights", "tol", "max_iter", "max_time")
    parameters = {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
    if data.qid is None and arguments.level_weights is not None:
        raise CommandError(f"--level-weights is for queries, but {data.path} has no qid", USAGE)
    loss = get_loss(arguments.loss or "ndcg")
    n_grades = np.unique(data.y).size
    if data.qid is not None and n_grades > 2 and not loss.is_graded and arguments.level_weights is None:
        raise CommandError(
            f"{data.path} has {n_grades} grades, but the loss {loss.name!r} is binary: give --relevant-from GRADE or "
            "--level-weights uniform",
            USAGE,
        )
    shown = arguments.verbose or (sys.stderr.isatty() and not arguments.quiet)
    return parameters | {"random_state": arguments.seed, "verbose": int(shown)}


def _best(candidates: list[Any]) -> Any:
    """The candidate that ranks the test parts best. Of equal ones, the first."""
    return max(candidates, key=lambda model: model.best_score_) if len(candidates) > 1 else candidates[0]


def _fit(model: Any, data: LetorData) -> None:
    """Fit. What the estimator refuses is reported as an error of the file."""
    try:
        model.fit(data.X, data.y, **({} if data.qid is None else {"qid": data.qid}))
    except ValueError as error:
        raise CommandError(f"{data.path}: {one_line(error)}") from error


def _note_origin(model: Any, data: LetorData) -> None:
    """Note in the model by which names and numbers files call its columns."""
    if data.feature_names is not None:
        model.feature_names_in_ = np.asarray(data.feature_names, dtype=object)
    if data.index_base is not None:
        model.index_base_ = data.index_base
    if isinstance(getattr(model, "cv", None), list):
        # Numbers of rows mean nothing without the rows.
        model.set_params(cv=None)


def _save(model: Any, path: str) -> None:
    from rankhinge.persistence import save

    with naming(path):
        save(model, path)


def _facts(model: Any, data: LetorData, seconds: float) -> dict[str, Any]:
    """The result of the training."""
    quality = model.score(data.X, data.y, **({} if data.qid is None else {"qid": data.qid}))
    facts: dict[str, Any] = {
        "data": data.path,
        **described(data),
        "estimator": type(model).__name__,
        "loss": model.loss if isinstance(model.loss, str) else model.loss.name,
        "bound": model.bound,
        "training_metric": quality,
        "seconds": seconds,
        "converged": bool(np.all(np.asarray(model.gap_) <= model.tol)),
    }
    for name in ("C_", "reach_", "scale_", "init_C_", "status_", "gap_", "objective_", "n_iter_", "n_passes_"):
        if hasattr(model, name):
            facts[name.rstrip("_")] = getattr(model, name)
    return facts


def _text(facts: dict[str, Any]) -> str:
    queries = f", {facts['n_queries']:,} queries" if "n_queries" in facts else ""
    size = f"{facts['data']}: {facts['n_rows']:,} rows, {facts['n_features']:,} features{queries}"
    chosen = f"{facts['estimator']}, loss {facts['loss']}, {facts['bound']} bound"
    if "fold_scores" in facts:
        scores = ", ".join(f"{bound} {score:.4f}" for bound, score in facts["fold_scores"].items())
        chosen += f" (on the folds: {scores})"
    # The strength of the bound, by the name that it has there.
    chosen += "".join(f", {name} {_range(facts[name])}" for name in ("C", "reach") if name in facts)
    status = ", ".join(dict.fromkeys(np.atleast_1d(facts["status"]).tolist()))
    gap = float(np.max(facts["gap"]))
    effort = f"{status}: gap {gap:.1e}, {facts['n_passes']} passes over the data, {facts['seconds']:.1f} s"
    return f"{size}\n{chosen}\n{effort}\non the training data: {facts['loss']} {facts['training_metric']:.4f}"


def _range(values: Any) -> str:
    """One number, or a range."""
    found = np.atleast_1d(values)
    return f"{found[0]:.4g}" if found.size == 1 else f"{np.nanmin(found):.4g} to {np.nanmax(found):.4g}"
