"""The results of `cifar10.py` as a page and a figure."""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy as np
from _run import Run, compared, save_figure, text_table

# Before pyplot: an experiment draws to files, whatever screen there may be.
matplotlib.use("Agg")
import matplotlib.pyplot as plt

# Names inside an SVG are drawn from this: the same figure is the same file.
matplotlib.rcParams["svg.hashsalt"] = "rankhinge"

LOSSES = {"multiclass-hinge": "0-1", "ap": "AP", "ndcg": "NDCG", "cross-entropy": "cross-entropy"}
WAYS = {
    "start": "pre-trained",
    "layers/multiclass-hinge": "layer by layer, 0-1",
    "layers/ap": "layer by layer, AP",
    "layers/ndcg": "layer by layer, NDCG",
    "gradients/cross-entropy": "gradients, cross-entropy",
    "gradients/ap": "gradients, AP",
}
METRICS = {
    "ap": "mean AP",
    "ndcg": "mean NDCG",
    "ap by probability": "mean AP, by probability",
    "ndcg by probability": "NDCG, by probability",
    "accuracy": "accuracy",
}
# The paper's test figures by 0-1 and by the loss itself, and its hours by the older inference and by its own.
PAPER = {"ap": ("84.22", "85.28", "1.974", "1.589"), "ndcg": ("95.31", "96.14", "2.217", "1.632")}
COLOURS = {"greedy": "tab:red", "quicksort": "tab:blue", "auto": "tab:green"}
METHOD_NAMES = {"greedy": "greedy", "quicksort": "quicksort", "auto": "default"}

INTRODUCTION = """
A network is pre-trained with cross-entropy by Adadelta. Then `LayerwiseTrainer` goes on layer by layer, for the 0-1
loss (multiclass hinge), the AP loss or the NDCG loss, as in 004 §4.3. For comparison, the same network goes on by
stochastic gradients: with cross-entropy, and with `RankHingeLoss` for AP.
"""


def cells(run: Run, way: str) -> list[dict[str, Any]]:
    return [run[key] for key in run.keys(f"{way}/")]


def test(run: Run, way: str, metric: str) -> list[float]:
    """Test figures of each seed."""
    return [cell["test"][metric] for cell in cells(run, way)]


def spread(values: list[float]) -> str:
    points = 100 * np.array(values)
    return f"{points.mean():.2f} ± {points.std(ddof=1):.2f}" if points.size > 1 else f"{points.mean():.2f}"


def quality_table(run: Run) -> str:
    rows = [
        [name, str(len(cells(run, way))), *(spread(test(run, way, metric)) for metric in METRICS)]
        for way, name in WAYS.items()
        if cells(run, way)
    ]
    return text_table(["trained by", "seeds", *METRICS.values()], rows)


def pairs(run: Run, first: tuple[str, str], second: tuple[str, str]) -> tuple[list[float], list[float]]:
    """Test figures of two ways, each with its metric, on the seeds that both have."""
    found = [
        {key.split("/")[-1]: run[key]["test"][metric] for key in run.keys(f"{way}/")} for way, metric in (first, second)
    ]
    shared = sorted(found[0].keys() & found[1].keys())
    return [found[0][seed] for seed in shared], [found[1][seed] for seed in shared]


def differences(run: Run) -> str:
    """Paired over the seeds, beside the paper's."""
    lines = []
    for metric, (binary, own, _, _) in PAPER.items():
        ours, theirs = (f"layers/{metric}", metric), "layers/multiclass-hinge"
        name = f"- {METRICS[metric]}, layer by layer, {LOSSES[metric]} less 0-1"
        a, b = pairs(run, ours, (theirs, metric))
        if a:
            paper = f"The paper: {float(own) - float(binary):+.2f} ({own} against {binary})."
            lines.append(f"{name}: {compared(a, b)}. {paper}")
            a, b = pairs(run, ours, (theirs, f"{metric} by probability"))
            lines.append(f"{name} *ranked by probabilities*: {compared(a, b)}.")
    others = [("layers/ap", "gradients/ap"), ("layers/ap", "start"), ("gradients/ap", "gradients/cross-entropy")]
    for first, second in others:
        a, b = pairs(run, (first, "ap"), (second, "ap"))
        if a:
            lines.append(f"- mean AP, {WAYS[first]} less {WAYS[second]}: {compared(a, b)}.")
    return "\n".join(lines)


