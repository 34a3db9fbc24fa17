"""The results of `within_training.py` as a page with figures."""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy as np
from _run import Run, save_figure, text_table

# Before pyplot: an experiment draws to files, whatever screen there may be.
matplotlib.use("Agg")
import matplotlib.pyplot as plt

# Names inside an SVG are drawn from this: the same figure is the same file.
matplotlib.rcParams["svg.hashsalt"] = "rankhinge"

# Total seconds and milliseconds a call, by paper: 003 Tables 2 and 3; 000 Tables 2, 3, 5, 6; 004 Tables 1 and 2.
PAPERS = {
    "0-1": ("0.107 / 0.64", "0.143 / 1.87; 0.169 / 2.45", "0.069 / 0.48"),
    "AP greedy": ("0.566 / 13.2", "0.715 / 16.3", "0.715 / 16.3"),
    "AP search": ("0.067 / 1.57", "0.099 / 2.32", "0.099 / –"),
    "AP select": ("0.040 / 0.94", "–", "–"),
    "AP quicksort": ("–", "–", "0.063 / 1.48"),
    "AP quicksort + search": ("–", "0.063 / 1.48", "–"),
    "AP APPX 50 %": ("0.234 / 8.22", "–", "–"),
    "AP all (APPX + select)": ("0.025 / 0.69", "–", "–"),
    "NDCG greedy": ("–", "6.80 / 71.1", "6.80 / 71.1"),
    "NDCG quicksort": ("–", "0.047 / 0.55", "0.047 / 0.55"),
}
NO_PAPER = ("–", "–", "–")
SHOWN = {"ap default solver": "AP default, default solver", "ndcg default solver": "NDCG default, default solver"}
COLOURS = {
    "0-1": "0.5",
    "AP greedy": "tab:red",
    "AP quicksort": "tab:blue",
    "AP default": "tab:green",
    "NDCG greedy": "tab:red",
    "NDCG quicksort": "tab:blue",
    "NDCG default": "tab:green",
}
INTRODUCTION = """
What the papers promise is time: how long loss-augmented inference takes *within* a training. Ten classes of VOC action
(3347 boxes, 1280 features), each trained by plain cutting planes with one slack variable (Joachims et al. 2009) to a
relative gap of 0.001, with the C that [the experiment on accuracy](actions.md) chose; one thread.

Only the method of inference differs between rows of one loss: all of them are exact, and end at the same objective
within the tolerance (asserted). The best of three trainings counts. Times of inference contain everything from scores
to coefficients.
"""


def of(run: Run, label: str) -> list[dict[str, Any]]:
    keys = [f"table/{label}/{name}" for name in run.facts["classes"]]
    return [run[key] for key in keys if key in run]


def table(run: Run) -> str:
    labels = list(dict.fromkeys(key.split("/")[1] for key in run.keys("table/")))
    rows = []
    for label in labels:
        cells = of(run, label)
        calls = np.array([cell["n_calls"] for cell in cells], float)
        seconds = np.array([cell["seconds"] for cell in cells])
        whole = np.array([cell["whole_seconds"] for cell in cells])
        each = 1e3 * seconds / calls
        rows.append(
            [
                SHOWN.get(label, label),
                f"{calls.mean():.0f}",
                f"{seconds.mean():.4f}",
                f"{each.mean():.3f} ± {each.std():.3f}",
                f"{whole.mean():.3f}",
                f"{np.mean([cell['passes'] for cell in cells]):.0f}",
                *PAPERS.get(label, NO_PAPER),
            ]
        )
    header = ["", "calls", "inference, s", "a call, ms", "training, s", "passes", "003", "000", "004"]
    return text_table(header, rows)


def ratio(run: Run, first: str, second: str) -> str:
    a, b = (sum(cell["seconds"] for cell in of(run, label)) for label in (first, second))
    return f"{a / b:.1f}" if a and b else "(not run)"


def figure_lines(run: Run, loss: str, name: str) -> str:
    figure, axes = plt.subplots(1, 3, figsize=(9, 2.8), layout="constrained")
    titles = {"samples": "all samples, 1 : 10", "negatives": "negatives, P = 227", "positives": "positives, N = 200"}
    for panel, (what, title) in zip(axes, titles.items(), strict=True):
        for label, colour in COLOURS.items():
            if label != "0-1" and not label.startswith(loss):
                continue
            keys = [key for key in run.keys(f"figure/{what}/") if key.endswith(f"/{label}")]
            points = sorted((int(key.split("/")[2]), run[key]["seconds"]) for key in keys)
            if points:
                panel.plot(*zip(*points, strict=True), marker="o", markersize=3, color=colour, label=label)
        panel.set(xlabel=title, yscale="log")
        panel.grid(color="0.92")
        panel.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("inference in all, s")
    handles, labels = axes[0].get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
    path = save_figure(run, figure, name)
    plt.close(figure)
    return path


