"""The figures of `training.py`: gap against passes, and time against test metric."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

# Before pyplot: a benchmark draws to files, whatever screen there may be.
matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

# Colours that stay apart for colour-blind readers, and markers for those who print in grey.
_STYLES = {
    "bundle": ("#0072B2", "o"),
    "quasi-newton": ("#F0E442", "h"),
    "cutting-plane": ("#D55E00", "s"),
    "frank-wolfe": ("#E69F00", "^"),
    "subgradient": ("#CC79A7", "v"),
    "LinearSVC": ("#009E73", "D"),
    "LogisticRegression": ("#56B4E9", "P"),
    "SGDClassifier": ("#999999", "X"),
    "LightGBM": ("#555555", "<"),
    "XGBoost": ("#000000", ">"),
}
_TOLERANCE = 1e-3


def draw_gaps(entries: list[dict[str, Any]], path: Path) -> str:
    """Relative gap against passes for one class, a panel for each C; returns the name of the class."""
    shown = [entry for entry in entries if "history" in entry["bundle"]]
    figure, axes = plt.subplots(1, len(shown), figsize=(11, 3.4), sharey=True, layout="constrained")
    for panel, entry in zip(np.atleast_1d(axes), shown):
        for name in ("bundle", "cutting-plane"):
            history, (colour, marker) = entry[name]["history"], _STYLES[name]
            gap = np.array(history["gap"], dtype=float)
            known = np.isfinite(gap)
            every = max(1, known.sum() // 12)
            panel.plot(
                np.array(history["passes"])[known],
                gap[known],
                color=colour,
                marker=marker,
                markersize=4,
                markevery=every,
                label=name,
            )
        panel.axhline(_TOLERANCE, color="0.6", linewidth=0.8, linestyle=":")
        panel.set(xscale="log", yscale="log", xlabel="passes over X", title=f"C = {entry['C']:g}")
        panel.grid(which="major", color="0.92")
        panel.spines[["top", "right"]].set_visible(False)
    first = np.atleast_1d(axes)[0]
    first.set_ylabel("relative gap")
    handles, labels = first.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False)
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return str(shown[0]["class"])


def draw_times(cells: list[dict[str, Any]], path: Path) -> None:
    """Time of a fit (across) and test metric (upwards), a panel for each set."""
    names = list(dict.fromkeys(cell["set"] for cell in cells))
    n_columns = min(3, len(names))
    n_rows = -(-len(names) // n_columns)
    size = (11, 0.8 + 2.7 * n_rows)
    figure, axes = plt.subplots(n_rows, n_columns, figsize=size, squeeze=False, layout="constrained")
    for panel in axes.flat[len(names) :]:
        panel.set_visible(False)
    labelled: dict[str, Any] = {}
    for panel, name in zip(axes.flat, names):
        for cell in (cell for cell in cells if cell["set"] == name):
            colour, marker = _STYLES[cell["rival"]]
            (point,) = panel.plot(
                cell["seconds"],
                cell["test"],
                marker=marker,
                markersize=7,
                linestyle="",
                color=colour,
                # Rivals that end at the same place are to be seen all the same.
                alpha=0.75,
                markeredgecolor=colour,
                fillstyle="full" if cell.get("converged", True) else "none",
                markeredgewidth=1.4,
            )
            if cell.get("converged", True) or cell["rival"] not in labelled:
                labelled[cell["rival"]] = point
        panel.set(xscale="log", title=name)
        panel.margins(0.12)
        low, high = panel.get_xlim()
        # Panels that span little would be left with a single label.
        subs = (1, 2, 5) if high < 20 * low else (1, 3) if high < 300 * low else (1,)
        panel.xaxis.set_major_locator(LogLocator(subs=subs))
        panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.grid(which="major", color="0.92")
        panel.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("time of a fit (s)", fontsize="medium")
    figure.supylabel("test metric", fontsize="medium")
    order = [rival for rival in _STYLES if rival in labelled]
    figure.legend(
        [labelled[rival] for rival in order],
        order,
        loc="outside upper center",
        ncols=5,
        frameon=False,
        columnspacing=1.0,
        handletextpad=0.1,
    )
    figure.savefig(path, dpi=130)
    plt.close(figure)
