"""npz, Parquet, CSV, runs, and `load`, which tells them apart."""

from __future__ import annotations

import subprocess
import sys
import zipfile

import numpy as np
import pytest
from scipy import sparse

from rankhinge import datasets
from rankhinge.datasets import DataError, LetorData, Texts


def example(is_sparse=False):
    X = np.array([[0.5, 0.0], [1.0, 2.0], [0.0, 3.0]])
    return LetorData(
        sparse.csr_array(X) if is_sparse else X,
        np.array([0.0, 1.0, 2.0]),
        np.array([7, 7, 8]),
        Texts.of(["docid = ä", "", "c"]),
        "x",
        1,
        ["a", "b"],
    )


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


@pytest.mark.parametrize("is_sparse", [False, True])
def test_npz_gives_back_what_it_was_given(tmp_path, is_sparse):
    data, path = example(is_sparse), tmp_path / "a.npz"
    datasets.save_npz(path, data)
    first = path.read_bytes()
    found = datasets.load(path)
    assert type(found.X) is type(data.X)
    assert dense(found.X).tobytes() == dense(data.X).tobytes()
    assert (found.y == data.y).all()
    assert (found.qid == data.qid).all()
    assert found.comments == data.comments
    assert (found.index_base, found.feature_names, found.path) == (1, ["a", "b"], str(path))
    datasets.save_npz(path, found)
    assert path.read_bytes() == first


def test_npz_of_others(tmp_path):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, X=np.eye(2, dtype=np.float32, order="F"), y=[0, 1])
    found = datasets.load_npz(path)
    assert (found.X.dtype, found.X.tolist(), found.qid) == (np.float32, [[1, 0], [0, 1]], None)


def npz_faults():
    eye, y = np.eye(2), np.arange(2.0)
    yield {"X": eye}, "there is no array 'y', only 'X'"
    yield {"X": eye, "y": np.arange(3.0)}, "y must have one number for each of the 2 rows, got (3,) of float64"
    yield {"X": np.array([[1, np.nan]]), "y": y[:1]}, "X[0, 1] is not finite, nan"
    yield {"X": eye, "y": y, "qid": y}, "qid must have an integer or a text for each row, got (2,) of float64"
    yield {"X": np.empty((0, 2)), "y": y[:0]}, "the file is empty: X has no rows"
    yield {"X": np.array([[None]]), "y": y[:1]}, "the array 'X.npy' holds pickled objects, which are not loaded"
    broken = {"X_data": y, "X_indices": np.array([0, 9]), "X_indptr": np.array([0, 1, 2]), "X_shape": np.array([2, 2])}
    yield broken | {"y": y}, "the arrays of the sparse X do not fit together"


@pytest.mark.parametrize(("arrays", "message"), list(npz_faults()))
def test_npz_messages(tmp_path, arrays, message):
    path = tmp_path / "a.npz"
    np.savez(path, **arrays)
    with pytest.raises(DataError) as caught:
        datasets.load_npz(path)
    assert str(caught.value) == f"{path}: {message}"


def test_npz_bombs_and_damage(tmp_path):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", bytes(1_000_000_000))
    with pytest.raises(DataError, match=r"would take more than .* in memory"):
        datasets.load_npz(path)
    path.write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(DataError, match="the npz file is damaged: 'File is not a zip file'"):
        datasets.load(path)
    with pytest.raises(DataError, match="there is no such file"):
        datasets.load_npz(tmp_path / "nowhere.npz")


