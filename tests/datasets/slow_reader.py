"""A reader of svmlight in a few lines of Python: what the compiled one is compared with."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np


def read(path):
    """Labels, queries (or None), comments, and the rows as dicts from index to value."""
    raw = Path(path).read_bytes()
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    labels, queries, comments, rows = [], [], [], []
    for line in raw.decode().replace("\r\n", "\n").split("\n"):
        content, _, comment = line.partition("#")
        words = content.split()
        if not words:
            continue
        labels.append(float(words[0]))
        comments.append(comment.strip())
        if words[1:] and words[1].startswith("qid:"):
            queries.append(int(words.pop(1)[4:]))
        rows.append({int(index): float(value) for index, value in (word.split(":") for word in words[1:])})
    return np.array(labels), np.array(queries) if queries else None, comments, rows


def dense(rows, base, n_features):
    X = np.zeros((len(rows), n_features))
    for k, row in enumerate(rows):
        for index, value in row.items():
            X[k, index - base] = value
    return X