def figure_map(run: Run) -> str:
    cell = run["heat map"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained", width_ratios=(3, 1))
    extent = (0, cell["n_negatives"], cell["n_iterations"], 0)
    image = left.imshow(np.array(cell["map"]), aspect="auto", extent=extent, cmap="viridis", interpolation="nearest")
    left.set(xlabel="negatives, best first", ylabel="iteration")
    figure.colorbar(image, ax=left, label="interleaving rank")
    right.plot(100 * np.array(cell["share"]), np.arange(len(cell["share"])), color="tab:green")
    right.invert_yaxis()
    right.set(xlabel="% with the last rank", xlim=(0, 100))
    right.spines[["top", "right"]].set_visible(False)
    path = save_figure(run, figure, "within_training-ranks")
    plt.close(figure)
    return path


def _load(run: Run) -> str:
    if "load" not in run.facts:
        return "Other programs ran on the machine at the time: the best of three counts."
    return f"The machine's load before it began, on {run.machine['cpus']} processors: {run.facts['load']:g}."


def page(run: Run) -> str:
    parts = ["# Experiment: inference within training\n", run.provenance(), INTRODUCTION]
    if run.keys("table/"):
        parts += [
            "## The tables (003 Tables 2 and 3; 000 Tables 2, 3, 5, 6; 004 Tables 1 and 2)\n",
            "Means over the classes; ± is the spread over classes. *passes* are passes over X, *training* all of it.\n"
            "The last columns are the papers': seconds in all / milliseconds a call. 000 has 0-1 twice, in Tables 2\n"
            "and 5; its SELECT is quicksort with the search inside.\n",
            table(run),
            f"""
- The order is the papers', the factors are other ones: greedy inference for AP takes
  {ratio(run, "AP greedy", "AP quicksort")} times as long as quicksort (papers: 11),
  {ratio(run, "AP greedy", "AP select")} times as long as select (14) and
  {ratio(run, "AP greedy", "AP default")} times as long as the default; for NDCG
  {ratio(run, "NDCG greedy", "NDCG quicksort")} times as long as quicksort (papers: 144) and
  {ratio(run, "NDCG greedy", "NDCG default")} times as long as the default. All methods here share
  one compiled loop, so that greedy is a better rival than it was.
- AP by the default method takes {ratio(run, "AP default", "0-1")} times as long as the 0-1 loss in all, NDCG
  {ratio(run, "NDCG default", "0-1")} times. The 0-1 row has its own C and its own number of calls.
- A quicksort that searches for the median's rank gains or loses against the plain one by a factor of
  {ratio(run, "AP quicksort + search", "AP quicksort")}: ranges are short after the first splits.
- APPX leaves inference fewer samples, and pays for it with the binary SVM before it and with constraints: compare the
  column *training*, which does not contain the binary SVM.
- What the papers do not have: a solver that asks for fewer passes. The rows *default solver* are what
  `RankSVC` does with the convex bound. Once inference is fast, it is a small part of a training; the passes over X are
  what is left.
""",
        ]
    if run.keys("figure/"):
        ap, ndcg = figure_lines(run, "AP", "within_training-ap"), figure_lines(run, "NDCG", "within_training-ndcg")
        parts += [
            "## Time against size (000 Figures 1 and 2, 004 Figures 2 and 3)\n",
            "Class phoning, subsampled (seed 0) as in the papers: all samples at 1 : 10, negatives with P = 227,",
            "positives with N = 200. The number of calls differs from point to point, as it does in the papers.\n",
            f"![Time of all inferences of a training, AP]({ap})\n",
            f"![Time of all inferences of a training, NDCG]({ndcg})\n",
        ]
    if "heat map" in run:
        cell = run["heat map"]
        parts += [
            "## Interleaving ranks over the iterations (003 Figure 1)\n",
            f"Phoning, {cell['n_negatives']} negatives, {cell['n_iterations']} iterations; the last rank is "
            f"{cell['last_rank']}. Blocks are averaged to keep the figure small. At the end "
            f"{100 * cell['share'][-1]:.0f} % of the negatives have the last rank: that is what `select` lives on.\n",
            f"![Interleaving ranks by iteration]({figure_map(run)})\n",
        ]
    parts.append(
        "Cut: nothing of the papers' tables; their features and machines are not ours, so compare ratios only. Seeds: "
        f"subsamples 0; nothing else is drawn. {_load(run)}"
    )
    return "\n".join(parts)
