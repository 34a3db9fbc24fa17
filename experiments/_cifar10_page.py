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
    "layers/multiclass-hinge by probability": "layer by layer, 0-1 (p)",
    "layers/ap": "layer by layer, AP",
    "layers/ndcg": "layer by layer, NDCG",
    "gradients/cross-entropy": "gradients, cross-entropy",
    "gradients/multiclass-hinge": "gradients, 0-1",
    "gradients/ap": "gradients, AP",
    "gradients/ndcg": "gradients, NDCG",
}
LAYERWISE = ("multiclass-hinge", "ap", "ndcg")
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
A network is pre-trained with cross-entropy by Adadelta. Then `LayerwiseTrainer` continues layer by layer, for the 0-1
loss (multiclass hinge), the AP loss or the NDCG loss, as in 004 §4.3. For comparison, the same network continues by
stochastic gradients: with cross-entropy, with the same 0-1 loss, and with `RankHingeLoss` for AP and for NDCG.
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
        name = f"- {METRICS[metric]}, layer by layer, {LOSSES[metric]} minus 0-1"
        a, b = pairs(run, ours, (theirs, metric))
        if a:
            paper = f"The paper: {float(own) - float(binary):+.2f} ({own} against {binary})."
            lines.append(f"{name}: {compared(a, b)}. {paper}")
        a, b = pairs(run, ours, (f"{theirs} by probability", f"{metric} by probability"))
        if a:
            lines.append(f"{name} (p) *ranked by probabilities*: {compared(a, b)}.")
    others = [
        ("layers/ap", "start", "ap"),
        *((f"layers/{loss}", f"gradients/{loss}", "ndcg" if loss == "ndcg" else "ap") for loss in LAYERWISE),
        ("gradients/ap", "gradients/cross-entropy", "ap"),
        ("gradients/ndcg", "gradients/cross-entropy", "ndcg"),
    ]
    for first, second, metric in others:
        a, b = pairs(run, (first, metric), (second, metric))
        if a:
            lines.append(f"- {METRICS[metric]}, {WAYS[first]} minus {WAYS[second]}: {compared(a, b)}.")
    return "\n".join(lines)


def findings(run: Run) -> str:
    """Sentences whose every figure comes from the results; nothing before all of them are there."""

    def less(first: tuple[str, str], second: tuple[str, str]) -> str:
        a, b = pairs(run, first, second)
        return f"{100 * np.mean(np.subtract(a, b)):+.1f}"

    if missing(run):
        return ""
    binary = "layers/multiclass-hinge"
    by_scores = [less((f"layers/{m}", m), (binary, m)) for m in PAPER]
    by_probability = [less((f"layers/{m}", m), (f"{binary} by probability", f"{m} by probability")) for m in PAPER]
    gradients = [less((f"layers/{m}", m), (f"gradients/{m}", m)) for m in PAPER]
    paper = [f"{float(own) - float(binary):+.1f}" for binary, own, _, _ in PAPER.values()]
    seconds = {method: run[f"time/ap/{method}"]["inference_seconds"] for method in METHOD_NAMES}
    share = 100 * seconds["greedy"] / run["time/ap/greedy"]["seconds"]
    return f"""## In plain words

- **Ranked by scores**, training layer by layer for AP minus training for 0-1 is {by_scores[0]} points of AP (the paper:
  {paper[0]}), and for NDCG {by_scores[1]} points of NDCG (the paper: {paper[1]}).
- **Ranked by probabilities**, a softmax that costs nothing, the 0-1 loss is another rival: against it the difference is
  {by_probability[0]} points of AP and {by_probability[1]} of NDCG. What the ranking losses learn here is to make scores
  of different images comparable.
- **Layer by layer minus gradients**, of the same loss and in about the same time: {gradients[0]} points of AP,
  {gradients[1]} of NDCG.
- **Time**: greedy inference takes {share:.0f} % of the training for AP, and no faster one can save more. The paper's
  quicksort saves {saved(float(PAPER["ap"][2]), float(PAPER["ap"][3]))}.
"""


def missing(run: Run) -> str:
    """What has not been run yet."""
    lacks = [name for way, name in WAYS.items() if len(cells(run, way)) < run.facts["n_seeds"]]
    lacks += ["times by method of inference"] * (len(run.keys("time/")) < 2 * len(METHOD_NAMES))
    lacks += ["all layers"] * (not run.keys("all layers/"))
    lacks += ["times by size of the blocks"] * (len(run.keys("size/")) < 2 * len(run.facts["timing_block_sizes"]))
    return f"**This run is not complete.** Not run, or not on all seeds: {'; '.join(lacks)}.\n\n" if lacks else ""


def search_table(run: Run) -> str:
    """Validation figures of each value, the chosen one marked."""
    rows = []
    searches = {way: ("ndcg" if way.endswith("ndcg") else "ap") for way in WAYS if run.keys(f"search/{way}/")}
    if "layers/multiclass-hinge" in searches:
        searches["layers/multiclass-hinge by probability"] = "ap by probability"
    for way in (way for way in WAYS if way in searches):
        metric = searches[way]
        keys = run.keys(f"search/{way.removesuffix(' by probability')}/")
        found = {float(key.split("/")[3]): run[key][metric] for key in keys}
        values = sorted(found, reverse=True)
        best = max(values, key=found.__getitem__)
        mark = " *, an end" if best in (values[0], values[-1]) else " *"
        texts = [f"{value:g}: {100 * found[value]:.2f}{mark if value == best else ''}" for value in values]
        rows.append([WAYS[way], "λ" if way.startswith("layers") else "rate", METRICS[metric], ", ".join(texts)])
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
                        f"{100 * cell['inference_seconds'] / cell['seconds']:.1f} %",
                        f"{cell['objective']:.4f}",
                        hours,
                    ]
                )
    header = ["loss", "inference", "in inference", "in all, processor", "share", "objective", "paper, in all"]
    return text_table(header, rows)