def missing(run: Run) -> str:
    """What has not been run yet."""
    lacks = [name for way, name in WAYS.items() if len(cells(run, way)) < run.facts["n_seeds"]]
    lacks += ["times by method of inference"] * (len(run.keys("time/")) < 2 * len(METHOD_NAMES))
    lacks += ["times by size of the blocks"] * (len(run.keys("size/")) < 2 * len(run.facts["timing_block_sizes"]))
    return f"**This run is not complete.** Not run, or not on all seeds: {'; '.join(lacks)}.\n\n" if lacks else ""


def search_table(run: Run) -> str:
    """Validation figures of each value, the chosen one marked."""
    rows = []
    for way, loss in dict.fromkeys(tuple(key.split("/")[1:3]) for key in run.keys("search/")):
        metric = "ndcg" if loss == "ndcg" else "ap"
        found = {key.split("/")[3]: run[key][metric] for key in run.keys(f"search/{way}/{loss}/")}
        best = max(found, key=found.__getitem__)
        mark = " *, an end" if best in (next(iter(found)), list(found)[-1]) else " *"
        texts = [f"{value}: {100 * score:.2f}{mark if value == best else ''}" for value, score in found.items()]
        rows.append([WAYS[f"{way}/{loss}"], "λ" if way == "layers" else "rate", METRICS[metric], ", ".join(texts)])
    return text_table(["trained by", "", "judged by", "validation (* chosen)"], rows)


def time_table(run: Run) -> str:
    rows = []
    for loss, (_, _, slow, fast) in PAPER.items():
        for method, name in METHOD_NAMES.items():
            if (key := f"time/{loss}/{method}") in run:
                cell = run[key]
                hours = {"greedy": f"{slow} h", "quicksort": f"{fast} h"}.get(method, "–")
                rows.append(
                    [
                        LOSSES[loss],
                        name,
                        f"{cell['inference_seconds']:.2f} s",
                        f"{cell['seconds']:.1f} s",
                        f"{100 * cell['inference_seconds'] / cell['wall']:.1f} %",
                        f"{cell['objective']:.4f}",
                        hours,
                    ]
                )
    header = ["loss", "inference", "in inference", "in all, processor", "share", "objective", "paper, in all"]
    return text_table(header, rows)


def size_table(run: Run) -> str:
    rows = []
    for key in run.keys("size/"):
        _, loss, size = key.split("/")
        cell = run[key]
        times = [f"{cell[method]['inference_seconds']:.2f} / {cell[method]['seconds']:.1f} s" for method in COLOURS]
        rows.append([LOSSES[loss], size, *times])
    return text_table(["loss", "block", *(METHOD_NAMES[method] for method in COLOURS)], rows)


def figure_of_sizes(run: Run) -> str:
    figure, panels = plt.subplots(1, 2, figsize=(8, 3), layout="constrained", sharey=True)
    for panel, loss in zip(panels, PAPER, strict=True):
        sizes = [int(key.split("/")[2]) for key in run.keys(f"size/{loss}/")]
        for method, colour in COLOURS.items():
            seconds = [run[f"size/{loss}/{size}"][method]["inference_seconds"] for size in sizes]
            panel.plot(sizes, seconds, marker="o", markersize=4, color=colour, label=METHOD_NAMES[method])
        panel.set(xscale="log", yscale="log", xlabel="images in a block", title=LOSSES[loss])
        panel.grid(color="0.92")
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("inference in all, s")
    panels[0].legend(frameon=False)
    path = save_figure(run, figure, "cifar10")
    plt.close(figure)
    return path


