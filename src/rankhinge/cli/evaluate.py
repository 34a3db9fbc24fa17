"""``rankhinge evaluate``: metrics with intervals."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np

from rankhinge.cli.judging import Judged, intervals, judged, metrics_of, options_of
from rankhinge.cli.outcome import DONE, USAGE, CommandError
from rankhinge.cli.reading import scores_of
from rankhinge.cli.writing import output, refuse_unwritable, show, table
from rankhinge.datasets import LetorData
from rankhinge.metrics import Estimate, per_query

__all__ = ["described", "judgement", "run"]


def run(arguments: Any) -> int:
    """Judge a model on a file."""
    refuse_unwritable(arguments.per_query)
    data, scores, model = scores_of(arguments, arguments.model, arguments.data)
    text, facts = judgement(arguments, data, scores, model)
    if arguments.per_query is not None:
        if data.qid is None:
            raise CommandError(f"{arguments.data}: --per-query needs queries, but there is no qid", USAGE)
        problem = judged(data, scores, model, arguments.positive)[0]
        with output(arguments.per_query) as file:
            file.write(_per_query_csv(arguments, data, problem, model))
    show(arguments, text, {"model": arguments.model, **facts})
    return DONE


def judgement(arguments: Any, data: LetorData, scores: Any, model: Any) -> tuple[str, dict[str, Any]]:
    """The metrics of scores, as text and as facts."""
    problems = judged(data, scores, model, arguments.positive)
    found = {problem.name: intervals(arguments, data, problem, model) for problem in problems}
    level = f"{100 * arguments.confidence:g} % interval"
    facts: dict[str, Any] = {"data": data.path, **described(data), "confidence": arguments.confidence}
    if len(found) == 1:
        ((name, metrics),) = found.items()
        text = table(["metric", "value", level], [_row(metric, value) for metric, value in metrics.items()])
        facts |= {"metrics": metrics} if name is None else {"class": name, "metrics": metrics}
    else:
        rows = [
            _row(f"{metric} of class {name}", value) for name, them in found.items() for metric, value in them.items()
        ]
        means = {
            metric: float(np.mean([them[metric].value for them in found.values()]))
            for metric in next(iter(found.values()))
        }
        rows += [[f"{metric}, mean of {len(found)} classes", f"{mean:.4f}", ""] for metric, mean in means.items()]
        text = table(["metric", "value", level], rows)
        facts |= {"classes": found, "means": means}
    return f"{_heading(data)}\n{text}", facts


def described(data: LetorData) -> dict[str, Any]:
    """How much data there is."""
    facts = {"n_rows": data.n_samples, "n_features": data.n_features}
    return facts if data.qid is None else facts | {"n_queries": data.n_queries}


def _heading(data: LetorData) -> str:
    queries = "one list" if data.qid is None else f"{data.n_queries:,} queries"
    return f"{data.path}: {data.n_samples:,} rows, {queries}"


def _row(metric: str, value: Estimate) -> list[str]:
    return [metric, f"{value.value:.4f}", f"{value.low:.4f} – {value.high:.4f}"]


def _per_query_csv(arguments: Any, data: LetorData, problem: Judged, model: Any) -> bytes:
    """One line for each query. A metric without a value is left empty."""
    assert data.qid is not None
    metrics = metrics_of(arguments, data)
    columns = []
    for metric in metrics:
        options = {"no_positives": "nan", **options_of(arguments, metric, model)}
        queries, values = per_query(metric, problem.relevance, problem.scores, data.qid, **options)
        columns.append(["" if np.isnan(value) else repr(value) for value in values.tolist()])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["qid", *metrics])
    writer.writerows(zip(queries.tolist(), *columns, strict=True))
    return text.getvalue().encode()