@pytest.fixture
def table(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(
        {"label": [1, 0, 2], "qid": ["a", "a", "b"], "u": [0.5, 1.5, -2.0], "v": [True, False, True]}
    )

    def write(name, **changes):
        path = tmp_path / name
        made = frame.assign(**changes)
        if name.endswith(".parquet"):
            made.to_parquet(path)
        else:
            made.to_csv(path, index=False, sep="\t" if ".tsv" in name else ",")
        return path

    return write


@pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a.csv.gz", "a.tsv"])
def test_tables(table, name):
    found = datasets.load(table(name))
    assert found.X.tolist() == [[0.5, 1], [1.5, 0], [-2, 1]]
    assert (found.y.tolist(), found.qid.tolist(), found.feature_names) == ([1, 0, 2], ["a", "a", "b"], ["u", "v"])
    some = datasets.load_table(table(name), label="u", qid=None, features=["v", "label"], dtype=np.float32)
    assert (some.X.dtype, some.X.tolist(), some.qid) == (np.float32, [[1, 1], [0, 0], [1, 2]], None)


@pytest.mark.parametrize("name", ["a.parquet", "a.csv"])
@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({}, {"label": "none"}, "there is no column 'none', found 'label, qid, u, v'"),
        ({"u": ["x", "y", "z"]}, {}, "the column 'u' must be made of numbers, got "),
        ({"u": [1.0, None, 2.0]}, {}, "row 2 has no value in the column 'u'"),
        ({"u": [1.0, 2.0, 1e39]}, {"dtype": np.float32}, "row 3, column 'u' is beyond float32, 1e+39"),
        ({"u": [1.0, np.inf, 1e39]}, {}, "row 2, column 'u' is not finite, "),
    ],
)
def test_table_messages(table, name, changes, options, message):
    path = table(name, **changes)
    with pytest.raises(DataError) as caught:
        datasets.load_table(path, **options)
    assert str(caught.value).startswith(f"{path}: {message}")


def test_damaged_tables(tmp_path):
    pytest.importorskip("pyarrow")
    for name, content in (("a.parquet", b"PAR1" + bytes(50)), ("a.csv", b""), ("b.csv", b"a,b\n1\n")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match="the table cannot be read: "):
            datasets.load(tmp_path / name)


def test_what_needs_an_extra_names_it(tmp_path):
    (tmp_path / "a.csv").write_text("label,x\n1,2\n")
    program = (
        "import sys; sys.modules['pyarrow'] = None; from rankhinge import datasets\n"
        "try: datasets.load(sys.argv[1])\nexcept ModuleNotFoundError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "a.csv")], capture_output=True, text=True, check=True
    )
    assert done.stdout == "reading Parquet and CSV needs pyarrow: pip install 'rankhinge[tables]'\n"


@pytest.mark.parametrize("name", ["a.run", "a.run.gz"])
def test_runs(tmp_path, name):
    path = tmp_path / name
    scores = np.array([0.1, 1 / 3, 0.1, 5.0])
    datasets.dump_run(path, qid=[2, 2, 2, 1], scores=scores, document_ids=list("abcd"), tag="t")
    run = datasets.load_run(path)
    assert (run.qid.tolist(), list(run.document_ids), run.rank.tolist()) == ([2, 2, 2, 1], list("bacd"), [1, 2, 3, 1])
    assert run.scores.tolist() == [1 / 3, 0.1, 0.1, 5.0]
    assert run.tag == "t"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "a.run: the file is empty: a run has at least one line"),
        (
            "1 Q0 a 1 0.5\n",
            "a.run:1: a run has the six fields 'query Q0 document rank score tag', this line has 5: '1 Q0 a 1 0.5\\n'",
        ),
        ("\n1 Q0 a x 0.5 t\n", "a.run:2: the rank is not an integer, 'x'"),
        ("1 Q0 a 1 x t\n", "a.run:1: the score is not a number, 'x'"),
        ("1 Q0 a 1 nan t\n", "a.run:1: the score is not finite, 'nan'"),
        ("1 Q0 a 1 2 t\n1 Q0 a 2 1 t\n", "a.run:2: query '1' has the document 'a' twice"),
        (b"\xff\n", "a.run:1: the line is not UTF-8 text, byte 0xff"),
    ],
)
def test_run_messages(tmp_path, monkeypatch, content, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.run").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError) as caught:
        datasets.load_run("a.run")
    assert str(caught.value) == message


def test_runs_that_cannot_be_written(tmp_path):
    with pytest.raises(ValueError, match="must be one word"):
        datasets.dump_run(tmp_path / "a", qid=[1], scores=[1.0], document_ids=["a b"])
    with pytest.raises(ValueError, match=r"scores\[0\] is nan"):
        datasets.dump_run(tmp_path / "a", qid=[1], scores=[np.nan])
    assert not list(tmp_path.iterdir())


def test_texts():
    texts = Texts.of(["ä", "", "b c"])
    assert (len(texts), texts[-1], list(texts[1:])) == (3, "b c", ["", "b c"])
    with pytest.raises(IndexError):
        texts[3]
    assert LetorData(np.eye(1), np.ones(1), comments=Texts.of([""])).document_ids is None