def saved(slow: float, fast: float) -> str:
    return f"{100 * (1 - fast / slow):.0f} %"


def savings(run: Run) -> str:
    """What faster inference saves of the whole, here and in the paper.

    Outside inference every method computes the same: there the mean over the methods counts, and the spread is noise.
    """
    lines, spreads = [], []
    for loss, (_, _, slow, fast) in PAPER.items():
        if not {f"time/{loss}/{method}" for method in METHOD_NAMES} <= set(run.keys("time/")):
            continue
        by = {method: run[f"time/{loss}/{method}"] for method in METHOD_NAMES}
        inference = {method: cell["inference_seconds"] for method, cell in by.items()}
        rest = [cell["seconds"] - cell["inference_seconds"] for cell in by.values()]
        spreads += [f"{min(rest):.1f} to {max(rest):.1f} s for {LOSSES[loss]}"]
        whole = {method: np.mean(rest) + seconds for method, seconds in inference.items()}
        of = {m: f"{saved(inference['greedy'], inference[m])} of inference" for m in METHOD_NAMES}
        of = {m: f"{text} and {saved(whole['greedy'], whole[m])} of the whole" for m, text in of.items()}
        lines.append(
            f"- {LOSSES[loss]}: quicksort in place of greedy saves {of['quicksort']}, the default {of['auto']}. "
            f"The paper's quicksort saves {saved(float(slow), float(fast))} of the whole."
        )
    if not lines:
        return ""
    noise = (
        f"Outside inference the work is the same, and took {' and '.join(spreads)}:\nthat spread is noise. Below, its "
        "mean over the methods counts.\n"
    )
    return "\n".join([noise, *lines])


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
            f"The three layers as above, on all {run.facts['n_train']} training images of the first seed in the same "
            f"blocks of {run.facts['block_size']},\nby each method of inference, without validation. One thread; "
            "seconds of the processor, measured once.\n",
            time_table(run),
            "",
            savings(run),
            "\nThe network's own work bounds what faster inference can save. The paper does not give the size of its\n"
            "blocks; the share of inference grows with it.\n",
        ]
    if run.keys("size/"):
        parts += [
            f"The last layer alone, on {run.facts['n_part']} images: seconds in inference / in all.\n",
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
  layer, blocks of {block_size}, μ = 10 λ. The first four convolutions stay as they are.{kept}
  The weights with the best validation figure of the loss's own metric are kept.
- By gradients: Adam, {gradient_epochs} epochs, the best epoch by validation mean AP (NDCG for NDCG); batches of 100,
  for AP and NDCG of {block_size}. Layer-wise training of AP took {layer_seconds} s of the processor for a seed,
  gradients {gradient_seconds} s.
- λ and the rates: three values for each machine, then the next beyond whichever end was the best. They are judged on
  the validation images of the first seed after the same training on {n_part} images. The choice then holds for all
  seeds. Nothing else was tried. No choice here has seen a test image; an earlier experiment in this place had, and
  nothing of it was kept.
- The machine (p) joined when the test figures of the others were known. Its λ comes from the same validation figures.
- {n_seeds} seeds (0, 1, …), one for times. torch {torch}.
"""


def kept_layers(run: Run) -> str:
    """What the turns of the layers cost and bring that the other runs leave as they are."""
    if "all layers/ap" not in run:
        return ""
    cell = run["all layers/ap"]
    trained = [turn for turn in cell["turns"] if int(turn["layer"]) >= run.facts["n_kept"]]
    seconds = [sum(turn["seconds"] for turn in turns) for turns in (trained, cell["turns"])]
    three = trained[-1]["objective"]
    before, after = (
        f"{100 * (1 - fall):.1f} %" for fall in (three / cell["objective_before"], cell["objective"] / three)
    )
    return (
        f" On\n  {run.facts['n_part']} images, with these as well, their turns took {saved(seconds[1], seconds[0])} of "
        f"the time and\n  lowered the AP objective by {after}, those of the other three before them by {before}."
    )


def cut(run: Run) -> str:
    times = {way: [cell["seconds"] for cell in cells(run, way)] for way in ("layers/ap", "gradients/ap")}
    means = {way: f"{np.mean(values):.0f}" if values else "–" for way, values in times.items()}
    facts = {"layer_seconds": means["layers/ap"], "gradient_seconds": means["gradients/ap"], "kept": kept_layers(run)}
    return CUT.format(**run.facts, **facts)


def page(run: Run) -> str:
    parts = ["# Experiment: CIFAR-10, layer by layer\n", run.provenance(), INTRODUCTION]
    if cells(run, "start"):
        parts += [
            findings(run),
            "## Result\n",
            quality_table(run),
            "\nPer cent on the test images, each class against the rest, mean over the classes; ± is over the seeds.\n"
            "*By probability*: a softmax normalises the scores of an image before images are ranked. Losses that\n"
            "compare the scores of one image with each other (cross-entropy, 0-1) do not make those of different\n"
            "images comparable. *(p)*: λ is chosen by mean AP by probability, else by mean AP by scores.\n",
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
        parts.append(cut(run))
    return "\n".join(parts)
