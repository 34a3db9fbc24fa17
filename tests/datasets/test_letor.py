"""svmlight / LETOR: the compiled reader against a slow one and scikit-learn's, and every message word by word."""

from __future__ import annotations

import gzip
import os
import struct
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from rankhinge.datasets import DataError, blocks, dump_letor, load_letor, load_letor_folds
from tests.datasets import slow_reader


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a file and return its name, relative so that messages are short."""
    monkeypatch.chdir(tmp_path)

    def write(content, name="f.txt"):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return name

    return write


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def letor_text(rng, n, d, share=1.0):
    """Lines like LETOR's, of numbers as programs write them."""
    lines = []
    for k in range(n):
        kept = np.flatnonzero(rng.random(d) < share)
        forms = rng.integers(0, 5, kept.size)
        values = rng.normal(size=kept.size) * 10.0 ** rng.integers(-12, 12, kept.size)
        words = [
            f"{i + 1}:{[f'{v:.6f}', repr(float(v)), f'{v:.3e}', '0', f'{v:.25g}'][f]}"
            for i, v, f in zip(kept, values, forms)
        ]
        comment = f" #docid = D{k} inc = {k % 3}" if k % 7 else ""
        lines.append(f"{k % 3} qid:{k // 10} {' '.join(words)}{comment}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("share", [1.0, 0.2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [None, 200])
def test_agrees_with_scikit_learn_bit_by_bit(write, monkeypatch, share, dtype, size):
    if size is not None:
        # Many small blocks: their seams must not show.
        monkeypatch.setattr(blocks, "_SIZE", size)
    path = write(letor_text(np.random.default_rng(0), 120, 30, share))
    data = load_letor(path, dtype=dtype)
    X, y, qid = load_svmlight_file(path, dtype=dtype, query_id=True)
    assert sparse.issparse(data.X) == (share < 0.3)
    both = data.X.toarray() if sparse.issparse(data.X) else data.X
    # SciPy makes 0 of -0 on the way to a dense array.
    assert both.dtype == dtype
    assert np.array_equal(both, X.toarray())
    assert same_bits(load_letor(path, dtype=dtype, sparse=True).X.data, X.data)
    assert same_bits(data.y, y)
    assert same_bits(data.qid, qid)
    assert list(data.comments) == slow_reader.read(path)[2]


def test_same_for_any_number_of_threads(write, monkeypatch):
    monkeypatch.setattr(blocks, "_SIZE", 500)
    path = write(letor_text(np.random.default_rng(1), 200, 10))
    found = []
    for n in (1, 2, 5):
        monkeypatch.setenv("RANKHINGE_NUM_THREADS", str(n))
        found.append(load_letor(path))
    for other in found[1:]:
        assert same_bits(other.X, found[0].X)
        assert other.comments == found[0].comments


NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.tuples(st.integers(0, 10**19), st.integers(-330, 290)).map(lambda p: f"{p[0]}e{p[1]}"),
    st.tuples(st.integers(2**52, 2**53), st.sampled_from(["1", "5"])).map(
        lambda p: f"{2 * p[0] + 1}" if p[1] == "1" else f"{(2 * p[0] + 1) * 5}e-1"
    ),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-1000, max_value=1000, places=30).map(str),
    st.sampled_from(["0", "-0", "+1.5", ".5", "5.", "00012", "4.9e-324", "2.2250738585072011e-308", "1E5", "-1e-400"]),
)


@given(st.lists(NUMBERS, min_size=1, max_size=20))
def test_decimals_are_rounded_like_python_does(numbers):
    # A folder of its own for each example: the fixture's would be shared.
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "f.txt")
        with open(path, "w") as file:
            file.write("1 " + " ".join(f"{k + 1}:{text}" for k, text in enumerate(numbers)))
        found = load_letor(path, sparse=False).X[0]
    assert [struct.pack("d", value) for value in found] == [struct.pack("d", float(text)) for text in numbers]


