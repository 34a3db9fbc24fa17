"""``rankhinge report``: one HTML page about a model."""

from __future__ import annotations

import base64
import hashlib
import os
import platform
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

import rankhinge
from rankhinge.cli.judging import intervals, judged, options_of
from rankhinge.cli.outcome import DONE, USAGE, CommandError
from rankhinge.cli.reading import data_of, model_of, scores_by
from rankhinge.cli.writing import output, refuse_unwritable, show
from rankhinge.datasets import DataError, LetorData
from rankhinge.datasets.sources import text_lines
from rankhinge.report import gather, render

__all__ = ["run"]

_IMAGES = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp"}


_FITTED = {
    "C_": "C",
    "reach_": "reach",
    "scale_": "scale",
    "init_C_": "C of the start",
    "objective_": "objective",
    "dual_objective_": "lower bound",
    "gap_": "relative gap",
    "status_": "status",
    "n_iter_": "iterations",
    "n_passes_": "passes over the data",
}


def run(arguments: Any) -> int:
    """Write the page."""
    refuse_unwritable(arguments.output)
    model = model_of(arguments.model)
    data = data_of(arguments, arguments.data, model)
    problems = judged(data, scores_by(model, data.X), model, arguments.positive)
    if len(problems) > 1:
        raise CommandError(f"{arguments.model}: the model has {len(problems)} classes, choose one with --class", USAGE)
    problem = problems[0]
    of_class = "" if problem.name is None else f", class {problem.name} first"
    default = f"{os.path.basename(arguments.model)} on {os.path.basename(arguments.data)}{of_class}"
    headline = intervals(arguments, data, problem, model)
    facts = gather(
        problem.relevance,
        problem.scores,
        title=arguments.title or default,
        headline=headline,
        confidence=arguments.confidence,
        qid=data.qid,
        names=_names(data),
        image=None if arguments.images is None else _images(arguments.images, data),
        # A classifier cuts its scores at 0.
        own_threshold=None if problem.name is None else 0.0,
        options=lambda metric: options_of(arguments, metric, model),
        convergence=_convergence(model, problem.name),
        provenance=_provenance(arguments, model),
    )
    # Names of files may have bytes that are no letters.
    page = render(facts).encode("utf-8", "backslashreplace")
    with output(arguments.output) as file:
        file.write(page)
    show(
        arguments,
        f"written: {arguments.output} ({len(page) / 1e6:.2f} MB)",
        {"output": arguments.output, "n_bytes": len(page), "metrics": headline},
    )
    return DONE


def _names(data: LetorData) -> Sequence[str] | None:
    """What the file calls its rows."""
    return data.document_ids


def _images(path: str, data: LetorData) -> Callable[[int], str | None]:
    """From rows to their images as addresses that contain them; the paths are relative to the list of them."""
    paths = [text.strip() for _, text in text_lines(path)]
    if len(paths) != data.n_samples:
        raise DataError(path, f"{len(paths)} images for the {data.n_samples} rows of {data.path}")
    folder = os.path.dirname(path)

    def image(row: int) -> str | None:
        if not paths[row]:
            return None
        try:
            with open(os.path.join(folder, paths[row]), "rb") as file:
                content = file.read()
        except OSError as error:
            raise DataError(path, f"the image cannot be read, {paths[row]!r}: {error.strerror}", row + 1) from None
        kind = next((kind for magic, kind in _IMAGES.items() if content.startswith(magic)), None)
        if kind is None:
            raise DataError(path, f"neither PNG, JPEG, GIF nor WebP, {paths[row]!r}", row + 1)
        return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"

    return image


def _convergence(model: Any, name: str | None) -> dict[str, Any] | None:
    """The relative gap by iteration, and how it ended; None for models without a history.

    The tight bound proves a gap at its end only: what is shown then is how far the objective was above its last value.
    """
    history = {key: np.asarray(values, dtype=np.float64) for key, values in getattr(model, "history_", {}).items()}
    gap = history.get("gap", np.empty(0))
    # With several classes: the one that the page describes.
    which = list(model.classes_).index(float(name)) if gap.ndim == 2 and name is not None else 0
    gap, primal = (part[which] if part.ndim == 2 else part for part in (gap, history.get("primal", gap)))
    label, shown = "relative gap", gap
    if np.count_nonzero(np.isfinite(gap)) < 2:
        label, shown = "objective above its end", (primal - primal[-1:]) / np.abs(primal[-1:])
    shown = shown[np.isfinite(shown)]
    if np.count_nonzero(shown > 0) < 2:
        return None
    states, last = (np.atleast_1d(value).tolist() for value in (model.status_, model.gap_))
    status, reached = (values[which] if which < len(values) else values[0] for values in (states, last))
    caption = f"{status} with a relative gap of {reached:.2g} (tol: {model.tol:g})."
    return {"gap": shown.tolist(), "label": label, "caption": caption}


def _provenance(arguments: Any, model: Any) -> dict[str, str]:
    """Where the page comes from: files by their digests, parameters, versions."""
    import scipy
    import sklearn

    parameters = ", ".join(f"{name}={value!r}" for name, value in sorted(model.get_params(deep=False).items()))
    facts = {
        "model": f"{arguments.model}, SHA-256 {_digest(arguments.model)}",
        "data": f"{arguments.data}, SHA-256 {_digest(arguments.data)}",
        "estimator": f"{type(model).__name__}({parameters})",
    }
    facts |= {words: _short(getattr(model, name)) for name, words in _FITTED.items() if hasattr(model, name)}
    versions = {"rankhinge": rankhinge, "NumPy": np, "SciPy": scipy, "scikit-learn": sklearn}
    facts["versions"] = ", ".join(f"{name} {module.__version__}" for name, module in versions.items())
    facts["versions"] += f", Python {platform.python_version()}"
    facts["written"] = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    return facts


def _short(value: Any) -> str:
    """Numbers with as many digits as are worth reading."""
    return ", ".join(
        f"{entry:.6g}" if isinstance(entry, float) else str(entry) for entry in np.atleast_1d(value).tolist()
    )


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
