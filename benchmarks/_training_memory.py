"""Print the peak of memory during one fit, in a process of its own: ``python _training_memory.py RIVAL SET STORAGE C``.

STORAGE says how X is held: ``as is``, ``float32``, or ``mapped`` (float32 in a memory-mapped file). Two figures: what
the resident memory rises by, and the peak of NumPy's own allocations. A mapped file counts as resident though it is
not copied, so for it only the second means something.
"""

from __future__ import annotations

import json
import sys
import tempfile
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
from _datasets import LOADERS, Dataset, shortened
from _peak_memory import peak_of
from _training_rivals import LINEAR, MOST_ITERATIONS, quietly
from scipy import sparse

from rankhinge import RankSVC
from rankhinge.features import feature_map
from rankhinge.losses import get_loss
from rankhinge.objective import RankingObjective
from rankhinge.problems import one_list
from rankhinge.solvers import make_solver


def one_problem(data: Dataset) -> tuple[Any, Any]:
    """X and binary labels; of VOC's classes the second, phoning, which is labelled throughout."""
    return data.X, (data.y if data.y.ndim == 1 else data.y[:, 1]) > 0


def stored(X: Any, storage: str, folder: Path, name: str) -> Any:
    if storage == "as is":
        return X
    if storage == "float32":
        return X.astype(np.float32)
    path = folder / name
    np.save(path, X.astype(np.float32))
    return np.load(path, mmap_mode="r")


def size_of(X: Any) -> int:
    return sum(part.nbytes for part in (X.data, X.indices, X.indptr)) if sparse.issparse(X) else X.nbytes


def model_of(rival: str, C: float) -> Any:
    return LINEAR[rival]() if rival in LINEAR else RankSVC(C=C, solver=rival, max_iter=MOST_ITERATIONS, bound="convex")


def plane_bytes(X: Any, y: Any, solver_name: str, C: float) -> int:
    """The most that the planes of such a fit and their products take at any time."""
    objective = RankingObjective(feature_map(X), [one_list(y)], get_loss("ap"))
    solver = make_solver(solver_name, objective, C, max_iter=MOST_ITERATIONS)
    most = 0
    while not solver.done:
        solver.step()
        most = max(most, len(solver.masters[0]))
    return 8 * most * (X.shape[1] + most)


def main(rival: str, name: str, storage: str, C: float, n_rows: int) -> None:
    data = LOADERS[name]()
    if n_rows:
        data = shortened(data, n_rows)
    small, small_y = one_problem(shortened(data, 1000))
    X, y = one_problem(data)
    del data
    with tempfile.TemporaryDirectory() as folder:
        # What is compiled or loaded at the first fit is not the fit's; long lists have kernels of their own.
        quietly(lambda: model_of(rival, C).fit(stored(small, storage, Path(folder), "small.npy"), small_y))
        X = stored(X, storage, Path(folder), "X.npy")
        quietly(
            lambda: RankSVC(max_iter=2, bound="convex").fit(X[:, :2] if sparse.issparse(X) else np.array(X[:, :2]), y)
        )
        resident = peak_of(lambda: quietly(lambda: model_of(rival, C).fit(X, y)))
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        quietly(lambda: model_of(rival, C).fit(X, y))
        arrays = tracemalloc.get_traced_memory()[1] - before
        tracemalloc.stop()
        planes = 0 if rival in LINEAR else plane_bytes(X, y, rival, C)
    facts = {"n": X.shape[0], "X": size_of(X), "resident": resident, "arrays": arrays, "planes": planes}
    print(json.dumps(facts))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), int(sys.argv[5]))
