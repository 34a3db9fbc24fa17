"""What the pages of the latent machines share."""

from __future__ import annotations

import numpy as np
from _run import Run, compared

COLOURS = {"latent AP-SVM": "#0072B2", "latent SSVM": "#999999", "latent SVM": "#D55E00"}


def complete(run: Run, names: list[str], prefixes: list[str]) -> list[str]:
    """The names for which every cell is there."""
    return [name for name in names if all(f"{prefix}/{name}" in run for prefix in prefixes)]


def trimming(run: Run, names: list[str], what: str) -> list[str]:
    """Latent AP-SVM with the most confusing candidates of negatives left out, as the latent SVM may have it."""
    percents = list(dict.fromkeys(key.split("/")[1] for key in run.keys("trimmed/")))
    done = complete(run, names, [f"trimmed/{percent}" for percent in percents]) if percents else []
    if not done:
        return []
    means = {p: [float(np.mean(run[f"trimmed/{p}/{name}"])) for name in done] for p in percents}
    n_folds = len(run[f"trimmed/0/{done[0]}"])
    differences = {p: np.subtract(means[p], means["0"]) for p in percents if p != "0"}
    gains = {p: d.mean() for p, d in differences.items()}
    verdict = "It does not help: `LatentRankSVC` has no such option."
    if max(gains.values()) > 0:
        verdict = "What gain there is lies within the noise or is small: `LatentRankSVC` has no such option."
    return [
        "## Noisy labels: would latent AP-SVM gain by trimming?\n",
        f"{what} The latent SVM may leave out the most confusing candidates of negatives (c above); the same was tried "
        f"for latent AP-SVM. AP in {n_folds} of five folds, at the C chosen without it, minus the AP without it, over "
        "the classes:\n",
        *(f"- {p} % left out: {compared(means[p], means['0'])}" for p in differences),
        f"\n{verdict}\n",
    ]
