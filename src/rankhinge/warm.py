"""``python -m rankhinge.warm``: compile the kernels in advance, for container images and CI.

numba keeps compiled code by the path and the time of its source and by the processor. So fill the cache on the machine
that will use it, after the installation.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ["Warmed", "main", "warm"]


class Warmed(NamedTuple):
    """The result of `warm`: seconds, the folder (None: numba's own choice), its files and bytes."""

    seconds: float
    folder: str | None
    n_files: int
    n_bytes: int

    def told(self) -> str:
        """The result in one line."""
        if self.folder is None:
            return f"compiled in {self.seconds:.1f} s; kept in numba's default folder"
        size = f"{self.n_files} files, {self.n_bytes / 1e6:.1f} MB"
        return f"compiled in {self.seconds:.1f} s; kept in {self.folder} ({size}): set NUMBA_CACHE_DIR to it"


def warm(folder: str | os.PathLike[str] | None = None) -> Warmed:
    """Compile the kernels of `RankSVC`, `SVMRanker`, their CV classes and `LatentRankSVC` in a separate process.

    Parameters
    ----------
    folder : path, optional
        The folder of the cache, created if needed. Default: numba's own.

    Returns
    -------
    Warmed

    Raises
    ------
    OSError
        If the folder cannot be written to.
    """
    environment = dict(os.environ)
    place = None
    if folder is not None:
        place = Path(folder).resolve()
        place.mkdir(parents=True, exist_ok=True)
        # numba silently falls back on other folders.
        probe = place / f".writable-{os.getpid()}"
        probe.touch()
        probe.unlink()
        environment["NUMBA_CACHE_DIR"] = str(place)
    began = time.perf_counter()
    # numba looks at the variable when it is imported, which may be long ago in this process.
    subprocess.run(
        [sys.executable, "-c", "from rankhinge.warm import _fit_all; _fit_all()"], env=environment, check=True
    )
    files = [] if place is None else [path for path in place.rglob("*.nb*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    return Warmed(time.perf_counter() - began, None if place is None else str(place), len(files), size)


def _fit_all() -> None:
    """Fits that need every kernel of the usual ways: dense and sparse, both precisions, both bounds."""
    import warnings

    import numpy as np
    from scipy import sparse

    import rankhinge

    rng = np.random.default_rng(0)
    n, d = 240, 4
    X = rng.normal(size=(n, d))
    grades = np.clip(np.round(X[:, 0] + rng.normal(size=n) + 1), 0, 2)
    qid = np.repeat(np.arange(24), n // 24)
    warnings.simplefilter("ignore")
    for features in (X, X.astype(np.float32), sparse.csr_array(X), sparse.csr_array(X.astype(np.float32))):
        for bound in ("tight", "convex"):
            rankhinge.RankSVC(bound=bound).fit(features, grades > 1).decision_function(features)
            rankhinge.SVMRanker(bound=bound).fit(features, grades, qid=qid).predict(features)
    rankhinge.RankSVC().fit(X, grades)
    rankhinge.RankSVCCV(cv=2, random_state=0).fit(X, grades > 1)
    rankhinge.SVMRankerCV(cv=2, random_state=0).fit(X, grades, qid=qid)
    bags = rankhinge.Bags(list(X.reshape(n // 4, 4, d)))
    rankhinge.LatentRankSVC().fit(bags, np.arange(n // 4) % 3 == 0)


def main(argv: Sequence[str] | None = None) -> None:
    """Compile into the folder that is given."""
    parser = argparse.ArgumentParser(prog="python -m rankhinge.warm", description="Compile the kernels now.")
    parser.add_argument("folder", nargs="?", help="of the cache; default: numba's own")
    print(warm(parser.parse_args(argv).folder).told())


if __name__ == "__main__":
    main()