UNJUDGED = "pass missing_labels='drop' or 'keep' (the command: --missing-labels drop)"
MESSAGES = [
    ("", {}, "f.txt: the file is empty: there is no line with a label"),
    ("\n# only this\n", {}, "f.txt: the file is empty: there is no line with a label"),
    ("1 1:2\nx 1:3\n", {}, "f.txt:2: the label is not a finite number, 'x'"),
    ("1,2 1:3\n", {}, "f.txt:1: the label is not a finite number, '1,2'"),
    ("1e400 1:3\n", {}, "f.txt:1: the label is not a finite number, '1e400'"),
    ("1 1:2\n\n0 1:x\n", {}, "f.txt:3: the value of feature 1 is not a number, 'x'"),
    ("1 1:\n", {}, "f.txt:1: the value of feature 1 is not a number, ''"),
    ("1 1:1,5\n", {}, "f.txt:1: the value of feature 1 is not a number, '1,5'"),
    ("1 a:1\n", {}, "f.txt:1: expected index:value, found 'a:1'"),
    ("1 -1:1\n", {}, "f.txt:1: expected index:value, found '-1:1'"),
    ("1 qid:a 1:2\n", {}, "f.txt:1: the query id is not an integer of at most 18 digits, 'a'"),
    ("1 qid:1 1:2\n0 1:2\n", {}, "f.txt:2: the line has no qid, but the lines before have one"),
    ("1 1:2\n0 qid:1 1:2\n", {}, "f.txt:2: the line has a qid, but the lines before have none"),
    ("1 3:1 2:1\n", {}, "f.txt:1: indices must ascend, '2' follows '3'"),
    ("1 2:1 2:1\n", {}, "f.txt:1: indices must ascend, '2' follows '2'"),
    ("1 99999999999:1\n", {}, "f.txt:1: the index is beyond 2147483646, '99999999999'"),
    (
        "1 1:NULL\n",
        {},
        "f.txt:1: the value of feature 1 is missing, 'NULL': pass missing_values='zero', 'minimum' or 'nan' "
        "(the command: --missing-values zero)",
    ),
    (
        "\n#\n1 1:1\n0 1:3 2:nan # 2:1\n",
        {},
        "f.txt:4: the value of feature 2 is missing, 'nan': pass missing_values='zero', 'minimum' or 'nan' "
        "(the command: --missing-values zero)",
    ),
    (
        "NULL 1:1\n1 1:1",
        {},
        f"f.txt:1: the label is missing, 'NULL': {UNJUDGED}",
    ),
    (
        "2 1:1\n-1 1:1",
        {},
        f"f.txt:2: the label is missing, '-1': {UNJUDGED}",
    ),
    ("1 2:1.797e308\n", {"dtype": np.float32}, "f.txt:1: the value of feature 2 is beyond float32, '1.797e308'"),
    ("1 2:1.798e308\n", {}, "f.txt:1: the value of feature 2 is beyond float64, '1.798e308'"),
    ("1 2:-inf\n", {}, "f.txt:1: the value of feature 2 is beyond float64, '-inf'"),
    # Python reads this one, because the kernel cannot tell how to round it. Tabs separate as blanks do.
    *(
        (
            f"0 1:1\n1{blank}1:5{blank}2:1797693134862315807931234567890e279{blank}3:1\n",
            {},
            "f.txt:2: the value of feature 2 is beyond float64, '1797693134862315807931234567890e279'",
        )
        for blank in (" ", "\t", "\t ", " \t", "\r")
    ),
    ("1\t1:5\t2:x\n", {}, "f.txt:1: the value of feature 2 is not a number, 'x'"),
    (
        "1\t1:5\t2:NULL\n",
        {},
        "f.txt:1: the value of feature 2 is missing, 'NULL': pass missing_values='zero', 'minimum' or 'nan' "
        "(the command: --missing-values zero)",
    ),
    (
        "1 0:1 1:2\n0 0:1 1:2\n0 1:1 2:3\n",
        {},
        "f.txt:3: the 2 columns are counted from 1, but in line 1 from 0: pass index_base=0 if this is intended "
        "(the command: --index-base 0)",
    ),
    ("1 1:1\n0 0:1\n", {"index_base": 1}, "f.txt:2: the index is 0, but columns are counted from 1"),
    ("1 1:1\n0 5:1\n", {"n_features": 3}, "f.txt:2: the index is beyond the 3 features, up to 5"),
    ("1\n0\n", {}, "f.txt: no line has a feature"),
    ("1 1:1\0\n", {}, "f.txt:1: the file is not text, byte 0x00"),
    (b"\xff\xfe1\0 \0", {}, "f.txt: the file is text in UTF-16: save it as UTF-8"),
    (b"\xff 1:1", {}, "f.txt:1: the label is not a finite number, '\\\\xff'"),
    (b"BZh91AY&SY", {}, "f.txt: the file is packed by bzip2: unpack it first, or use gzip"),
    (b"\x28\xb5\x2f\xfd\0", {}, "f.txt: the file is packed by zstd: unpack it first, or use gzip"),
    (b"\xfd7zXZ\0", {}, "f.txt: the file is packed by xz: unpack it first, or use gzip"),
    (
        gzip.compress(b"1 1:1\n" * 99, mtime=0)[:-9],
        {},
        "f.txt: the gzip file is damaged: Compressed file ended before the end-of-stream marker was reached",
    ),
    (
        "1 2000000000:1\n",
        {"sparse": False},
        "f.txt: 15 bytes on disk would take more than 350000060 in memory: if you trust the file, pass "
        "max_memory=None (the command: --any-size)",
    ),
]


