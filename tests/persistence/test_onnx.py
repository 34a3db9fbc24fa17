"""ONNX graphs in onnxruntime against the models themselves."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import rankhinge
from rankhinge.persistence import ModelFileError

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")
X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]
TARGETS = {
    "binary": Y == 1,
    "numbers": np.where(Y == 1, 3.0, -1.0),
    "multiclass": Y,
    "names": NAMES,
    "objects": NAMES.astype(object),
    "multilabel": np.stack([Y == 0, Y > 0, X[:, 0] > 5.8], axis=1).astype(int),
}
TOLERANCE = {np.float64: 1e-12, np.float32: 1e-5}


def outputs(graph, X):
    session = onnxruntime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": X}), strict=True))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("piped", [False, True])
@pytest.mark.parametrize("target", TARGETS)
def test_classifiers(target, piped, dtype):
    model = rankhinge.RankSVC(bound="convex", C=10.0)
    if piped:
        pytest.importorskip("skl2onnx")
        model = make_pipeline(StandardScaler(), model)
    model.fit(X, TARGETS[target])
    narrow = X.astype(dtype)
    found = outputs(rankhinge.to_onnx(model, dtype=dtype), narrow)
    wanted = model.decision_function(narrow)
    assert found["scores"].shape == wanted.shape
    assert found["scores"].dtype == dtype
    assert np.abs(found["scores"] - wanted).max() <= TOLERANCE[dtype] * np.abs(wanted).max()
    # Where rounding could change the side nothing is promised.
    sure = np.abs(wanted).min(axis=tuple(range(1, wanted.ndim))) > 1e-4
    assert sure.sum() > 100
    labels = model.predict(narrow)
    assert found["label"].shape == labels.shape
    assert (found["label"][sure] == labels[sure]).all()


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("piped", [False, True])
@pytest.mark.parametrize("search", [False, True])
def test_rankers(search, piped, dtype):
    qid = np.arange(150) % 10
    ranker = (
        rankhinge.SVMRankerCV(bound="convex", Cs=[1.0, 10.0], cv=3) if search else rankhinge.SVMRanker(bound="convex")
    )
    model = ranker.fit(X, Y, qid=qid)
    if piped:
        pytest.importorskip("skl2onnx")
        model = make_pipeline(StandardScaler(), ranker)
        model.fit(X, Y, **{f"{model.steps[-1][0]}__qid": qid})
    narrow = X.astype(dtype)
    found = outputs(rankhinge.to_onnx(model, dtype=dtype), narrow)
    assert list(found) == ["scores"]
    wanted = model.predict(narrow)
    assert np.abs(found["scores"] - wanted).max() <= TOLERANCE[dtype] * np.abs(wanted).max()


MACHINES = {
    # Of any bound a machine chooses by itself.
    "the default": lambda y: rankhinge.RankSVC().fit(X, y),
    "tight": lambda y: rankhinge.RankSVC(bound="tight").fit(X, y),
    "search": lambda y: rankhinge.RankSVCCV(bound="convex", Cs=[1.0, 10.0], cv=3, random_state=0).fit(X, y),
    "tight search": lambda y: rankhinge.RankSVCCV(bound="tight", reaches=2, cv=3, random_state=0).fit(X, y),
    "approximate": lambda y: rankhinge.ApproximateRankSVC().fit(X, y),
}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("target", ["binary", "multiclass"])
@pytest.mark.parametrize("machine", MACHINES)
def test_other_machines_and_bounds(machine, target, dtype):
    model = MACHINES[machine](TARGETS[target])
    narrow = X.astype(dtype)
    found = outputs(rankhinge.to_onnx(model, dtype=dtype), narrow)
    wanted = model.decision_function(narrow)
    assert np.abs(found["scores"] - wanted).max() <= TOLERANCE[dtype] * np.abs(wanted).max()
    sure = np.abs(wanted).min(axis=tuple(range(1, wanted.ndim))) > 1e-4 * np.abs(wanted).max()
    assert sure.sum() > 100
    assert (found["label"][sure] == model.predict(narrow)[sure]).all()


@pytest.mark.filterwarnings("ignore:X has two dimensions")
def test_refusals():
    with pytest.raises(
        ModelFileError, match="LatentRankSVC cannot be converted to ONNX: it looks for the best candidate"
    ):
        rankhinge.to_onnx(rankhinge.LatentRankSVC().fit(X, Y == 1))
    with pytest.raises(ModelFileError, match="StandardScaler cannot be converted to ONNX"):
        rankhinge.to_onnx(StandardScaler().fit(X))
    with pytest.raises(ValueError, match="dtype must be float32 or float64, got int64"):
        rankhinge.to_onnx(rankhinge.RankSVC(bound="convex").fit(X, Y), dtype=int)
    pytest.importorskip("skl2onnx")
    with pytest.raises(ModelFileError, match="a step before RankSVC cannot be converted to ONNX"):
        rankhinge.to_onnx(make_pipeline(FunctionTransformer(np.sqrt), rankhinge.RankSVC(bound="convex")).fit(X, Y))


def test_what_needs_an_extra_names_it():
    program = (
        "import sys, warnings; sys.modules['onnx'] = None; import numpy as np, rankhinge\n"
        "model = rankhinge.RankSVC(bound='convex').fit(np.eye(4), [0, 1, 0, 1])\n"
        "try: rankhinge.to_onnx(model)\nexcept ModuleNotFoundError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True)
    assert done.stdout == "to_onnx needs onnx: pip install 'rankhinge[onnx]'\n", done.stderr
