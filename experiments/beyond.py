"""Beyond the papers: rankers against boosted trees, and the last layer of a network trained by AP.

``make experiments ONLY=beyond`` computes what is missing in ``results/beyond.json`` and writes
``docs/experiments/beyond.md``. Trees, linear rivals and our rankers come from the results of the accuracy benchmark;
CatBoost, which that benchmark does not have, runs here on the same splits with a smaller budget where it is installed.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import _beyond_page
import _catboost_search
import torch
from _action_data import load_actions
from _embeddings import MACHINES, N_OUTER, Layer, actions, evaluated, resnet
from _run import Run, main


def trial(name: str, layer: Layer) -> dict[str, Any]:
    """A few rows, features, labels and steps."""
    small = Layer(layer.X[::8, :60], layer.Y[::8, :2], layer.X_test[::8, :60], layer.Y_test[::8, :2])
    return evaluated(name, small, **({"checks": (10,)} if name == "RankHingeLoss" else {}))


def work(run: Run) -> None:
    torch.set_num_threads(1)
    of, n_outer = (trial, 1) if run.quick else (evaluated, N_OUTER)
    run.expect(len(MACHINES) * (1 + n_outer))
    for name in MACHINES:
        run.cell(f"voc/{name}", lambda name=name: of(name, actions()))
        for fold in range(n_outer):
            run.cell(f"CIFAR10_0/{name}/{fold}", lambda name=name, fold=fold: of(name, list(resnet())[fold]))
    if find_spec("catboost") and not run.quick:
        run.expect(len(_catboost_search.PLACES))
        for name, fold in _catboost_search.PLACES:
            run.cell(f"CatBoost/{name}/{fold}", lambda name=name, fold=fold: _catboost_search.evaluated(name, fold))
    run.facts = {"classes": list(load_actions().classes), "torch": torch.__version__}
    run.write()


if __name__ == "__main__":
    main("beyond", __doc__ or "", work, _beyond_page.page, {"CatBoost/": _catboost_search.BUDGET})
