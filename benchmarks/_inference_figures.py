"""The figures of `inference.py`: time against the number of samples, and ranks over the iterations of a training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from numpy.typing import NDArray

# Before pyplot: a benchmark draws to files, whatever screen there may be.
matplotlib.use("Agg")
import matplotlib.pyplot as plt

# Colours that stay apart for colour-blind readers, and markers for those who print in grey.
_STYLES = {
    "greedy": ("#D55E00", "s"),
    "quicksort": ("#E69F00", "^"),
    "auto": ("#0072B2", "o"),
    "zero-one": ("#555555", "x"),
}
_PANELS = {
    "total": ("all samples, 1 positive to 10 negatives", lambda point: point["n_positives"] + point["n_negatives"]),
    "negative": ("negative samples, 227 positives", lambda point: point["n_negatives"]),
    "positive": ("positive samples, 200 negatives", lambda point: point["n_positives"]),
}
_LOSS_NAMES = {"ap": "AP", "ndcg": "NDCG"}


def draw_scaling(sweeps: dict[str, list[dict[str, Any]]], loss: str, path: Path) -> None:
    """Time of one call against the number of samples, a panel for each way of growing the list."""
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.9), sharey=True, layout="constrained")
    for panel, (label, abscissa) in zip(axes, _PANELS.values()):
        points = sweeps[next(name for name, value in _PANELS.items() if value[0] == label)]
        x = [abscissa(point) for point in points]
        for rival, (colour, marker) in _STYLES.items():
            timings = [point["seconds"].get(rival) for point in points]
            shown = [(at, timing) for at, timing in zip(x, timings) if timing is not None]
            at = [place for place, _ in shown]
            panel.plot(
                at,
                [1e3 * timing["median"] for _, timing in shown],
                color=colour,
                marker=marker,
                markersize=5,
                label=_rival_name(rival, loss),
            )
            low, high = ([1e3 * timing[end] for _, timing in shown] for end in ("low", "high"))
            panel.fill_between(at, low, high, color=colour, alpha=0.2, linewidth=0)
        panel.set(xscale="log", yscale="log", xlabel=label)
        panel.grid(which="major", color="0.9")
        panel.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("time of one call (ms)")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _rival_name(rival: str, loss: str) -> str:
    name = _LOSS_NAMES[loss]
    return {
        "greedy": f"{name}, greedy",
        "quicksort": f"{name}, quicksort",
        "auto": f"{name}, default",
        "zero-one": "0-1 hinge",
    }[rival]


def draw_heat_map(rank_vectors: Sequence[NDArray[Any]], n_positives: int, path: Path) -> None:
    """Interleaving ranks of the negatives (columns, best score first) after each iteration (rows, first on top)."""
    # Within a row the negatives are in the order of that row's scores, along which ranks ascend.
    ranks = np.sort(np.stack(rank_vectors), axis=1)
    # The last rank is what the fast methods live on: a colour of its own shows where it begins.
    colours = plt.get_cmap("viridis").with_extremes(over="0.92")
    figure, axes = plt.subplots(figsize=(8, 4.2), layout="constrained")
    image = axes.imshow(
        ranks,
        aspect="auto",
        interpolation="nearest",
        cmap=colours,
        vmin=1,
        vmax=n_positives,
        extent=(0.5, ranks.shape[1] + 0.5, len(ranks) + 0.5, 0.5),
    )
    axes.set(xlabel="negative samples, by score", ylabel="training iteration")
    axes.yaxis.get_major_locator().set_params(integer=True)
    bar = figure.colorbar(image, ax=axes, extend="max", label=f"interleaving rank (grey: P + 1 = {n_positives + 1})")
    bar.set_ticks([1, (n_positives + 1) // 2, n_positives])
    figure.savefig(path, dpi=130)
    plt.close(figure)
