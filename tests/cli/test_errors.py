"""What goes wrong is one line and an exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from rankhinge import datasets
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
        (["train", "x", "--C", "inf"], "argument --C: inf is not finite (see rankhinge train --help)"),
        (
            ["train", "x", "--relevant-from", "nan"],
            "argument --relevant-from: nan is not finite (see rankhinge train --help)",
        ),
        (
            ["train", "x", "--seed", "-1"],
            "argument --seed: -1 is not between 0 and 4294967295 (see rankhinge train --help)",
        ),
        (["warm", ""], "argument folder: the name of the file is empty (see rankhinge warm --help)"),
        (["train", ""], "argument data: the name of the file is empty (see rankhinge train --help)"),
        (
            ["predict", "m", "-"],
            "argument data: '-' does not stand for standard input or output here: give a file (see rankhinge predict "
            "--help)",
        ),
        (
            ["predict", "m", "x", "--run", "two words"],
            "argument --run: 'two words' must be one word: blanks separate the fields of a run (see rankhinge predict "
            "--help)",
        ),
    ],
)
def test_usage(call, arguments, message):
    assert one_line(call(*arguments), 2) == message


def test_options_that_contradict(call, files):
    rows, train = files / "rows.txt", files / "fold" / "train.txt"
    found = one_line(call("train", rows, "--C", 1, "--bound", "tight"), 2)
    assert found == "--C is the strength of the convex bound, not of the tight one"
    found = one_line(call("train", rows, "--reach", 1, "--folds", 3), 2)
    assert found == "reach is given, so there is nothing for folds or validation data to choose: leave out one of them"
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
    assert one_line(call("train", "no such file", "--loss", ""), 2).startswith("--loss: unknown loss ''")


def test_gains_whatever_the_case(call, files):
    judge = ("evaluate", files / "ranker.safetensors", files / "fold" / "test.txt", "--gains", "linear", "--json")
    (lower,) = call(*judge, "--metric", "ndcg@3").facts["metrics"].values()
    (upper,) = call(*judge, "--metric", "NDCG@3").facts["metrics"].values()
    assert upper == lower


def test_unknown_class(call, files):
    done = call("evaluate", files / "three.safetensors", files / "classes.txt", "--class", 7)
    assert one_line(done, 2) == "--class 7: the classes are 0, 1, 2"
    test = files / "fold" / "test.txt"
    found = one_line(call("evaluate", files / "ranker.safetensors", test, "--class", 1), 2)
    assert found == f"--class 1 is for data without queries, but {test} has qid: leave it out, or use --no-qid"


def test_labels_that_the_model_does_not_know(call, files):
    judge = ("evaluate", files / "classifier.safetensors", files / "fold" / "test.txt", "--no-qid")
    done = call(*judge)
    assert done.code == 0
    assert done.err == (
        f"rankhinge: warning: {files / 'fold' / 'test.txt'} has the labels 2, but the model's classes are 0, 1: such "
        "rows belong to none of them. --relevant-from GRADE makes grades binary\n"
    )
    assert call(*judge, "--relevant-from", 1).err == ""


def test_a_split_that_leaves_nothing(call, files):
    train = files / "fold" / "train.txt"
    found = one_line(call("train", train, "--validation-split", 0.99), 3)
    assert found == f"{train}: --validation-split 0.99 leaves none of 20 queries to train on"


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


def test_features_that_are_not_there(call, files, tmp_path):
    rows = files / "rows_test.txt"
    found = one_line(call("evaluate", "feature:9", rows), 2)
    assert found == "feature:9: the file has the features 1 to 4"
    assert one_line(call("evaluate", "feature:x", rows), 2) == "feature:x: the file has no feature of this name"
    pytest.importorskip("pyarrow")
    table = tmp_path / "t.csv"
    table.write_text("label,a,b\n1,2,3\n0,1,2\n")
    found = one_line(call("evaluate", "feature:x", table), 2)
    assert found == "feature:x: the file has no feature of this name, but 'a, b'"


def test_scores_of_other_rows(call, files, tmp_path):
    scores = tmp_path / "scores.txt"
    scores.write_text("1\n2\n")
    rows = files / "rows_test.txt"
    assert one_line(call("evaluate", scores, rows), 3) == f"{scores}: 2 scores for the 80 rows of {rows}"
    scores.write_text("1\n" * 90)
    found = one_line(call("evaluate", scores, rows), 3)
    assert found == f"{scores}:81: there are more scores than the 80 rows of {rows}"
    scores.write_text("1\nx\n")
    found = one_line(call("evaluate", scores, rows), 3)
    assert found == f"{scores}:2: expected a score (one number), or the six fields of a run, found 'x'"


def test_runs_of_other_documents(call, files, tmp_path):
    """What a run lacks comes last, and is told of; so is what it has beside."""
    test, run = files / "fold" / "test.txt", tmp_path / "mine.run"
    assert call("predict", files / "ranker.safetensors", test, "--run", "mine", "-o", run).code == 0
    lines = run.read_text().splitlines()
    own = [line for line in lines if line.split()[0] != "1"][:-2]
    run.write_text("\n".join([*own, "99 Q0 D99-0 1 0.5 mine"]))
    done = call("evaluate", run, test, "--metric", "ap")
    assert done.code == 0
    assert done.err == (
        f"rankhinge: warning: {run} lacks {len(lines) - len(own)} of the {len(lines)} documents of {test}, and all "
        "those of 1 queries: they come last in their queries, as equals\n"
        f"rankhinge: warning: {run} has 1 documents that are not in {test}: they are ignored\n"
    )
    # The same as a score below all others.
    place = {(line.split()[0], line.split()[2]): float(line.split()[4]) for line in own}
    data = datasets.load(test)
    keys = zip(map(str, data.qid.tolist()), data.document_ids, strict=True)
    (tmp_path / "scores.txt").write_text("".join(f"{place.get(key, -1e9)!r}\n" for key in keys))
    assert call("evaluate", tmp_path / "scores.txt", test, "--metric", "ap").out == done.out
    run.write_text("99 Q0 D99-0 1 0.5 mine\n")
    assert one_line(call("evaluate", run, test), 3) == f"{run}: the run has none of the documents of {test}"


def test_a_run_for_documents_that_are_there_twice(call, files, tmp_path):
    (tmp_path / "t.txt").write_text("1 qid:1 1:1 # a\n0 qid:1 1:2 # a\n")
    (tmp_path / "r").write_text("1 Q0 a 1 0.5 mine\n")
    found = one_line(call("evaluate", tmp_path / "r", tmp_path / "t.txt"), 3)
    assert found == f"{tmp_path / 't.txt'}: a query has a document twice, so a run does not tell their scores apart"


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
    done = call("train", files / "rows.txt", "--C", 1, "-o", tmp_path / "m", "--save-data", tmp_path)
    assert one_line(done, 3) == f"{tmp_path}: cannot be written, is a directory"


@pytest.mark.parametrize("place", ["nowhere/m.safetensors", "."])
def test_output_is_tried_before_the_work(call, files, tmp_path, monkeypatch, place):
    """Nobody wants to hear of it after hours of training."""
    import rankhinge

    def fit(self, *arguments, **options):
        pytest.fail("it has begun to train")

    monkeypatch.setattr(rankhinge.RankSVC, "fit", fit)
    target = tmp_path / place
    assert one_line(call("train", files / "rows.txt", "--C", 1, "-o", target), 3).startswith(f"{target}: cannot be ")
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_pipes(files, tmp_path):
    command, test = [sys.executable, "-m", "rankhinge"], files / "fold" / "test.txt"
    predict = [*command, "predict", files / "ranker.safetensors"]
    done = subprocess.run([*predict, "/dev/stdin"], input=test.read_text(), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (
        3,
        "rankhinge: /dev/stdin: this is a pipe, but readers go over a file more than once: write it to a file\n",
    )
    plain = subprocess.run([*predict, test], capture_output=True, text=True).stdout
    assert len(plain.splitlines()) == 120
    for name in ("-", "/dev/stdout"):
        assert subprocess.run([*predict, test, "-o", name], capture_output=True, text=True).stdout == plain


def test_letters_that_a_terminal_does_not_know(files, tmp_path):
    model, test = tmp_path / "mödel.safetensors", files / "fold" / "test.txt"
    model.write_bytes((files / "ranker.safetensors").read_bytes())
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "rankhinge", "evaluate", model, test]
    done = subprocess.run(command, capture_output=True, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert rb"\u2013" in done.stdout
    told = subprocess.run([*command, "--json"], capture_output=True, env=environment)
    assert json.loads(told.stdout)["model"] == str(model)


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


def test_an_interrupt_after_the_data_were_saved(call, files, tmp_path, monkeypatch):
    import rankhinge

    def fit(self, *arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(rankhinge.RankSVC, "fit", fit)
    done = call("train", files / "rows.txt", "--C", 1, "-o", tmp_path / "m", "--save-data", tmp_path / "rows.npz")
    assert one_line(done, 130) == "interrupted, no model was written"
    assert os.listdir(tmp_path) == ["rows.npz"]


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