@pytest.mark.parametrize(("content", "options", "message"), MESSAGES)
def test_messages(write, content, options, message):
    path = write(content)
    with pytest.raises(DataError) as caught:
        load_letor(path, **options)
    assert str(caught.value) == message
    assert caught.value.path == path
    assert caught.value.line == (
        int(message.split(":")[1]) if message[5:].startswith(":") and message[6].isdigit() else None
    )


def test_no_file(write, tmp_path):
    with pytest.raises(DataError, match="there is no such file"):
        load_letor("nowhere.txt")
    with pytest.raises(DataError, match="this is a folder"):
        load_letor(tmp_path)


def test_line_ends_do_not_matter(write):
    lines = ["1 qid:1 1:0.5 # a", "0 qid:1 1:0.25 # b", "", "2 qid:2 1:1"]
    wanted = None
    for content in (
        "\n".join(lines),
        "\n".join(lines) + "\n",
        "\r\n".join(lines),
        "\r\n".join(lines) + "\r\n",
        "﻿" + "\n".join(lines),
        "\t " + "\n".join(lines),
    ):
        data = load_letor(write(content))
        found = (data.X.tolist(), data.y.tolist(), data.qid.tolist(), list(data.comments))
        wanted = wanted or found
        assert found == wanted
    assert wanted == ([[0.5], [0.25], [1.0]], [1.0, 0.0, 2.0], [1, 1, 2], ["a", "b", ""])


def test_labels_of_two_classes_are_none_missing(write):
    assert load_letor(write("-1 1:1\n1 1:2\n")).y.tolist() == [-1, 1]


def test_missing_labels(write):
    path = write("2 qid:1 1:1 # a\n-1 qid:1 1:2 # b\nNULL qid:2 1:3 # c\n0 qid:2 1:4 # d\n")
    dropped = load_letor(path, missing_labels="drop")
    assert (dropped.y.tolist(), dropped.qid.tolist(), dropped.X.ravel().tolist()) == ([2, 0], [1, 2], [1, 4])
    assert dropped.document_ids == ["a", "d"]
    assert load_letor(path, missing_labels="keep").y.tolist() == [2, -1, -1, 0]
    with pytest.raises(DataError, match="no line has a label"):
        load_letor(write("NULL 1:1\n"), missing_labels="drop")


@pytest.mark.parametrize("is_sparse", [False, True])
def test_missing_values(write, is_sparse):
    path = write("0 qid:1 1:NULL 2:5\n0 qid:1 1:3 2:6\n0 qid:1 1:2 2:7\n0 qid:2 1:NULL 2:NULL\n0 qid:2 1:9\n")
    found = {}
    for policy in ("zero", "minimum", "nan"):
        X = load_letor(path, missing_values=policy, sparse=is_sparse).X
        found[policy] = X.toarray() if is_sparse else X
    assert found["zero"][:, 0].tolist() == [0, 3, 2, 0, 9]
    assert found["minimum"].tolist() == [[2, 5], [3, 6], [2, 7], [9, 0], [9, 0]]
    assert np.isnan(found["nan"]).nonzero()[0].tolist() == [0, 3, 3]


def test_index_base(write):
    assert load_letor(write("1 1:1 3:1\n")).n_features == 3
    assert load_letor(write("1 1:1 3:1\n"), index_base=0).n_features == 4
    data = load_letor(write("1 0:1\n0 3:1\n"))
    assert (data.index_base, data.n_features) == (0, 4)
    assert load_letor(write("1 0:1 1:2\n0 1:1 2:3\n"), index_base=0).X.tolist() == [[1, 2, 0], [0, 1, 3]]


def test_query_file(write):
    path = write("1 1:1\n0 1:2\n1 1:3\n")
    write("2\n1\n", "f.txt.query")
    assert load_letor(path).qid.tolist() == [0, 0, 1]
    assert load_letor(path, query_file=None).qid is None
    write("2\n2\n", "f.txt.query")
    with pytest.raises(DataError) as caught:
        load_letor(path)
    assert str(caught.value) == "f.txt.query: the sizes of the queries sum to 4, but there are 3 rows in f.txt"
    write("2\nx\n", "f.txt.query")
    with pytest.raises(DataError) as caught:
        load_letor(path)
    assert str(caught.value) == "f.txt.query:2: the size of a query is not a number, 'x'"


