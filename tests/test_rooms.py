"""The doors of the house: which part of the package may import which.

`docs/architecture.md` says what the rooms are for. A room is a module or a subpackage directly
under `rankhinge`. To open a door, change the table there and here.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "rankhinge"

EVERY_ROOM_MAY = {"_jit", "_progress", "_public", "_threads", "_validation"}
ANY_PUBLIC_NAME = None

_FOR_SVM = {"features", "inference", "losses", "metrics", "objective", "problems", "solvers"}
DOORS: dict[str, set[str] | None] = {
    "_jit": set(),
    "_progress": set(),
    "_public": set(),
    "_threads": set(),
    "_validation": set(),
    "losses": set(),
    "inference": {"losses"},
    "problems": {"losses"},
    "objective": {"features", "inference", "losses", "problems"},
    "features": set(),
    "solvers": set(),
    "metrics": set(),
    "detection": set(),
    "papers": {"features", "inference", "latent", "losses", "objective", "problems", "solvers", "svm"},
    "svm": _FOR_SVM,
    "latent": _FOR_SVM | {"detection", "svm"},
    "torch": {"inference", "losses", "problems", "solvers"},
    "dask": {"inference", "losses", "objective", "problems"},
    # The front rooms: every other room, but by its public names.
    "__init__": ANY_PUBLIC_NAME,
    "__main__": ANY_PUBLIC_NAME,
    "cli": ANY_PUBLIC_NAME,
    "datasets": ANY_PUBLIC_NAME,
    "demo": ANY_PUBLIC_NAME,
    "persistence": ANY_PUBLIC_NAME,
    "plotting": ANY_PUBLIC_NAME,
    "report": ANY_PUBLIC_NAME,
    "warm": ANY_PUBLIC_NAME,
}

# Rooms where users find public names that live in another, which is loaded when the first of them is asked for: here
# type checkers alone see the import.
SHOWN = {"rankhinge.svm": "papers", "rankhinge.latent": "papers"}

# Where an optional dependency may be imported with the module; elsewhere only inside functions.
OPTIONAL = {
    "dask": {"dask"},
    "distributed": {"dask"},
    "h5py": set(),
    "jinja2": set(),
    "matplotlib": {"plotting"},
    "onnx": set(),
    "pandas": set(),
    "polars": set(),
    "pyarrow": set(),
    "rich": set(),
    "safetensors": set(),
    "skl2onnx": set(),
    "torch": {"torch"},
    "zarr": set(),
}

# Importing scikit-learn takes a second, and inference must start without it.
NO_SKLEARN = {"inference", "losses"}


class Import(NamedTuple):
    line: int
    module: str  # absolute: "rankhinge.losses"
    name: str | None  # of `from module import name`
    is_lazy: bool  # inside a function, or for type checkers only


def imports_of(source: str, module: str, is_package: bool = False) -> Iterator[Import]:
    """Yield the imports in the source of the module of this absolute name."""

    def visit(node: ast.AST, is_lazy: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(node.lineno, alias.name, None, is_lazy)
        elif isinstance(node, ast.ImportFrom):
            origin = node.module or ""
            if node.level:
                # One dot is the package that the module is in, which a package is itself.
                parts = module.split(".")
                parents = parts[: len(parts) - node.level + is_package]
                origin = ".".join([*parents, *origin.split(".")] if origin else parents)
            for alias in node.names:
                yield Import(node.lineno, origin, alias.name, is_lazy)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for child in node.body:
                yield from visit(child, True)
            for child in node.orelse:
                yield from visit(child, is_lazy)
        else:
            is_lazy |= isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            for child in ast.iter_child_nodes(node):
                yield from visit(child, is_lazy)

    return visit(ast.parse(source), False)


def violations(source: str, module: str, is_package: bool = False) -> list[str]:
    """Return what the module's imports do against the table, a line of text each."""
    path = module.split(".")
    room = path[1] if len(path) > 1 else "__init__"
    if room not in DOORS:
        return [f"{module}: the room {room!r} is not in the table of tests/test_rooms.py"]
    found = []
    for line, origin, name, is_lazy in imports_of(source, module, is_package):
        where = f"{module}, line {line}: "
        top, *rest = origin.split(".")
        if top in OPTIONAL and not is_lazy and room not in OPTIONAL[top]:
            found.append(where + f"{top} is optional: import it inside the function that needs it")
        if top == "sklearn" and room in NO_SKLEARN:
            found.append(where + f"{room} must not import scikit-learn")
        if top != "rankhinge":
            continue
        names = [*rest, *([name] if name else [])]
        # Special names of the package itself (`__version__`) live in no room.
        if not names or names[0].startswith("__"):
            continue
        target, doors = names[0], DOORS[room]
        if target == room or target in EVERY_ROOM_MAY or (is_lazy and SHOWN.get(module) == target):
            continue
        if doors is ANY_PUBLIC_NAME:
            private = [n for n in names if n.startswith("_")]
            if private:
                found.append(where + f"{room} must not use the private name {private[0]}")
        elif target not in DOORS:
            found.append(where + f"{room} must import {target} from the room it lives in")
        elif target not in doors:
            found.append(where + f"{room} must not import {target}")
    return found


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def test_the_house_keeps_to_its_doors():
    found = [
        violation
        for module, path in modules()
        for violation in violations(path.read_text("utf-8"), module, path.name == "__init__.py")
    ]
    assert not found, "\n" + "\n".join(found)