def turns_table(run: Run) -> str:
    """How often the layers' new weights were taken, and how far a layer's own problem was from its minimum."""
    rows = []
    for way, name in WAYS.items():
        turns = [turn for cell in cells(run, way) for turn in cell.get("turns", [])]
        for kind in ("exact", "frozen"):
            mine = [turn for turn in turns if turn["surrogate"] == kind]
            if mine:
                taken = sum(turn["taken"] is not None for turn in mine)
                gap = np.mean([turn["gap"] for turn in mine])
                rows.append([name, kind, str(len(mine)), str(taken), f"{gap:.2f}"])
    return text_table(["", "bound", "turns", "new weights taken", "mean gap at the end"], rows)


def time_part(run: Run) -> str:
    parts = ["## Time (004 §4.3: 1.974 → 1.589 hours for AP, 2.217 → 1.632 for NDCG)\n"]
    if run.keys("time/"):
        parts += [
            f"The three layers, on {run.facts['n_timed']} images of the first seed, blocks of "
            f"{run.facts['block_size']}, by each method of\ninference. The computations differ in nothing else. One "
            "thread; seconds of the processor.\n",
            time_table(run),
            "\nConvolutions take the time here, and blocks are short: that is why faster inference saves less than in "
            "the paper.\n",
        ]
    if run.keys("size/"):
        parts += [
            f"The last layer alone, on all {run.facts['n_train']} images: seconds in inference / in all.\n",
            size_table(run),
            f"\n![Seconds in inference against the size of a block]({figure_of_sizes(run)})\n",
        ]
    return "\n".join(parts)


CUT = """## Setting, and what was cut

- {n_train} training images, {n_validation} for validation, {n_test} test images. The paper: 45,000, 5000 and 10,000.
  The seed draws which images they are, from {n_known} that there are.
- Six convolutions and a last layer as in the paper, with 16 to 64 channels and a first stride of 2: made for one core.
- Pre-training: {pretrain_epochs} epochs of cross-entropy by Adadelta with its usual values, batches of 100, images
  mirrored at random. The paper does not say how many epochs its network had; it is better by far than this one.
- Layer by layer: {max_passes} pass over the last layer and the last two convolutions, at most {max_epochs} epochs a
  layer, blocks of {block_size}, μ = 10 λ. The first four convolutions stay as they are: in a trial their turns took
  four fifths of the time and lowered the AP objective by 0.7 %, those of the other three by more than 5 %. The weights
  with the best validation figure of the loss's own metric are kept.
- By gradients: Adam, {gradient_epochs} epochs, the best epoch by validation mean AP; batches of 100, for AP of
  {block_size}.
- λ and the rates: chosen among three values for each machine, on the validation images of the first seed after
  training on {n_search} images, with all layers trained. The choice then holds for all seeds. Nothing else was tried,
  and no choice has seen a test image: an earlier experiment in this place had chosen settings with them in view;
  nothing of it was kept.
- {n_seeds} seeds (0, 1, …), one for times. torch {torch}.
"""


def page(run: Run) -> str:
    parts = ["# Experiment: CIFAR-10, layer by layer\n", run.provenance(), INTRODUCTION]
    if cells(run, "start"):
        parts += [
            "## Result\n",
            quality_table(run),
            "\nPer cent on the test images, each class against the rest, mean over the classes; ± is over the seeds.\n"
            "*By probability*: a softmax normalises the scores of an image before images are ranked. Losses that\n"
            "compare the scores of one image with each other (cross-entropy, 0-1) do not make those of different\n"
            "images comparable.\n",
            missing(run) + differences(run),
            "",
        ]
    if run.keys("time/") or run.keys("size/"):
        parts.append(time_part(run))
    if run.keys("layers/"):
        parts += [
            "## The layers' turns\n",
            turns_table(run),
            "\nThe bound is exact for the last layer. For convolutions the choices downstream are frozen, and the\n"
            "true objective may rise: new weights are taken only if it falls, else part of the way is tried.\n",
        ]
    if run.keys("search/"):
        parts += ["## The choices\n", search_table(run), ""]
    if run.facts:
        parts.append(CUT.format(**run.facts))
    return "\n".join(parts)