def test_folds(write, tmp_path):
    for fold in ("Fold1", "Fold2"):
        (tmp_path / fold).mkdir()
        write("1 qid:1 1:1 2:1\n", f"{fold}/train.txt")
        write("1 qid:2 1:1 3:1\n", f"{fold}/vali.txt")
        write(gzip.compress(b"1 qid:3 1:1\n", mtime=0), f"{fold}/test.txt.gz")
    folds = load_letor_folds(".", sparse=False)
    assert list(folds) == ["Fold1", "Fold2"]
    assert {part: data.X.tolist() for part, data in folds["Fold2"].items()} == {
        "train": [[1, 1, 0]],
        "vali": [[1, 0, 1]],
        "test": [[1, 0, 0]],
    }
    assert list(load_letor_folds("Fold1")) == ["train", "vali", "test"]
    write("1 qid:1 0:1 1:1 2:1\n", "Fold1/train.txt")
    with pytest.raises(DataError) as caught:
        load_letor_folds("Fold1")
    assert str(caught.value) == (
        "./Fold1/vali.txt: the 3 columns are counted from 1, those of the other files from 0: pass index_base"
    ).replace("./", "")
    with pytest.raises(DataError, match="neither a train"):
        load_letor_folds(tmp_path / "nowhere")


BOMBS = {
    "zeros": b"\0" * (1 << 20),
    "rows": b"0\n" * (1 << 19),
    "entries": (b"1" + b" 1:1\n" * (1 << 18))[: 1 << 20],
    "blank": b"\n" * (1 << 20),
}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
@pytest.mark.parametrize("kind", BOMBS)
def test_gzip_bombs_stay_within_bounds(tmp_path, kind):
    """Half a gigabyte of text in half a megabyte: an error, with at most 4 × its size + 500 MB beside Python's own."""
    path = tmp_path / "bomb.gz"
    with gzip.open(path, "wb", 9) as file:
        for _ in range(512):
            file.write(BOMBS[kind])
    program = (
        "import re, sys; from rankhinge.datasets import DataError, load_letor\n"
        # Not `getrusage`, which goes on from the peak of the parent process.
        "def peak(): return int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]) * 1024\n"
        "open(sys.argv[1] + '.small', 'w').write('1 1:1\\n'); load_letor(sys.argv[1] + '.small')\n"
        "before = peak()\n"
        "try: load_letor(sys.argv[1])\n"
        "except DataError as error: print(peak() - before, error)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    used, message = done.stdout.split(" ", 1)
    assert int(used) <= 4 * path.stat().st_size + 500_000_000
    assert "bomb.gz" in message


@given(st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([0, 1]), st.sampled_from([np.float32, np.float64]))
def test_written_and_read_again(seed, is_sparse, base, dtype):
    import tempfile

    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(6, 5)) * 10.0 ** rng.integers(-30, 30, (6, 5))).astype(dtype) * (rng.random((6, 5)) < 0.5)
    X[:, 4], X[:, 0] = 1, 2
    # A sparse matrix stores no -0.
    X += 0.0
    given = X
    if is_sparse:
        given = sparse.csr_array(X)
        given.indices, given.indptr = given.indices.astype(np.int64), given.indptr.astype(np.int64)
    y, qid = rng.integers(0, 5, 6), rng.integers(-5, 10**12, 6)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.txt.gz" if seed % 2 else "a.txt")
        dump_letor(path, given, y, qid=qid, comments=[f"docid = d{k}" for k in range(6)], index_base=base)
        data = load_letor(path, dtype=dtype, sparse=False, index_base=base)
    assert same_bits(data.X, X)
    assert (data.y == y).all()
    assert (data.qid == qid).all()
    assert data.document_ids == [f"d{k}" for k in range(6)]


def test_reads_what_scikit_learn_writes(write):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(20, 4)), rng.integers(0, 2, 20)
    dump_svmlight_file(X, y, "f.txt", query_id=np.arange(20) // 5, zero_based=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = load_letor("f.txt", sparse=False)
    assert same_bits(data.X, load_svmlight_file("f.txt")[0].toarray())


def test_writing_leaves_nothing_half_done(write):
    path = write("old")
    with pytest.raises(ValueError, match="line break"):
        dump_letor(path, np.eye(2), [0, 1], comments=["a", "b\nc"])
    assert Path(path).read_text() == "old"
    assert os.listdir(".") == [path]
    with pytest.raises(ValueError, match="not finite: nan"):
        dump_letor(path, [[np.nan]], [0])
