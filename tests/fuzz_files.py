"""Mutated files: whatever they hold, a reader returns data or raises its own error, soon and within bounds.

``python -m tests.fuzz_files --count 10000 --seed 0`` goes through 10,000 files of each format.
"""

from __future__ import annotations

import argparse
import gzip
import io
import os
import resource
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable
from functools import cache
from random import Random

import numpy as np

import rankhinge
from rankhinge import datasets
from rankhinge.persistence import ModelFileError, model_file
from tests.watchdog import no_longer_than, patience

FORMATS = ("svmlight", "gzip", "npz", "model", "parquet", "csv", "run")
SUFFIX = {"gzip": ".txt.gz", "npz": ".npz", "parquet": ".parquet", "csv": ".csv", "model": ".safetensors"}
# Seconds of wall-clock time for a file on a quiet machine.
LONGEST = 5.0
# Bytes beside four times the file.
MEMORY = 500_000_000
TOKENS = (
    b"NULL nan inf -inf 1e309 1e-400 1.797e308 -1 0: 1: :: qid: qid:x # \n \r\n \0 \xff 99999999999 2147483647:1 e e5 "
    b". -- 00000000000000000000000000001 123456789012345678901234567890 \t {} [] null 1e999999999"
).split(b" ")


def mutated(content: bytes, random: Random) -> bytes:
    """The content with one to four changes."""
    data = bytearray(content)
    for _ in range(random.randint(1, 4)):
        place = random.randrange(len(data) + 1)
        length = min(random.choice([1, 2, 4, 8, 50, 500]), len(data) - place)
        kind = random.randrange(8)
        if kind == 0 and place < len(data):
            data[place] ^= 1 << random.randrange(8)
        elif kind == 1:
            del data[place : place + length]
        elif kind == 2:
            data[place:place] = data[place : place + length]
        elif kind == 3:
            data[place:place] = random.randbytes(random.randint(1, 20))
        elif kind == 4:
            del data[place:]
        elif kind == 5:
            data[place : place + length] = random.choice([b"\xff", b"\0", b"\x7f"]) * length
        elif kind == 6:
            data[place : place + random.randint(0, 3)] = random.choice(TOKENS)
        else:
            start = random.randrange(len(data) + 1)
            data[start : start + length] = data[place : place + length]
    return bytes(data)


@cache
def example() -> datasets.LetorData:
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(40, 6)), 4) * (rng.random((40, 6)) < 0.7)
    X[:, 5] = 1.0
    comments = datasets.Texts.of([f"docid = D{k}" for k in range(40)])
    return datasets.LetorData(X, rng.integers(0, 3, 40).astype(float), np.arange(40) // 8, comments)


def written(write: Callable[[str], object], suffix: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a" + suffix)
        write(path)
        with open(path, "rb") as file:
            return file.read()


@cache
def seed_file(kind: str) -> bytes:
    """A good file of each format."""
    data = example()
    if kind in ("svmlight", "gzip"):
        return written(
            lambda path: datasets.dump_letor(path, data.X, data.y, qid=data.qid, comments=list(data.comments)), ".txt"
        )
    if kind == "npz":
        return written(lambda path: datasets.save_npz(path, data), ".npz")
    if kind == "run":
        run = {"qid": data.qid, "scores": data.X[:, 0], "document_ids": data.document_ids}
        return written(lambda path: datasets.dump_run(path, **run), ".run")
    if kind == "model":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = rankhinge.SVMRanker(bound="convex").fit(data.X, data.y, qid=data.qid)
        return written(lambda path: rankhinge.save(model, path), ".safetensors")
    import pandas

    frame = pandas.DataFrame(data.X, columns=list("abcdef")).assign(label=data.y, qid=data.qid)
    if kind == "csv":
        return frame.to_csv(index=False).encode()
    return written(lambda path: frame.to_parquet(path), ".parquet")


def case(kind: str, seed: int) -> bytes:
    """Mutated file number `seed`; every second one is mutated below its checksum, where it has one."""
    random = Random(f"{kind} {seed}")
    content = seed_file(kind)
    if kind == "gzip":
        return gzip.compress(mutated(content, random)) if seed % 2 else mutated(gzip.compress(content, mtime=0), random)
    if kind == "npz" and seed % 2:
        stream = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(stream, "w") as new:
            unlucky = random.choice(old.namelist())
            for name in old.namelist():
                entry = old.read(name)
                new.writestr(name, mutated(entry, random) if name == unlucky else entry)
        return stream.getvalue()
    if kind == "model" and seed % 2:
        changed = mutated(content, random)
        start = changed.find(b"sha256") + len(b'sha256\\":\\"')
        blank = changed[:start] + b"0" * 64 + changed[start + 64 :]
        return changed[:start] + model_file._digest(blank).encode() + changed[start + 64 :]
    return mutated(content, random)


def attempt(kind: str, path: str) -> str:
    """How reading the file ends: ``"read"`` or ``"refused"``; anything else raises."""
    try:
        if kind == "model":
            rankhinge.load(path)
        elif kind == "run":
            datasets.load_run(path)
        else:
            datasets.load(path)
    except (datasets.DataError, ModelFileError) as error:
        message = str(error)
    else:
        return "read"
    assert "\n" not in message, f"more than one line: {message!r}"
    assert len(message) < 1000, f"too long: {message!r}"
    assert message.startswith(path), f"does not name the file: {message!r}"
    return "refused"


def run(kind: str, count: int, first: int = 0) -> dict[str, int]:
    """Go through files, and return how they ended; raise at the first that breaks a promise, naming its seed."""
    ends = {"read": 0, "refused": 0}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a" + SUFFIX.get(kind, ".txt"))
        with open(path, "wb") as file:
            file.write(case(kind, first))
        attempt(kind, path)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for seed in range(first, first + count):
            with open(path, "wb") as file:
                size = file.write(case(kind, seed))
            try:
                with warnings.catch_warnings(), no_longer_than(LONGEST * patience(), "reading"):
                    warnings.simplefilter("error")
                    ends[attempt(kind, path)] += 1
            except Exception as error:
                raise AssertionError(f"{kind} {seed}: {type(error).__name__}: {error}") from error
            used = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
            assert used <= 4 * size + MEMORY, f"{kind} {seed} took {used / 1e6:.0f} MB"
    return ends


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--formats", nargs="*", default=FORMATS, choices=FORMATS)
    chosen = parser.parse_args()
    for kind in chosen.formats:
        start = time.perf_counter()
        ends = run(kind, chosen.count, chosen.seed)
        print(
            f"{kind}: {ends['read']} read, {ends['refused']} refused, {time.perf_counter() - start:.0f} s", flush=True
        )


if __name__ == "__main__":
    main()
