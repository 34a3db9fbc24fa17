"""Tables as spreadsheets and pandas write them, and what is said of those that cannot be read."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from rankhinge import datasets
from rankhinge.datasets import DataError, load_table

pandas = pytest.importorskip("pandas")
pyarrow = pytest.importorskip("pyarrow")

GOOD = "label,qid,a,b\n1,q1,0.5,2\n0,q1,0.25,1\n1,q2,3,0\n"
X = [[0.5, 2], [0.25, 1], [3, 0]]


def read(tmp_path, content, name="t.csv", **options):
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return datasets.load(tmp_path / name, **options)


@pytest.mark.parametrize(
    "content",
    [
        GOOD,
        "\ufeff" + GOOD,
        GOOD.replace("\n", "\r\n"),
        GOOD.replace(",", ";"),
        GOOD.replace(",", "\t"),
        GOOD.replace("a,b", '"a","b"'),
        GOOD.replace("\n", "\n\n"),
        GOOD.removesuffix("\n"),
    ],
    ids=["plain", "byte-order mark", "CRLF", "semicolons", "tabs", "quotes", "blank lines", "no last line end"],
)
def test_dialects(tmp_path, content):
    found = read(tmp_path, content)
    assert (found.X.tolist(), found.y.tolist(), found.qid.tolist()) == (X, [1, 0, 1], ["q1", "q1", "q2"])
    assert found.feature_names == ["a", "b"]
    packed = read(tmp_path, gzip.compress(content.encode()), "t.csv.gz")
    assert packed.X.tolist() == X


@pytest.mark.parametrize("late", ["0.5", "1e3", "-7"])
def test_types_that_show_late(tmp_path, late):
    """pyarrow takes a column's type from the first megabyte, where this one has integers only."""
    found = read(tmp_path, "label,qid,a\n" + "1,1,0\n" * 300_000 + f"0,one,{late}\n")
    assert found.X[-1, 0] == float(late)
    assert found.qid[[0, -1]].tolist() == ["1", "one"]


def test_query_ids_keep_their_zeros(tmp_path):
    assert read(tmp_path, "label,qid,a\n1,07,1\n0,7,2\n").qid.tolist() == ["07", "7"]
    numbers = read(tmp_path, "label,qid,a\n1,12,1\n0,-7,2\n").qid
    assert (numbers.dtype, numbers.tolist()) == (np.int64, [12, -7])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (GOOD.replace("0.25", "hello"), "the column 'a' must be made of numbers, got string, 'hello' in row 2: turn it "
         "into numbers, or leave it out by ignore=['a'] (the command: --ignore)"),
        (GOOD.replace(",", ";").replace(".", ","), "the column 'a' must be made of numbers, got string, '0,5' in row 1:"
         " turn it into numbers, or leave it out by ignore=['a'] (the command: --ignore)"),
        (GOOD.replace("\n1,", "\nyes,"), "the column 'label' must be made of numbers, got string, 'yes' in row 1: turn "
         "it into numbers"),
        (GOOD.replace("0.25,1", "0.25"), "the table cannot be read: row 2 has 3 fields instead of 4, '0,q1,0.25'"),
        (GOOD.replace("0.25,1", "0.25,1,7"), "the table cannot be read: row 2 has 5 fields instead of 4, "
         "'0,q1,0.25,1,7'"),
        (GOOD.replace("0.25", ""), "row 2 has no value in the column 'a'"),
        (GOOD.replace("0,q1", "0,"), "row 2 has no value in the column 'qid'"),
        (GOOD.replace("label", "y"), "there is no column 'label', found 'y, qid, a, b': name the column of the labels "
         "by label= (the command: --label)"),
        (GOOD.replace("a,b", "a,a"), "there are several columns 'a': give each a name of its own"),
        ("label,qid,a,b\n", "the table is empty: it has no rows"),
        ("", "the table cannot be read: 'Empty CSV file'"),
        (GOOD.encode("utf-16"), "the file is text in UTF-16: save it as UTF-8"),
        (GOOD.replace("q2", "qé").encode("latin-1"), "the table cannot be read: row 3, column 'qid' is not UTF-8 text"),
        (GOOD.replace("a,b", "é,b").replace("0.25", "ü").encode("latin-1"), "the table cannot be read: "),
    ],
)  # fmt: skip
def test_messages(tmp_path, content, message):
    with pytest.raises(DataError) as caught:
        read(tmp_path, content)
    told = str(caught.value)
    assert told.startswith(f"{tmp_path / 't.csv'}: {message}")
    assert message.endswith(": ") or told.endswith(message)
    assert "\n" not in told


def test_a_word_that_shows_late(tmp_path):
    with pytest.raises(DataError, match=r"row 300001, column 'a' is not a number, 'x'$"):
        read(tmp_path, "label,a\n" + "1,0\n" * 300_000 + "0,x\n")


def test_columns_that_are_no_features(tmp_path):
    """An index that pandas has written is no feature, and neither is what is named."""
    frame = pandas.read_csv(pandas.io.common.StringIO(GOOD)).iloc[[2, 0, 1]]
    frame.to_csv(tmp_path / "t.csv")
    frame.to_parquet(tmp_path / "t.parquet")
    frame.set_index("qid").to_parquet(tmp_path / "by_query.parquet")
    for name in ("t.csv", "t.parquet", "by_query.parquet"):
        found = load_table(tmp_path / name)
        assert found.feature_names == ["a", "b"]
        assert found.X.tolist() == [X[2], X[0], X[1]]
        assert found.qid.tolist() == ["q2", "q1", "q1"]
        assert load_table(tmp_path / name, ignore=["b"]).feature_names == ["a"]
        with pytest.raises(DataError, match="there is no column 'c', found "):
            load_table(tmp_path / name, ignore=["c"])


def test_unlabelled(tmp_path):
    found = read(tmp_path, "qid,a,b\nq1,0.5,2\n", unlabelled=True)
    assert (found.X.tolist(), found.qid.tolist(), found.feature_names) == ([[0.5, 2]], ["q1"], ["a", "b"])
    assert np.isnan(found.y).all()
    assert read(tmp_path, GOOD, unlabelled=True).y.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("column", "told"),
    [
        (pyarrow.array([[0.5], [1.0]]), r"got list<.*>, '\[0.5\]' in row 1: turn it into numbers, or leave it out"),
        (pyarrow.array([{"u": 1.0}, {"u": 2.0}]), "got struct<u: double>, "),
        (pyarrow.array(["x", "y"]).dictionary_encode(), "got categories of string, 'x' in row 1: "),
        (pyarrow.array([b"x", b"y"]), "got text that is not UTF-8"),
        (pyarrow.array([0, 1], pyarrow.timestamp("us")), r"got timestamp\[us\], '1970-01-01 00:00:00' in row 1: "),
    ],
)
def test_columns_that_are_no_numbers(tmp_path, column, told):
    from pyarrow import parquet

    path = tmp_path / "t.parquet"
    parquet.write_table(pyarrow.table({"label": [1, 0], "a": column, "b": [1.0, 2.0]}), path)
    with pytest.raises(DataError, match=f"the column 'a' must be made of numbers, {told}"):
        datasets.load(path)
    assert datasets.load(path, ignore=["a"]).X.tolist() == [[1.0], [2.0]]
    packed = tmp_path / "t.parquet.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    with pytest.raises(DataError, match=r"a Parquet file inside a gzip file: unpack it first$"):
        datasets.load(packed)
