"""``rankhinge compare``: whether models differ from a baseline by more than chance."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge.cli.evaluate import described
from rankhinge.cli.judging import Judged, judged, metrics_of, options_of
from rankhinge.cli.outcome import DONE, CommandError
from rankhinge.cli.reading import scores_of
from rankhinge.cli.writing import show, table
from rankhinge.datasets import LetorData
from rankhinge.metrics import Comparison, compare, holm, interval

__all__ = ["run"]


def run(arguments: Any) -> int:
    """Compare models with the first."""
    names = [arguments.baseline, *arguments.models]
    data, problems, models = _problems(arguments, names)
    metrics = metrics_of(arguments, data)
    found = {metric: _compared(arguments, metric, data, problems, models) for metric in metrics}
    facts = {
        "data": data.path,
        **described(data),
        "confidence": arguments.confidence,
        "baseline": arguments.baseline,
        "resampled": "rows" if data.qid is None else "queries",
        "metrics": {
            metric: {
                "baseline": them["baseline"],
                "models": [
                    {"model": name, "value": value, **comparison._asdict(), "p_holm": adjusted}
                    for name, value, comparison, adjusted in zip(arguments.models, *them["models"], strict=True)
                ],
            }
            for metric, them in found.items()
        },
    }
    show(arguments, _text(arguments, data, found), facts)
    return DONE


def _problems(arguments: Any, names: list[str]) -> tuple[LetorData, list[Judged], list[Any]]:
    """The scores of each model on the same rows and labels."""
    read = [scores_of(arguments, name, arguments.data) for name in names]
    models = [model for _, _, model in read]
    # A file of scores does not say which class its scores rank; a model next to it does.
    known = next((model for model in models if model is not None and hasattr(model, "classes_")), None)
    problems = []
    for name, (data, scores, model) in zip(names, read, strict=True):
        mine = judged(data, scores, known if model is None and scores.ndim == 1 else model, arguments.positive)
        if len(mine) > 1:
            raise CommandError(f"{name}: the model has {len(mine)} classes, choose one with --class")
        problems += mine
    for name, problem in zip(names[1:], problems[1:], strict=True):
        if not np.array_equal(problem.relevance, problems[0].relevance):
            raise CommandError(f"{name}: it ranks a different class first than {names[0]}, choose one with --class")
    return read[0][0], problems, models


def _compared(
    arguments: Any, metric: str, data: LetorData, problems: list[Judged], models: list[Any]
) -> dict[str, Any]:
    """One metric: the baseline's estimate, and of each model its value, its difference and Holm's p-value."""
    known = next((model for model in models if model is not None), None)
    options: dict[str, Any] = {"qid": data.qid, "confidence": arguments.confidence, "random_state": arguments.seed}
    options |= options_of(arguments, metric, known)
    first = problems[0]
    baseline = interval(metric, first.relevance, first.scores, **options)
    found = [compare(metric, first.relevance, first.scores, other.scores, **options) for other in problems[1:]]
    values = [baseline.value + comparison.difference for comparison in found]
    adjusted: NDArray[np.float64] = holm([comparison.p_value for comparison in found])
    return {"baseline": baseline, "models": (values, found, adjusted.tolist())}


def _text(arguments: Any, data: LetorData, found: dict[str, dict[str, Any]]) -> str:
    several = len(arguments.models) > 1
    header = ["model", "value", "difference", f"{100 * arguments.confidence:g} % interval", "p"]
    parts = []
    for metric, them in found.items():
        rows = [[arguments.baseline, f"{them['baseline'].value:.4f}", "baseline", "", "", ""]]
        for name, value, comparison, adjusted in zip(arguments.models, *them["models"], strict=True):
            rows.append([name, f"{value:.4f}", *_cells(comparison), f"{adjusted:.4f}"])
        width = 6 if several else 5
        titles = [f"{metric}: model", *header[1:], "p (Holm)"]
        parts.append(table(titles[:width], [row[:width] for row in rows]))
    resampled = "rows of one list" if data.qid is None else f"{data.n_queries:,} queries"
    return f"{data.path}: {data.n_samples:,} rows; resampled: {resampled}\n" + "\n\n".join(parts)


def _cells(comparison: Comparison) -> list[str]:
    return [
        f"{comparison.difference:+.4f}",
        f"{comparison.low:+.4f} – {comparison.high:+.4f}",
        f"{comparison.p_value:.4f}",
    ]
