"""Model files: the same bits back, equal bytes for equal models, and no file that runs anything."""

from __future__ import annotations

import io
import json
import pickle
import re
import subprocess
import sys
import warnings
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

import rankhinge
from rankhinge import losses
from rankhinge.persistence import ModelFileError, model_file

safetensors_numpy = pytest.importorskip("safetensors.numpy")
X, Y = load_iris(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]
QID = np.arange(150) % 10
LABELS = np.stack([Y == 0, Y > 0, X[:, 0] > 0], axis=1).astype(int)


def bags():
    return rankhinge.Bags([X[k : k + 2] for k in range(0, 150, 2)])


def ranker(kind, **options):
    return lambda: getattr(rankhinge, kind)(**options).fit(X, Y, qid=QID)


def classifier(kind, y, **options):
    return lambda: getattr(rankhinge, kind)(**options).fit(X, y)


def latent(kind, y, **options):
    return lambda: getattr(rankhinge, kind)(**options).fit(bags(), y)


MODELS = {
    "binary": classifier("RankSVC", Y == 1, bound="convex"),
    "names": classifier("RankSVC", NAMES, bound="tight"),
    "objects": classifier(
        "RankSVC", NAMES.astype(object), bound="convex", loss=losses.SoftNDCG(5), C=np.array([1.0, 2, 3])
    ),
    "multilabel": classifier("RankSVC", LABELS, bound="convex", loss=losses.RBP(0.8)),
    "search": classifier("RankSVCCV", Y == 2, bound="convex", Cs=[1.0, 10.0], cv=StratifiedKFold(3), random_state=0),
    "tight search": classifier("RankSVCCV", Y == 2, bound="tight", reaches=2, random_state=0),
    "approximate": classifier("ApproximateRankSVC", Y),
    "ranker": ranker("SVMRanker", bound="convex"),
    "tight ranker": ranker("SVMRanker", bound="tight", loss="ap", level_weights="uniform"),
    "ranker search": ranker("SVMRankerCV", bound="convex", Cs=[1.0, 10.0], random_state=0),
    "latent": latent("LatentRankSVC", Y[::2] == 1),
    "latent classes": latent("LatentRankSVC", Y[::2]),
    "latent search": latent("LatentRankSVCCV", Y[::2] == 1, Cs=[1.0, 10.0], cv=StratifiedKFold(3), random_state=0),
    "latent search of classes": latent("LatentRankSVCCV", Y[::2], Cs=[1.0, 10.0], cv=3, random_state=0),
    "latent binary": latent("LatentSVC", Y[::2] == 1),
    "latent structural": latent("LatentStructuralSVC", Y[::2]),
}


