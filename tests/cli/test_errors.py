"""What goes wrong is one line and an exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from rankhinge.cli import main
from tests.cli.conftest import lists


def one_line(done, code):
    assert done.code == code, done
    assert done.err.startswith("rankhinge: ")
    assert done.err.endswith("\n")
    assert done.err.count("\n") == 1
    assert "Traceback" not in done.err
    return done.err[len("rankhinge: ") : -1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: command (see rankhinge --help)"),
        (["train"], "the following arguments are required: data (see rankhinge train --help)"),
        (["train", "x", "--C", "-1"], "argument --C: -1 is not above 0 (see rankhinge train --help)"),
        (["train", "x", "--C", "nan"], "argument --C: nan is not above 0 (see rankhinge train --help)"),
        (["train", "x", "--folds", "1"], "argument --folds: 1 is not at least 2 (see rankhinge train --help)"),
        (
            ["train", "x", "--C", "1", "--reach", "1"],
            "argument --reach: not allowed with argument --C (see rankhinge train --help)",
        ),
        (
            ["train", "x", "--level-weights", "1;2"],
            "argument --level-weights: '1;2' is neither uniform nor numbers such as 1,1,2 (see rankhinge train --help)",
        ),
        (["train", "x", "--tol", "q"], "argument --tol: invalid float value: 'q' (see rankhinge train --help)"),
    ],
)
def test_usage(call, arguments, message):
    assert one_line(call(*arguments), 2) == message


def test_options_that_contradict(call, files):
    rows, train = files / "rows.txt", files / "fold" / "train.txt"
    found = one_line(call("train", rows, "--C", 1, "--bound", "tight"), 2)
    assert found == "--C is the strength of the convex bound, not of the tight one"
    found = one_line(call("train", rows, "--reach", 1, "--folds", 3), 2)
    assert found == "reach is given, so folds and validation data have nothing to choose: leave out one of them"
    found = one_line(call("train", rows, "--level-weights", "uniform"), 2)
    assert found == f"--level-weights is for queries, but {rows} has no qid"
    found = one_line(call("train", train, "--loss", "rr"), 2)
    assert found == (
        f"{train} has 3 grades, but the loss 'rr' is binary: give --relevant-from GRADE or --level-weights uniform"
    )


def test_unknown_metric(call, files):
    done = call("evaluate", files / "ranker.safetensors", files / "fold" / "test.txt", "--metric", "mse")
    assert one_line(done, 2).startswith("--metric: metric is 'mse', choose one of average_precision, ndcg")


def test_unknown_loss(call):
    found = one_line(call("train", "no such file", "--loss", "ndgc@10"), 2)
    assert found.startswith("--loss: unknown loss 'ndgc@10' (did you mean 'ndcg@10'?)")
    assert one_line(call("train", "no such file", "--loss", "p@0"), 2).startswith("--loss: loss 'p@0': k is '0'")


def test_gains_whatever_the_case(call, files):
    judge = ("evaluate", files / "ranker.safetensors", files / "fold" / "test.txt", "--gains", "linear", "--json")
    (lower,) = call(*judge, "--metric", "ndcg@3").facts["metrics"].values()
    (upper,) = call(*judge, "--metric", "NDCG@3").facts["metrics"].values()
    assert upper == lower


def test_unknown_class(call, files):
    done = call("evaluate", files / "three.safetensors", files / "classes.txt", "--class", 7)
    assert one_line(done, 2) == "--class 7: the classes are 0, 1, 2"


def test_files_that_are_not_there(call, files):
    missing = files / "nothing.txt"
    assert one_line(call("train", missing), 3).startswith(f"{missing}: ")
    assert one_line(call("evaluate", missing, files / "rows.txt"), 3) == f"{missing}: no such file or directory"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 1:0.5\n1 1:0.25\n", "{path}: y has one class only, 1.0: a ranking needs positives and negatives"),
        ("1 qid:1 1:1\n1 qid:1 1:2\n", "{path}: none of the 1 queries has both a relevant and a less relevant sample"),
    ],
)
def test_data_without_anything_to_rank(call, tmp_path, text, message):
    path = tmp_path / "data.txt"
    path.write_text(text)
    done = call("train", path, "--C", 1, "-o", tmp_path / "m.safetensors")
    assert one_line(done, 3) == message.format(path=path)
    assert not (tmp_path / "m.safetensors").exists()


def test_other_columns(call, files, tmp_path):
    path = tmp_path / "wide.txt"
    path.write_text("1 1:1 9:2\n0 1:2\n")
    assert one_line(call("predict", files / "classifier.safetensors", path), 3).startswith(f"{path}:1: ")


def test_columns_without_end(call, tmp_path):
    path = tmp_path / "wide.txt"
    path.write_text("1 2147483646:1\n0 1:1\n")
    found = one_line(call("train", path), 3)
    assert found == (
        f"{path}: 21 bytes on disk would take more than 350000084 in memory: if you trust the file, pass "
        "max_memory=None (the command: --any-size)"
    )


def test_scores_of_other_rows(call, files, tmp_path):
    scores = tmp_path / "scores.txt"
    scores.write_text("1\n2\n")
    rows = files / "rows_test.txt"
    assert one_line(call("evaluate", scores, rows), 3) == f"{scores}: 2 scores for the 80 rows of {rows}"
    scores.write_text("1\n" * 90)
    found = one_line(call("evaluate", scores, rows), 3)
    assert found == f"{scores}:81: there are more scores than the 80 rows of {rows}"
    scores.write_text("1\nx\n")
    assert one_line(call("evaluate", scores, rows), 3) == f"{scores}:2: expected a score, found 'x'"


def test_run_needs_queries_and_a_file(call, files, tmp_path):
    done = call("predict", files / "classifier.safetensors", files / "rows.txt", "--run", "a", "-o", tmp_path / "r")
    assert one_line(done, 3) == f"{files / 'rows.txt'}: a run ranks documents of queries, but there is no qid"
    done = call("predict", files / "ranker.safetensors", files / "fold" / "test.txt", "--run", "a")
    assert one_line(done, 2) == "--run needs a file to write to: -o FILE"


def test_missing_extra(call, files, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "a.csv"
    path.write_text("label,x\n1,2\n")
    assert one_line(call("train", path), 4) == "reading Parquet and CSV needs pyarrow: pip install 'rankhinge[tables]'"


def test_output_that_cannot_be_written(call, files, tmp_path):
    there = tmp_path / "file"
    there.write_text("")
    target = there / "model.safetensors"
    done = call("train", files / "rows.txt", "--C", 1, "-o", target)
    assert one_line(done, 3) == f"{target}: cannot be written, not a directory"
    done = call("predict", files / "classifier.safetensors", files / "rows.txt", "-o", tmp_path)
    assert one_line(done, 3) == f"{tmp_path}: cannot be written, is a directory"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("number", [28, 30, 13])
def test_full_disk_and_read_only_folder(call, files, tmp_path, monkeypatch, number):
    """What the system says when a disk is full (28), mounted for reading (30), or a folder is closed (13)."""
    target = tmp_path / "scores.txt"
    target.write_text("before")

    def refuse(*arguments, **options):
        raise OSError(number, os.strerror(number), "temporary-name")

    monkeypatch.setattr(os, "replace", refuse)
    done = call("predict", files / "classifier.safetensors", files / "rows.txt", "-o", target)
    text = os.strerror(number)
    assert one_line(done, 3) == f"{target}: cannot be written, {text[:1].lower() + text[1:]}"
    assert target.read_text() == "before"
    assert os.listdir(tmp_path) == ["scores.txt"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_device_that_is_full(files):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "rankhinge", "predict", files / "classifier.safetensors", files / "rows.txt"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 3
    assert done.stderr == "rankhinge: no space left on device\n"


def test_a_reader_that_has_seen_enough(files):
    program = f"{sys.executable} -m rankhinge predict {files / 'classifier.safetensors'} {files / 'rows.txt'} | head -1"
    done = subprocess.run(program, shell=True, capture_output=True, text=True)
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1


def test_bugs_are_told_apart(call, files, monkeypatch):
    import rankhinge.cli.predict

    def broken(arguments):
        raise KeyError("lost")

    monkeypatch.setattr(rankhinge.cli.predict, "run", broken)
    assert one_line(call("predict", "a", "b"), 70).startswith("KeyError: 'lost' (this is a bug;")
    monkeypatch.setenv("RANKHINGE_TRACEBACK", "1")
    with pytest.raises(KeyError):
        main(["predict", "a", "b"])


@pytest.mark.skipif(os.name != "posix", reason="interrupts are sent to processes")
def test_interrupt_leaves_nothing(files, tmp_path):
    target = tmp_path / "m.safetensors"
    target.write_bytes(b"before")
    program = (
        "import sys, rankhinge, rankhinge.cli as cli\n"
        "def fit(self, *a, **k):\n"
        "    print('fitting', flush=True)\n"
        "    import time\n"
        "    time.sleep(60)\n"
        "rankhinge.RankSVC.fit = fit\n"
        f"sys.exit(cli.main(['train', {str(files / 'rows.txt')!r}, '--C', '1', '-o', {str(target)!r}]))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "fitting\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (130, "rankhinge: interrupted, nothing was written\n")
    assert target.read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["m.safetensors"]


@pytest.mark.skipif(os.name != "posix", reason="interrupts are sent to processes")
def test_interrupt_of_a_real_training(tmp_path):
    data, folder = tmp_path / "data.txt", tmp_path / "models"
    data.write_text(lists(400, 0))
    folder.mkdir()
    target = folder / "m.safetensors"
    target.write_bytes(b"before")
    process = subprocess.Popen(
        [sys.executable, "-m", "rankhinge", "train", data, "-v", "-o", target],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # What a shell runs in the background ignores interrupts, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    # The search tells of its first point, and has most of the others before it.
    shown = next(line for line in process.stderr if " left " in line)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, shown + errors
    assert errors.splitlines()[-1] == "rankhinge: interrupted, nothing was written"
    assert "Traceback" not in errors
    assert target.read_bytes() == b"before"
    assert os.listdir(folder) == ["m.safetensors"]
