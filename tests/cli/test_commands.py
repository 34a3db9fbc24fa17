"""What each command does with files as they should be."""

from __future__ import annotations

import csv
import gzip
import re
import subprocess
import sys

import numpy as np
import pytest

import rankhinge
from rankhinge import datasets, metrics
from rankhinge.cli import main


def test_help_imports_no_numpy():
    program = (
        "import sys; from rankhinge.cli import main; code = main(['--help']); "
        "sys.exit(code or int(bool({'numpy', 'numba', 'sklearn', 'scipy'} & sys.modules.keys())))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for command in ("train", "predict", "evaluate", "compare", "report", "demo", "warm"):
        assert command in done.stdout


def test_as_a_module():
    done = subprocess.run([sys.executable, "-m", "rankhinge", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"rankhinge {rankhinge.__version__}\n")


def test_train_chooses_and_tells(call, files, tmp_path):
    model, kept = tmp_path / "model.safetensors", tmp_path / "train.npz"
    done = call("train", files / "fold" / "train.txt", "-o", model, "--save-data", kept, "--folds", 3, "--json")
    assert done.code == 0, done.err
    facts = done.facts
    assert (facts["n_rows"], facts["n_features"], facts["n_queries"]) == (160, 4, 20)
    assert (facts["estimator"], facts["loss"], facts["converged"]) == ("SVMRankerCV", "ndcg", True)
    loaded, data = rankhinge.load(model), datasets.load(kept)
    assert facts["C"] == loaded.C_
    assert loaded.index_base_ == 1
    assert loaded.score(data.X, data.y, qid=data.qid) == pytest.approx(facts["training_metric"], abs=1e-12)


def test_train_chooses_the_bound(call, files, tmp_path):
    models = {bound: tmp_path / f"{bound}.safetensors" for bound in ("tight", "convex", "chosen")}
    train = ("train", files / "fold" / "train.txt", "--folds", 2, "--loss", "ndcg@3", "--json", "-o")
    for bound in ("tight", "convex"):
        assert call(*train, models[bound], "--bound", bound).facts["bound"] == bound
    facts = call(*train, models["chosen"]).facts
    loaded = {bound: rankhinge.load(path) for bound, path in models.items()}
    # On the same folds as each by itself.
    assert facts["fold_scores"] == {bound: loaded[bound].best_score_ for bound in ("tight", "convex")}
    best = max(facts["fold_scores"], key=facts["fold_scores"].get)
    assert facts["bound"] == loaded["chosen"].bound == best
    np.testing.assert_array_equal(loaded["chosen"].coef_, loaded[best].coef_)


def test_train_by_a_given_reach(call, files, tmp_path):
    model = tmp_path / "m.safetensors"
    facts = call("train", files / "rows.txt", "--reach", 0.5, "-o", model, "--json").facts
    assert (facts["estimator"], facts["bound"], facts["reach"]) == ("RankSVC", "tight", 0.5)
    data = datasets.load(files / "rows.txt")
    expected = rankhinge.RankSVC(reach=0.5, random_state=0).fit(data.X, data.y)
    np.testing.assert_array_equal(rankhinge.load(model).coef_, expected.coef_)


@pytest.mark.parametrize("given", ["uniform", "1,3"])
def test_grades_for_a_loss_without(call, files, tmp_path, given):
    model, train = tmp_path / "m.safetensors", files / "fold" / "train.txt"
    done = call("train", train, "--loss", "ap", "--C", 1, "--level-weights", given, "-o", model)
    assert done.code == 0, done.err
    weights = "uniform" if given == "uniform" else [1.0, 3.0]
    data = datasets.load(train)
    expected = rankhinge.SVMRanker("ap", 1.0, bound="convex", level_weights=weights, random_state=0)
    np.testing.assert_array_equal(rankhinge.load(model).coef_, expected.fit(data.X, data.y, qid=data.qid).coef_)


def test_grades_made_binary(call, files, tmp_path):
    model, fold = tmp_path / "m.safetensors", files / "fold"
    options = ("--relevant-from", 2)
    train = ("train", fold / "train.txt", "--loss", "ap", "--C", 1, "-o", model, *options)
    done = call(*train, "--test", fold / "test.txt", "--json")
    assert done.code == 0, done.err
    data, test = datasets.load(fold / "train.txt"), datasets.load(fold / "test.txt")
    expected = rankhinge.SVMRanker("ap", 1.0, bound="convex", random_state=0).fit(data.X, data.y >= 2, qid=data.qid)
    np.testing.assert_array_equal(rankhinge.load(model).coef_, expected.coef_)
    # The test part is read alike, and so is whatever else is told so.
    ap = metrics.average_precision(test.y >= 2, expected.predict(test.X), qid=test.qid, no_positives="skip")
    assert done.facts["test"]["metrics"]["ap"]["value"] == pytest.approx(ap, abs=1e-12)
    judged = call("evaluate", model, fold / "test.txt", "--metric", "ap", "--json", *options)
    assert judged.facts["metrics"]["ap"]["value"] == pytest.approx(ap, abs=1e-12)


def test_a_limit_of_time(call, files, tmp_path):
    done = call("train", files / "rows.txt", "--max-time", 1e-6, "-o", tmp_path / "m.safetensors", "--json")
    # As after every fit that has not converged.
    assert done.code == 1, done.err
    assert "max_time" in done.err
    assert call("train", files / "rows.txt", "--max-time", 0, "-o", tmp_path / "n.safetensors").code == 2


def test_train_from_kept_data_is_the_same(call, files, tmp_path):
    text, kept = files / "rows.txt", tmp_path / "rows.npz"
    first, second = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    assert call("train", text, "--C", 1, "-o", first, "--save-data", kept).code == 0
    assert call("train", kept, "--C", 1, "-o", second).code == 0
    assert rankhinge.load(first).coef_.tolist() == rankhinge.load(second).coef_.tolist()


@pytest.mark.parametrize("how", ["file", "split", "folder"])
def test_train_by_validation(call, files, tmp_path, how):
    fold, model = files / "fold", tmp_path / "model.safetensors"
    given = {
        "file": (fold / "train.txt", "--validation", fold / "vali.txt", "--test", fold / "test.txt"),
        "split": (fold / "train.txt", "--validation-split", 0.25, "--test", fold / "test.txt"),
        "folder": (fold,),
    }[how]
    done = call("train", *given, "--bound", "convex", "-o", model, "--json")
    assert done.code == 0, done.err
    # Validation data are part of the last fit, a split always was.
    assert done.facts["n_queries"] == (20 if how == "split" else 30)
    assert done.facts["test"]["n_queries"] == 15
    loaded, test = rankhinge.load(model), datasets.load(fold / "test.txt")
    ndcg = metrics.ndcg(test.y, loaded.predict(test.X), qid=test.qid, gains="exponential", no_positives="skip")
    assert done.facts["test"]["metrics"]["ndcg"]["value"] == pytest.approx(ndcg, abs=1e-12)
    assert loaded.cv is None


def test_train_text(call, files, tmp_path):
    done = call("train", files / "rows.txt", "--C", 1, "-o", tmp_path / "m.safetensors")
    assert done.code == 0
    assert done.err == ""
    lines = done.out.splitlines()
    assert lines[0] == f"{files / 'rows.txt'}: 120 rows, 4 features"
    assert lines[1] == "RankSVC, loss ap, convex bound, C 1"
    assert lines[-1] == f"written: {tmp_path / 'm.safetensors'}"


def test_not_converged_is_code_1(call, files, tmp_path):
    done = call("train", files / "rows.txt", "--C", 1, "--max-iter", 1, "-o", tmp_path / "m.safetensors", "--json")
    assert done.code == 1
    assert done.facts["converged"] is False
    assert done.err.startswith("rankhinge: warning: RankSVC stopped after 1 iterations")
    assert (tmp_path / "m.safetensors").exists()


def test_predictions_are_the_models(call, files, tmp_path):
    test = files / "fold" / "test.txt"
    model, data = rankhinge.load(files / "ranker.safetensors"), datasets.load(test)
    expected = model.predict(data.X).tolist()
    shown = call("predict", files / "ranker.safetensors", test)
    assert [float(line) for line in shown.out.split()] == expected
    written = tmp_path / "scores.txt"
    assert call("predict", files / "ranker.safetensors", test, "-o", written).code == 0
    assert [float(line) for line in written.read_text().split()] == expected
    assert call("predict", files / "ranker.safetensors", test, "--json").facts["scores"] == expected


def test_a_run_is_judged_as_its_model(call, files, tmp_path):
    test, run, scores = files / "fold" / "test.txt", tmp_path / "mine.run", tmp_path / "scores.txt"
    model = files / "ranker.safetensors"
    assert call("predict", model, test, "--run", "mine", "-o", run).code == 0
    assert call("predict", model, test, "-o", scores).code == 0
    found = [call("evaluate", name, test, "--json").facts["metrics"] for name in (model, run, scores)]
    assert found[0] == found[1] == found[2]


def test_evaluate_queries(call, files, tmp_path):
    test, each = files / "fold" / "test.txt", tmp_path / "each.csv"
    done = call("evaluate", files / "ranker.safetensors", test, "--metric", "ndcg@5", "--per-query", each, "--json")
    assert done.code == 0, done.err
    found = done.facts["metrics"]["ndcg@5"]
    assert found["low"] < found["value"] < found["high"]
    with open(each, newline="") as file:
        values = [float(row["ndcg@5"]) for row in csv.DictReader(file) if row["ndcg@5"]]
    assert np.mean(values) == pytest.approx(found["value"], abs=1e-12)


def test_evaluate_one_list(call, files):
    done = call("evaluate", files / "classifier.safetensors", files / "rows_test.txt", "--json")
    model, data = rankhinge.load(files / "classifier.safetensors"), datasets.load(files / "rows_test.txt")
    expected = metrics.average_precision(data.y == 1, model.decision_function(data.X))
    assert done.facts["metrics"]["ap"]["value"] == pytest.approx(expected, abs=1e-12)
    assert done.facts["class"] == "1"


def test_evaluate_classes(call, files):
    model, data = files / "three.safetensors", files / "classes.txt"
    whole = call("evaluate", model, data, "--metric", "ap", "--json").facts
    assert list(whole["classes"]) == ["0", "1", "2"]
    one = call("evaluate", model, data, "--metric", "ap", "--class", 2, "--json").facts
    assert one["metrics"] == whole["classes"]["2"]
    mean = np.mean([them["ap"]["value"] for them in whole["classes"].values()])
    assert whole["means"]["ap"] == pytest.approx(mean)
    assert "ap, mean of 3 classes" in call("evaluate", model, data, "--metric", "ap").out


def test_the_other_class_first(call, files):
    first, other = (
        call("evaluate", files / "classifier.safetensors", files / "rows_test.txt", "--class", k, "--json").facts
        for k in (1, 0)
    )
    assert first["metrics"]["auc"]["value"] == pytest.approx(other["metrics"]["auc"]["value"])


def test_compare(call, files):
    test = files / "fold" / "test.txt"
    done = call("compare", test, "feature:2", files / "ranker.safetensors", "feature:1", "--metric", "ap", "--json")
    assert done.code == 0, done.err
    ours, one = done.facts["metrics"]["ap"]["models"]
    data, model = datasets.load(test), rankhinge.load(files / "ranker.safetensors")
    expected = metrics.compare("ap", data.y, data.X[:, 1], model.predict(data.X), qid=data.qid)
    assert [ours[key] for key in ("difference", "low", "high", "p_value")] == pytest.approx(list(expected), abs=1e-12)
    assert ours["p_holm"] == metrics.holm([ours["p_value"], one["p_value"]])[0]
    assert "p (Holm)" in call("compare", test, "feature:2", files / "ranker.safetensors", "feature:1").out


def test_compare_rows(call, files, tmp_path):
    test, scores = files / "rows_test.txt", tmp_path / "scores.txt"
    call("predict", files / "classifier.safetensors", test, "-o", scores)
    done = call("compare", test, scores, files / "classifier.safetensors", "--metric", "auc", "--json")
    (same,) = done.facts["metrics"]["auc"]["models"]
    assert (same["difference"], same["p_value"]) == (0.0, 1.0)
    assert done.facts["resampled"] == "rows"


def test_gzip_and_csv(call, files, tmp_path):
    packed = tmp_path / "train.txt.gz"
    packed.write_bytes(gzip.compress((files / "rows.txt").read_bytes()))
    assert call("train", packed, "--C", 1, "-o", tmp_path / "m.safetensors").code == 0
    pytest.importorskip("pyarrow")
    table = tmp_path / "rows.csv"
    data = datasets.load(files / "rows.txt")
    lines = [",".join(map(repr, [*x, y])) for x, y in zip(data.X.tolist(), data.y.tolist(), strict=True)]
    table.write_text("a,b,c,d,label\n" + "\n".join(lines) + "\n")
    named = tmp_path / "named.safetensors"
    assert call("train", table, "--C", 1, "-o", named).code == 0
    assert rankhinge.load(named).feature_names_in_.tolist() == list("abcd")
    # Columns in another order are the same columns.
    turned = tmp_path / "turned.csv"
    turned.write_text(
        "d,label,c,b,a\n" + "\n".join(",".join(line.split(",")[k] for k in (3, 4, 2, 1, 0)) for line in lines) + "\n"
    )
    found = [call("predict", named, file).out for file in (table, turned)]
    assert found[0] == found[1]


def test_tables_at_work(call, files, tmp_path):
    """Columns that are no features, and rows without labels: nothing to complain of."""
    pytest.importorskip("pyarrow")
    data = datasets.load(files / "fold" / "train.txt")
    lines = [
        f"{name},{y},{qid}," + ",".join(map(repr, x))
        for name, y, qid, x in zip(data.document_ids, data.y.tolist(), data.qid.tolist(), data.X.tolist(), strict=True)
    ]
    table, model = tmp_path / "train.csv", tmp_path / "m.safetensors"
    table.write_text("document,label,qid,a,b,c,d\n" + "\n".join(lines) + "\n")
    refused = call("train", table, "--C", 1, "-o", model)
    assert (refused.code, refused.err.count("\n")) == (3, 1)
    assert "'D0-0' in row 1: turn it into numbers, or leave it out by ignore=['document']" in refused.err
    done = call("train", table, "--C", 1, "-o", model, "--ignore", "document", "--json")
    assert (done.code, done.err) == (0, "")
    assert rankhinge.load(model).feature_names_in_.tolist() == list("abcd")
    rows = tmp_path / "new.csv"
    rows.write_text("a,b,c,d\n" + "\n".join(line.split(",", 3)[3] for line in lines) + "\n")
    predicted = call("predict", model, rows)
    assert (predicted.code, predicted.err) == (0, "")
    expected = data.X @ rankhinge.load(model).coef_
    np.testing.assert_allclose([float(line) for line in predicted.out.split()], expected, rtol=0, atol=1e-12)
    # The query ids are no feature either where they do not count.
    alone = call("train", table, "--C", 1, "-o", model, "--ignore", "document", "--no-qid", "--relevant-from", 1)
    assert (alone.code, alone.err) == (0, "")
    assert rankhinge.load(model).feature_names_in_.tolist() == list("abcd")


def test_columns_are_counted_as_in_training(call, files, tmp_path):
    """A file without its lowest columns does not say from where it counts; the model knows."""
    first = tmp_path / "zero.txt"
    first.write_text("".join(f"{k % 2} 0:{k % 3} 1:{k % 5} 2:{k % 2}\n" for k in range(30)))
    assert call("train", first, "--C", 1, "-o", tmp_path / "m.safetensors").code == 0
    second = tmp_path / "lacking.txt"
    second.write_text("1 1:3 2:1\n0 1:1 2:0\n")
    found = [float(line) for line in call("predict", tmp_path / "m.safetensors", second).out.split()]
    model = rankhinge.load(tmp_path / "m.safetensors")
    assert found == model.decision_function([[0, 3, 1], [0, 1, 0]]).tolist()


def test_demo(monkeypatch, call):
    import rankhinge.cli.demo

    monkeypatch.setattr(rankhinge.cli.demo, "main", lambda given: print("shown", given))
    assert call("demo", "--plot", "x.png").out == "shown ['--plot', 'x.png']\n"
    assert call("demo", "--json").facts["text"] == "shown []\n"


@pytest.mark.slow
def test_warm_fills_a_folder(tmp_path):
    folder = tmp_path / "cache"
    assert main(["warm", str(folder), "--json"]) == 0
    assert len(list(folder.rglob("*.nbc"))) > 20


def test_train_tells_the_time_left(call, files, tmp_path):
    told = call("train", files / "rows.txt", "--folds", 3, "-v", "-o", tmp_path / "m.safetensors")
    assert told.code == 0
    assert re.search(r"  left \d+ s$", told.err, flags=re.MULTILINE), told.err
    quiet = call("train", files / "rows.txt", "--folds", 3, "-q", "-o", tmp_path / "m.safetensors")
    assert quiet.err == ""
