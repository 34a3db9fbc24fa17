"""Multiple-instance sets: latent AP-SVM beside latent SVM.

``make experiments ONLY=mil`` computes what is missing in ``results/mil.json`` and writes ``docs/experiments/mil.md``.
Not in the papers: small sets on which others compare such machines. Five folds; parameters by folds of the rest.
"""

from __future__ import annotations

from typing import Any

import _mil_page
import numpy as np
from _latent_choice import MACHINES, N_FOLDS, PAIR, Search, average_precision, chosen, folds_of
from _latent_data import MIL_SETS, mil_set
from _run import Run, main

from rankhinge.latent import Bags

SEARCH = Search(powers=(-1, 0, 1, 2), n_folds=3, per_decade=1, width=1, most_values=7)
QUICK = Search(powers=(0,), n_folds=1, per_decade=1, width=1, most_values=1)

SETTINGS = {"fold/": SEARCH}


def judged(kind: str, bags: Bags, y: np.ndarray, fold: int, search: Search) -> dict[str, Any]:
    """Parameters chosen on the training part of a fold, AP on the rest."""
    train, test = folds_of(y, N_FOLDS)[fold]
    choice = chosen(kind, bags[train], y[train], search)
    model = MACHINES[kind](C=choice["C"], **choice["options"]).fit(bags[train], y[train])
    return {**choice, "AP": average_precision(y[test], model.decision_function(bags[test]))}


def work(run: Run) -> None:
    names = MIL_SETS[:1] if run.quick else MIL_SETS
    run.facts = {"sets": list(names)}
    run.expect(len(names) * (1 + N_FOLDS * len(PAIR)))
    for name in names:
        bags, y = mil_set(name)
        run.cell(f"facts/{name}", lambda b=bags: {"n_bags": len(b), "n_candidates": b.n_candidates})
        for kind in PAIR:
            for fold in range(2 if run.quick else N_FOLDS):
                run.cell(
                    f"fold/{name}/{kind}/{fold}",
                    lambda k=kind, b=bags, y=y, f=fold: judged(k, b, y, f, QUICK if run.quick else SEARCH),
                )


if __name__ == "__main__":
    main("mil", __doc__ or "", work, _mil_page.page, SETTINGS)
