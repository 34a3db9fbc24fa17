"""The way of a stranger: from an installation to a deployed model, each step by what the documentation says.

The quick form goes through the command in this process. The slow one builds the wheel, installs it into a new
environment, first without any extra, and prints how long each step takes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest

import rankhinge
from rankhinge import datasets
from rankhinge.cli import main
from tests.cli.conftest import lists, rows

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def files(tmp_path):
    (tmp_path / "train.txt").write_text(lists(30, 0))
    (tmp_path / "test.txt").write_text(lists(20, 1))
    (tmp_path / "rows.txt").write_text(rows(150, 2))
    return tmp_path


def test_the_quick_form(files, capsys):
    pytest.importorskip("jinja2")
    onnxruntime = pytest.importorskip("onnxruntime")
    model, test, page = (str(files / name) for name in ("model.safetensors", "test.txt", "page.html"))
    assert main(["train", str(files / "train.txt"), "-o", model, "--folds", "3"]) == 0
    assert main(["evaluate", model, test]) == 0
    assert main(["compare", test, "feature:1", model]) == 0
    assert main(["report", model, test, "-o", page]) == 0
    capsys.readouterr()
    assert main(["predict", model, test]) == 0
    told = [float(line) for line in capsys.readouterr().out.split()]
    loaded, data = rankhinge.load(model), datasets.load(test)
    X = np.asarray(data.X)
    assert loaded.predict(X).tolist() == told
    session = onnxruntime.InferenceSession(rankhinge.to_onnx(loaded).SerializeToString())
    (scores, *_) = session.run(["scores"], {"X": X})
    assert np.ravel(scores) == pytest.approx(told, rel=1e-12, abs=1e-12)


class Steps:
    """Runs programs of the new environment, far from the source, and tells how long each took."""

    def __init__(self, environment: Path, folder: Path) -> None:
        self.programs, self.folder = environment / ("Scripts" if os.name == "nt" else "bin"), folder
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "NUMBA"))}
        self.environment["NUMBA_CACHE_DIR"] = str(folder / "cache")

    def __call__(self, name: str, *arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        began = time.perf_counter()
        command = [str(self.programs / str(arguments[0])), *map(str, arguments[1:])]
        done = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True)
        print(f"{time.perf_counter() - began:7.1f} s  {name}")
        assert done.returncode == code, done.stdout + done.stderr
        return done


SAME_SCORES = """
import sys, numpy as np, rankhinge
from rankhinge import datasets
model, data = rankhinge.load("model.safetensors"), datasets.load("test.txt")
assert model.predict(data.X).tolist() == [float(line) for line in open("scores.txt")]
"""
ONNX = (
    SAME_SCORES
    + """
import onnxruntime
graph = rankhinge.to_onnx(model).SerializeToString()
(scores, *_) = onnxruntime.InferenceSession(graph).run(["scores"], {"X": np.asarray(data.X)})
assert np.allclose(np.ravel(scores), model.predict(data.X), rtol=1e-12, atol=1e-12)
"""
)
MLFLOW = """
import mlflow, numpy as np, rankhinge
from rankhinge import datasets
model, data = rankhinge.load("rows.safetensors"), datasets.load("rows.txt")
mlflow.sklearn.save_model(
    model, "mlflow-model", serialization_format="skops", skops_trusted_types=["rankhinge.RankSVC"]
)
loaded = mlflow.sklearn.load_model("mlflow-model")
assert np.array_equal(loaded.predict(data.X), model.predict(data.X))
"""


@pytest.mark.slow
def test_the_whole_way(files, tmp_path_factory):
    place = tmp_path_factory.mktemp("stranger")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(place), str(ROOT)]
    subprocess.run(pip, check=True)
    (wheel,) = place.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {"rankhinge/report/page.html", "rankhinge/report/style.css", "rankhinge/report/script.js"} <= set(names)
    allowed = (".py", "py.typed", "report/page.html", "report/style.css", "report/script.js")
    assert [name for name in names if ".dist-info/" not in name and not name.endswith(allowed)] == []
    assert not [name for name in names if "test" in name or "__pycache__" in name]

    print()
    venv.create(place / "environment", with_pip=True)
    step = Steps(place / "environment", files)
    constraints = ROOT / "constraints.txt"
    step("install the wheel", "python", "-m", "pip", "install", "--quiet", "-c", constraints, wheel)
    step("--help", "rankhinge", "--help")
    step("demo", "rankhinge", "demo")
    step("train on svmlight", "rankhinge", "train", "train.txt", "--save-data", "train.npz")
    step("train on npz", "rankhinge", "train", "train.npz", "-o", "npz.safetensors")
    assert (files / "npz.safetensors").exists()
    by_text = step("evaluate", "rankhinge", "evaluate", "model.safetensors", "train.txt", "--json")
    by_npz = step("evaluate on npz", "rankhinge", "evaluate", "model.safetensors", "train.npz", "--json")
    assert json.loads(by_npz.stdout)["metrics"] == json.loads(by_text.stdout)["metrics"]
    step("evaluate on other data", "rankhinge", "evaluate", "model.safetensors", "test.txt")
    step("compare with a baseline", "rankhinge", "compare", "test.txt", "feature:1", "model.safetensors")
    step("predict", "rankhinge", "predict", "model.safetensors", "test.txt", "-o", "scores.txt")
    step("load in Python, the same scores", "python", "-c", SAME_SCORES)
    done = step("report without its extra", "rankhinge", "report", "model.safetensors", "test.txt", code=4)
    assert done.stderr == "rankhinge: the report needs jinja2: pip install 'rankhinge[report]'\n"
    extras = f"{wheel}[onnx,report]"
    more = ["onnxruntime", "mlflow-skinny", "skops", "pandas"]
    step("install extras", "python", "-m", "pip", "install", "--quiet", "-c", constraints, extras, *more)
    step("report", "rankhinge", "report", "model.safetensors", "test.txt")
    step("to_onnx, the same scores", "python", "-c", ONNX)
    step("train a classifier", "rankhinge", "train", "rows.txt", "--C", "1", "-o", "rows.safetensors")
    step("MLflow", "python", "-c", MLFLOW)
