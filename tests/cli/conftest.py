"""A folder with files that the command is tried on, made once, and a way to call it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from rankhinge.cli import main

COEFFICIENTS = np.array([1.0, -0.5, 0.25, 0.0])


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def facts(self):
        return json.loads(self.out)


def lists(n_queries, seed, n_documents=8):
    """Lines of LETOR with graded labels and the documents' names."""
    rng = np.random.default_rng(seed)
    lines = []
    for query in range(n_queries):
        for document in range(n_documents):
            x = rng.normal(size=COEFFICIENTS.size)
            grade = int(np.clip(np.round(x @ COEFFICIENTS + 0.5 * rng.normal()), 0, 2))
            features = " ".join(f"{k + 1}:{value:.6f}" for k, value in enumerate(x))
            lines.append(f"{grade} qid:{query} {features} # docid = D{query}-{document}\n")
    return "".join(lines)


def rows(n_rows, seed, n_classes=2):
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(n_rows):
        x = rng.normal(size=COEFFICIENTS.size)
        label = int(np.clip(np.round(x @ COEFFICIENTS + 0.5 * rng.normal()), 0, n_classes - 1))
        lines.append(f"{label} " + " ".join(f"{k + 1}:{value:.6f}" for k, value in enumerate(x)) + "\n")
    return "".join(lines)


@pytest.fixture(scope="session")
def files(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("command")
    (folder / "fold").mkdir()
    for name, n_queries, seed in (("train", 20, 0), ("vali", 10, 1), ("test", 15, 2)):
        (folder / "fold" / f"{name}.txt").write_text(lists(n_queries, seed))
    (folder / "rows.txt").write_text(rows(120, 3))
    (folder / "rows_test.txt").write_text(rows(80, 4))
    (folder / "classes.txt").write_text(rows(120, 5, n_classes=3))
    for data, model, options in (
        ("fold/train.txt", "ranker", ()),
        ("rows.txt", "classifier", ()),
        ("classes.txt", "three", ()),
    ):
        code = main(
            ["train", str(folder / data), "--C", "1", "-o", str(folder / f"{model}.safetensors"), "-q", *options]
        )
        assert code == 0
    return folder


@pytest.fixture
def call(capsys):
    """The command in this process: what it returns and writes."""

    def run(*arguments) -> Done:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        written = capsys.readouterr()
        return Done(code, written.out, written.err)

    return run
