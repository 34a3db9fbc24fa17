"""The results of `torch_losses.py` as tables, verdicts and a page."""

from __future__ import annotations

from typing import Any

from _harness import power_of_ten
from _tables import Verdict, figure_list, number_text, text_table, time_text, verdict_table
from _torch_rivals import RIVALS, YARDSTICKS

Cell = dict[str, Any]

OURS = {"list": ["ap", "ndcg"], "batch": ["retrieval"]}
# From here on a list is long enough for the targets about sorting.
LONG = 16_000
MIDDLE = 4096
REASONS = {"time": "> {seconds} s", "memory": "> {gigabytes:g} GB", "missing": "not installed"}


def sizes_of(cells: list[Cell]) -> list[int]:
    return sorted({cell["n"] for cell in cells})


def find(cells: list[Cell], rival: str, n: int) -> Cell | None:
    return next((cell for cell in cells if cell["rival"] == rival and cell["n"] == n), None)


def outcome(cell: Cell | None, limits: dict[str, float]) -> str | None:
    """Why there is no figure, or None if there is one."""
    if cell is None:
        return "–"
    return REASONS[cell["failed"]].format(**limits) if cell.get("failed") else None


def time_table(cells: list[Cell], over: str, limits: dict[str, float]) -> str:
    """Rows: rivals; columns: sizes; entries: time of forward and backward pass, and how often that of the yardstick."""
    chosen = [cell for cell in cells if cell["over"] == over]
    sizes = sizes_of(chosen)
    yard = YARDSTICKS[over]
    header = ["forward + backward", *(f"n = {power_of_ten(n)}" for n in sizes)]
    rows = []
    for name in [yard, *(name for name, rival in RIVALS.items() if rival.over == over)]:
        row = [f"`{yard}` alone" if name == yard else RIVALS[name].text]
        for n in sizes:
            cell = find(chosen, name, n)
            failed = outcome(cell, limits)
            if failed is not None or cell is None:
                row.append(failed or "–")
            elif name == yard:
                row.append(time_text(cell["median"]))
            else:
                row.append(f"{time_text(cell['median'])} ({number_text(cell['to_yardstick']['ratio'])})")
        rows.append(row)
    return text_table(header, rows)


def memory_table(cells: list[Cell], limits: dict[str, float]) -> str:
    """Rows: rivals; columns: sizes; entries: peak of memory during one call."""
    sizes = sizes_of(cells)
    header = ["peak memory", *(f"n = {power_of_ten(n)}" for n in sizes)]
    rows = []
    for name, rival in RIVALS.items():
        row = [rival.text]
        for n in sizes:
            cell = find(cells, name, n)
            failed = outcome(cell, limits)
            row.append(failed if failed is not None or cell is None else megabytes(cell.get("peak")))
        rows.append(row)
    return text_table(header, rows)


def megabytes(peak: int | None) -> str:
    return "–" if peak is None else f"{number_text(max(peak, 0) / 1e6)} MB"


def to_sort(cells: list[Cell]) -> dict[str, float]:
    found = {}
    for name in OURS["list"]:
        for n in sizes_of(cells):
            cell = find(cells, name, n)
            if n >= LONG and cell is not None and "to_yardstick" in cell:
                found[f"{RIVALS[name].text}, n = {power_of_ten(n)}"] = cell["to_yardstick"]["ratio"]
    return found


def times_faster(cells: list[Cell], limits: dict[str, float]) -> dict[str, float]:
    """How much longer each relaxation takes than ours at n = 4096; one that is over its limit counts with the limit."""
    found = {}
    for name, rival in RIVALS.items():
        cell = find(cells, name, MIDDLE)
        if not rival.is_relaxation or cell is None or cell.get("failed") == "missing":
            continue
        for ours in OURS[rival.over]:
            fast = find(cells, ours, MIDDLE)
            if fast is None or fast.get("failed") or cell.get("failed") == "memory":
                continue
            seconds = limits["seconds"] if cell.get("failed") else cell["median"]
            found[f"{rival.text} / {RIVALS[ours].text}"] = seconds / fast["median"]
    return found


def memory_growth(cells: list[Cell]) -> dict[str, float]:
    """Peak memory per sample of the longest list, to that of the longest but one."""
    found = {}
    for name in [*OURS["list"], "on device"]:
        measured = [cell for n in sizes_of(cells) if (cell := find(cells, name, n)) and cell.get("peak")]
        if len(measured) >= 2 and measured[-1]["n"] >= 10**6:
            a, b = measured[-2], measured[-1]
            found[RIVALS[name].text] = (b["peak"] / b["n"]) / (a["peak"] / a["n"])
    return found