def test_there_is_something_to_check():
    assert "rankhinge._threads" in dict(modules())


def table_of_the_page() -> dict[str, set[str] | None]:
    """The table of rooms in docs/architecture.md: what each may import, as `DOORS` has it."""
    text = (SOURCE.parent.parent / "docs" / "architecture.md").read_text("utf-8")
    rows = re.search(r"^\| room \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, flags=re.MULTILINE)[1].splitlines()
    table: dict[str, set[str] | None] = {}
    for row in rows:
        rooms, _, doors = row.strip("| ").split(" | ")
        words = set() if doors == "–" else set(doors.split(", "))
        if "all of `svm`'s" in words:
            words = (words - {"all of `svm`'s"}) | table["svm"]
        for room in rooms.split(", "):
            table[room.strip("`")] = ANY_PUBLIC_NAME if doors == "public names of all" else words
    return table


def test_the_page_has_the_same_table():
    # The package's entrances are no rooms.
    unnamed = {"__init__": ANY_PUBLIC_NAME, "__main__": ANY_PUBLIC_NAME}
    assert table_of_the_page() | unnamed == DOORS


def test_every_room_of_the_table_exists():
    rooms = {path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert DOORS.keys() <= rooms


def test_the_table_is_closed():
    for room, doors in DOORS.items():
        assert doors is ANY_PUBLIC_NAME or doors <= DOORS.keys() - {room}


@pytest.mark.parametrize(
    ("module", "source", "complaint"),
    [
        ("rankhinge.losses", "import rankhinge.inference", "losses must not import inference"),
        ("rankhinge.losses", "from rankhinge import inference", "losses must not import inference"),
        ("rankhinge.losses", "from . import inference", "losses must not import inference"),
        ("rankhinge.losses", "from .inference import x", "losses must not import inference"),
        ("rankhinge.losses", "def f():\n from .inference import x", "line 2: losses must not"),
        ("rankhinge.inference.ranking", "from ..metrics import x", "must not import metrics"),
        ("rankhinge.inference.a.b", "from ...solvers.qp import x", "must not import solvers"),
        ("rankhinge.metrics", "from rankhinge.losses import AP", "metrics must not import losses"),
        ("rankhinge.solvers.bundle", "from rankhinge import RankSVC", "from the room it lives in"),
        (
            "rankhinge.metrics",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n from . import losses",
            "metrics must not import losses",
        ),
        ("rankhinge.cli", "from rankhinge.inference import _kernel", "private name _kernel"),
        ("rankhinge.cli", "from rankhinge.inference._x import y", "private name _x"),
        ("rankhinge.cellar", "", "'cellar' is not in the table"),
        ("rankhinge.svm.path", "import torch", "torch is optional"),
        ("rankhinge.svm", "from rankhinge.papers.machines import x", "svm must not import papers"),
        ("rankhinge.svm.fit", "def f():\n from rankhinge.papers import x", "svm must not import papers"),
        ("rankhinge.dask.maps", "from torch.nn import Module", "torch is optional"),
        ("rankhinge.metrics", "try:\n import pandas as pd\nexcept ImportError: pass", "optional"),
        ("rankhinge.svm", "class A:\n import matplotlib.pyplot", "matplotlib is optional"),
        ("rankhinge._progress", "import rich.progress", "rich is optional"),
        ("rankhinge.inference.ranking", "import sklearn.utils", "must not import scikit-learn"),
        ("rankhinge.losses", "def f():\n from sklearn import svm", "must not import scikit-learn"),
    ],
)
def test_forbidden(module, source, complaint):
    found = violations(source, module)
    assert len(found) == 1
    assert complaint in found[0]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("rankhinge.losses", "import math, numpy as np\nfrom numba import njit"),
        ("rankhinge.losses", "from rankhinge import __version__"),
        ("rankhinge.inference.ranking", "from ..losses import AP\nfrom .kernels import x"),
        (
            "rankhinge.inference.ranking",
            "from rankhinge._threads import run\nfrom .. import _validation",
        ),
        ("rankhinge.objective", "import rankhinge.inference.ranking as r"),
        (
            "rankhinge.svm.rank_svc",
            "from sklearn.base import BaseEstimator\nfrom ..metrics import x",
        ),
        ("rankhinge.svm.rank_svc", "def f():\n import pandas"),
        ("rankhinge.svm", "import typing\nif typing.TYPE_CHECKING:\n from rankhinge.papers.machines import x"),
        ("rankhinge.svm.rank_svc", "import typing\nif typing.TYPE_CHECKING:\n import polars"),
        (
            "rankhinge.torch.modules",
            "import torch\nfrom torch import nn\nfrom ..problems import J",
        ),
        ("rankhinge.dask.maps", "import dask.array\nfrom distributed import Client"),
        ("rankhinge.plotting", "import matplotlib.pyplot as plt\nfrom rankhinge import metrics"),
        ("rankhinge.demo", "from rankhinge import RankSVC, most_violating_ranking"),
        ("rankhinge.latent.bags", "from rankhinge.svm import RankSVC\nfrom ..detection import nms"),
    ],
)
def test_allowed(module, source):
    assert violations(source, module) == []