def identical(a, b):
    """The same types, shapes, orders and bits."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        same = a.dtype == b.dtype and a.shape == b.shape
        if a.flags.c_contiguous or a.flags.f_contiguous:
            same = same and a.flags.c_contiguous == b.flags.c_contiguous
        if a.dtype.kind == "O":
            return same and all(identical(x, y) for x, y in zip(a.ravel(), b.ravel(), strict=True))
        return same and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return list(a) == list(b) and all(identical(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(identical(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, float | np.floating):
        return np.float64(a).tobytes() == np.float64(b).tobytes()
    return a == b or repr(a) == repr(b)


@pytest.fixture(scope="module")
def models():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: make() for name, make in MODELS.items()}


@pytest.mark.parametrize("name", MODELS)
def test_the_same_bits_back(models, name, tmp_path):
    model, path = models[name], tmp_path / "model.safetensors"
    rankhinge.save(model, path)
    found = rankhinge.load(path)
    assert type(found) is type(model)
    assert vars(found).keys() == vars(model).keys()
    for key, value in vars(model).items():
        assert identical(value, vars(found)[key]), key
    data = bags() if name.startswith("latent") else X
    assert identical(found.predict(data), model.predict(data))
    if hasattr(model, "decision_function"):
        assert identical(found.decision_function(data), model.decision_function(data))
    # Equal models give equal bytes.
    rankhinge.save(found, tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()


def test_feature_names_and_odd_numbers(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcd"))
    model = rankhinge.RankSVC(bound="convex").fit(frame, Y == 1)
    model.odd_ = [np.nan, -np.inf, np.float32(0.1), np.int8(3), (1, None, True), np.str_("ü"), {"a": {1: -0.0}}]
    model.odder_ = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    rankhinge.save(model, tmp_path / "m")
    found = rankhinge.load(tmp_path / "m")
    assert identical(model.odd_, found.odd_)
    assert identical(model.odder_, found.odder_)
    assert list(found.feature_names_in_) == list("abcd")
    assert identical(found.predict(frame), model.predict(frame))


@pytest.fixture(scope="module")
def good(models, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "m.safetensors"
    rankhinge.save(models["binary"], path)
    return path.read_bytes()


def refused(tmp_path, content):
    path = tmp_path / "m.safetensors"
    path.write_bytes(content)
    with pytest.raises(ModelFileError) as caught:
        rankhinge.load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


def test_every_flipped_bit_is_noticed(tmp_path, good):
    for k in range(0, len(good), max(1, len(good) // 400)):
        changed = bytearray(good)
        changed[k] ^= 1 << (k % 8)
        assert refused(tmp_path, bytes(changed))


def test_a_flipped_number_is_named(tmp_path, good):
    changed = bytearray(good)
    changed[-3] ^= 4
    # safetensors itself does not notice.
    assert safetensors_numpy.load(bytes(changed)).keys() == safetensors_numpy.load(good).keys()
    assert refused(tmp_path, bytes(changed)) == "the file has been changed since it was written: its SHA-256 differs"


def test_every_cut_is_noticed(tmp_path, good):
    for k in [*range(0, len(good), max(1, len(good) // 200)), len(good) - 1]:
        message = refused(tmp_path, good[:k])
        assert "cut off" in message or "empty" in message
    assert "too long" in refused(tmp_path, good + b"x")


def test_a_header_of_any_length(tmp_path, models):
    """The first bytes of a file are a length: it may happen to look like the beginning of another format."""
    model = rankhinge.RankSVC(bound="convex").fit(X, Y == 1)
    seen = set()
    for size in range(0, 3000, 8):
        model.padding_ = "x" * size
        rankhinge.save(model, tmp_path / "m")
        seen.add((tmp_path / "m").read_bytes()[:2])
        assert rankhinge.load(tmp_path / "m").padding_ == model.padding_
    assert any(first[0] == 0x80 and first[1] < 10 for first in seen)


def test_foreign_files(tmp_path, models):
    def packed(write):
        stream = io.BytesIO()
        write(stream)
        return stream.getvalue()

    model = models["binary"]
    foreign = {
        "pickle": pickle.dumps(model),
        "zlib": packed(lambda stream: joblib.dump(model, stream, compress=3)),
        "zip archive": packed(lambda stream: np.savez(stream, a=np.ones(2))),
        "gzip": b"\x1f\x8b\x08" + bytes(20),
        "NumPy array": packed(lambda stream: np.save(stream, np.ones(2))),
        "another program": safetensors_numpy.save({"a": np.ones(2)}),
        "not a safetensors file": b"1 qid:1 1:0.5\n" * 9,
        "empty": b"",
    }
    for name, content in foreign.items():
        assert name in refused(tmp_path, content)


def rewritten(good, change):
    """A file of the same tensors with another description, its digest right."""
    length = int.from_bytes(good[:8], "little")
    head = json.loads(json.loads(good[8 : 8 + length])["__metadata__"]["rankhinge"])
    change(head)
    head["sha256"] = "0" * 64
    raw = safetensors_numpy.save(safetensors_numpy.load(good), metadata={"rankhinge": json.dumps(head)})
    return raw.replace(b"0" * 64, model_file._digest(raw).encode(), 1)


def test_newer_and_odd_contents(tmp_path, good):
    refusals = {
        "format 2": lambda head: head.update(format=2, versions={"rankhinge": "9.0"}),
        "unknown estimator 'Popen'": lambda head: head.update(estimator="Popen"),
        "has no parameter 'x'": lambda head: head["parameters"].update(x=1),
        "'predict' is not the name": lambda head: head["fitted"].update(predict=1),
        "'__class__' is not the name": lambda head: head["fitted"].update(__class__=1),
        "do not fit together: KeyError": lambda head: head["fitted"].update(coef_={"tensor": "nowhere"}),
        "no format version": lambda head: head.update(format="1"),
        "do not fit together: ValueError": lambda head: head["fitted"].update(coef_=[1]),
        "there is no coef_, without which": lambda head: head["fitted"].pop("coef_"),
        "there is no classes_, without which": lambda head: head["fitted"].pop("classes_"),
        "but n_features_in_ is 9": lambda head: head["fitted"].update(n_features_in_=9),
    }
    for message, change in refusals.items():
        assert message in refused(tmp_path, rewritten(good, change))
    assert "reads up to 1: it needs a newer one, such as 9.0" in refused(
        tmp_path, rewritten(good, refusals["format 2"])
    )
    (tmp_path / "same").write_bytes(rewritten(good, lambda head: None))
    assert rankhinge.load(tmp_path / "same").status_ == "converged"


@pytest.mark.parametrize("offset", ["1e999", "nan", "-Infinity", '"9"', "[]", "1" * 5000])
def test_offsets_that_are_no_places(tmp_path, good, offset):
    """JSON knows numbers that are no integers."""
    length = int.from_bytes(good[:8], "little")
    header = re.sub(
        rb'"data_offsets": ?\[(\d+), ?\d+\]', rb'"data_offsets":[\1,%s]' % offset.encode(), good[8 : 8 + length]
    )
    assert header != good[8 : 8 + length]
    told = refused(tmp_path, len(header).to_bytes(8, "little") + header + good[8 + length :])
    assert "the header is damaged: " in told or "cut off or too long" in told


PROGRAMS = {"CustomLoss", "DCG", "DCGAt", "RankingLoss"}
BUILT_IN = sorted(
    name
    for name, kind in vars(losses).items()
    if isinstance(kind, type) and issubclass(kind, losses.RankingLoss) and name not in PROGRAMS
)


@pytest.mark.filterwarnings("ignore:the coefficients are all 0")
@pytest.mark.parametrize("name", BUILT_IN)
def test_every_built_in_loss_is_kept(tmp_path, name):
    kind = getattr(losses, name)
    shares = ("APAt", "F1At", "HitAt", "NDCGAt", "PrecisionAt", "RecallAt")
    loss = kind(0.1234567) if name in shares else kind(7) if name == "SoftNDCG" else kind()
    model = rankhinge.RankSVC(loss=loss, bound="convex").fit(X, Y == 1)
    rankhinge.save(model, tmp_path / "m")
    again = rankhinge.load(tmp_path / "m")
    assert repr(again.loss) == repr(loss)
    assert again.score(X, Y == 1) == model.score(X, Y == 1)


@pytest.mark.filterwarnings("ignore:the coefficients are all 0")
def test_what_cannot_be_saved(tmp_path):
    def step(j, i, n_positives, n_negatives):
        return -1.0 / (i + j) ** 2 / n_positives

    cases = [
        (rankhinge.RankSVC(), "RankSVC is not fitted: there is nothing to save"),
        (LogisticRegression().fit(X, Y), "LogisticRegression cannot be saved. Estimators that can: "),
        (rankhinge.RankSVC(losses.CustomLoss(step), bound="convex").fit(X, Y == 1), "is a function of yours"),
        (
            rankhinge.RankSVC(losses.DCG([3.0, 2.0] + [1.0] * 148), bound="convex").fit(X, Y == 1),
            "model files hold no code",
        ),
        (rankhinge.RankSVC(random_state=np.random.RandomState(0), bound="convex").fit(X, Y == 1), "random_state is "),
    ]
    for model, message in cases:
        with pytest.raises(ModelFileError, match=re.escape(message)):
            rankhinge.save(model, tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_no_such_file(tmp_path):
    with pytest.raises(ModelFileError, match="there is no such file"):
        rankhinge.load(tmp_path / "m")
    with pytest.raises(ModelFileError, match="this is a folder"):
        rankhinge.load(tmp_path)


AUDIT = """
import os, pickle, sys, glob
import rankhinge
from rankhinge.persistence import ModelFileError
folder = sys.argv[1]
good = rankhinge.load(os.path.join(folder, "good"))
seen = []
def hook(event, arguments):
    watched = "pickle exec compile import marshal subprocess os ctypes shutil code".split()
    if event.split(".")[0] in watched and event not in ("os.listdir", "os.scandir"):
        seen.append((event, str(arguments)[:80]))
