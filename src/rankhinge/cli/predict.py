"""``rankhinge predict``: scores of a file's rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankhinge.cli.outcome import DONE, USAGE, CommandError
from rankhinge.cli.reading import data_of, model_of, scores_by
from rankhinge.cli.writing import naming, output, refuse_unwritable, show
from rankhinge.datasets import LetorData, dump_run

__all__ = ["run"]


def run(arguments: Any) -> int:
    """Write the scores."""
    refuse_unwritable(arguments.output)
    model = model_of(arguments.model)
    data = data_of(arguments, arguments.data, model, unlabelled=True)
    scores = scores_by(model, data.X)
    if arguments.run is not None:
        _write_run(arguments, data, scores)
    elif arguments.output is not None:
        with output(arguments.output) as file:
            file.write(_lines(scores))
    if arguments.json:
        facts: dict[str, Any] = {"n_rows": data.n_samples, "output": arguments.output}
        show(arguments, "", facts if arguments.output else facts | {"scores": scores})
    elif arguments.output is None:
        with output(None) as file:
            file.write(_lines(scores))
    else:
        print(f"{data.n_samples} scores written to {arguments.output}")
    return DONE


def _lines(scores: NDArray[np.float64]) -> bytes:
    """One line for each row, with the fewest digits that give the same float64 back. Classes are side by side."""
    rows = scores.reshape(scores.shape[0], -1).tolist()
    return "".join(" ".join(map(repr, row)) + "\n" for row in rows).encode()


def _write_run(arguments: Any, data: LetorData, scores: NDArray[np.float64]) -> None:
    if arguments.output is None:
        raise CommandError("--run needs a file to write to: -o FILE", USAGE)
    if data.qid is None or scores.ndim > 1:
        raise CommandError(f"{arguments.data}: a run ranks documents of queries, but there is no qid")
    with naming(arguments.output):
        dump_run(arguments.output, qid=data.qid, scores=scores, document_ids=data.document_ids, tag=arguments.run)
