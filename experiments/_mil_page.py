"""The results of `mil.py` as a page."""

from __future__ import annotations

from _latent_choice import PAIR
from _run import Run, compared, mean_and_spread, text_table

INTRODUCTION = """
Bags of feature vectors with a label for the bag, from the literature on multiple instances: not in the papers. AP in
five folds, mean and standard deviation. Features are standardised over all bags, those of the test folds included,
without their labels.
"""
TRUST = """
## How far to trust it

The sets are small, and folds share bags: the tests say no more than that such differences are within the noise, or not.
C: a value a decade, by three folds of the training part (seed 0), grown until the choice lies inside the grid; J and c
of the latent SVM by one of them. One start.
"""


def aps(run: Run, name: str, kind: str) -> list[float]:
    return [run[key]["AP"] for key in run.keys(f"fold/{name}/{kind}/")]


def page(run: Run) -> str:
    rows, texts = [], []
    for name in run.facts["sets"]:
        found = {kind: aps(run, name, kind) for kind in PAIR}
        if not all(found[kind] for kind in PAIR) or len(found[PAIR[0]]) != len(found[PAIR[1]]):
            continue
        facts = run[f"facts/{name}"]
        cells = [mean_and_spread(values) for values in found.values()]
        rows.append([name, str(facts["n_bags"]), str(facts["n_candidates"]), *cells])
        texts.append(f"- {name}: {compared(*(found[kind] for kind in PAIR))}")
    table = text_table(["set", "bags", "candidates", *PAIR], rows) if rows else ""
    parts = ["# Experiment: multiple-instance sets\n", run.provenance(), INTRODUCTION, table]
    missing = [name for name in run.facts["sets"] if name not in [row[0] for row in rows]]
    last = [f"Not finished: {', '.join(missing)}."] if missing else []
    return "\n".join([*parts, "\nLatent AP-SVM minus latent SVM:\n", *texts, TRUST, *last])