def memory_per_sample(cells: list[Cell]) -> dict[str, float]:
    found = {}
    for name in OURS["list"]:
        cell = find(cells, name, max(sizes_of(cells)))
        if cell is not None and cell["n"] >= 10**6 and cell.get("peak"):
            found[f"{RIVALS[name].text}, n = {power_of_ten(cell['n'])}"] = cell["peak"] / (4 * cell["n"])
    return found


def judge(results: dict[str, Any]) -> list[Verdict]:
    cells, limits = results["cells"], results["limits"]
    return [
        Verdict("`rank_hinge` / `torch.sort` of the scores, n ≥ 16k", 3, True, to_sort(cells)),
        Verdict("relaxation / ours, n = 4k", 20, False, times_faster(cells, limits)),
        Verdict("peak memory per sample at n = 10⁶ / the same at n = 256k", 1.3, True, memory_growth(cells)),
        Verdict("peak memory at n = 10⁶, in arrays of n float32", 16, True, memory_per_sample(cells)),
    ]


def not_won(results: dict[str, Any]) -> list[str]:
    """Where something that is no yardstick is faster than ours."""
    cells, lines = results["cells"], []
    for n in sizes_of(cells):
        for over, names in OURS.items():
            ours = find(cells, names[0], n)
            if ours is None or ours.get("failed"):
                continue
            for name, rival in RIVALS.items():
                cell = find(cells, name, n)
                if rival.over != over or name in names or cell is None or cell.get("failed"):
                    continue
                if cell["median"] < ours["median"]:
                    ratio = number_text(ours["median"] / cell["median"])
                    lines.append(
                        f"- n = {power_of_ten(n)}: {rival.text} is {ratio} times as fast as {RIVALS[names[0]].text}."
                    )
    return lines or ["- Nothing was faster."]


_INTRODUCTION = """\
How long do forward and backward pass of a ranking loss take, and how much memory? Losses over *one list* rank n
scores, 5 % of them relevant, standard normal, those of relevant samples raised by 0.5. Losses over *a batch of
embeddings* take n embeddings of dimension 64 in 16 classes, and each sample ranks the others: n lists of n - 1. The
two kinds are compared among themselves only.

All is float32, on the CPU. Beside the time stands its ratio to the
yardstick: a `torch.sort` of the scores, or the n × n similarities. The rivals take turns in one run; a
figure is a median.

Each was first tried once in a process of its own: one that asked for more than {gigabytes:g} GB or
took more than {seconds} s is reported as such. Peak memory is that of the trial, as the system sees it (at n = 256k and
more the median of three): it is rounded to pages, and includes what a library loads late."""

_NEAR_ITS_BOUND = """\
- *ApproxNDCG, relevant × all*, is not the formula as published but a cheaper one of the same value, for which only the
  ranks of the relevant samples are computed. At n = 4k inference takes some 40 µs of our time; the rest is what PyTorch
  and Python charge for a function of one's own, its backward pass and a few small operators. In ten runs on a machine
  that others use, the ratio was between 8.6 and 22.
- *FastAP beside `retrieval_loss`.* Ours takes about 0.25 s at n = 4k in every run; FastAP took 4.6 to 8.9 s, which
  makes the ratio 18.5 to 35 (27, 28, 28, 35, 18.5 and, last, 23)."""

_REMARKS = """\
- Binary cross-entropy ranks nothing: it is there to say what a loss costs that does not.
- The relaxations compute something else, each its own approximation of the metric; `rank_hinge` is an exact bound.
- Blackbox ranking sorts four times, has the true metric as its value, and no relaxation is involved.
- LibAUC's APLoss keeps a moving average for each sample of the data set; its construction is not timed. ApproxNDCG
  is written as published (all pairs), and as it could be written for binary relevance.
- SmoothAP and FastAP come from pytorch-metric-learning.
- `backend="torch"` is meant for accelerators: on the CPU the compiled kernels are what is used."""


def page(results: dict[str, Any], verdicts: list[Verdict]) -> str:
    cells, limits = results["cells"], results["limits"]
    facts = ", ".join(f"{name} {fact}" for name, fact in results["machine"].items())
    parts = [
        "# Benchmark: losses for PyTorch",
        "Generated by `make bench ONLY=torch_losses` (`benchmarks/torch_losses.py`); do not edit by hand.",
        _INTRODUCTION.format(**limits),
        f"Machine: {facts}; {results['threads']} threads.",
    ]
    if results["quick"]:
        parts.append("**A quick trial, not a measurement.**")
    parts += ["## Targets", verdict_table(verdicts), figure_list(verdicts)]
    parts += ["## What lies near its bound", _NEAR_ITS_BOUND]
    parts += ["## What it did not win", "\n".join(not_won(results))]
    parts += ["## One list", time_table(cells, "list", limits)]
    parts += ["## A batch of embeddings", time_table(cells, "batch", limits)]
    parts += ["## Memory", memory_table(cells, limits), "## Remarks", _REMARKS]
    return "\n\n".join(parts) + "\n"
