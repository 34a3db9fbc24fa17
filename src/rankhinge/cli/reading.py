"""What the commands read: data, models and scores of any kind."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge.cli.outcome import USAGE, CommandError
from rankhinge.datasets import DataError, LetorData, load, load_run
from rankhinge.datasets.errors import clipped
from rankhinge.datasets.sources import text_lines

__all__ = ["column", "data_of", "model_of", "scores_by", "scores_of"]

_FEATURE = "feature:"
# A safetensors file begins with the length of its header, eight bytes, and the brace that opens it.
_HEADER = slice(8, 9)


def data_of(arguments: Any, path: str, like: Any = None, unlabelled: bool = False) -> LetorData:
    """The data of a file, read as the arguments say.

    `like` is a model or other data whose columns they must have. `unlabelled`: a table may lack the labels.
    """
    names = getattr(like, "feature_names_in_", getattr(like, "feature_names", None))
    # What the command trains knows how its file counted columns: another file may lack the lowest ones.
    base = getattr(like, "index_base_", getattr(like, "index_base", None))
    if arguments.index_base != "auto":
        base = int(arguments.index_base)
    data = load(
        path,
        label=arguments.label,
        # Also with --no-qid: the column is no feature.
        qid=arguments.qid,
        features=None if names is None else [str(name) for name in names],
        ignore=arguments.ignore if names is None else (),
        unlabelled=unlabelled,
        index_base="auto" if base is None else base,
        n_features=getattr(like, "n_features_in_", getattr(like, "n_features", None)),
        missing_labels=arguments.missing_labels,
        missing_values=arguments.missing_values,
        max_memory=None if arguments.any_size else "auto",
    )
    n_expected = getattr(like, "n_features_in_", getattr(like, "n_features", data.n_features))
    if data.n_features != n_expected:
        raise DataError(path, f"the model has {n_expected} features, the file has {data.n_features}")
    return _as_told(arguments, data)


def _as_told(arguments: Any, data: LetorData) -> LetorData:
    """The data without queries or with binary grades, if the arguments say so."""
    qid = None if arguments.no_qid else data.qid
    y = data.y if arguments.relevant_from is None else (data.y >= arguments.relevant_from).astype(np.float64)
    if qid is data.qid and y is data.y:
        return data
    return LetorData(data.X, y, qid, data.comments, data.path, data.index_base, data.feature_names)


def model_of(path: str) -> Any:
    """The model in a file."""
    from rankhinge.persistence import load as load_model

    return load_model(path)


def scores_by(model: Any, X: Any) -> NDArray[np.float64]:
    """The model's scores of the rows, of shape (n,) or (n, K)."""
    with warnings.catch_warnings():
        # The columns have been matched by name already.
        warnings.filterwarnings("ignore", "X does not have valid feature names", UserWarning)
        score = getattr(model, "decision_function", None) or model.predict
        return np.asarray(score(X), dtype=np.float64)


def scores_of(arguments: Any, name: str, data_path: str) -> tuple[LetorData, NDArray[np.float64], Any]:
    """The data, the scores of its rows by what `name` stands for, and the model if it is one.

    A name is a model file, a file of scores, a TREC run, or ``feature:N``.
    """
    if name.startswith(_FEATURE):
        data = data_of(arguments, data_path)
        return data, column(data, name), None
    with open(name, "rb") as file:
        start = file.read(9)
    if start[_HEADER] == b"{":
        model = model_of(name)
        data = data_of(arguments, data_path, model)
        return data, scores_by(model, data.X), model
    data = data_of(arguments, data_path)
    return data, _read_scores(name, data), None


def column(data: LetorData, name: str) -> NDArray[np.float64]:
    """The feature of this name, or of this number as the file counts."""
    wanted = name.removeprefix(_FEATURE)
    names = data.feature_names or []
    if wanted in names:
        place = names.index(wanted)
    elif wanted.isdecimal():
        place = int(wanted) - (data.index_base or 0)
    else:
        known = f", but {clipped(', '.join(names), shown=200)}" if names else ""
        raise CommandError(f"{name}: the file has no feature of this name{known}", USAGE)
    if not 0 <= place < data.n_features:
        first = data.index_base or 0
        raise CommandError(f"{name}: the file has the features {first} to {first + data.n_features - 1}", USAGE)
    found = data.X[:, [place]]
    return np.asarray(found if isinstance(found, np.ndarray) else found.toarray(), dtype=np.float64).ravel()


def _read_scores(path: str, data: LetorData) -> NDArray[np.float64]:
    """Scores from a text with a number a line, or from a TREC run."""
    n_fields = next((len(text.split()) for _, text in text_lines(path) if text.strip()), 0)
    if n_fields == 6:
        return _from_run(path, data)
    found: list[float] = []
    for line, text in text_lines(path):
        if not text.strip():
            continue
        try:
            value = float(text)
        except ValueError:
            what = f"expected a score (one number), or the six fields of a run, found {clipped(text.strip())}"
            raise DataError(path, what, line) from None
        if not np.isfinite(value):
            raise DataError(path, f"the score is not finite, {text.strip()!r}", line)
        found.append(value)
        if len(found) > data.n_samples:
            raise DataError(path, f"there are more scores than the {data.n_samples} rows of {data.path}", line)
    if len(found) != data.n_samples:
        raise DataError(path, f"{len(found)} scores for the {data.n_samples} rows of {data.path}")
    return np.array(found)


def _from_run(path: str, data: LetorData) -> NDArray[np.float64]:
    """The scores of a run, by query and document. Documents that it does not name come last."""
    run = load_run(path)
    if data.qid is None:
        raise DataError(path, f"a run ranks documents of queries, but {data.path} has no qid")
    documents = data.document_ids
    if documents is None:
        # As a run is written for data without names.
        documents = [f"row{row}" for row in range(data.n_samples)]
    place = {(str(q), d): row for row, (q, d) in enumerate(zip(data.qid.tolist(), documents, strict=True))}
    if len(place) < data.n_samples:
        raise DataError(data.path, "a query has a document twice, so a run does not tell their scores apart")
    scores, n_others = np.full(data.n_samples, -np.inf), 0
    for query, document, score in zip(run.qid.tolist(), run.document_ids, run.scores.tolist(), strict=True):
        row = place.get((str(query), document))
        if row is None:
            n_others += 1
        else:
            scores[row] = score
    named = np.isfinite(scores)
    if not named.any():
        raise DataError(path, f"the run has none of the documents of {data.path}")
    _warn_of_others(path, data, named, n_others)
    scores[~named] = scores[named].min() - 1.0
    return scores


def _warn_of_others(path: str, data: LetorData, named: NDArray[np.bool_], n_others: int) -> None:
    """Warn if a run is about other documents than the data."""
    if not named.all():
        assert data.qid is not None
        n_empty = np.setdiff1d(data.qid, data.qid[named]).size
        warnings.warn(
            f"{path} lacks {np.count_nonzero(~named)} of the {named.size} documents of {data.path}, and all those of "
            f"{n_empty} queries: they come last in their queries, as equals",
            stacklevel=2,
        )
    if n_others:
        warnings.warn(f"{path} has {n_others} documents that are not in {data.path}: they are ignored", stacklevel=2)