sys.addaudithook(hook)
for path in sorted(glob.glob(os.path.join(folder, "*"))):
    try:
        rankhinge.load(path)
    except ModelFileError as error:
        pass
print(seen)
pickle.loads(pickle.dumps(good.coef_))
print(len(seen) > 0)
"""


class Wicked:
    def __reduce__(self):
        return (exec, ("raise SystemExit('executed')",))


def test_nothing_is_unpickled_or_executed(tmp_path, good):
    (tmp_path / "good").write_bytes(good)
    (tmp_path / "pickle").write_bytes(pickle.dumps(Wicked()))
    (tmp_path / "pickle0").write_bytes(pickle.dumps(Wicked(), protocol=0))
    joblib.dump(Wicked(), tmp_path / "joblib", compress=3)
    array = np.empty(1, object)
    array[0] = Wicked()
    np.savez(tmp_path / "objects.npz", a=array)
    np.save(tmp_path / "objects.npy", array)
    for k in range(0, len(good), len(good) // 50):
        changed = bytearray(good)
        changed[k] ^= 255
        (tmp_path / f"flipped{k}").write_bytes(bytes(changed))
    evil = "__import__('os').system('echo executed')"
    for k, change in enumerate([{"estimator": evil}, {"estimator": "os.system"}, {"parameters": {"loss": evil}}]):
        (tmp_path / f"evil{k}").write_bytes(rewritten(good, lambda head, change=change: head.update(change)))
    done = subprocess.run([sys.executable, "-c", AUDIT, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # Nothing was seen, and the hook does see a pickle.
    assert done.stdout == "[]\nTrue\n"


def test_the_reader_of_the_page_agrees(tmp_path, models):
    """The program in docs/model-files.md: short, without rankhinge, the same scores."""
    page = (Path(rankhinge.__file__).parents[2] / "docs" / "model-files.md").read_text("utf-8")
    program = re.search(r"```python\n(# read_model.*?)```", page, flags=re.DOTALL)[1]
    assert "rankhinge" not in re.sub(r'"rankhinge"|#.*', "", program)
    assert len([line for line in program.splitlines() if line.strip()]) <= 15
    for name in ("binary", "names", "multilabel", "ranker"):
        path = tmp_path / f"{name.replace(' ', '')}.safetensors"
        rankhinge.save(models[name], path)
        scope = {}
        exec(program, scope)
        head, tensors = scope["read_model"](path)
        model = models[name]
        scores = X @ np.atleast_2d(tensors["coef_"]).T
        if name != "ranker":
            scores = tensors["slope_"] * (scores + tensors["intercept_"])
            wanted = model.decision_function(X)
        else:
            wanted = model.predict(X)
        assert np.allclose(scores.reshape(wanted.shape), wanted, rtol=1e-12, atol=1e-12)
        assert head["estimator"] == type(model).__name__
        changed = bytearray(path.read_bytes())
        changed[-1] ^= 1
        path.write_bytes(bytes(changed))
        with pytest.raises(AssertionError):
            scope["read_model"](path)


def test_a_plain_install_reads_and_writes_the_same_bytes(tmp_path, good):
    (tmp_path / "good").write_bytes(good)
    program = (
        "import sys; sys.modules['safetensors'] = None; import rankhinge\n"
        "rankhinge.save(rankhinge.load(sys.argv[1]), sys.argv[2])"
    )
    paths = [str(tmp_path / name) for name in ("good", "again")]
    done = subprocess.run([sys.executable, "-c", program, *paths], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "again").read_bytes() == good
