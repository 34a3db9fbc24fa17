"""Print the peak of NumPy's allocations during a latent fit on a memory-mapped X, in a process of its own."""

from __future__ import annotations

import json
import tempfile
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
from _latent_data import voc_windows

from rankhinge.latent import Bags, LatentRankSVC

COPIES = 8


def peaks_of(bags: Bags, y: np.ndarray) -> dict[str, object]:
    peaks = {}
    for shrinking in (True, False):
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        LatentRankSVC(C=1e-3, shrinking=shrinking).fit(bags, y)
        peaks[str(shrinking)] = tracemalloc.get_traced_memory()[1] - before
        tracemalloc.stop()
    n = bags.n_candidates
    return {"X": bags.matrix.nbytes, "n_candidates": n, "array": 8 * n, "peaks": peaks}


def main() -> None:
    data = voc_windows()
    some, y, _ = data.problem(8)
    X, sizes = some.candidates(), some.sizes
    warnings.simplefilter("ignore")
    LatentRankSVC(C=1e-3, max_outer=2, tol=0.1).fit(some[:200], y[:200])
    del data, some
    facts = {}
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        for n_copies in (1, COPIES):
            path = Path(folder) / f"X{n_copies}.npy"
            # More windows of each image: noisy copies, bag by bag.
            bag_of = np.repeat(np.repeat(np.arange(sizes.size), sizes), n_copies)
            mapped = np.lib.format.open_memmap(path, "w+", X.dtype, (bag_of.size, X.shape[1]))
            for copy in range(n_copies):
                noise = rng.integers(0, 16, size=X.shape, dtype=np.uint8) if copy else np.uint8(0)
                mapped[copy::n_copies] = np.minimum(X, 255 - noise) + noise
            del mapped
            facts[str(n_copies)] = peaks_of(Bags(np.load(path, mmap_mode="r"), bag_ids=bag_of), y)
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