def test_dots_in_a_package():
    assert violations("from .ranking import x", "rankhinge.inference", True) == []
    assert violations("from ..losses import x", "rankhinge.inference", True) == []
    assert len(violations("from ..metrics import x", "rankhinge.inference", True)) == 1
    assert violations("from .inference import x\nfrom . import losses", "rankhinge", True) == []


@pytest.mark.parametrize("room", ["", ".losses", ".inference"])
def test_starts_without_the_slow_libraries(room):
    if importlib.util.find_spec("rankhinge" + room) is None:
        pytest.skip(f"rankhinge{room} does not exist")
    slow = {"sklearn", *OPTIONAL}
    program = f"import sys, rankhinge{room}; print(*{slow} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


def test_type_checkers_see_the_public_names():
    """What is imported for them is what `__getattr__` gives."""
    import rankhinge

    tree = ast.parse(Path(rankhinge.__file__).read_text("utf-8"))
    branch = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {name.asname: node.module for node in branch.body for name in node.names}
    assert seen == {
        **{name: f"rankhinge.{room}" for name, room in rankhinge._HOME.items()},
        **dict.fromkeys(rankhinge._ROOMS, "rankhinge"),
    }


def test_a_public_name_is_looked_up_once():
    code = (
        "import rankhinge; names = vars(rankhinge); assert 'structured_hinge' not in names; "
        "found = rankhinge.structured_hinge; assert names['structured_hinge'] is found; "
        "from rankhinge.inference import structured_hinge; assert structured_hinge is found"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_default_fit_does_not_load_the_papers():
    code = (
        "import sys, numpy as np; from rankhinge import Bags, LatentRankSVC, RankSVC; "
        "rng = np.random.default_rng(0); X = rng.normal(size=(40, 3)); y = X[:, 0] > 0.5; "
        "RankSVC().fit(X, y); RankSVC(bound='convex').fit(X, y); "
        "LatentRankSVC().fit(Bags(X, offsets=range(0, 41, 2)), y[::2]); "
        "print(*[name for name in sys.modules if name.startswith('rankhinge.papers')])"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []
